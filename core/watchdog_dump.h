/* watchdog_dump: the last words: what was still running when a total passed.
 *
 * Written straight to a file descriptor by the watchdog thread; see
 * watchdog_words.h.
 */
#ifndef TIDE_WATCHDOG_DUMP_H
#define TIDE_WATCHDOG_DUMP_H

#include <stdint.h>

#include "interrupt.h"
#include "log.h"
#include "watchdog_table.h"

typedef struct tide_dump {
  const char *name;        /* of the host */
  const char *why;         /* "the startup total has passed" */
  uint64_t now;            /* tide_clock_mono ns */
  uint64_t slice_since;    /* Lua has not returned since then; 0: it has */
  const tide_noted *slice; /* what of Lua's runs, or NULL */
  tide_log_format format;
  tide_table *table;
} tide_dump;

/* Waits at most 100 ms altogether for a reader that does not read, then gives
 * up. */
void tide_dump_write(const tide_dump *dump, int fd);

/* Writes why, in a line, where the kubelet looks for it, if that file exists;
 * NULL: /dev/termination-log. */
void tide_dump_last_words(const tide_dump *dump, const char *path);

#endif
