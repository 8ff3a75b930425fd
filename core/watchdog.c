/* watchdog.c: the thread, and the facts it looks at.
 *
 * The thread owns no fact that the loop waits for: the loop stores, the thread
 * loads, looks whether anything is overdue, and sleeps until the next thing
 * could be. It sleeps precisely (until the running slice's deadline), so a late
 * slice is found within the time a wake-up takes; and it sleeps for good when
 * no total is armed and no Lua has run since it last looked.
 */
#include "watchdog.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <uv.h>

#include "clock.h"
#include "watchdog_inside.h"

#define STACK_SIZE ((size_t)256 * 1024)

/* A loop that has not taken a stop signal up for so long has its slice ended;
 * then whatever slice runs next gets the second time. */
#define SIGNAL_PATIENCE (1 * TIDE_SEC)
#define FORCE_AGAIN (100 * TIDE_MS)

/* How often a late slice is poked: the steps of interrupt.h need some
 * precision; a long C call only needs to be found once it has returned. */
#define POKE_EVERY (2 * TIDE_MS)
#define POKE_SLOWLY (20 * TIDE_MS)
#define POKE_SLOWLY_AFTER (200 * TIDE_MS)

/* While Lua runs now and then, the thread looks this often whether it still
 * does. Rings that come faster than RING_GAP are answered by short sleeps, so
 * that slices with ever earlier deadlines do not ring each. */
#define LOOK_AGAIN (1 * TIDE_SEC)
#define RING_GAP (8 * TIDE_MS)
#define SHORT_SLEEP (4 * TIDE_MS)

/* How long before a total the loop is asked what it runs (a thread that waits
 * for a processor answers late), and how often. */
#define NOTE_BEFORE (250 * TIDE_MS)
#define NOTE_EVERY (25 * TIDE_MS)

/* What is written and removed at the end of the process has so long. */
#define WORDS_LIMIT (100 * TIDE_MS)

/* ---- totals ----------------------------------------------------------- */

uint64_t tide_watchdog__busy_since(const tide_watchdog *watchdog,
                                   uint64_t now) {
  bool seen = watchdog->seen_id != 0 && watchdog->seen_since < now;
  return seen ? watchdog->seen_since : 0;
}

const char *tide_watchdog__name(const tide_watchdog *watchdog) {
  const char *placed = watchdog->oob.place.name;
  if (watchdog->name != NULL || placed[0] == '\0')
    return watchdog->name;
  return placed;
}

/* What runs, if the loop has said so and is still at it. */
static bool noted(const tide_watchdog *watchdog, tide_noted *slice) {
  return watchdog->seen_id != 0 &&
         tide_interrupt_noted(watchdog->interrupt, slice) &&
         slice->id == watchdog->seen_id;
}

static void on_limit(int number) {
  (void)number;
  _exit(1);
}

/* What touches files may take its time; the end does not wait for it. Whichever
 * thread the signal finds, it ends the process. */
static void end_within(uint64_t ns) {
  struct sigaction action = {.sa_handler = on_limit};
  struct itimerval limit = {.it_value.tv_usec = (suseconds_t)(ns / 1000)};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &limit, NULL);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void tide_watchdog__end(tide_watchdog *watchdog, const char *why,
                        uint64_t now) {
  tide_noted slice;
  tide_dump dump = {.name = tide_watchdog__name(watchdog),
                    .why = why,
                    .now = now,
                    .slice_since = tide_watchdog__busy_since(watchdog, now),
                    .slice = noted(watchdog, &slice) ? &slice : NULL,
                    .format = (tide_log_format)atomic_load(&watchdog->format),
                    .table = &watchdog->table};
  tide_dump_write(&dump, STDERR_FILENO);
  end_within(WORDS_LIMIT);
  tide_dump_last_words(&dump, watchdog->options.termination_log);
  if (atomic_load(&watchdog->oob.state) != TIDE_OOB_OPENING)
    tide_oob_close(watchdog);
  _exit(1);
}

static void overrun(tide_watchdog *watchdog, tide_total which, uint64_t now) {
  if (watchdog->options.on_overrun != NULL) {
    watchdog->options.on_overrun(watchdog->options.arg, which);
    return;
  }
  tide_watchdog__end(watchdog,
                     which == TIDE_TOTAL_STARTUP
                         ? "the startup total has passed"
                         : "the shutdown total has passed",
                     now);
}

/* The end of the shutdown total that a signal started, or TIDE_NEVER. */
static uint64_t signal_total(const tide_watchdog *watchdog) {
  uint64_t first = atomic_load(&watchdog->signal_first);
  uint64_t length = atomic_load(&watchdog->shutdown_total);
  return first != 0 && length != 0 ? first + length : TIDE_NEVER;
}

uint64_t tide_watchdog__total_end(const tide_watchdog *watchdog,
                                  tide_total which) {
  uint64_t at = atomic_load(&watchdog->totals[which]);
  if (at == 0)
    at = TIDE_NEVER;
  if (which == TIDE_TOTAL_SHUTDOWN)
    at = tide_earlier(at, signal_total(watchdog));
  return at;
}

/* Each total ends once. */
static void disarm(tide_watchdog *watchdog, tide_total which) {
  atomic_store(&watchdog->totals[which], 0);
  if (which == TIDE_TOTAL_SHUTDOWN)
    atomic_store(&watchdog->signal_first, 0);
}

/* Before a total ends the loop is asked what it runs, for the dump: at the end
 * there is no time to wait for an answer. Returns when to look again. */
static uint64_t note_before(tide_watchdog *watchdog, uint64_t at,
                            uint64_t now) {
  tide_noted slice;
  if (watchdog->interrupt == NULL || watchdog->options.on_overrun != NULL)
    return at;
  if (at - now > NOTE_BEFORE)
    return at - NOTE_BEFORE;
  if (watchdog->seen_id != 0 && !noted(watchdog, &slice))
    tide_interrupt_ask(watchdog->interrupt);
  return tide_earlier(at, now + NOTE_EVERY);
}

static uint64_t look_at_totals(tide_watchdog *watchdog, uint64_t now) {
  uint64_t next = TIDE_NEVER;
  int which;
  for (which = TIDE_TOTAL_STARTUP; which <= TIDE_TOTAL_SHUTDOWN; which++) {
    uint64_t at = tide_watchdog__total_end(watchdog, (tide_total)which);
    if (at == TIDE_NEVER)
      continue;
    if (now < at) {
      next = tide_earlier(next, note_before(watchdog, at, now));
      continue;
    }
    disarm(watchdog, (tide_total)which);
    overrun(watchdog, (tide_total)which, now);
  }
  return next;
}

/* ---- slices ----------------------------------------------------------- */

/* Has the loop thread poked from `at` on, until a later look finds that it need
 * not be. The timer may then be set for a slice that has long ended: a look at
 * `at` is due in any case. Returns when. */
static uint64_t poke_from(tide_watchdog *watchdog, uint64_t at, uint64_t now) {
  uint64_t every = now > at + POKE_SLOWLY_AFTER ? POKE_SLOWLY : POKE_EVERY;
  if (at != watchdog->poke_at || every != watchdog->poke_every) {
    watchdog->poke_at = at;
    watchdog->poke_every = every;
    watchdog->timer_set =
        tide_interrupt_poke_at(watchdog->interrupt, at, every);
  }
  if (at == 0)
    return TIDE_NEVER;
  if (now < at)
    return at;
  if (!watchdog->timer_set)
    tide_interrupt_poke(watchdog->interrupt);
  return now + every;
}

/* A stop signal that nobody takes up: whatever slice runs then must end, and
 * after it, with less patience, the next. Returns when to look again; sets
 * *poke to when the loop must be poked, if it must. */
static uint64_t watch_signal(tide_watchdog *watchdog, uint64_t id, uint64_t now,
                             uint64_t *poke) {
  uint64_t at = atomic_load(&watchdog->signal_at);
  uint64_t when;
  if (at == 0) {
    if (watchdog->forced_id != 0)
      tide_interrupt_force(watchdog->interrupt, 0);
    watchdog->forced_id = 0;
    return TIDE_NEVER;
  }
  if (id == 0 || id != watchdog->forced_id) {
    when = watchdog->forced_id == 0 ? at + SIGNAL_PATIENCE
                                    : watchdog->forced_at + FORCE_AGAIN;
    if (now < when)
      return when;
    if (id == 0)
      return now + POKE_EVERY; /* between two slices */
    watchdog->forced_id = id;
    watchdog->forced_at = now;
    tide_interrupt_force(watchdog->interrupt, id);
  }
  *poke = watchdog->forced_at;
  return TIDE_NEVER;
}

/* While Lua runs now and then, look whether it still does; when no slice has
 * begun for so long, only an entry wakes the thread, by the alarm. Looks for
 * other reasons are no sign of that: a ring costs the loop what a slice does,
 * and who runs Lua sixty times a second would ring each time. */
static uint64_t watch_idle(tide_watchdog *watchdog, uint64_t last_id,
                           uint64_t now) {
  if (last_id != watchdog->idle_id) {
    watchdog->idle_id = last_id;
    watchdog->idle_at = now + LOOK_AGAIN;
  }
  return now < watchdog->idle_at ? watchdog->idle_at : TIDE_NEVER;
}

static uint64_t look_at_slice(tide_watchdog *watchdog, uint64_t now) {
  tide_running running;
  uint64_t next, poke;
  if (watchdog->interrupt == NULL)
    return TIDE_NEVER;
  tide_interrupt_running(watchdog->interrupt, &running);
  if (running.id != watchdog->seen_id) {
    watchdog->seen_id = running.id;
    watchdog->seen_since = now;
  }
  poke = running.id != 0 ? running.deadline : 0;
  next = watch_signal(watchdog, running.id, now, &poke);
  if (running.id != 0 && running.id == watchdog->asked_id)
    poke =
        poke == 0 ? watchdog->asked_at : tide_earlier(poke, watchdog->asked_at);
  next = tide_earlier(next, watch_idle(watchdog, running.last_id, now));
  return tide_earlier(next, poke_from(watchdog, poke, now));
}

/* ---- the thread ------------------------------------------------------- */

static uint64_t look(tide_watchdog *watchdog) {
  uint64_t now = tide_clock_mono();
  uint64_t slice = look_at_slice(watchdog, now);
  uint64_t next = tide_earlier(look_at_totals(watchdog, now), slice);
  next = tide_earlier(next, tide_oob_look(watchdog, now));
  if (now - watchdog->rung_at < RING_GAP)
    next = tide_earlier(next, now + SHORT_SLEEP);
  return next;
}

/* Sleeps until `next`, in two parts: see tide_alarm_wait. Returns whether it
 * was rung. */
static bool sleep_until(tide_watchdog *watchdog, uint64_t next) {
  uint64_t settled = tide_clock_mono() + TIDE_ALARM_SETTLE;
  uint64_t again;
  atomic_store(&watchdog->alarm.wake_at, next);
  if (next <= settled)
    return tide_oob_wait(watchdog, next);
  if (tide_oob_wait(watchdog, settled))
    return true;
  if (tide_clock_mono() < settled)
    return false; /* a client came: begin anew */
  again = look(watchdog);
  if (again < next)
    return false;
  return tide_oob_wait(watchdog, next);
}

static void *run(void *arg) {
  tide_watchdog *watchdog = arg;
  pthread_setname_np(pthread_self(), "tide-watchdog");
  while (!atomic_load(&watchdog->stopping)) {
    uint64_t next = look(watchdog);
    if (sleep_until(watchdog, next))
      watchdog->rung_at = tide_clock_mono();
  }
  tide_oob_farewell(watchdog);
  tide_oob_close(watchdog);
  return NULL;
}

/* With all signals blocked from its first instruction on, so that they reach
 * the threads that expect them. */
static int start_thread(tide_watchdog *watchdog) {
  pthread_attr_t attributes;
  sigset_t all, old;
  int rc;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_SIZE);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  rc = pthread_create(&watchdog->thread, &attributes, run, watchdog);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  return rc == 0 ? 0 : uv_translate_sys_error(rc);
}

static void release(tide_watchdog *watchdog) {
  tide_oob_release(&watchdog->oob);
  tide_alarm_destroy(&watchdog->alarm);
  free(watchdog->name);
  free(watchdog);
}

static void take_options(tide_watchdog *watchdog,
                         const tide_watchdog_options *options) {
  watchdog->options = *options;
  watchdog->options.name = NULL;
  if (options->name != NULL)
    watchdog->name = strdup(options->name); /* NULL: the dump lacks it */
  watchdog->interrupt = options->interrupt;
  watchdog->shutdown_total = options->shutdown_total;
  watchdog->state_since = options->started_at;
  watchdog->format = isatty(STDERR_FILENO) ? TIDE_LOG_LOGFMT : TIDE_LOG_JSON;
  tide_oob_init(watchdog);
}

/* The lifecycle has moved. [loop] */
static void on_state(void *arg, tide_state from, tide_state to) {
  tide_watchdog *watchdog = arg;
  (void)from;
  (void)to;
  atomic_store(&watchdog->state_since, tide_clock_mono());
}

static void observe(tide_watchdog *watchdog) {
  watchdog->observer.fn = on_state;
  watchdog->observer.arg = watchdog;
  if (watchdog->options.lifecycle != NULL)
    tide_lifecycle_observe(watchdog->options.lifecycle, &watchdog->observer);
}

int tide_watchdog_start(tide_watchdog **out,
                        const tide_watchdog_options *options) {
  tide_watchdog *watchdog = calloc(1, sizeof *watchdog);
  int rc;
  *out = NULL;
  if (watchdog == NULL)
    return UV_ENOMEM;
  rc = tide_alarm_init(&watchdog->alarm);
  if (rc != 0) {
    free(watchdog);
    return rc;
  }
  take_options(watchdog, options);
  rc = start_thread(watchdog);
  if (rc != 0) {
    release(watchdog);
    return rc;
  }
  if (watchdog->interrupt != NULL)
    tide_interrupt_set_alarm(watchdog->interrupt, &watchdog->alarm);
  observe(watchdog);
  *out = watchdog;
  return 0;
}

void tide_watchdog_stop(tide_watchdog *watchdog) {
  if (watchdog == NULL)
    return;
  if (watchdog->interrupt != NULL)
    tide_interrupt_set_alarm(watchdog->interrupt, NULL);
  if (watchdog->options.lifecycle != NULL)
    tide_lifecycle_forget(watchdog->options.lifecycle, &watchdog->observer);
  atomic_store(&watchdog->stopping, true);
  tide_alarm_ring(&watchdog->alarm);
  pthread_join(watchdog->thread, NULL);
  release(watchdog);
}

/* ---- what the loop tells ---------------------------------------------- */

void tide_watchdog_set_format(tide_watchdog *watchdog, tide_log_format format) {
  atomic_store(&watchdog->format, (int)format);
}

void tide_watchdog_total(tide_watchdog *watchdog, tide_total which,
                         uint64_t at) {
  if (at == 0) {
    disarm(watchdog, which); /* it wakes in vain, once */
    return;
  }
  atomic_store(&watchdog->totals[which], at);
  tide_alarm_need(&watchdog->alarm, at);
}

void tide_watchdog_set_shutdown_total(tide_watchdog *watchdog, uint64_t ns) {
  atomic_store(&watchdog->shutdown_total, ns);
  tide_alarm_need(&watchdog->alarm, signal_total(watchdog));
}

void tide_watchdog_signal(tide_watchdog *watchdog) {
  uint64_t now = tide_clock_mono(), none = 0;
  atomic_compare_exchange_strong(&watchdog->signal_at, &none, now);
  none = 0;
  if (atomic_load(&watchdog->totals[TIDE_TOTAL_SHUTDOWN]) == 0)
    atomic_compare_exchange_strong(&watchdog->signal_first, &none, now);
  tide_alarm_ring(&watchdog->alarm);
}

uint64_t tide_watchdog_taken(tide_watchdog *watchdog) {
  return atomic_exchange(&watchdog->signal_at, 0);
}

int tide_watchdog_begin(tide_watchdog *watchdog, const char *what,
                        const char *site) {
  return tide_table_begin(&watchdog->table, what, site, tide_clock_mono());
}

void tide_watchdog_end(tide_watchdog *watchdog, int place) {
  tide_table_end(&watchdog->table, place);
}

void tide_watchdog_phase(tide_watchdog *watchdog, const char *phase) {
  tide_table_phase(&watchdog->table, phase, tide_clock_mono());
}
