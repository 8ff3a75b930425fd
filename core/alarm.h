/* alarm: a sleep that another thread can cut short.
 *
 * One thread sleeps on it; every thread, and a signal handler, may ring. The
 * sleeper publishes how long it means to sleep, so that most others need not
 * ring at all: a load tells them that it wakes early enough by itself.
 */
#ifndef TIDE_ALARM_H
#define TIDE_ALARM_H

#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TIDE_NEVER UINT64_MAX

typedef struct tide_alarm {
  sem_t rings;
  _Atomic uint64_t
      wake_at;    /* tide_clock_mono ns; TIDE_NEVER: asleep for good */
  _Atomic int fd; /* rings come by this, too; -1: it was not asked for */
} tide_alarm;

/* Returns 0 or a negative libuv error. */
int tide_alarm_init(tide_alarm *alarm);
void tide_alarm_destroy(tide_alarm *alarm);

/* Has rings come by a descriptor as well, for a sleeper that waits for others,
 * too. 0 or a negative libuv error. [the sleeper] */
int tide_alarm_by_fd(tide_alarm *alarm);

/* Wakes the sleeper, or makes its next wait return at once. Async-signal-safe.
 * [any] */
void tide_alarm_ring(tide_alarm *alarm);

/* Rings if the sleeper would wake up later than at `when`. A load and a
 * comparison otherwise; see tide_alarm_wait for why that is enough. [any] */
static inline void tide_alarm_need(tide_alarm *alarm, uint64_t when) {
  atomic_signal_fence(memory_order_seq_cst);
  if (when < atomic_load_explicit(&alarm->wake_at, memory_order_relaxed)) {
    /* One ring is enough until the sleeper has looked. */
    atomic_store_explicit(&alarm->wake_at, 0, memory_order_relaxed);
    tide_alarm_ring(alarm);
  }
}

/* Sleeps until `at` or a ring; returns true for a ring. [the sleeper]
 *
 * Whoever stores a fact for the sleeper and then calls tide_alarm_need has no
 * fence between its store and its load, since a fence is what costs most on
 * that path: it may read a `wake_at` that is about to be replaced, and not
 * ring, while the sleeper has not seen its fact. So a sleeper that announces a
 * long sleep must first announce it, sleep for TIDE_ALARM_SETTLE, in which time
 * every store has arrived, and look at the facts once more. */
bool tide_alarm_wait(tide_alarm *alarm, uint64_t at);
/* The same, and returns also when one of `count` descriptors is ready; the
 * first place is the alarm's, and is filled in. [the sleeper] */
bool tide_alarm_poll(tide_alarm *alarm, uint64_t at, struct pollfd *fds,
                     nfds_t count);
#define TIDE_ALARM_SETTLE ((uint64_t)1000000)

#endif
