-- Turns the Lua library into one C file of bytecode, so that the binary is one
-- file. Line numbers stay in, tracebacks need them; the names of local variables
-- and upvalues go, they are a third of what loading costs at each start.
-- usage: lua5.4 embed.lua ROOT OUT.c FILE...
local root, out = arg[1], arg[2]
local slim = dofile((arg[0]:gsub("embed%.lua$", "slim.lua")))

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

local paths = {}
for _, path in ipairs(arg) do
  if path:sub(-4) == ".lua" then paths[#paths + 1] = path end
end
table.sort(paths, function(a, b) return module_name(a) < module_name(b) end)

local chunks, entries = {}, {}
for id, path in ipairs(paths) do
  local file = assert(io.open(path, "rb"))
  local source = file:read("a")
  file:close()
  local name = module_name(path)
  local chunk = assert(load(source, "@moontide/" .. path:sub(#root + 11), "t"))
  local code = slim(string.dump(chunk))
  assert(load(code, name, "b"))
  chunks[id] = ("static const unsigned char chunk_%d[] = {\n%s};\n"):format(id, bytes(code))
  entries[id] = ("  {\"%s\", chunk_%d, sizeof chunk_%d},"):format(name, id, id)
end

local file = assert(io.open(out, "wb"))
file:write("/* Made by scripts/embed.lua from lua/; not to be edited. */\n",
  "#include \"lua/embedded.h\"\n", table.concat(chunks),
  "const tide_embedded tide__embedded[] = {\n", table.concat(entries, "\n"),
  "\n};\n", "const size_t tide__embedded_count = ", #entries, ";\n")
file:close()
