/* watchdog_dump.c: records to a file descriptor that may be full. */
#include "watchdog_dump.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log_format.h"

#define PATIENCE (100 * TIDE_MS)

typedef struct output {
  int fd;
  uint64_t give_up_at;
} output;

static bool wait_writable(const output *out) {
  uint64_t now = tide_clock_mono();
  struct pollfd pollfd = {.fd = out->fd, .events = POLLOUT};
  int left = now < out->give_up_at
                 ? (int)((out->give_up_at - now + TIDE_MS - 1) / TIDE_MS)
                 : 0;
  return poll(&pollfd, 1, left) == 1 && (pollfd.revents & POLLOUT) != 0;
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking, so the
 * pieces are no larger than that. */
static void put(const output *out, const char *text, size_t length) {
  while (length > 0) {
    size_t piece = length < PIPE_BUF ? length : PIPE_BUF;
    ssize_t written;
    if (!wait_writable(out))
      return;
    written = write(out->fd, text, piece);
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      return;
    if (written > 0) {
      text += written;
      length -= (size_t)written;
    }
  }
}

static void record(const tide_dump *dump, const output *out,
                   const char *message, const tide_field *fields,
                   size_t count) {
  static char line[TIDE_LOG_LINE]; /* one thread writes, once */
  tide_record record = {.level = TIDE_LOG_ERROR,
                        .component = "watchdog",
                        .message = message,
                        .fields = fields,
                        .count = count};
  clock_gettime(CLOCK_REALTIME, &record.time);
  put(out, line, tide__log_format(line, dump->format, &record));
}

static int64_t age_ms(const tide_dump *dump, uint64_t since) {
  return since < dump->now ? (int64_t)((dump->now - since) / TIDE_MS) : 0;
}

static void put_head(const tide_dump *dump, const output *out) {
  tide_field fields[4];
  tide_entry phase;
  size_t count = 0;
  if (dump->name != NULL)
    fields[count++] = TIDE_F_STR("name", dump->name);
  if (tide_place_read(&dump->table->phase, &phase)) {
    fields[count++] = TIDE_F_STR("phase", phase.what);
    fields[count++] = TIDE_F_INT("phase_ms", age_ms(dump, phase.since));
  }
  if (dump->slice_since != 0)
    fields[count++] =
        TIDE_F_INT("lua_busy_ms", age_ms(dump, dump->slice_since));
  record(dump, out,
         dump->which == TIDE_TOTAL_STARTUP
             ? "the startup total has passed; ending the process"
             : "the shutdown total has passed; ending the process",
         fields, count);
}

static void put_entry(const tide_dump *dump, const output *out,
                      const tide_entry *entry) {
  tide_field fields[3];
  size_t count = 0;
  fields[count++] = TIDE_F_STR("what", entry->what);
  if (entry->site[0] != '\0')
    fields[count++] = TIDE_F_STR("site", entry->site);
  fields[count++] = TIDE_F_INT("age_ms", age_ms(dump, entry->since));
  record(dump, out, "still running", fields, count);
}

static void put_overflow(const tide_dump *dump, const output *out) {
  uint32_t more = atomic_load(&dump->table->overflow);
  tide_field field = TIDE_F_INT("count", more);
  if (more > 0)
    record(dump, out, "more were still running", &field, 1);
}

void tide_dump_write(const tide_dump *dump, int fd) {
  output out = {.fd = fd, .give_up_at = tide_clock_mono() + PATIENCE};
  tide_entry entry;
  int i;
  put_head(dump, &out);
  for (i = 0; i < TIDE_PLACES; i++)
    if (tide_place_read(&dump->table->places[i], &entry))
      put_entry(dump, &out, &entry);
  put_overflow(dump, &out);
}
