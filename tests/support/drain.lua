--- What the specs and the bench of drains share: strict clients around one stop of
--- a server, on loopback or through a slow wire.
---
---     local app = http_app.start { linger = "200ms" }
---     local clients = drain.clients { port = app.port, mode = "post", clients = 200 }
---     clients:wait_stdout("(running)\n")      -- each of them had an answer
---     app:signal "TERM"
---     assert.same({}, drain.faults(drain.result(clients)))
---
--- Modes and the names of outcomes are told in support/drain/strict_client.c.
local cjson = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

M.SERVER, M.CLIENT = "10.99.0.1", "10.99.0.2"

local function tool(name)
  local dir = os.getenv "MOONTIDE_DRAIN_TOOLS" or os.getenv "MOONTIDE_BUILD" .. "/tests"
  return dir .. "/" .. name
end

---@class test.StrictClients
---@field port integer
---@field mode string
---@field clients integer
---@field host? string
---@field once? boolean
---@field path? string
---@field pid? integer of the server, whose end is waited for
---@field pause_ms? integer of mode "think"
---@field retry_refused? boolean
---@field for_ms? integer default 8000
---@field wire? test.Wire they are at its other end

--- Starts strict clients.
---@param options test.StrictClients
---@return test.Process
function M.clients(options)
  local words = {}
  local function add(...)
    for _, word in ipairs { ... } do words[#words + 1] = word end
  end
  if options.wire then add("nsenter", "--net=" .. options.wire.client_side) end
  add(tool "strict_client", "--port", options.port, "--mode", options.mode, "--clients",
    options.clients, "--for", options.for_ms or 8000)
  if options.wire then add("--host", M.SERVER) end
  if options.once then add "--once" end
  if options.retry_refused then add "--retry-refused" end
  if options.path then add("--path", options.path) end
  if options.pid then add("--pid", options.pid) end
  if options.pause_ms then add("--pause", options.pause_ms) end
  return proc.start { program = table.remove(words, 1), argv = words, manage = false }
end

--- Waits for the end of the clients: how often each outcome was met.
---@param clients test.Process
---@return table<string, any>
function M.result(clients)
  assert(clients:wait(40) == 0, clients:stderr())
  return cjson.decode((clients:stdout():match "%b{}"))
end

--- Lets this process and those it starts have so many descriptors; false: it may not.
---@param count integer
---@return boolean
function M.descriptors(count)
  local code = proc.run {
    program = "prlimit", argv = { "--pid", uv.os_getpid() // 1 | 0, "--nofile=" .. count .. ":" },
    manage = false,
  }
  return code == 0
end

local HARMLESS = {
  answered = true, refused = true, unprocessed = true, closed = true, last_answer_at = true,
  exit_at = true,
}

--- The outcomes that no client should meet, as "reset_fresh=3".
---@param result table<string, any>
---@param allowed? table<string, boolean>
---@return string[]
function M.faults(result, allowed)
  local list = {}
  for name, count in pairs(result) do
    if type(count) == "number" and count > 0 and not HARMLESS[name]
      and not (allowed and allowed[name]) then
      list[#list + 1] = ("%s=%d"):format(name, count)
    end
  end
  table.sort(list)
  return list
end

-- ---- a slow wire --------------------------------------------------------------------------------

---@class test.Wire two network namespaces with a delay between them
---@field server_side string a path for nsenter
---@field client_side string
---@field process test.Process
local Wire = {}
Wire.__index = Wire

--- A wire with so many milliseconds each way; nil and the reason where the machine
--- does not let us.
---@param ms number
---@return test.Wire? wire
---@return string? why
function M.wire(ms)
  local process = proc.start { program = tool "relay", argv = { ms }, manage = false }
  loop.wait(function() return process:stdout():find "\n" or process.exited_at end, 5, "the wire")
  local server, client = process:stdout():match "^(/%S+) (/%S+)\n"
  if not server then
    process:wait()
    return nil, process:stdout():match "skipped: ([^\n]*)" or process:stderr()
  end
  return setmetatable({ server_side = server, client_side = client, process = process }, Wire)
end

--- Takes it down: what went over it.
---@return table<string, integer> counts see support/drain/relay.c
function Wire:stop()
  self.process:signal "TERM"
  assert(self.process:wait() == 0)
  return cjson.decode((self.process:stdout():match "%b{}"))
end

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = os.getenv "LINGER", timeout = "20s" } }
local server = tide.http.listen {
  name = "api", host = "0.0.0.0", port = tonumber(os.getenv "PORT"),
}
server:get("/hello", function() return "hello" end)
server:get("/slow", function() tide.sleep(0.3) return "slow" end)
server:post("/echo", function(req) return req:body() end)
]]

local NOBODY = {
  "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
  "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs",
}

-- Somebody without any right must be able to read the binary and the script.
local function open_to_all(program)
  local dir = proc.temp_dir()
  assert(uv.fs_copyfile(program, dir .. "/moontide"))
  proc.write_file(dir .. "/app.lua", SCRIPT)
  for path, mode in pairs { [dir] = 511, [dir .. "/moontide"] = 493, [dir .. "/app.lua"] = 420 } do
    assert(uv.fs_chmod(path, mode)) -- 0777, 0755, 0644
  end
  return dir
end

--- A ready server at the far end of the wire.
---@param options { wire: test.Wire, linger: string, nobody?: boolean }
---@return test.Process
function Wire:serve(options)
  local dir = open_to_all(os.getenv "MOONTIDE")
  local argv = { "--net=" .. self.server_side }
  if options.nobody then table.move(NOBODY, 1, #NOBODY, 2, argv) end
  table.move({ dir .. "/moontide", "run", dir .. "/app.lua" }, 1, 3, #argv + 1, argv)
  local app = proc.start {
    program = "nsenter", argv = argv,
    env = { LINGER = options.linger, MOONTIDE_STATE_DIR = dir .. "/state" },
  }
  app:wait_log { to = "ready" }
  return app
end

return M
