/* What the tests of embedding share: a host without any flag. */
#ifndef TIDE_EMBED_HELPERS_H
#define TIDE_EMBED_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>

#include "moontide.h"

/* Nothing that waits for anybody outside. */
#define PLAIN                                                                  \
  "local tide = require 'moontide'\n"                                          \
  "tide.config { manage = false, shutdown = { linger = 0 } }\n"

/* "/proc/self/fd", "/proc/self/task": two more than there are. */
static inline int entries_of(const char *path) {
  DIR *dir = opendir(path);
  int count = 0;
  assert_non_null(dir);
  while (readdir(dir) != NULL)
    count++;
  closedir(dir);
  return count;
}

static inline tide_host *new_host_with(const tide_options *options) {
  tide_host *host;
  assert_int_equal(tide_new(&host, options), 0);
  return host;
}

static inline tide_host *new_host(void) {
  return new_host_with(NULL);
}

static inline void load(tide_host *host, const char *text) {
  assert_int_equal(tide_load_buffer(host, "test", text, strlen(text)), 0);
}

static inline tide_host *started(const char *text) {
  tide_host *host = new_host();
  load(host, text);
  assert_int_equal(tide_start(host), 0);
  return host;
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Turns the loop until the state is reached, ten seconds at most. */
static inline void step_until(tide_host *host, tide_state state) {
  double end = now() + 10;
  while (tide_host_state(host) < state && now() < end)
    assert_true(tide_step(host, 20) >= 0);
  assert_int_equal(tide_host_state(host), state);
}

static inline int stop(tide_host *host) {
  int code;
  assert_true(tide_drain(host, "test") == 0 ||
              tide_host_state(host) == TIDE_STOPPED);
  step_until(host, TIDE_STOPPED);
  code = tide_exit_code(host);
  tide_free(host);
  return code;
}

/* Runs `fn` on a thread of its own to its end. */
static inline void *on_thread(void *(*fn)(void *), void *arg) {
  pthread_t thread;
  void *result;
  assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
  assert_int_equal(pthread_join(thread, &result), 0);
  return result;
}

#endif
