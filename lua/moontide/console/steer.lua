--- Control with preview: what somebody does to the running process from the console. Each of it is
--- asked for with a reason, which goes to the audit and to the exit report.

local core = require "moontide.core"
local duration = require "moontide.duration"
local intervention = require "moontide.console.intervention"
local suggest = require "moontide.suggest"
local targets = require "moontide.console.targets"
local text_of = require "moontide.text"
local view = require "moontide.view"

local time = duration.rounded

local M = {}

-- A result that is data, and is shown as its text.
local function result_of(fields)
  return view.new(fields, function(data) return data.text end)
end

-- ---- drain --------------------------------------------------------------------------------------

local DRAIN = "drain { reason = \"deploy of 1.2\" } shuts the process down, drain { dry = true } "
  .. "only shows what would happen"
local DRAIN_OPTIONS = { "dry", "reason" }

local function check_drain(opts)
  if type(opts) ~= "table" then error("drain: a table is wanted: " .. DRAIN, 0) end
  for key in pairs(opts) do
    if key ~= "dry" and key ~= "reason" then
      error("drain: " .. suggest.unknown("option", tostring(key), DRAIN_OPTIONS), 0)
    end
  end
  if opts.dry ~= nil and type(opts.dry) ~= "boolean" then
    error("drain: dry is true or false: " .. DRAIN, 0)
  end
end

local function start_drain(session, reason)
  local shutdown = require "moontide.shutdown"
  local first, since = shutdown.reason, shutdown.started_at
  intervention.note(session, "drain", nil, reason)
  shutdown:run(require("moontide.reason").new("console", {
    text = reason, pid = session.pid, uid = session.uid,
  }))
  if not first then return "the shutdown has begun" end
  return ("a shutdown was under way for %s already, %s; this reason is recorded beside it"):format(
    time(core.clock.now() - since), tostring(first))
end

-- What `drain` comes to, as text and as data.
local function drain(session, opts)
  check_drain(opts)
  local plans = require "moontide.console.drain_plan"
  if opts.dry then
    local plan = plans.make()
    return result_of { text = plans.text(plan), plan = plan, started = false }
  end
  if session.policy ~= "eval" then
    error("drain: the policy is inspect, so that it can only be looked at: drain { dry = true }", 0)
  end
  local reason = intervention.reason(opts.reason, DRAIN)
  local said = start_drain(session, reason)
  local plan = plans.make()
  return result_of { text = ("%s: %s"):format(said, plans.line(plan)), plan = plan, started = true }
end

--- `drain { reason = "..." }`: shuts the process down; with `dry = true` shows what would happen.
---@param session moontide.console.Session
---@param opts { reason: string|nil, dry: boolean|nil }
---@return table
function M.drain(session, opts)
  return drain(session, opts)
end

--- The request `drain`.
---@param session moontide.console.Session
---@param request { reason: string|nil, dry: boolean|nil }
---@param reply moontide.console.Reply
function M.request(session, request, reply)
  local ok, result = pcall(drain, session, { reason = request.reason, dry = request.dry })
  if not ok then return reply:refuse(tostring(result), "error") end
  -- Names and reasons are a script's, and may move a terminal's cursor.
  reply:value { text = text_of.repair(result.text):gsub("[^%C\n]", "?"), plan = result.plan }
  reply:done()
end

-- ---- checks -------------------------------------------------------------------------------------

local RETRY = "retry(\"db\", \"the network is back\")"

local function find_check(name)
  local readiness = package.loaded["moontide.readiness"]
  local checks = readiness and readiness.all() or {}
  if type(name) == "string" and checks[name] then return checks[name] end
  local heartbeat = package.loaded["moontide.heartbeat"]
  if heartbeat and heartbeat.all()[name] then
    error(("retry: %s is a heartbeat: nothing can be run, it waits for its worker"):format(name), 0)
  end
  if type(name) ~= "string" then
    error("retry: the name of a readiness check is wanted: " .. RETRY, 0)
  end
  error("retry: " .. suggest.unknown("check", name, suggest.names(checks)), 0)
end

local function check_text(check, result)
  local text = ("check %s is %s after %s"):format(check.name, result.ok and "ok" or "not ok",
    time(result.seconds))
  if not result.ok then text = ("%s: %s"):format(text, result.message) end
  if check.ok == result.ok then return text end
  local what, needed, had = "successes", check.opts.successes, check.good
  if not result.ok then what, needed, had = "failures", check.opts.failures, check.bad end
  return ("%s\nserved is still %s: it turns with %d %s in a row, this was number %d"):format(text,
    check.ok and "ok" or "not ok", needed, what, had)
end

--- `retry("check", "reason")`: runs a readiness check now.
---@async
---@param session moontide.console.Session
---@param name string
---@param reason string
---@return table
function M.retry(session, name, reason)
  local check = find_check(name)
  reason = intervention.reason(reason, RETRY)
  intervention.note(session, "retry", name, reason)
  local result, message = check:run_now()
  if not result then error(("retry: check %s: %s"):format(name, message), 0) end
  return result_of {
    text = check_text(check, result), ok = result.ok, served = check.ok, message = result.message,
    seconds = result.seconds,
  }
end

-- ---- skip ---------------------------------------------------------------------------------------

local SKIP = "skip(\"service-stop/flush\", \"the disk is gone\")"

-- The last phase ends what is left of the process; without it the end has no order.
local function refuse_last(target)
  local node = target.run.graph:get(target.tasks.name)
  if not node.always then return end
  if not target.entry then
    error(("skip: phase %s always runs: it ends what is left"):format(target.name), 0)
  elseif target.entry.builtin then
    error(("skip: %s is the host's own last step and has its own limits"):format(target.name), 0)
  end
end

--- `skip("task or phase", "reason")`: the pipeline goes on without it.
---@param session moontide.console.Session
---@param name string
---@param reason string
---@return table
function M.skip(session, name, reason)
  local target = targets.find("skip", name, SKIP)
  reason = intervention.reason(reason, SKIP)
  refuse_last(target)
  local skip = require "moontide.pipeline.skip"
  local item = target.entry or target.tasks
  if item.state == "done" or item.status == "done" or item.status == "skipped" then
    error(("skip: %s is over: %s"):format(target.name, targets.ended(item)), 0)
  end
  intervention.note(session, "skip", target.name, reason)
  local words = intervention.words(session, reason)
  local message = target.entry and skip.entry(target.tasks, target.entry, words)
    or skip.phase(target.tasks, words)
  return result_of { text = ("%s of the %s is skipped: %s"):format(target.name, target.run.kind,
    message), target = target.name, pipeline = target.run.kind }
end

-- ---- extend -------------------------------------------------------------------------------------

local EXTEND = "extend(\"service-requests-done\", \"5s\", \"a large upload\")"

local function refuse_extension(target)
  local name, tasks = target.name, target.tasks
  if target.entry then
    error(("extend: %s is a task; its phase is given more: extend(\"%s\", ...)"):format(name,
      tasks.name), 0)
  elseif tasks.status == "done" or tasks.status == "skipped" then
    error(("extend: phase %s is over: %s"):format(name, targets.ended(tasks)), 0)
  elseif require("moontide.pipeline.extend").is_unbounded(target.run, name) then
    error(("extend: phase %s has all the time that the total leaves"):format(name), 0)
  end
end

local function check_room(target, seconds)
  local room = require("moontide.pipeline.extend").room(target.run, target.name)
  if seconds <= room then return end
  local fits = math.floor(room * 1000) / 1000
  error(("extend: the total of %s leaves phase %s %s: %s"):format(time(target.run.total),
    target.name, fits > 0 and ("at most %s more"):format(time(fits)) or "nothing more",
    fits > 0 and ("extend(\"%s\", \"%s\", ...)"):format(target.name, time(fits))
      or "skip what it waits for, or let it end"), 0)
end

local function extended_text(target, seconds, taken, unmoved)
  local extend = require "moontide.pipeline.extend"
  local node = target.run.graph:get(target.name)
  local parts = { ("phase %s has %s, %s more: %s"):format(target.name, time(node.effective),
    time(seconds), extend.words(taken)) }
  if #unmoved > 0 then
    parts[2] = ("not longer: %s (its own timeout, or over)"):format(table.concat(unmoved, ", "))
  end
  parts[#parts + 1] = ("the total stays: it ends in %s"):format(
    time(math.max(0, target.run.total_end - core.clock.now())))
  return table.concat(parts, "\n")
end

--- `extend("phase", "5s", "reason")`: more time, of what the total has.
---@param session moontide.console.Session
---@param name string
---@param d tide.Duration
---@param reason string
---@return table
function M.extend(session, name, d, reason)
  local target = targets.find("extend", name, EXTEND)
  local seconds, message = duration.parse(d, "extend")
  if not seconds then error(("%s: %s"):format(message, EXTEND), 0) end
  if seconds == 0 then error("extend: 0 more changes nothing: " .. EXTEND, 0) end
  reason = intervention.reason(reason, EXTEND)
  refuse_extension(target)
  check_room(target, seconds)
  intervention.note(session, "extend", ("%s by %s"):format(name, time(seconds)), reason)
  local taken, unmoved = require("moontide.pipeline.extend").extend(target.run, name, seconds)
  return result_of { text = extended_text(target, seconds, taken, unmoved), phase = name,
    seconds = seconds, taken = taken, unmoved = unmoved }
end

return M
