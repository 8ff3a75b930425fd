-- A drain that had to break requests off is not a clean end for everybody: the settings may give it
-- a code of its own.
local http = require "support.http_client"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = 0, drain = "300ms", forced_exit_code = tonumber(arg[1]) } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/slow", function(req) tide.sleep(tonumber(req.query.s)) return "slow" end)
]]

local function code_after(seconds, code)
  local app = proc.start { script = APP, args = { code } }
  app:wait_ready()
  local conn = assert(http.connect(app.port))
  conn:send_request("GET", "/slow?s=" .. seconds)
  app:signal "TERM"
  local status = assert(conn:read_response()).status
  return (app:wait()), status
end

describe("the exit code after a drain", function()
  it("is the one of the settings when a request was broken off", function()
    assert.same({ 75, 503 }, { code_after(60, 75) })
  end)

  it("is 0 when none was, or when the settings do not say", function()
    assert.same({ 0, 200 }, { code_after(0.05, 75) })
    assert.same({ 0, 503 }, { code_after(60, 0) })
  end)
end)
