-- An idle connection is closed in the moment its next request comes: the request is served, or it
-- never began. One that ran and was not answered is the worst of both (golang/go#65802).
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
  local tide = require "moontide"
  tide.config { shutdown = { linger = "0s", drain = "10s" } }
  local executed = assert(io.open(os.getenv "EXECUTED", "a"))
  executed:setvbuf "no"
  local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
  server:get("/hello", function() return "hello" end)
  server:post("/run/:id", function(req)
    executed:write(req.params.id, "\n")
    return req.params.id
  end)
]]

local CLIENTS = 200

-- What became of the POST of each connection: its answer, or how it ended.
local function outcomes(conns)
  local answered = {}
  for i, conn in ipairs(conns) do
    local response, err = conn:read_response()
    if response then
      assert.equal(200, response.status)
      assert.equal(tostring(i), response.body)
      assert.equal("eof", conn:wait_close()) -- also where it was served just before the signal
      answered[tostring(i)] = true
    else
      -- Nothing of an answer came: the client may tell that it has to repeat.
      assert.is_truthy(err == "eof" or err == "ECONNRESET", err)
      assert.equal("", conn.buffer)
    end
  end
  return answered
end

local function lines_of(path)
  local list = {}
  for line in proc.read_file(path):gmatch "%d+" do list[#list + 1] = line end
  return list
end

-- A server, its idle connections, and the file of the POSTs that ran.
local function start()
  local executed = proc.temp_dir() .. "/executed"
  local app = proc.start { script = SCRIPT, env = { EXECUTED = executed } }
  app:wait_ready()
  local conns = {}
  for i = 1, CLIENTS do
    conns[i] = assert(http.connect(app.port))
    assert(conns[i]:request("GET", "/hello"))
  end
  return app, conns, executed
end

describe("a request that meets the close of its idle connection", function()
  it("was answered if it ran, and ran once", function()
    local app, conns, executed = start()
    -- Half of them send while the drain is under way, wherever it is by then.
    for i = 1, CLIENTS do
      if i == CLIENTS // 2 then app:signal "TERM" end
      conns[i]:send_request("POST", "/run/" .. i)
    end
    local answered = outcomes(conns)
    assert.equal(0, (app:wait()))
    local seen = {}
    for _, id in ipairs(lines_of(executed)) do
      assert.is_nil(seen[id], "ran twice: " .. id)
      seen[id] = true
      assert.is_true(answered[id], "ran, but was not answered: " .. id)
    end
    for i = 1, CLIENTS // 2 - 1 do -- these had arrived before the signal
      assert.is_true(answered[tostring(i)], "had arrived, and was not answered: " .. i)
    end
  end)

  it("is served where it had arrived before the server could look", function()
    local app, conns, executed = start()
    app:signal "STOP"
    app:signal "TERM"
    for i = 1, CLIENTS do conns[i]:send_request("POST", "/run/" .. i) end
    app:signal "CONT"
    local answered = outcomes(conns)
    assert.equal(0, (app:wait()))
    assert.equal(CLIENTS, #lines_of(executed))
    for i = 1, CLIENTS do assert.is_true(answered[tostring(i)]) end
    assert.is_true(loop.now() - app.started_at < 30 * loop.scale)
  end)
end)
