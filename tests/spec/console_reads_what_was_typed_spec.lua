-- An expression gives its values, statements run, what breaks off asks for more; only text is read.
require "moontide"
local reading = require "moontide.console.reading"

local function run(source, env)
  local fn, problem = reading.read(source, env or {})
  assert(fn, problem and problem.message)
  return fn()
end

describe("reading", function()
  it("takes an expression for its values", function()
    assert.same({ 1, "a" }, { run "1, 'a'" })
    assert.equal(3, run "1 + 2 -- three")
    assert.equal("x", run "  'x'  ")
  end)

  it("takes statements, too", function()
    local env = {}
    assert.is_nil(run("x = 5", env))
    assert.equal(5, env.x)
    assert.equal(7, run "local y = 7 return y")
  end)

  it("takes nothing, and a comment, for no values", function()
    assert.equal(0, select("#", run ""))
    assert.equal(0, select("#", run "-- nothing"))
  end)

  for _, source in ipairs {
    "for i = 1,", "function f()", "if x then", "x =", "1 +", "f(", "{ 1,", "[[ long", "--[[ long",
    "repeat", "return function()", "while true do\nlocal x = 1\n", "x = [==[ a ]] ",
  } do
    it(("wants more of %q"):format(source), function()
      local fn, problem = reading.read(source, {})
      assert.is_nil(fn)
      assert.is_true(problem.incomplete)
    end)
  end

  for _, source in ipairs {
    "1 + + 2", "end", "x y", "= 1", "@x", ")", "for for", "goto nowhere",
  } do
    it(("refuses %q"):format(source), function()
      local fn, problem = reading.read(source, {})
      assert.is_nil(fn)
      assert.is_false(problem.incomplete)
    end)
  end

  it("says what is wrong with an expression as with an expression", function()
    local _, problem = reading.read("1 + + 2", {})
    assert.matches("near '%+'$", problem.message)
  end)

  it("shows in its messages what was typed", function()
    local ok, err = pcall(run, "local t = nil\nreturn t.x")
    assert.is_false(ok)
    assert.matches('%[string "local t = nil..."%]:2:', err)
  end)

  it("never takes bytecode", function()
    local fn, problem = reading.read(string.dump(function() return 1 end), {})
    assert.is_nil(fn)
    assert.is_false(problem.incomplete)
  end)
end)

describe("a command alone", function()
  for source, name in pairs {
    ["tasks()"] = "tasks", [" status ( ) ; "] = "status", ["where(17)"] = "where",
    ["where(-1.5e3)"] = "where", ['help "tasks"'] = "help", ["help 'a\\'b'"] = "help",
    ['f("a\\\\", true, nil)'] = "f", ["f { dry = true, 'x', { 1; 2 } }"] = "f",
    ['f({ a = "}" })'] = "f", ["f(0x1F)"] = "f", ['f("--")'] = "f",
  } do
    it(("is %s"):format(source), function() assert.equal(name, reading.command(source)) end)
  end

  for _, source in ipairs {
    "", "tasks", "1", "f(x)", "f(g())", "f() g()", "f()()", "f(1 + 1)", "f(function() end)",
    'f(("x"):rep(1e9))', "f{[1]=2}", "f().x", "x = f()", "f(--[[x]])", "f(...)", 'f("a\nb")',
    "f(#{})", "f:g()", "f.g()", "while true do end", "f [[x]]", 'f("a" .. "b")', "f(not true)",
    'f("unfinished)',
  } do
    it(("is not %s"):format(source), function() assert.is_nil(reading.command(source)) end)
  end
end)
