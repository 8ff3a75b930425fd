/* The end of a listening socket: nobody comes in, nobody in its queue is lost.
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "http_drain_helpers.h"

static tide_drain_report report(void) {
  tide_drain_report out;
  tide_listener_report(f.listener, &out);
  return out;
}

static void all_are_answered(const int *fds, int count) {
  for (int i = 0; i < count; i++) {
    hear(fds[i], NULL);
    assert_heard("200 OK");
    assert_heard("Connection: close\r\n");
    assert_heard("hello<eof>");
    close(fds[i]);
  }
}

static void the_queue_is_counted_and_served(void **state) {
  int fds[50];
  (void)state;
  for (int i = 0; i < 50; i++) {
    fds[i] = client();
    say(fds[i], GET("/hello"));
  }
  drain_now();
  all_are_answered(fds, 50);
  WAIT(f.drained);
  assert_int_equal(report().queued, 50);
  assert_int_equal(report().drained, 50);
  assert_int_equal(report().served, 50);
}

static void who_comes_after_the_gate_is_refused(void **state) {
  (void)state;
  tide_listener_unbind(f.listener);
  assert_int_equal(client(), -1);
  assert_int_equal(errno, ECONNREFUSED);
  wait_unbound();
  assert_int_equal(client(), -1);
  assert_int_equal(errno, ECONNREFUSED);
}

static void set_descriptors(rlim_t count) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = count;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Giving one up, as when the listener goes on, would reset a client. */
static void without_a_descriptor_the_queue_waits(void **state) {
  int fds[5];
  struct rlimit before;
  (void)state;
  getrlimit(RLIMIT_NOFILE, &before);
  tide_listener_unbind(f.listener); /* its thread and pipe are there now */
  wait_unbound();
  close_room(state);
  open_default(state);
  for (int i = 0; i < 5; i++) {
    fds[i] = client();
    say(fds[i], GET("/hello"));
  }
  set_descriptors((rlim_t)fds[0]); /* none, for all below it are taken */
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  uint64_t stop = uv_hrtime() + 100000000u;
  while (uv_hrtime() < stop)
    turn();
  assert_false(f.unbound);
  set_descriptors(before.rlim_cur);
  wait_unbound();
  tide_listener_drain(f.listener);
  all_are_answered(fds, 5);
  WAIT(f.drained);
}

static void idle_connections_make_room_for_the_queue(void **state) {
  int idle[5], fds[5];
  struct rlimit before;
  (void)state;
  getrlimit(RLIMIT_NOFILE, &before);
  for (int i = 0; i < 5; i++) {
    idle[i] = client();
    say(idle[i], GET("/hello"));
    hear(idle[i], "hello");
  }
  for (int i = 0; i < 5; i++) {
    fds[i] = client();
    say(fds[i], GET("/hello"));
  }
  set_descriptors((rlim_t)idle[0]);
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  for (int i = 0; i < 5; i++) {
    hear(idle[i], NULL); /* it waits for no drain */
    assert_string_equal(heard, "<eof>");
    close(idle[i]);
  }
  set_descriptors(before.rlim_cur); /* hear() needs none; the loop may */
  wait_unbound();
  tide_listener_drain(f.listener);
  all_are_answered(fds, 5);
  WAIT(f.drained);
  assert_int_equal(report().closed_idle, 5);
}

/* Who asks for a drain that is over is told so, as the one before. */
static void a_drain_that_is_over_is_told_again(void **state) {
  (void)state;
  drain_now();
  WAIT(f.drained);
  f.drained = false;
  tide_listener_drain(f.listener);
  assert_true(f.drained);
}

/* ---- a Unix socket ---------------------------------------------------------
 */

static char directory[] = "/tmp/moontide-unbind-XXXXXX";
static char path[128];

static int open_unix(void **state) {
  tide_listener_options options;
  (void)state;
  memset(directory + sizeof directory - 7, 'X', 6);
  assert_non_null(mkdtemp(directory));
  snprintf(path, sizeof path, "%s/sock", directory);
  tide_listener_options_init(&options);
  options.host = NULL;
  options.path = path;
  open_room(&options);
  become_ready();
  return 0;
}

static int close_unix(void **state) {
  int result = close_room(state);
  unlink(path);
  rmdir(directory);
  return result;
}

static int unix_client(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memcpy(address.sun_path, path, strlen(path) + 1);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

static void a_unix_socket_serves_its_queue_and_refuses_the_rest(void **state) {
  struct stat st;
  int fds[20];
  (void)state;
  for (int i = 0; i < 20; i++) {
    fds[i] = unix_client();
    assert_true(fds[i] >= 0);
    say(fds[i], GET("/hello"));
  }
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  assert_true(f.unbound); /* connecting is one step: nothing is under way */
  assert_int_equal(unix_client(), -1);
  assert_int_not_equal(stat(path, &st), 0);
  tide_listener_drain(f.listener);
  all_are_answered(fds, 20);
  WAIT(f.drained);
  assert_int_equal(report().drained, 20);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_default, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_queue_is_counted_and_served),
      TEST(who_comes_after_the_gate_is_refused),
      TEST(without_a_descriptor_the_queue_waits),
      TEST(idle_connections_make_room_for_the_queue),
      TEST(a_drain_that_is_over_is_told_again),
      cmocka_unit_test_setup_teardown(
          a_unix_socket_serves_its_queue_and_refuses_the_rest, open_unix,
          close_unix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
