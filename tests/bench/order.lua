--- Sealing and ordering a plan, beside a plain depth-first sort of the same plan in
--- the same run. usage: lua5.4 tests/bench/order.lua
---
--- The plain sort gets names and lists of names, as the graph does, and returns the
--- names in an order; it finds cycles and nothing else. The graph checks every
--- name, breaks ties by declaration, inserts phases between built-in ones, and
--- pins the terminal phase. The aim is a ratio of at most 1.5. "layered" and "chain"
--- are what people declare; "shuffled" is the worst case, nearly every name a forward
--- one, and "inserted" the one where every phase goes through the insertion rule.
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local graph = require("moontide.pipeline.graph")
local phases = require("moontide.pipeline.phases")

local ROUNDS, AIM = 41, 1.5

local function depth_first(plan)
  local by_name, state, order = {}, {}, {}
  for i = 1, #plan do by_name[plan[i].name] = plan[i] end
  local function visit(name)
    if state[name] == "done" then return end
    if state[name] == "open" then error("cycle at " .. name) end
    local phase = by_name[name]
    if not phase then error("unknown phase " .. name) end
    state[name] = "open"
    local after = phase.after
    for i = 1, #after do visit(after[i]) end
    state[name] = "done"
    order[#order + 1] = name
  end
  for i = 1, #plan do visit(plan[i].name) end
  return order
end

--- Plans: lists of { name =, after = {...} }.
local shapes = {}

--- Each phase follows up to three earlier ones: what people write.
function shapes.layered(count)
  local plan = {}
  for i = 1, count do
    local after = {}
    for k = 1, math.min(3, i - 1) do
      after[k] = "phase-" .. math.random(math.max(1, i - 50), i - 1)
    end
    plan[i] = { name = "phase-" .. i, after = after }
  end
  return plan
end

--- The same, declared in a random order: nearly every name is a forward one.
function shapes.shuffled(count)
  local plan = shapes.layered(count)
  for i = count, 2, -1 do
    local j = math.random(i)
    plan[i], plan[j] = plan[j], plan[i]
  end
  return plan
end

--- One long chain.
function shapes.chain(count)
  local plan = {}
  for i = 1, count do
    plan[i] = { name = "phase-" .. i, after = i > 1 and { "phase-" .. i - 1 } or {} }
  end
  return plan
end

--- Phases of a script between the twelve of the shutdown pipeline.
function shapes.inserted(count)
  local plan = {}
  for i, phase in ipairs(phases.shutdown) do
    plan[i] = { name = phase.name, after = i > 1 and { phases.shutdown[i - 1].name } or {} }
  end
  for i = #plan + 1, count do
    local follows = i % 3 > 0 and i > 20 and "phase-" .. math.random(13, i - 1)
      or phases.shutdown[math.random(11)].name
    plan[i] = { name = "phase-" .. i, after = { follows } }
  end
  return plan
end

local function declare(shape, plan)
  local inserted = shape == "inserted"
  local g = graph.new({
    kind = inserted and "shutdown" or "startup", terminal = inserted and phases.terminal or nil,
  })
  for i, phase in ipairs(plan) do
    if inserted and i <= #phases.shutdown then
      g:builtin(phase.name)
    else
      g:phase(phase.name, { after = phase.after }, "plan.lua:1")
    end
  end
  return g
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function timed(fn, argument)
  collectgarbage()
  collectgarbage("stop") -- a collection would hit one of the two by chance
  local start = os.clock()
  fn(argument)
  local seconds = os.clock() - start
  collectgarbage("restart")
  return seconds
end

local function seal(g)
  assert(not g:seal())
  return g:order()
end

math.randomseed(20240611)
print(("%-10s %7s %12s %12s %7s"):format("plan", "phases", "plain, us", "sealed, us", "ratio"))
local worst = 0
for _, shape in ipairs({ "layered", "shuffled", "chain", "inserted" }) do
  for _, count in ipairs({ 1000, 10000 }) do
    local plan = shapes[shape](count)
    local plain, sealed, ratios = {}, {}, {}
    for round = 1, ROUNDS do
      plain[round] = timed(depth_first, plan)
      sealed[round] = timed(seal, declare(shape, plan))
      ratios[round] = sealed[round] / plain[round]
    end
    local ratio = median(ratios)
    worst = math.max(worst, ratio)
    print(("%-10s %7d %12.0f %12.0f %7.2f"):format(
      shape, count, median(plain) * 1e6, median(sealed) * 1e6, ratio))
  end
end
print(("worst ratio %.2f, aim %.1f: %s"):format(worst, AIM, worst <= AIM and "met" or "missed"))
