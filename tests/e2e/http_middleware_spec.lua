-- What a middleware calls to go on: with the request, or without, wherever that is.
local http = require "support.http_client"
local http_app = require "support.http_app"

local SCRIPT = [[
server:use(function(req, next)
  req.trail = (req.trail or "") .. "outer "
  return next()
end)
server:use(function(req, next)
  if req.query.wait then tide.sleep(0.01) end
  req.trail = req.trail .. "inner "
  return next()
end)
server:get("/trail/:id", function(req, res)
  assert(rawequal(req, res))
  return req.trail .. req.params.id
end)
server:get("/own/:id", function(req, next) return next(req) .. "!" end, function(req)
  return req.trail .. req.params.id
end)
server:get("/child/:id", function(_, next)
  return tide.spawn(function() tide.sleep(0) return next() end):await()
end, function(req) return req.trail .. req.params.id end)
server:get("/other", function(_, next)
  return next { params = { id = "other" } }
end, function(req, res) return req.params.id .. tostring(rawequal(req, res)) end)
server:get("/params/:id", function(req, next)
  local first = req.params
  assert(rawequal(first, req.params) and first.id == "a b")
  req.params.more = " more"
  local id = next(req)
  req.params = { id = "own" }
  return id .. next(req)
end, function(req) return req.params.id .. (req.params.more or "") end)
server:get("/refused", function() return 403, "no" end, function() return "never" end)
server:get("/limited/:id", { timeout = "5s" }, function(req) return req.trail .. req.params.id end)
server:get("/fails", function() error("on purpose") end)
server:get("/spins", { timeout = "200ms" }, function() while true do end end)
]]

describe("middleware", function()
  local app
  before_each(function() app = http_app.start { script = SCRIPT } end)

  local function body(path) return assert(http.get(app.port, path)).body end

  it("may change the parameters, and put others in their place", function()
    assert.equal("a b moreown", body "/params/a%20b")
  end)

  it("goes on without naming the request", function()
    for i = 1, 3 do assert.equal("outer inner " .. i, body("/trail/" .. i)) end
    assert.equal("outer inner 7!", body "/own/7")
  end)

  it("goes on after it has awaited", function()
    assert.equal("outer inner 1", body "/trail/1?wait=1")
    assert.equal("outer inner 2!", body "/own/2?wait=1")
    assert.equal("outer inner 3", body "/trail/3")
  end)

  it("goes on in a task of the handler's", function()
    assert.equal("outer inner 4", body "/child/4")
    assert.equal("outer inner 5", body "/child/5?wait=1")
  end)

  it("may put another request in its place, or answer itself", function()
    assert.equal("othertrue", body "/other")
    assert.equal("no", body "/refused")
  end)

  it("goes on where the route has a time limit", function()
    assert.equal("outer inner 6", body "/limited/6")
    assert.equal("outer inner 7", body "/limited/7?wait=1")
  end)

  it("does not mix requests up that are handled at the same time", function()
    local waiting = {}
    for i = 1, 5 do
      waiting[i] = assert(http.connect(app.port))
      waiting[i]:send_request("GET", "/trail/" .. i .. "?wait=1")
    end
    for i = 6, 9 do assert.equal("outer inner " .. i, body("/trail/" .. i)) end
    for i = 1, 5 do assert.equal("outer inner " .. i, waiting[i]:read_response().body) end
  end)

  it("goes on serving after handlers have failed or were interrupted", function()
    for i = 1, 3 do
      assert.equal(500, assert(http.get(app.port, "/fails")).status)
      assert.equal("outer inner " .. i, body("/trail/" .. i))
    end
    assert.equal(500, assert(http.get(app.port, "/spins")).status)
    assert.equal("outer inner 4", body "/trail/4")
    local record = app:wait_log { msg = "handler failed", route = "GET /fails" }
    assert.matches("on purpose", record.error)
    assert.matches("app.lua:%d+: in function", record.traceback)
  end)
end)
