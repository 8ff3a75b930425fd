-- Programs of others find an installed moontide, by CMake and by pkg-config, and get no name from
-- it that is not public.
local proc = require "support.process"

local build = os.getenv "MOONTIDE_BUILD"
local source = os.getenv "MOONTIDE_SOURCE"

local function sh(command, timeout)
  local code, out, err = proc.run {
    program = "/bin/sh", argv = { "-c", command }, timeout = timeout or 120,
  }
  assert.equal(0, code, command .. "\n" .. out .. err)
  return out
end

local function sanitized()
  return build:find "asan" or build:find "tsan"
end

describe("an installed moontide", function()
  local prefix

  setup(function()
    prefix = proc.temp_dir() .. "/prefix"
    sh(("cmake --install %s --prefix %s"):format(build, prefix))
  end)

  it("is found by CMake: shared, static, from C++17", function()
    if sanitized() then return pending "a consumer does not link the sanitizer" end
    local dir = proc.temp_dir()
    sh(("cmake -S %s/tests/consumers -B %s -DCMAKE_PREFIX_PATH=%s >/dev/null && cmake --build %s")
      :format(source, dir, prefix, dir))
    for _, name in ipairs { "with_shared", "with_static" } do
      assert.equal("0.1.0 stopped 0\n", sh(("%s/%s"):format(dir, name)))
    end
    assert.equal("0.1.0 0\n", sh(dir .. "/with_cxx"))
  end)

  it("is found by pkg-config, wherever it is", function()
    if sanitized() then return pending "a consumer does not link the sanitizer" end
    local dir = proc.temp_dir()
    local libdir = sh(("dirname $(find %s -name libmoontide.so)"):format(prefix)):gsub("%s+$", "")
    local find = ("PKG_CONFIG_PATH=%s/pkgconfig pkg-config --define-variable=prefix=%s"):format(
      libdir, prefix)
    sh(("cc -o %s/c %s/tests/consumers/consumer.c $(%s --cflags --libs moontide)"):format(dir,
      source, find))
    assert.equal("0.1.0 stopped 0\n", sh(("LD_LIBRARY_PATH=%s %s/c"):format(libdir, dir)))
  end)

  it("exports what the checked-in list says, and no more", function()
    local names = sh(("nm -D --defined-only $(find %s -name libmoontide.so) | cut -d' ' -f3"
      .. " | LC_ALL=C sort"):format(prefix))
    local listed = assert(proc.read_file(source .. "/tests/data/exported-names.txt"))
    assert.equal(listed, names)
  end)

  it("declares every exported name in its header", function()
    local header = assert(proc.read_file(prefix .. "/include/moontide.h"))
    local listed = assert(proc.read_file(source .. "/tests/data/exported-names.txt"))
    for name in listed:gmatch "[^\n]+" do
      if name ~= "luaopen_moontide_core" then -- asked for by Lua, not by a program
        assert.matches("[^%w_]" .. name .. "%(", header)
      end
    end
  end)
end)
