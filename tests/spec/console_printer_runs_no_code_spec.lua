-- The printer reads tables raw; what it does run, __tostring and __console, cannot hold it up.
require "moontide"
local core = require "moontide.core"
local printer = require "moontide.console.printer"

core.host.watch()

-- The budget is 50 ms a call and 100 ms a text; the rest is for a busy machine.
local LATEST = 2.0

local function object(handler, of)
  return setmetatable(of or { 1 }, { __tostring = handler })
end

local function timed(value)
  local began = core.clock.now()
  local text = printer.text(value)
  local took = core.clock.now() - began
  assert.is_true(took < LATEST, took .. " s")
  return text
end

local function spin() while true do end end

describe("a metamethod", function()
  it("that is not asked is not run", function()
    local function never() error("it was run") end
    local names = { "__index", "__newindex", "__pairs", "__len", "__eq", "__lt", "__le", "__concat",
      "__call", "__gc", "__close", "__unm", "__mode" }
    local meta = {}
    for _, name in ipairs(names) do meta[name] = never end
    meta.__gc, meta.__mode, meta.__metatable = nil, nil, "locked"
    local inner = setmetatable({ 3, a = 1 }, meta)
    local value = setmetatable({ 1, 2, x = inner, [inner] = 4 }, meta)
    assert.matches("^{ 1, 2, x = { 3, a = 1 }, %[table 0x%x+%] = 4 }$", printer.text(value))
    assert.equal(1, printer.data(value).x.a)
    meta.__name = setmetatable({}, meta)
    setmetatable(meta, meta)
    assert.matches("^{ 1, 2, ", printer.text(value))
  end)

  it("__tostring speaks for its object", function()
    assert.equal("me", printer.text(object(function() return "me" end)))
    assert.equal("two\nlines", printer.text(object(function() return "two\nlines" end)))
    assert.equal("{ two\\nlines }", printer.text { object(function() return "two\nlines" end) })
    assert.equal("\\x1B[31m\\xFF", printer.text(object(function() return "\27[31m\xff" end)))
    local callable = setmetatable({}, { __call = function() return "called" end })
    assert.equal("called", printer.text(object(callable)))
  end)

  it("__tostring is kept short inside of a table", function()
    local long = object(function() return ("x"):rep(1000) end)
    assert.equal("{\n  " .. ("x"):rep(200) .. " ... 800 more bytes\n}", printer.text { long })
    assert.equal(("x"):rep(1000), printer.text(long))
    local endless = object(function() return ("x"):rep(1e6) end)
    assert.is_true(#printer.text(endless) <= 64 * 1024)
  end)

  it("__console speaks for a value that is shown by itself", function()
    local value = setmetatable({ 1 }, { __console = function(v) return "a table of " .. #v end })
    assert.equal("a table of 1", printer.text(value))
    assert.equal("{ { 1 } }", printer.text { value })
    assert.equal("{ 1 } (__console took too long)",
      timed(setmetatable({ 1 }, { __console = spin })))
  end)

  local failing = {
    ["raises"] = { function() error("x", 0) end, "raised: x" },
    ["raises a table"] = { function() error {} end, "raised a table" },
    ["raises steering bytes"] = { function() error("\27[0m", 0) end, "raised: \\x1B[0m" },
    ["yields"] = { function() coroutine.yield("x") end, "yielded" },
    ["returns a number"] = { function() return 1 end, "returned a number" },
    ["returns nothing"] = { function() end, "returned a nil" },
    -- These end by the stack or by the time.
    ["overflows the stack"] = {
      function() local function f() return 1 + f() end return f() end, "__tostring",
    },
    ["prints itself"] = { function(v) return printer.text { v } .. printer.text(v) end, "" },
    ["cannot be called"] = { true, "is a boolean" },
  }
  for what, case in pairs(failing) do
    it("that " .. what .. " leaves the raw form with a remark", function()
      local text = timed(object(case[1]))
      assert.truthy(text:find("^{ 1 } %(__tostring "), text)
      assert.truthy(text:find(case[2], 1, true), text)
    end)
  end

  local endless = {
    ["spins"] = spin,
    ["spins in a pcall"] = function() while true do pcall(spin) end end,
    ["spins in coroutines"] = function()
      while true do
        pcall(coroutine.wrap(function() pcall(spin) spin() end))
      end
    end,
    ["spins in a <close>"] = function()
      local _ <close> = setmetatable({}, { __close = spin })
      spin()
    end,
    ["spins in the <close> of what yielded"] = function()
      local _ <close> = setmetatable({}, { __close = spin })
      coroutine.yield()
    end,
    ["spins in an error handler"] = function() while true do xpcall(spin, spin) end end,
  }
  for what, handler in pairs(endless) do
    it("that " .. what .. " is stopped", function()
      local text = timed(object(handler))
      assert.truthy(text == "{ 1 } (__tostring took too long)"
        or text == "{ 1 } (__tostring yielded)", text)
      assert.is_nil(debug.gethook())
    end)
  end

  it("is not called any more when others took the time of the text", function()
    local list = {}
    for i = 1, 30 do list[i] = object(spin) end
    local text = timed(list)
    assert.truthy(text:find("{ 1 } (__tostring not called: the others took too long)", 1, true))
  end)

  it("in a state without interrupts is stopped by a hook", function()
    -- The same without the deadline: resume that ignores it.
    local resume = core.coroutine.resume
    package.loaded["moontide.console.printer.metamethod"] = nil
    core.coroutine.resume = function(thread, _, ...) return coroutine.resume(thread, ...) end
    local alone = require "moontide.console.printer.metamethod"
    core.coroutine.resume = resume
    for _, what in ipairs { "spins", "spins in a pcall", "spins in a <close>" } do
      local began = core.clock.now()
      local text, remark = alone.text(alone.budget(), object(endless[what]), "__tostring")
      assert.is_nil(text)
      assert.equal("__tostring took too long", remark)
      assert.is_true(core.clock.now() - began < LATEST)
    end
  end)
end)
