/* horizon: many deadlines, most of which never come.
 *
 * A task's deadline is set when it first waits and withdrawn when it ends,
 * nearly always long before its time. In the clock's heap both would cost a
 * walk along a branch. So what is more than a second away is only linked into a
 * list, one for each power of two of the time left; a list has one entry in the
 * heap, at a time by which none of its members can be due, and its members are
 * then sorted again by what is left. Within the last second a deadline stands
 * in the heap itself, so it fires at its exact time.
 *
 * As with tide_deadline, the owner embeds the struct. Loop thread only.
 */
#ifndef TIDE_HORIZON_H
#define TIDE_HORIZON_H

#include "clock.h"

#define TIDE_HORIZON_LISTS 34 /* 2^33 s: for ever */

typedef struct tide_far tide_far;

struct tide_far {
  tide_deadline deadline; /* first; its fn calls tide_far_clear, then acts */
  tide_far *previous;
  tide_far *next;
  int list; /* index + 1; 0: not pending */
};

typedef struct tide_horizon_list {
  tide_deadline wake; /* no member is due before it */
  struct tide_horizon *horizon;
  tide_far *first;
} tide_horizon_list;

typedef struct tide_horizon {
  tide_clock *clock;
  /* The first has those that stand in the heap by themselves, the last those
   * that are parked. */
  tide_horizon_list lists[TIDE_HORIZON_LISTS + 2];
  size_t count; /* members of all but the first */
} tide_horizon;

void tide_horizon_init(tide_horizon *horizon, tide_clock *clock);
/* Withdraws all. The clock may be closed already, but must still be there. */
void tide_horizon_close(tide_horizon *horizon);

/* Sets or moves a deadline; `now` is a time of the clock, maybe a little old.
 * Returns 0 or UV_ENOMEM. */
int tide_far_set(tide_horizon *horizon, tide_far *far, uint64_t at,
                 uint64_t now);
/* Keeps it pending without a time, until whoever parked it sets it. */
void tide_far_park(tide_horizon *horizon, tide_far *far);
/* One that is parked, or NULL. */
tide_far *tide_horizon_parked(tide_horizon *horizon);
/* Withdraws it; harmless when it is not pending. */
void tide_far_clear(tide_horizon *horizon, tide_far *far);

static inline bool tide_far_pending(const tide_far *far) {
  return far->list != 0;
}

/* How many deadlines are pending in the clock, those here counted one by one
 * and the entries of the lists not at all. */
size_t tide_horizon_pending(const tide_horizon *horizon);

#endif
