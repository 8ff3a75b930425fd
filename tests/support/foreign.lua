--- What HTTP clients written by others must be able to do with a server, before
--- and across a drain. Each client is a program of tests/support/clients:
---
---     PROGRAM basics URL     GET, HEAD, POST, large bodies, chunked, 100-continue,
---                            errors, one connection for all; exits 0 or says why
---     PROGRAM drain URL      asks on kept connections, writes "under way", goes on
---                            until it is refused, then writes one line of JSON:
---                            { answered, posts, refused, errors: [...] }, where
---                            posts are those of the answered that were a POST
---
---     local foreign = require "support.foreign"
---     foreign.basics { program = "/usr/bin/python3", argv = { "client.py" } }
local cjson = require "cjson"
local http = require "support.http_client"
local load = require "support.load"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

--- Where the programs are.
M.clients = (os.getenv "MOONTIDE_SOURCE" or ".") .. "/tests/support/clients/"

--- Where a program is; nil when it is not installed.
---@param name string
---@return string?
function M.find(name)
  for dir in os.getenv("PATH"):gmatch "[^:]+" do
    if uv.fs_access(dir .. "/" .. name, "X") then return dir .. "/" .. name end
  end
end

-- /echo is the load's, the rest is for `basics`.
local SCRIPT = load.APP:gsub('os.getenv "PORT"%) }',
  'os.getenv "PORT"), limits = { body = 20000000 } }') .. [[
server:get("/remote", function(req) return req.remote end)
server:get("/version", function(req) return req.version end)
server:get("/big", function(req) return ("0123456789"):rep(tonumber(req.query.n) // 10) end)
server:get("/chunked", function(req, res)
  for i = 1, 100 do res:write(("%09d\n"):format(i)) end
end)
server:post("/upload", function(req) return 200, req:body(), {
  ["Content-Type"] = "application/octet-stream",
  ["X-Expect"] = req.headers.expect, ["X-Encoding"] = req.headers["transfer-encoding"],
} end)
server:post("/small", { body_limit = 10 }, function(req) return req:body() end)
server:get("/nothing", function() end)
server:get("/old", function() return 304 end)
]]

--- Starts the application that the clients expect.
---@param options? { linger?: string }
---@return test.Process app
---@return string url
---@return string executed path of the file with the ids of executed POSTs
function M.serve(options)
  local executed = proc.temp_dir() .. "/executed"
  local app = proc.start {
    script = SCRIPT,
    env = { LINGER = options and options.linger or "0s", EXECUTED = executed },
  }
  app:wait_ready()
  return app, "http://127.0.0.1:" .. app.port, executed
end

--- Waits until the application has answered so many requests.
---@param app test.Process
---@param count integer
function M.wait_requests(app, count)
  loop.wait(function()
    local metrics = http.get(app.manage_port, "/metrics").body
    return tonumber(metrics:match 'requests_total{class="2xx"} (%d+)' or 0) >= count
  end, 15, count .. " requests")
end

local function start(client, mode, url)
  local argv = { table.unpack(client.argv or {}) }
  argv[#argv + 1], argv[#argv + 2] = mode, url
  return proc.start { program = client.program, argv = argv, env = client.env, manage = false }
end

---@class test.ForeignClient
---@field program string
---@field argv? string[] before the mode
---@field env? table<string, string>

--- All that needs no drain; raises what the client says is wrong.
---@param client test.ForeignClient
function M.basics(client)
  local app, url = M.serve()
  local process = start(client, "basics", url)
  local code, signal = process:wait(60)
  if code ~= 0 then
    error(("code %s signal %s\n%s%s"):format(code, signal, process:stdout(), process:stderr()), 2)
  end
  -- An error of the application would have been answered, maybe as expected.
  assert(#app:find_logs { level = "error" } == 0, app:stderr())
end

-- How many POSTs; raises when one was executed twice.
local function count_executed(path)
  local seen, count = {}, 0
  for id in (proc.read_file(path) or ""):gmatch "[^\n]+" do
    if seen[id] then error("executed twice: " .. id, 3) end
    seen[id], count = true, count + 1
  end
  return count
end

--- SIGTERM while the client asks: it gets right answers, and then is refused. What was
--- executed has been answered, each POST once.
---@param client test.ForeignClient
---@return table counts
function M.drain(client)
  -- Long enough that a client that asks every few milliseconds does so in it, on
  -- each of its connections, also on a busy machine.
  local app, url, path = M.serve { linger = "1s" }
  local process = start(client, "drain", url)
  process:wait_stdout("under way", 60)
  app:signal "TERM"
  local code = app:wait()
  process:wait(60)
  local line = process:stdout():match "{.*}"
  if code ~= 0 or process.code ~= 0 or not line then
    error(("server: %s, client: %s\n%s%s"):format(code, process.code, process:stdout(),
      process:stderr()), 2)
  end
  local counts = cjson.decode(line)
  if #counts.errors > 0 or counts.refused == 0 then
    error(("refused: %d, answered: %d, errors:\n%s"):format(counts.refused, counts.answered,
      table.concat(counts.errors, "\n")), 2)
  end
  local executed = count_executed(path)
  if executed ~= counts.posts then
    error(("%d POSTs executed, %d answered"):format(executed, counts.posts), 2)
  end
  return counts
end

return M
