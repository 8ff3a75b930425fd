/* What the log's tests share. */
#ifndef TIDE_LOG_HELPERS_H
#define TIDE_LOG_HELPERS_H

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "log.h"
#include "log_format.h"

#define SECOND ((uint64_t)1000000000)

/* A log onto a descriptor; a small ring when `ring` is not 0. */
static inline tide_log *open_log(int fd, size_t ring) {
  tide_log_options options = {
      .fd = fd, .level = TIDE_LOG_INFO, .ring_size = ring};
  tide_log *log;

  assert_int_equal(tide_log_open(&log, &options), 0);
  return log;
}

static inline void write_message(tide_log *log, tide_log_level level,
                                 const char *message) {
  tide_log_write(log, level, "test", message, NULL, 0);
}

/* All that comes out of a descriptor until its end, or, for a pipe whose other
 * end stays open, until nothing is in it. Free it. */
static inline char *read_all(int fd) {
  size_t size = 0, capacity = 1 << 16;
  char *text = malloc(capacity);
  struct pollfd ready = {.fd = fd, .events = POLLIN};

  assert_non_null(text);
  while (poll(&ready, 1, 0) > 0) {
    if (capacity - size < 65536) {
      char *bigger = realloc(text, capacity *= 2);
      assert_non_null(bigger);
      text = bigger;
    }
    ssize_t n = read(fd, text + size, capacity - size - 1);
    if (n <= 0)
      break;
    size += (size_t)n;
  }
  text[size] = '\0';
  return text;
}

static inline char *read_file(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  assert_true(fd >= 0);
  char *text = read_all(fd);
  close(fd);
  return text;
}

static inline size_t count_of(const char *text, const char *what) {
  size_t count = 0;

  while ((text = strstr(text, what)) != NULL) {
    count++;
    text += strlen(what);
  }
  return count;
}

/* One record formatted, without its newline; static memory. */
static inline const char *formatted(tide_log_format format, const char *message,
                                    const tide_field *fields, size_t count) {
  static char line[TIDE_LOG_LINE + 1];
  tide_record record = {.time = {.tv_sec = 1769850000, .tv_nsec = 123999999},
                        .level = TIDE_LOG_INFO,
                        .component = "app",
                        .message = message,
                        .fields = fields,
                        .count = count};
  size_t length = tide__log_format(line, format, &record);

  assert_in_range(length, 1, TIDE_LOG_LINE);
  assert_int_equal(line[length - 1], '\n');
  assert_null(memchr(line, '\n', length - 1));
  line[length - 1] = '\0';
  return line;
}

#endif
