--- The commands and their help: what a start needs none of.
local M = {}

--- Commands in the order of the help, each with its module and a line of summary.
M.list = {
  { "run", "run a script; `moontide app.lua` is the same" },
  { "check", "load a script without running it: errors, settings, budgets" },
  { "plan", "print the order of the phases and their budgets" },
  { "why", "say why one phase runs before another" },
  { "graph", "draw the phases for Mermaid or Graphviz" },
  { "report", "show what a process did at its start and its end" },
  { "status", "show a running process in one screen, or wait for its state" },
  { "console", "attach to a running process: Lua at a prompt" },
  { "eval", "run one piece of Lua in a running process" },
  { "tail", "print the log of a running process" },
  { "drain", "ask a running process to shut down, or what that would do" },
  { "healthcheck", "ask a running process whether it is ready" },
  { "version", "print the version" },
}

local HEAD = [[
moontide: a lifecycle host scripted in Lua

usage: moontide [run] [options] app.lua [arguments]
       moontide COMMAND [options]

commands:
]]

local TAIL = [[

examples:
  moontide app.lua                         run it until it is told to stop
  moontide --takeover app.lua              in the place of the one that runs
  moontide check --grace 60 --prestop 10 app.lua
  moontide plan app.lua
  moontide status --wait=ready             of the one that runs
  moontide console orders                  the one that is called so

`moontide COMMAND --help` says more. Exit codes: 0 done, 1 failed, 64 wrong
command line, 69 refused takeover or no such process, 78 the script or its settings
cannot be used, 124 out of time, 130 interrupted.
]]

--- The help of the program as a whole.
---@return string
function M.help()
  local lines = {}
  for _, command in ipairs(M.list) do
    lines[#lines + 1] = ("  %-12s %s"):format(command[1], command[2])
  end
  return HEAD .. table.concat(lines, "\n") .. "\n" .. TAIL
end

---@param word string
---@return boolean
function M.is_command(word)
  for _, command in ipairs(M.list) do
    if command[1] == word then return true end
  end
  return false
end

--- What to say about a word that is none.
---@param word string
---@return string
function M.unknown(word)
  local names = {}
  for i, command in ipairs(M.list) do names[i] = command[1] end
  return require("moontide.suggest").unknown("command", word, names)
end

return M
