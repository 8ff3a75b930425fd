--- SIGTERM at random moments from exec to ready + 50 ms, COUNT times (200).
local random_sigterm = require "support.random_sigterm"
local stats = require "bench.stats"

local count = tonumber(arg[1]) or 200
math.randomseed(os.time())
local runs, ready = random_sigterm.runs(count)
local met, faults, took = {}, 0, {}
for _, run in ipairs(runs) do
  met[run.phase] = (met[run.phase] or 0) + 1
  if run.took and run.phase ~= "before handlers" then took[#took + 1] = run.took end
  if run.fault then
    faults = faults + 1
    print(run.fault)
  end
end
print(("SIGTERM at %d random moments from exec to %.1f ms (ready) + 50 ms:"):format(
  count, ready * 1000))
print(("  %d before the handlers, %d while starting, %d when ready; %d wrong"):format(
  met["before handlers"] or 0, met.starting or 0, met.ready or 0, faults))
print(("  signal to exit: median %.1f ms, max %.1f ms"):format(
  stats.median(took) * 1000, stats.max(took) * 1000))
os.exit(faults == 0 and 0 or 1)
