-- A route that runs once for each Idempotency-Key, over real sockets.
local cjson = require "cjson"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s", timeout = "20s", drain = os.getenv "DRAIN" or "10s" } }
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
local function note(text)
  local file = assert(io.open(os.getenv "RUNS", "a"))
  file:write(text, "\n")
  file:close()
end
local once = tide.http.idempotent { store = os.getenv "STORE" }
server:use(function(req, next)
  if req.headers.authorization == "no" then return 401, "no" end
  return next(req)
end)
server:post("/pay", once, function(req, res)
  note("begin " .. (req.headers["idempotency-key"] or "-"))
  tide.sleep((tonumber(req.query.ms) or 1) / 1000)
  local order = req:json()
  res:status(201):header("X-Set", "yes")
  note("end")
  return { sum = order.sum }, nil
end)
server:put("/pieces", once, function(req)
  local n = 0
  for piece in req:chunks() do n = n + #piece end
  return 200, tostring(n), { ["Set-Cookie"] = { "a=1", "b=2" } }
end)
server:post("/fail", once, function(req)
  note("fail")
  if req.query.http then tide.http.error(402, "no money") end
  error("secret")
end)
server:post("/stream", once, function(req, res) note("stream") res:write("a") return "b" end)
server:post("/maybe", tide.http.idempotent { key = "optional", ttl = "300ms" }, function()
  note("maybe")
  return "x"
end)
]]

local function start(env, dir)
  env = env or {}
  env.RUNS = env.RUNS or (dir or proc.temp_dir()) .. "/runs"
  local app = proc.start { script = SCRIPT, env = env, dir = dir }
  app.runs_file = env.RUNS
  app:wait_ready()
  return app
end

local function post(app, path, key, body, more)
  local headers = { ["Idempotency-Key"] = key }
  for name, value in pairs(more or {}) do headers[name] = value end
  return assert(http.post(app.port, path, body or "", { headers = headers }))
end

local function runs_of(app, what)
  local n = 0
  for line in (proc.read_file(app.runs_file) or ""):gmatch "[^\n]+" do
    if line:find(what, 1, true) then n = n + 1 end
  end
  return n
end

-- The answer again: what does not depend on when it was given.
local function fields(response)
  local list = {}
  for name, value in pairs(response.headers) do
    if name ~= "date" and name ~= "idempotency-replayed" then list[name] = value end
  end
  return { response.status, list, response.body }
end

describe("a route that runs once", function()
  it("gives its answer again, and says so", function()
    for _, store in ipairs { "memory", "sqlite:answers.db" } do
      local app = start { STORE = store }
      local first = post(app, "/pay", '"k"', '{"sum":7}')
      assert.equal(201, first.status)
      assert.equal('{"sum":7}', first.body)
      assert.equal("yes", first.headers["x-set"])
      assert.is_nil(first.headers["idempotency-replayed"])
      local again
      loop.wait(function()
        again = post(app, "/pay", "k", '{"sum":7}')
        return again.status ~= 409 -- it is kept a moment after it was given
      end, 5, "the answer to be kept")
      assert.equal("true", again.headers["idempotency-replayed"])
      assert.same(fields(first), fields(again))
      assert.equal(1, runs_of(app, "begin"))
      local put = { body = "12345", headers = { ["Idempotency-Key"] = "k" } }
      assert.equal("5", http.request("PUT", app.port, "/pieces", put).body)
      loop.wait(function()
        again = http.request("PUT", app.port, "/pieces", put)
        return again.status == 200
      end, 5, "the answer")
      assert.equal("a=1, b=2", again.headers["set-cookie"])
    end
  end)

  it("refuses a missing key, and one that came with another request", function()
    local app = start()
    assert.equal(400, post(app, "/pay", nil, "{}").status)
    assert.equal(400, post(app, "/pay", '"', "{}").status)
    assert.equal(201, post(app, "/pay", "k", '{"sum":1}').status)
    local other = post(app, "/pay", "k", '{"sum":2}')
    assert.equal(422, other.status)
    assert.equal("application/problem+json", other.headers["content-type"])
    assert.equal("Idempotency-Key is already used", cjson.decode(other.body).title)
    assert.equal(422, post(app, "/pay?x=1", "k", '{"sum":1}').status)
    assert.equal(401, post(app, "/pay", "k", '{"sum":1}', { Authorization = "no" }).status)
    assert.equal(1, runs_of(app, "begin"))
  end)

  it("is told apart by its key only where one is sent, if that is optional", function()
    local app = start()
    for _ = 1, 3 do assert.equal(200, post(app, "/maybe", nil).status) end
    assert.equal(3, runs_of(app, "maybe"))
    post(app, "/maybe", "k")
    loop.wait(function() return post(app, "/maybe", "k").status == 200 end, 5, "the answer")
    assert.equal(4, runs_of(app, "maybe"))
    loop.wait(function()
      post(app, "/maybe", "k")
      return runs_of(app, "maybe") == 5 -- its 300 ms are over
    end, 5, "the key to be free")
  end)

  it("answers 409 to who comes while it runs: one of fifty runs", function()
    for _, store in ipairs { "memory", "sqlite:answers.db" } do
      local app = start { STORE = store }
      local count = {}
      for _, response in ipairs(http.ask_at_once(50, "POST", app.port, "/pay?ms=500",
        { body = '{"sum":1}', headers = { ["Idempotency-Key"] = "k" } })) do
        count[response.status] = (count[response.status] or 0) + 1
        if response.status == 409 then assert.equal("1", response.headers["retry-after"]) end
      end
      assert.same({ [201] = 1, [409] = 49 }, count)
      assert.equal(1, runs_of(app, "begin"))
    end
  end)

  it("runs again after an error of its own, not after one of the client's", function()
    local app = start()
    for n = 1, 2 do
      assert.equal(500, post(app, "/fail", "k").status)
      loop.wait(function() return runs_of(app, "fail") == n end, 5, "the run")
    end
    local record = app:wait_log { msg = "handler failed" }
    assert.matches("secret", record.error)
    assert.matches("app.lua:30", record.traceback) -- where it was raised
    assert.equal(402, post(app, "/fail?http=1", "other").status)
    loop.wait(function() return post(app, "/fail?http=1", "other").status == 402 end, 5, "it")
    assert.equal(3, runs_of(app, "fail"))
  end)

  it("does not run again when its answer was a stream", function()
    local app = start()
    assert.equal("ab", post(app, "/stream", "k").body)
    loop.wait(function() return post(app, "/stream", "k").status == 409 end, 5, "it to be known")
    assert.matches("was not kept", post(app, "/stream", "k").body)
    assert.equal(1, runs_of(app, "stream"))
  end)

  it("goes on when its client leaves, and tells who asks again", function()
    for _, how in ipairs { "close", "reset" } do
      local app = start()
      local conn = assert(http.connect(app.port))
      conn:send_request("POST", "/pay?ms=300",
        { body = '{"sum":1}', headers = { ["Idempotency-Key"] = "k" } })
      loop.wait(function() return runs_of(app, "begin") == 1 end, 5, "it to begin")
      conn[how](conn)
      local response
      loop.wait(function()
        response = post(app, "/pay?ms=300", "k", '{"sum":1}')
        return response.status == 201
      end, 5, "the answer")
      assert.equal("true", response.headers["idempotency-replayed"])
      assert.equal('{"sum":1}', response.body)
      assert.equal(1, runs_of(app, "begin"))
    end
  end)

  it("is waited for in a shutdown when its client has left; its answer outlives that", function()
    local app = start { STORE = "sqlite:answers.db" }
    local conn = assert(http.connect(app.port))
    conn:send_request("POST", "/pay?ms=700",
      { body = '{"sum":1}', headers = { ["Idempotency-Key"] = "k" } })
    loop.wait(function() return runs_of(app, "begin") == 1 end, 5, "it to begin")
    conn:reset()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal(1, runs_of(app, "end"))
    local after = start({ STORE = "sqlite:answers.db", RUNS = app.runs_file }, app.dir)
    local response = post(after, "/pay?ms=700", "k", '{"sum":1}')
    assert.equal(201, response.status)
    assert.equal("yes", response.headers["x-set"])
    assert.equal("true", response.headers["idempotency-replayed"])
    assert.equal(1, runs_of(after, "begin"))
  end)

  it("is broken off when the shutdown has no more time, and its key is free", function()
    local app = start { STORE = "sqlite:answers.db", DRAIN = "300ms" }
    local conn = assert(http.connect(app.port))
    conn:send_request("POST", "/pay?ms=60000",
      { body = '{"sum":1}', headers = { ["Idempotency-Key"] = "k" } })
    loop.wait(function() return runs_of(app, "begin") == 1 end, 5, "it to begin")
    app:signal "TERM"
    assert.equal(503, assert(conn:read_response()).status)
    assert.equal(0, (app:wait()))
    assert.is_true(app.exited_at - app.signalled_at < 10) -- not the handler's minute
    local after = start({ STORE = "sqlite:answers.db", RUNS = app.runs_file }, app.dir)
    assert.equal(201, post(after, "/pay?ms=1", "k", '{"sum":1}').status) -- a new request
  end)

  it("runs again when a kill ended it, with the same key", function()
    local app = start { STORE = "sqlite:answers.db" }
    local conn = assert(http.connect(app.port))
    conn:send_request("POST", "/pay?ms=60000",
      { body = '{"sum":1}', headers = { ["Idempotency-Key"] = "k" } })
    loop.wait(function() return runs_of(app, "begin") == 1 end, 5, "it to begin")
    app:signal "KILL"
    app:wait()
    conn:close()
    local after = start({ STORE = "sqlite:answers.db", RUNS = app.runs_file }, app.dir)
    assert.equal(422, post(after, "/pay?ms=1", "k", '{"sum":1}').status) -- another request
    conn = assert(http.connect(after.port))
    conn:send_request("POST", "/pay?ms=60000",
      { body = '{"sum":1}', headers = { ["Idempotency-Key"] = "k" } })
    loop.wait(function() return runs_of(after, "begin") == 2 end, 5, "it to begin again")
    conn:close()
    after:signal "KILL"
    after:wait()
  end)
end)
