-- An evaluation is answered with its values, its error or a wish for more, and ends with one done;
-- what it assigns and its results stay with its session.
local async = require "support.async"
local core = require "moontide.core"
local environment = require "moontide.console.environment"
local evaluations = require "support.evaluations"
local task = require "moontide.task"

local session, other

describe("an evaluation", function()
  before_each(function()
    session, other = evaluations.session(), evaluations.session()
  end)
  after_each(function()
    session:close()
    other:close()
  end)

  async.it("answers with its values", function()
    local reply = session:eval "1, 'two', nil"
    assert.equal("value done", reply.kinds)
    assert.same({ "ok", 3 }, { reply.status, reply.value.n })
    assert.equal('1\t"two"\tnil', reply.text)
  end)

  async.it("answers with a text of nothing when there are none", function()
    local reply = session:eval "x = 1"
    assert.equal("value done", reply.kinds)
    assert.same({ "", 0 }, { reply.text, reply.value.n })
  end)

  async.it("answers with data, too, when asked to", function()
    assert.same({ a = 1 }, session:eval("{ a = 1 }", { json = true }).value.json)
    assert.same({ 1, "x" }, session:eval("1, 'x'", { json = true }).value.json)
    assert.is_false(session:eval("false", { json = true }).value.json)
    assert.is_nil(session:eval("", { json = true }).value.json)
    assert.is_nil(session:eval("1").value.json)
  end)

  async.it("answers with an error and where it was", function()
    local reply = session:eval "local function f() error 'boom' end\nf()"
    assert.equal("error done", reply.kinds)
    assert.equal("error", reply.status)
    assert.matches("boom$", reply.error.message)
    assert.matches("stack traceback:\n", reply.error.traceback)
    assert.matches('%[string "local function f%(%) error \'boom\' end..."%]:2:',
      reply.error.traceback)
    assert.is_nil(reply.error.traceback:find("moontide/", 1, true), reply.error.traceback)
  end)

  async.it("answers with any value that is raised, also one that cannot be a text", function()
    assert.matches("code = 7", session:eval("error { code = 7 }").error.message)
    assert.equal("nil", session:eval("error()").error.message)
    local reply = session:eval [[
      error(setmetatable({}, { __tostring = function() while true do end end }))
    ]]
    assert.equal("error", reply.status)
    assert.equal("string", type(reply.error.message))
  end)

  async.it("answers with any value that a task raises which nobody awaits", function()
    local reply = session:eval "tide.spawn(function() error { code = 7 } end)"
    assert.matches("uncaught error in task %d+: { code = 7 }", reply.err.text)
    reply = session:eval [[
      tide.spawn(function()
        error(setmetatable({}, { __tostring = function() while true do end end }))
      end)
    ]]
    assert.matches("__tostring took too long", reply.err.text)
  end)

  async.it("answers once where something else than its hook has interrupted it", function()
    local reply = session:eval "error(require('moontide.core').coroutine.interrupted)"
    assert.equal("error done", reply.kinds)
    assert.equal("cancelled", reply.status)
    assert.matches("interrupted", reply.error.message)
  end)

  async.it("answers also when no stack is left to describe it on", function()
    local reply = session:eval "local function f() return f() + 1 end return f()"
    assert.equal("error", reply.status)
    assert.matches("stack overflow", reply.error.message)
    reply = session:eval "error(setmetatable({}, { __index = error }))"
    assert.equal("error", reply.status)
  end)

  async.it("cuts a message that has no end", function()
    local reply = session:eval "error(('x'):rep(1e7), 0)"
    assert.matches("^x+%.%.%. %(10000000 bytes%)$", reply.error.message)
    assert.is_true(#reply.error.traceback < 1e5)
    reply = session:eval "tide.spawn(function() error(('x'):rep(1e7), 0) end)"
    assert.is_true(#reply.err.text < 1e5)
  end)

  async.it("answers what is not Lua with why", function()
    local reply = session:eval "1 + + 2"
    assert.equal("error done", reply.kinds)
    assert.matches("unexpected symbol", reply.error.message)
  end)

  async.it("asks for more where the source breaks off", function()
    local reply = session:eval "for i = 1,"
    assert.equal("need_more done", reply.kinds)
    assert.equal("incomplete", reply.status)
  end)

  async.it("does not ask for more of a text that ends with its line", function()
    local reply = session:eval "x = 'abc"
    assert.equal("error", reply.status)
    assert.matches("unfinished string near ''abc'", reply.error.message)
    for _, source in ipairs { "x = 'abc\\", "x = 'abc\\z", "x = [[abc", "--[[ abc" } do
      assert.equal("incomplete", session:eval(source).status, source)
    end
  end)

  async.it("may await and spawn, and is done when all is", function()
    _G.gate = task.event "gate"
    local id = session:ask { type = "eval", source = [[
      tide.spawn(function() gate:wait() print "behind" end)
      tide.sleep(0.001)
      return "value"
    ]] }
    while not session:reply(id).value do task.sleep(0.001) end
    assert.is_nil(session:status(id))
    _G.gate:set()
    _G.gate = nil
    local reply = session:finish(id)
    assert.equal("value out done", reply.kinds)
    assert.same({ "ok", "behind\n" }, { reply.status, reply.out })
  end)

  async.it("ends with an error of a task that it awaits", function()
    local reply = session:eval "tide.spawn(function() error('in a task', 0) end):await()"
    assert.same({ "error", "in a task" }, { reply.status, reply.error.message })
  end)

  async.it("is a task of the kind console, named by what was typed", function()
    local id = session:ask { type = "eval", source = "tide.event('gate'):wait()" .. (" "):rep(90) }
    while not session.real.running[id].evaluation do task.sleep(0) end
    local t = session:task(id)
    assert.equal("console", t.kind)
    local seconds = t.deadline - core.clock.now()
    assert.is_true(seconds > 25 and seconds <= 30, seconds)
    assert.equal("eval tide.event('gate'):wait() ", t.name)
    while t.state ~= "waiting" do task.sleep(0) end
    assert.equal("event gate", t.waiting_on)
    t:cancel()
    session:finish(id)
  end)

  async.it("has a name of one line", function()
    local source = "return\n\trequire('moontide.task').current().name"
    local start = source:gsub("%s+", " "):sub(1, 37)
    assert.equal(('"eval %s..."'):format(start), session:eval(source).text)
  end)

  async.it("refuses a timeout that is none", function()
    for _, timeout in ipairs { 0, -1, "1s", false } do
      local reply = session:eval("1", { timeout = timeout })
      assert.equal("error", reply.status)
      assert.matches("timeout has to be a number of seconds", reply.error.message)
    end
  end)

  async.it("is refused when too many of the session run", function()
    local ids = {}
    for i = 1, 17 do ids[i] = session:ask { type = "eval", source = "tide.sleep(60)" } end
    assert.equal("refused", session:finish(ids[17]).status)
    assert.equal("ok", other:eval("1").status)
    for i = 1, 16 do session:ask { type = "interrupt", of = ids[i] } end
    for i = 1, 16 do assert.equal("cancelled", session:finish(ids[i]).status) end
  end)
end)

describe("a session", function()
  before_each(function()
    session, other = evaluations.session(), evaluations.session()
  end)
  after_each(function()
    session:close()
    other:close()
    _G.shared = nil
  end)

  async.it("keeps what is assigned to itself", function()
    session:eval "x = 5"
    assert.equal("5", session:eval("x").text)
    assert.equal("nil", other:eval("x").text)
    assert.is_nil(rawget(_G, "x"))
  end)

  async.it("reads through to the application's globals, and to tide", function()
    _G.shared = "of the application"
    assert.equal('"of the application"', session:eval("shared").text)
    session:eval "shared = 1"
    assert.equal("of the application", _G.shared)
    assert.equal("true", session:eval("_G.shared == 'of the application'").text)
    assert.equal("true", session:eval("tide == require 'moontide'").text)
  end)

  async.it("keeps the last results, each its own", function()
    for i = 1, 4 do session:eval("'value " .. i .. "'") end
    session:eval "x = 1"
    assert.equal('"value 4"\t"value 4"\t"value 3"\t"value 2"', session:eval("_, _1, _2, _3").text)
    assert.equal("nil", other:eval("_").text)
    session:eval "nil"
    assert.equal("nil", session:eval("_").text)
  end)

  async.it("keeps the last error", function()
    session:eval "error({ code = 7 })"
    assert.equal("7", session:eval("_err.code").text)
    session:eval ")"
    assert.matches("unexpected symbol", session:eval("_err").text)
    assert.equal("nil", other:eval("_err").text)
  end)

  it("has its commands before the application's globals", function()
    _G.tasks = "of the application"
    local env = environment.new(session.real)
    _G.tasks = nil
    assert.equal("function", type(env.tasks))
    assert.is_nil(rawget(env, "tasks"))
    assert.equal("table", type(getmetatable(env).__index))
  end)

  async.it("under the policy inspect runs commands alone", function()
    local looking = evaluations.session "inspect"
    assert.equal("ok", looking:eval("work()").status)
    for _, source in ipairs { "1", "x = 1", "work() error()", "print('x')", "where(x)" } do
      local reply = looking:eval(source)
      assert.equal("refused", reply.status)
      assert.matches("the policy is inspect", reply.error.message)
    end
    local reply = looking:eval "retry('db')"
    assert.equal("refused", reply.status)
    assert.matches("retry changes something", reply.error.message)
    looking:close()
  end)
end)
