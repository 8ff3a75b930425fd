--- Graphs for specs of the pure rooms.
local graph = require("moontide.pipeline.graph")
local phases = require("moontide.pipeline.phases")

local M = {}

--- The shutdown pipeline as the host makes it, without the hooks.
---@return tide.PhaseGraph
function M.shutdown()
  local g = graph.new({ kind = "shutdown", terminal = phases.terminal })
  for _, phase in ipairs(phases.shutdown) do g:builtin(phase.name, phase.opts) end
  return g
end

--- Declares `{ name, after }` or `{ name, opts }` rows, the n-th in line n of app.lua.
---@param g tide.PhaseGraph
---@param rows table[]
function M.declare(g, rows)
  for line, row in ipairs(rows) do
    local opts = row[2] or {}
    if type(opts) == "string" or #opts > 0 then opts = { after = opts } end
    g:phase(row[1], opts, "app.lua:" .. line)
  end
  return g
end

--- A sealed graph of its own phases.
---@param kind "startup"|"shutdown"
---@param rows table[]
function M.sealed(kind, rows)
  local g = M.declare(graph.new({ kind = kind }), rows)
  assert(not g:seal())
  return g
end

--- The order as one text.
---@param g tide.PhaseGraph
function M.order(g)
  local errors = g:seal()
  if errors then error(table.concat(errors, "\n"), 2) end
  return table.concat(g:order(), " ")
end

--- name -> place in the order.
function M.places(g)
  local at = {}
  for i, name in ipairs(g:order()) do at[name] = i end
  return at
end

return M
