/* moontide: a lifecycle host in a library.
 *
 * A tide_host owns an event loop (or borrows one), a Lua state that runs the
 * lifecycle script, signals, timers, HTTP listeners with their drain, and the
 * thread that makes sure it all ends in time. The `moontide` program is written
 * on this header alone.
 *
 * Conventions
 *  - Errors are negative ints. libuv's own codes pass through; those of
 * moontide are in TIDE_ERRNO_MAP. tide_strerror and tide_err_name know both.
 *  - Each function says its thread: [loop] is the thread that called tide_new,
 *    [any] is every thread.
 *  - Strings given are copied. Strings returned live until the next call on the
 *    same object, unless said otherwise.
 *  - Durations are int64_t milliseconds; -1 means the default.
 *  - A host is never NULL, but where a function says so. Each [loop] function
 *    that returns an int returns TIDE_ETHREAD on another thread, and each
 *    function TIDE_EFORKED in a child of fork(2); that is not said again.
 *  - After tide_close, what would use the host returns TIDE_ESTATE.
 *  - Callbacks are C: no exception and no longjmp may leave one. An error in
 *    Lua that a callback calls by tide_call is returned to it.
 *  - Nothing touches the process (signals, standard streams, exit) unless a
 * flag asks for it.
 */
#ifndef MOONTIDE_H
#define MOONTIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TIDE_API __attribute__((visibility("default")))
#else
#define TIDE_API
#endif

#define TIDE_VERSION_MAJOR 0
#define TIDE_VERSION_MINOR 1
#define TIDE_VERSION_PATCH 0

struct uv_loop_s;
struct lua_State;
typedef struct tide_host tide_host;

/* Own errors, in a block that libuv does not use. */
#define TIDE_ERRNO_MAP(X)                                                      \
  X(TIDE_EINVAL, -5001, "invalid argument")                                    \
  X(TIDE_ESCRIPT, -5002, "the script could not be loaded")                     \
  X(TIDE_ELUA, -5003, "a Lua error")                                           \
  X(TIDE_ETHREAD, -5004, "called from the wrong thread")                       \
  X(TIDE_EREENTRANT, -5005, "would run the loop inside itself")                \
  X(TIDE_ESTATE, -5006, "not possible in this state of the host")              \
  X(TIDE_ECANCELED, -5007, "the host has stopped")                             \
  X(TIDE_EDRAINING, -5008, "the host is draining")                             \
  X(TIDE_EFORKED, -5009,                                                       \
    "called in a child that was forked from the host's process")

enum {
#define X(name, value, text) name = value,
  TIDE_ERRNO_MAP(X)
#undef X
};

/* "TIDE_EINVAL", "EADDRINUSE"; a static string. [any] */
TIDE_API const char *tide_err_name(int error);
/* A sentence without a full stop; a static string. [any] */
TIDE_API const char *tide_strerror(int error);
/* TIDE_VERSION_MAJOR << 16 | MINOR << 8 | PATCH of the library. [any] */
TIDE_API unsigned tide_version(void);
/* "0.1.0". [any] */
TIDE_API const char *tide_version_string(void);

/* Lifecycle states, in the only order they can be passed. */
typedef enum tide_state {
  TIDE_STARTING,
  TIDE_READY,
  TIDE_DRAINING,
  TIDE_STOPPED,
} tide_state;

/* "starting", "ready", "draining", "stopped"; a static string. [any] */
TIDE_API const char *tide_state_name(tide_state state);

/* What a host may do to its process; none by default. */
enum {
  TIDE_SIGNALS = 1u << 0, /* handle SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1 */
  TIDE_SIGPIPE = 1u << 1, /* ignore SIGPIPE */
  TIDE_INTERRUPT = 1u << 2, /* stop Lua that spins; claims a real-time signal */
  TIDE_MANAGE = 1u << 3,    /* the management listener */
  TIDE_CONSOLE = 1u << 4,   /* the console socket */
  TIDE_LOG_STDERR = 1u << 5, /* write the log to standard error */
  TIDE_EXIT = 1u << 6,       /* tide_run ends the process with the exit code;
                                a total that passes ends it with 1 */
  TIDE_PROCESS = 0x7f,       /* all of these: the host owns its process */
};

typedef enum tide_log_severity {
  TIDE_SEVERITY_DEBUG,
  TIDE_SEVERITY_INFO,
  TIDE_SEVERITY_WARN,
  TIDE_SEVERITY_ERROR,
} tide_log_severity;

typedef struct tide_options {
  size_t size;            /* sizeof (tide_options), set by tide_options_init */
  const char *name;       /* NULL: the script's base name */
  struct uv_loop_s *loop; /* NULL: the host makes its own */
  struct lua_State *lua;  /* NULL: the host makes its own; a given one stays the
                             caller's and is usable after tide_free */
  unsigned flags;
  int64_t startup_timeout_ms;  /* total; -1: 120 s */
  int64_t shutdown_timeout_ms; /* total; -1: 40 s */
  int argc;                    /* what the script gets as `...`, and finds as
                                  arg[1..] unless `lua` is given */
  char **argv;                 /* not changed, must live as long as the host */
  /* Takes each log record as a formatted line, on the thread that wrote it. */
  void (*on_log)(void *arg, tide_log_severity severity, const char *line,
                 size_t length);
  /* A total has passed (without TIDE_EXIT). On the watchdog thread: it may do
   * only what a signal handler may. */
  void (*on_overrun)(void *arg, int shutdown);
  void *arg; /* for both */
  /* Where Lua's memory comes from, as lua_Alloc; NULL: malloc. Not with `lua`.
   * Called on the loop thread alone. */
  void *(*alloc)(void *arg, void *block, size_t old_size, size_t new_size);
  void *alloc_arg;
  /* Most bytes that an own Lua state may have; 0: no limit. What would go above
   * fails with "not enough memory": a task fails with that, and the pipeline
   * goes on. Not with `lua`. At least 2 MiB, else TIDE_EINVAL. It holds inside
   * of protected calls; what is pushed outside of one is counted only. */
  size_t lua_memory_limit;
} tide_options;

/* Sets every field to its default. [any] */
TIDE_API void tide_options_init(tide_options *options);

/* Makes a host; the calling thread becomes its loop thread. With TIDE_SIGNALS
 * the handlers stand before anything else is set up. NULL options: defaults.
 * An options struct of an older header is as good; in one of a newer, what this
 * library does not know must be zero. Returns 0, TIDE_EINVAL (a struct that is
 * neither, or values that do not go together), or a libuv error; then *out is
 * NULL. */
TIDE_API int tide_new(tide_host **out, const tide_options *options);

/* Loads a script without running it: text only, bytecode is refused. Returns 0,
 * TIDE_ESCRIPT with tide_last_error (unreadable, a directory, a syntax error),
 * TIDE_ESTATE when a script is loaded already, TIDE_ELUA (out of memory) or
 * TIDE_EINVAL (NULL). [loop] */
TIDE_API int tide_load(tide_host *host, const char *path);
/* The same from memory; `name` is what messages call it. [loop] */
TIDE_API int tide_load_buffer(tide_host *host, const char *name,
                              const char *text, size_t length);

/* Begins: the script's main chunk runs as the first task, in the loop's first
 * turn; startup follows at its end. From ready on it lives until something asks
 * for a shutdown: with TIDE_PROCESS also the script's having nothing left to
 * do, else only tide_drain, a signal, os.exit or an uncaught error. Returns 0,
 * TIDE_ESTATE (nothing loaded, or started already), or TIDE_ELUA with
 * tide_last_error (out of memory). [loop] */
TIDE_API int tide_start(tide_host *host);

/* Runs until the host has stopped. Returns its exit code (0 to 255), or a
 * negative error: TIDE_EREENTRANT, TIDE_ETHREAD, TIDE_ESTATE. With TIDE_EXIT it
 * does not return: it flushes the log and ends the process. [loop] */
TIDE_API int tide_run(tide_host *host);

/* ---- turning the loop oneself ----------------------------------------------
 *
 * Instead of tide_run; with TIDE_EXIT, too, they never end the process. All
 * return TIDE_ETHREAD, TIDE_EREENTRANT (from inside a callback of the host) or
 * TIDE_ESTATE (not started) where that is so, and TIDE_IS_STOPPED, a success,
 * once the host has stopped; then tide_exit_code says how. */

enum {
  TIDE_IS_IDLE = 0,               /* nothing to do now */
  TIDE_HAS_MORE = 1,              /* there is more to do at once */
  TIDE_IS_STOPPED = TIDE_STOPPED, /* the host has stopped */
};

/* One turn of the loop, which waits for something to happen: at most
 * `timeout_ms` (-1: as long as it takes, 0: not at all). Returns one of the
 * three. [loop] */
TIDE_API int tide_step(tide_host *host, int64_t timeout_ms);

/* A game loop's share: turns without waiting until there is nothing to do or
 * `budget_us` is used up (0 and less: just one turn). What is ready in Lua runs
 * one after another as long as there is time, and what the console was given to
 * evaluate is paused for the next tick. Where that has used up a tick, the next
 * one begins with what has come for the loop meanwhile, so at least every
 * second tick is a turn of the loop. A task or callback that does not give way,
 * and one long call into C, take what they take. Returns one of the three.
 * [loop] */
TIDE_API int tide_tick(tide_host *host, int64_t budget_us);

/* For an epoll or a loop that is not libuv's: wait until tide_fd is readable,
 * at most tide_timeout, then call tide_dispatch; and once before waiting for
 * the first time. The descriptor (an epoll's) stays the host's: it goes away in
 * tide_free. Both are libuv's own for a loop of the caller's. [loop] */
TIDE_API int tide_fd(const tide_host *host);
/* Milliseconds until it must be called; 0: now, -1: no timer is set. [loop] */
TIDE_API int tide_timeout(const tide_host *host);
/* Takes up what has come, without waiting. Returns one of the three. [loop] */
TIDE_API int tide_dispatch(tide_host *host);

/* The exit code of a host that has stopped, 0 to 255; TIDE_ESTATE before.
 * [loop] */
TIDE_API int tide_exit_code(const tide_host *host);

/* ---- from other threads ----------------------------------------------------
 */

/* Calls fn(host, arg, 0) on the loop thread, in the order of the posts of one
 * thread, each exactly once. What is still queued when the host goes is called
 * with TIDE_ECANCELED, in tide_free or by tide_close. `fn` may use whatever is
 * [loop], but neither turn the loop nor free the host. Returns 0, or what keeps
 * `fn` from ever being called: TIDE_ECANCELED (the host has stopped),
 * TIDE_EINVAL (no fn), UV_ENOMEM or TIDE_EFORKED. [any] */
typedef void (*tide_post_fn)(tide_host *host, void *arg, int status);
TIDE_API int tide_post(tide_host *host, tide_post_fn fn, void *arg);

/* The present state: an atomic load. [any] */
TIDE_API tide_state tide_host_state(const tide_host *host);

/* Asks for a shutdown, once; later calls are recorded only. `reason` is a short
 * text for the log, NULL: "unknown"; it takes no memory that could be missing.
 * Returns 0, TIDE_ECANCELED (the host has stopped) or TIDE_EFORKED. [any] */
TIDE_API int tide_drain(tide_host *host, const char *reason);

/* Ends a shutdown (or asks for one) by force, as a second SIGINT does: what
 * drains is cut, only phases that always run are run. Again harmless. Returns
 * as tide_drain does. [any] */
TIDE_API int tide_kill(tide_host *host, const char *reason);

/* ---- in-flight work of the program's own -----------------------------------
 *
 * Matches, sessions, connections that are not moontide's. The shutdown phase
 * service-requests-done waits for them as for HTTP requests. */

/* Begins one piece of work of this kind ("match": letters, digits, "-", "_", at
 * most 63). Returns 0, or why it must not begin: TIDE_EDRAINING once the phase
 * service-unbind has run, TIDE_ECANCELED after the stop, TIDE_EINVAL (such a
 * kind cannot be), UV_ENOMEM or TIDE_EFORKED. [any] */
TIDE_API int tide_work_begin(tide_host *host, const char *kind);
/* Ends one that was begun. Returns 0, TIDE_EINVAL (none of this kind is) or
 * TIDE_EFORKED. [any] */
TIDE_API int tide_work_end(tide_host *host, const char *kind);

/* ---- phases, tasks and checks in C -----------------------------------------
 *
 * They stand in the same pipelines as the script's, with the same budgets, log
 * records and report. All structs begin with their size, set by their _init,
 * and are copied. Errors: TIDE_EINVAL (no such struct, or it lacks something),
 * TIDE_ELUA (what a script would get as an error: a name that is not known or
 * is there already, a phase that comes too late) and TIDE_ESTATE (a task whose
 * phase has begun), all with tide_last_error. */

typedef enum tide_pipeline {
  TIDE_STARTUP_PIPELINE,
  TIDE_SHUTDOWN_PIPELINE,
} tide_pipeline;

typedef struct tide_phase_spec {
  size_t size;
  tide_pipeline pipeline;
  const char *name;
  const char *const *after; /* names, the last one NULL; NULL: none */
  const char *const *before;
  int64_t timeout_ms; /* -1: the pipeline's default */
  int parallel;       /* its tasks: 1 at once (default), 0 one by one */
} tide_phase_spec;

TIDE_API void tide_phase_spec_init(tide_phase_spec *phase);
/* Declares a phase; before tide_start, or in the main chunk. [loop] */
TIDE_API int tide_phase_add(tide_host *host, const tide_phase_spec *phase);

/* A task that runs, until tide_task_done. */
typedef struct tide_token tide_token;
/* What `run` returns to say that tide_task_done will follow. */
enum { TIDE_PENDING = 1 };

typedef struct tide_task_spec {
  size_t size;
  tide_pipeline pipeline;
  const char *phase;  /* of its pipeline; a built-in one, too */
  const char *name;   /* unique in the phase */
  int64_t timeout_ms; /* -1: the phase's */
  /* Begins the task, on the loop thread: 0 done, TIDE_PENDING, else a negative
   * error: failed. It must not block. */
  int (*run)(tide_host *host, tide_token *token, void *arg);
  /* Its time is over, or it is not wanted any more: it has a second to call
   * tide_task_done, which it still must, then it is abandoned. NULL: nothing
   * can be done. On the loop thread. */
  void (*cancel)(tide_host *host, tide_token *token, void *arg);
  void *arg;
} tide_task_spec;

TIDE_API void tide_task_spec_init(tide_task_spec *task);
/* Registers a task to a phase; as long as the phase has not begun. [loop] */
TIDE_API int tide_task_add(tide_host *host, const tide_task_spec *task);
/* Ends a pending task: status 0, or a negative error with an own message or
 * NULL for tide_strerror's. Exactly once for each TIDE_PENDING, also after
 * `cancel` and after tide_free; it takes the token. [any] */
TIDE_API void tide_task_done(tide_token *token, int status,
                             const char *message);

typedef struct tide_check_spec {
  size_t size;
  const char *name;
  int64_t every_ms; /* -1: 5000 */
  int critical;     /* 1 (default): the process is not ready without it */
  int failures;     /* in a row that turn it; 0: 3 */
  int successes;    /* in a row that turn it back; 0: 1 */
  /* 0 ok, else a negative error. On the loop thread; it must not block: look at
   * what another thread has found. */
  int (*run)(tide_host *host, void *arg);
  void *arg;
} tide_check_spec;

TIDE_API void tide_check_spec_init(tide_check_spec *check);
/* Adds a readiness check, before tide_start or later. [loop] */
TIDE_API int tide_check_add(tide_host *host, const tide_check_spec *check);

/* ---- looking and listening --------------------------------------------------
 */

typedef enum tide_event_kind {
  TIDE_EVENT_STATE,       /* from, to, reason */
  TIDE_EVENT_PHASE_BEGAN, /* pipeline, phase */
  TIDE_EVENT_PHASE_ENDED, /* pipeline, phase, outcome, ms */
  TIDE_EVENT_TASK_ENDED,  /* pipeline, phase, task, outcome, ms; of a phase with
                             more than 100 tasks, only those that failed */
} tide_event_kind;

typedef struct tide_event {
  size_t size;
  tide_event_kind kind;
  tide_state from, to;
  tide_pipeline pipeline;
  const char *phase;   /* texts live during the call */
  const char *task;    /* NULL where there is none */
  const char *outcome; /* "ok", "failed", "timed_out", ... */
  const char *reason;  /* of a shutdown; NULL where there is none */
  int64_t ms;
} tide_event;

/* Calls fn on the loop thread for each event from now on. It may use what is
 * [loop], but neither turn the loop nor free the host. Returns an id above 0,
 * TIDE_EINVAL (no fn), UV_ENOMEM, or TIDE_ELUA with tide_last_error (out of
 * memory). [loop] */
typedef void (*tide_event_fn)(tide_host *host, const tide_event *event,
                              void *arg);
TIDE_API int tide_on_event(tide_host *host, tide_event_fn fn, void *arg);
/* Ends it, also from inside of fn. Returns 0, or TIDE_EINVAL for an id that is
 * none. [loop] */
TIDE_API int tide_off_event(tide_host *host, int id);

typedef struct tide_info {
  size_t size; /* sizeof (tide_info) */
  tide_state state;
  int exit_code;        /* -1 before the stop */
  uint64_t work;        /* pieces of the program's own */
  uint64_t requests;    /* HTTP requests in flight */
  uint64_t connections; /* of HTTP */
  uint64_t tasks;       /* that live */
  size_t lua_bytes;     /* of the Lua state */
  uint64_t lag_us;      /* how late the loop's last turn was for a timer */
  int64_t uptime_ms;
  const char *phase;    /* that runs, "" between them; until the next call */
  int64_t slack_ms;     /* what is left of the running pipeline's total; -1 */
  uint64_t log_dropped; /* records */
} tide_info;

/* Fills as much of the struct as its size says. Returns 0, TIDE_EINVAL for a
 * size that is not set, or TIDE_ELUA with tide_last_error (out of memory: what
 * only Lua knows is missing). [loop] */
TIDE_API int tide_get_info(tide_host *host, tide_info *info);

/* What went wrong last, with place and message; "" when nothing did, or when
 * there was no memory for it. Until the next call. [loop] */
TIDE_API const char *tide_last_error(const tide_host *host);

/* The host's Lua state, to call into with tide_call; its own goes in tide_free.
 * Pushing a text or a table takes memory, and out of it Lua ends the process
 * where no call protects: do it in a C function that tide_call calls. [loop] */
TIDE_API struct lua_State *tide_lua(tide_host *host);
/* lua_pcall with a traceback. The function and its arguments are on the stack
 * of tide_lua. With TIDE_INTERRUPT, and once the host has started, it has two
 * seconds, like a callback; then it is interrupted. Returns 0, or TIDE_ELUA
 * with tide_last_error and the stack as it was below the function. [loop] */
TIDE_API int tide_call(tide_host *host, int nargs, int nresults);

/* In a child of fork(2) that does not exec at once: closes the child's copies
 * of the host's descriptors, without a word to the kernel's epoll that both
 * share, and puts signals back to what they were before TIDE_SIGNALS. Until
 * then, and without this call, a signal that such a child gets is treated as if
 * the host had no handler for it, and the parent hears nothing of it. What
 * stays: the memory; two descriptors of libuv's own, which it makes anew in
 * each child; an ignored SIGPIPE and the handler of TIDE_INTERRUPT's signal,
 * which nobody sends; of a loop of the caller's, all that is not the host's;
 * descriptors that Lua has opened without a handle, or on other threads. A
 * child that execs needs none of it: all are closed by that. Other calls in the
 * child return TIDE_EFORKED; tide_free does what this does. Again harmless,
 * and in the parent it does nothing. [the child] */
TIDE_API void tide_after_fork(tide_host *host);

/* Takes the host off its loop, for a loop of the caller's that goes on turning:
 * returns at once, and calls fn(host, arg) from a turn of that loop when no
 * handle and no request of the host's is left on it. Requests that a thread of
 * libuv's pool has begun are waited for, without blocking. From the call on the
 * state is TIDE_STOPPED and posts are refused; what was posted before is called
 * with TIDE_ECANCELED. Until `fn` the loop must be turned, by uv_run or by
 * tide_step, tide_tick or tide_dispatch, which return TIDE_IS_STOPPED again
 * after it. Then tide_free does not touch the loop; it may be called in `fn`,
 * unless one of those three turns the loop. `fn` is not called if tide_free
 * comes first.
 * Before tide_start, or once the host has stopped; from a callback, too (as of
 * TIDE_EVENT_STATE). Returns 0, TIDE_ESTATE (it runs: tide_drain first),
 * UV_EALREADY (called before), TIDE_EINVAL (no fn), TIDE_ETHREAD or
 * TIDE_EFORKED. [loop] */
typedef void (*tide_close_fn)(tide_host *host, void *arg);
TIDE_API int tide_close(tide_host *host, tide_close_fn fn, void *arg);

/* Frees it all: handles, an own loop, an own Lua state, the log once it is
 * written. What threads of libuv's pool have begun for the host is waited for.
 * An own loop is run dry. A loop of the caller's is turned as long as anything
 * of the host is on it, which calls back whatever else is due there: not from a
 * callback of that loop (there tide_close comes first, after which the loop is
 * not touched). From inside of a callback of the host's it does nothing but
 * write an error to the log. A host that runs is cut: tide_drain it first, if
 * its tasks are to end well. NULL is ignored. [loop] */
TIDE_API void tide_free(tide_host *host);

/* The Lua module: `require "moontide"` in a stock lua5.4. Leaves the library's
 * table on the stack. */
TIDE_API int luaopen_moontide(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
