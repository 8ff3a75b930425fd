-- What an evaluation returns is shown bounded and harmless, and showing it holds nobody up.
local console = require "support.console"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false }
local function spin() while true do end end
function object(handler) return setmetatable({ 1 }, { __tostring = handler }) end
spinning = object(spin)
stubborn = object(function() while true do pcall(spin) end end)
awaiting = object(function() tide.sleep(5) return "slept" end)
leaving = object(function() os.exit(3) end)
huge = {}
for i = 1, 1000000 do huge[i] = i end
turns = 0
local timer = require("luv").new_timer()
timer:start(1, 1, function() turns = turns + 1 end)
timer:unref()
tide.run_until_terminated()
]]

local app, client

-- The budget is 100 ms; the rest is for a busy machine.
local function shown(source, expected)
  local reply = client:eval(source)
  assert.equal("ok", reply.status)
  assert.is_true(reply.ms < 2000, reply.ms .. " ms")
  if expected then assert.equal(expected, reply.text) end
  return reply.text
end

describe("the value of an evaluation", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
    client:hello()
  end)
  after_each(function() client:close() end)

  it("is one valid text whatever it is", function()
    shown("1, 1.0, 'a\\0b\\27[31m\\xff', nil", "1\t1.0\t\"a\\0b\\x1B[31m\\xFF\"\tnil")
    shown("nil", "nil")
    shown("'}\\n{\"id\":1}\\n> '", "\"}\\n{\\\"id\\\":1}\\n> \"")
    assert.matches("%.%.%. 999950 more\n}$", shown "huge")
    assert.is_true(#shown "('x'):rep(1e6), huge, _G, package.loaded" <= 64 * 1024)
  end)

  it("does not hang where its __tostring does", function()
    shown("spinning", "{ 1 } (__tostring took too long)")
    shown("stubborn", "{ 1 } (__tostring took too long)")
    assert.matches("^{ 1 } %(__tostring raised: ", shown "awaiting")
    shown("{ spinning, 2 }", "{ { 1 } (__tostring took too long), 2 }")
    shown("1 + 1", "2")
  end)

  it("may take its time, and is told by code that was typed as by any other", function()
    local slow = "setmetatable({ 1 }, { __tostring = function() %s return 'slow' end })"
    shown(slow:format("for _ = 1, 300000 do end"), "slow")
    shown("{ " .. slow:format("for _ = 1, 300000 do end") .. " }", "{ slow }")
    shown(slow:format("while true do end"), "{ 1 } (__tostring took too long)")
    shown(slow:format("while true do pcall(function() while true do end end) end"),
      "{ 1 } (__tostring took too long)")
    shown(slow:format("coroutine.wrap(function() while true do end end)()"),
      "{ 1 } (__tostring took too long)")
  end)

  it("is printed beside what else there is to do", function()
    shown [[function slow()
      local some = { __tostring = function() for _ = 1, 500000 do end return "slow" end }
      local list = { n = turns }
      for i = 1, 20 do list[i] = setmetatable({}, some) end
      return list
    end]]
    local before = tonumber(shown("slow()"):match "n = (%d+)")
    local after = tonumber(shown "turns")
    assert.is_true(after > before + 6)
  end)

  it("is answered also where its __tostring exits, which asks for a drain", function()
    assert.matches("^{ 1 } %(__tostring raised a table", shown "leaving")
    assert.equal(3, app:wait(15))
  end)

  it("is data with json", function()
    local reply = client:eval("{ 1, 2.5, { a = 1/0, f = string.rep }, 'x\\xff', nil }",
      { json = true })
    assert.equal("ok", reply.status)
    assert.same({ 1, 2.5, { a = "inf", f = "function string.rep [C]" }, "x\u{FFFD}" },
      reply.value.json)
    reply = client:eval("spinning, nil, 9007199254740993", { json = true })
    assert.equal("ok", reply.status)
    assert.equal(3, #reply.value.json)
  end)
end)
