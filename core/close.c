/* close.c: takes a host off its loop, and frees it.
 *
 * The order: the program's posts are called off, modules let go of the host,
 * script handles are closed through luv while Lua lives, then the core's. Each
 * needs a turn of the loop, and what threads of libuv's pool do for Lua must
 * come back: its callback is luv's, which finds its way by the Lua state. Only
 * then lua_close, then uv_loop_close.
 *
 * A loop of the host's own is run dry. One of the caller's is not: it may hold
 * handles that never end. There the closer, three handles that go last, looks
 * in each turn whether anything is left of the host: before the poll, which
 * then waits for requests that run on a thread. Whoever waits outside of the
 * loop, in an epoll or another loop, turns it once more only when libuv says
 * so: therefore it looks after the poll, too, and asks for another turn when
 * something has ended or is about to.
 */
#include "close.h"

#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "fork.h"
#include "http/http.h"
#include "log_tap.h"
#include "lua/lua.h"
#include "pump.h"

/* ---- what is left on the loop ----------------------------------------------
 */

/* Handles that were being closed when the host left, the caller's among them:
 * they go as well, and whose a handle is cannot be told in all cases. */
typedef struct leaving {
  uv_handle_t **handles; /* NULL: only count */
  size_t count;
} leaving;

static void note_closing(uv_handle_t *handle, void *arg) {
  leaving *all = arg;
  if (!uv_is_closing(handle))
    return;
  if (all->handles != NULL)
    all->handles[all->count] = handle;
  all->count++;
}

static int by_address(const void *a, const void *b) {
  const uv_handle_t *const *left = a, *const *right = b;
  return (*left > *right) - (*left < *right);
}

/* Without memory for the list, `leaving` stays NULL. */
static void note_leaving(tide_host *host) {
  leaving all = {0};
  uv_walk(host->loop, note_closing, &all);
  all.handles = calloc(all.count + 1, sizeof(uv_handle_t *));
  all.count = 0;
  if (all.handles != NULL) {
    uv_walk(host->loop, note_closing, &all);
    qsort(all.handles, all.count, sizeof(uv_handle_t *), by_address);
  }
  host->leaving = all.handles;
  host->leaving_count = all.count;
}

typedef struct survey {
  const tide_host *host;
  leaving still;
} survey;

static void look_at(uv_handle_t *handle, void *arg) {
  survey *view = arg;
  const tide_host *host = view->host;
  if (!uv_is_closing(handle))
    return;
  if (host->leaving == NULL ||
      bsearch(&handle, host->leaving, host->leaving_count,
              sizeof(uv_handle_t *), by_address) != NULL)
    note_closing(handle, &view->still);
}

/* Forgets those that have gone: their addresses may be taken again. */
static bool handles_left(tide_host *host) {
  survey view = {.host = host};
  if (host->leaving != NULL && host->leaving_count == 0)
    return false;
  if (host->leaving != NULL)
    view.still.handles = calloc(host->leaving_count, sizeof(uv_handle_t *));
  uv_walk(host->loop, look_at, &view);
  if (view.still.handles != NULL) {
    free(host->leaving);
    host->leaving = view.still.handles;
    host->leaving_count = view.still.count;
    qsort(host->leaving, host->leaving_count, sizeof(uv_handle_t *),
          by_address);
  }
  return view.still.count > 0;
}

/* Most are on the pool of threads: what ends one ends the poll. Where nobody
 * has any, luv's bookkeeping need not be asked. */
static size_t requests_of(tide_host *host) {
  if (host->loop->active_reqs.count == 0)
    return 0;
  return host->requests + tide_lua_requests(host, false);
}

/* ---- leaving ---------------------------------------------------------------
 */

static void dismiss_guests(tide_host *host) {
  while (host->guests != NULL) {
    tide_guest *guest = host->guests;
    tide_guest_leave(host, guest);
    guest->on_leave(guest);
  }
}

void tide_guest_join(tide_host *host, tide_guest *guest) {
  guest->next = host->guests;
  host->guests = guest;
}

void tide_guest_leave(tide_host *host, tide_guest *guest) {
  tide_guest **link = &host->guests;
  while (*link != NULL && *link != guest)
    link = &(*link)->next;
  if (*link != NULL)
    *link = guest->next;
}

/* From here on no thread touches the loop, and nothing enters Lua. */
static void fall_silent(tide_host *host) {
  host->closing = true;
  tide_work_gate_shut(&host->gate);
  if (host->mailbox != NULL) {
    tide_mailbox_close(host->mailbox);
    host->inside++; /* what is called may not free the host */
    tide_mailbox_cancel(host->mailbox);
    host->inside--;
  }
  if (host->signals == NULL && (host->flags & TIDE_SIGNALS))
    tide_signals_abandon();
}

/* Also of a host that could not be made: of all this, some may be missing. */
static void leave_loop(tide_host *host) {
  fall_silent(host);
  dismiss_guests(host);
  if (host->L != NULL)
    tide_lua_close_handles(host);
  if (host->loop == NULL)
    return;
  if (host->http != NULL)
    tide_http_close(host->http);
  host->http = NULL; /* Lua that still runs finds the room closed */
  tide_control_close(host->control);
  tide_log_tap_close(host->tap);
  host->control = NULL;
  if (host->signals != NULL)
    tide_signals_close(host->signals);
  host->signals = NULL;
  if (host->clock.owner.magic == TIDE_OWNER_MAGIC)
    tide_clock_close(&host->clock);
  tide_pump_close(host);
  if (host->L != NULL)
    tide_lua_requests(host, true);
  if (host->closer_handles > 0)
    note_leaving(host);
}

/* ---- the closer ------------------------------------------------------------
 */

static void on_gone(uv_handle_t *handle) {
  tide_host *host = handle->data;
  if (--host->closer_handles > 0)
    return;
  host->gone = true;
  if (host->close_fn != NULL)
    host->close_fn(host, host->close_arg); /* which may free the host */
}

static void on_another_turn(uv_idle_t *idle) {
  (void)idle; /* its being active keeps the poll from blocking */
}

static void before_poll(uv_prepare_t *prepare) {
  tide_host *host = prepare->data;
  if (host->started && !host->stopped && host->close_fn != NULL)
    return; /* the state has moved, and the turn that ends it is not over */
  if (!host->closing) {
    leave_loop(host);
    return;
  }
  host->waits_for = requests_of(host);
  if (host->waits_for > 0 || handles_left(host)) {
    uv_idle_stop(&host->closer_idle);
    return;
  }
  uv_close((uv_handle_t *)&host->closer, on_gone);
  uv_close((uv_handle_t *)&host->closer_check, on_gone);
  uv_close((uv_handle_t *)&host->closer_idle, on_gone);
}

static void after_poll(uv_check_t *check) {
  tide_host *host = check->data;
  if (host->loop->closing_handles != NULL ||
      (host->closing && requests_of(host) != host->waits_for))
    uv_idle_start(&host->closer_idle, on_another_turn);
}

/* None of these can fail. Only the first keeps the loop. */
static void open_closer(tide_host *host) {
  uv_prepare_init(host->loop, &host->closer);
  uv_check_init(host->loop, &host->closer_check);
  uv_idle_init(host->loop, &host->closer_idle);
  host->closer.data = host->closer_check.data = host->closer_idle.data = host;
  uv_unref((uv_handle_t *)&host->closer_check);
  uv_unref((uv_handle_t *)&host->closer_idle);
  uv_prepare_start(&host->closer, before_poll);
  uv_check_start(&host->closer_check, after_poll);
  host->closer_handles = 3;
  host->closer_open = true;
}

int tide_close(tide_host *host, tide_close_fn fn, void *arg) {
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  if (fn == NULL)
    return TIDE_EINVAL;
  if (host->closer_open)
    return UV_EALREADY;
  if (host->started && tide_host_state(host) != TIDE_STOPPED)
    return TIDE_ESTATE;
  host->close_fn = fn;
  host->close_arg = arg;
  open_closer(host);
  /* One that never ran has stopped, too: no thread waits for it. */
  tide_lifecycle_move(&host->lifecycle, TIDE_STOPPED);
  /* A prepare handle that is begun in this turn's prepare phase is not called
   * in it: the poll must not block. */
  return uv_async_send(&host->async);
}

/* ---- freeing ---------------------------------------------------------------
 */

static void close_now(tide_host *host) {
  host->close_fn = NULL;
  if (host->gone)
    return;
  if (host->loop == NULL || (host->owns_loop && !host->closer_open)) {
    leave_loop(host);
  } else if (!host->closer_open) {
    open_closer(host);
  }
  if (host->owns_loop) /* uv_stop may have been asked for: it ends one run */
    while (uv_run(host->loop, UV_RUN_DEFAULT) != 0)
      ;
  else if (host->loop != NULL)
    while (!host->gone)
      uv_run(host->loop, UV_RUN_ONCE);
}

static void close_lua(tide_host *host) {
  if (host->L == NULL)
    return;
  if (host->owns_lua)
    lua_close(host->L);
  else
    tide_lua_detach(host);
  host->L = NULL;
}

static void free_rooms(tide_host *host) {
  if (host->watchdog != NULL)
    tide_watchdog_stop(host->watchdog);
  if (host->interrupt != NULL)
    tide_interrupt_free(host->interrupt);
  if (host->notify != NULL)
    tide_notify_close(host->notify);
  if (host->log != NULL)
    tide_log_close(host->log, host->log_close_timeout);
  tide_log_tap_free(host->tap);
  if (host->mailbox != NULL)
    tide_mailbox_unref(host->mailbox);
  tide_work_gate_destroy(&host->gate);
  tide_lua_free_listeners(host);
  tide_memory_free(&host->memory);
}

void tide_free(tide_host *host) {
  if (host == NULL)
    return;
  /* In a child, the memory may be locked by a thread that is not there. */
  if (host->generation != tide_fork_generation()) {
    tide_after_fork(host);
    return;
  }
  if (tide_host__busy(host)) {
    tide_log_write(host->log, TIDE_LOG_ERROR, "host",
                   "tide_free was called inside a turn of the host: ignored",
                   NULL, 0);
    return;
  }
  close_now(host);
  close_lua(host);
  tide_work_close(&host->work); /* a state of the caller's may have some */
  if (host->owns_loop)
    uv_loop_close(&host->own_loop);
  free_rooms(host);
  free(host->leaving);
  tide_host__free_reason(atomic_load(&host->drain_reason));
  free(host->routes);
  free(host->last_error);
  free(host->name);
  free(host);
}
