--- What `moontide check` says of the listeners: where, and what they do not leave to the settings.
local duration = require("moontide.duration")

local M = {}

-- What the address says already.
local ADDRESS = { name = true, host = true, port = true, path = true, fd = true }

local function address(opts)
  if opts.path then return opts.path end
  if opts.fd then
    local inherited = "inherited \"" .. opts.fd .. "\""
    return opts.port and ("%s, else port %d"):format(inherited, opts.port) or inherited
  end
  local host = opts.host or "127.0.0.1"
  if host:find(":", 1, true) then host = "[" .. host .. "]" end
  return ("%s:%s"):format(host, opts.port == 0 and "any" or opts.port)
end

local function value_of(group, key, value)
  if group == "timeouts" and not key:find "_rate$" then value = duration.format(value) end
  return tostring(value)
end

local function own_options(opts)
  local list = {}
  for key, value in pairs(opts) do
    if key == "limits" or key == "timeouts" then
      for name, inner in pairs(value) do
        list[#list + 1] = ("%s.%s %s"):format(key, name, value_of(key, name, inner))
      end
    elseif not ADDRESS[key] then
      list[#list + 1] = ("%s %s"):format(key, tostring(value))
    end
  end
  table.sort(list)
  return table.concat(list, ", ")
end

--- Name, address and own options of each.
---@param servers moontide.Server[]
---@return string[][] rows
function M.rows(servers)
  local rows = {}
  for i, server in ipairs(servers) do
    rows[i] = { server.name, address(server.opts), own_options(server.opts) }
  end
  return rows
end

return M
