--- The text of everything but tables, as the console shows it.
--
-- What comes out is valid UTF-8 and harmless to a terminal, whatever goes in. No code of a script
-- runs here.
local step = require "moontide.console.steps"
local text_of = require "moontide.text"

local M = {}

local ESCAPES = {
  ["\a"] = "\\a", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t",
  ["\v"] = "\\v", ["\0"] = "\\0", ["\""] = "\\\"", ["\\"] = "\\\\",
}

local function hex(char)
  return ("\\x%02X"):format(char:byte())
end

local function escape_ascii(text, set)
  return (text:gsub(set, function(char, after)
    -- "\0" before a digit would read as another number.
    if char == "\0" and text:find("^%d", after) then return "\\x00" end
    return ESCAPES[char] or hex(char)
  end))
end

-- Characters that steer a terminal or turn the order of what stands around them: C1 controls, line
-- separators, marks of direction, the byte order mark.
local STEERING = { { 0x80, 0x9F }, { 0x200B, 0x200F }, { 0x2028, 0x202E }, { 0x2060, 0x206F },
  { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE007F } }

local function escape_character(char)
  local code = utf8.codepoint(char)
  for _, range in ipairs(STEERING) do
    if code >= range[1] and code <= range[2] then return ("\\u{%X}"):format(code) end
  end
end

-- Bytes that belong to no character become \xNN.
local function escape_high(text)
  local parts, from = {}, 1
  while from <= #text do
    local length, bad = utf8.len(text, from)
    local valid = text:sub(from, length and #text or bad - 1)
    parts[#parts + 1] = valid:gsub("[\xC2-\xF4][\x80-\xBF]+", escape_character)
    if length then break end
    parts[#parts + 1] = hex(text:sub(bad, bad))
    from = bad + 1
  end
  return table.concat(parts)
end

local function escape(text, set)
  if text:find(set) then text = escape_ascii(text, set) end
  if text:find "[\128-\255]" then text = escape_high(text) end
  return text
end

--- The first `limit` bytes or a little less, so that no character is torn.
---@param text string
---@param limit integer
---@return string text
---@return integer left_out bytes
function M.cut(text, limit)
  if #text <= limit then return text, 0 end
  local last = limit
  while last > math.max(0, limit - 3) and text:find("^[\x80-\xBF]", last + 1) do last = last - 1 end
  return text:sub(1, last), #text - last
end

--- A string as Lua would read it, with what was left out behind it.
---@param text string
---@param limit integer bytes
---@return string
function M.quote(text, limit)
  local shown, left_out = M.cut(text, limit)
  local quoted = "\"" .. escape(shown, "([%z\1-\31\127\"\\])()") .. "\""
  if left_out == 0 then return quoted end
  return ("%s ... %d more bytes"):format(quoted, left_out)
end

--- Foreign text made harmless; with `lines` it keeps its newlines and tabs.
---@param text string
---@param lines boolean|nil
---@return string
function M.clean(text, lines)
  return escape(text, lines and "([%z\1-\8\11-\31\127])()" or "([%z\1-\31\127])()")
end

--- The number as Lua would read it; a float is never taken for an integer.
---@param number number
---@return string
function M.number(number)
  if math.type(number) == "integer" then return ("%d"):format(number) end
  if number ~= number then return "nan" end
  if number == math.huge then return "inf" end
  if number == -math.huge then return "-inf" end
  local text = text_of.float(number)
  return text:find "[.e]" and text or text .. ".0"
end

-- ---- functions, threads, userdata ---------------------------------------------------------------

-- Of so many entries of all loaded modules together a name is looked for.
local NAMED = 20000

local function better(name, than)
  return not than or #name < #than or (#name == #than and name < than)
end

local function add_names(names, module, of, left)
  for key, value in step, of do
    left = left - 1
    if left < 0 then break end
    if type(value) == "function" and type(key) == "string" then
      local name = module == "_G" and key or module .. "." .. key
      if better(name, names[value]) then names[value] = name end
    end
  end
  return left
end

--- Names of functions: those under which a loaded module has them.
---@return table<function, string>
function M.function_names()
  local names, left = {}, NAMED
  for module, value in step, package.loaded do
    if type(module) == "string" and type(value) == "table" then
      left = add_names(names, module, value, left)
    end
  end
  return names
end

--- `function name file:line`.
---@param fn function
---@param name string|nil
---@return string
function M.fn(fn, name)
  local info = debug.getinfo(fn, "S")
  local place = info.what == "C" and "[C]" or ("%s:%d"):format(info.short_src, info.linedefined)
  if not name and info.what == "C" then place = ("[C] %p"):format(fn) end
  return M.clean(name and ("function %s %s"):format(name, place) or "function " .. place)
end

--- `thread suspended file:line`: where it would go on.
---@param thread thread
---@return string
function M.thread(thread)
  local status = coroutine.status(thread)
  for level = 0, status == "suspended" and 10 or -1 do
    local info = debug.getinfo(thread, level, "Sl")
    if not info then break end
    if info.currentline > 0 then
      return M.clean(("thread suspended %s:%d"):format(info.short_src, info.currentline))
    end
  end
  return ("thread %s %p"):format(status, thread)
end

--- The name of a class that a metatable gives, or nil.
---@param value any
---@return string|nil
function M.class(value)
  local meta = debug.getmetatable(value)
  local name = meta and rawget(meta, "__name")
  return type(name) == "string" and M.clean((M.cut(name, 60))) or nil
end

--- `FILE*: 0x55d0c8a2`.
---@param value userdata
---@return string
function M.userdata(value)
  local address = ("%p"):format(value)
  if address == "(null)" then return "userdata: NULL" end
  return ("%s: %s"):format(M.class(value) or "userdata", address)
end

--- The text of what is neither a table nor a string.
---@param value any
---@param names table<function, string>|nil
---@return string
function M.text(value, names)
  local kind = type(value)
  if kind == "number" then return M.number(value) end
  if kind == "function" then return M.fn(value, names and names[value]) end
  if kind == "thread" then return M.thread(value) end
  if kind == "userdata" then return M.userdata(value) end
  return kind == "nil" and "nil" or value and "true" or "false"
end

return M
