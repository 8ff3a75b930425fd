--- `moontide plan`: the phases in their order, each with its time and where that is from.
local arguments = require("moontide.cli.arguments")
local duration = require("moontide.duration")
local view = require("moontide.view")

local M = {}

local HEAD = { "", "phase", "time", "tasks", "notes", "time from" }

local function parser()
  local p = arguments.add_script(arguments.parser("plan",
    "Prints the order in which the phases run, with the time of each and where it comes from.", {
      "moontide plan app.lua",
      "moontide plan --pipeline shutdown app.lua",
    }))
  p:option("--pipeline", "Only this one."):choices({ "startup", "shutdown" })
  return p
end

--- What is out of the ordinary about a phase.
local function notes(node)
  local list = {}
  if not node.enabled then list[#list + 1] = "disabled" end
  if node.mode ~= "parallel" then list[#list + 1] = node.mode end
  if node.recover == false then list[#list + 1] = "aborts" end
  if node.on_fail and node.on_fail ~= "exit" then list[#list + 1] = tostring(node.on_fail) end
  if node.always then list[#list + 1] = "always" end
  return table.concat(list, ", ")
end

local function task_names(pipeline, name)
  local names = {}
  for entry in pipeline.tasks[name]:each() do names[#names + 1] = entry.name end
  if #names == 0 then return "-" end
  return table.concat(names, " ")
end

local function print_plan(app, kind)
  local report, pipeline = app.budgets[kind], app[kind]
  io.stdout:write(("%s, total %s (%s)\n"):format(
    kind, duration.format(report.total), report.total_origin))
  local rows = {}
  for i, phase in ipairs(report.phases) do
    rows[i] = {
      ("%2d"):format(i), phase.name, phase.unbounded and "rest" or duration.format(phase.timeout),
      task_names(pipeline, phase.name), notes(pipeline.graph:get(phase.name)), phase.origin,
    }
  end
  if #rows == 0 then return io.stdout:write("  no phases\n") end
  io.stdout:write(view.columns(HEAD, rows, view.WHOLE), "\n")
end

---@param args string[]
---@return integer code
function M.main(args)
  local app, values = arguments.app(parser(), args)
  if not app then return values end
  for _, kind in ipairs({ "startup", "shutdown" }) do
    if not values.pipeline or values.pipeline == kind then print_plan(app, kind) end
  end
  return 0
end

return M
