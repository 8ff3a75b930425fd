--- Sessions of the console without a socket: what is sent to the client is kept.
---
---     local session = evaluations.session()
---     local reply = session:eval "1 + 1"               -- in a task: waits for its end
---     assert.same({ "ok", "2" }, { reply.status, reply.text })
---     local id = session:ask { type = "eval", source = "while true do end" }
---     session:ask { type = "interrupt", of = id }
---     assert.equal("cancelled", session:finish(id).status)
local async = require "support.async"
local native = require "moontide.core.control"
local server = require "moontide.console.server"
local sessions = require "moontide.console.session"
local task = require "moontide.task"

local M = {}

---@class test.Session
---@field real moontide.console.Session
---@field messages table[] in the order they were sent
local Session = {}
Session.__index = Session

-- Whether its own tasks (one watches over it) have come to wait, with their timers set.
local function is_settled(session)
  for t in session.scope:tasks() do
    if t.state ~= "waiting" then return false end
  end
  return true
end

---@param policy "inspect"|"eval"|nil default "eval"
---@return test.Session
function M.session(policy)
  local link = {
    uid = native.uid(), pid = require("moontide.core").host.pid,
    write = function() return true end, close = function() end,
  }
  local self = setmetatable({ messages = {}, by_id = {}, last_id = 0 }, Session)
  self.real = assert(sessions.open(link))
  self.real:settle_in()
  self.real.policy = policy or "eval"
  self.real.render = function(message)
    self:keep(message)
    return nil
  end
  if not task.current() then
    async.turn_until(function() return is_settled(self.real) end, "the start of a session")
  end
  return self
end

-- Some send a great many: nothing here looks at all of them again.
function Session:keep(message)
  self.messages[#self.messages + 1] = message
  local of = self.by_id[message.id or 0] or { outs = {}, kinds = {} }
  self.by_id[message.id or 0] = of
  of.kinds[#of.kinds + 1] = message.type
  if message.type == "out" then
    of.outs[#of.outs + 1] = message.text
  else
    of[message.type] = message
  end
end

--- The status of a request that is done, or nil.
---@param id integer
function Session:status(id)
  local of = self.by_id[id]
  return of and of.done and of.done.status
end

--- Sends a request.
---@param request table
---@return integer id
function Session:ask(request)
  self.last_id = self.last_id + 1
  request.id = self.last_id
  server.ask(self.real, request)
  return request.id
end

--- What was sent for a request so far.
---@param id integer
---@return { status: string|nil, text: string|nil, out: string, value: table|nil, error: table|nil,
--- err: table|nil, need_more: table|nil, kinds: string }
function Session:reply(id)
  local of = self.by_id[id] or { outs = {}, kinds = {} }
  return {
    out = table.concat(of.outs), kinds = table.concat(of.kinds, " "),
    value = of.value, error = of.error, err = of.err, need_more = of.need_more,
    status = self:status(id), text = of.value and of.value.text,
  }
end

--- Waits until a request is done.
---@async
---@param id integer
function Session:finish(id)
  while not self:status(id) do task.sleep(0.001) end
  return self:reply(id)
end

--- Evaluates a source and waits for its end.
---@async
---@param source string
---@param fields table|nil more of the request
function Session:eval(source, fields)
  local request = { type = "eval", source = source }
  for key, value in pairs(fields or {}) do request[key] = value end
  return self:finish(self:ask(request))
end

--- The task of an evaluation.
---@param id integer
---@return moontide.Task
function Session:task(id)
  return self.real.running[id].evaluation.task
end

--- Ends it; outside of a task it waits until its tasks have ended, too.
function Session:close()
  self.real:close "the test is over"
  if task.current() then return end
  async.turn_until(function() return self.real.scope.n == 0 end, "the end of a session's tasks")
end

return M
