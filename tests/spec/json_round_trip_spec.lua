-- Any value that JSON can say comes back the same; values made by chance, from a fixed seed.
require "moontide"
local json = require "moontide.json"

local function random_string()
  local chars = {}
  for i = 1, math.random(0, 8) do
    local width = math.random(4)
    local code = math.random(0, ({ 0x7F, 0x7FF, 0xD7FF, 0x10FFFF })[width])
    if code >= 0xD800 and code <= 0xDFFF then code = 0x20 end
    chars[i] = utf8.char(code)
  end
  return table.concat(chars)
end

local function random_number()
  local pick = math.random(4)
  if pick == 1 then return math.random(-10, 10) end
  if pick == 2 then return math.random(math.mininteger, math.maxinteger) end
  if pick == 3 then return (math.random() - 0.5) * 10.0 ^ math.random(-20, 20) end
  return math.random(0, 1) * 2 ^ math.random(0, 62) + 0.5
end

local random_value

local function random_table(depth)
  local value = {}
  if math.random(2) == 1 then
    for i = 1, math.random(0, 4) do value[i] = random_value(depth + 1) end
    return json.array(value)
  end
  for _ = 1, math.random(0, 4) do value[random_string()] = random_value(depth + 1) end
  return value
end

function random_value(depth)
  local pick = math.random(depth < 5 and 6 or 4)
  if pick == 1 then return random_string() end
  if pick == 2 then return random_number() end
  if pick == 3 then return math.random(2) == 1 end
  if pick == 4 then return json.null end
  return random_table(depth)
end

-- Floats without a fraction come back as integers, which are the same number.
local function same(a, b)
  if type(a) ~= "table" or a == json.null then return a == b end
  if type(b) ~= "table" or b == json.null then return false end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

describe("json", function()
  it("round-trips any value, and then writes it the same way each time", function()
    math.randomseed(20260131)
    for _ = 1, 3000 do
      local value = random_value(0)
      local text = json.encode(value)
      local back, message = json.decode(text)
      assert.is_nil(message, text)
      assert.is_true(same(value, back), text)
      local again = json.encode(back)
      assert.equal(again, json.encode(json.decode(again)))
    end
  end)

  it("answers any text with a value or a message", function()
    math.randomseed(20260201)
    local pieces = {
      "[", "]", "{", "}", ",", ":", '"', '"a"', "12345678901234567890", "-1", "0.5", "1e5", "null",
      "true", " ", "\n", "\\", "\xC3\xBC", "\xFF", "[]", "{}", "-", "e", "\0",
    }
    for _ = 1, 20000 do
      local parts = {}
      for i = 1, math.random(0, 12) do parts[i] = pieces[math.random(#pieces)] end
      local value, message = json.decode(table.concat(parts))
      assert.is_true((value == nil) == (type(message) == "string"))
      if value ~= nil then json.encode(value) end
    end
  end)
end)
