-- The wall clock is set back by an hour in the middle of everything: no timer, timeout, retry or
-- budget notices; only the time stamps of the log do.
local loop = require "support.loop"
local proc = require "support.process"

-- libfaketime takes the time from a file that the test changes; it is not for a sanitizer's build.
local function find_library()
  local pipe = assert(io.popen "ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null")
  local path = pipe:read "l"
  pipe:close()
  return path
end

local LIBRARY = find_library()

local function why_not()
  if os.getenv "MOONTIDE_PRELOAD" then return "not together with a sanitizer" end
  if not LIBRARY then return "libfaketime is not here" end
end

local APP = [[
local tide = require "moontide"
local function say(text) io.stdout:write(text, " ", os.time(), "\n") io.stdout:flush() end
local attempts = 0
tide.startup:phase("db", { on_fail = tide.retry { base = "100ms", max = "100ms" } }, function()
  attempts = attempts + 1
  say("attempt " .. attempts)
  if attempts < 4 then error "refused" end
end)
tide.shutdown:task("service-stop", "late", { timeout = "300ms" }, function()
  say "late"
  tide.sleep(60)
end)
tide.shutdown:task("cluster-leave", "sleep", function() tide.sleep(0.3) say "slept" end)
tide.run_until_terminated()
]]

describe("a step of the wall clock", function()
  it("does not change any timing", function()
    local refused = why_not()
    if refused then return pending(refused) end
    local dir = proc.temp_dir()
    local offset = dir .. "/offset"
    proc.write_file(offset, "+0")
    local app = proc.start { script = APP, env = {
      LD_PRELOAD = LIBRARY, FAKETIME_TIMESTAMP_FILE = offset, FAKETIME_NO_CACHE = 1,
      FAKETIME_DONT_FAKE_MONOTONIC = 1, DONT_FAKE_MONOTONIC = 1,
    } }
    local before = tonumber(app:wait_stdout "attempt 2 (%d+)")
    proc.write_file(offset, "-1h")
    local stepped_at = loop.now()
    local after = tonumber(app:wait_stdout "attempt 4 (%d+)")
    assert.is_true(after < before - 3000, "the clock was not set back")
    assert.is_true(loop.now() - stepped_at < 2) -- two waits of 100 ms, on a busy machine
    app:wait_ready()
    app:signal "TERM"
    app:wait_stdout "late"
    proc.write_file(offset, "+1h")
    assert.equal(0, (app:wait()))
    local took = app:seconds_to_end()
    assert.is_true(took >= 0.6 and took < 2.5, took .. " s")
    local record = app:wait_log { task = "late", outcome = "timed_out" }
    assert.is_true(record.duration_ms >= 300 and record.duration_ms < 1500, record.line)
  end)
end)
