---@meta
--- `moontide.core`: what the C core gives to the Lua library, for editors and for readers. Nothing
--- here runs. Times are seconds; a point in time is on the scale of `core.clock.now()`.

---@class moontide.core
---@field host moontide.core.host
---@field clock moontide.core.clock
---@field state moontide.core.state
---@field signals moontide.core.signals
---@field log moontide.core.log
---@field watchdog moontide.core.watchdog
---@field coroutine moontide.core.coroutine
---@field task moontide.core.task
---@field notify moontide.core.notify
---@field health moontide.core.health
---@field http moontide.core.http

---@class moontide.core.host the loop, its pump, and the end
---@field mode "process"|"module"|"embedded"
---@field owns_lua boolean the Lua state was made by the host
---@field flags table<string, boolean> signals, sigpipe, interrupt, manage, console, exit, ...
---@field name string|nil
---@field args string[] the script's arguments
---@field options { startup_timeout: number|nil, shutdown_timeout: number|nil }
---@field version string "0.1.0"
---@field pid integer
local host = {}

--- Sets what runs the ready queue for one budget; `true` keeps the loop from blocking.
---@param fn fun(): boolean
function host.set_pump(fn) end

--- Asks for a turn of the pump.
function host.wake() end

--- Ends the loop's run after this turn.
---@param code integer 0 to 255
function host.stop(code) end

--- Sets who hears of errors that belong to no task.
---@param fn fun(kind: string, err: any)
function host.on_uncaught(fn) end

--- Sets who hears of tide_drain().
---@param fn fun(reason: string)
function host.on_drain(fn) end

--- Sets what is asked before the loop blocks, when the pump has had something to do.
---@param fn fun()
function host.on_idle(fn) end

--- Whether anything but the host itself would keep the loop going.
---@return boolean
function host.script_alive() end

--- How long the log may take at the end.
---@param seconds number
function host.set_log_timeout(seconds) end

--- Starts the watchdog of a stock interpreter that hands its process over.
function host.watch() end

--- Runs the loop until `stop`; in a stock interpreter.
---@return integer code
function host.run() end

--- One turn of the loop.
---@param block boolean whether it may wait
function host.turn(block) end

--- Flushes the log and ends the process at once.
---@param code integer
function host.exit(code) end

--- Compiles a text file.
---@param path string
---@return function|nil chunk
---@return string|nil message
function host.loadfile(path) end

--- The environment variables whose names begin with MOONTIDE_.
---@return table<string, string>
function host.environ() end

--- CLOCK_MONOTONIC.
---@return integer ns
function host.hrtime() end

---@class moontide.core.clock
local clock = {}

---@return number seconds monotonic, or virtual
function clock.now() end

---@return number seconds that goes on while the machine is suspended
function clock.boot() end

---@return number seconds since 1970
function clock.wall() end

--- Sets who hears of a timer that is due.
---@param fn fun(id: integer)
function clock.on_due(fn) end

--- Sets a timer; its number is used again after it was due or withdrawn.
---@param at number
---@return integer id
function clock.add(at) end

---@param id integer
function clock.cancel(id) end

---@return integer timers that are set
function clock.pending() end

--- From now on the time moves only by `advance`.
function clock.make_virtual() end

--- Moves virtual time on; runs all that falls due, in order.
---@param seconds number
function clock.advance(seconds) end

---@class moontide.core.state
local state = {}

---@return "starting"|"ready"|"draining"|"stopped"
function state.get() end

---@return boolean whether ready was reached once
function state.was_ready() end

---@param to string
---@return boolean|nil moved false: it was there; nil: not a legal move
---@return string|nil message
function state.move(to) end

---@param fn fun(from: string, to: string)
function state.on_move(fn) end

---@class moontide.core.signals
local signals = {}

---@param fn fun(name: string, number: integer, pid: integer, uid: integer, nth: integer)
function signals.on(fn) end

---@param signal string|integer
---@return true|nil
---@return string|nil message
function signals.watch(signal) end

---@param signal string|integer
function signals.unwatch(signal) end

---@param name string
---@return boolean
function signals.known(name) end

--- For moontide.embed, in a module of its own: what a C program has to do with the pipelines.
---@class moontide.core.embed
local embed = {}

--- Begins a task in C.
---@param spec userdata
---@return userdata|nil holder of the token; nil: the task is over already
---@return lightuserdata|integer token, or the status
---@return string|nil message
function embed.run(spec) end

--- Tells the program that the task is not wanted any more.
---@param spec userdata
---@param token lightuserdata
function embed.cancel(spec, token) end

--- No work of the program begins any more.
function embed.close_work() end

---@param fn fun() called once when no work is left, unless none is now
---@return integer how much there is
function embed.wait_work(fn) end

---@return string "2 match, 1 session"
function embed.describe_work() end

---@param from string
---@param to string
---@param reason string|nil
function embed.moved(from, to, reason) end

---@param what "phase_began"|"phase_ended"|"task_ended"
---@param pipeline "startup"|"shutdown"
---@param phase string
---@param task string|nil
---@param outcome string|nil
---@param ms integer|nil
function embed.event(what, pipeline, phase, task, outcome, ms) end

---@class moontide.core.log
local log = {}

---@param level 0|1|2|3 debug, info, warn, error
---@param component string
---@param message string
---@param ... any key, value, key, value
function log.write(level, component, message, ...) end

--- A record of INFO that no level leaves out.
---@param component string
---@param message string
---@param ... any key, value, key, value
function log.audit(component, message, ...) end

---@param level integer
---@return boolean
function log.enabled(level) end

---@param level integer|string
function log.set_level(level) end

---@param format "logfmt"|"json"
function log.set_format(format) end

---@param path string
---@return true|nil
---@return string|nil message
function log.set_file(path) end

--- Opens the log's file anew.
---@return true|nil
---@return string|nil message
function log.reopen() end

--- Lets records out that the host holds back until its first turn is over.
function log.release() end

---@param seconds number at most
---@return boolean whether all has left
function log.flush(seconds) end

---@return integer records that were lost
function log.dropped() end

---@class moontide.core.watchdog all of it does nothing where there is no watchdog
local watchdog = {}

--- Arms a total, or lets go of it with nil.
---@param which "startup"|"shutdown"
---@param at number|nil
function watchdog.total(which, at) end

--- What is running now, for the dump.
---@param what string
---@param site string
---@return integer place -1 when the table is full
function watchdog.begin(what, site) end

---@param place integer
function watchdog.finish(place) end

---@param name string|nil
function watchdog.phase(name) end

--- How long a shutdown may take that the loop never takes up.
---@param seconds number
function watchdog.shutdown_total(seconds) end

function watchdog.taken() end

--- Where the out-of-band line is to be, NAME-PID.oob; without a name nowhere. The watchdog opens it
--- when the process is some 50 ms old.
---@param directory string|nil default: where control sockets are
---@param name string|nil
---@param shared boolean others may enter the directory
function watchdog.place(directory, name, shared) end

--- What may be asked there.
---@param policy "off"|"inspect"|"eval"
function watchdog.policy(policy) end

---@class moontide.core.coroutine tracked, so that running Lua can be interrupted
---@field interrupted table what an interrupted slice raises
local co = {}

--- As coroutine.resume, with the time at which the slice is interrupted (0: never).
---@param thread thread
---@param deadline number
function co.resume(thread, deadline, ...) end

--- The stack of the last slice that was interrupted.
---@return string|nil
function co.traceback() end

---@return boolean whether the running slice is being interrupted
function co.pending() end

---@class moontide.core.task the mechanism of tasks; the library's `task` is what scripts see
---@field Task { methods: table, getters: table, meta: table } to be filled by the library
---@field Scope { methods: table, getters: table, meta: table }
---@field SLEEP table what a sleeping task waits for
local tasks = {}

---@param fields table its other fields
---@param owner moontide.Task|nil
---@return moontide.Scope
function tasks.new_scope(fields, owner) end

---@param scope moontide.Scope
---@param fn fun(...): ...
---@return moontide.Task
function tasks.spawn(scope, fn, ...) end

---@param scope moontide.Scope
---@param opts moontide.TaskOptions
---@param fn fun(...): ...
---@return moontide.Task
function tasks.start(scope, opts, fn, ...) end

---@return moontide.Task[] the live tasks of a scope, oldest first
function tasks.members(scope) end

---@return moontide.Task|nil the task whose code runs right now
function tasks.current() end

--- The running task, if the caller may await; raises otherwise, where the caller was called.
---@return moontide.Task
function tasks.await_point() end

--- Suspends the running task, which has passed await_point, until `wake` names the same source.
---@param source table
function tasks.suspend(source) end

--- Adds the running task to a wait list and suspends it for that.
---@param list moontide.WaitList
function tasks.enlist(list, t) end

--- Empties a wait list and queues all that wait for it.
---@param list moontide.WaitList
function tasks.wake_all(list) end

---@param d number|string
function tasks.sleep(d) end

--- Ends the running task where it stands; only in its own coroutine.
---@param reason string
function tasks.leave(reason) end

---@return boolean whether it waited for that; then it is queued
function tasks.wake(t, source) end

---@return boolean whether it waits for that
function tasks.stands_at(t, source) end

--- Queues a suspended task.
function tasks.ready(t) end

--- Queues a suspended task, to go on with its cancellation.
function tasks.raise(t) end

--- Makes the clock entry of a suspended task anew.
function tasks.arm(t) end

--- Runs the <close> variables of a suspended or dead task.
---@return boolean ok
---@return any err
function tasks.close(t) end

--- The task's function is over; it waits for the tasks of its own scope.
function tasks.join_own(t) end

--- Ends a task.
---@param outcome string
function tasks.settle(t, outcome) end

---@return boolean more whether something is still ready
function tasks.pump() end

--- Whether this turn of the queue is over: the running slice should end, and will be the last of
--- it. For tasks of the library that go on for long.
---@return boolean
function tasks.turn_is_over() end

---@return integer queued
---@return integer live
---@return integer running 0 or 1
function tasks.counts() end

--- Sets what the library decides; see core/lua/task.h.
---@param name string
---@param fn function|nil nil only for "ended"
function tasks.policy(name, fn) end

--- The live tasks in so many places from one on, whatever their scope.
---@param place integer from 1
---@param most integer up to 32768
---@return moontide.Task[]
---@return integer|nil next the place to go on with; nil: that was all
function tasks.live(place, most) end

--- So many live tasks of a scope, oldest first; of the last 32768 that began.
---@param scope moontide.Scope
---@param most integer
---@return moontide.Task[]
function tasks.oldest(scope, most) end

--- A field that is made up when it is asked for, as the id, if it has been.
---@param t moontide.Task
---@param key string
---@return any
function tasks.given(t, key) end

--- Where its function is defined, until it has ended.
---@param t moontide.Task
---@return string|nil file
---@return integer|nil line
function tasks.place(t) end

--- When its sleep is over.
---@param t moontide.Task
---@return number|nil seconds on the clock's scale; nil: it does not sleep
function tasks.due(t) end

--- Sets the message handler at the base of each task.
---@param fn fun(err: any): any
function tasks.on_error(fn) end

--- A room of its own, for tests that load the library anew.
---@return moontide.core.task
function tasks.anew() end

return {
  host = host, clock = clock, state = state, signals = signals, log = log, watchdog = watchdog,
  coroutine = co, task = tasks, embed = embed,
}
