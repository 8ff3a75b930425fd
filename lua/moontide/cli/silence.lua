--- What to say when a process does not answer: after 2 s its watchdog is asked, a thread that
--- answers on a socket of its own while the loop is stuck.
local files = require "moontide.control_files"
local json = require "moontide.json"
local native = require "moontide.core.client"

-- The requests, by id.
local WHERE, INTERRUPT = 1, 2

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
    path = files.beside(path), text = "",
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
    send(self, { id = WHERE, type = "where" })
  end
  return self.next - now
end

--- Asks the watchdog to interrupt what runs, if the loop is stuck.
---@return boolean asked
function Silence:interrupt()
  return self.said ~= nil and send(self, { id = INTERRUPT, type = "interrupt" })
end

--- What the watchdog knows, as a text for a person; nil when it does not answer either.
---@return string|nil
function Silence:report()
  local line = require("moontide.cli.client").open(self.path)
  if not line then return nil end
  local outcome = line:ask({ type = "where" }, { timeout = 1 })
  line:close()
  return outcome.value and outcome.value.text
end

-- What it is stuck in, as a person says it.
local function stuck_in(where)
  local lua = where.lua
  if not lua then return "outside of Lua" end
  local what = lua.what ~= "" and "in " .. lua.what or "in Lua"
  if lua.at then return ("%s, at %s"):format(what, lua.at) end
  return lua.in_c and what .. ", in a call of C" or what
end

--- What an answer to `where` means to a person; nil: the loop is not stuck.
---@param where table
---@return string|nil sentence
---@return string|nil what it is stuck in
function M.sentence(where)
  local loop = where.loop
  if not loop or loop.waits or (loop.alive_ms or 0) < 1000 then return nil end
  return ("the loop is stuck for %.1f s %s; Ctrl-C asks for an interruption"):format(
    loop.alive_ms / 1000, stuck_in(where)), where.lua and where.lua.what or ""
end

local function hear(self, answer)
  local where = answer.id == WHERE and answer.where
  if where then
    if where.lua == json.null then where.lua = nil end
    local sentence, what = M.sentence(where)
    -- Once for each thing it is stuck in.
    if sentence and self.said ~= what then
      self.said = what
      self.say(sentence)
    end
  elseif answer.id == INTERRUPT and answer.type ~= "done" then
    self.say(answer.text or answer.message or "asked the watchdog to interrupt it")
  end
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
    if type(answer) == "table" then hear(self, answer) end
  end
  self.text = self.text:match "([^\n]*)$"
end

return M
