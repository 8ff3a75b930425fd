-- where(id) shows the stack of a task across what it awaits; an unknown one is an error that says
-- which there are, never a wait.
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

local function inner() tide.sleep(1000) end
local function outer()
  local t = tide.task.start({ name = "inner" }, inner)
  t:await()
end

local function id_of(name)
  return inspecting.find(inspecting.ask(life, "tasks").tasks, { name = name }).id
end

describe("where(id)", function()
  after_each(function() inspecting.finish(life) end)

  it("shows the stack through the tasks that are awaited", function()
    app(function() tide.root:start({ name = "outer" }, outer) end)
    local data, text = inspecting.ask(life, "where", id_of "outer")
    assert.equal("task inner", data.waiting_on)
    assert.matches("console_where_spec.lua:%d+: in .-\nawaiting task inner:\n", data.stack)
    assert.matches("^task %d+, outer: task inner, 1%.%d s old, from .-console_where_spec.lua", text)
  end)

  it("takes a name, too, and says whom the task belongs to", function()
    app(function() tide.root:start({ name = "outer" }, outer) end)
    local data, text = inspecting.ask(life, "where", "inner")
    assert.equal("outer", data.owners[1].name)
    assert.matches("belongs to outer %(%d+%)", text)
  end)

  it("says how many have the name", function()
    app(function() for _ = 1, 3 do tide.root:start({ name = "twin" }, inner) end end)
    local data, text = inspecting.ask(life, "where", "twin")
    assert.equal(3, data.same_name)
    assert.matches("3 tasks have this name", text)
  end)

  it("shows itself", function()
    app(function() end)
    local data = inspecting.ask(life, "where", "asks")
    assert.equal("running", data.state)
    assert.equal("console", data.kind)
  end)

  it("names the numbers that there are for an unknown one", function()
    app(function() tide.root:start({ name = "outer" }, outer) end)
    local id = id_of "outer"
    local message = inspecting.refused(life, "where", 987654)
    assert.matches("^no task has the number 987654; there are ", message)
    assert.matches("%f[%d]" .. id .. "%f[%D]", message)
  end)

  it("says that the task has ended, and how", function()
    local t
    app(function() t = tide.root:start({ name = "outer" }, outer) end)
    local id = id_of "outer"
    t:cancel "no longer wanted"
    life:advance(1)
    assert.equal(("no task has the number %d: it has ended, cancelled (no longer wanted)")
      :format(id), inspecting.refused(life, "where", id))
  end)

  it("offers the nearest name, and says what is wanted", function()
    app(function() tide.root:start({ name = "orders" }, inner) end)
    assert.equal("unknown task \"odrers\"; did you mean \"orders\"?",
      inspecting.refused(life, "where", "odrers"))
    assert.matches("the number or the name of a task is wanted, not nothing",
      inspecting.refused(life, "where"))
    assert.matches("is wanted, not a table", inspecting.refused(life, "where", {}))
  end)
end)
