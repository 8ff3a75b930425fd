-- A Unix socket knows no reset. Half an answer is told from a whole one by its framing, which a
-- client of HTTP/1.0 lacks where the length is not known: there only the log tells.
local http = require "support.http_client"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen { path = os.getenv "SOCKET" }
server:get("/half", function(req, res)
  if req.query.size then res:header("Content-Length", 8) end
  res:write "half"
  tide.sleep(0.02)
  error "broken off"
end)
]]

describe("half an answer on a Unix socket", function()
  local app, path

  setup(function()
    path = proc.temp_dir() .. "/http.sock"
    app = proc.start { script = SCRIPT, env = { SOCKET = path } }
    app:wait_ready()
  end)

  -- Head and body as they came.
  local function ask(version, query)
    local before = #app:logs()
    local conn = assert(http.connect(path))
    assert(conn:send(("GET /half%s HTTP/%s\r\nHost: a\r\n\r\n"):format(query, version)))
    assert.is_truthy(conn:wait_close())
    app:wait_log({ level = "error" }, 5, app:logs()[before])
    return conn.buffer:match "^(.-\r\n\r\n)(.*)$"
  end

  it("lacks its last chunk", function()
    local head, body = ask("1.1", "")
    assert.matches("Transfer-Encoding: chunked", head, 1, true)
    assert.equal("4\r\nhalf\r\n", body)
  end)

  it("is shorter than its head says, where that says it", function()
    for _, version in ipairs { "1.0", "1.1" } do
      local head, body = ask(version, "?size=8")
      assert.matches("Content-Length: 8", head, 1, true)
      assert.equal("half", body)
    end
  end)

  it("is said in the log, where nothing else tells a client of HTTP/1.0", function()
    local head, body = ask("1.0", "")
    assert.not_matches("Content-Length", head, 1, true)
    assert.equal("half", body)
  end)
end)
