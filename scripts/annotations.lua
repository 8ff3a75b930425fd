-- Makes the table that the console's help and completion read out of the annotations (`---`) of the
-- Lua library: the source of a module, moontide.console.annotations. What it returns is described
-- in lua/moontide/console/docs.lua.
--
-- It knows the annotations of this library, not all of LuaCATS: descriptions, @class, @field,
-- @param, @return and @type before `function M.name(...)`, `M.name = ...` and `local Class`.

-- Where the type at the start of a text ends: at the first blank outside of brackets that does not
-- follow a colon or a comma.
local function split_type(text)
  local depth = 0
  for i = 1, #text do
    local char = text:sub(i, i)
    if char:find "[%(%[{<]" then
      depth = depth + 1
    elseif char:find "[%)%]}>]" then
      depth = depth - 1
    elseif char == " " and depth <= 0 and not text:sub(1, i - 1):find "[:,|]$" then
      return text:sub(1, i - 1), text:sub(i + 1)
    end
  end
  return text, ""
end

local function is_open(text)
  local _, opened = text:gsub("[%(%[{]", "")
  local _, closed = text:gsub("[%)%]}]", "")
  return opened > closed
end

-- A block of comment lines: its description, and its tags with the words behind them. A line
-- behind a tag goes on with it when the tag is not finished or the line begins in the middle of a
-- sentence; else it describes the next tag.
local function parse_block(lines)
  local block = { text = {}, tags = {} }
  local last, before
  for _, line in ipairs(lines) do
    local tag, rest = line:match "^%s*%-%-%-@(%a+)%s*(.*)$"
    local words = line:match "^%s*%-%-%-?%s?(.*)$"
    if tag then
      last = { tag = tag, rest = rest, before = before }
      before = nil
      block.tags[#block.tags + 1] = last
    elseif last and not before and (is_open(last.rest) or words:find "^%s*[%l|]") then
      last.rest = last.rest .. " " .. words:gsub("^%s+", "")
    elseif last then
      before = (before and before .. " " or "") .. words
    else
      block.text[#block.text + 1] = words
    end
  end
  return block
end

local function description(block)
  return (table.concat(block.text, "\n"):gsub("^%s+", ""):gsub("%s+$", ""))
end

local function each_tag(block, name)
  local i = 0
  return function()
    repeat i = i + 1 until not block.tags[i] or block.tags[i].tag == name
    return block.tags[i] and block.tags[i].rest, block.tags[i]
  end
end

local function is_optional(name, kind)
  return name:sub(-1) == "?" or kind:find("|nil", 1, true) ~= nil or kind:sub(-1) == "?"
end

-- ---- members ------------------------------------------------------------------------------------

-- "(fn, ...) -> moontide.Task", and a line of text for each parameter.
local function signature_of(block, names)
  local kinds, lines, returns = {}, {}, {}
  for rest in each_tag(block, "param") do
    local name, more = rest:match "^(%S+)%s*(.*)$"
    local kind, doc = split_type(more)
    local plain = name:gsub("%?$", "")
    kinds[plain] = is_optional(name, kind)
    lines[#lines + 1] = ("  %s: %s%s"):format(plain, kind, doc ~= "" and "  " .. doc or "")
  end
  for rest in each_tag(block, "return") do
    local kind, doc = split_type(rest)
    returns[#returns + 1] = kind
    if doc ~= "" then lines[#lines + 1] = ("  returns %s  %s"):format(kind, doc) end
  end
  local shown = {}
  for name in names:gmatch "[%w_%.]+" do
    shown[#shown + 1] = kinds[name] and name .. "?" or name
  end
  local signature = "(" .. table.concat(shown, ", ") .. ")"
  if #returns > 0 then signature = signature .. " -> " .. table.concat(returns, ", ") end
  return signature, lines
end

-- The signature of `fun(a: string, b: integer|nil): boolean`.
local function signature_of_type(kind)
  local parameters, result = kind:match "^fun(%b())(.*)$"
  if not parameters then return ": " .. kind end
  local shown = {}
  for name, of in (parameters:sub(2, -2) .. ","):gmatch "([%w_%.]+)(:?[^,]*)," do
    shown[#shown + 1] = is_optional(name, of) and name .. "?" or name
  end
  result = result:match "^:%s*(.*)$" or ""
  return "(" .. table.concat(shown, ", ") .. ")" .. (result ~= "" and " -> " .. result or "")
end

local function joined(text, lines)
  if #lines == 0 then return text end
  return (text ~= "" and text .. "\n" or "") .. table.concat(lines, "\n")
end

-- ---- a file -------------------------------------------------------------------------------------

local File = {}
File.__index = File

-- The variable that the module returns.
local function returned(source)
  return source:match "\nreturn ([%w_]+)%s*$" or source:match "\nreturn setmetatable%(([%w_]+),"
end

local function home(self, var)
  local class = self.class_of[var]
  if var and var == self.module_var then return self.data.modules[self.module] end
  return class and self.data.classes[class]
end

function File:add_class(rest, block, place)
  local name, parent = rest:match "^([%w_%.]+)%s*:%s*([%w_%.]+)"
  name = name or rest:match "^[%w_%.]+"
  local doc = rest:sub(#name + 1):gsub("^%s*:%s*[%w_%.]+", ""):gsub("^%s+", "")
  local class = { text = joined(description(block), doc ~= "" and { doc } or {}), place = place,
    parent = parent, members = {} }
  self.data.classes[name] = class
  for field, tag in each_tag(block, "field") do
    local key, more = field:match "^(%S+)%s*(.*)$"
    local kind, words = split_type(more)
    local text = joined(tag.before or "", words ~= "" and { words } or {})
    class.members[key] = { signature = signature_of_type(kind), text = text, place = place,
      type = kind:match "^moontide[%w%.]*" or kind:match "^tide[%w%.]+" }
  end
  return name
end

-- What follows a block: a function, an assignment, the variable of a class.
function File:add_member(block, line, place)
  local var, separator, name, params = line:match "^function ([%w_]+)([%.:])([%w_]+)%((.-)%)"
  if not var then
    var, name, params = line:match "^([%w_]+)%.([%w_]+) = function%((.-)%)"
    separator = "."
  end
  if not var then var, name = line:match "^([%w_]+)%.([%w_]+) = " end
  local of = var and home(self, var)
  if not of then return end
  local kind = each_tag(block, "type")()
  local signature, lines = "", {}
  if params then
    signature, lines = signature_of(block, params)
  elseif kind then
    signature = signature_of_type((split_type(kind)))
  end
  of.members[name] = { signature = signature, text = joined(description(block), lines),
    place = place, method = separator == ":" or nil }
end

-- Fields of the returned table that are another module, or a member of one: in its constructor
-- (`spawn = task.spawn`) and in the tables of what is loaded when it is first named.
function File:add_aliases(source)
  local of = self.data.modules[self.module]
  local function add(name, target)
    if not of.members[name] then of.members[name] = target end
  end
  local required = {}
  for var, module in source:gmatch "local ([%w_]+) = require \"(moontide[%w_%.]*)\"" do
    required[var] = module
  end
  local constructor = source:match("\nlocal " .. self.module_var .. " = (%b{})") or ""
  for name, var, field in constructor:gmatch "([%w_]+) = ([%w_]+)%.([%w_]+)%f[,\n}]" do
    if required[var] then add(name, required[var] .. "." .. field) end
  end
  for name, module in constructor:gmatch "([%w_]+) = require \"(moontide[%w_%.]*)\"" do
    add(name, module)
  end
  for name, module, field in source:gmatch "([%w_]+) = { \"(moontide[%w_%.]+)\", \"([%w_]+)\" }" do
    add(name, module .. "." .. field)
  end
  for list in source:gmatch "\nlocal LAZY = (%b{})" do
    for name, room in list:gmatch "([%w_]+) = \"([%w_]+)\"" do
      add(name, ("%s.%s.%s"):format(self.module, room, name))
    end
  end
  for list in source:gmatch "\nlocal MODULES = (%b{})" do
    for name, module in list:gmatch "([%w_]+) = \"(moontide[%w_%.]+)\"" do add(name, module) end
  end
end

-- One block and the line behind it.
function File:take(lines, line, number)
  local block = parse_block(lines)
  local place = ("%s:%d"):format(self.path, number)
  local class = each_tag(block, "class")()
  if class then
    local name = self:add_class(class, block, place)
    local var = line:match "^local ([%w_]+)"
    if var then self.class_of[var] = name end
    if var and var == self.module_var then self.data.modules[self.module].class = name end
  else
    self:add_member(block, line, place)
  end
end

local function read_lines(self, source)
  local lines, header, number = {}, true, 0
  for line in (source .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if line:find "^%-%-%-" or (line:find "^%-%-" and #lines > 0) then
      lines[#lines + 1] = line
    else
      if header and #lines > 0 and self.module then
        self.data.modules[self.module].text = description(parse_block(lines))
      end
      if #lines > 0 then self:take(lines, line, number) end
      if #lines > 0 or line ~= "" then header = false end
      lines = {}
    end
  end
end

local function read(data, file)
  local self = setmetatable({ data = data, path = file.path, class_of = {} }, File)
  if not file.source:find "^%-%-%-@meta" then
    self.module, self.module_var = file.module, returned(file.source)
    data.modules[file.module] = { members = {}, place = file.path .. ":1", text = "" }
  end
  read_lines(self, file.source)
  if self.module_var then self:add_aliases(file.source) end
end

-- ---- the module's source ------------------------------------------------------------------------

-- One string in lines of fields, read by the first who asks for help: as a table of Lua it would be
-- twice the size. A newline in a field is a vertical tab.
local function line(...)
  local fields = table.pack(...)
  for i = 1, fields.n do
    local text = tostring(fields[i] or "")
    assert(not text:find "[\t\v]", "a tab in an annotation")
    fields[i] = text:gsub("\n", "\v")
  end
  return table.concat(fields, "\t")
end

local function sorted(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  local i = 0
  return function()
    i = i + 1
    return keys[i], map[keys[i]]
  end
end

local function write_members(of, out)
  for name, member in sorted(of.members) do
    if type(member) == "string" then
      out[#out + 1] = line("=", name, member)
    else
      out[#out + 1] = line(member.method and ":" or ".", name, member.signature,
        member.place:match "%d+$", member.type, member.text)
    end
  end
end

local function write(data)
  local out = { "" } -- each line stands between two newlines
  for name, module in sorted(data.modules) do
    out[#out + 1] = line("module", name, module.place, module.class, module.text)
    write_members(module, out)
  end
  for name, class in sorted(data.classes) do
    out[#out + 1] = line("class", name, class.place, class.parent, class.text)
    write_members(class, out)
  end
  return ("return %q\n"):format(table.concat(out, "\n") .. "\n")
end

-- What no script calls.
local function is_left_out(module)
  return module:find "^moontide%.cli%f[%W]" or module:find "^moontide%.console%f[%W]"
end

--- files: { module = "moontide.task", path = "moontide/task.lua", source = "..." } in any order.
return function(files)
  local data = { modules = {}, classes = {} }
  for _, file in ipairs(files) do
    if not is_left_out(file.module) then read(data, file) end
  end
  return write(data)
end
