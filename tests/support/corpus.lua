--- Scripts that do not end by themselves (tests/data/runaway-corpus.json), and a way to run one in
--- a process of its own under a total.
local cjson = require "cjson"
local uv = require "luv"

local M = {}

---@class test.Runaway
---@field name string
---@field code string
---@field expect "raised at its deadline"|"ends with the total at the latest"

---@return test.Runaway[]
function M.load()
  local path = (os.getenv "MOONTIDE_SOURCE" or ".") .. "/tests/data/runaway-corpus.json"
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return cjson.decode(text)
end

-- The child: its slice has a deadline, too, so that whatever can be interrupted ends early.
local CHILD = [==[
require "moontide"
local core = require "moontide.core"
core.host.watch()
local now = core.clock.now()
core.watchdog.phase("corpus")
core.watchdog.begin("corpus/" .. %q, "corpus.lua:1")
core.watchdog.total("shutdown", now + %g)
core.coroutine.resume(coroutine.create(load(%q)), now + %g)
io.stderr:write("came back\n")
io.stderr:flush()
os.exit(0, false)
]==]

---@param case test.Runaway
---@param total number seconds
---@param deadline number seconds
---@return { code: integer|nil, seconds: number, output: string }
function M.run(case, total, deadline)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(CHILD:format(case.name, total, case.code, deadline))
  file:close()
  local began = uv.hrtime()
  local pipe = assert(io.popen("exec lua5.4 " .. path .. " 2>&1"))
  local output = pipe:read("a")
  local _, how, code = pipe:close()
  os.remove(path)
  return {
    code = how == "exit" and code or nil, output = output, seconds = (uv.hrtime() - began) / 1e9,
  }
end

return M
