--- A person at a terminal: starts the binary under test at a pseudo terminal, types, and looks at
--- what it shows (support/pty/pty.c has the terminal).
---
---     local person = pty.start { args = { "console", "orders" }, env = { ... } }
---     person:see "orders> $"              -- a pattern; in all that is on the screen
---     person:type "1 + 1\r"
---     person:see "\n2\n"
---     person:resize(40, 10)
---     person:hang_up()
---     local code = person:wait()
local loop = require "support.loop"
local proc = require "support.process"
local screens = require "support.screen"
local uv = require "luv"

local M = {}

---@class test.Person
---@field process test.Process
---@field screen test.Screen
local Person = {}
Person.__index = Person

---@param options { args: string[], env: table|nil, columns: integer|nil, rows: integer|nil,
--- dir: string|nil }
---@return test.Person
function M.start(options)
  local fds = assert(uv.pipe({}, {}))
  local columns, rows = options.columns or 80, options.rows or 24
  local env = { TERM = "xterm", NO_COLOR = "1", XDG_STATE_HOME = false, LC_ALL = "C.UTF-8" }
  for name, value in pairs(options.env or {}) do env[name] = value end
  local argv = { columns, rows, os.getenv "MOONTIDE" }
  for _, word in ipairs(options.args) do argv[#argv + 1] = word end
  local process = proc.start {
    program = os.getenv "MOONTIDE_BUILD" .. "/tests/pty", argv = argv, env = env, manage = false,
    inherit = fds.read, dir = options.dir,
  }
  uv.fs_close(fds.read)
  local commands = uv.new_pipe(false)
  assert(commands:open(fds.write))
  process.pipes.commands = commands -- closed with the others
  return setmetatable({
    process = process, commands = commands, screen = screens.new(columns), taken = 0,
  }, Person)
end

--- Types keys: "\r" is Enter, "\3" Ctrl-C, "\4" Ctrl-D, "\t" TAB.
---@param keys string
function Person:type(keys)
  local hex = keys:gsub(".", function(char) return ("%02x"):format(char:byte()) end)
  self.commands:write("type " .. hex .. "\n")
end

---@param columns integer
---@param rows integer
function Person:resize(columns, rows)
  self.screen.columns = columns
  self.commands:write(("size %d %d\n"):format(columns, rows))
end

--- Takes the terminal away.
function Person:hang_up()
  self.commands:write "hangup\n"
end

-- Takes in what has been shown since the last look.
local function look(self)
  local chunks = self.process.chunks.stdout
  for i = self.taken + 1, #chunks do self.screen:feed(chunks[i]) end
  self.taken = #chunks
end

--- All that it has shown, as lines.
---@return string
function Person:text()
  look(self)
  return self.screen:text()
end

--- Waits until what is shown matches; with a function until that says so of the screen.
---@param what string|fun(screen: test.Screen): any
---@param timeout number|nil seconds
function Person:see(what, timeout)
  local found = loop.try(function()
    look(self)
    if type(what) == "function" then return what(self.screen) end
    return self.screen:text():find(what)
  end, timeout or 15)
  if found then return end
  error(("waited in vain to see %s; the screen:\n%s\n-- its errors:\n%s"):format(tostring(what),
    self.screen:text(), self.process:stderr()), 2)
end

--- Waits for a prompt with the cursor behind it.
---@param prompt string|nil
function Person:at_prompt(prompt)
  self:see(function(screen) return screen:before_cursor() == (prompt or "orders> ") end)
end

--- Waits for its end.
---@return integer|nil code
function Person:wait(timeout)
  local code = self.process:wait(timeout)
  look(self)
  return code
end

return M
