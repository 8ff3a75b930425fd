--- How late the loop gets while nobody reads the log for two seconds.
local proc = require "support.process"
local stats = require "bench.stats"
local unread_pipe = require "support.unread_pipe"

local worst = {}
for i = 1, tonumber(arg[1]) or 5 do
  worst[i] = unread_pipe.run(2)
  proc.cleanup()
end
local naive = unread_pipe.naive(2)
proc.cleanup()
print(("log to a pipe that is not read for 2 s: loop lag median %.1f ms, max %.1f ms "
  .. "(a writer that blocks: %.0f ms)"):format(stats.median(worst) * 1000,
  stats.max(worst) * 1000, naive * 1000))
