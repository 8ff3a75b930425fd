-- What a handler gets and what becomes of what it returns.
local http = require "support.http_client"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT"),
  limits = { body = 100000 } }
server:use(function(req, next)
  req.trace = "outer"
  local a, b, c = next(req)
  return a, b, c
end)
server:use(function(req, next)
  req.trace = req.trace .. ">inner"
  return next(req)
end)
server:get("/text", function() return "text" end)
server:get("/table", function() return { a = 1, list = tide.json.array {} } end)
server:get("/nothing", function() end)
server:get("/created", function() return 201, { id = 7 }, { Location = "/orders/7" } end)
server:get("/status", function() return 404 end)
server:get("/cookies", function() return 200, "x", { ["Set-Cookie"] = { "a=1", "b=2" } } end)
server:get("/set", function(req, res) res:status(202):header("X-A", "b") return "set" end)
server:get("/params/:user/x/:id", function(req) return req.params.user .. "|" .. req.params.id end)
server:get("/query", function(req)
  return req.query.a .. "|" .. req.query.b .. "|" .. req.query_text
end)
server:get("/headers", function(req)
  local names = {}
  for name in pairs(req.headers) do names[#names + 1] = name:lower() end
  table.sort(names)
  return (req.headers["x-Thing"] or "none") .. "|" .. table.concat(names, ",")
end)
server:get("/trace", function(req) return req.trace end)
server:get("/remote", function(req) return req.method .. req.path .. req.remote end)
server:get("/boom", function() error("secret") end)
server:get("/boom/later", function() tide.sleep(0.01) error("secret") end)
server:get("/teapot", function() tide.http.error(418, "short and stout") end)
server:get("/boolean", function() return true end)
server:get("/inject", function() return 200, "x", { ["X-A"] = "a\r\nX-B: b" } end)
server:get("/stream", function(req, res)
  res:header("Content-Type", "text/csv")
  for i = 1, 100 do res:write(i .. "\n") end
  return "end\n"
end)
server:get("/stream/broken", function(req, res) res:write("a") tide.sleep(0.01) error("late") end)
server:get("/together", function()
  local all = tide.all { function() tide.sleep(0.01) return "a" end, function() return "b" end }
  return all[1] .. all[2]
end)
server:post("/json", function(req)
  local o = req:json()
  return { n = o.n, kind = math.type(o.n) }
end)
server:post("/body", function(req) return tostring(#req:body()) end)
server:post("/small", { body_limit = 10 }, function(req) return req:body() end)
server:post("/pieces", function(req)
  local n = 0
  for piece in req:chunks() do n = n + #piece end
  return tostring(n)
end)
local kept
server:get("/keep", function(req) kept = req return "kept" end)
server:get("/kept", function()
  local _, err = pcall(function() return kept.path end)
  return err
end)
]]

describe("a handler", function()
  local app, conn

  local function get(path, options)
    return assert(conn:request("GET", path, options))
  end
  local function post(path, body, options)
    options = options or {}
    options.body = body
    return assert(conn:request("POST", path, options))
  end

  setup(function()
    app = proc.start { script = SCRIPT }
    app:wait_ready()
    conn = assert(http.connect(app.port))
  end)

  it("answers text, JSON, or nothing", function()
    local text = get "/text"
    assert.equal("text", text.body)
    assert.equal("text/plain; charset=utf-8", text.headers["content-type"])
    local json = get "/table"
    assert.equal('{"a":1,"list":[]}', json.body)
    assert.equal("application/json", json.headers["content-type"])
    local nothing = get "/nothing"
    assert.equal(204, nothing.status)
    assert.is_nil(nothing.headers["content-length"])
    assert.equal(404, get("/status").status)
  end)

  it("answers with status and headers", function()
    local created = get "/created"
    assert.equal(201, created.status)
    assert.equal("/orders/7", created.headers.location)
    assert.equal("a=1, b=2", get("/cookies").headers["set-cookie"])
    local set = get "/set"
    assert.equal(202, set.status)
    assert.equal("b", set.headers["x-a"])
    assert.equal("set", set.body)
  end)

  it("gets parameters, query, headers and the client's address", function()
    assert.equal("a b|7", get("/params/a%20b/x/7").body)
    assert.equal("1 2|%|a=1+2&b=%25", get("/query?a=1+2&b=%25").body)
    assert.equal("v|host,x-thing", get("/headers", { headers = { ["X-THING"] = "v" } }).body)
    assert.matches("^GET/remote127%.0%.0%.1:%d+$", get("/remote?x").body)
  end)

  it("runs inside its middleware, outermost first", function()
    assert.equal("outer>inner", get("/trace").body)
  end)

  it("may have tasks of its own", function()
    assert.equal("ab", get("/together").body)
  end)

  it("that fails answers 500 without telling why, and the log tells", function()
    for _, path in ipairs { "/boom", "/boom/later" } do
      local response = get(path)
      assert.equal(500, response.status)
      assert.is_nil(response.body:find "secret")
      local record = app:wait_log { msg = "handler failed", route = "GET " .. path }
      assert.matches("secret", record.error)
      assert.matches("app.lua:%d+", record.traceback)
    end
  end)

  it("may end with an answer", function()
    local response = get "/teapot"
    assert.equal(418, response.status)
    assert.equal("short and stout", response.body)
  end)

  it("cannot return what is no answer, nor break a header", function()
    assert.equal(500, get("/boolean").status)
    local response = get "/inject"
    assert.equal(500, response.status)
    assert.is_nil(response.headers["x-b"])
  end)

  it("may write its answer in pieces", function()
    local response = get "/stream"
    assert.equal("chunked", response.headers["transfer-encoding"])
    assert.equal("text/csv", response.headers["content-type"])
    assert.matches("^1\n2\n.*\n100\nend\n$", response.body)
  end)

  it("that fails in the middle of a stream resets the connection", function()
    local other = assert(http.connect(app.port))
    other:send_request("GET", "/stream/broken")
    assert.equal("ECONNRESET", other:wait_close())
  end)

  it("reads JSON with whole numbers, and refuses what is none", function()
    assert.equal('{"kind":"integer","n":9007199254740993}',
      post("/json", '{"n":9007199254740993}').body)
    assert.equal(400, post("/json", '{"n":').status)
  end)

  it("reads bodies whole or in pieces, within the limit of listener or route", function()
    assert.equal("90000", post("/body", ("x"):rep(90000)).body)
    assert.equal("90000", post("/pieces", ("x"):rep(90000)).body)
    assert.equal("0", post("/body", "").body)
    assert.equal("0123456789", post("/small", "0123456789").body)
    assert.equal(413, http.post(app.port, "/body", ("x"):rep(100001)).status)
    assert.equal(413, http.post(app.port, "/small", "0123456789a").status)
  end)

  it("that keeps a request too long is told so", function()
    assert.equal("kept", get("/keep").body)
    assert.matches("this request is over", get("/kept").body)
  end)
end)

describe("a handler that takes too long", function()
  it("is cancelled and answered with 503", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { timeouts = { handler = "200ms" }, shutdown = { linger = "0s" } }
      local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
      server:get("/slow", function() tide.sleep(60) return "slow" end)
      server:get("/fast", function() return "fast" end)
      server:get("/spin", function() while true do end end)
    ]] }
    app:wait_ready()
    assert.equal(503, http.get(app.port, "/slow").status)
    assert.equal("fast", http.get(app.port, "/fast").body)
    assert.is_true(http.get(app.port, "/spin").status >= 500)
    assert.equal("fast", http.get(app.port, "/fast").body)
  end)
end)

describe("req.draining", function()
  it("is set when the process begins to drain, so that a stream can say goodbye", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = "300ms" } }
      local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
      server:get("/feed", function(req, res)
        res:write("hello\n")
        req.draining:wait()
        return "goodbye\n"
      end)
    ]] }
    app:wait_ready()
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/feed")
    conn:read_response(0.2) -- the head and a piece
    app:signal "TERM"
    local response = assert(conn:read_response())
    assert.equal("hello\ngoodbye\n", response.body)
    assert.equal(0, (app:wait()))
  end)
end)
