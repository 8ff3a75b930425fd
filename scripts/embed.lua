-- Turns the Lua library into one C file of bytecode, so that the binary is one
-- file. Line numbers stay in, tracebacks need them; the names of local variables
-- and upvalues go, they are a third of what loading costs at each start. What the
-- sources say in annotations goes in as a module of its own (annotations.lua).
-- usage: lua5.4 embed.lua ROOT OUT.c FILE...
local root, out = arg[1], arg[2]
local slim = dofile((arg[0]:gsub("embed%.lua$", "slim.lua")))
local annotations = dofile((arg[0]:gsub("embed%.lua$", "annotations.lua")))

local function module_name(path)
  local name = path:sub(#root + 2):gsub("%.lua$", ""):gsub("/", ".")
  return (name:gsub("%.init$", ""))
end

local function bytes(code)
  local lines, line = {}, {}
  for i = 1, #code do
    line[#line + 1] = tostring(code:byte(i))
    if #line == 24 or i == #code then
      lines[#lines + 1] = table.concat(line, ",")
      line = {}
    end
  end
  return table.concat(lines, ",\n")
end

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

local files = {}
for _, path in ipairs(arg) do
  if path:sub(-4) == ".lua" then
    files[#files + 1] = {
      module = module_name(path), path = path:sub(#root + 2), source = read(path),
    }
  end
end
files[#files + 1] = {
  module = "moontide.console.annotations", path = "moontide/console/annotations.lua",
  source = annotations(files),
}
table.sort(files, function(a, b) return a.module < b.module end)

local chunks, entries = {}, {}
for id, file in ipairs(files) do
  local chunk = assert(load(file.source, "@" .. file.path, "t"))
  local code = slim(string.dump(chunk))
  assert(load(code, file.module, "b"))
  chunks[id] = ("static const unsigned char chunk_%d[] = {\n%s};\n"):format(id, bytes(code))
  entries[id] = ("  {\"%s\", chunk_%d, sizeof chunk_%d},"):format(file.module, id, id)
end

local file = assert(io.open(out, "wb"))
file:write("/* Made by scripts/embed.lua from lua/; not to be edited. */\n",
  "#include \"lua/embedded.h\"\n", table.concat(chunks),
  "const tide_embedded tide__embedded[] = {\n", table.concat(entries, "\n"),
  "\n};\n", "const size_t tide__embedded_count = ", #entries, ";\n")
file:close()
