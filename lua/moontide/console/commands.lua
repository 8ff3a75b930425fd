--- What one can type at the console beside Lua: every command with its signature and its help.
--
-- Only the table is made here; a command's module is loaded when it is called. The environment of
-- evaluations finds the commands here, and so do completion, help and the policy: `needs` says
-- what a session must be allowed, "inspect" for what only reads.

local M = {}

---@class moontide.console.Command
---@field name string
---@field signature string as one types it
---@field help string one line
---@field needs "inspect"|"eval"
---@field fn fun(session: moontide.console.Session, ...: any): ...

-- A function of a module of the console, loaded when it is called.
local function of(module, name)
  return function(...) return require("moontide.console." .. module)[name](...) end
end

-- The same for one that does not ask who is calling.
local function looks(name)
  return function(_, ...) return require("moontide.console.inspect")[name](...) end
end

local function command(name, signature, needs, fn, help)
  return { name = name, signature = signature, needs = needs, fn = fn, help = help }
end

---@type moontide.console.Command[]
M.list = {
  command("help", "help(name)", "inspect", of("help", "show"),
    "what there is, or what is known of a name"),
  command("status", "status()", "inspect", looks "status",
    "the process in one screen: state, uptime, requests, checks"),
  command("why", "why()", "inspect", looks "why",
    "why it is not ready, or what the shutdown waits for"),
  command("tasks", "tasks { max = 100, find = \"word\" }", "inspect", looks "tasks",
    "the tree of tasks: state, what each waits for, age, where it was spawned"),
  command("where", "where(id)", "inspect", looks "where",
    "the stack of a task, across what it awaits"),
  command("ended", "ended { max = 50, find = \"word\", outcome = \"failed\" }", "inspect",
    of("inspect", "ended"),
    "the tasks that ended last: outcome, and who cancelled them"),
  command("phases", "phases()", "inspect", looks "phases",
    "the phases of both pipelines: budget, used, left"),
  command("checks", "checks()", "inspect", looks "checks",
    "the readiness checks and heartbeats with their last result"),
  command("handles", "handles()", "inspect", looks "handles",
    "what holds the loop, by who made it"),
  command("conns", "conns { max = 50, listener = \"name\" }", "inspect", looks "conns",
    "the connections of the listeners and what each is doing"),
  command("work", "work()", "inspect", looks "work",
    "what is in flight, by kind: what a drain waits for"),
  command("mem", "mem()", "inspect", looks "mem", "memory of Lua and of the process"),
  command("loop", "loop()", "inspect", looks "loop", "the lag of the event loop"),
  command("timers", "timers()", "inspect", looks "timers", "what is due, and when"),
  command("config", "config(key)", "inspect", looks "config",
    "the settings, and where each comes from"),
  command("sessions", "sessions()", "inspect", of("about", "sessions"),
    "who else looks in"),
  command("trace", "trace(\"module.fn\", { max = 20, per = \"1s\" })", "eval", of("trace", "trace"),
    "shows the calls of a function, or a phase, task or check as it moves"),
  command("watch", "watch(\"expression\", \"500ms\", 10)", "eval", of("watch", "watch"),
    "evaluates an expression again and again and shows when it changes"),
  -- Only to look is for everybody; the rest it refuses itself.
  command("drain", "drain { dry = true } or drain { reason = \"...\" }", "inspect",
    of("steer", "drain"),
    "shows what a shutdown by the pipeline would do, or begins it"),
  command("retry", "retry(\"check\", \"reason\")", "eval", of("steer", "retry"),
    "runs a readiness check now"),
  command("skip", "skip(\"task or phase\", \"reason\")", "eval", of("steer", "skip"),
    "ends a task of the pipeline as skipped, so that the pipeline goes on"),
  command("extend", "extend(\"phase\", \"5s\", \"reason\")", "eval", of("steer", "extend"),
    "gives a phase more of the pipeline's total"),
}

local by_name

--- The command of a name, or nil.
---@param name string
---@return moontide.console.Command|nil
function M.find(name)
  if not by_name then
    by_name = {}
    for _, item in ipairs(M.list) do by_name[item.name] = item end
  end
  return by_name[name]
end

return M
