-- Random graphs: whatever is declared, the order keeps to it.
require("support.paths")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")
local phases = require("moontide.pipeline.phases")

local SEED = tonumber(os.getenv("MOONTIDE_TEST_SEED")) or 20240611
local GRAPHS = 300

--- Rows whose edges all point the same way along a hidden order, declared in another.
local function random_rows(count, names_before)
  local rows, shuffled = {}, {}
  for i = 1, count do
    local opts = { after = {}, before = {} }
    for _ = 1, math.random(0, 3) do
      local pick = math.random(-#names_before, i - 1)
      if pick > 0 then table.insert(opts.after, "p" .. pick) end
      if pick < 0 then table.insert(opts.after, names_before[-pick]) end
    end
    if i < count and math.random() < 0.2 then
      table.insert(opts.before, "p" .. math.random(i + 1, count))
    end
    rows[i] = { "p" .. i, opts }
  end
  for i = 1, count do table.insert(shuffled, math.random(i), rows[i]) end
  return shuffled
end

local function check_edges(g)
  local at = graphs.places(g)
  for _, node in ipairs(g.nodes) do
    for _, name in ipairs(node.after) do assert.is_true(at[name] < at[node.name]) end
    for _, name in ipairs(node.before) do assert.is_true(at[node.name] < at[name]) end
  end
  assert.equal(#g.nodes, #g:order())
end

--- What the words say: at each step the earliest declared phase that is free.
local function by_the_words(rows)
  local waits, done, order = {}, {}, {}
  for _, row in ipairs(rows) do waits[row[1]] = { table.unpack(row[2].after) } end
  for _, row in ipairs(rows) do
    for _, name in ipairs(row[2].before) do table.insert(waits[name], row[1]) end
  end
  local function free(name)
    for _, other in ipairs(waits[name]) do
      if not done[other] then return false end
    end
    return not done[name]
  end
  while #order < #rows do
    for _, row in ipairs(rows) do
      if free(row[1]) then
        done[row[1]] = true
        order[#order + 1] = row[1]
        break
      end
    end
  end
  return order
end

describe("a random graph (seed " .. SEED .. ")", function()
  before_each(function() math.randomseed(SEED) end)

  it("runs in the order that the words ask for", function()
    for _ = 1, GRAPHS do
      local rows = random_rows(math.random(1, 40), {})
      local g = graphs.sealed("shutdown", rows)
      check_edges(g)
      assert.same(by_the_words(rows), g:order())
    end
  end)

  it("keeps every edge in a startup pipeline", function()
    for _ = 1, GRAPHS do
      check_edges(graphs.sealed("startup", random_rows(math.random(1, 40), {})))
    end
  end)

  it("has the same order for the same declaration", function()
    for _ = 1, 50 do
      local rows = random_rows(30, {})
      assert.same(graphs.sealed("startup", rows):order(), graphs.sealed("startup", rows):order())
    end
  end)

  it("between built-in phases keeps edges, insertions and the terminal phase", function()
    local names = {}
    for i = 1, 11 do names[i] = phases.shutdown[i].name end
    for _ = 1, GRAPHS do
      local rows = random_rows(math.random(1, 25), names)
      local g = graphs.declare(graphs.shutdown(), rows)
      assert.is_nil(g:seal())
      check_edges(g)
      local order, at = g:order(), graphs.places(g)
      assert.equal(phases.terminal, order[#order])
      for _, node in ipairs(g.nodes) do
        -- Between what an inserted phase follows last and itself no built-in phase runs.
        local latest = 0
        for _, name in ipairs(g.waits[node.number]) do latest = math.max(latest, at[name]) end
        if not node.builtin and #node.before == 0 and latest > 0
          and at[phases.shutdown[1].name] <= latest then
          for i = latest + 1, at[node.name] - 1 do
            assert.is_false(g:get(order[i]).builtin, order[i] .. " ahead of " .. node.name)
          end
        end
      end
    end
  end)

  it("with one edge turned round is refused, and says which", function()
    for _ = 1, 100 do
      local count = math.random(2, 30)
      local g = graph.new({ kind = "startup" })
      local back = math.random(2, count)
      g:phase("p1", { after = "p" .. back }, "app.lua:1")
      for i = 2, count do g:phase("p" .. i, { after = "p" .. i - 1 }, "app.lua:" .. i) end
      local errors = g:seal()
      assert.equal(1, #errors)
      assert.matches("cycle: p1 %-> ", errors[1])
      assert.matches("%-> p1 %(after, app.lua:1%)$", errors[1])
      assert.equal(back, select(2, errors[1]:gsub("%->", "")))
    end
  end)

  it("of ten thousand phases in one chain needs no stack", function()
    local rows = {}
    for i = 10000, 1, -1 do rows[#rows + 1] = { "p" .. i, i > 1 and { "p" .. i - 1 } or {} } end
    local g = graphs.sealed("shutdown", rows)
    assert.equal("p1", g:order()[1])
    assert.equal("p10000", g:order()[10000])
  end)
end)
