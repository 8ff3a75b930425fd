---@meta
--- The rest of `meta.lua`: what the C core gives to commands that speak to a running process. They
--- wait in a plain poll, without the loop. Nothing here runs.

---@class moontide.core.client `require "moontide.core.client"`
local client = {}

---@class moontide.core.client.Connection never blocks
local connection = {}

--- Connects to a control socket.
---@param path string
---@return moontide.core.client.Connection|nil
---@return string|nil name "ECONNREFUSED": a file that was left behind; "EAGAIN": too many wait
---@return string|nil message
function client.connect(path) end

--- Waits for whatever comes first; sends what connections have not sent yet.
---@param seconds number|nil nil: as long as it takes
---@param stdin boolean whether to wait for input as well
---@param ... moontide.core.client.Connection at most four
---@return boolean input
---@return string|nil signal without "SIG"
---@return boolean ... whether each connection can be read
function client.wait(seconds, stdin, ...) end

---@return string|nil text "": nothing yet; nil: the end
function client.read() end

---@return number seconds that never go back
function client.now() end

--- From now on `wait` tells INT, TERM, HUP, QUIT, WINCH, TSTP and CONT; they do nothing else.
function client.signals() end

--- Stops the process as Ctrl-Z does; returns when it goes on.
function client.stop() end

--- Each key comes as it is typed and is not shown; or all as it was found.
---@param on boolean
function client.keys(on) end

---@param fd integer 0, 1 or 2
---@return boolean
function client.is_terminal(fd) end

---@return integer of the terminal; 80 without one
function client.columns() end

--- Adds to a file that only this user may read.
---@param path string
---@param text string
---@param anew boolean|nil with nothing else in it
---@return true|nil
---@return string|nil message
function client.append(path, text, anew) end

---@param text string what does not go at once is sent by `wait`
---@return boolean whether the other side is there
function connection:send(text) end

---@return string|nil text "": nothing yet; nil: the end
function connection:receive() end

---@return integer|nil uid
---@return integer|nil pid
function connection:peer() end

function connection:close() end

---@class moontide.core.edit `require "moontide.core.edit"`; not there when built without it
local edit = {}

---@class moontide.core.edit.Editor a line with libedit, on stdin and stdout
local editor = {}

---@return moontide.core.edit.Editor|nil
---@return string|nil message there is no libedit
function edit.open() end

--- Reads a line.
---@param prompt string what is between two "\1" takes no room
---@param key fun(): integer|nil the next character; nil ends the editing
---@param complete fun(line: string, cursor: integer): integer|nil, string|nil how many characters
--- before the cursor go, and what comes there; nil: nothing
---@return string|nil line
---@return boolean at_end behind nil: by Ctrl-D; else `key` has ended it, or the terminal has gone
function editor:read(prompt, key, complete) end

---@return string line that is being read
---@return integer cursor bytes before it
function editor:line() end

--- Shows a text above the line that is being read.
---@param text string ends with a newline; "": draws the line again
function editor:above(text) end

--- The terminal has another size.
function editor:resize() end

--- Gives the terminal back, or takes it again.
---@param on boolean
function editor:terminal(on) end

--- Puts a line into the history.
---@param line string
function editor:remember(line) end

function editor:close() end

return { client = client, connections = connection, edit = edit, editors = editor }
