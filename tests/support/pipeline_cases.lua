--- Runs a "run" case of tests/data/pipeline-cases.json on the engine: phases and tasks as data, as
--- the file's notation says.
local lifecycle = require "support.lifecycle"

local M = {}

---@class test.CaseRun
---@field life test.Life
---@field emits string[]
---@field handles table<string, table> by task name, and "#0", "#1" by order
---@field added { [1]: any, [2]: string }[] what late registrations returned
---@field reasons table[] what each task saw

local function sorted(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local actions = {}

function actions.emit(run, text) run.emits[#run.emits + 1] = text end
function actions.sleep(run, ms) run.life.tide.sleep(tonumber(ms) / 1000) end
function actions.fail(run, text)
  run.life.tide.sleep(0)
  error(text, 0)
end
function actions.throw(_, text) error(text, 0) end
function actions.hang() require("moontide.task").waiter("nothing"):wait() end
function actions.cancel(run, name) run.cancelled[name] = run.handles[name]:cancel() end

local add

local function perform(run, action)
  if type(action) == "table" then
    local handle, message = add(run, action.add)
    run.added[#run.added + 1] = { handle, message }
    return
  end
  local verb, rest = action:match "^(%a+):?(.*)$"
  actions[verb](run, rest)
end

function add(run, spec)
  local function body(reason)
    run.reasons[#run.reasons + 1] = reason
    for _, action in ipairs(spec["do"]) do perform(run, action) end
  end
  local handle, message = run.life.tide.shutdown:task(spec.phase, spec.name, body)
  run.handles[spec.name] = handle
  return handle, message
end

local function declare(run, phases)
  local shutdown = run.life.tide.shutdown
  for _, name in ipairs(sorted(phases)) do
    local opts = phases[name]
    shutdown:phase(name, {
      after = opts.after, timeout = (opts.timeout_ms or 10000) / 1000, recover = opts.recover,
      enabled = opts.enabled, always = opts.always,
    })
  end
end

--- Prepares a case: phases declared, tasks registered, nothing run.
---@return test.CaseRun
function M.prepare(case)
  local run = { emits = {}, handles = {}, added = {}, reasons = {}, cancelled = {} }
  run.life = lifecycle.new(function(tide, life)
    run.life = life
    tide.config { shutdown = { timeout = 60 } }
    life.alive = true -- something of the script keeps it up until the case runs
    declare(run, case.phases or {})
    for i, spec in ipairs(case.tasks or {}) do
      run.handles["#" .. i - 1] = add(run, spec)
    end
    for _, action in ipairs(case.before_run or {}) do perform(run, action) end
  end)
  return run
end

--- Runs it to its end (or for a minute of virtual time).
function M.finish(run, what)
  run.before = run.life.tide.shutdown.reason
  local list = what and what[1] and what or { what or {} }
  for _, one in ipairs(list) do
    run.completion = run.life.tide.shutdown:run { reason = one.reason, from = one.from }
    run.life:turn()
  end
  run.started = run.life.tide.now()
  run.life:advance(60)
  return run
end

--- Prepares and runs.
function M.run(case)
  return M.finish(M.prepare(case), case.run)
end

return M
