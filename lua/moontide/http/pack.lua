--- Plain values as bytes and back: what a store puts into a file.
---
--- JSON would repair strings that are not UTF-8, and headers and bodies need not be. Pure.

local M = {}

local MAX_DEPTH = 32

local function write(value, out, depth)
  local kind = type(value)
  if kind == "nil" then
    out[#out + 1] = "z"
  elseif kind == "boolean" then
    out[#out + 1] = value and "t" or "f"
  elseif math.type(value) == "integer" then
    out[#out + 1] = string.pack("<c1i8", "i", value)
  elseif kind == "number" then
    out[#out + 1] = string.pack("<c1d", "d", value)
  elseif kind == "string" then
    out[#out + 1] = string.pack("<c1s4", "s", value)
  elseif kind == "table" and depth < MAX_DEPTH then
    out[#out + 1] = "{"
    for key, inner in pairs(value) do
      write(key, out, depth + 1)
      write(inner, out, depth + 1)
    end
    out[#out + 1] = "}"
  else
    error(("cannot pack a %s"):format(depth < MAX_DEPTH and kind or "table this deep"), 0)
  end
end

--- The bytes of a value: nil, booleans, numbers, strings and tables of these. Raises for others.
---@param value any
---@return string
function M.pack(value)
  local out = {}
  write(value, out, 0)
  return table.concat(out)
end

local read

local function read_table(bytes, at)
  local value = {}
  while bytes:byte(at) ~= 125 do -- "}"
    local key, inner
    key, at = read(bytes, at)
    inner, at = read(bytes, at)
    value[key] = inner
  end
  return value, at + 1
end

function read(bytes, at)
  local kind = bytes:sub(at, at)
  at = at + 1
  if kind == "z" then return nil, at end
  if kind == "t" or kind == "f" then return kind == "t", at end
  if kind == "i" then return string.unpack("<i8", bytes, at) end
  if kind == "d" then return string.unpack("<d", bytes, at) end
  if kind == "s" then return string.unpack("<s4", bytes, at) end
  if kind == "{" then return read_table(bytes, at) end
  error("not packed by moontide", 0)
end

--- The value of these bytes; raises for bytes that `pack` has not made.
---@param bytes string
---@return any
function M.unpack(bytes)
  local value, at = read(bytes, 1)
  if at ~= #bytes + 1 then error("not packed by moontide", 0) end
  return value
end

return M
