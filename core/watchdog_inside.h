/* watchdog_inside: what the files of the watchdog room share, its line to
 * others (oob*.c) included. All of it runs on the watchdog's thread but for
 * what says [loop].
 */
#ifndef TIDE_WATCHDOG_INSIDE_H
#define TIDE_WATCHDOG_INSIDE_H

#include <pthread.h>
#include <sys/types.h>

#include "alarm.h"
#include "oob_inside.h"
#include "watchdog.h"
#include "watchdog_dump.h"
#include "watchdog_table.h"

struct tide_watchdog {
  pthread_t thread;
  tide_alarm alarm;
  char *name;
  tide_watchdog_options options; /* but for its name */
  tide_interrupt *interrupt;     /* of them, or NULL */
  tide_state_observer observer;

  /* Stored by the loop, or by a signal handler; loaded by the thread. */
  _Atomic bool stopping;
  _Atomic uint64_t totals[2];      /* 0: not armed */
  _Atomic uint64_t shutdown_total; /* a length */
  _Atomic uint64_t signal_at;      /* a stop signal not yet taken up */
  _Atomic uint64_t signal_first;   /* the first of all, for the total */
  _Atomic uint64_t state_since;
  _Atomic int format;
  tide_table table;

  /* The thread's own. */
  uint64_t seen_id;    /* the slice it saw last */
  uint64_t seen_since; /* and since when */
  uint64_t idle_id;    /* last_id when it last looked */
  uint64_t idle_at;    /* when it is idle if no other slice has begun */
  uint64_t forced_id;
  uint64_t forced_at;
  uint64_t asked_id; /* to be ended, as somebody has asked for */
  uint64_t asked_at;
  uint64_t poke_at; /* how the timer is set */
  uint64_t poke_every;
  bool timer_set;
  uint64_t rung_at;

  tide_oob oob;
};

static inline uint64_t tide_earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The end of a total, or TIDE_NEVER. */
uint64_t tide_watchdog__total_end(const tide_watchdog *watchdog,
                                  tide_total which);
/* Of the host; NULL: not known. */
const char *tide_watchdog__name(const tide_watchdog *watchdog);
/* Since when the running slice is known to run; 0 when it was not seen before
 * `now`, or none runs. */
uint64_t tide_watchdog__busy_since(const tide_watchdog *watchdog, uint64_t now);
/* The last words, and the end of the process. */
void tide_watchdog__end(tide_watchdog *watchdog, const char *why, uint64_t now)
    __attribute__((noreturn));

#endif
