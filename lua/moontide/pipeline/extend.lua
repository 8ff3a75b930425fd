--- Gives a phase of a running pipeline more time: somebody asks for it from outside. Loaded when
--- that happens.
--
-- The total does not change, nor does the watchdog that enforces it: what one phase gets is taken
-- from what the total has to spare, then from the phases that come last.

local core = require "moontide.core"
local duration = require "moontide.duration"
local postpone = require "moontide.task.postpone"

local now = core.clock.now

local M = {}

-- What a phase can take of the total: what it was given, with its retries.
local function worst_of(node)
  local seconds = node.effective or node.timeout
  if not seconds or seconds == math.huge or node.enabled == false then return 0 end
  if type(node.on_fail) == "table" then return node.on_fail:worst_case(seconds) end
  return seconds
end

-- What is left to a phase that runs, or what one will have that has not begun.
local function need_of(run, name)
  local tasks, node = run.registry[name], run.graph:get(name)
  if tasks.status == "running" then
    local at = tasks.run and tasks.run.deadline
    return at and math.max(0, at - now()) or worst_of(node)
  end
  if tasks.status ~= "pending" or tasks.asked or tasks.live == 0 then return 0 end
  return worst_of(node)
end

---@class moontide.Taken
---@field name string|nil the phase; nil: what the total had to spare
---@field seconds number
---@field uncertain boolean|nil nobody has less: it is there if the phases before take less

-- The phase to come that has all that the total leaves, if there is one with something to do.
local function has_the_rest(run, order, from)
  for i = from + 1, #order do
    local tasks = run.registry[order[i]]
    local waits = tasks.status == "pending" and tasks.live > 0 and not tasks.asked
    if waits and M.is_unbounded(run, order[i]) then return order[i] end
  end
end

-- What each phase needs, by name, and what of the total nobody does.
local function needs_of(run, order)
  local needs, sum = {}, 0
  for _, name in ipairs(order) do
    needs[name] = need_of(run, name)
    if not run.graph:get(name).always then sum = sum + needs[name] end
  end
  return needs, math.max(0, run.total_end - run.reserve - now() - sum)
end

local function place_of(order, name)
  for i, other in ipairs(order) do
    if other == name then return i end
  end
end

--- Who would have less, were a phase given so much more: first nobody, then those that come last,
--- for the end of the total cuts them off. The last phase of all has its own part of the total.
---@param run moontide.Run
---@param name string
---@param seconds number
---@return moontide.Taken[]
function M.takes(run, name, seconds)
  local order, taken, lack = run.graph:order(), {}, seconds
  local needs, spare = needs_of(run, order)
  local function take(from, most, uncertain)
    local part = math.min(lack, most)
    if part < 0.0005 then return end
    taken[#taken + 1] = { name = from, seconds = part, uncertain = uncertain }
    lack = lack - part
  end
  local place = place_of(order, name)
  take(has_the_rest(run, order, place), spare)
  for i = #order, place + 1, -1 do
    if not run.graph:get(order[i]).always then take(order[i], needs[order[i]]) end
  end
  take(nil, lack, true)
  return taken
end

-- Until when the phase lasts as things are; with a retry policy, the attempts that run now.
local function lasts_till(tasks, node)
  local phase_run = tasks.status == "running" and tasks.run
  if not phase_run then return now() + worst_of(node) end
  if not phase_run.per_attempt then return phase_run.deadline end
  local till = now()
  for _, entry in ipairs(phase_run.list) do
    if entry.state == "running" then till = math.max(till, entry.deadline or till) end
  end
  return till
end

--- How much more a phase can be given, in seconds: until the total ends for it.
---@param run moontide.Run
---@param name string
---@return number
function M.room(run, name)
  local node = run.graph:get(name)
  return math.max(0, run:limit_for(node) - lasts_till(run.registry[name], node))
end

--- Whether the phase has no time of its own, but all that the total leaves.
---@param run moontide.Run
---@param name string
---@return boolean
function M.is_unbounded(run, name)
  local node = run.graph:get(name)
  return (node.effective or node.timeout or math.huge) == math.huge
end

-- A task that runs: what it has of the phase moves with it.
local function extend_entry(entry, seconds, last)
  local t = entry.task
  local at = entry.deadline
  if not at or entry.limit == "its own timeout" then return false end
  at = at + seconds
  if entry.own_timeout then at = math.min(at, entry.started_at + entry.own_timeout) end
  if last then at = math.min(at, last) end
  if t and not t.outcome and not postpone.to(t, at) then return false end
  entry.deadline = at
  return true
end

-- Moves the end of a phase that runs. Returns the tasks that do not get more by that.
local function extend_running(phase_run, seconds, last)
  local unmoved = {}
  local retry_end = phase_run.retry_end
  if retry_end then phase_run.retry_end = math.min(retry_end + seconds, last) end
  if phase_run.deadline then phase_run.deadline = phase_run.deadline + seconds end
  for _, entry in ipairs(phase_run.list) do
    if entry.state == "running"
      and not extend_entry(entry, seconds, phase_run.retry_end) then
      unmoved[#unmoved + 1] = entry.name
    end
  end
  return unmoved
end

--- Gives a phase that runs, or has not begun, so much more. The caller has asked for `room`.
---@param run moontide.Run
---@param name string
---@param seconds number
---@return moontide.Taken[] taken
---@return string[] unmoved tasks that keep the time they have: it is their own, or it is over
function M.extend(run, name, seconds)
  local tasks, node = run.registry[name], run.graph:get(name)
  local taken = M.takes(run, name, seconds)
  node.effective = (node.effective or node.timeout) + seconds
  node.extended = (node.extended or 0) + seconds
  if tasks.status ~= "running" then return taken, {} end
  return taken, extend_running(tasks.run, seconds, run:limit_for(node))
end

--- What was taken from whom, in words.
---@param taken moontide.Taken[]
---@return string
function M.words(taken)
  local parts = {}
  for i, part in ipairs(taken) do
    local time = duration.rounded(part.seconds)
    parts[i] = part.uncertain and time .. " if the phases before take less than they may"
      or part.name and ("at worst %s of %s"):format(time, part.name)
      or time .. " that the total had to spare"
  end
  return table.concat(parts, ", ")
end

return M
