--- luv for scripts: on the host's loop, without what would take the loop from
--- the host, and with a name for each handle (the place that made it).
local M = {}

--- handle -> "file:line" that made it. luv keeps an active handle alive itself;
--- one that is collected needs no closing.
local sites = setmetatable({}, { __mode = "k" })

local CONSTRUCTORS = {
  "new_timer", "new_prepare", "new_check", "new_idle", "new_async", "new_poll",
  "new_socket_poll", "new_signal", "new_tcp", "new_pipe", "new_tty", "new_udp",
  "new_fs_event", "new_fs_poll", "spawn",
}

local REFUSED = {
  run = "the host runs the loop",
  stop = "the host runs the loop; use os.exit or tide.shutdown:run()",
  walk = "the loop holds handles of the host; use tide.handles()",
  loop_close = "the loop is the host's",
}

local function site_of(level)
  local info = debug.getinfo(level + 1, "Sl")
  return info and info.short_src .. ":" .. info.currentline or "?"
end

local function tracked(construct)
  return function(...)
    local handle, second, third = construct(...)
    if type(handle) == "userdata" then
      sites[handle] = site_of(2)
    end
    return handle, second, third
  end
end

--- What luv's request says of a scan is the same before and after it: so the callbacks that are
--- to come are kept in `scans`, which the host looks at when it leaves its loop.
local function counted(scandir, scans)
  return function(path, callback)
    if type(callback) ~= "function" then
      return scandir(path, callback)
    end
    local told
    function told(...)
      scans[told] = nil
      return callback(...)
    end
    local request, message, name = scandir(path, told)
    if request then
      scans[told] = true -- it comes in another turn, at the earliest
    end
    return request, message, name
  end
end

--- Guards the raw library in place and returns it.
---@param uv table the table that luaopen_luv made
---@param scans table<function, true> kept up to date: the callbacks of fs_scandir that are to come
---@return table uv
function M.guard(uv, scans)
  for _, name in ipairs(CONSTRUCTORS) do
    if uv[name] then
      uv[name] = tracked(uv[name])
    end
  end
  for name, why in pairs(REFUSED) do
    uv[name] = function()
      error(("uv.%s is not available here: %s"):format(name, why), 2)
    end
  end
  uv.fs_scandir = counted(uv.fs_scandir, scans)
  M.raw = uv
  return uv
end

-- A closed handle is still a key here between its finalizer and the next collection; luv then no
-- longer takes it for one.
local function is_open(handle)
  local ok, closing = pcall(handle.is_closing, handle)
  return ok and not closing
end

--- The open handles of scripts: a list of { handle, site, type, active }.
---@return { handle: userdata, site: string, type: string, active: boolean }[]
function M.handles()
  local list = {}
  for handle, site in pairs(sites) do
    if is_open(handle) then
      list[#list + 1] = {
        handle = handle, site = site, type = handle:get_type(), active = handle:is_active(),
      }
    end
  end
  table.sort(list, function(a, b) return a.site < b.site end)
  return list
end

local function close(handle)
  if not handle:is_closing() then
    handle:close()
  end
end

--- Closes what scripts left open; called once, when the host is taken down.
function M.close_all()
  for handle in pairs(sites) do
    -- When the interpreter itself is closing, luv may have finalized some of
    -- them already: those raise, and need no closing.
    pcall(close, handle)
  end
end

return M
