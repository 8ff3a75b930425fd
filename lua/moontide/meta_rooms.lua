---@meta
--- The rest of `meta.lua`: what the C core gives of the outside world, sockets, requests, files and
--- other processes. Nothing here runs.

---@class moontide.core.notify
local notify = {}

---@return boolean whether systemd listens
function notify.active() end

---@param lines string "READY=1\nSTATUS=..."
function notify.send(lines) end

---@return number seconds half the watchdog's period; 0: none
function notify.watchdog_interval() end

---@return { fd: integer, name: string }[]
function notify.listen_fds() end

--- Nothing is sent from now on: another process is the service.
function notify.mute() end

---@class moontide.core.control `moontide.core.control`: the control sockets, and listening sockets
--- on their way to a successor. Failures are nil, libuv's name, a sentence.
local control = {}

--- Sets who hears of clients, of lines (either side's), of the end of what comes, and of a
--- connection's end. What is left out stays as it was.
---@param handlers { accepted: nil|fun(id: integer, uid: integer, pid: integer),
--- line: nil|fun(id: integer, text: string), over: nil|fun(id: integer, why: "ended"|"too long"),
--- closed: nil|fun(id: integer) }
function control.on(handlers) end

--- Whether the directory is ours alone; with `shared`: ours to change.
---@param path string
---@param shared boolean
---@param make boolean
---@return true|nil
---@return string|nil name
---@return string|nil message
function control.directory(path, shared, make) end

---@param directory string
---@param file string
---@param shared boolean others may connect
---@return true|nil
---@return string|nil name
---@return string|nil message
function control.listen(directory, file, shared) end

--- Listens no longer and removes the file; connections stay.
function control.unlisten() end

---@param path string
---@return integer|nil id
---@return string|nil name "ECONNREFUSED": a file that was left behind
---@return string|nil message
function control.connect(path) end

---@param id integer
---@return integer|nil uid
---@return integer|nil pid
function control.peer(id) end

---@param id integer
---@param line string with its end
---@param fds integer[]|nil descriptors to go with it; they stay ours
---@return true|nil
---@return string|nil name
---@return string|nil message
function control.send(id, line, fds) end

---@param id integer
---@return integer bytes that wait for the other side to read
---@return integer sent bytes that have left since the beginning
function control.queued(id) end

---@param id integer
---@return boolean whether the other side has closed both directions
function control.gone(id) end

--- Descriptors that have come; they are the caller's.
---@param id integer
---@return integer[]
function control.take(id) end

---@param id integer
function control.finish(id) end

---@param fd integer
function control.close_fd(fd) end

---@param path string
---@return string|nil
function control.realpath(path) end

---@return integer
function control.uid() end

---@class moontide.LentSocket
---@field fd integer
---@field address string
---@field inherited boolean
---@field inode integer 0: no path of ours
---@field device integer

---@param listener userdata
---@return moontide.LentSocket|nil nil: there is none
function control.lend(listener) end

--- Lets a listener have a socket, if it fits what it declares.
---@param listener userdata
---@param lent moontide.LentSocket
---@param fit "exact"|"address"|"name"
---@return boolean
function control.adopt(listener, lent, fit) end

---@param listener userdata
---@param hold boolean
function control.hold(listener, hold) end

--- Its unbind only lets go of it, or empties it again.
---@param listener userdata
---@param disown boolean
function control.disown(listener, disown) end

---@class moontide.core.health what /health/ready answers without Lua
local health = {}

---@param name string
---@param ok boolean
---@param critical boolean
---@param members string|nil more members of the check's object, as JSON without braces
---@param expires_at number|nil when the result is stale
function health.set(name, ok, critical, members, expires_at) end

---@param name string
function health.remove(name) end

---@return boolean ready
---@return string status
function health.ready() end

---@class moontide.core.http on a request and its answer; `x` is both. Listeners: core/lua/http.c
---@field members table methods of requests, to be filled by the library
local room = {}

---@return boolean whether the answer is complete, or the client gone
function room.is_over(x) end

--- The body: the next piece, or all of it.
---@param whole boolean
---@return string|nil data
---@return boolean|string last whether it is the last piece; behind nil "wait", or why it is lost
function room.take(x, whole) end

--- Bytes of an upgraded connection.
---@param n integer|nil so many; nil: what is here
---@return string|nil data
---@return string|nil why "wait", "eof", or why it is lost
---@return string|nil rest behind "eof"
function room.read(x, n) end

---@return boolean whether the client asks for another protocol, without a body
function room.may_upgrade(x) end

--- Sends a head; the body follows.
---@param status integer
---@param headers table|nil
---@param kind string|nil the Content-Type where headers name none
---@param size integer|nil of the body; nil: not known
---@return true|nil ok
---@return string|nil message
function room.begin(x, status, headers, kind, size) end

--- The same for a body that may end after any piece.
---@return true|nil ok
---@return string|nil message "draining" where no stream may begin
function room.begin_events(x, status, headers, kind) end

--- Answers 101; the connection is the handler's.
---@param headers table with Upgrade
---@return true|nil ok
---@return string|nil message "draining" where no stream may begin
function room.upgrade(x, headers) end

--- Writes a piece.
---@param from integer|nil where in data; then a long text is several pieces
---@return boolean|nil ok false: wait for room
---@return string|integer|nil next behind nil the message; else where the next piece begins
function room.write(x, data, from) end

--- Writes a piece where nothing is queued.
function room.nudge(x, data) end

--- Ends the body, or an upgraded connection.
---@return true|nil ok
---@return string|nil message
function room.finish(x) end

--- Ends our half of an upgraded connection, once all is written.
function room.shutdown(x) end

---@class moontide.core.json `require "moontide.core.json"`
local json = {}

--- A function that makes JSON text of a value. See moontide.json for what it promises.
---@param null table stands for JSON's null
---@param array table the metatable of what is a list also when it is empty
---@return fun(value: any): string
function json.encoder(null, array) end

---@class moontide.core.digest `require "moontide.core.digest"`
local digest = {}

--- SHA-256 in hex. Of several parts each counts with its length.
---@param ... string
---@return string
function digest.sha256(...) end

--- 32 hex digits that nobody can guess.
---@return string
function digest.random_id() end

---@class moontide.core.work `require "moontide.core.work"`: what a drain waits for
local work = {}

---@class moontide.core.work.source
local source = {}

--- A kind of work that is counted from now on, for as long as it is kept.
---@param name string
---@return moontide.core.work.source
function work.source(name) end

--- All kinds, requests by listener among them.
---@return { name: string, active: integer, total: integer }[]
function work.all() end

--- One more is under way.
function source:begin() end

--- One is over.
function source:done() end

--- How many are under way.
---@return integer
function source:active() end

---@class moontide.core.evaluation `require "moontide.core.evaluation"`: tasks of what is typed at
--- the console. They yield to the loop wherever they run, and can be stopped there.
local evaluation = {}

--- The tasks of a scope, and those that they spawn, are evaluations.
---@param scope moontide.Scope
function evaluation.evaluates(scope) end

--- The task, which is cancelled, does not outlive its next instruction.
---@param t moontide.Task
function evaluation.kill(t) end

--- Sets who cancels one whose deadline has passed, or that has held the loop for too long where it
--- cannot yield: for `held` seconds. Called inside of it.
---@param fn fun(t: moontide.Task, held: number|nil)
function evaluation.on_late(fn) end

--- What the one that runs does from here on is the library's, which gives way by itself: its task
--- is one like others.
function evaluation.answers() end

--- How many tasks of evaluations have begun and not ended.
---@return integer
function evaluation.live() end

---@class moontide.core.look `require "moontide.core.look"`: what one who looks in is told
local look = {}

--- So many connections of a listener at most, those with a request first.
---@param listener userdata
---@param most integer
---@return moontide.inspect.Connection[]
---@return integer count how many there are
function look.conns(listener, most) end

--- What the process uses, and Lua's collector; of a Lua state of the host's own its arena, and of
--- one with a limit that.
---@return { collector: string, resident: integer|nil, arena_taken: integer|nil,
--- arena_size: integer|nil, limit: integer|nil, limit_used: integer|nil }
function look.memory() end

--- The embedding program's own work in flight, the first 64 kinds.
---@return { name: string, active: integer }[]
function look.work() end

---@return number seconds since the host was made
function look.uptime() end

---@class moontide.core.sqlite `require "moontide.core.sqlite"`; not there when built without it
local sqlite = {}

---@class moontide.core.database statements run in the order they came, on another thread
local database = {}

--- Opens a database, making the file when it is not there.
---@param path string
---@param busy_ms integer how long a statement waits for the lock of another process
---@return moontide.core.database|nil
---@return string|nil message
---@return integer|nil code of SQLite; nil when the library is not there
function sqlite.open(path, busy_ms) end

--- Locks a place of its own in a file, until the process ends.
---@param path string
---@return moontide.core.claim|nil
---@return string|nil message
function sqlite.claim(path) end

---@param callback fun(code: integer|nil, rows: any[][]|string, changes: integer|nil)
---@param sql string one statement, prepared once
---@param ... string|number|nil
function database:run(callback, sql, ...) end

--- Here and now; only while no other statement is under way.
---@param sql string
---@param ... string|number|nil
---@return integer|nil code
---@return any[][]|string rows or what went wrong
---@return integer|nil changes
function database:run_now(sql, ...) end

--- Closes it behind the statements under way.
---@param callback fun()
function database:close(callback) end

---@class moontide.core.claim
local claim = {}

--- The place: what goes into records.
---@return integer
function claim:token() end

--- Whether the process that has this place lives.
---@param token integer
---@return boolean
function claim:alive(token) end

--- Gives the place up.
function claim:release() end

return {
  notify = notify, control = control, health = health, http = room, digest = digest,
  work = { source = work.source, all = work.all, sources = source },
  evaluation = evaluation, look = look, json = json,
  sqlite = { open = sqlite.open, claims = claim, databases = database },
}
