--- `handles()`: the luv handles that scripts have open, by the line that made them.
local arguments = require "moontide.console.inspect.arguments"
local json = require "moontide.json"
local view = require "moontide.view"

local M = {}

local SPECS = { max = { default = 100, most = 1000 } }

local function by_site(handles)
  local groups, by_key = {}, {}
  for _, handle in ipairs(handles) do
    local key = handle.site .. "\0" .. handle.type
    local group = by_key[key]
    if not group then
      group = { site = handle.site, type = handle.type, open = 0, active = 0 }
      by_key[key] = group
      groups[#groups + 1] = group
    end
    group.open = group.open + 1
    if handle.active then group.active = group.active + 1 end
  end
  table.sort(groups, function(a, b)
    if a.open ~= b.open then return a.open > b.open end
    if a.site ~= b.site then return a.site < b.site end
    return a.type < b.type
  end)
  return groups
end

local function render(data)
  if not data.luv then return "no handles: no script has loaded luv" end
  local rows = {}
  for i, group in ipairs(data.sites) do
    rows[i] = { group.open, group.active, group.type, group.site }
  end
  return view.lines(view.count(data.total, "open handle"), #rows > 0
    and view.columns({ ">open", ">active", "type", "made at" }, rows) or nil,
    view.more(data.found - #rows))
end

--- Asking loads nothing: without luv there are none.
---@param opts { max: integer|nil }|nil
---@return { luv: boolean, total: integer, found: integer, sites: table[] }
function M.handles(opts)
  opts = arguments.options("handles", opts, SPECS)
  local uv = package.loaded["moontide.uv"]
  local handles = uv and uv.handles and uv.handles() or {}
  local groups = by_site(handles)
  local sites = json.array(table.move(groups, 1, math.min(#groups, opts.max), 1, {}))
  return view.new({
    luv = uv ~= nil, total = #handles, found = #groups, sites = sites,
  }, render)
end

return M
