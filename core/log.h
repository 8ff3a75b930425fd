/* log: structured records, never a blocked loop.
 *
 * A record is formatted by the thread that writes it (logfmt or JSON, one
 * line, at most 16 KiB) into a ring of 1 MiB; a writer thread carries the ring
 * to the file descriptor. A full ring drops records and counts them; a slice
 * of it is kept for WARN and ERROR. The writer says once how many were lost.
 */
#ifndef TIDE_LOG_H
#define TIDE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tide_log_level {
  TIDE_LOG_DEBUG,
  TIDE_LOG_INFO,
  TIDE_LOG_WARN,
  TIDE_LOG_ERROR,
} tide_log_level;

enum { TIDE_LOG_OFF = TIDE_LOG_ERROR + 1 }; /* above all of them */

typedef enum tide_log_format { TIDE_LOG_LOGFMT, TIDE_LOG_JSON } tide_log_format;

typedef enum tide_field_type {
  TIDE_FIELD_STRING,
  TIDE_FIELD_INTEGER,
  TIDE_FIELD_NUMBER, /* JSON null / logfmt NaN when not finite */
  TIDE_FIELD_BOOLEAN,
} tide_field_type;

typedef struct tide_field {
  const char *key; /* NUL-terminated; a bad character becomes '_' */
  tide_field_type type;
  union {
    struct {
      const char *data;
      size_t length;
    } string;
    int64_t integer;
    double number;
    bool boolean;
  } value;
} tide_field;

/* For literals in C: TIDE_F_STR("phase", name). */
#define TIDE_F_STR(k, s)                                                       \
  ((tide_field){.key = (k),                                                    \
                .type = TIDE_FIELD_STRING,                                     \
                .value.string = {(s), __builtin_strlen(s)}})
#define TIDE_F_INT(k, n)                                                       \
  ((tide_field){                                                               \
      .key = (k), .type = TIDE_FIELD_INTEGER, .value.integer = (int64_t)(n)})
#define TIDE_F_NUM(k, n)                                                       \
  ((tide_field){                                                               \
      .key = (k), .type = TIDE_FIELD_NUMBER, .value.number = (double)(n)})

typedef struct tide_log tide_log;

/* A program that takes the records itself (embedding): called on the thread
 * that wrote the record, with the formatted line without its newline. */
typedef void (*tide_log_fn)(void *arg, tide_log_level level, const char *line,
                            size_t length);

typedef struct tide_log_options {
  int fd;         /* where the writer writes; -1: nowhere (only `fn`) */
  tide_log_fn fn; /* or NULL */
  void *arg;
  tide_log_level level;
  tide_log_format format;
  size_t ring_size; /* bytes; 0: 1 MiB */
} tide_log_options;

/* Makes the ring; the writer thread starts with the first record. Returns 0
 * or a negative libuv error. [any] */
int tide_log_open(tide_log **out, const tide_log_options *options);

/* Until tide_log_release, records below WARN wait in the ring, unless the
 * writer thread runs already: making a thread is a twentieth of a start, so a
 * host makes it when those who waited for it have been answered, or when the
 * script logs. [any] */
void tide_log_hold(tide_log *log);
void tide_log_release(tide_log *log); /* [any] */

/* Writes a record; never blocks, never fails (it drops and counts). [any] */
void tide_log_write(tide_log *log, tide_log_level level, const char *component,
                    const char *message, const tide_field *fields,
                    size_t count);

/* Writes a record of INFO that no level leaves out, and that is kept as WARN is
 * when the ring is full. [any] */
void tide_log_audit(tide_log *log, const char *component, const char *message,
                    const tide_field *fields, size_t count);

/* From now on records of this level and above also go to the tap, as JSON, also
 * those that the log itself does not keep. The tap must outlive the log.
 * TIDE_LOG_OFF: none. [loop] */
struct tide_log_tap;
void tide_log_set_tap(tide_log *log, struct tide_log_tap *tap, int level);

/* Whether a record of this level would be kept. [any] */
bool tide_log_enabled(const tide_log *log, tide_log_level level);
void tide_log_set_level(tide_log *log, tide_log_level level); /* [any] */
void tide_log_set_format(tide_log *log, tide_log_format format);
/* From now on to this file (appended; "" or NULL: back to the fd of open).
 * Returns 0 or a negative errno; the old target stays on failure. [loop] */
int tide_log_set_file(tide_log *log, const char *path);
/* Opens log.file anew (after a rotation). 0, or a negative errno. [loop] */
int tide_log_reopen(tide_log *log);
/* Records dropped since the start. [any] */
uint64_t tide_log_dropped(const tide_log *log);

/* Waits until all that was written before the call has left, at most
 * `timeout_ns`. Returns true when it has. [any] */
bool tide_log_flush(tide_log *log, uint64_t timeout_ns);
/* Flushes at most `timeout_ns`, ends the writer, frees. A writer stuck in a
 * blocked write is left behind (with the ring), not waited for. */
void tide_log_close(tide_log *log, uint64_t timeout_ns);

#endif
