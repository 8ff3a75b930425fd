/* beat: when the loop last turned, for whoever wonders whether it still does.
 *
 * Two stores a turn, of a time that libuv has read anyway.
 */
#ifndef TIDE_BEAT_H
#define TIDE_BEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tide_beat {
  _Atomic uint64_t turn_ms; /* uv_now of the turn; 0: none yet */
  _Atomic bool waits;       /* in the poll: for events, not stuck */
} tide_beat;

/* It has come back from the poll. [loop] */
static inline void tide_beat_turn(tide_beat *beat, uint64_t now_ms) {
  atomic_store_explicit(&beat->turn_ms, now_ms, memory_order_relaxed);
  atomic_store_explicit(&beat->waits, false, memory_order_relaxed);
}

/* It is about to poll. [loop] */
static inline void tide_beat_wait(tide_beat *beat) {
  atomic_store_explicit(&beat->waits, true, memory_order_relaxed);
}

#endif
