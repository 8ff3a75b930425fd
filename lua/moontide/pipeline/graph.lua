--- A pipeline as a graph: phases, what they come after and before, and the order
--- that follows. Pure: no loop, no I/O, no idea of running.
---
---     local g = graph.new({ kind = "shutdown", terminal = "end" })
---     g:builtin("begin"); g:builtin("end")
---     g:phase("flush", { after = "begin" }, "app.lua:3")
---     local errors = g:seal()
---     g:order() --> { "begin", "flush", "end" }
---
--- A misuse of one call raises at once; what can only be judged when all phases
--- are known (a name that nobody defines, a cycle) is an error of `seal`.
local arrange = require("moontide.pipeline.arrange")
local options = require("moontide.pipeline.options")

local M = {}

---@class tide.PhaseNode
---@field name string
---@field number integer place in the declaration; in startup after `before` was heeded
---@field after string[]
---@field before string[]
---@field timeout number|nil seconds; infinite for "none"; nil: the pipeline's default
---@field timeout_origin string|nil "call app.lua:3", "config app.lua:1", "default"
---@field recover boolean shutdown
---@field on_fail "exit"|"warn"|tide.RetryPolicy startup
---@field mode "parallel"|"lifo"|"fifo"
---@field enabled boolean
---@field always boolean
---@field site string "file:line" of the definition, "built in"
---@field after_site string|nil where `after` was overridden
---@field builtin boolean
---@field chained boolean|nil built in, and not inserted

---@class tide.PhaseGraph
---@field kind "startup"|"shutdown"
---@field terminal string|nil
---@field nodes tide.PhaseNode[] in the order of declaration
---@field preceding tide.PhaseNode[] those with `before`
---@field loners tide.PhaseNode[] those defined with neither `after` nor `before`
---@field labels string[] names by number: with `numbers` and `waits` what the sort reads
---@field numbers table<string, integer>
---@field waits string[][] the names that each waits for
---@field inserted integer[] those that run by the insertion rule, once sealed
---@field warnings string[] of `seal`
---@field sealed boolean
local Graph = {}
Graph.__index = Graph

--- The default of `after` and `before`. Shared, so never written to.
local NONE = {}

---@param settings { kind: string, terminal: string|nil, sequential: boolean|nil }
---@return tide.PhaseGraph
function M.new(settings)
  assert(settings.kind == "startup" or settings.kind == "shutdown", "kind")
  return setmetatable({
    kind = settings.kind, terminal = settings.terminal,
    sequential = settings.sequential ~= false,
    nodes = {}, by_name = {}, builtins = {}, preceding = {}, loners = {}, warnings = {},
    labels = {}, numbers = {}, waits = {}, faults = {}, sealed = false,
  }, Graph)
end

local function located(site, message)
  return site and ("%s: %s"):format(site, message) or message
end

local function refuse(site, message, ...)
  -- Level 0: the place to look at is in the script, not here.
  error(located(site, message:format(...)), 0)
end

local function check_name(graph, name, site)
  if graph.sealed then
    refuse(site, "the %s pipeline is sealed: define phases before it starts", graph.kind)
  end
  if type(name) ~= "string" or name == "" then
    refuse(site, "a phase has a name, not %s", name == "" and "an empty one" or tostring(name))
  end
  local present = graph.by_name[name]
  if not present then return end
  if present.builtin then
    refuse(site, "phase \"%s\" is built in: add tasks to it, or change it in"
      .. " tide.config under %s.phases[\"%s\"]", name, graph.kind, name)
  end
  refuse(site, "phase \"%s\" is already defined at %s", name, present.site)
end

local function add(graph, name, opts, site)
  check_name(graph, name, site)
  local number, is_shutdown = #graph.nodes + 1, graph.kind == "shutdown"
  -- With a place for each field that most have in the end, so that it never grows.
  local node = {
    name = name, number = number, after = NONE, before = NONE, mode = "parallel", enabled = true,
    always = false, site = site or "?", builtin = nil, recover = is_shutdown or nil,
    on_fail = not is_shutdown and "exit" or nil, timeout = nil, timeout_origin = nil,
    effective = nil,
  }
  local message = options.read(graph.kind, node, opts)
  if message then refuse(site, "phase \"%s\": %s", name, message) end
  graph.nodes[number], graph.by_name[name] = node, node
  graph.labels[number], graph.numbers[name], graph.waits[number] = name, number, node.after
  if node.before[1] then
    table.insert(graph.preceding, node)
  elseif not node.after[1] then
    table.insert(graph.loners, node)
  end
  return node
end

--- Defines a phase of the script's.
---@param name string
---@param opts table|nil
---@param site string|nil "file:line"
---@return tide.PhaseNode
function Graph:phase(name, opts, site)
  local node = add(self, name, opts, site)
  node.builtin = false
  if node.timeout then node.timeout_origin = "call " .. node.site end
  return node
end

local function set_after(graph, node, names)
  node.after, graph.waits[node.number] = names, names
end

--- Defines a phase of moontide's. Without `after` it follows the built-in phase
--- before it; with `after` it is inserted there as a phase of the script's is.
---@param name string
---@param opts table|nil
---@return tide.PhaseNode
function Graph:builtin(name, opts)
  local node = add(self, name, opts, nil)
  node.builtin, node.site = true, "built in"
  table.insert(self.builtins, node)
  if node.timeout then node.timeout_origin = "default" end
  if node.after == NONE then
    node.chained = true
    if self.last_chained then set_after(self, node, { self.last_chained }) end
    self.last_chained = name
  end
  return node
end

--- Names the phase that is pinned last.
---@param name string
function Graph:set_terminal(name)
  self.terminal = name
end

---@param name string
---@return tide.PhaseNode|nil
function Graph:get(name)
  return self.by_name[name]
end

--- The names of all phases in the order of declaration: for messages.
---@return string[]
function Graph:names()
  local names = {}
  for i, node in ipairs(self.nodes) do names[i] = node.name end
  return names
end

--- A phase by its name, or by the spelling that an environment variable allows.
local function find_loosely(graph, name)
  if graph.by_name[name] then return graph.by_name[name] end
  local wanted = name:lower():gsub("_", "-")
  for _, node in ipairs(graph.nodes) do
    if node.name:lower():gsub("_", "-") == wanted then return node end
  end
end

local function override(graph, node, field, value, origin)
  node[field] = value
  if field == "timeout" then node.timeout_origin = origin end
  if field == "after" then
    set_after(graph, node, value)
    node.after_site = origin
  end
end

--- Applies `startup.phases.NAME` or `shutdown.phases.NAME` of the settings. Call it
--- when all phases are defined, before `seal`, which reports names nobody defines.
---@param config table `moontide.config`
function Graph:configure(config)
  local group = self.kind .. ".phases"
  local chosen, names = config.named(group), {}
  for name in pairs(chosen) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local node = find_loosely(self, name)
    for field, value in pairs(chosen[name]) do
      local origin = config.origin(("%s.%s.%s"):format(group, name, field))
      if node then
        override(self, node, field, value, origin)
      else
        local message = require("moontide.suggest").unknown("phase", name, self:names())
        self.faults[#self.faults + 1] = ("%s: %s: %s"):format(origin, group, message)
      end
    end
  end
end

--- Gives a phase another timeout.
---@param name string
---@param timeout tide.Duration|"none"
---@param site string|nil
function Graph:set_timeout(name, timeout, site)
  local node = self.by_name[name]
  if not node then
    refuse(site, "%s", require("moontide.suggest").unknown("phase", name, self:names()))
  end
  local message = options.read(self.kind, node, { timeout = timeout })
  if message then refuse(site, "phase \"%s\": %s", name, message) end
  node.timeout_origin = site and "call " .. site or "call"
end

--- Ends the definition: every name must be known, and there must be an order.
---@return string[]|nil errors nil when there are none
function Graph:seal()
  if self.sealed then return nil end
  local errors = self.faults
  self.faults = {}
  self.arranged = arrange.arrange(self, errors)
  if #errors > 0 then return errors end
  self.sealed = true
end

---@return string[] names the order in which the phases run; only when sealed
function Graph:order()
  assert(self.sealed, "the graph is not sealed")
  return self.arranged
end

--- The phases that must be over before this one begins, in the order of the plan.
---@param name string
---@return string[] names
function Graph:dependencies(name)
  assert(self.sealed, "the graph is not sealed")
  return require("moontide.pipeline.explain").dependencies(self, name)
end

--- The edges that put `a` before `b`, a shortest chain of them.
---@param a string
---@param b string
---@return tide.PhaseEdge[]|nil chain
---@return string? message why there is none
function Graph:why(a, b)
  assert(self.sealed, "the graph is not sealed")
  return require("moontide.pipeline.explain").why(self, a, b)
end

---@return string text the graph for Mermaid
function Graph:mermaid()
  return require("moontide.pipeline.explain").mermaid(self)
end

---@return string text the graph for Graphviz
function Graph:dot()
  return require("moontide.pipeline.explain").dot(self)
end

return M
