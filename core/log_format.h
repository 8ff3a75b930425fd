/* log_format: one record, one line, in logfmt or JSON.
 *
 *   time=2026-01-31T09:00:00.123Z level=info component=app msg=up port=8080
 *   {"time":"...","level":"info","component":"app","msg":"up","port":8080}
 *
 * Pure: no clock, no I/O. [any]
 */
#ifndef TIDE_LOG_FORMAT_H
#define TIDE_LOG_FORMAT_H

#include <stddef.h>
#include <time.h>

#include "log.h"

/* The longest line, its newline included. */
#define TIDE_LOG_LINE ((size_t)16384)

typedef struct tide_record {
  struct timespec time; /* CLOCK_REALTIME */
  tide_log_level level;
  const char *component; /* NULL: "host" */
  const char *message;   /* NULL: "" */
  const tide_field *fields;
  size_t count;
} tide_record;

/* Writes the line with its newline and returns its length, at most
 * TIDE_LOG_LINE, which is the buffer's size. What does not fit is left out, and
 * `truncated=true` says so. */
size_t tide__log_format(char *buffer, tide_log_format format,
                        const tide_record *record);

#endif
