-- The tracked coroutine.resume, wrap, close, xpcall and debug.sethook behave as Lua's own: each
-- program below runs on both, and what it returns or raises must be equal.
local stock = {
  coroutine = {
    create = coroutine.create, resume = coroutine.resume, wrap = coroutine.wrap,
    close = coroutine.close, yield = coroutine.yield, status = coroutine.status,
    running = coroutine.running, isyieldable = coroutine.isyieldable,
  },
  xpcall = xpcall,
  debug = { sethook = debug.sethook, gethook = debug.gethook },
}
require "moontide"
require "moontide.core".host.watch() -- with interrupts, as in the moontide program
local tracked = { coroutine = coroutine, xpcall = xpcall, debug = debug }

local function closer(log, name, failure)
  return setmetatable({}, { __close = function(_, err)
    log[#log + 1] = name .. ":" .. tostring(err)
    if failure then
      error(failure, 0)
    end
  end })
end

local programs = {
  ["resume passes values both ways"] = function(lib)
    local co = lib.coroutine.create(function(...)
      local got = { ... }
      got[#got + 1] = lib.coroutine.yield(1, nil, 3)
      return table.unpack(got)
    end)
    return { lib.coroutine.resume(co, "a", "b") }, { lib.coroutine.resume(co, "c") },
      lib.coroutine.status(co), { lib.coroutine.resume(co) }
  end,
  ["resume returns an error as it is"] = function(lib)
    local object = {}
    local co = lib.coroutine.create(function() error(object) end)
    local ok, err = lib.coroutine.resume(co)
    local text = lib.coroutine.create(function() error("boom") end)
    return ok, err == object, lib.coroutine.status(co), lib.coroutine.resume(text)
  end,
  ["resume of an error without a value"] = function(lib)
    return lib.coroutine.resume(lib.coroutine.create(function() error() end))
  end,
  ["resume of a dead coroutine"] = function(lib)
    local co = lib.coroutine.create(function() error("x", 0) end)
    lib.coroutine.resume(co)
    return lib.coroutine.resume(co)
  end,
  ["resume of itself"] = function(lib)
    return lib.coroutine.wrap(function()
      return lib.coroutine.resume(lib.coroutine.running(), 1, 2, 3)
    end)()
  end,
  ["resume of the one that resumed it"] = function(lib)
    local outer
    outer = lib.coroutine.create(function()
      return lib.coroutine.resume(lib.coroutine.create(function()
        return lib.coroutine.resume(outer), lib.coroutine.status(outer)
      end))
    end)
    return lib.coroutine.resume(outer)
  end,
  ["resume wants a coroutine"] = function(lib) lib.coroutine.resume(1) end,
  ["resume wants an argument"] = function(lib) lib.coroutine.resume() end,
  ["resume with very many values"] = function(lib)
    local list = {}
    for i = 1, 200000 do list[i] = i end
    local co = lib.coroutine.create(function(...)
      return select("#", lib.coroutine.yield(...))
    end)
    local back = { lib.coroutine.resume(co, table.unpack(list)) }
    return #back, back[#back], lib.coroutine.resume(co, table.unpack(list))
  end,
  ["resume with more values than a stack holds"] = function(lib)
    local list = {}
    for i = 1, 600000 do list[i] = i end
    local co = lib.coroutine.create(function(...)
      local function twice(...) return select("#", ...), ... end
      return twice(...)
    end)
    return (lib.coroutine.resume(co, table.unpack(list)))
  end,
  ["resume with more values than are left of its stack"] = function(lib)
    local list = {}
    for i = 1, 400000 do list[i] = i end
    local co = lib.coroutine.create(function(...)
      local function keep(...) lib.coroutine.yield() return ... end
      return (keep(...)) -- no tail call: the values stay
    end)
    lib.coroutine.resume(co, table.unpack(list))
    return lib.coroutine.resume(co, table.unpack(list))
  end,
  ["the traceback of a dead coroutine"] = function(lib)
    local co = lib.coroutine.create(function() local x = nil; return x.y end)
    lib.coroutine.resume(co)
    return debug.traceback(co)
  end,
  ["the traceback of a suspended coroutine"] = function(lib)
    local co = lib.coroutine.create(function() lib.coroutine.yield() end)
    lib.coroutine.resume(co)
    return debug.traceback(co)
  end,
  ["a yield through pcall, xpcall and a metamethod"] = function(lib)
    local co = lib.coroutine.create(function()
      local t = setmetatable({}, { __index = function(_, k) return lib.coroutine.yield(k) end })
      local a = select(2, pcall(function() return t.one end))
      local b = select(2, lib.xpcall(function() return t.two end, debug.traceback))
      return a, b
    end)
    return { lib.coroutine.resume(co) }, { lib.coroutine.resume(co, 1) },
      { lib.coroutine.resume(co, 2) }
  end,
  ["a yield where there can be none"] = function(lib)
    local co = lib.coroutine.create(function()
      table.sort({ 3, 2, 1 }, function() lib.coroutine.yield() end)
    end)
    return lib.coroutine.resume(co)
  end,

  ["wrap passes values both ways"] = function(lib)
    local f = lib.coroutine.wrap(function(...)
      local a = lib.coroutine.yield(...)
      return a, lib.coroutine.isyieldable(), select(2, lib.coroutine.running())
    end)
    return { f(1, 2) }, { f("x") }
  end,
  ["wrap as an iterator"] = function(lib)
    local sum = 0
    for i in lib.coroutine.wrap(function() for i = 1, 10 do lib.coroutine.yield(i) end end) do
      sum = sum + i
    end
    return sum
  end,
  ["wrap adds a place to a text"] = function(lib)
    lib.coroutine.wrap(function() error("boom") end)()
  end,
  ["wrap adds a place to a text without one"] = function(lib)
    lib.coroutine.wrap(function() error("boom", 0) end)()
  end,
  ["wrap leaves an object alone"] = function(lib)
    local object = {}
    local _, err = pcall(lib.coroutine.wrap(function() error(object) end))
    return err == object
  end,
  ["wrap over wrap"] = function(lib)
    lib.coroutine.wrap(function()
      lib.coroutine.wrap(function() error("deep") end)()
    end)()
  end,
  ["wrap called when it is over"] = function(lib)
    local f = lib.coroutine.wrap(function() return 1 end)
    f()
    f()
  end,
  ["wrap called after its error"] = function(lib)
    local f = lib.coroutine.wrap(function() error("once") end)
    pcall(f)
    f()
  end,
  ["wrap called inside itself"] = function(lib)
    local f
    f = lib.coroutine.wrap(function(...) return f(...) end)
    f(1, 2, 3)
  end,
  ["wrap wants a function"] = function(lib) lib.coroutine.wrap({}) end,
  ["wrap wants an argument"] = function(lib) lib.coroutine.wrap() end,
  ["wrap closes at an error, in order"] = function(lib)
    local log = {}
    local _, err = pcall(lib.coroutine.wrap(function()
      local _ <close> = closer(log, "a")
      local _ <close> = closer(log, "b")
      error("x", 0)
    end))
    return log, err
  end,
  ["wrap with a close that fails"] = function(lib)
    local log = {}
    local _, err = pcall(lib.coroutine.wrap(function()
      local _ <close> = closer(log, "a")
      local _ <close> = closer(log, "b", "second")
      error("first", 0)
    end))
    return log, err
  end,
  ["wrap and a closed coroutine"] = function(lib)
    local co, log = nil, {}
    local f = lib.coroutine.wrap(function()
      local _ <close> = closer(log, "a")
      co = lib.coroutine.running()
      lib.coroutine.yield()
    end)
    f()
    return lib.coroutine.status(co), lib.coroutine.close(co), lib.coroutine.status(co), log,
      pcall(f)
  end,
  ["wrap runs out of memory"] = function(lib)
    lib.coroutine.wrap(function() return ("x"):rep(1 << 50) end)()
  end,

  ["close of a suspended coroutine"] = function(lib)
    local log = {}
    local co = lib.coroutine.create(function()
      local _ <close> = closer(log, "a")
      local _ <close> = closer(log, "b")
      lib.coroutine.yield()
    end)
    lib.coroutine.resume(co)
    return { lib.coroutine.close(co) }, log, lib.coroutine.status(co), lib.coroutine.resume(co)
  end,
  ["close with an error"] = function(lib)
    local log = {}
    local co = lib.coroutine.create(function()
      local _ <close> = closer(log, "a")
      local _ <close> = closer(log, "b", "failed")
      lib.coroutine.yield()
    end)
    lib.coroutine.resume(co)
    return { lib.coroutine.close(co) }, log, { lib.coroutine.close(co) }
  end,
  ["close of one that failed"] = function(lib)
    local log = {}
    local co = lib.coroutine.create(function()
      local _ <close> = closer(log, "a")
      error("failed", 0)
    end)
    lib.coroutine.resume(co)
    local before = #log
    return before, { lib.coroutine.close(co) }, log, { lib.coroutine.close(co) }
  end,
  ["close of one not begun"] = function(lib)
    local co = lib.coroutine.create(print)
    return lib.coroutine.close(co), lib.coroutine.status(co), lib.coroutine.resume(co)
  end,
  ["close of itself"] = function(lib)
    return lib.coroutine.wrap(function() lib.coroutine.close(lib.coroutine.running()) end)()
  end,
  ["close of the one that resumed it"] = function(lib)
    local outer
    outer = lib.coroutine.wrap(function()
      local co = lib.coroutine.running()
      lib.coroutine.wrap(function() lib.coroutine.close(co) end)()
    end)
    outer()
  end,
  ["close wants a coroutine"] = function(lib) lib.coroutine.close("x") end,
  ["close while it yields"] = function(lib)
    local co = lib.coroutine.create(function()
      local _ <close> = setmetatable({}, { __close = function() lib.coroutine.yield() end })
      lib.coroutine.yield()
    end)
    lib.coroutine.resume(co)
    return lib.coroutine.close(co)
  end,

  ["xpcall returns what the function does"] = function(lib)
    return lib.xpcall(function(...) return select("#", ...), ... end, print, 1, nil, 3)
  end,
  ["xpcall with a handler"] = function(lib)
    return lib.xpcall(error, function(err) return { err }, "only one" end, "x")
  end,
  ["xpcall with a handler in C"] = function(lib)
    return lib.xpcall(error, tostring, { 1 } and true)
  end,
  ["xpcall hands the object over"] = function(lib)
    local object = setmetatable({}, { __eq = function() error("must not be called") end })
    local _, err = lib.xpcall(error, function(err) return rawequal(err, object) end, object)
    return err
  end,
  ["xpcall with a handler that fails"] = function(lib)
    local ok, err = lib.xpcall(error, function() error("again") end, "x")
    return ok, type(err)
  end,
  ["xpcall with a handler that fails once"] = function(lib)
    local first = true
    return lib.xpcall(error, function(err)
      if first then
        first = false
        error("second", 0)
      end
      return err
    end, "x")
  end,
  ["xpcall around an overflow"] = function(lib)
    local function f() return 1 + f() end
    return lib.xpcall(f, function(err) return (err:gsub("%d+", "N")) end)
  end,
  ["the handler finds the place of the error"] = function(lib)
    return lib.xpcall(function()
      local x = nil
      return x.y
    end, function()
      local info = debug.getinfo(2, "Sl")
      return info.short_src .. ":" .. info.currentline
    end)
  end,
  ["the handler's traceback from its caller on"] = function(lib)
    return (select(2, lib.xpcall(function() error("x") end, function(err)
      return debug.traceback(err, 2):gsub("in %a+ 'xpcall'.*", "")
    end)))
  end,
  ["xpcall wants a handler"] = function(lib) lib.xpcall(print) end,
  ["xpcall wants a function as handler"] = function(lib) lib.xpcall(print, {}) end,
  ["xpcall of nothing callable"] = function(lib)
    return lib.xpcall(nil, function(err) return err end)
  end,
  ["xpcall yields and goes on"] = function(lib)
    local f = lib.coroutine.wrap(function()
      return lib.xpcall(function(a) return a + lib.coroutine.yield(a) end,
        function(err) return err end, 1)
    end)
    return f(), f(2)
  end,
  ["xpcall catches after a yield"] = function(lib)
    local f = lib.coroutine.wrap(function()
      return lib.xpcall(function() lib.coroutine.yield() error("late", 0) end,
        function(err) return "handled " .. err end)
    end)
    f()
    return f()
  end,

  ["sethook counts"] = function(lib)
    local n = 0
    lib.debug.sethook(function() n = n + 1 end, "", 1000)
    for _ = 1, 100000 do end
    local _, mask, count = lib.debug.gethook()
    lib.debug.sethook()
    return n > 10, mask, count, (lib.debug.gethook())
  end,
  ["sethook of another coroutine"] = function(lib)
    local lines = {}
    local co = lib.coroutine.create(function()
      lib.coroutine.yield()
      return 1
    end)
    lib.debug.sethook(co, function(_, line) lines[#lines + 1] = line end, "l")
    lib.coroutine.resume(co)
    lib.coroutine.resume(co)
    local hook, mask = lib.debug.gethook(co)
    return #lines, type(hook), mask, lib.debug.gethook() == nil
  end,
  ["sethook on calls and returns"] = function(lib)
    local events = {}
    lib.debug.sethook(function(event) events[#events + 1] = event end, "cr")
    math.abs(1)
    lib.debug.sethook()
    return table.concat(events, " ")
  end,
  ["sethook that raises"] = function(lib)
    return pcall(function()
      lib.debug.sethook(function()
        lib.debug.sethook()
        error("from the hook", 0)
      end, "", 1)
      while true do end
    end)
  end,
  ["sethook wants a mask"] = function(lib) lib.debug.sethook(print) end,
  ["sethook wants a function"] = function(lib) lib.debug.sethook(1, "c") end,
}

describe("the tracked functions", function()
  for name, program in pairs(programs) do
    it("do as Lua's own: " .. name, function()
      local expected = table.pack(pcall(program, stock))
      local got = table.pack(pcall(program, tracked))
      assert.same(expected, got)
    end)
  end

  it("are other functions than Lua's own", function()
    for _, name in ipairs { "resume", "wrap", "close" } do
      assert.are_not.equal(stock.coroutine[name], coroutine[name])
    end
    assert.are_not.equal(stock.xpcall, xpcall)
    assert.are_not.equal(stock.debug.sethook, debug.sethook)
  end)

  it("let wrapped coroutines nest almost as deep as Lua's own", function()
    local function depth(wrap, n)
      return wrap(function() return n == 1 and 1 or 1 + depth(wrap, n - 1) end)()
    end
    local function deepest(wrap)
      local n = 1
      while pcall(depth, wrap, n + 1) do n = n + 1 end
      return n
    end
    assert.is_true(deepest(coroutine.wrap) >= deepest(stock.coroutine.wrap) - 20)
  end)
end)
