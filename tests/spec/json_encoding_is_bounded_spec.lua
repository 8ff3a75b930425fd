-- Encoding runs no code of a script's, ends with its task, and takes any size.
local tide = require "moontide"
local core = require "moontide.core"
local json = require "moontide.json"
local support = require "support.async"

core.host.watch()

-- A value of few tables, whose text has no end.
local function endless()
  local value = { 1 }
  for _ = 1, 80 do value = { value, value } end
  return value
end

describe("json encoding", function()
  it("asks no metamethod", function()
    local function never() error "called" end
    local meta = { __index = never, __len = never, __pairs = never, __tostring = never,
      __eq = never }
    assert.equal('{"list":[1,2],"name":"x"}', json.encode(setmetatable({
      name = "x", list = setmetatable({ 1, 2 }, meta),
    }, meta)))
  end)

  it("takes large objects, with names in order", function()
    local value, names = {}, {}
    for i = 1, 50000 do
      names[i] = ("n%06d"):format((i * 7919) % 50000)
      value[names[i]] = i
    end
    table.sort(names)
    local at = 1
    local text = json.encode(value)
    for _, name in ipairs(names) do
      at = assert(text:find('"' .. name .. '":', at, true))
    end
    assert.same(value, json.decode(text))
  end)

  it("takes long lists and texts", function()
    local list = {}
    for i = 1, 100000 do list[i] = i end
    assert.equal(100000, #json.decode(json.encode(list)))
    local text = ("\u{e9}\n"):rep(500000)
    assert.equal(text, json.decode(json.encode(text)))
    assert.equal('{"a":1}', json.encode { a = 1 })
  end)

  it("refuses more members than it can put in order", function()
    local value = {}
    for i = 1, 1100000 do value["n" .. i] = true end
    assert.has_error(function() json.encode { some = value } end,
      "json.encode: too many members at some")
  end)

  it("is interrupted at its task's deadline", function()
    support.run(function()
      local began = core.clock.now()
      local ok, err = pcall(tide.timeout, 0.1, function() json.encode(endless()) end)
      assert.is_false(ok)
      assert.equal("interrupted", err.kind)
      assert.is_true(core.clock.now() - began < 2)
      assert.equal("[1]", json.encode { 1 })
    end)
  end)
end)
