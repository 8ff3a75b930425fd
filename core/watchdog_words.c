/* watchdog_words.c: records to a file descriptor that may be full. */
#include "watchdog_words.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log_format.h"

static bool wait_writable(const tide_words *words) {
  uint64_t now = tide_clock_mono();
  struct pollfd pollfd = {.fd = words->fd, .events = POLLOUT};
  int left = now < words->give_up_at
                 ? (int)((words->give_up_at - now + TIDE_MS - 1) / TIDE_MS)
                 : 0;
  return poll(&pollfd, 1, left) == 1 && (pollfd.revents & POLLOUT) != 0;
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking, so the
 * pieces are no larger than that. */
static void put(const tide_words *words, const char *text, size_t length) {
  while (length > 0) {
    size_t piece = length < PIPE_BUF ? length : PIPE_BUF;
    ssize_t written;
    if (!wait_writable(words))
      return;
    written = write(words->fd, text, piece);
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      return;
    if (written > 0) {
      text += written;
      length -= (size_t)written;
    }
  }
}

void tide_words_record(const tide_words *words, tide_log_level level,
                       const char *message, const tide_field *fields,
                       size_t count) {
  char line[TIDE_LOG_LINE];
  tide_record record = {.level = level,
                        .component = "watchdog",
                        .message = message,
                        .fields = fields,
                        .count = count};
  clock_gettime(CLOCK_REALTIME, &record.time);
  put(words, line, tide__log_format(line, words->format, &record));
}
