-- The README's tour. Each Lua block is a whole script: it becomes ready (or has
-- nothing left to do) and ends with 0. The sh blocks after it run beside it, in
-- the directory where it is `app.lua`. Ports are replaced by free ones.
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local source = os.getenv "MOONTIDE_SOURCE" or "."

-- { { lua = text, line = n, heading = text, sh = { text, ... } }, ... }, and the C blocks.
local function steps()
  local list, heading, kind, block, number, begin = {}, "", nil, nil, 0, 0
  local programs = {}
  for line in io.lines(source .. "/README.md") do
    number = number + 1
    if block and line == "```" then
      local text = table.concat(block, "\n") .. "\n"
      if kind == "lua" then
        list[#list + 1] = { lua = text, line = begin, heading = heading, sh = {} }
      elseif kind == "sh" then
        local sh = assert(list[#list], "an sh block before the first Lua block").sh
        sh[#sh + 1] = text
      elseif kind == "c" then
        programs[#programs + 1] = text
      end
      block = nil
    elseif block then
      block[#block + 1] = line
    elseif line:match "^```" then
      kind, block, begin = line:match "^```(%w*)", {}, number
    else
      heading = line:match "^#+ (.+)" or heading
    end
  end
  return list, programs
end

-- A process can be found a moment after it is ready: who types does not see that.
local function wait_for_control_socket(app)
  loop.wait(function()
    local entries = uv.fs_scandir(app.dir .. "/moontide")
    local name = entries and uv.fs_scandir_next(entries)
    while name and not name:find "%.sock$" do name = uv.fs_scandir_next(entries) end
    return name
  end, 10, "the control socket")
end

local function shell(app, text)
  if text:find("--takeover", 1, true) then wait_for_control_socket(app) end
  local bin = app.dir .. "/bin"
  os.execute(("mkdir -p '%s' && ln -sf '%s' '%s/moontide'"):format(bin, os.getenv "MOONTIDE", bin))
  text = text:gsub("8080", app.port):gsub("8081", app.manage_port)
    :gsub("curl ", "curl --fail --show-error ")
  local code, out, err = proc.run {
    program = "/bin/bash", argv = { "-euc", text }, cwd = app.dir,
    env = {
      PATH = bin .. ":" .. os.getenv "PATH", MOONTIDE_MANAGE__PORT = app.manage_port,
      RUNTIME_DIRECTORY = app.dir,
    },
  }
  assert(code == 0, ("code %s\n%s\n-- stdout:\n%s\n-- stderr:\n%s"):format(code, text, out, err))
end

describe("README", function()
  for _, step in ipairs(steps()) do
    it(("line %d, %s"):format(step.line, step.heading), function()
      local port = proc.free_port()
      local app = proc.start {
        script = (step.lua:gsub("8080", port)),
        env = { MOONTIDE_SHUTDOWN__LINGER = "0" },
      }
      app.port = port
      if step.lua:find "listen" then
        app:wait_ready()
        for _, text in ipairs(step.sh) do shell(app, text) end
        app:signal "TERM"
      end
      assert.equal(0, (app:wait()))
      assert.same({}, app:find_logs { level = "error" })
    end)
  end

  -- A program that is not instrumented cannot link the instrumented library.
  local build = os.getenv "MOONTIDE_BUILD"
  if not (build:find "asan" or build:find "tsan") then
    it("has C that is built against an installed moontide, and ends with 0", function()
      local _, programs = steps()
      assert.equal(1, #programs)
      local dir = proc.temp_dir()
      proc.write_file(dir .. "/app.c", programs[1])
      local code, out, err = proc.run {
        program = "/bin/sh", cwd = dir, timeout = 60,
        argv = { "-euc", ([[
          cmake --install %s --prefix "$PWD/prefix" >/dev/null
          libs=$(dirname "$(find "$PWD/prefix" -name libmoontide.so)")
          cc -Wall -Wextra -Werror app.c -o app $(PKG_CONFIG_PATH="$libs/pkgconfig" \
            pkg-config --define-variable=prefix="$PWD/prefix" --cflags --libs moontide)
          LD_LIBRARY_PATH="$libs" ./app]]):format(build) },
      }
      assert.equal(0, code, out .. err)
    end)
  end

  it("names commands that are there", function()
    local text = assert(proc.read_file(source .. "/README.md"))
    local count = 0
    for path in text:gmatch "scripts/[%w-]+%.sh" do
      assert.is_string(proc.read_file(source .. "/" .. path), path)
      count = count + 1
    end
    assert.is_true(count >= 3)
    for path in text:gmatch "%]%(([%w/.]+)%)" do
      assert.is_truthy(uv.fs_stat(source .. "/" .. path), path)
    end
  end)
end)
