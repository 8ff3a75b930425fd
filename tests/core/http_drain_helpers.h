/* For tests of drains: a room as in http_helpers.h, and the two steps. */
#ifndef HTTP_DRAIN_HELPERS_H
#define HTTP_DRAIN_HELPERS_H

#include "http_helpers.h"

/* Where clients came lately, it looks for handshakes after 2 ms. */
static inline void wait_unbound(void) {
  for (int i = 0; i < 100 && !f.unbound; i++) {
    uint64_t stop = uv_hrtime() + 30000000u;
    while (!f.unbound && uv_hrtime() < stop)
      turn();
    if (!f.unbound && f.clock.is_virtual)
      tide_clock_advance(&f.clock, 3 * TIDE_MS);
  }
  assert_true(f.unbound);
}

/* As the host does: the state first, then the two steps. */
static inline void drain_now(void) {
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  wait_unbound();
  tide_listener_drain(f.listener);
}

#endif
