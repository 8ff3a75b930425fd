/* watchdog: the thread outside the loop.
 *
 * It ends what the loop can no longer end: when a total passes, it writes what
 * was still running and calls _exit(1) (or the embedder's callback). It also
 * tells the interrupt room that a slice of Lua has run past its deadline. It
 * takes no lock that the loop may hold: all it reads are atomics.
 *
 * The thread blocks all signals. While nothing is armed and no Lua runs, it
 * sleeps without waking.
 */
#ifndef TIDE_WATCHDOG_H
#define TIDE_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "beat.h"
#include "interrupt.h"
#include "log.h"
#include "state.h"
#include "work.h"

typedef enum tide_total { TIDE_TOTAL_STARTUP, TIDE_TOTAL_SHUTDOWN } tide_total;

/* What those may who connect: nothing, look, or change things. */
typedef enum tide_policy {
  TIDE_POLICY_OFF,
  TIDE_POLICY_INSPECT,
  TIDE_POLICY_EVAL,
} tide_policy;

/* Called on the watchdog thread in place of _exit(1); it may be called again
 * for the other total. */
typedef void (*tide_overrun_fn)(void *arg, tide_total which);

typedef struct tide_watchdog_options {
  const char *name;           /* of the host, for the dump; copied */
  tide_interrupt *interrupt;  /* what to tell of a late slice; or NULL */
  tide_overrun_fn on_overrun; /* NULL: write the dump to fd 2, _exit(1) */
  void *arg;
  uint64_t shutdown_total;     /* ns; runs from a stop signal that the loop did
                                  not take up; see tide_watchdog_signal */
  const char *termination_log; /* NULL: /dev/termination-log */

  /* For the out-of-band line; all of it outlives the watchdog. */
  bool line; /* there shall be one: see tide_watchdog_place */
  tide_lifecycle *lifecycle;
  const tide_work *work;
  const tide_beat *beat;
  uint64_t started_at; /* of the host */
} tide_watchdog_options;

typedef struct tide_watchdog tide_watchdog;

/* Starts the thread. The calling thread is the loop thread from now on.
 * Returns 0 or a negative libuv error. */
int tide_watchdog_start(tide_watchdog **out,
                        const tide_watchdog_options *options);
/* Ends and joins the thread, frees. [loop] */
void tide_watchdog_stop(tide_watchdog *watchdog);

/* The form of the dump; JSON at first, or logfmt when fd 2 is a terminal, as
 * the log's own. [any] */
void tide_watchdog_set_format(tide_watchdog *watchdog, tide_log_format format);

/* Arms a total at a point of tide_clock_mono(), or disarms it with 0. A
 * shutdown total never ends later than one that a stop signal has started.
 * [loop] */
void tide_watchdog_total(tide_watchdog *watchdog, tide_total which,
                         uint64_t at);
/* How long the shutdown may take, for a signal that the loop never took up. */
void tide_watchdog_set_shutdown_total(tide_watchdog *watchdog, uint64_t ns);

/* A stop signal arrived. Async-signal-safe. If the loop does not call
 * tide_watchdog_taken within 1 s, the running Lua is interrupted; the shutdown
 * total runs from this moment whether it does or not. */
void tide_watchdog_signal(tide_watchdog *watchdog);
/* The loop has taken the signal up. Returns when the first one not taken up
 * arrived (tide_clock_mono ns), 0 when there was none. [loop] */
uint64_t tide_watchdog_taken(tide_watchdog *watchdog);

/* Where the out-of-band line (oob_inside.h) is to be: NAME-PID.oob in
 * `directory` (NULL: where control sockets are unless something else is said);
 * without a name nowhere any more. `shared`: others may enter the directory.
 * The thread opens it, not before the process is some 50 ms old. 0 or
 * UV_ENOMEM. [loop] */
int tide_watchdog_place(tide_watchdog *watchdog, const char *directory,
                        const char *name, bool shared);
/* What may be asked there. [loop] */
void tide_watchdog_set_policy(tide_watchdog *watchdog, tide_policy policy);
/* The process is about to end without tide_watchdog_stop: removes the line's
 * file, and has whoever waits there answered, for some 50 ms at most. [loop] */
void tide_watchdog_leave(tide_watchdog *watchdog);

/* In a child of the process, where the thread is not: closes what the child has
 * of it. */
void tide_watchdog_after_fork(tide_watchdog *watchdog);

/* What is running, for the dump: a fixed table of 64 places behind sequence
 * counters. Returns a place, or -1 when the table is full (then only counted).
 * Both strings are copied (at most 64 and 96 bytes). [loop] */
int tide_watchdog_begin(tide_watchdog *watchdog, const char *what,
                        const char *site);
void tide_watchdog_end(tide_watchdog *watchdog, int place);
/* The phase that runs now, for the dump ("" or NULL: none). [loop] */
void tide_watchdog_phase(tide_watchdog *watchdog, const char *phase);

#endif
