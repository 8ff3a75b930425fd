/* state: the four lifecycle states and who hears of a move.
 *
 * The one owner of "is it draining". Knows neither libuv nor Lua. Moves are
 * for the loop thread; reading is an atomic load, for any thread.
 */
#ifndef TIDE_STATE_H
#define TIDE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "moontide.h"

/* Called after the move, on the loop thread, in order of registration. */
typedef void (*tide_state_fn)(void *arg, tide_state from, tide_state to);

typedef struct tide_state_observer {
  struct tide_state_observer *next;
  tide_state_fn fn;
  void *arg;
} tide_state_observer;

typedef struct tide_lifecycle {
  _Atomic int state;
  _Atomic bool was_ready; /* ready was reached once */
  tide_state_observer *observers;
} tide_lifecycle;

void tide_lifecycle_init(tide_lifecycle *lifecycle);

/* The present state. [any] */
tide_state tide_lifecycle_state(const tide_lifecycle *lifecycle);
/* Whether ready was ever reached. [any] */
bool tide_lifecycle_was_ready(const tide_lifecycle *lifecycle);
/* Whether a move from one state to the other is legal. */
bool tide_state_legal(tide_state from, tide_state to);

/* Moves on. Returns 1 when it moved, 0 when it was there already (observers
 * hear nothing), TIDE_EINVAL for an illegal move (a programming error of
 * the caller, who makes it loud). */
int tide_lifecycle_move(tide_lifecycle *lifecycle, tide_state to);

/* The observer's memory is the caller's and must outlive its registration. An
 * observer may remove itself, but no other, while it is called. */
void tide_lifecycle_observe(tide_lifecycle *lifecycle,
                            tide_state_observer *observer);
void tide_lifecycle_forget(tide_lifecycle *lifecycle,
                           tide_state_observer *observer);

#endif
