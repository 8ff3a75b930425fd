--- What the annotations of the Lua library say: signatures and descriptions, for help and
--- completion.
--
-- They come from the sources at build time (scripts/annotations.lua) as one text in lines. A *home*
-- is a module or a class, a line of its own; below it are its members. A member of a module may be
-- another module, or a member of one.

local step = require "moontide.console.steps"

local M = {}

---@class moontide.console.Member
---@field name string
---@field signature string "(fn, ...) -> moontide.Task", ": string|nil"
---@field place string "moontide/task.lua:51"
---@field method boolean called with a colon
---@field type string|nil of a field: the class
---@field text string

---@class moontide.console.Home
---@field name string "moontide.task", "moontide.Task"
---@field place string
---@field class string|nil of a module: the class it is
---@field parent string|nil of a class: what it inherits from
---@field text string
---@field members table<string, moontide.console.Member|string>

-- Where the homes stand in the text, by kind and name, and which ones a file has. What is asked for
-- is taken apart then and kept.
local text, places, of_file
local homes = { module = {}, class = {} }

local function load_index()
  if text then return end
  text, places, of_file = require "moontide.console.annotations", {}, {}
  places.module, places.class = {}, {}
  local last
  for at, kind, name, path, to in text:gmatch "()\n(%l+)\t([^\t]*)\t([^\t:]*)[^\n]*()" do
    if last then last.to = at - 1 end
    last = { kind = kind, name = name, from = at + 1, members = to }
    places[kind][name] = last
    of_file[path] = of_file[path] or {}
    table.insert(of_file[path], last)
  end
  if last then last.to = #text end
end

local function fields_of(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do
    fields[#fields + 1] = field:gsub("\v", "\n")
  end
  return fields
end

local function new_member(home, fields)
  local kind, name, signature, line, type_, words = table.unpack(fields, 1, 6)
  if kind == "=" then return name, signature end
  return name, {
    name = name, signature = signature, place = home.place:gsub("%d+$", line), text = words,
    method = kind == ":", type = type_ ~= "" and type_ or nil,
  }
end

local function new_home(place)
  local fields = fields_of(text:sub(place.from, place.members - 1))
  local kind, name, where, more, words = table.unpack(fields, 1, 5)
  local home = { name = name, place = where, text = words, members = {} }
  home[kind == "module" and "class" or "parent"] = more ~= "" and more or nil
  for line in text:sub(place.members, place.to):gmatch "[^\n]+" do
    local member_name, member = new_member(home, fields_of(line))
    home.members[member_name] = member
  end
  return home
end

local function find(kind, name)
  load_index()
  local home, place = homes[kind][name], places[kind][name]
  if home or not place then return home end
  home = new_home(place)
  homes[kind][name] = home
  return home
end

---@param name string
---@return moontide.console.Home|nil
function M.module(name)
  return find("module", name)
end

---@param name string
---@return moontide.console.Home|nil
function M.class(name)
  return find("class", name)
end

--- The same home, and those whose members it has as well: the class of a module, what a class
--- inherits from.
---@param home moontide.console.Home
---@return moontide.console.Home[]
function M.family(home)
  local list, seen = { home }, { [home] = true }
  local name = home.class or home.parent
  while name do
    local class = M.class(name)
    if not class or seen[class] then break end
    list[#list + 1] = class
    seen[class] = true
    name = class.parent
  end
  return list
end

-- A member, or what its name stands for: a module, or a member of another.
local function follow(member, steps)
  if type(member) ~= "string" then return member, member.type and M.class(member.type) end
  local whole = M.module(member)
  if whole then return nil, whole end
  local module, name = member:match "^(.*)%.([^.]+)$"
  local of = module and M.module(module)
  if of and of.members[name] and steps > 0 then return follow(of.members[name], steps - 1) end
end

--- A member of a home.
---@param home moontide.console.Home
---@param name string
---@return moontide.console.Member|nil
---@return moontide.console.Home|nil itself a home: a module, or of a known class
function M.member(home, name)
  local member, inner
  for _, of in ipairs(M.family(home)) do
    if of.members[name] then
      local found, found_home = follow(of.members[name], 5)
      -- A field says the class, an alias the description.
      if not member or member.text == "" then member = found or member end
      if not inner or not next(inner.members) then inner = found_home or inner end
    end
  end
  return member, inner
end

--- The names of all its members, sorted; with `methods` those alone that are called.
---@param home moontide.console.Home
---@param methods boolean|nil
---@return string[]
function M.names(home, methods)
  local seen, names = {}, {}
  for _, of in ipairs(M.family(home)) do
    for name in pairs(of.members) do
      local member = M.member(home, name)
      if not seen[name] and (not methods or (member and member.signature:find "^%(")) then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  table.sort(names)
  return names
end

-- The function that a file has at a line, as far as it is described.
local function at_place(path, line)
  local place = ("%s:%d"):format(path, line)
  for _, found in ipairs(of_file[path] or {}) do
    for _, member in pairs(find(found.kind, found.name).members) do
      if type(member) == "table" and member.place == place and member.signature:find "^%(" then
        return member
      end
    end
  end
end

--- What is said of a function of the library, which is known by its place.
---@param fn any
---@return moontide.console.Member|nil
function M.of_function(fn)
  if type(fn) ~= "function" then return nil end
  local info = debug.getinfo(fn, "S")
  local path = info.source:match "^@.-(moontide/[^@]*)$"
  load_index()
  while path do
    local member = at_place(path, info.linedefined)
    if member then return member end
    path = path:match "^.-/.-(moontide/.*)$" -- the tree may lie in a folder of that name
  end
end

--- The home of a value: the class that its metatable names, or the module of the library that it
--- is. Reads raw.
---@param value any
---@return moontide.console.Home|nil
function M.home_of(value)
  local kind = type(value)
  if kind ~= "table" and kind ~= "userdata" then return nil end
  local meta = debug.getmetatable(value)
  local class = meta and rawget(meta, "__name")
  local home = type(class) == "string" and M.class(class)
  if home or kind ~= "table" then return home or nil end
  for name, module in step, package.loaded do
    if rawequal(module, value) and type(name) == "string" and M.module(name) then
      return M.module(name)
    end
  end
end

return M
