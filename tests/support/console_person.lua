--- A person at the console of a fake host: what console specs begin with.
---
---     local person, host = console_person.start { ["1 + 1"] = "2" }
---
--- An evaluation answers the text that the table has for its source, or does what the function
--- there does; any other source has no value.
local fake_host = require "support.fake_host"
local pty = require "support.pty"

local M = {}

---@param answers table<string, string|fun(conn: test.FakeConn, message: table)>|nil
---@param options { env: table|nil, columns: integer|nil, prompt: string|nil }|nil
---@return test.Person
---@return test.FakeHost
function M.start(answers, options)
  options = options or {}
  local host = fake_host.start "orders"
  host.on.eval = function(conn, message)
    local answer = (answers or {})[message.source]
    if type(answer) == "function" then return answer(conn, message) end
    if answer then conn:send { id = message.id, type = "value", text = answer, n = 1 } end
    conn:done(message.id)
  end
  local env = { XDG_STATE_HOME = host.dir, RUNTIME_DIRECTORY = host.dir }
  for name, value in pairs(options.env or {}) do env[name] = value end
  local person = pty.start { args = { "console", "orders" }, env = env,
    columns = options.columns }
  person:at_prompt(options.prompt)
  return person, host
end

return M
