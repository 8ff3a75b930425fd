--- `moontide check`: what is wrong with a script, what is set, and whether it fits.
local arguments = require("moontide.cli.arguments")
local fits = require("moontide.pipeline.fit")
local cli = require("moontide.cli")
local duration = require("moontide.duration")
local view = require("moontide.view")

local M = {}

local function parser()
  local p = arguments.add_script(arguments.parser("check",
    "Loads a script without running it. Prints every error with its place, the settings with"
      .. " where they come from, the listeners with what they set themselves, and what startup"
      .. " and shutdown can take. Exits with 78 when the script cannot be used, or does not fit"
      .. " the grace period.", {
      "moontide check app.lua",
      "moontide check --grace 60 --prestop 10 app.lua",
      "moontide check --quiet --set shutdown.linger=10s app.lua",
    }))
  p:option("--grace", "Grace period of the platform: \"60\" or \"1m\"."):argname("S")
  p:option("--prestop", "What a preStop hook takes of it."):argname("S")
  p:flag("-q --quiet", "Print only what is wrong.")
  return p
end

--- A duration from the command line, where a bare number is seconds.
local function seconds(values, key)
  local text = values[key]
  if not text then return nil end
  local parsed, message = duration.parse(tonumber(text) or text, "--" .. key)
  if parsed then return parsed end
  return nil, cli.wrong(message)
end

local function print_settings(app)
  local rows = {}
  for key, value, origin in app.config.explain() do rows[#rows + 1] = { key, value, origin } end
  io.stdout:write("settings:\n", view.columns({ "", "", "" }, rows, view.WHOLE), "\n")
end

local function print_listeners()
  local http = package.loaded["moontide.http"]
  if not (http and http.has_listener()) then return end
  local rows = require("moontide.cli.listeners").rows(http.servers)
  io.stdout:write("listeners:\n", view.columns({ "", "", "" }, rows, view.WHOLE), "\n")
end

local function print_pipeline(app, kind)
  local report, graph = app.budgets[kind], app[kind].graph
  local path = fits.critical_path(graph, report)
  io.stdout:write(("%s: %d phases, total %s (%s)\n"):format(
    kind, #report.phases, duration.format(report.total), report.total_origin))
  io.stdout:write(("  worst case     %s%s\n"):format(duration.format(report.worst_case),
    report.worst_case > report.total and ", cut off by the total" or ""))
  io.stdout:write(("  critical path  %s: %s\n"):format(duration.format(path.seconds),
    #path.names > 0 and table.concat(path.names, " -> ") or "no phases"))
end

--- Whether the shutdown fits what the command line says, or else the settings.
local function check_grace(app, grace, prestop)
  grace = grace or app.config.get("shutdown.grace")
  if not grace then return true end
  prestop = prestop or app.config.get("shutdown.prestop") or 0
  local fit = fits.fits(app.budgets.shutdown, grace, prestop)
  local out = fit.fits and io.stdout or io.stderr
  out:write(fit.fits and "" or "moontide: ", "shutdown ", fit.message, "\n")
  for _, message in ipairs(fit.warnings) do io.stderr:write("warning: ", message, "\n") end
  return fit.fits
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = arguments.parse(parser(), args)
  if not values then return code end
  local grace, prestop
  grace, code = seconds(values, "grace")
  if code then return code end
  prestop, code = seconds(values, "prestop")
  if code then return code end
  if prestop and not grace then return cli.wrong("--prestop counts only with --grace") end
  local app
  app, code = arguments.describe(values)
  if not app then return code end
  if not values.quiet then
    print_settings(app)
    print_listeners()
    print_pipeline(app, "startup")
    print_pipeline(app, "shutdown")
  end
  for _, message in ipairs(app.warnings) do io.stderr:write("warning: ", message, "\n") end
  if not check_grace(app, grace, prestop) then return cli.CONFIG end
  if not values.quiet then io.stdout:write(values.script, ": ok\n") end
  return 0
end

return M
