#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "log_format.h"
#include "log_tap.h"
#include "log_writer.h"

#define DEFAULT_RING ((size_t)1 << 20)

struct tide_log {
  _Atomic int least; /* of the two below: what anybody wants */
  _Atomic int level;
  _Atomic int tap_level;
  _Atomic int format;
  _Atomic bool has_target;
  tide_log_fn fn;
  void *arg;
  _Atomic(tide_log_tap *) tap;
  tide_writer *writer;
  int fd;     /* the target of open; not ours to close */
  char *path; /* of the file in use; NULL: `fd` is */
};

int tide_log_open(tide_log **out, const tide_log_options *options) {
  tide_log *log = calloc(1, sizeof *log);
  size_t size = options->ring_size ? options->ring_size : DEFAULT_RING;

  *out = NULL;
  if (log == NULL)
    return UV_ENOMEM;
  int err = tide__writer_open(&log->writer, options->fd, size, options->format);
  if (err != 0) {
    free(log);
    return err;
  }
  atomic_init(&log->least, options->level);
  atomic_init(&log->level, options->level);
  atomic_init(&log->tap_level, TIDE_LOG_OFF);
  atomic_init(&log->format, options->format);
  atomic_init(&log->has_target, options->fd >= 0);
  log->fn = options->fn;
  log->arg = options->arg;
  log->fd = options->fd;
  *out = log;
  return 0;
}

bool tide_log_enabled(const tide_log *log, tide_log_level level) {
  if (log == NULL ||
      (int)level < atomic_load_explicit(&log->least, memory_order_relaxed))
    return false;
  return log->fn != NULL ||
         atomic_load_explicit(&log->has_target, memory_order_relaxed) ||
         (int)level >=
             atomic_load_explicit(&log->tap_level, memory_order_relaxed);
}

static void keep(tide_log *log, const tide_record *record, bool important) {
  char line[TIDE_LOG_LINE];
  size_t length = tide__log_format(
      line, atomic_load_explicit(&log->format, memory_order_relaxed), record);
  if (atomic_load_explicit(&log->has_target, memory_order_relaxed))
    tide__writer_put(log->writer, line, length, important);
  if (log->fn != NULL) {
    line[length - 1] = '\0';
    log->fn(log->arg, record->level, line, length - 1);
  }
}

static void give_to_tap(tide_log *log, const tide_record *record) {
  char line[TIDE_LOG_LINE];
  size_t length = tide__log_format(line, TIDE_LOG_JSON, record);
  tide_log_tap_put(atomic_load(&log->tap), record->level, line, length - 1);
}

void tide_log_write(tide_log *log, tide_log_level level, const char *component,
                    const char *message, const tide_field *fields,
                    size_t count) {
  tide_record record = {.level = level,
                        .component = component,
                        .message = message,
                        .fields = fields,
                        .count = count};

  if (!tide_log_enabled(log, level))
    return;
  clock_gettime(CLOCK_REALTIME, &record.time);
  if ((int)level >= atomic_load_explicit(&log->level, memory_order_relaxed))
    keep(log, &record, level >= TIDE_LOG_WARN);
  if ((int)level >= atomic_load_explicit(&log->tap_level, memory_order_relaxed))
    give_to_tap(log, &record);
}

void tide_log_audit(tide_log *log, const char *component, const char *message,
                    const tide_field *fields, size_t count) {
  tide_record record = {.level = TIDE_LOG_INFO,
                        .component = component,
                        .message = message,
                        .fields = fields,
                        .count = count};
  clock_gettime(CLOCK_REALTIME, &record.time);
  keep(log, &record, true);
  if (TIDE_LOG_INFO >=
      atomic_load_explicit(&log->tap_level, memory_order_relaxed))
    give_to_tap(log, &record);
}

static void set_least(tide_log *log) {
  int level = atomic_load(&log->level), tap = atomic_load(&log->tap_level);
  atomic_store(&log->least, level < tap ? level : tap);
}

void tide_log_set_level(tide_log *log, tide_log_level level) {
  atomic_store_explicit(&log->level, level, memory_order_relaxed);
  set_least(log);
}

void tide_log_set_tap(tide_log *log, tide_log_tap *tap, int level) {
  atomic_store(&log->tap, tap); /* first: who sees the level uses it */
  atomic_store(&log->tap_level, level);
  set_least(log);
}

void tide_log_set_format(tide_log *log, tide_log_format format) {
  atomic_store_explicit(&log->format, format, memory_order_relaxed);
  tide__writer_set_format(log->writer, format);
}

/* O_NONBLOCK, so that opening a FIFO nobody reads fails and does not block; the
 * description is our own, so nobody else is affected. */
static int open_file(const char *path) {
  int fd = open(
      path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
      0640);
  return fd < 0 ? -errno : fd;
}

int tide_log_set_file(tide_log *log, const char *path) {
  if (path == NULL || *path == '\0') {
    if (log->path == NULL)
      return 0;
    free(log->path);
    log->path = NULL;
    atomic_store(&log->has_target, log->fd >= 0);
    tide__writer_redirect(log->writer, log->fd, false);
    return 0;
  }
  char *copy = strdup(path);
  if (copy == NULL)
    return -ENOMEM;
  int fd = open_file(path);
  if (fd < 0) {
    free(copy);
    return fd;
  }
  free(log->path);
  log->path = copy;
  atomic_store(&log->has_target, true);
  tide__writer_redirect(log->writer, fd, true);
  return 0;
}

int tide_log_reopen(tide_log *log) {
  if (log->path == NULL)
    return 0;
  int fd = open_file(log->path);
  if (fd < 0)
    return fd;
  tide__writer_redirect(log->writer, fd, true);
  return 0;
}

void tide_log_hold(tide_log *log) {
  tide__writer_hold(log->writer);
}

void tide_log_release(tide_log *log) {
  tide__writer_release(log->writer);
}

uint64_t tide_log_dropped(const tide_log *log) {
  return tide__writer_dropped(log->writer);
}

bool tide_log_flush(tide_log *log, uint64_t timeout_ns) {
  return tide__writer_flush(log->writer, timeout_ns);
}

void tide_log_close(tide_log *log, uint64_t timeout_ns) {
  if (log == NULL)
    return;
  tide__writer_close(log->writer, timeout_ns);
  free(log->path);
  free(log);
}
