--- `conns()`: the connections of each listener, those with a request first.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local json = require "moontide.json"
local suggest = require "moontide.lazy" "moontide.suggest"
local view = require "moontide.view"

local M = {}

local SPECS = { max = { default = 50, most = 1000 }, listener = "text" }

---@class moontide.inspect.Connection
---@field state "idle"|"head"|"handler"|"write"|"upgraded"|"closing"
---@field peer string
---@field age number seconds since it was accepted
---@field served integer requests begun
---@field written integer bytes
---@field queued integer bytes that its client has not taken yet
---@field method string|nil of the request in flight
---@field path string|nil
---@field request_age number|nil seconds
---@field sent integer|nil bytes of its answer
---@field received integer|nil bytes of its body

--- The listeners, the management listener last; empty without HTTP.
---@return moontide.Server[]
function M.servers()
  local http, manage = package.loaded["moontide.http"], package.loaded["moontide.http.manage"]
  local list = table.move(http and http.servers or {}, 1, http and #http.servers or 0, 1, {})
  list[#list + 1] = manage and manage.server or nil
  return list
end

local function address_of(server)
  local ok, address = pcall(server.address, server)
  return ok and address ~= "" and address or "not bound"
end

--- A listener as plain data; `most` connections are looked at.
---@param server moontide.Server
---@param most integer
---@return table
function M.of(server, most)
  local list, count = require("moontide.core.look").conns(server.listener, most)
  local busy, in_flight = core.http.counts(server.listener)
  return {
    name = server.name, address = address_of(server), connections = count, busy = busy,
    in_flight = in_flight, list = json.array(list),
  }
end

local function select_servers(name)
  local servers, names = M.servers(), {}
  if not name then return servers end
  for i, server in ipairs(servers) do
    if server.name == name then return { server } end
    names[i] = server.name
  end
  error("conns: " .. suggest.unknown("listener", name, names), 0)
end

local function request_text(row)
  if not row.method then return "-" end
  return ("%s %s, %s"):format(row.method, view.cut(row.path, 40), view.time(row.request_age))
end

local function render_one(listener)
  local rows = {}
  for i, row in ipairs(listener.list) do
    rows[i] = {
      row.state, row.peer, view.time(row.age), row.served, view.bytes(row.written),
      view.bytes(row.queued), request_text(row),
    }
  end
  return view.lines(("%s %s: %s, %s in flight"):format(listener.name, listener.address,
    view.count(listener.connections, "connection"), listener.in_flight), #rows > 0
    and view.columns({ "state", "peer", ">age", ">served", ">written", ">queued", "request" }, rows)
    or nil, view.more(listener.connections - #rows))
end

local function render(data)
  local parts = {}
  for i, listener in ipairs(data.listeners) do parts[i] = render_one(listener) end
  return #parts > 0 and table.concat(parts, "\n\n") or "no listeners"
end

--- The connections of all listeners, or of one.
---@param opts { max: integer|nil, listener: string|nil }|nil `max` of each listener
---@return { listeners: table[] }
function M.conns(opts)
  opts = arguments.options("conns", opts, SPECS)
  local listeners = json.array {}
  for i, server in ipairs(select_servers(opts.listener)) do
    listeners[i] = M.of(server, opts.max)
  end
  return view.new({ listeners = listeners }, render)
end

return M
