/* horizon.c: lists of deadlines by the power of two of the time left. */
#include "horizon.h"

/* What is nearer than this stands in the heap. */
#define NEAR TIDE_SEC

#define PARKED (TIDE_HORIZON_LISTS + 1)

/* The list for so much time left: 1 for 1 to 2 s, 2 for 2 to 4 s, ...; 0 for
 * the heap. */
static int list_for(uint64_t left) {
  uint64_t units = left / NEAR;
  int list = 0;
  while (units != 0 && list < TIDE_HORIZON_LISTS) {
    units >>= 1;
    list++;
  }
  return list;
}

static void link_far(tide_horizon *horizon, tide_far *far, int index) {
  tide_horizon_list *list = &horizon->lists[index];
  far->list = index + 1;
  far->previous = NULL;
  far->next = list->first;
  if (list->first != NULL)
    list->first->previous = far;
  list->first = far;
  if (index > 0)
    horizon->count++;
}

/* Takes it off its list. The list's entry goes with the last member, so that an
 * idle host is not woken for nothing. */
static void unlink_far(tide_horizon *horizon, tide_far *far) {
  int index = far->list - 1;
  tide_horizon_list *list = &horizon->lists[index];
  if (far->previous != NULL)
    far->previous->next = far->next;
  else
    list->first = far->next;
  if (far->next != NULL)
    far->next->previous = far->previous;
  far->list = 0;
  if (index > 0) {
    horizon->count--;
    if (list->first == NULL)
      tide_deadline_clear(horizon->clock, &list->wake);
  }
}

/* Sets the time of a list that gets a member, if it has none that early. Those
 * that come later have at least as much time left, and so are due later. */
static int watch_list(tide_horizon *horizon, int index, uint64_t now) {
  tide_deadline *wake = &horizon->lists[index].wake;
  uint64_t at = now + (NEAR << (index - 1));
  if (tide_deadline_pending(wake) && wake->at <= at)
    return 0;
  return tide_deadline_set(horizon->clock, wake, at);
}

int tide_far_set(tide_horizon *horizon, tide_far *far, uint64_t at,
                 uint64_t now) {
  int index = at > now ? list_for(at - now) : 0;
  int rc = index == 0 ? tide_deadline_set(horizon->clock, &far->deadline, at)
                      : watch_list(horizon, index, now);
  if (rc != 0)
    return rc;
  if (index != 0) {
    tide_deadline_clear(horizon->clock, &far->deadline);
    far->deadline.at = at;
  }
  if (far->list != index + 1) {
    if (far->list != 0)
      unlink_far(horizon, far);
    link_far(horizon, far, index);
  }
  return 0;
}

void tide_far_park(tide_horizon *horizon, tide_far *far) {
  tide_far_clear(horizon, far);
  link_far(horizon, far, PARKED);
}

tide_far *tide_horizon_parked(tide_horizon *horizon) {
  return horizon->lists[PARKED].first;
}

void tide_far_clear(tide_horizon *horizon, tide_far *far) {
  if (far->list == 0)
    return;
  tide_deadline_clear(horizon->clock, &far->deadline);
  unlink_far(horizon, far);
}

/* A list's time has come: its members are sorted by what is left now. Those for
 * which the heap has no memory stay, and it is tried again. */
static void on_wake(tide_deadline *wake) {
  tide_horizon_list *list = (tide_horizon_list *)wake;
  tide_horizon *horizon = list->horizon;
  uint64_t now = tide_clock_now(horizon->clock);
  tide_far *far = list->first;
  while (far != NULL) {
    tide_far *next = far->next;
    if (tide_far_set(horizon, far, far->deadline.at, now) != 0)
      break;
    far = next;
  }
  if (list->first != NULL && !tide_deadline_pending(wake))
    tide_deadline_set(horizon->clock, wake, now + TIDE_MS);
}

void tide_horizon_init(tide_horizon *horizon, tide_clock *clock) {
  int i;
  *horizon = (tide_horizon){.clock = clock};
  for (i = 0; i <= TIDE_HORIZON_LISTS; i++) {
    horizon->lists[i].wake.fn = on_wake;
    horizon->lists[i].horizon = horizon;
  }
}

void tide_horizon_close(tide_horizon *horizon) {
  int i;
  for (i = 0; i <= PARKED; i++)
    while (horizon->lists[i].first != NULL)
      tide_far_clear(horizon, horizon->lists[i].first);
}

size_t tide_horizon_pending(const tide_horizon *horizon) {
  size_t pending = horizon->clock->count + horizon->count;
  int i;
  for (i = 1; i <= TIDE_HORIZON_LISTS; i++)
    pending -= tide_deadline_pending(&horizon->lists[i].wake);
  return pending;
}
