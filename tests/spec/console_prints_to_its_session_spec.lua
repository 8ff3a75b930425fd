-- What an evaluation and the tasks that it spawned print goes to their session, with the id of the
-- request; what others print does not.
local async = require "support.async"
local core = require "moontide.core"
local evaluations = require "support.evaluations"
local task = require "moontide.task"

local session, other, printed
local real_print, real_write = print, io.write

describe("print", function()
  before_each(function()
    session, other, printed = evaluations.session(), evaluations.session(), {}
    _G.print = function(...) printed[#printed + 1] = table.concat({ ... }, "\t") end
  end)
  after_each(function()
    session:close()
    other:close()
    _G.print, _G.app, io.write = real_print, nil, real_write
  end)

  async.it("goes to the session, as print writes it", function()
    assert.equal("1\tnil\ttrue\n\n", session:eval("print(1, nil, true) print()").out)
    assert.equal("a1", session:eval("io.write('a', 1)").out)
    assert.equal("true", session:eval("io.write('a') == io.stdout").text)
    assert.same({}, printed)
  end)

  async.it("goes to the request that it belongs to", function()
    local first = session:ask { type = "eval", source = "tide.sleep(0.01) print 'first'" }
    local second = other:ask { type = "eval", source = "tide.sleep(0.005) print 'second'" }
    assert.equal("first\n", session:finish(first).out)
    assert.equal("second\n", other:finish(second).out)
  end)

  async.it("goes there from spawned tasks and from the application's functions", function()
    _G.app = function() print "of the application" end
    assert.equal("of the application\n", session:eval("app()").out)
    assert.equal("deep\n", session:eval([[
      tide.spawn(function() tide.spawn(function() print "deep" end) end)
    ]]).out)
    assert.equal("inside\n", session:eval("coroutine.wrap(function() print 'inside' end)()").out)
  end)

  async.it("of the background goes where it always went", function()
    local stop = false
    local t = task.root:spawn(function()
      while not stop do
        print "background"
        task.sleep(0.001)
      end
    end)
    assert.equal("", session:eval("tide.sleep(0.02)").out)
    stop = true
    t:join()
    assert.equal("background", printed[1])
    assert.equal("", session:eval("tide.root:spawn(function() print 'stays' end):join()").out)
    assert.equal("stays", printed[#printed])
  end)

  async.it("is the application's own again afterwards", function()
    local own = _G.print
    session:eval "print 'x'"
    assert.equal(own, _G.print)
    assert.equal(real_write, io.write)
  end)

  async.it("stays what an evaluation made of it", function()
    session:eval [[
      local before = print
      _G.print = function(...) before("mine:", ...) end
    ]]
    assert.equal("x\n", session:eval("_G.print 'x'").out)
    print "y"
    assert.same({ "mine:\ty" }, printed)
  end)

  async.it("raises what print raises", function()
    local reply = session:eval "print(setmetatable({}, { __tostring = function() return {} end }))"
    assert.equal("error", reply.status)
    assert.matches("'__tostring' must return a string", reply.error.message)
    assert.matches("bad argument #1 to 'write'", session:eval("io.write({})").error.message)
  end)

  async.it("of much comes in pieces", function()
    local reply = session:eval "print(('x'):rep(200000))"
    assert.equal(200001, #reply.out)
    assert.equal("out out out out value done", reply.kinds)
  end)
end)

describe("a task that an evaluation spawned and that failed", function()
  before_each(function() session = evaluations.session() end)
  after_each(function() session:close() end)

  async.it("is told to the session, and to nobody else", function()
    local reply = session:eval "tide.spawn(function() error('of the task', 0) end) return 1"
    assert.equal("ok", reply.status)
    assert.matches("uncaught error in task %d+: of the task\n", reply.err.text)
    assert.not_equal("draining", core.state.get())
  end)
end)
