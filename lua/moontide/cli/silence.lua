--- What to say when a process does not answer: after 2 s its watchdog is asked, a thread that
--- answers on a socket of its own while the loop is stuck.
local json = require "moontide.json"
local native = require "moontide.core.client"

local M = {
  --- Seconds without a word after which the watchdog is asked, and asked again.
  PATIENCE = 2,
}

---@class moontide.cli.Silence
---@field connection table|nil to the watchdog
---@field say fun(text: string)
local Silence = {}
Silence.__index = Silence

--- For the process with this control socket.
---@param path string
---@return moontide.cli.Silence
function M.new(path)
  return setmetatable({
    path = path:gsub("%.sock$", "") .. ".oob", text = "",
    say = function(text) io.stderr:write("moontide: ", text, "\n") end,
  }, Silence)
end

--- Somebody waits for an answer from now on.
---@param now number
function Silence:begin(now)
  self.since, self.next = now, now + M.PATIENCE
end

--- Nobody waits any longer.
function Silence:finish()
  if self.connection then self.connection:close() end
  self.since, self.next, self.connection, self.said, self.text = nil, nil, nil, nil, ""
end

--- The process has said something.
function Silence:heard()
  if self.since then self:begin(native.now()) end
end

local function send(self, message)
  if not self.connection then self.connection = native.connect(self.path) end
  return self.connection ~= nil and self.connection:send(json.encode(message) .. "\n")
end

--- Asks the watchdog when it is time to.
---@param now number
---@return number|nil seconds until the next look
function Silence:look(now)
  if not self.next then return nil end
  if now >= self.next then
    self.next = now + M.PATIENCE
    send(self, { id = 1, type = "where" })
  end
  return self.next - now
end

--- Asks the watchdog to interrupt what runs, if the process has been silent for long.
function Silence:interrupt()
  if self.connection then send(self, { id = 2, type = "interrupt" }) end
end

--- What the watchdog's answer means to a person; nil: the loop is not stuck.
---@param answer table
---@return string|nil
function M.sentence(answer)
  local stuck = answer.stuck_ms or 0
  if stuck < 1000 then return nil end
  local what = answer.task and ("in task %s"):format(answer.task) or "outside of any task"
  return ("the loop is stuck %s for %.1f s; Ctrl-C asks for an interruption"):format(what,
    stuck / 1000)
end

--- Takes in what the watchdog has said.
function Silence:receive()
  local text = self.connection:receive()
  if not text then
    self.connection:close()
    self.connection = nil
    return
  end
  self.text = self.text .. text
  for line in self.text:gmatch "([^\n]*)\n" do
    local answer = json.decode(line)
    local sentence = type(answer) == "table" and answer.id == 1 and M.sentence(answer)
    -- Once for each thing it is stuck in.
    if sentence and self.said ~= answer.task then
      self.said = answer.task or ""
      self.say(sentence)
    end
  end
  self.text = self.text:match "([^\n]*)$"
end

return M
