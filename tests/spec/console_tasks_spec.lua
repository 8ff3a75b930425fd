-- tasks() shows the tree of all live tasks, whatever scope they are in, and no more rows than
-- asked.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

local life, tide

local function app(main)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    main(library)
  end)
  life:advance(1)
end

local function nap() tide.sleep(1000) end

describe("tasks()", function()
  after_each(function() inspecting.finish(life) end)

  it("shows what each does, since when, and what it belongs to", function()
    app(function()
      local gate = tide.event "the gate"
      tide.root:start({ name = "parent", kind = "worker" }, function()
        tide.task.start({ name = "child" }, function() gate:wait() end)
        tide.sleep(1000)
      end)
    end)
    life:advance(2)
    local data, text = inspecting.ask(life, "tasks")
    local parent = inspecting.find(data.tasks, { name = "parent" })
    local child = inspecting.find(data.tasks, { name = "child" })
    assert.same({ 0, 1 }, { parent.depth, child.depth })
    assert.equal("worker", parent.kind)
    assert.equal("waiting", child.state)
    assert.equal("event the gate", child.waiting_on)
    assert.is_true(child.age >= 3 and child.age < 3.5)
    assert.matches("console_tasks_spec.lua:%d+$", child.site)
    assert.equal("root", parent.scope)
    assert.matches("\n *%d+ +parent +worker +sleep", text)
    assert.matches("\n *%d+ +  child +%- +event the gate +3%.%d s", text)
  end)

  it("finds those of scopes that nobody else knows", function()
    app(function() tide.task.new_scope("hidden"):start({ name = "lonely" }, nap) end)
    local data = inspecting.ask(life, "tasks")
    assert.equal("hidden", inspecting.find(data.tasks, { name = "lonely" }).scope)
    assert.same({ name = "hidden", tasks = 1, shown = 1 },
      inspecting.find(data.scopes, { name = "hidden" }))
  end)

  it("says how many more there are than it shows, and hides no scope behind another", function()
    app(function()
      for _ = 1, 1200 do tide.root:spawn(nap) end
      tide.task.new_scope("small"):start({ name = "one of few" }, nap)
    end)
    local data, text = inspecting.ask(life, "tasks", { max = 20 })
    assert.equal(20, #data.tasks)
    assert.is_true(data.total >= 1201)
    assert.is_not_nil(inspecting.find(data.tasks, { name = "one of few" }))
    assert.matches(("\n… %d more$"):format(data.total - 20), text)
    assert.equal(1200, inspecting.find(data.scopes, { name = "root" }).tasks)
  end)

  it("shows the oldest of many, with what is below them", function()
    app(function()
      tide.root:start({ name = "first" }, function()
        for i = 1, 50 do tide.task.start({ name = "below " .. i }, nap) end
        nap()
      end)
      for i = 1, 100 do tide.root:start({ name = "later " .. i }, nap) end
    end)
    local data = inspecting.ask(life, "tasks", { max = 40 })
    local names = {}
    for _, row in ipairs(data.tasks) do
      if row.scope == "root" or row.depth > 0 then names[#names + 1] = row.name end
    end
    assert.same({ "first", "below 1", "below 2" }, { names[1], names[2], names[3] })
  end)

  it("finds tasks by a word of their name or of their place", function()
    app(function()
      for i = 1, 3 do tide.root:start({ name = "order " .. i }, nap) end
      tide.root:start({ name = "other" }, nap)
    end)
    local data, text = inspecting.ask(life, "tasks", { find = "order" })
    assert.equal(3, data.found)
    assert.equal("order 1", data.tasks[1].name)
    assert.matches("^3 of %d+ tasks with \"order\"", text)
    assert.equal(4, inspecting.ask(life, "tasks", { find = "console_tasks_spec" }).found)
    assert.equal(0, inspecting.ask(life, "tasks", { find = "no such" }).found)
  end)

  it("gives a task the same number each time, and none to those it does not show", function()
    app(function() for _ = 1, 30 do tide.root:spawn(nap) end end)
    local function numbers()
      local list = {}
      for _, row in ipairs(inspecting.ask(life, "tasks", { max = 10 }).tasks) do
        if row.scope == "root" then list[#list + 1] = row.id end
      end
      return list
    end
    local numbered, core = 0, require "moontide.core"
    local first = numbers()
    assert.is_true(#first > 5)
    assert.same(first, numbers())
    for t in tide.root:tasks() do
      if core.task.given(t, "id") then numbered = numbered + 1 end
    end
    assert.is_true(numbered <= 10)
  end)

  it("says why a task is to end", function()
    local stubborn
    app(function()
      stubborn = tide.root:start({ name = "stubborn" }, function()
        tide.shield(100, function() tide.sleep(50) end)
      end)
    end)
    stubborn:cancel "enough"
    local data, text = inspecting.ask(life, "tasks")
    assert.equal("enough", inspecting.find(data.tasks, { name = "stubborn" }).cancelled)
    assert.matches("to end: enough", text)
  end)

  it("shows names that are hostile to a terminal, or no texts, without harm", function()
    local ran = false
    app(function()
      tide.root:start({ name = "red \27[31m\nline \xFF" }, nap)
      tide.root:start({
        name = setmetatable({}, { __tostring = function() ran = true error "no" end }),
      }, nap)
    end)
    local _, text = inspecting.ask(life, "tasks")
    assert.matches("red %?%[31m%?line \u{FFFD}", text)
    assert.matches("a table", text)
    assert.is_false(ran)
  end)

  it("refuses what it does not know", function()
    app(function() end)
    assert.equal("tasks: unknown option \"mx\"; did you mean \"max\"?",
      inspecting.refused(life, "tasks", { mx = 1 }))
    assert.matches("max is a whole number from 1 to 500",
      inspecting.refused(life, "tasks", { max = 0 }))
    assert.matches("a table of options is wanted", inspecting.refused(life, "tasks", 12))
    assert.matches("find is a text", inspecting.refused(life, "tasks", { find = 3 }))
    assert.equal("why() takes no argument, not a number", inspecting.refused(life, "why", 3))
  end)
end)
