/* host: the inside of a tide_host, for the core's own rooms.
 *
 * host.c makes the rooms, in this order; close.c takes them down. A room gets a
 * pointer to what it needs of the others, never the host. Only the bindings
 * (core/lua/, core/modules/) and the files of the host itself include this
 * header: host.c, pump.c, drive.c, close.c, fork.c, native_exit.c.
 */
#ifndef TIDE_HOST_H
#define TIDE_HOST_H

#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "beat.h"
#include "clock.h"
#include "interrupt.h"
#include "log.h"
#include "lua/memory.h"
#include "mailbox.h"
#include "moontide.h"
#include "notify.h"
#include "owner.h"
#include "signals.h"
#include "state.h"
#include "watchdog.h"
#include "work.h"
#include "work_gate.h"

struct tide_http;    /* core/http/http.h */
struct tide_control; /* core/control.h */

typedef struct tide_guest tide_guest; /* core/close.h */

/* How the host came to its process; Lua sees the name. */
typedef enum tide_mode {
  TIDE_MODE_PROCESS,  /* the moontide binary: TIDE_PROCESS */
  TIDE_MODE_MODULE,   /* require "moontide" in a stock interpreter */
  TIDE_MODE_EMBEDDED, /* a C program */
} tide_mode;

/* Who decides how Lua collects, and how it does (lua/collector.c). */
typedef enum tide_collector {
  TIDE_COLLECT_ASIDE, /* not the host */
  TIDE_COLLECT_ALL,
  TIDE_COLLECT_YOUNG,
} tide_collector;

struct tide_host {
  tide_owner owner; /* first: the pump's handles point here */
  tide_options options;
  uv_loop_t own_loop;
  uv_loop_t *loop;
  lua_State *L;
  tide_memory memory; /* of a state of our own */
  bool owns_loop;
  bool owns_lua;
  bool has_luv; /* on the loop */
  tide_collector collector;
  unsigned flags;
  tide_mode mode;
  char *name;
  int argc;
  char **argv; /* the program's */
  int64_t startup_timeout_ms;
  int64_t shutdown_timeout_ms;

  tide_clock clock;
  struct tide_horizon *horizon;      /* of the task library; NULL before Lua */
  struct tide_sched *sched;          /* likewise (lua/task.h) */
  struct tide_lua_http *http_bridge; /* likewise (lua/http.h) */
  const struct tide_route **routes;  /* by number; see lua/http_listener.c */
  size_t route_count;
  tide_log *log;
  struct tide_log_tap *tap; /* core/log_tap.h; NULL before it is used */
  tide_lifecycle lifecycle;
  tide_work work;
  tide_interrupt *interrupt; /* NULL without TIDE_INTERRUPT */
  tide_watchdog *watchdog;   /* NULL in a module before it runs */
  tide_signals *signals;     /* NULL without TIDE_SIGNALS */
  tide_notify *notify;
  struct tide_http *http;
  tide_work_gate gate;   /* the program's own work */
  tide_mailbox *mailbox; /* what other threads want called here */
  struct tide_event_listener *event_listeners;
  int last_event_id;
  bool telling;                 /* events are being told */
  char info_phase[64];          /* what tide_get_info showed last */
  struct tide_control *control; /* NULL before it is used */

  /* The pump: Lua's run queue, turned after whatever entered Lua. */
  uv_prepare_t prepare;
  uv_check_t check;
  uv_idle_t idle;
  uv_async_t async; /* the one referenced handle: keeps uv_run from returning */
  tide_beat beat;   /* that it turns, for the watchdog's thread */
  bool pump_wanted;
  int turns; /* of the loop, as far as release_log counts them */
  bool log_released;
  bool ran;       /* Lua ran since on_idle was last asked */
  bool was_alive; /* the loop had something of the script, a turn ago */
  int handles;    /* of these four, still open */
  int pump, idle_fn, uncaught_fn, drain_fn; /* Lua functions, LUA_NOREF */
  int work_fn; /* ... called when the program's last work has ended */

  uint64_t started_at; /* tide_clock_mono at tide_new */
  uv_thread_t thread;
  unsigned generation; /* tide_fork_generation when it was made */
  bool loaded;
  bool started;
  bool running;
  bool stopped;
  bool closing;   /* tide_free or tide_close has begun: no more Lua */
  bool gone;      /* nothing of it is on the loop any more */
  bool fork_done; /* tide_after_fork in this child */
  int exit_code;
  uint64_t log_close_timeout; /* ns */
  char *last_error;
  _Atomic(char *) drain_reason; /* asked for by tide_drain, not yet taken up */
  atomic_bool kill_wanted;      /* ... by tide_kill */
  tide_deadline step_end;       /* of a tide_step that waits */
  uint64_t tick_end;            /* of a tide_tick, as tide_clock_mono; else 0 */
  bool polls_first;    /* in a tide_tick, which runs the queue itself */
  bool queue_alone;    /* and does so now: outside uv_run, though `running` */
  bool queue_had_tick; /* the last one, so this one is the loop's first */

  int inside;        /* callbacks of the program's that are not Lua's */
  unsigned requests; /* of modules, on libuv's pool of threads */
  tide_guest *guests;

  /* Leaving a loop that goes on (close.c). */
  tide_close_fn close_fn;
  void *close_arg;
  uv_prepare_t closer;
  uv_check_t closer_check;
  uv_idle_t closer_idle;
  int closer_handles; /* of these three, still open */
  bool closer_open;   /* ... or has been */
  size_t waits_for;   /* requests, before the poll */
  uv_handle_t **leaving;
  size_t leaving_count;
};

/* Deadlines of an entry that are no point in time. */
#define TIDE_ENTER_CALLBACK ((uint64_t)0) /* 2 s from now */
#define TIDE_ENTER_UNBOUNDED (UINT64_MAX) /* the callee sets its own */

/* As tide_new; TIDE_MODE_MODULE is for luaopen_moontide. */
int tide_host__new(tide_host **out, const tide_options *options,
                   tide_mode mode);

/* Calls the function below `nargs` arguments in a slice of its own, protected,
 * with a traceback, and asks the pump to turn afterwards. `deadline` is a time
 * of tide_clock_mono() or one of the two above. On an error returns false with
 * the error message (traceback appended when it is a string) on the stack in
 * place of function and arguments. The one way from C into Lua. */
bool tide_host__enter(tide_host *host, int nargs, int nresults,
                      uint64_t deadline);
/* As enter, and an error goes to the uncaught path. Leaves nothing on the stack
 * after an error. `kind` is a literal for the log: "luv callback", "timer". */
bool tide_host__call(tide_host *host, int nargs, int nresults,
                     const char *kind);
/* Hands the error on the top of the stack to the uncaught path; pops it. */
void tide_host__uncaught(tide_host *host, const char *kind);
/* The host that a Lua state belongs to; NULL when none. */
tide_host *tide_host__of(lua_State *L);
/* Whether a [loop] function may go on: 0, TIDE_EFORKED or TIDE_ETHREAD. */
int tide_host__check(const tide_host *host);
/* The same, and TIDE_ESTATE once tide_close was called. */
int tide_host__check_open(const tide_host *host);
/* Whether a callback of the host's, or Lua, is running: then its loop cannot be
 * turned, nor can it be freed. [loop] */
bool tide_host__busy(const tide_host *host);
/* Makes watchdog and interrupts, where they are wanted and not there yet.
 * Returns 0 or a negative libuv error. */
int tide_host__watch(tide_host *host);
/* Opens the signals room if it is not open yet. */
int tide_host__open_signals(tide_host *host);
/* Runs the loop; whoever calls has seen that it does not run already. */
void tide_host__run_loop(tide_host *host, uv_run_mode mode);
/* One loop turn, blocking or not. False inside another. */
bool tide_host__turn(tide_host *host, bool block);
/* Runs Lua's queue until it is empty (for a virtual clock). False when it does
 * not become empty: some task only ever gives way. */
bool tide_host__pump_dry(tide_host *host);
/* Whether the loop holds anything that is not the host's own. */
bool tide_host__script_alive(tide_host *host);
/* Sets what tide_last_error tells; takes a copy. */
void tide_host__set_error(tide_host *host, const char *message);
/* Frees what drain_reason has held. */
void tide_host__free_reason(char *reason);
/* Something was queued for the pump. */
void tide_host__wake(tide_host *host);
/* Ends tide_run with this code after the present loop turn. */
void tide_host__stop(tide_host *host, int code);

#endif
