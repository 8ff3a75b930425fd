/* drive.c: turning the loop from outside, and what other threads may ask for.
 */
#include <limits.h>
#include <poll.h>

#include "fork.h"
#include "host.h"
#include "lua/lua.h"
#include "pump.h"

bool tide_host__busy(const tide_host *host) {
  return host->running || host->inside > 0 || host->memory.guarded > 0;
}

/* ---- turns -----------------------------------------------------------------
 */

static int may_turn(const tide_host *host) {
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  if (tide_host__busy(host))
    return TIDE_EREENTRANT;
  return host->started || host->closer_open ? 0 : TIDE_ESTATE;
}

/* Nothing is left to turn for. */
static bool finished(const tide_host *host) {
  return host->gone || (host->stopped && !host->closer_open);
}

static bool wants_the_pump(const tide_host *host) {
  return host->pump_wanted && !host->closing;
}

/* What a turn has left behind. */
static int standing(const tide_host *host) {
  if (finished(host))
    return TIDE_IS_STOPPED;
  if (wants_the_pump(host) || uv_backend_timeout(host->loop) == 0)
    return TIDE_HAS_MORE;
  return TIDE_IS_IDLE;
}

/* Without the clock, which is closed by then. */
static void wait_for_close(tide_host *host, int64_t timeout_ms) {
  struct pollfd ready = {.fd = uv_backend_fd(host->loop), .events = POLLIN};
  int limit = uv_backend_timeout(host->loop);
  if (limit < 0 || (timeout_ms >= 0 && timeout_ms < limit))
    limit = timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
  if (limit != 0)
    poll(&ready, 1, limit);
}

/* The same turn as of a host that runs; again when there was something to wait
 * for. */
static int step_to_close(tide_host *host, int64_t timeout_ms) {
  tide_host__turn(host, false);
  if (finished(host) || timeout_ms == 0)
    return standing(host);
  wait_for_close(host, timeout_ms);
  tide_host__turn(host, false);
  return standing(host);
}

static void on_step_end(tide_deadline *deadline) {
  (void)deadline; /* that it ends the poll is all */
}

static int set_step_end(tide_host *host, int64_t timeout_ms) {
  uint64_t now = tide_clock_now(&host->clock);
  host->step_end.fn = on_step_end;
  return tide_deadline_set(&host->clock, &host->step_end,
                           now + tide_clock_ns(timeout_ms, TIDE_MS));
}

int tide_step(tide_host *host, int64_t timeout_ms) {
  int rc = may_turn(host);
  if (rc != 0)
    return rc;
  if (finished(host))
    return TIDE_IS_STOPPED;
  if (host->closer_open)
    return step_to_close(host, timeout_ms);
  if (timeout_ms > 0 && (rc = set_step_end(host, timeout_ms)) != 0)
    return rc;
  tide_host__turn(host, timeout_ms != 0);
  tide_deadline_clear(&host->clock, &host->step_end);
  return standing(host);
}

/* The queue alone, when it was not alone in the last tick: what it leaves
 * unfinished would be paid beside what has come for the callbacks. Whether that
 * was all of this tick. */
static bool queue_takes_it(tide_host *host, uint64_t end) {
  if (!wants_the_pump(host) || host->queue_had_tick) {
    host->queue_had_tick = false;
    return false;
  }
  tide_pump_queue(host);
  host->queue_had_tick = tide_clock_mono() >= end;
  return host->queue_had_tick;
}

static int tick(tide_host *host, uint64_t end) {
  int rc;
  host->tick_end = end;
  host->polls_first = true;
  do {
    if (!queue_takes_it(host, end))
      tide_host__turn(host, false);
    rc = standing(host);
  } while (rc == TIDE_HAS_MORE && tide_clock_mono() < end);
  host->polls_first = false;
  host->tick_end = 0;
  /* What the queue alone began to watch is not in the epoll yet. */
  return rc == TIDE_IS_IDLE && host->queue_had_tick ? TIDE_HAS_MORE : rc;
}

/* No time at all is one turn all the same. */
static int shortest_tick(tide_host *host) {
  host->tick_end = tide_clock_mono();
  tide_host__turn(host, false);
  host->tick_end = 0;
  return standing(host);
}

int tide_tick(tide_host *host, int64_t budget_us) {
  int rc = may_turn(host);
  if (rc != 0)
    return rc;
  if (finished(host))
    return TIDE_IS_STOPPED;
  if (budget_us <= 0)
    return shortest_tick(host);
  return tick(host, tide_clock_mono() + tide_clock_ns(budget_us, TIDE_US));
}

int tide_fd(const tide_host *host) {
  int rc = tide_host__check(host);
  return rc != 0 ? rc : uv_backend_fd(host->loop);
}

int tide_timeout(const tide_host *host) {
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  if (finished(host) || wants_the_pump(host))
    return 0;
  uv_update_time(host->loop);
  return uv_backend_timeout(host->loop);
}

/* Two turns: what the first one's callbacks begin to watch is given to the
 * epoll only by the next one's poll, and the caller is about to wait on that.
 */
int tide_dispatch(tide_host *host) {
  int rc = may_turn(host);
  if (rc != 0)
    return rc;
  if (finished(host))
    return TIDE_IS_STOPPED;
  tide_host__turn(host, false);
  if (!finished(host))
    tide_host__turn(host, false);
  return standing(host);
}

int tide_exit_code(const tide_host *host) {
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  return host->stopped ? host->exit_code : TIDE_ESTATE;
}

/* ---- from other threads ----------------------------------------------------
 */

static bool forked(const tide_host *host) {
  return host->generation != tide_fork_generation();
}

int tide_post(tide_host *host, tide_post_fn fn, void *arg) {
  if (forked(host))
    return TIDE_EFORKED;
  if (fn == NULL)
    return TIDE_EINVAL;
  if (tide_host_state(host) == TIDE_STOPPED)
    return TIDE_ECANCELED;
  return tide_mailbox_post(host->mailbox, fn, arg);
}

int tide_kill(tide_host *host, const char *reason) {
  if (forked(host))
    return TIDE_EFORKED;
  atomic_store(&host->kill_wanted, true);
  return tide_drain(host, reason);
}

int tide_work_begin(tide_host *host, const char *kind) {
  if (forked(host))
    return TIDE_EFORKED;
  if (tide_host_state(host) == TIDE_STOPPED)
    return TIDE_ECANCELED;
  return tide_work_gate_enter(&host->gate, kind);
}

int tide_work_end(tide_host *host, const char *kind) {
  if (forked(host))
    return TIDE_EFORKED;
  return tide_work_gate_leave(&host->gate, kind);
}
