--- How a configuration value is read: one function a type.
---
--- Each gets (value, extra, from_text) and returns the parsed value, or nil and
--- the problem in words that follow "KEY: ". `from_text` is set for the
--- environment and the command line, where numbers and booleans arrive as text.
local duration = require("moontide.duration")

local M = {}

local function shown(value)
  if type(value) == "string" then return ("\"%s\""):format(value) end
  if type(value) == "table" then return "a table" end
  return tostring(value)
end

--- The problem of a value that is something else.
function M.expected(value, what)
  return nil, ("%s is not %s"):format(shown(value), what)
end

local expected = M.expected

function M.text(value)
  if type(value) ~= "string" then return expected(value, "a text") end
  if value:find("[%z\1-\31\127]") then return nil, "holds control characters" end
  return value
end

local WORDS = {
  ["true"] = true, on = true, yes = true, ["1"] = true,
  ["false"] = false, off = false, no = false, ["0"] = false,
}

function M.boolean(value, _, from_text)
  if from_text and type(value) == "string" then value = WORDS[value:lower()] end
  if type(value) ~= "boolean" then
    return nil, from_text and "is not true or false" or ("%s is not a boolean"):format(shown(value))
  end
  return value
end

local function to_number(value, from_text)
  if from_text and type(value) == "string" then return tonumber(value) end
  return type(value) == "number" and value or nil
end

function M.integer(value, bounds, from_text)
  local number = math.tointeger(to_number(value, from_text))
  if not number then return expected(value, "an integer") end
  if number < bounds[1] or number > bounds[2] then
    return nil, ("%d is not between %d and %d"):format(number, bounds[1], bounds[2])
  end
  return number
end

function M.enum(value, words)
  for _, word in ipairs(words) do
    if value == word then return value end
  end
  local near = type(value) == "string" and require("moontide.suggest").nearest(value, words)
  local problem = ("%s is not one of \"%s\""):format(shown(value), table.concat(words, "\", \""))
  if near then problem = ("%s; did you mean \"%s\"?"):format(problem, near) end
  return nil, problem
end

local function seconds(value, from_text)
  if from_text and type(value) == "string" then value = tonumber(value) or value end
  local parsed, message = duration.parse(value, "")
  if not parsed then return nil, (message:gsub("^: ", "")) end
  return parsed
end

function M.duration(value, _, from_text)
  return seconds(value, from_text)
end

function M.positive(value, _, from_text)
  local parsed, problem = seconds(value, from_text)
  if parsed == 0 then return nil, "0 is refused: it would leave no time at all" end
  return parsed, problem
end

--- A total is what always ends the process, so it cannot be left out.
function M.total(value, _, from_text)
  if value == "none" then return nil, "\"none\" is refused: a total always ends the process" end
  return M.positive(value, nil, from_text)
end

--- As `positive`, and "none" for a phase that only the total bounds.
function M.phase_timeout(value, _, from_text)
  if value == "none" then return math.huge end
  return M.positive(value, nil, from_text)
end

local SIZES = {
  [""] = 1, b = 1, kb = 1000, mb = 1000 ^ 2, gb = 1000 ^ 3,
  kib = 1024, mib = 1024 ^ 2, gib = 1024 ^ 3,
}
local SIZE_HELP = "a size: a number of bytes or a text such as \"64KiB\", \"1MiB\""

function M.size(value, bounds)
  local bytes = value
  if type(value) == "string" then
    local digits, unit = value:match("^(%d+%.?%d*)%s*(%a*)$")
    local scale = unit and SIZES[unit:lower()]
    if not scale then return expected(value, SIZE_HELP) end
    bytes = tonumber(digits) * scale
  end
  local whole = type(bytes) == "number" and math.tointeger(bytes)
  if not whole or whole < 0 then return expected(value, SIZE_HELP) end
  if bounds and (whole < bounds[1] or whole > bounds[2]) then
    return nil, ("%d bytes are not between %d and %d"):format(whole, bounds[1], bounds[2])
  end
  return whole
end

--- Lists, which few settings are: see `config.lists`.
function M.texts(value, _, from_text)
  return require("moontide.config.lists").texts(value, from_text)
end

function M.uids(value, _, from_text)
  return require("moontide.config.lists").uids(value, from_text)
end

--- `manage = false` turns the management listener off, "api" puts /health* on
--- the application's listener as well.
function M.manage(value, _, from_text)
  if from_text and type(value) == "string" and WORDS[value:lower()] ~= nil then
    value = WORDS[value:lower()]
  end
  if type(value) == "boolean" or value == "api" then return value end
  return nil, ("%s is neither false, \"api\" nor a table of settings"):format(shown(value))
end

function M.on_fail(value)
  if value == "exit" or value == "warn" then return value end
  if type(value) == "table" and require("moontide.retry").is_policy(value) then return value end
  return nil, ("%s is neither \"exit\", \"warn\" nor tide.retry{...}"):format(shown(value))
end

return M
