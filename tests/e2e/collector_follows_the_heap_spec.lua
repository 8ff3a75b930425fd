-- Requests make garbage that dies young; a large heap is collected in small steps.
local http = require "support.http_client"
local http_app = require "support.http_app"

local SCRIPT = [[
local kept
-- Asking for a mode is the one way to hear which was used before.
server:get("/mode/:wanted", function(req) return collectgarbage(req.params.wanted) end)
server:get("/grow", function()
  kept = {}
  for i = 1, 200000 do kept[i] = { i } end
  return "grown"
end)
]]

describe("the collector", function()
  local app
  local function body(path) return assert(http.get(app.port, path)).body end

  it("looks at what is new, from the first request on", function()
    app = http_app.start { script = SCRIPT }
    assert.equal("generational", body "/mode/generational")
  end)

  it("takes small steps when the heap is large", function()
    app = http_app.start { script = SCRIPT }
    assert.equal("hello", body "/hello")
    assert.equal("grown", body "/grow")
    assert.equal("incremental", body "/mode/generational")
  end)

  it("is what a script has chosen", function()
    app = http_app.start { script = SCRIPT .. [[ collectgarbage("generational") ]] }
    assert.equal("grown", body "/grow")
    assert.equal("hello", body "/hello")
    assert.equal("generational", body "/mode/incremental")
    -- The host has seen that it is not asked, and does not come back to it.
    for _ = 1, 3 do assert.equal("incremental", body "/mode/incremental") end
  end)
end)
