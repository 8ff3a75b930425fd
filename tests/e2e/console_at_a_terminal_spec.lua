-- `moontide console` at a terminal: what a person types and sees. The host is a fake one, so that
-- it can be silent, slow, or gone at the moment a test wants.
local fake_host = require "support.fake_host"
local proc = require "support.process"
local pty = require "support.pty"
local uv = require "luv"

-- A host whose evaluations answer what `answers` says of their source, and a person at its prompt.
local function start(answers, options)
  local host = fake_host.start "orders"
  host.on.eval = function(conn, message)
    local answer = answers[message.source]
    if type(answer) == "function" then return answer(conn, message) end
    if answer then conn:send { id = message.id, type = "value", text = answer, n = 1 } end
    conn:done(message.id)
  end
  local env = { XDG_STATE_HOME = host.dir, RUNTIME_DIRECTORY = host.dir }
  for name, value in pairs(options and options.env or {}) do env[name] = value end
  local person = pty.start { args = { "console", "orders" }, env = env,
    columns = options and options.columns }
  person:at_prompt(options and options.prompt)
  return person, host
end

describe("the console at a terminal", function()
  it("shows values, and leaves at Ctrl-D", function()
    local person = start { ["1 + 1"] = "2" }
    person:type "1 + 1\r"
    person:see "orders> 1 %+ 1\n2\norders>$"
    person:type "\4"
    assert.equal(0, person:wait())
  end)
end)
