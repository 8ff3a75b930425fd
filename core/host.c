/* host.c: makes the rooms of a host, and runs them.
 *
 * Order of making: signals note from the very first; then loop, clock, log,
 * watchdog, Lua. How it is taken down is in close.c.
 */
#include "host.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "fork.h"
#include "http/http.h"
#include "lua/lua.h"
#include "lua/memory.h"
#include "native_exit.h"
#include "pump.h"
#include "versioned.h"

#define SHUTDOWN_TOTAL_DEFAULT (40 * TIDE_SEC)
#define LOG_CLOSE_DEFAULT (3 * TIDE_SEC)
#define LEAST_MEMORY ((size_t)2 * 1024 * 1024)

void tide_options_init(tide_options *options) {
  memset(options, 0, sizeof *options);
  options->size = sizeof *options;
  options->startup_timeout_ms = -1;
  options->shutdown_timeout_ms = -1;
}

/* ---- making ----------------------------------------------------------------
 */

static void on_severity(void *arg, tide_log_level level, const char *line,
                        size_t length) {
  const tide_options *options = arg;
  options->on_log(options->arg, (tide_log_severity)level, line, length);
}

static int open_log(tide_host *host) {
  tide_log_options options = {.fd = -1, .level = TIDE_LOG_INFO};
  int rc;
  options.format = TIDE_LOG_JSON;
  if (host->flags & TIDE_LOG_STDERR) {
    options.fd = STDERR_FILENO;
    if (isatty(STDERR_FILENO))
      options.format = TIDE_LOG_LOGFMT;
  }
  if (host->options.on_log != NULL) {
    options.fn = on_severity;
    options.arg = &host->options;
  }
  rc = tide_log_open(&host->log, &options);
  if (rc == 0)
    tide_log_hold(host->log);
  return rc;
}

static void on_signal(void *arg, const tide_signal_info *info) {
  tide_host *host = arg;
  tide_lua_signal(host, info);
  if (host->watchdog != NULL)
    tide_watchdog_taken(host->watchdog);
}

int tide_host__open_signals(tide_host *host) {
  int rc;
  if (host->signals != NULL)
    return 0;
  rc = tide_signals_open(&host->signals, host->loop, on_signal, host);
  if (rc == 0)
    tide_signals_set_watchdog(host->signals, host->watchdog);
  return rc;
}

/* Without TIDE_EXIT a total never ends the process, callback or not. */
static void on_overrun(void *arg, tide_total which) {
  tide_host *host = arg;
  if (host->options.on_overrun != NULL)
    host->options.on_overrun(host->options.arg, which == TIDE_TOTAL_SHUTDOWN);
}

int tide_host__watch(tide_host *host) {
  tide_watchdog_options options = {.name = host->name, .arg = host};
  bool interrupt = (host->flags & TIDE_INTERRUPT) != 0;
  int rc;
  if (host->watchdog != NULL)
    return 0;
  if (interrupt && host->interrupt == NULL) {
    rc = tide_interrupt_init(&host->interrupt);
    if (rc != 0)
      return rc;
  }
  options.interrupt = host->interrupt;
  options.shutdown_total =
      host->shutdown_timeout_ms >= 0
          ? tide_clock_ns(host->shutdown_timeout_ms, TIDE_MS)
          : SHUTDOWN_TOTAL_DEFAULT;
  if (!(host->flags & TIDE_EXIT))
    options.on_overrun = on_overrun;
  options.line = (host->flags & TIDE_CONSOLE) != 0;
  options.lifecycle = &host->lifecycle;
  options.work = &host->work;
  options.beat = &host->beat;
  options.started_at = host->started_at;
  rc = tide_watchdog_start(&host->watchdog, &options);
  if (rc == 0 && host->signals != NULL)
    tide_signals_set_watchdog(host->signals, host->watchdog);
  return rc;
}

static int open_http(tide_host *host) {
  tide_http_env env = {
      .loop = host->loop,
      .clock = &host->clock,
      .log = host->log,
      .lifecycle = &host->lifecycle,
      .work = &host->work,
      .started_at = host->started_at,
  };
  return tide_http_open(&host->http, &env);
}

static int open_loop(tide_host *host) {
  int rc;
  host->loop = host->options.loop;
  if (host->loop == NULL) {
    rc = uv_loop_init(&host->own_loop);
    if (rc != 0)
      return rc;
    host->loop = &host->own_loop;
    host->owns_loop = true;
  }
  rc = tide_clock_init(&host->clock, host->loop);
  if (rc != 0)
    return rc;
  if ((rc = tide_pump_open(host)) != 0)
    return rc;
  host->mailbox = tide_mailbox_new(host, &host->async);
  if (host->mailbox == NULL)
    return UV_ENOMEM;
  return tide_work_gate_init(&host->gate, &host->async);
}

static int open_rooms(tide_host *host) {
  bool watched = (host->flags & (TIDE_INTERRUPT | TIDE_EXIT | TIDE_CONSOLE)) ||
                 host->options.on_overrun != NULL;
  int rc;
  if ((rc = open_loop(host)) != 0 || (rc = open_log(host)) != 0)
    return rc;
  if (watched && (rc = tide_host__watch(host)) != 0)
    return rc;
  if ((host->flags & TIDE_SIGNALS) && (rc = tide_host__open_signals(host)) != 0)
    return rc;
  if ((rc = tide_notify_open(&host->notify)) != 0)
    return rc;
  return open_http(host);
}

static int copy_options(tide_host *host, const tide_options *given) {
  tide_options_init(&host->options);
  if (given != NULL &&
      !tide_struct_take(&host->options, sizeof host->options, given))
    return TIDE_EINVAL;
  if (host->options.lua != NULL &&
      (host->options.alloc != NULL || host->options.lua_memory_limit != 0))
    return TIDE_EINVAL; /* its memory is its maker's */
  if (host->options.lua_memory_limit != 0 &&
      host->options.lua_memory_limit < LEAST_MEMORY)
    return TIDE_EINVAL;
  host->flags = host->options.flags;
  host->argc = host->options.argc;
  host->argv = host->options.argv;
  host->startup_timeout_ms = host->options.startup_timeout_ms;
  host->shutdown_timeout_ms = host->options.shutdown_timeout_ms;
  host->mode =
      host->flags == TIDE_PROCESS ? TIDE_MODE_PROCESS : TIDE_MODE_EMBEDDED;
  if (host->options.name != NULL) {
    host->name = strdup(host->options.name);
    if (host->name == NULL)
      return UV_ENOMEM;
  }
  return 0;
}

static void ignore_sigpipe(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
}

static bool wants_signals(const tide_options *options) {
  return options != NULL &&
         options->size >= offsetof(tide_options, flags) + sizeof(unsigned) &&
         (options->flags & TIDE_SIGNALS) != 0;
}

int tide_host__new(tide_host **out, const tide_options *options,
                   tide_mode mode) {
  tide_host *host;
  int rc;
  *out = NULL;
  if (wants_signals(options) && (rc = tide_signals_early()) != 0)
    return rc;
  if ((rc = tide_fork_watch()) != 0)
    return rc;
  host = calloc(1, sizeof *host);
  if (host == NULL)
    return UV_ENOMEM;
  host->started_at = tide_clock_mono();
  host->thread = uv_thread_self();
  host->generation = tide_fork_generation();
  host->pump = host->idle_fn = host->uncaught_fn = host->drain_fn = LUA_NOREF;
  host->work_fn = LUA_NOREF;
  host->log_close_timeout = LOG_CLOSE_DEFAULT;
  tide_lifecycle_init(&host->lifecycle);
  tide_work_init(&host->work);
  rc = copy_options(host, options);
  if (rc == 0 && mode == TIDE_MODE_MODULE)
    host->mode = mode;
  if (rc == 0 && (host->flags & TIDE_SIGPIPE))
    ignore_sigpipe();
  if (rc == 0)
    rc = open_rooms(host);
  if (rc == 0)
    rc = tide_lua_setup(host);
  if (rc != 0) {
    tide_free(host);
    return rc;
  }
  *out = host;
  return 0;
}

int tide_new(tide_host **out, const tide_options *options) {
  return tide_host__new(out, options, TIDE_MODE_EMBEDDED);
}

/* ---- loading and running ---------------------------------------------------
 */

tide_state tide_host_state(const tide_host *host) {
  return tide_lifecycle_state(&host->lifecycle);
}

const char *tide_last_error(const tide_host *host) {
  return host->last_error != NULL ? host->last_error : "";
}

void tide_host__set_error(tide_host *host, const char *message) {
  free(host->last_error);
  host->last_error = strdup(message); /* NULL reads as "" */
}

int tide_start(tide_host *host) {
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  if (!host->loaded || host->started)
    return TIDE_ESTATE;
  host->started = true;
  return tide_lua_start(host);
}

/* When Lua itself has failed, nobody has said so to those who look at the
 * state. */
void tide_host__stop(tide_host *host, int code) {
  if (tide_host_state(host) == TIDE_READY)
    tide_lifecycle_move(&host->lifecycle, TIDE_DRAINING);
  tide_lifecycle_move(&host->lifecycle, TIDE_STOPPED);
  host->exit_code = code;
  host->stopped = true;
  /* Either also ends a poll that is about to begin. A loop that its owner turns
   * is not stopped: there may be more on it. */
  if (host->running && !host->queue_alone)
    uv_stop(host->loop);
  else
    uv_async_send(&host->async);
}

/* The end of a process whose life is the host's: whatever Lua's print left in
 * the streams, then the log, then no further cleanup, which would only cost
 * time (closing a large Lua state takes longer than a drain). */
static void end_process(tide_host *host) {
  int code = host->exit_code;
  tide_native_exit_release(host);
  if (host->control != NULL) /* its file would stay */
    tide_control_unlisten(host->control);
  fflush(NULL);
  tide_log_flush(host->log, host->log_close_timeout);
  if (host->watchdog != NULL)
    tide_watchdog_leave(host->watchdog);
#ifdef TIDE_FULL_TEARDOWN
  tide_free(host);
  exit(code);
#else
  _exit(code);
#endif
}

int tide_run(tide_host *host) {
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  if (tide_host__busy(host))
    return TIDE_EREENTRANT;
  if (!host->started)
    return TIDE_ESTATE;
  host->running = true;
  if (host->flags & TIDE_EXIT)
    tide_native_exit_watch(host);
  while (!host->stopped)
    uv_run(host->loop, UV_RUN_DEFAULT);
  host->running = false;
  if (host->flags & TIDE_EXIT)
    end_process(host);
  return host->exit_code;
}

/* What is called from here is outside of all protected calls, also where Lua
 * has asked for the turn. */
void tide_host__run_loop(tide_host *host, uv_run_mode mode) {
  int around = host->memory.guarded;
  host->memory.guarded = 0;
  host->running = true;
  uv_run(host->loop, mode);
  host->running = false;
  host->memory.guarded = around;
}

bool tide_host__turn(tide_host *host, bool block) {
  if (host->running)
    return false;
  tide_host__run_loop(host, block ? UV_RUN_ONCE : UV_RUN_NOWAIT);
  return true;
}

/* For want of memory for another: a shutdown is not to fail for that. */
static char unknown_reason[] = "unknown";

void tide_host__free_reason(char *reason) {
  if (reason != unknown_reason)
    free(reason);
}

int tide_drain(tide_host *host, const char *reason) {
  char *copy, *none = NULL;
  if (host->generation != tide_fork_generation())
    return TIDE_EFORKED;
  if (tide_host_state(host) == TIDE_STOPPED)
    return TIDE_ECANCELED;
  copy = reason != NULL ? strdup(reason) : unknown_reason;
  if (copy == NULL)
    copy = unknown_reason;
  if (!atomic_compare_exchange_strong(&host->drain_reason, &none, copy))
    tide_host__free_reason(
        copy); /* one is on its way already; the first reason counts */
  return tide_mailbox_wake(host->mailbox);
}
