--- A load of strict HTTP clients, running beside a test that stops and starts
--- servers (support/load/load.h says what the clients do and forgive).
---
---     local load = require "support.load"
---
---     local dir = proc.temp_dir()
---     local app = proc.start { script = load.APP, env = { EXECUTED = dir .. "/executed" } }
---     app:wait_ready()
---     local clients = load.start { port = app.port, keep_alive = 8, per_request = 4, post = 4 }
---     ...                                              -- restart, take over, drain
---     local counts = clients:finish()                  -- raises what failed
---     clients:check_executed { dir .. "/executed" }    -- each POST once, and answered
local cjson = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"

local M = {}

--- An application that does what the clients ask for. Each POST appends its id to
--- the file $EXECUTED when its handler starts. `linger` and `drain` come from
--- $LINGER and $DRAIN.
M.APP = [[
local tide = require "moontide"
tide.config { shutdown = {
  linger = os.getenv "LINGER" or "200ms", drain = os.getenv "DRAIN" or "10s",
} }
local executed = os.getenv "EXECUTED" and assert(io.open(os.getenv "EXECUTED", "a"))
if executed then executed:setvbuf "no" end
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
local function pause(req)
  if req.query.ms then tide.sleep(tonumber(req.query.ms) / 1000) end
end
server:get("/echo/:id", function(req)
  pause(req)
  return req.params.id
end)
server:post("/echo/:id", function(req)
  if executed then executed:write(req.params.id, "\n") end
  local body = req:body()
  pause(req)
  return body
end)
]]

--- The same, with a startup that takes $SLOW.
M.SLOW_APP = [[
if os.getenv "SLOW" then
  require("moontide").startup:phase("slow", function()
    require("moontide").sleep(os.getenv "SLOW")
  end)
end
]] .. M.APP

---@class test.Load
---@field process test.Process
---@field ids string path of the file with the ids of the answered POSTs
local Load = {}
Load.__index = Load

---@class test.LoadOptions
---@field port? integer of 127.0.0.1; this or `ports`
---@field ports? integer[] a client starts with one of these, by its number
---@field keep_alive? integer clients of each kind, default 0
---@field per_request? integer
---@field pipelined? integer
---@field post? integer
---@field depth? integer requests in a pipeline, default 8
---@field think? number ms between two requests of a `post` client, default 20
---@field pace? number ms between two requests of any other, default 0
---@field slow? integer every third request takes so many ms
---@field body? integer bytes of a POST behind its id
---@field timeout? integer ms for an answer, default 10000
---@field retry_refused? boolean a refused connection is no failure
---@field for_seconds? number ends by itself

local FLAGS = {
  keep_alive = "--keep-alive", per_request = "--per-request", pipelined = "--pipelined",
  post = "--post", depth = "--depth", think = "--think", pace = "--pace", slow = "--slow",
  body = "--body", timeout = "--timeout", for_seconds = "--for",
}

--- Starts clients; returns when each of them has had an answer.
---@param options test.LoadOptions
---@return test.Load
function M.start(options)
  local ids = proc.temp_dir() .. "/answered"
  local argv = { "--ids", ids }
  for _, port in ipairs(options.ports or { options.port }) do
    argv[#argv + 1], argv[#argv + 2] = "--to", "127.0.0.1:" .. port
  end
  for name, value in pairs(options) do
    if FLAGS[name] then
      argv[#argv + 1], argv[#argv + 2] = FLAGS[name], value
    elseif name == "retry_refused" then
      argv[#argv + 1] = value and "--retry-refused" or nil
    elseif name ~= "port" and name ~= "ports" then
      error("unknown option of load.start: " .. name, 2)
    end
  end
  local self = setmetatable({ ids = ids }, Load)
  self.process = proc.start {
    program = assert(os.getenv "MOONTIDE_BUILD") .. "/tests/load", argv = argv, manage = false,
  }
  self.process:wait_stdout "under way"
  return self
end

--- Ends the load, what is under way being answered; returns its counts (see
--- support/load/report.c), also when there were failures.
---@return table counts
---@return string failures a line each
function Load:stop()
  self.process:signal "TERM"
  self.process:wait(30)
  local line = self.process:stdout():match "{.*}"
  if not line then error("the load ended badly:\n" .. self.process:stderr(), 2) end
  return cjson.decode(line), self.process:stderr()
end

--- As `stop`; raises when anything failed.
---@return table counts
function Load:finish()
  local counts, failures = self:stop()
  if counts.failed > 0 then
    error(("%d of %d requests failed:\n%s%s"):format(counts.failed, counts.answered,
      failures:sub(1, 4000), self.process:stdout()), 2)
  end
  return counts
end

--- So far, while it runs.
---@return integer
function Load:failures()
  return select(2, self.process:stderr():gsub("\n", ""))
end

--- Raises when it fails meanwhile: a test of many rounds ends with the first.
function Load:check()
  loop.turn_for(0)
  if self:failures() > 0 or not self.process:is_running() then
    error("requests failed:\n" .. self.process:stderr():sub(1, 4000), 2)
  end
end

local function lines(path)
  local list = {}
  for line in (proc.read_file(path) or ""):gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

--- After `stop`: no POST was executed twice, none was executed without an answer,
--- and none answered that was not executed.
---@param files string[] the $EXECUTED of every process
---@return integer executed
function Load:check_executed(files)
  local executed, count, wrong = {}, 0, {}
  local function complain(id, what) wrong[#wrong + 1] = id .. ": " .. what end
  for _, path in ipairs(files) do
    for _, id in ipairs(lines(path)) do
      if executed[id] then complain(id, "executed twice") end
      executed[id], count = true, count + 1
    end
  end
  for _, id in ipairs(lines(self.ids)) do
    if executed[id] == nil then complain(id, "answered, but not executed") end
    executed[id] = false
  end
  for id, unanswered in pairs(executed) do
    if unanswered then complain(id, "executed, but not answered") end
  end
  if #wrong > 0 then
    error(("%d wrong:\n%s"):format(#wrong, table.concat(wrong, "\n", 1, math.min(#wrong, 20))), 2)
  end
  return count
end

return M
