/* An unbind where the kernel refuses something: the gate, or to tell of
 * handshakes. Two functions of libc are replaced by ones that refuse. */
#include <stdarg.h>
#include <sys/syscall.h>

#include "http_drain_helpers.h"

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

static bool no_gate;
static bool no_proc;

int setsockopt(int fd, int level, int optname, const void *optval,
               socklen_t optlen) {
  if (no_gate && level == SOL_SOCKET && optname == SO_BINDTOIFINDEX) {
    errno = EPERM;
    return -1;
  }
  return (int)syscall(SYS_setsockopt, fd, level, optname, optval, optlen);
}

int open(const char *path, int flags, ...) {
  va_list more;
  if (no_proc && strncmp(path, "/proc/net/", 10) == 0) {
    errno = EACCES;
    return -1;
  }
  va_start(more, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int open_refused(void **state) {
  no_gate = no_proc = false;
  return open_default(state);
}

/* Clients that connect and speak before, and while, the socket is emptied. */
static uint64_t unbind_with_clients(int *fds, int count) {
  for (int i = 0; i < count; i++) {
    fds[i] = client();
    say(fds[i], GET("/hello"));
  }
  uint64_t from = uv_hrtime();
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  WAIT(f.unbound);
  uint64_t took = uv_hrtime() - from;
  tide_listener_drain(f.listener);
  for (int i = 0; i < count; i++) {
    hear(fds[i], NULL);
    assert_heard("200 OK");
    assert_heard("hello<eof>");
    close(fds[i]);
  }
  WAIT(f.drained);
  return took;
}

static void without_a_gate_it_accepts_for_20_ms(void **state) {
  int fds[20];
  (void)state;
  no_gate = true;
  uint64_t took = unbind_with_clients(fds, 20);
  /* the upper bound only says that it is not the whole second of a gate */
  assert_in_range(took / TIDE_MS, 19, 500);
  assert_int_equal(client(), -1);
}

static void who_connects_before_the_end_of_those_is_served(void **state) {
  (void)state;
  no_gate = true;
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  int fd = client();
  assert_true(fd >= 0); /* no gate: not refused yet */
  say(fd, GET("/hello"));
  WAIT(f.unbound);
  tide_listener_drain(f.listener);
  hear(fd, NULL);
  assert_heard("hello<eof>");
  WAIT(f.drained);
  close(fd);
}

static void without_word_of_handshakes_it_holds_the_gate(void **state) {
  int fds[20];
  (void)state;
  no_proc = true;
  tide_listener_configure(f.listener)->timeouts.accept_drain = 300 * TIDE_MS;
  uint64_t took = unbind_with_clients(fds, 20);
  assert_in_range(took / TIDE_MS, 299, 900);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_refused, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(without_a_gate_it_accepts_for_20_ms),
      TEST(who_connects_before_the_end_of_those_is_served),
      TEST(without_word_of_handshakes_it_holds_the_gate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
