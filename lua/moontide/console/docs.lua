--- What the annotations of the Lua library say: signatures and descriptions, for help and
--- completion.
--
-- They come from the sources at build time (scripts/annotations.lua) as one text in lines, which is
-- taken apart when somebody asks first. A *home* is a module or a class; it has members. A member
-- of a module may be another module, or a member of one.

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

local modules, classes, by_place

local function fields_of(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do
    fields[#fields + 1] = field:gsub("\v", "\n")
  end
  return fields
end

local function add_home(fields)
  local kind, name, place, more, text = table.unpack(fields, 1, 5)
  local home = { name = name, place = place, text = text, members = {} }
  if kind == "module" then
    home.class = more ~= "" and more or nil
    modules[name] = home
  else
    home.parent = more ~= "" and more or nil
    classes[name] = home
  end
  return home
end

local function add_member(home, fields)
  local kind, name, signature, line, type_, text = table.unpack(fields, 1, 6)
  if kind == "=" then
    home.members[name] = signature
    return
  end
  local member = {
    name = name, signature = signature, place = home.place:gsub("%d+$", line), text = text,
    method = kind == ":", type = type_ ~= "" and type_ or nil,
  }
  home.members[name] = member
  if signature:find "^%(" then by_place[member.place] = member end
end

local function load_all()
  if modules then return end
  modules, classes, by_place = {}, {}, {}
  local home
  for line in require("moontide.console.annotations"):gmatch "[^\n]+" do
    local fields = fields_of(line)
    if #fields[1] > 1 then home = add_home(fields) else add_member(home, fields) end
  end
end

---@param name string
---@return moontide.console.Home|nil
function M.module(name)
  load_all()
  return modules[name]
end

---@param name string
---@return moontide.console.Home|nil
function M.class(name)
  load_all()
  return classes[name]
end

---@return fun(): string, moontide.console.Home
function M.modules()
  load_all()
  return pairs(modules)
end

---@return fun(): string, moontide.console.Home
function M.classes()
  load_all()
  return pairs(classes)
end

--- The same home, and those whose members it has as well: the class of a module, what a class
--- inherits from, the module that is a class.
---@param home moontide.console.Home
---@return moontide.console.Home[]
function M.family(home)
  load_all()
  local list = { home }
  local class = home.class and classes[home.class] or home
  for _ = 1, 10 do
    if class ~= home and class then list[#list + 1] = class end
    class = class and class.parent and classes[class.parent]
    if not class then break end
  end
  return list
end

-- A member, or what its name stands for: a module, or a member of another.
local function follow(member, steps)
  if type(member) ~= "string" then return member, member.type and classes[member.type] end
  if modules[member] then return nil, modules[member] end
  local module, name = member:match "^(.*)%.([^.]+)$"
  local of = module and modules[module]
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
      inner = inner or found_home
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

--- What is said of a function of the library, which is known by its place.
---@param fn any
---@return moontide.console.Member|nil
function M.of_function(fn)
  if type(fn) ~= "function" then return nil end
  local info = debug.getinfo(fn, "S")
  local path = info.source:match "^@.-(moontide/[^@]*)$"
  if not path then return nil end
  load_all()
  -- The tree may lie in a folder of that name.
  while path do
    local member = by_place[("%s:%d"):format(path, info.linedefined)]
    if member then return member end
    path = path:match "^.-/.-(moontide/.*)$"
  end
end

--- The homes of a value: the modules of the library that it is, and the class that its metatable
--- names. Reads raw.
---@param value any
---@return moontide.console.Home|nil
function M.home_of(value)
  local kind = type(value)
  if kind ~= "table" and kind ~= "userdata" then return nil end
  load_all()
  local meta = debug.getmetatable(value)
  local class = meta and rawget(meta, "__name")
  if type(class) == "string" and classes[class] then return classes[class] end
  if kind ~= "table" then return nil end
  for name, home in pairs(modules) do
    if rawequal(package.loaded[name], value) then return home end
  end
end

return M
