/* A watchdog with its out-of-band line, and clients of that, for the tests of
 * both. Included behind cmocka.h. */
#ifndef TIDE_TEST_OOB_HELPERS_H
#define TIDE_TEST_OOB_HELPERS_H

#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "interrupt.h"
#include "watchdog.h"

/* Only says "hangs". */
#define OOB_BOUND (10 * TIDE_SEC)

typedef struct oob_world {
  char directory[32];
  char path[100];
  tide_lifecycle lifecycle;
  tide_work work;
  tide_beat beat;
  tide_interrupt *interrupt;
  tide_watchdog *watchdog;
  lua_State *L;
} oob_world;

typedef struct oob_client {
  int fd;
  size_t length;
  char text[1 << 17];
} oob_client;

static inline void oob_wait_file(const char *path, bool there) {
  uint64_t until = tide_clock_mono() + OOB_BOUND;
  struct stat st;
  while ((stat(path, &st) == 0) != there) {
    if (tide_clock_mono() > until)
      fail_msg("%s is %s", path, there ? "not there" : "still there");
    usleep(500);
  }
}

static inline tide_watchdog_options oob_options(oob_world *w) {
  return (tide_watchdog_options){.name = "test",
                                 .interrupt = w->interrupt,
                                 .line = true,
                                 .lifecycle = &w->lifecycle,
                                 .work = &w->work,
                                 .beat = &w->beat,
                                 .termination_log = "/nonexistent",
                                 .started_at = tide_clock_mono()};
}

/* Everything but the watchdog. */
static inline oob_world *oob_new(void) {
  oob_world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  snprintf(w->directory, sizeof w->directory, "/tmp/tide-oob-XXXXXX");
  assert_non_null(mkdtemp(w->directory));
  snprintf(w->path, sizeof w->path, "%s/app-%d.oob", w->directory,
           (int)getpid());
  tide_lifecycle_init(&w->lifecycle);
  tide_work_init(&w->work);
  assert_int_equal(tide_interrupt_init(&w->interrupt), 0);
  w->L = luaL_newstate();
  luaL_openlibs(w->L);
  tide_interrupt_bind(w->interrupt, w->L);
  return w;
}

static inline void oob_start(oob_world *w,
                             const tide_watchdog_options *options) {
  assert_int_equal(tide_watchdog_start(&w->watchdog, options), 0);
  assert_int_equal(tide_watchdog_place(w->watchdog, w->directory, "app", false),
                   0);
}

static inline int oob_setup(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  oob_start(w, &options);
  oob_wait_file(w->path, true);
  *state = w;
  return 0;
}

static inline void oob_remove(oob_world *w) {
  char path[100];
  lua_close(w->L);
  tide_interrupt_free(w->interrupt);
  snprintf(path, sizeof path, "%s/.lock", w->directory);
  unlink(path);
  unlink(w->path);
  assert_int_equal(rmdir(w->directory), 0); /* nothing was left in it */
  free(w);
}

static inline int oob_teardown(void **state) {
  oob_world *w = *state;
  tide_watchdog_stop(w->watchdog);
  oob_remove(w);
  return 0;
}

/* ---- clients ---------------------------------------------------------- */

static inline oob_client *oob_connect(const char *path) {
  oob_client *c = calloc(1, sizeof *c);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  uint64_t until = tide_clock_mono() + OOB_BOUND;
  assert_non_null(c);
  snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
  c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(c->fd >= 0);
  while (connect(c->fd, (struct sockaddr *)&at, sizeof at) != 0) {
    assert_true(tide_clock_mono() < until); /* bound, not listening yet */
    usleep(500);
  }
  return c;
}

static inline void oob_hang_up(oob_client *c) {
  close(c->fd);
  free(c);
}

static inline void oob_send(oob_client *c, const char *text) {
  size_t length = strlen(text);
  assert_int_equal(send(c->fd, text, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* Reads until the text is there, or the other side has closed; whether the text
 * is there. */
static inline bool oob_read(oob_client *c, const char *text) {
  while (strstr(c->text, text) == NULL) {
    struct pollfd pollfd = {.fd = c->fd, .events = POLLIN};
    ssize_t got;
    if (poll(&pollfd, 1, (int)(OOB_BOUND / TIDE_MS)) != 1)
      fail_msg("\"%s\" does not come, only: %s", text, c->text);
    got = recv(c->fd, c->text + c->length, sizeof c->text - 1 - c->length, 0);
    if (got <= 0)
      return false;
    c->length += (size_t)got;
    c->text[c->length] = '\0';
  }
  return true;
}

/* Asks, and returns all of the answer. */
static inline const char *oob_ask(oob_client *c, const char *line) {
  c->length = 0;
  c->text[0] = '\0';
  oob_send(c, line);
  oob_send(c, "\n");
  assert_true(oob_read(c, "\"type\":\"done\""));
  assert_true(oob_read(c, "}\n"));
  return c->text;
}

static inline void assert_has(const char *text, const char *what) {
  if (strstr(text, what) == NULL)
    fail_msg("\"%s\" is not in: %s", what, text);
}

static inline void assert_lacks(const char *text, const char *what) {
  if (strstr(text, what) != NULL)
    fail_msg("\"%s\" is in: %s", what, text);
}

static inline void assert_closed(oob_client *c) {
  assert_false(oob_read(c, "never said"));
}

#endif
