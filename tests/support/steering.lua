--- A session of the console without a client, for specs that steer a lifecycle of their own.
---
---     local life = lifecycle.new(main)
---     local steer = steering.new(life)
---     local value = steer:run("skip", "flush", "the disk is gone")    -- as at the console
---     assert.matches("no pipeline runs", steer:refused("skip", "flush", "..."))
---     steer:finish()                                                  -- after each test
---     steer.audited, steer.sent                                       -- what it was told
local M = {}

---@class test.Steering
---@field session table
---@field audited { action: string, text: string }[]
---@field sent table[]
local Steering = {}
Steering.__index = Steering

local function new_session(self)
  local session = { id = 1, uid = 1000, pid = 4711, comm = "moontide", policy = "eval", env = {} }
  local closers = {}
  function session.send(_, message) self.sent[#self.sent + 1] = message end
  function session.audit(_, action, text)
    self.audited[#self.audited + 1] = { action = action, text = text }
  end
  function session.environment() return session.env end
  function session.on_close(_, fn)
    local key = {}
    closers[key] = fn
    return function() closers[key] = nil end
  end
  function session.close()
    session.closed = true
    for _, fn in pairs(closers) do fn() end
  end
  function session.closers()
    local n = 0
    for _ in pairs(closers) do n = n + 1 end
    return n
  end
  return session
end

---@param life test.Life
---@return test.Steering
function M.new(life)
  local self = setmetatable({ life = life, audited = {}, sent = {} }, Steering)
  self.session = new_session(self)
  return self
end

--- Starts a command in a task of its own; what it came to is in `.task` of it once it has ended.
function Steering:start(name, ...)
  local command = require("moontide.console.commands").find(name)
  local t = self.life.tide.task.start({
    name = "console " .. name, scope = self.life.tide.task.pipeline, kind = "console",
    detached_errors = true,
  }, command.fn, self.session, ...)
  self.life:turn()
  return t
end

--- Runs a command to its end; raises its error.
---@return table value what it returned
function Steering:run(name, ...)
  local t = self:start(name, ...)
  assert(t.outcome == "ok", t.outcome and tostring(t.error) or name .. " has not ended")
  return t.value
end

--- Runs a command that is to be refused.
---@return string message
function Steering:refused(name, ...)
  local t = self:start(name, ...)
  assert(t.outcome == "failed", ("%s was not refused: %s"):format(name, tostring(t.outcome)))
  return tostring(t.error)
end

--- Ends the life: its tasks are on the clock that the next test has, too.
function Steering:finish()
  self.session:close()
  if not self.life.code then self.life.tide.shutdown:run() end
  self.life:advance(100)
  assert(self.life.code, "the life has not ended")
end

--- The texts that the session was sent.
---@return string
function Steering:told()
  local texts = {}
  for i, message in ipairs(self.sent) do texts[i] = message.text or "" end
  return table.concat(texts, "\n")
end

return M
