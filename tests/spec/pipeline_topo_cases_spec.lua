-- Every "topo" case of the data file, in the order of declaration it gives.
require("support.paths")
local data = require("support.pipeline_data")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")

local function build(case)
  local twelve = case["in"] == "DEFAULT12" or case["in"].DEFAULT12
  local g = twelve and graphs.shutdown() or graph.new({ kind = "shutdown" })
  return graphs.declare(g, case.declare or {})
end

local function check_order(expected, order)
  if #expected > 0 or next(expected) == nil then return assert.same(expected, order) end
  local at = {}
  for i, name in ipairs(order) do at[name] = i end
  for _, pair in ipairs(expected.before or {}) do
    assert.is_true(at[pair[1]] < at[pair[2]], pair[1] .. " before " .. pair[2])
  end
  if expected.set then assert.equal(#expected.set, #order) end
  for _, name in ipairs(expected.set or {}) do assert.is_number(at[name]) end
  if expected.first then assert.equal(expected.first, order[1]) end
  if expected.last then assert.equal(expected.last, order[#order]) end
end

describe("topo case", function()
  for _, case in ipairs(data.section("topo")) do
    it(case.id .. " " .. (case.note or "") .. " (" .. case.status .. ")", function()
      assert.is_true(case.status == "run" or type(case.why) == "string")
      local g = build(case)
      local errors = g:seal()
      if case.expect_error then
        assert.is_table(errors)
        assert.matches(case.expect_error, errors[1], 1, true)
      else
        assert.is_nil(errors)
        check_order(case.expect, g:order())
      end
    end)
  end
end)
