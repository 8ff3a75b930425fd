/* How a connection of the control socket ends: half closed, closed, with a line
 * that is too long; and who gets in when descriptors or rights are short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"

static struct {
  uv_loop_t loop;
  uv_async_t keep; /* the room's handles do not keep a loop turning */
  char directory[64];
  char error[512];
  struct sockaddr_un at;
  tide_control *server;
  uint32_t id; /* the last one accepted */
  int accepts, closes, lines, overs;
  tide_control_over why;
  char line[64];
} f;

static void on_accepted(void *arg, uint32_t id, uid_t uid, pid_t pid) {
  (void)arg;
  (void)uid;
  (void)pid;
  f.id = id;
  f.accepts++;
}

static void on_line(void *arg, uint32_t id, const char *text, size_t length) {
  (void)arg;
  (void)id;
  f.lines++;
  snprintf(f.line, sizeof f.line, "%.*s", (int)(length < 60 ? length : 60),
           text);
}

static void on_over(void *arg, uint32_t id, tide_control_over why) {
  (void)arg;
  (void)id;
  f.overs++;
  f.why = why;
}

static void on_closed(void *arg, uint32_t id) {
  (void)arg;
  (void)id;
  f.closes++;
}

static int listen_there(tide_control_access access) {
  return tide_control_listen(f.server, f.directory, "app-1.sock", access,
                             f.error, sizeof f.error);
}

static int open_room(void **state) {
  tide_control_handlers handlers = {NULL, on_accepted, on_line, on_over,
                                    on_closed};
  (void)state;
  memset(&f, 0, sizeof f);
  uv_loop_init(&f.loop);
  uv_async_init(&f.loop, &f.keep, NULL);
  strcpy(f.directory, "/tmp/moontide-test-XXXXXX");
  if (mkdtemp(f.directory) == NULL)
    return -1;
  f.at.sun_family = AF_UNIX;
  snprintf(f.at.sun_path, sizeof f.at.sun_path, "%s/app-1.sock", f.directory);
  return tide_control_open(&f.server, &f.loop, &handlers);
}

static int close_room(void **state) {
  char command[96];
  (void)state;
  tide_control_close(f.server);
  uv_close((uv_handle_t *)&f.keep, NULL);
  uv_run(&f.loop, UV_RUN_DEFAULT);
  snprintf(command, sizeof command, "rm -rf %s", f.directory);
  assert_int_equal(system(command), 0);
  return uv_loop_close(&f.loop);
}

static void turn(void) {
  for (int i = 0; i < 5; i++)
    uv_run(&f.loop, UV_RUN_NOWAIT);
}

static int dial(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&f.at, sizeof f.at), 0);
  return fd;
}

static int client(void) {
  assert_int_equal(listen_there(TIDE_CONTROL_PRIVATE), 0);
  int fd = dial();
  turn();
  assert_int_equal(f.accepts, 1);
  return fd;
}

static void say(int fd, const char *text) {
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* The loop has nothing to do: it waits for as long as it is let. */
static void assert_idle(void) {
  uint64_t till = uv_hrtime() + 50000000;
  int turns = 0;
  uv_timer_t timer;
  uv_timer_init(&f.loop, &timer);
  uv_timer_start(&timer, (uv_timer_cb)uv_stop, 60, 0);
  while (uv_hrtime() < till) {
    uv_run(&f.loop, UV_RUN_ONCE);
    turns++;
  }
  uv_close((uv_handle_t *)&timer, NULL);
  turn();
  assert_true(turns < 10);
}

static void one_half_closed_can_still_be_answered(void **state) {
  char answer[16] = "";
  (void)state;
  int fd = client();
  say(fd, "ask\n");
  shutdown(fd, SHUT_WR);
  turn();
  assert_int_equal(f.lines, 1);
  assert_int_equal(f.overs, 1);
  assert_int_equal(f.why, TIDE_CONTROL_ENDED);
  assert_int_equal(f.closes, 0);
  assert_idle();
  assert_false(tide_control_gone(f.server, f.id));
  assert_int_equal(tide_control_send(f.server, f.id, "yes\n", 4, NULL, 0), 0);
  assert_int_equal(read(fd, answer, sizeof answer), 4);
  close(fd);
  assert_true(tide_control_gone(f.server, f.id));
  assert_idle();
}

static void its_last_line_may_have_no_end(void **state) {
  (void)state;
  int fd = client();
  say(fd, "one\ntwo");
  turn();
  assert_int_equal(f.lines, 1);
  shutdown(fd, SHUT_WR);
  turn();
  assert_int_equal(f.lines, 2);
  assert_string_equal(f.line, "two");
  close(fd);
}

/* What a client had half said when it died was not asked for. */
static void half_a_line_of_the_dead_is_nothing(void **state) {
  (void)state;
  int fd = client();
  say(fd, "remove everythi");
  close(fd);
  turn();
  assert_int_equal(f.lines, 0);
  assert_int_equal(f.overs, 0);
  assert_int_equal(f.closes, 1);
}

static void a_line_too_long_can_be_answered(void **state) {
  char block[8192], answer[16] = "";
  (void)state;
  int fd = client();
  fcntl(fd, F_SETFL, O_NONBLOCK);
  memset(block, 'x', sizeof block);
  for (int i = 0; i < 1000 && f.overs == 0; i++) {
    if (write(fd, block, sizeof block) < 0)
      assert_int_equal(errno, EAGAIN);
    uv_run(&f.loop, UV_RUN_NOWAIT);
  }
  assert_int_equal(f.overs, 1);
  assert_int_equal(f.why, TIDE_CONTROL_TOO_LONG);
  assert_idle();
  assert_int_equal(tide_control_send(f.server, f.id, "no\n", 3, NULL, 0), 0);
  tide_control_end(f.server, f.id);
  assert_int_equal(read(fd, answer, sizeof answer), 3);
  close(fd);
}

/* A megabyte of line ends would hold the loop up if each of them moved the
 * rest. */
static void many_short_lines_behind_a_long_one_are_cheap(void **state) {
  size_t size = TIDE_CONTROL_LINE - 1, sent = 0;
  char *text = malloc(size);
  (void)state;
  int fd = client();
  fcntl(fd, F_SETFL, O_NONBLOCK);
  memset(text, 'x', size / 2);
  memset(text + size / 2, '\n', size - size / 2);
  uint64_t before = uv_hrtime();
  for (int i = 0; i < 100000 && sent < size; i++) {
    ssize_t n = write(fd, text + sent, size - sent);
    sent += n > 0 ? (size_t)n : 0;
    uv_run(&f.loop, UV_RUN_NOWAIT);
  }
  while (f.lines < (int)(size - size / 2) && uv_hrtime() < before + 60000000000)
    uv_run(&f.loop, UV_RUN_NOWAIT);
  assert_int_equal(f.lines, size - size / 2);
  /* 0.1 s here, with sanitizers 0.5; with a move for each it was minutes. */
  assert_true(uv_hrtime() - before < 20000000000);
  free(text);
  close(fd);
}

static void what_is_not_read_is_counted(void **state) {
  char block[65536];
  uint64_t sent;
  (void)state;
  int fd = client();
  memset(block, 'x', sizeof block);
  for (int i = 0; i < 20; i++)
    assert_int_equal(
        tide_control_send(f.server, f.id, block, sizeof block, NULL, 0), 0);
  assert_true(tide_control_queued(f.server, f.id, &sent) > 0);
  assert_true(sent > 0 && sent < 20 * sizeof block);
  while (tide_control_queued(f.server, f.id, &sent) > 0) {
    assert_true(read(fd, block, sizeof block) > 0);
    uv_run(&f.loop, UV_RUN_NOWAIT);
  }
  assert_int_equal(sent, 20 * sizeof block);
  assert_int_equal(tide_control_queued(f.server, 99, &sent), 0);
  close(fd);
}

static void one_too_many_is_told_so(void **state) {
  int fds[TIDE_CONTROL_CONNS + 1];
  char answer[128] = "";
  (void)state;
  assert_int_equal(listen_there(TIDE_CONTROL_PRIVATE), 0);
  for (int i = 0; i <= TIDE_CONTROL_CONNS; i++) {
    fds[i] = dial();
    turn();
  }
  assert_int_equal(f.accepts, TIDE_CONTROL_CONNS);
  assert_true(read(fds[TIDE_CONTROL_CONNS], answer, sizeof answer - 1) > 0);
  assert_non_null(strstr(answer, "too many connections"));
  for (int i = 0; i <= TIDE_CONTROL_CONNS; i++)
    close(fds[i]);
}

/* A process that leaks descriptors is one to look into: one gets in, the next
 * waits until he has left, and nothing spins meanwhile. */
static void one_gets_in_without_descriptors(void **state) {
  struct rlimit old, none;
  (void)state;
  assert_int_equal(listen_there(TIDE_CONTROL_PRIVATE), 0);
  turn();
  int first = dial(), second = dial();
  getrlimit(RLIMIT_NOFILE, &old);
  none = old;
  none.rlim_cur = (rlim_t)second + 1;
  setrlimit(RLIMIT_NOFILE, &none);
  turn();
  assert_int_equal(f.accepts, 1);
  assert_idle();
  close(first);
  turn();
  turn();
  setrlimit(RLIMIT_NOFILE, &old);
  assert_int_equal(f.accepts, 2);
  close(second);
}

/* Whoever took the last descriptor may have been anybody: that one gives it
 * back is nothing that the room hears of. */
static void one_waits_until_there_are_descriptors(void **state) {
  struct rlimit old, none;
  uint64_t until;
  (void)state;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int lock = dup(fd), listener = dup(fd); /* the places that these will have */
  close(lock);
  close(listener);
  getrlimit(RLIMIT_NOFILE, &old);
  none = old;
  none.rlim_cur = (rlim_t)listener + 1;
  setrlimit(RLIMIT_NOFILE, &none);
  assert_int_equal(listen_there(TIDE_CONTROL_PRIVATE), 0);
  int last = dup(fd);
  assert_int_equal(connect(fd, (struct sockaddr *)&f.at, sizeof f.at), 0);
  turn();
  assert_int_equal(f.accepts, 0);
  assert_idle();
  close(last);
  setrlimit(RLIMIT_NOFILE, &old);
  until = uv_hrtime() + 10000000000; /* it looks once a second */
  for (; f.accepts == 0 && uv_hrtime() < until; usleep(1000))
    uv_run(&f.loop, UV_RUN_NOWAIT);
  assert_int_equal(f.accepts, 1);
  close(fd);
}

static void a_shared_one_lets_others_in_and_change_nothing(void **state) {
  struct stat st;
  (void)state;
  rmdir(f.directory);
  mode_t before = umask(077);
  assert_int_equal(listen_there(TIDE_CONTROL_SHARED), 0);
  umask(before);
  assert_int_equal(stat(f.directory, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0711);
  assert_int_equal(stat(f.at.sun_path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0666);
  tide_control_unlisten(f.server);
  turn();
  chmod(f.directory, 0731);
  assert_int_equal(listen_there(TIDE_CONTROL_SHARED), UV_EPERM);
  assert_non_null(strstr(f.error, "others can write to it, not 0711"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_room, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(one_half_closed_can_still_be_answered),
      T(its_last_line_may_have_no_end),
      T(half_a_line_of_the_dead_is_nothing),
      T(a_line_too_long_can_be_answered),
      T(many_short_lines_behind_a_long_one_are_cheap),
      T(what_is_not_read_is_counted),
      T(one_too_many_is_told_so),
      T(one_gets_in_without_descriptors),
      T(one_waits_until_there_are_descriptors),
      T(a_shared_one_lets_others_in_and_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
