--- Settings: defaults < `tide.config{}` < environment < command line.
---
--- Pure: whoever boots hands in the environment. A value is read when it is set;
--- what is wrong with any of them is collected, so that `seal` lists every error
--- and not the first. Each value remembers where it came from.
local duration = require("moontide.duration")
local keys = require("moontide.config.keys")
local types = require("moontide.config.types")

local M = {}

local DEFAULT, SCRIPT, ENVIRONMENT, COMMAND_LINE = 0, 1, 2, 3

---@class tide.config.Entry
---@field value any parsed
---@field layer integer
---@field origin string "default", "config app.lua:3", "environment MOONTIDE_NAME", "command line"

---@type table<string, tide.config.Entry>
local entries
local errors, sealed, script_site

--- Notes of `seal` that are no errors.
---@type string[]
M.warnings = {}

local function complain(where, message)
  errors[#errors + 1] = where .. ": " .. message
end

--- Reads one value into its key, unless a stronger layer has set it.
local function put(key, value, layer, origin, where)
  local row = keys.row_of(key)
  local from_text = layer >= ENVIRONMENT
  local parsed, problem = types[row[2]](value, row[4], from_text)
  if problem or parsed == nil then
    if row.secret then problem = "is not a text without control characters" end
    return complain(where, ("%s: %s"):format(key, problem))
  end
  local present = entries[key]
  if present and present.layer > layer then return end
  entries[key] = { value = parsed, layer = layer, origin = origin }
end

local function sorted_keys(tbl)
  local sorted = {}
  for key in pairs(tbl) do sorted[#sorted + 1] = key end
  table.sort(sorted, function(a, b) return tostring(a) < tostring(b) end)
  return sorted
end

local walk

local function walk_named(group, tbl, origin, site)
  for _, name in ipairs(sorted_keys(tbl)) do
    local value, path = tbl[name], ("%s.%s"):format(group, name)
    if type(name) ~= "string" or name == "" then
      complain(site, ("%s: a %s has a name, not %s"):format(
        group, keys.named[group].what, tostring(name)))
    elseif type(value) ~= "table" then
      complain(site, ("%s: is a table (an object of settings), not %s"):format(
        path, tostring(value)))
    else
      walk(path, value, origin, site)
    end
  end
end

--- One key of a table that `tide.config` was given.
local function walk_key(path, value, origin, site)
  local row = keys.row_of(path)
  if row and not (path == "manage" and type(value) == "table") then
    put(path, value, SCRIPT, origin, site)
  elseif not row and not keys.groups[path] then
    complain(site, keys.unknown(path))
  elseif type(value) ~= "table" then
    complain(site, ("%s: is a table of settings, not %s"):format(path, tostring(value)))
  elseif keys.named[path] then
    walk_named(path, value, origin, site)
  else
    walk(path, value, origin, site)
  end
end

function walk(prefix, tbl, origin, site)
  for _, key in ipairs(sorted_keys(tbl)) do
    if type(key) ~= "string" then
      complain(site, ("%s: keys are names, not %s"):format(
        prefix == "" and "config" or prefix, tostring(key)))
    else
      walk_key(prefix == "" and key or prefix .. "." .. key, tbl[key], origin, site)
    end
  end
end

--- `tide.config{...}`: nested tables or dotted keys; once, before `seal`.
---@param tbl table
---@param site? string "app.lua:3", the line of the call
function M.set(tbl, site)
  site = site or "config"
  if sealed then
    error(("%s: the configuration is sealed: call tide.config before the pipelines start"):format(
      site), 0)
  end
  if type(tbl) ~= "table" then
    return complain(site, ("tide.config takes a table, not %s"):format(tostring(tbl)))
  end
  if script_site then
    return complain(site, ("tide.config was called already (%s)"):format(script_site))
  end
  script_site = site
  walk("", tbl, "config " .. site, site)
end

--- Reads the environment. Empty values count as unset.
---@param environment table<string, string>|fun(): string|nil, string|nil names to values
function M.load_env(environment)
  local values = environment
  if type(environment) == "function" then
    values = {}
    for name, value in environment do values[name] = value end
  end
  local names = {}
  for name in pairs(values) do
    if name:sub(1, 9) == "MOONTIDE_" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local key, value = keys.from_env(name), values[name]
    local origin = "environment " .. name
    if key and value ~= "" then
      if keys.row_of(key) then
        put(key, value, ENVIRONMENT, origin, origin)
      else
        complain(origin, keys.unknown(key, keys.env_name))
      end
    end
  end
end

--- Sets one key above every other layer: `--set key=value`, or an embedder.
---@param key string
---@param value any a text, or a value of the key's type
---@param origin? string default "command line"
function M.override(key, value, origin)
  origin = origin or "command line"
  if not keys.row_of(key) then return complain(origin, keys.unknown(key)) end
  put(key, value, COMMAND_LINE, origin, origin)
end

--- Replaces a default that only the host knows (the script's base name).
---@param key string
---@param value any
function M.set_default(key, value)
  assert(keys.row_of(key), key)
  local present = entries[key]
  if present and present.layer > DEFAULT then return end
  entries[key] = { value = value, layer = DEFAULT, origin = "default" }
end

local function default_of(key)
  local entry = entries[key]
  return not entry or entry.layer == DEFAULT
end

--- The grace period of the platform bounds the shutdown total.
local function cap_by_grace()
  local grace = M.get("shutdown.grace")
  if not grace then return end
  local prestop = M.get("shutdown.prestop") or 0
  local most, origin = grace - prestop - 1, M.origin("shutdown.grace")
  if most <= 0 then
    return complain(origin, (
      "shutdown.grace: %s less prestop %s and 1s leaves no time to drain"):format(
      duration.format(grace), duration.format(prestop)))
  end
  local total = M.get("shutdown.timeout")
  if total <= most then return end
  if not default_of("shutdown.timeout") then
    M.warnings[#M.warnings + 1] = (
      "shutdown.timeout %s (%s) does not fit the grace period; using %s"):format(
      duration.format(total), M.origin("shutdown.timeout"), duration.format(most))
  end
  entries["shutdown.timeout"] = {
    value = most, layer = COMMAND_LINE,
    origin = ("shutdown.grace - prestop - 1s (%s)"):format(origin),
  }
end

--- A default linger gives way to a short total; an explicit one is an error there.
local function fit_linger()
  local total = M.get("shutdown.timeout")
  if not default_of("shutdown.linger") or M.get("shutdown.linger") <= total / 4 then return end
  entries["shutdown.linger"] = {
    value = total / 4, layer = DEFAULT, origin = "default, a quarter of shutdown.timeout",
  }
end

--- Ends the setting of values.
---@return string[] errors all of them, empty when there are none
function M.seal()
  if not sealed then
    sealed = true
    cap_by_grace()
    fit_linger()
  end
  return errors
end

--- A setting: seconds, bytes, integers, booleans, texts; nil when it is unset.
--- A name that is no key raises.
---@param key string
---@return any
function M.get(key)
  local entry = entries[key]
  if entry then return entry.value end
  if keys.rows[key] then return keys.rows[key][3] end
  if keys.named_row(key) then return nil end
  if keys.named[key] then return M.named(key) end
  error(keys.unknown(key), 2)
end

--- Where a value comes from.
---@param key string
---@return string
function M.origin(key)
  if not keys.row_of(key) then error(keys.unknown(key), 2) end
  local entry = entries[key]
  return entry and entry.origin or "default"
end

--- Whether somebody has set it.
---@param key string
---@return boolean
function M.is_set(key)
  return not default_of(key)
end

--- The settings under chosen names: `named("shutdown.phases")` is
--- `{ ["service-stop"] = { timeout = 3 } }`.
---@param group string "startup.phases", "shutdown.phases", "shutdown.reasons"
---@return table<string, table>
function M.named(group)
  local result = {}
  for key, entry in pairs(entries) do
    local _, of, name, field = keys.named_row(key)
    if of == group then
      result[name] = result[name] or {}
      result[name][field] = entry.value
    end
  end
  return result
end

--- Each setting for `check`: key, value as text (secrets masked), origin.
---@return fun(): string|nil, string|nil, string|nil
function M.explain()
  return require("moontide.config.explain")(M, entries)
end

--- Forgets everything that was set (tests, and `boot.describe`).
function M.reset()
  entries, errors, sealed, script_site = {}, {}, false, nil
  M.warnings = {}
end

M.reset()

return M
