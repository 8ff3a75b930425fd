-- Whatever the value: the printer ends, its text is valid UTF-8 within the limits, harmless to a
-- terminal, and its data is JSON. Values by chance, from a fixed seed.
require "moontide"
local core = require "moontide.core"
local json = require "moontide.json"
local printer = require "moontide.console.printer"
local random = require "support.random_values"
local scalars = require "moontide.console.printer.scalars"

core.host.watch()

local SEED = tonumber(os.getenv("MOONTIDE_TEST_SEED")) or 20261130
local VALUES = tonumber(os.getenv("MOONTIDE_VALUES")) or 200
-- Milliseconds each; much more is a hang.
local LATEST = 2.0

local function each_value(check)
  for seed = SEED, SEED + VALUES - 1 do
    math.randomseed(seed)
    local value = random.value()
    local began = core.clock.now()
    local ok, err = pcall(check, value)
    assert(ok, ("seed %d: %s"):format(seed, tostring(err)))
    assert(core.clock.now() - began < LATEST, ("seed %d takes too long"):format(seed))
  end
end

local function check_text(text, bytes)
  assert(#text <= bytes, "too long: " .. #text)
  assert(utf8.len(text), "not UTF-8")
  assert(not text:find "[%z\1-\8\11-\31\127]", "a control character")
  assert(not text:find("\u{9b}", 1, true) and not text:find("\u{202e}", 1, true), "steers")
  assert(json.decode(json.encode { text = text }).text == text)
end

local function check_data(data, depth)
  local kind = type(data)
  if kind == "string" then assert(#data <= 64 * 1024, "a string of " .. #data) end
  if kind ~= "table" or data == json.null then return end
  assert(depth < 4 or next(data) == nil, "too deep")
  local n = 0
  for key, value in pairs(data) do
    n = n + 1
    -- 200 bytes, of which each may have become U+FFFD, and a remark.
    assert(type(key) == "number" or #key <= 640, "a key of " .. #tostring(key))
    check_data(value, depth + 1)
  end
  assert(n <= 51, "too wide: " .. n)
end

describe("the printer", function()
  it("keeps its limits", function()
    each_value(function(value) check_text(printer.text(value), 64 * 1024) end)
  end)

  it("keeps other limits", function()
    each_value(function(value)
      local limits = { depth = math.random(0, 3), items = math.random(0, 5),
        string = math.random(0, 9), bytes = math.random(100, 400) }
      check_text(printer.text(value, limits), limits.bytes)
    end)
  end)

  it("keeps them for several values", function()
    each_value(function(value)
      check_text(printer.values(table.pack(value, nil, value, value)), 64 * 1024)
    end)
  end)

  it("makes data that JSON can say", function()
    each_value(function(value)
      local meta = debug.getmetatable(value)
      local wide = type(value) == "table" and meta and rawget(meta, "__console") ~= nil
      local data = printer.data(value)
      local text = json.encode(data)
      -- The last string may be the one too many.
      local limits = wide and { bytes = 512 * 1024, string = 4096 } or printer.limits
      assert(#text <= limits.bytes + 6 * limits.string + 200, "too long: " .. #text)
      assert(json.decode(text) ~= nil)
      if not wide then check_data(data, 0) end
    end)
  end)

  it("keeps the limits of data also where JSON needs most", function()
    local function tree(leaf, wide)
      local meta = wide and { __console = function() return "" end } or nil
      local root = setmetatable({}, meta)
      for i = 1, 1000 do
        root[i] = {}
        for k = 1, 300 do root[i][k] = leaf end
      end
      return root
    end
    for _, leaf in ipairs { ("\0"):rep(4000), -0.1234567890123456e-300, true, {} } do
      assert.is_true(#json.encode(printer.data(tree(leaf))) < 70 * 1024)
      assert.is_true(#json.encode(printer.data(tree(leaf, true))) < 600 * 1024)
      local many = { n = 1000 }
      for i = 1, 50 do many[i] = tree(leaf) end
      assert.is_true(#json.encode(printer.data_of(many)) < 70 * 1024)
    end
    assert.is_nil(printer.data_of { n = 0 })
    assert.equal(false, printer.data_of { n = 1, false })
    assert.same({ 1, json.null, 3 }, printer.data_of { n = 3, 1, nil, 3 })
  end)

  it("says the same of the same", function()
    math.randomseed(SEED)
    for _ = 1, 50 do
      local value = { random.value(7), random.value(7), name = random.value(7) }
      local seed = math.random(1 << 30)
      math.randomseed(seed) -- for what __tostring says
      local first = printer.text(value)
      math.randomseed(seed)
      assert.equal(first, printer.text(value))
    end
  end)
end)

describe("a quoted string", function()
  it("reads back as it was, or begins as it was", function()
    math.randomseed(SEED)
    for _ = 1, 3000 do
      local bytes = {}
      for i = 1, math.random(0, 250) do
        bytes[i] = math.random(3) == 1 and "\0" or string.char(math.random(0, 255))
      end
      local text = table.concat(bytes)
      local quoted, left_out = scalars.quote(text, 200):match "^(\".*\")(.*)$"
      local back = load("return " .. quoted)()
      assert.equal(text:sub(1, #back), back)
      assert.equal(#back == #text and "" or (" ... %d more bytes"):format(#text - #back), left_out)
      assert.is_true(#back >= math.min(#text, 197))
    end
  end)
end)

describe("a table that is changed while it is looked at", function()
  it("is shown all the same", function()
    math.randomseed(SEED)
    for _ = 1, 100 do
      local value, n = {}, 0
      for i = 1, 500 do value["k" .. i] = { i } end
      -- What other tasks do while an evaluation yields, and finalizers.
      debug.sethook(function()
        for key in next, value do value[key] = nil end
        for i = 1, 600 do value["new" .. n + i] = { i } end -- the table is made anew
        n = n + 600
      end, "", 997)
      local ok, text = pcall(printer.text, value)
      local fine, data = pcall(printer.data, value)
      debug.sethook()
      assert(ok, text)
      assert(fine, data)
    end
  end)
end)

describe("tables of huge tables", function()
  it("take no more time than one", function()
    local huge, wide = {}, {}
    for i = 1, 200000 do huge["k" .. i] = i end
    for i = 1, 50 do
      wide[i] = {}
      for k = 1, 50 do wide[i][k] = { { huge, huge } } end
    end
    for _, show in ipairs { printer.text, printer.data } do
      local began = os.clock()
      show(wide)
      show { huge, huge, huge, wide }
      -- Some 20 ms; without a bound over all of them it is half a minute.
      assert.is_true(os.clock() - began < 2)
    end
  end)
end)
