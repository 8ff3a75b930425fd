/* signals: which signal asks for what.
 *
 * Persistent uv_signal handles, and in front of them a SA_SIGINFO handler that
 * notes time, sender and count and chains to libuv's. The handlers stand from
 * tide_signals_early on; what arrives before the loop exists is kept and
 * delivered in its first turn. One owner for each process.
 */
#ifndef TIDE_SIGNALS_H
#define TIDE_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "watchdog.h"

typedef struct tide_signals tide_signals;

typedef struct tide_signal_info {
  int number;
  int sender_pid; /* 0: the kernel, or not known */
  int sender_uid; /* -1: not known */
  unsigned nth;   /* how often this one has come, from 1 */
} tide_signal_info;

/* On the loop thread, in the turn that saw the signal. */
typedef void (*tide_signal_fn)(void *arg, const tide_signal_info *info);

/* Installs the handlers that only note. Returns UV_EBUSY when this process has
 * another owner. */
int tide_signals_early(void);
/* Undoes tide_signals_early when no tide_signals_open followed. */
void tide_signals_abandon(void);
/* Attaches to the loop; signals noted so far are delivered in its first turn.
 * Returns 0 or a negative libuv error. */
int tide_signals_open(tide_signals **out, uv_loop_t *loop, tide_signal_fn fn,
                      void *arg);
/* Delivers what has been noted and waits for the loop to turn; harmless when
 * there is nothing. */
void tide_signals_deliver(tide_signals *signals);
/* Stop signals wake this watchdog from now on (NULL: none). */
void tide_signals_set_watchdog(tide_signals *signals, tide_watchdog *watchdog);
/* Watches one more signal (install_process_hooks, tide.on_signal). Idempotent.
 * Returns 0, or UV_ENOTSUP for one that cannot be caught or is not known. */
int tide_signals_watch(tide_signals *signals, int number);
/* Gives one back: the disposition that was found. Idempotent. */
void tide_signals_unwatch(tide_signals *signals, int number);
/* Closes the handles; the memory goes with their close callbacks. The
 * dispositions go back to what was found. */
void tide_signals_close(tide_signals *signals);

/* "SIGTERM" and back; NULL and 0 for one not known. [any] */
const char *tide_signal_name(int number);
int tide_signal_number(const char *name);

#endif
