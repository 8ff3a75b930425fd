/* state.c: the lifecycle states. Pure: no loop, no Lua. */
#include "state.h"

#include <assert.h>
#include <stddef.h>

const char *tide_state_name(tide_state state) {
  switch (state) {
  case TIDE_STARTING:
    return "starting";
  case TIDE_READY:
    return "ready";
  case TIDE_DRAINING:
    return "draining";
  case TIDE_STOPPED:
    return "stopped";
  }
  return "unknown";
}

void tide_lifecycle_init(tide_lifecycle *lifecycle) {
  atomic_init(&lifecycle->state, TIDE_STARTING);
  atomic_init(&lifecycle->was_ready, false);
  lifecycle->observers = NULL;
}

tide_state tide_lifecycle_state(const tide_lifecycle *lifecycle) {
  return (tide_state)atomic_load_explicit(&lifecycle->state,
                                          memory_order_acquire);
}

bool tide_lifecycle_was_ready(const tide_lifecycle *lifecycle) {
  return atomic_load_explicit(&lifecycle->was_ready, memory_order_acquire);
}

bool tide_state_legal(tide_state from, tide_state to) {
  switch (from) {
  case TIDE_STARTING: /* also to stopped: failed before anything had started */
    return to == TIDE_READY || to == TIDE_DRAINING || to == TIDE_STOPPED;
  case TIDE_READY:
    return to == TIDE_DRAINING;
  case TIDE_DRAINING:
    return to == TIDE_STOPPED;
  case TIDE_STOPPED:
    return false;
  }
  return false;
}

int tide_lifecycle_move(tide_lifecycle *lifecycle, tide_state to) {
  tide_state from = tide_lifecycle_state(lifecycle);
  tide_state_observer *observer, *next;
  if (from == to)
    return 0;
  if (!tide_state_legal(from, to))
    return TIDE_EINVAL;
  if (to == TIDE_READY)
    atomic_store_explicit(&lifecycle->was_ready, true, memory_order_release);
  atomic_store_explicit(&lifecycle->state, (int)to, memory_order_release);
  for (observer = lifecycle->observers; observer != NULL; observer = next) {
    next = observer->next; /* it may remove itself */
    observer->fn(observer->arg, from, to);
  }
  return 1;
}

void tide_lifecycle_observe(tide_lifecycle *lifecycle,
                            tide_state_observer *observer) {
  tide_state_observer **link = &lifecycle->observers;
  while (*link != NULL)
    link = &(*link)->next;
  observer->next = NULL;
  *link = observer;
}

void tide_lifecycle_forget(tide_lifecycle *lifecycle,
                           tide_state_observer *observer) {
  tide_state_observer **link = &lifecycle->observers;
  while (*link != NULL && *link != observer)
    link = &(*link)->next;
  if (*link != NULL)
    *link = observer->next;
}
