-- A handler that ends at once leaves no trace; one that awaits, fails or looks at its task has one
-- like any other.
local http = require "support.http_client"
local http_app = require "support.http_app"

local SCRIPT = [[
local task = require "moontide.task"
local kept = {}
server:get("/live", function() return tostring(tide.root.n) end)
server:get("/look", function()
  kept[#kept + 1] = task.current()
  return kept[#kept].name
end)
server:get("/kept", function()
  local told = {}
  for i, t in ipairs(kept) do told[i] = tostring(t.outcome) end
  return table.concat(told, " ") .. " " .. tostring(kept[1] ~= kept[2])
end)
server:get("/spawns", function()
  local child = tide.spawn(function() tide.sleep(0.01) return "child" end)
  return child:await()
end)
server:get("/leaves", function()
  tide.spawn(function() tide.sleep(30) end)
  return "left"
end)
server:get("/fails", function() error("on purpose") end)
]]

describe("a handler", function()
  local app
  before_each(function()
    app = http_app.start { script = SCRIPT }
    http.get(app.port, "/hello") -- the first request loads what all need
  end)

  local function body(path) return assert(http.get(app.port, path)).body end

  it("leaves no trace when it ends at once", function()
    local live = body "/live"
    for _ = 1, 5 do assert.equal("hello", body "/hello") end
    assert.equal(live, body "/live")
  end)

  it("is a task of its own when it was looked at", function()
    for _ = 1, 2 do assert.equal("GET /look", body "/look") end
    assert.equal("hello", body "/hello")
    assert.equal("ok ok true", body "/kept")
  end)

  it("is listed while it awaits, and no longer", function()
    local live = tonumber(body "/live")
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow?ms=300")
    assert.equal("hello", body "/hello")
    assert.equal(live + 1, tonumber(body "/live"))
    assert.equal("slow", slow:read_response().body)
    assert.equal(live, tonumber(body "/live"))
  end)

  it("owns the tasks that it spawns", function()
    for _ = 1, 3 do assert.equal("child", body "/spawns") end
    local live = tonumber(body "/live")
    assert.equal("left", body "/leaves") -- the answer does not wait for them
    assert.equal(live + 1, tonumber(body "/live"))
  end)

  it("that fails leaves no trace but its record", function()
    local live = body "/live"
    assert.equal(500, assert(http.get(app.port, "/fails")).status)
    assert.equal(live, body "/live")
    app:wait_log { msg = "handler failed", route = "GET /fails" }
  end)
end)
