/* watchdog_dump: the last words: what was still running when a total passed.
 *
 * Written straight to a file descriptor by the watchdog thread, in the form of
 * log records, past the log's ring, which the stuck loop may have filled. Takes
 * no lock and allocates nothing.
 */
#ifndef TIDE_WATCHDOG_DUMP_H
#define TIDE_WATCHDOG_DUMP_H

#include <stdint.h>

#include "log.h"
#include "watchdog.h"
#include "watchdog_table.h"

typedef struct tide_dump {
  const char *name;     /* of the host */
  tide_total which;     /* the total that passed */
  uint64_t now;         /* tide_clock_mono ns */
  uint64_t slice_since; /* Lua has not returned since then; 0: it has */
  tide_log_format format;
  tide_table *table;
} tide_dump;

/* Waits at most 100 ms altogether for a reader that does not read, then gives
 * up. */
void tide_dump_write(const tide_dump *dump, int fd);

#endif
