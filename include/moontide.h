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
  X(TIDE_EDRAINING, -5008, "the host is draining")

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
  int argc;                    /* what the script sees as arg[1..] */
  char **argv;                 /* not changed, must live as long as the host */
  /* Takes each log record as a formatted line, on the thread that wrote it. */
  void (*on_log)(void *arg, tide_log_severity severity, const char *line,
                 size_t length);
  /* A total has passed (without TIDE_EXIT). On the watchdog thread: it may do
   * only what a signal handler may. */
  void (*on_overrun)(void *arg, int shutdown);
  void *arg; /* for both */
} tide_options;

/* Sets every field to its default. [any] */
TIDE_API void tide_options_init(tide_options *options);

/* Makes a host; the calling thread becomes its loop thread. With TIDE_SIGNALS
 * the handlers stand before anything else is set up. NULL options: defaults.
 * Returns 0, TIDE_EINVAL (an options struct of an unknown size), or a libuv
 * error; then *out is NULL. */
TIDE_API int tide_new(tide_host **out, const tide_options *options);

/* Loads a script without running it: text only, bytecode is refused. Returns 0,
 * TIDE_ESCRIPT with tide_last_error (unreadable, a directory, a syntax error),
 * or TIDE_ESTATE when a script is loaded already. [loop] */
TIDE_API int tide_load(tide_host *host, const char *path);
/* The same from memory; `name` is what messages call it. [loop] */
TIDE_API int tide_load_buffer(tide_host *host, const char *name,
                              const char *text, size_t length);

/* Begins: the script's main chunk runs as the first task, in the loop's first
 * turn; startup follows at its end. Returns 0, TIDE_ESTATE (nothing loaded, or
 * started already). [loop] */
TIDE_API int tide_start(tide_host *host);

/* Runs until the host has stopped. Returns its exit code (0 to 255), or a
 * negative error: TIDE_EREENTRANT, TIDE_ETHREAD, TIDE_ESTATE. With TIDE_EXIT it
 * does not return: it flushes the log and ends the process. [loop] */
TIDE_API int tide_run(tide_host *host);

/* The present state: an atomic load. [any] */
TIDE_API tide_state tide_host_state(const tide_host *host);

/* Asks for a shutdown, once; later calls are recorded only. `reason` is a short
 * text for the log, NULL: "unknown". Returns 0 or TIDE_ECANCELED. [any] */
TIDE_API int tide_drain(tide_host *host, const char *reason);

/* What went wrong last, with place and message; "" when nothing did. [loop] */
TIDE_API const char *tide_last_error(const tide_host *host);

/* The host's Lua state, to call into with tide_call. [loop] */
TIDE_API struct lua_State *tide_lua(tide_host *host);
/* lua_pcall with a traceback. The function and its arguments are on the stack
 * of tide_lua. With TIDE_INTERRUPT, and once the host has started, it has two
 * seconds, like a callback; then it is interrupted. Returns 0, or TIDE_ELUA
 * with tide_last_error and the stack as it was below the function. [loop] */
TIDE_API int tide_call(tide_host *host, int nargs, int nresults);

/* Frees it all: closes handles, runs an own loop dry, closes an own Lua state.
 * A host that runs must have stopped. NULL is ignored. [loop] */
TIDE_API void tide_free(tide_host *host);

/* The Lua module: `require "moontide"` in a stock lua5.4. Leaves the library's
 * table on the stack. */
TIDE_API int luaopen_moontide(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
