/* What systemd hears of us, over real datagram sockets. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "notify.h"

static tide_notify *open_notify(void) {
  tide_notify *notify;

  assert_int_equal(tide_notify_open(&notify), 0);
  assert_non_null(notify);
  return notify;
}

/* The service manager's end, bound to `name` ('@': abstract). */
static int manager_socket(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                 strlen(name) + (name[0] == '/' ? 1 : 0));
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

  assert_true(fd >= 0);
  memcpy(address.sun_path, name, strlen(name));
  if (name[0] == '@')
    address.sun_path[0] = '\0';
  assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
  return fd;
}

static void assert_heard(int fd, const char *expected) {
  char text[256] = {0};
  ssize_t n = recv(fd, text, sizeof text - 1, 0);

  assert_int_equal(n, strlen(expected));
  assert_string_equal(text, expected);
}

static void without_variables_there_is_nobody(void **state) {
  (void)state;
  tide_notify *notify = open_notify();

  assert_false(tide_notify_active(notify));
  assert_int_equal(tide_notify_send(notify, "READY=1"), 0);
  assert_int_equal(tide_notify_watchdog_interval(notify), 0);
  assert_int_equal(tide_notify_listen_fds(notify), 0);
  assert_int_equal(tide_notify_listen_fd(notify, 0, NULL), -EINVAL);
  tide_notify_close(notify);
  tide_notify_close(NULL);
}

static void check_socket(const char *name) {
  int manager = manager_socket(name);
  setenv("NOTIFY_SOCKET", name, 1);
  tide_notify *notify = open_notify();

  assert_true(tide_notify_active(notify));
  assert_null(getenv("NOTIFY_SOCKET"));
  assert_int_equal(tide_notify_send(notify, "READY=1\nSTATUS=ok"), 0);
  assert_int_equal(tide_notify_send(notify, "WATCHDOG=1"), 0);
  assert_heard(manager, "READY=1\nSTATUS=ok");
  assert_heard(manager, "WATCHDOG=1");
  tide_notify_close(notify);
  close(manager);
}

static void a_path_is_notified(void **state) {
  (void)state;
  char directory[] = "/tmp/tide_notify_XXXXXX";
  char path[64];
  assert_non_null(mkdtemp(directory));
  snprintf(path, sizeof path, "%s/notify", directory);

  check_socket(path);
  unlink(path);
  rmdir(directory);
}

static void an_abstract_name_is_notified(void **state) {
  (void)state;
  char name[64];
  snprintf(name, sizeof name, "@tide-notify-%d", (int)getpid());

  check_socket(name);
}

static void a_manager_that_is_gone_or_full_is_an_error(void **state) {
  (void)state;
  char name[64];
  snprintf(name, sizeof name, "@tide-notify-full-%d", (int)getpid());
  int manager = manager_socket(name);
  setenv("NOTIFY_SOCKET", name, 1);
  tide_notify *notify = open_notify();
  int err = 0;

  for (int i = 0; i < 100000 && err == 0; i++)
    err = tide_notify_send(notify, "WATCHDOG=1"); /* does not block */
  assert_int_equal(err, -EAGAIN);
  close(manager);
  assert_int_equal(tide_notify_send(notify, "WATCHDOG=1"), -ECONNREFUSED);
  tide_notify_close(notify);
}

static void addresses_not_understood_are_ignored(void **state) {
  (void)state;
  char long_path[200];
  memset(long_path, 'x', sizeof long_path);
  long_path[0] = '/';
  long_path[sizeof long_path - 1] = '\0';
  const char *const cases[] = {"",         "@",         "/",
                               "relative", "vsock:2:1", long_path};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    setenv("NOTIFY_SOCKET", cases[i], 1);
    tide_notify *notify = open_notify();
    assert_false(tide_notify_active(notify));
    assert_null(getenv("NOTIFY_SOCKET"));
    tide_notify_close(notify);
  }
}

static uint64_t interval_with(const char *usec, const char *pid) {
  setenv("WATCHDOG_USEC", usec, 1);
  if (pid != NULL)
    setenv("WATCHDOG_PID", pid, 1);
  tide_notify *notify = open_notify();
  uint64_t interval = tide_notify_watchdog_interval(notify);

  assert_null(getenv("WATCHDOG_USEC"));
  assert_null(getenv("WATCHDOG_PID"));
  tide_notify_close(notify);
  return interval;
}

static void the_watchdog_is_fed_every_half_interval(void **state) {
  (void)state;
  char ours[16];
  snprintf(ours, sizeof ours, "%d", (int)getpid());

  assert_int_equal(interval_with("30000000", NULL), 15000000000u);
  assert_int_equal(interval_with("30000000", ours), 15000000000u);
  assert_int_equal(interval_with("30000000", "1"), 0);
  assert_int_equal(interval_with("30000000", "x"), 0);
  assert_int_equal(interval_with("", NULL), 0);
  assert_int_equal(interval_with("-5", NULL), 0);
  assert_int_equal(interval_with("3s", NULL), 0);
  assert_int_equal(interval_with("99999999999999999999", NULL), 0);
}

/* As the service manager would, on fd 3 and up. */
static void hand_over(int count, const char *names, const char *pid) {
  char number[16];
  for (int i = 0; i < count; i++) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (fd != 3 + i) {
      assert_int_equal(dup2(fd, 3 + i), 3 + i);
      close(fd);
    }
  }
  snprintf(number, sizeof number, "%d", count);
  setenv("LISTEN_FDS", number, 1);
  snprintf(number, sizeof number, "%d", (int)getpid());
  setenv("LISTEN_PID", pid == NULL ? number : pid, 1);
  if (names != NULL)
    setenv("LISTEN_FDNAMES", names, 1);
}

static void assert_listener(tide_notify *notify, int index, const char *name) {
  const char *got;
  int fd = tide_notify_listen_fd(notify, index, &got);

  assert_int_equal(fd, 3 + index);
  assert_string_equal(got, name);
  assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void inherited_sockets_come_with_their_names(void **state) {
  (void)state;
  static const struct {
    const char *list, *first, *second;
  } cases[] = {
      {"http:admin", "http", "admin"},
      {"http", "http", ""},
      {NULL, "", ""},
      {":b", "", "b"},
      {"a:b:c", "a", "b"},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hand_over(2, cases[i].list, NULL);
    tide_notify *notify = open_notify();
    assert_int_equal(tide_notify_listen_fds(notify), 2);
    assert_listener(notify, 0, cases[i].first);
    assert_listener(notify, 1, cases[i].second);
    assert_null(getenv("LISTEN_FDS"));
    assert_null(getenv("LISTEN_PID"));
    assert_null(getenv("LISTEN_FDNAMES"));
    tide_notify_close(notify);
    close(3);
    close(4);
  }
}

static int listeners(void) {
  tide_notify *notify = open_notify();
  int count = tide_notify_listen_fds(notify);

  tide_notify_close(notify);
  return count;
}

static void sockets_meant_for_another_process_are_left_alone(void **state) {
  (void)state;

  hand_over(1, NULL, "1");
  assert_int_equal(listeners(), 0);
  assert_false(fcntl(3, F_GETFD) & FD_CLOEXEC);
  assert_null(getenv("LISTEN_FDS"));
  hand_over(1, NULL, NULL);
  unsetenv("LISTEN_PID");
  assert_int_equal(listeners(), 0);
  close(3);
}

static void more_promised_than_given(void **state) {
  (void)state;

  hand_over(1, "a:b:c", NULL);
  setenv("LISTEN_FDS", "2000000000", 1);
  close(4);
  assert_int_equal(listeners(), 1);
  close(3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_variables_there_is_nobody),
      cmocka_unit_test(a_path_is_notified),
      cmocka_unit_test(an_abstract_name_is_notified),
      cmocka_unit_test(a_manager_that_is_gone_or_full_is_an_error),
      cmocka_unit_test(addresses_not_understood_are_ignored),
      cmocka_unit_test(the_watchdog_is_fed_every_half_interval),
      cmocka_unit_test(inherited_sockets_come_with_their_names),
      cmocka_unit_test(sockets_meant_for_another_process_are_left_alone),
      cmocka_unit_test(more_promised_than_given),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
