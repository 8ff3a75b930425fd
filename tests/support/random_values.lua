--- Lua values by chance, of every kind and shape: what the console's printer is tested with.
local M = {}

local function random_bytes(longest)
  local bytes = {}
  for i = 1, math.random(0, longest) do bytes[i] = string.char(math.random(0, 255)) end
  return table.concat(bytes)
end

local function random_text(longest)
  local chars = {}
  for i = 1, math.random(0, longest) do
    local code = math.random(0, ({ 0x7F, 0x7FF, 0xD7FF, 0x10FFFF })[math.random(4)])
    chars[i] = utf8.char(code >= 0xD800 and code <= 0xDFFF and 0x20 or code)
  end
  return table.concat(chars)
end

local function longest()
  return math.random(20) == 1 and 1000 or 12
end

-- Handlers that answer, fail or lie; those that never end cost their budget, so they are rare.
local HANDLERS = {
  function() return random_text(longest()) end,
  function() return random_bytes(longest()) end,
  function() return nil end,
  function() return {} end,
  function() error(random_bytes(20), 0) end,
  function() error {} end,
  function() coroutine.yield(random_bytes(4)) end,
  function() return ("x"):rep(100000) end,
  function(self) return tostring(#self) .. self.x end,
}

local function never() error("a metamethod was run that must not be") end

local function metatable()
  local meta = { __index = never, __newindex = never, __len = never, __pairs = never,
    __eq = never, __lt = never, __le = never, __call = never, __concat = never }
  if math.random(3) == 1 then meta.__metatable = false end
  if math.random(3) == 1 then meta.__name = random_bytes(longest()) end
  if math.random(2) == 1 then meta.__tostring = HANDLERS[math.random(#HANDLERS)] end
  if math.random(4) == 1 then meta.__console = HANDLERS[math.random(#HANDLERS)] end
  if math.random(8) == 1 then meta.__tostring = random_bytes(3) end
  return meta
end

local SCALARS = {
  function() return random_bytes(longest()) end,
  function() return random_text(longest()) end,
  function() return math.random(-10, 10) end,
  function() return math.random(math.mininteger, math.maxinteger) end,
  function() return (math.random() - 0.5) * 10.0 ^ math.random(-300, 300) end,
  function() return ({ 0 / 0, 1 / 0, -1 / 0, -0.0, 1.0, 2 ^ 63 })[math.random(6)] end,
  function() return math.random(2) == 1 end,
  function() return ({ print, string.rep, never, M.value })[math.random(4)] end,
  function() return load("return 1", random_bytes(60)) end,
  function() return ({ coroutine.create(never), coroutine.running() })[math.random(2)] end,
  function() return io.stdout end,
}

local function scalar()
  return SCALARS[math.random(#SCALARS)]()
end

-- A key is anything but nil and NaN.
local function key(seen)
  local chosen = #seen > 0 and math.random(20) == 1 and seen[math.random(#seen)] or scalar()
  if chosen ~= chosen then return "nan" end
  return chosen
end

local function fill(value, depth, seen)
  local width = ({ 3, 3, 8, 70 })[math.random(4)]
  if depth > 3 then width = 2 end
  for i = 1, math.random(0, width) do value[i] = M.value(depth + 1, seen) end
  for _ = 1, math.random(0, width) do value[key(seen)] = M.value(depth + 1, seen) end
end

--- A value; some of its tables are met again inside of themselves.
---@param depth integer|nil how deep it stands
---@param seen table[]|nil the tables made so far
---@return any
function M.value(depth, seen)
  depth, seen = depth or 0, seen or {}
  local pick = math.random(10)
  if depth > 8 or #seen > 300 or pick <= (depth == 0 and 1 or 5) then return scalar() end
  if pick == 6 and #seen > 0 then return seen[math.random(#seen)] end
  local value = {}
  seen[#seen + 1] = value
  fill(value, depth, seen)
  return math.random(5) == 1 and setmetatable(value, metatable()) or value
end

return M
