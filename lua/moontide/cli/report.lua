--- `moontide report`: an exit report as text, or as an SVG timeline.
local arguments = require("moontide.cli.arguments")
local cli = require("moontide.cli")
local core = require("moontide.core")
local stored = require("moontide.observe.report.stored")

local M = {}

local function parser()
  local p = arguments.parser("report",
    "Shows what a process did at its start and its end: every phase and task with its outcome and "
    .. "its time, and what the end waited for.", {
      "moontide report --name orders",
      "moontide report /var/lib/orders/reports",
      "moontide report --svg timeline.svg report-20261130T203417.137Z-7.json",
    })
  p:argument("path", "A report, or a directory of reports, of which the newest is taken. Default: "
    .. "where a process of this name writes them (MOONTIDE_REPORT__DIR, else \"reports\" in its "
    .. "state directory)."):args("?")
  p:option("--name", "The name of the process, for the default directory.")
  p:flag("--list", "Print the paths of the reports, the newest last.")
  p:option("--svg", "Write a timeline to this file; - is standard output."):argname("FILE")
  return p
end

local function failed(message)
  io.stderr:write("moontide: ", message, "\n")
  return 1
end

-- Where a process with these settings in its environment leaves its reports.
local function default_dir(name)
  local config = require("moontide.config")
  config.load_env(core.host.environ())
  if name then config.override("name", name, "command line --name") end
  return require("moontide.observe.report").dir()
end

-- The reports that are meant, oldest first.
local function find(values)
  local path = values.path
  if not path then
    path = default_dir(values.name)
    if not path then
      return nil, "no directory to look in: name one, or set HOME or MOONTIDE_REPORT__DIR"
    end
  end
  local paths = stored.list(path)
  if not paths and values.path then return { path } end
  if not paths or #paths == 0 then
    return nil, ("%s: no reports there%s"):format(path, values.path and "" or
      " (a process writes them when report.dir or its state directory is set; --name says whose)")
  end
  return paths
end

local function write_file(path, text)
  if path == "-" then
    io.stdout:write(text)
    return true
  end
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  local written
  written, message = file:write(text)
  local closed, close_message = file:close()
  if written and closed then return true end
  return nil, ("%s: %s"):format(path, message or close_message)
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = arguments.parse(parser(), args)
  if not values then return code end
  if values.list and values.svg then return cli.wrong("--list and --svg do not go together") end
  local paths, message = find(values)
  if not paths then return failed(message) end
  if values.list then
    io.stdout:write(table.concat(paths, "\n"), "\n")
    return 0
  end
  local report
  report, message = stored.read(paths[#paths])
  if not report then return failed(message) end
  if not values.svg then
    io.stdout:write(require("moontide.observe.report.readable").text(report))
    return 0
  end
  local written
  written, message = write_file(values.svg, require("moontide.observe.report.timeline").svg(report))
  return written and 0 or failed(message)
end

return M
