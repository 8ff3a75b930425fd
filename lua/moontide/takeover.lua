--- The side of a takeover that follows: `moontide run --takeover app.lua`. It asks the process of
--- its name for the listening sockets, starts up while that one serves, and accepts when it is
--- ready and was told to. Loaded by the option alone; the other side is `takeover_offer`.

local core = require "moontide.core"
local config = require "moontide.config"
local control = require "moontide.control"
local native = require "moontide.core.control"
local task = require "moontide.task"

local write = core.log.write

local M = {
  --- "auto": where nobody is to be followed, a plain start; "required": that is an error; or the
  --- process to follow.
  ---@type "auto"|"required"|integer
  mode = "auto",
  --- There are sockets of another process, and we do not serve yet.
  following = false,
}

--- What a takeover that cannot be ends with.
M.UNAVAILABLE = 69
-- How long the other process may take to answer, in seconds.
local HELLO, ANSWER = 2, 10

-- To the process that we follow, while it lives.
---@type moontide.Link|nil
local predecessor
-- The sockets that came: { name =, manage =, address =, fd =, ..., adopted = }
local lent = {}

-- ---- who is to be followed ----------------------------------------------------------------------

---@class moontide.Candidate
---@field pid integer
---@field link moontide.Link|nil
---@field state string|nil nil: it does not answer
---@field listeners integer|nil

local function greet(other)
  local link, message = require("moontide.control_links").connect(other.path)
  if not link then return nil, message end
  local reply, why = link:ask({ type = "hello", protocol = control.PROTOCOL }, HELLO)
  if reply and reply.type == "hello" then
    return { pid = other.pid, link = link, state = reply.state, listeners = reply.listeners }
  end
  link:close()
  if why == "closed" then return nil end -- it has just ended
  return { pid = other.pid }
end

-- All that could be meant; one that drains and has no socket left is nobody's predecessor.
local function candidates()
  local list = {}
  local others, message = control.others()
  if not others then return nil, message end
  for _, other in ipairs(others) do
    if type(M.mode) ~= "number" or other.pid == M.mode then
      local candidate, problem = greet(other)
      if problem then return nil, problem end
      if candidate and candidate.state == "draining" and candidate.listeners == 0 then
        candidate.link:close()
      elseif candidate and candidate.state ~= "stopped" then
        list[#list + 1] = candidate
      end
    end
  end
  return list
end

local function pids(list)
  local numbers = {}
  for i, candidate in ipairs(list) do numbers[i] = candidate.pid end
  return table.concat(numbers, ", ")
end

-- The one that is ready; why there is none, if there could have been.
local function choose(list)
  local ready = {}
  for _, candidate in ipairs(list) do
    if candidate.state == "ready" then ready[#ready + 1] = candidate end
  end
  if #ready == 1 then return ready[1] end
  if #ready > 1 then
    return nil, ("processes %s are all called %q and ready; --takeover=PID says which one"):format(
      pids(ready), config.get "name")
  end
  local first = list[1]
  if not first then return nil end
  return nil, ("process %d %s"):format(first.pid, first.state and "is " .. first.state
    or ("does not answer within %d s"):format(HELLO))
end

local function find()
  local list, message = candidates()
  if not list then return nil, message end
  local chosen
  chosen, message = choose(list)
  for _, candidate in ipairs(list) do
    if candidate ~= chosen and candidate.link then candidate.link:close() end
  end
  return chosen and chosen.link, message
end

-- ---- asking -------------------------------------------------------------------------------------

local function receive(link, reply)
  local fds, listeners = link:take(), reply.listeners or {}
  for i, fd in ipairs(fds) do
    if listeners[i] then
      lent[i] = listeners[i]
      lent[i].fd = fd
    else
      native.close_fd(fd)
    end
  end
  if #lent ~= #listeners then
    return nil, ("%d sockets were announced and %d came"):format(#listeners, #lent)
  end
  M.watchdog = reply.watchdog
  return true
end

-- The other process, with its sockets here, or why not.
local function ask(link)
  local reply, why = link:ask({
    type = "takeover", protocol = control.PROTOCOL, name = config.get "name",
    named = config.is_set "name", script = native.realpath(require("moontide.boot").main.path),
    startup = require("moontide.settings").startup().total,
  }, ANSWER)
  if not reply then
    return nil, why == "closed" and "it ended before it answered"
      or ("it does not answer within %d s"):format(ANSWER)
  end
  if reply.type ~= "offer" then return nil, "it refuses: " .. tostring(reply.message) end
  return receive(link, reply)
end

-- The end before we are ready: the other one serves on, and may say why.
local function give_up(text)
  local shutdown = require "moontide.shutdown"
  if shutdown.is_running() then return end
  shutdown:run(require("moontide.reason").new("startup-failed", {
    text = "takeover: " .. text, exit_code = M.UNAVAILABLE,
  }))
end

local function on_message(_, message)
  if message.type == "withdrawn" and core.state.get() == "starting" then
    give_up("the other process has withdrawn its sockets: " .. tostring(message.message))
  end
end

-- Its sockets are here, so nothing is lost: the clients wait in the queue until we are ready.
local function on_closed(link)
  predecessor = nil
  if not M.following or core.state.get() ~= "starting" then return end
  write(2, "takeover", "the process that was to be followed has died; this one goes on with its "
    .. "sockets", "pid", link.pid)
end

local function follow(link)
  predecessor, M.following = link, true
  link.on_message, link.on_closed = on_message, on_closed
  require("moontide.states").on_state(function(from, to, reason)
    if from == "starting" and to == "draining" and predecessor then
      predecessor:send { type = "failed", message = "it shuts down: " .. tostring(reason) }
    end
  end)
  write(1, "takeover", "following another process", "pid", link.pid, "listeners", #lent)
end

local function claim(rise)
  local shutdown = require "moontide.shutdown"
  control.open() -- who comes now sees that we are starting
  local link, message = find()
  if link then
    local ok, refused = ask(link)
    if ok then
      follow(link)
    else
      message = ("process %d cannot be taken over: %s"):format(link.pid, refused)
      link:close()
    end
  elseif not message and M.mode ~= "auto" then
    message = ("no process called %q is there to be taken over (%s)"):format(config.get "name",
      control.directory())
  end
  if shutdown.is_running() then return end
  if message then
    return require("moontide.failing").refuse({ "takeover: " .. message }, M.UNAVAILABLE)
  end
  if not link then
    write(1, "takeover", "no process to take over: a plain start", "name", config.get "name")
  end
  rise()
end

--- Finds the process to follow, and gets its sockets; then `rise` begins.
---@param rise fun()
function M.claim(rise)
  task.start({ name = "takeover", scope = task.pipeline, kind = "internal" }, claim, rise)
end

-- ---- what we do with the sockets ----------------------------------------------------------------

local function try(server, entry, fit)
  if entry.adopted or not native.adopt(server.listener, entry, fit) then return false end
  entry.adopted = true
  write(0, "takeover", "socket taken over", "listener", server.name, "address", entry.address)
  return true
end

-- An inherited socket goes by its name, others are where the listener is declared.
local function fit_of(opts, entry)
  return opts.fd and (entry.inherited or not opts.port) and "name" or "address"
end

--- Gives a listener the socket that its name had, if it is at the declared address; else one that
--- is exactly there, whatever its name was. False: it has to bind one.
---@param server moontide.Server
---@param manage boolean|nil the management listener, which has a name of its own
---@return boolean
function M.adopt(server, manage)
  if not M.following then return false end
  local opts = server.opts
  for _, entry in ipairs(lent) do
    if entry.name == server.name and entry.manage == (manage or false)
      and try(server, entry, fit_of(opts, entry)) then
      return true
    end
  end
  for _, entry in ipairs(lent) do
    if (opts.port or opts.path) and entry.manage == (manage or false)
      and try(server, entry, "exact") then
      return true
    end
  end
  return false
end

-- Lets go of the sockets that we have no listener for: the other process empties their queues.
-- Returns the numbers of those that we have.
local function drop_rest()
  local adopted, dropped = {}, {}
  for i, entry in ipairs(lent) do
    if entry.adopted then
      adopted[#adopted + 1] = i
    else
      native.close_fd(entry.fd)
      dropped[#dropped + 1] = ("%s (%s)"):format(entry.name, entry.address)
    end
  end
  if #dropped > 0 then
    write(1, "takeover", "listeners that are no more: the other process drains them", "listeners",
      table.concat(dropped, ", "))
  end
  return adopted
end

-- Listeners that a startup phase has declared are to have their sockets, too.
local function bind_all()
  local http = package.loaded["moontide.http"]
  local ok, err = pcall(function() if http then http.bind_all() end end)
  if not ok then
    require("moontide.failing").startup(require("moontide.pipeline.record").text(err))
  end
  return ok
end

--- Asks whether we may accept, being ready. False: this process ends instead.
---@async
---@return boolean
function M.permission()
  if not M.following then return true end
  if not bind_all() then return false end
  local link, adopted = predecessor, require("moontide.json").array(drop_rest())
  if not link then return true end
  local reply, why = link:ask({ type = "ready", adopted = adopted }, ANSWER)
  if require("moontide.shutdown").is_running() then return false end
  if reply and reply.type == "go" or why == "closed" then return true end
  give_up(why == "timeout" and ("process %d does not answer"):format(link.pid)
    or "it was not told to go on")
  return false
end

--- We accept.
function M.done()
  local link = predecessor
  M.following = false
  if not link then return end
  link:send { type = "done" }
  if core.notify.active() and (M.watchdog or 0) > 0 then
    require("moontide.systemd").watch(M.watchdog)
  end
  write(1, "takeover", "taken over", "pid", link.pid)
end

return M
