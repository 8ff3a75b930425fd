/* The room on a virtual clock: hours pass in no time, bytes move in real time.
 */
#ifndef HTTP_TIME_H
#define HTTP_TIME_H

#include "http_helpers.h"

/* Lets the loop do what it can do without time going by. */
static inline void settle(void) {
  for (int i = 0; i < 20; i++)
    turn();
}

static inline int open_virtual(void **state) {
  int failed = open_default(state);
  tide_clock_make_virtual(&f.clock);
  return failed;
}

/* Time goes by while the loop turns. */
static inline void pass(uint64_t ns) {
  while (ns > 0) {
    uint64_t step = ns < 100 * TIDE_MS ? ns : 100 * TIDE_MS;
    tide_clock_advance(&f.clock, step);
    turn();
    ns -= step;
  }
  settle();
}

static inline tide_http_timeouts *timeouts(void) {
  return &tide_listener_configure(f.listener)->timeouts;
}

static inline uint64_t open_connections(void) {
  tide_http_stats stats;
  tide_http_get_stats(f.http, &stats);
  return stats.connections;
}

#endif
