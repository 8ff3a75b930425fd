--- The side of a takeover that serves: it lends its listening sockets to a successor, serves until
--- that one is ready, and then drains.
--
--     successor                     here
--     takeover {name, script}  ->   lend all sockets                    (`booting`)
--                              <-   offer {listeners} + descriptors, or refused {why}
--     ... starts up ...             serves on
--     ready {adopted}          ->   accepts no more from those          (`deciding`)
--                              <-   go
--     accepts; done            ->   lets go of them, shuts down with reason `takeover`
--
-- Only after `go` does the successor accept, and only here is decided: so whoever dies, and
-- whenever, one of the two has the queue and serves it.

local core = require "moontide.core"
local config = require "moontide.config"
local control = require "moontide.control"
local native = require "moontide.core.control"
local task = require "moontide.task"

local http = core.http
local write = core.log.write

local M = {}

--- Beyond its own startup total, what a successor has to become ready, in seconds.
M.MARGIN = 5
--- How long a successor may take from `go` to `done`.
M.CONFIRM = 5

---@class moontide.Offer
---@field link moontide.Link
---@field stage "booting"|"deciding"
---@field lent { server: moontide.Server, adopted: boolean|nil }[]
---@field timer moontide.Task
local offer

-- ---- what there is to lend ----------------------------------------------------------------------

local function servers()
  local list = {}
  local room, manage = package.loaded["moontide.http"], package.loaded["moontide.http.manage"]
  for _, server in ipairs(room and room.servers or {}) do list[#list + 1] = server end
  if manage and manage.server then list[#list + 1] = manage.server end
  return list
end

--- How many listening sockets there are.
---@return integer
function M.count()
  local n = 0
  for _, server in ipairs(servers()) do
    if native.lend(server.listener) then n = n + 1 end
  end
  return n
end

-- The sockets as the successor is told of them, and their descriptors.
local function lend_all()
  local lent, told, fds = {}, {}, {}
  for _, server in ipairs(servers()) do
    local socket = native.lend(server.listener)
    if socket then
      fds[#fds + 1] = socket.fd
      lent[#lent + 1] = { server = server }
      told[#told + 1] = {
        name = server.name, manage = server.opts.manage or false, address = socket.address,
        inherited = socket.inherited, inode = socket.inode, device = socket.device,
      }
    end
  end
  return lent, told, fds
end

-- ---- refusing -----------------------------------------------------------------------------------

-- Whether it is another run of this service, and not another one that is called the same by chance.
local function is_same(message)
  if config.is_set "name" and message.named then return true end
  local own = native.realpath(require("moontide.boot").main.path)
  return own ~= nil and own == message.script
end

local function refusal(message)
  local name, state = config.get "name", core.state.get()
  if message.protocol ~= control.PROTOCOL then
    return "protocol", ("it speaks protocol %s, this process %d"):format(message.protocol,
      control.PROTOCOL)
  elseif message.name ~= name then
    return "name", ("it is called %q, this process %q"):format(tostring(message.name), name)
  elseif not is_same(message) then
    return "script", ("its script is %s, not %s; with `name` in tide.config the name decides")
      :format(message.script, require("moontide.boot").main.path)
  elseif state == "starting" then
    return "starting", "this process is still starting"
  elseif state ~= "ready" then
    return "draining", "this process is shutting down: "
      .. tostring(require("moontide.shutdown").reason)
  elseif offer then
    return "busy", ("process %d is taking over already"):format(offer.link.pid)
  end
end

local function refuse(link, message, why, text)
  write(2, "takeover", "takeover refused: " .. text, "pid", link.pid, "uid", link.uid, "why", why)
  link:send { type = "refused", id = message.id, why = why, message = text }
  link:close()
end

-- ---- the end of an offer ------------------------------------------------------------------------

local function arm(seconds, fn)
  if offer.timer then offer.timer:cancel "in time" end
  offer.timer = task.start({ name = "takeover", scope = task.pipeline, kind = "internal" },
    function()
      task.sleep(seconds)
      fn()
    end)
end

local function settle()
  local settled = offer
  offer = nil
  if settled.timer then settled.timer:cancel "settled" end
  return settled
end

local function main_pid(pid)
  if core.notify.active() then require("moontide.systemd").main_pid(pid) end
end

-- Accepts again what was about to be the successor's.
local function take_back(ended)
  for _, entry in ipairs(ended.lent) do
    if entry.adopted then
      native.disown(entry.server.listener, false)
      native.hold(entry.server.listener, false)
    end
  end
  main_pid(core.host.pid)
end

local function failed(text)
  local ended = settle()
  if ended.stage == "deciding" then take_back(ended) end
  write(2, "takeover", ("the takeover by process %d failed: %s; this process serves on"):format(
    ended.link.pid, text), "pid", ended.link.pid, "why", ended.why)
  ended.link:close()
end

-- It may accept any moment, or never: this process accepts as well, and never empties the sockets,
-- until `done` or its death decides.
local function unconfirmed()
  write(2, "takeover", "the successor was told to go on and does not answer; both may accept",
    "pid", offer.link.pid)
  for _, entry in ipairs(offer.lent) do
    if entry.adopted then native.hold(entry.server.listener, false) end
  end
end

local function withdraw(why)
  offer.link:send { type = "withdrawn", message = why }
  offer.why = why
  failed("it was withdrawn: " .. why)
end

-- ---- what the successor says --------------------------------------------------------------------

local function on_ready(link, message)
  local adopted = {}
  for _, index in ipairs(message.adopted or {}) do adopted[index] = true end
  for i, entry in ipairs(offer.lent) do
    entry.adopted = adopted[i]
    if entry.adopted then
      native.hold(entry.server.listener, true)
      native.disown(entry.server.listener, true)
    end
  end
  offer.stage = "deciding"
  main_pid(link.pid)
  arm(M.CONFIRM, unconfirmed)
  link:send { type = "go", id = message.id }
end

-- Probes that come on a connection of theirs are to come to the successor the next time.
local function let_go(entry)
  local listener = entry.server.listener
  http.unbind(listener)
  if entry.server.opts.manage then http.drain(listener) end
end

local function on_done(link)
  local settled, names = settle(), {}
  core.notify.mute()
  for _, entry in ipairs(settled.lent) do
    if entry.adopted then
      names[#names + 1] = entry.server.name
      let_go(entry)
    end
  end
  write(1, "takeover", "handed over", "pid", link.pid, "listeners", table.concat(names, ","))
  link:close()
  require("moontide.shutdown"):run(require("moontide.reason").new("takeover", {
    successor = link.pid, text = ("process %d serves now"):format(link.pid),
  }))
end

local function on_message(link, message)
  if not offer or offer.link ~= link then return end
  if message.type == "ready" and offer.stage == "booting" then
    on_ready(link, message)
  elseif message.type == "done" and offer.stage == "deciding" then
    on_done(link)
  elseif message.type == "failed" then
    offer.why = tostring(message.message)
    failed(offer.why)
  end
end

local function on_closed(link)
  if offer and offer.link == link then failed "it went away before it was ready" end
end

local function watch_state()
  if M.watching then return end
  M.watching = true
  require("moontide.states").on_state(function(_, to)
    if to == "draining" and offer and offer.stage == "booting" then
      withdraw("the process shuts down: " .. tostring(require("moontide.shutdown").reason))
    end
  end)
end

--- A successor asks for the sockets.
---@param link moontide.Link
---@param message table
function M.asked(link, message)
  local why, text = refusal(message)
  if why then return refuse(link, message, why, text) end
  local lent, told, fds = lend_all()
  watch_state()
  offer = { link = link, stage = "booting", lent = lent }
  link.on_message, link.on_closed = on_message, on_closed
  local sent = link:send({
    type = "offer", id = message.id, pid = core.host.pid, listeners = require(
      "moontide.json").array(told), watchdog = core.notify.watchdog_interval(),
  }, fds)
  if not sent then return failed "the sockets could not be sent" end
  write(1, "takeover", "a successor starts", "pid", link.pid, "listeners", #lent)
  local seconds = (tonumber(message.startup) or 0) + M.MARGIN
  arm(seconds, function() withdraw(("it was not ready after %.4g s"):format(seconds)) end)
end

return M
