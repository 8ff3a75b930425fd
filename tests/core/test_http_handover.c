/* Listening sockets on their way to a successor. The successor is a second
 * listener of the same room, for the socket does not know whose it is. */
#include "http_helpers.h"

#include <sys/stat.h>

static tide_listener *added(const char *host, int port, const char *path,
                            bool v6_only) {
  tide_listener_options options;
  tide_listener_options_init(&options);
  options.name = "next";
  options.host = host;
  options.path = path;
  options.port = port;
  options.v6_only = v6_only;
  tide_listener *listener = tide_listener_add(f.http, &options);
  assert_non_null(listener);
  return listener;
}

/* A second descriptor, as the other process gets one. */
static tide_handover lent(tide_listener *listener) {
  tide_handover handover;
  assert_true(tide_listener_lend(listener, &handover));
  handover.fd = fcntl(handover.fd, F_DUPFD_CLOEXEC, 3);
  assert_true(handover.fd >= 0);
  return handover;
}

static void listens(tide_listener *listener) {
  char error[256];
  assert_int_equal(tide_listener_bind(listener, error, sizeof error), 0);
  assert_int_equal(tide_listener_listen(listener, error, sizeof error), 0);
}

static void an_address_decides_what_fits(void **state) {
  int port = tide_listener_port(f.listener);
  tide_handover handover = lent(f.listener);
  (void)state;
  struct {
    const char *host;
    int port;
    tide_fit fit;
    bool fits;
  } rows[] = {
      {"127.0.0.1", port, TIDE_FIT_EXACT, true},
      {"localhost", port, TIDE_FIT_EXACT, true},
      {"127.0.0.1", port, TIDE_FIT_ADDRESS, true},
      {"127.0.0.1", 0, TIDE_FIT_ADDRESS, true},
      {"127.0.0.1", 0, TIDE_FIT_EXACT, false},
      {"127.0.0.1", port + 1, TIDE_FIT_ADDRESS, false},
      {"127.0.0.2", port, TIDE_FIT_ADDRESS, false},
      {"0.0.0.0", port, TIDE_FIT_ADDRESS, false},
      {"::", port, TIDE_FIT_ADDRESS, false},
      {"no.such.name.invalid", port, TIDE_FIT_ADDRESS, false},
      {"127.0.0.2", port + 1, TIDE_FIT_NAME, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tide_listener *next = added(rows[i].host, rows[i].port, NULL, false);
    if (tide_listener_adopt(next, &handover, rows[i].fit) != rows[i].fits)
      fail_msg("row %zu", i);
  }
  assert_false(tide_listener_adopt(added(NULL, 0, "/tmp/x", false), &handover,
                                   TIDE_FIT_EXACT));
  close(handover.fd);
}

static void clients_of_ipv4_are_part_of_the_address(void **state) {
  char error[256];
  (void)state;
  tide_listener *both = added("::", 0, NULL, false);
  if (tide_listener_bind(both, error, sizeof error) != 0)
    skip(); /* no IPv6 here */
  listens(both);
  int port = tide_listener_port(both);
  tide_handover handover = lent(both);
  assert_false(tide_listener_adopt(added("::", port, NULL, true), &handover,
                                   TIDE_FIT_EXACT));
  assert_true(tide_listener_adopt(added("::", port, NULL, false), &handover,
                                  TIDE_FIT_EXACT));
  close(handover.fd);
}

static void what_does_not_listen_does_not_fit(void **state) {
  tide_handover handover = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
  (void)state;
  assert_false(tide_listener_adopt(added("127.0.0.1", 0, NULL, false),
                                   &handover, TIDE_FIT_NAME));
  close(handover.fd);
  handover.fd = -1;
  assert_false(tide_listener_adopt(added("127.0.0.1", 0, NULL, false),
                                   &handover, TIDE_FIT_NAME));
}

static void only_what_accepts_is_lent(void **state) {
  char error[256];
  tide_handover handover;
  (void)state;
  tide_listener *next = added("127.0.0.1", 0, NULL, false);
  assert_false(tide_listener_lend(next, &handover));
  assert_int_equal(tide_listener_bind(next, error, sizeof error), 0);
  assert_false(tide_listener_lend(next, &handover));
  assert_int_equal(tide_listener_listen(next, error, sizeof error), 0);
  assert_true(tide_listener_lend(next, &handover));
  tide_listener_unbind(next);
  assert_false(tide_listener_lend(next, &handover));
}

static void the_queue_waits_while_it_is_held(void **state) {
  (void)state;
  tide_listener_hold(f.listener, true);
  int fd = client();
  assert_true(fd >= 0);
  say(fd, GET("/hello"));
  for (int i = 0; i < 50; i++)
    turn();
  assert_int_equal(f.started, 0);
  tide_listener_hold(f.listener, false);
  hear(fd, "hello");
  close(fd);
}

/* From hold to the end as the two processes do it. */
static void a_client_in_between_is_the_successors(void **state) {
  tide_handover handover = lent(f.listener);
  (void)state;
  tide_listener *next =
      added("127.0.0.1", tide_listener_port(f.listener), NULL, false);
  assert_true(tide_listener_adopt(next, &handover, TIDE_FIT_EXACT));
  tide_listener_hold(f.listener, true);
  tide_listener_disown(f.listener, true);
  int fd = client();
  say(fd, GET("/nope"));
  listens(next);
  tide_listener_unbind(f.listener);
  assert_true(f.unbound);
  f.unbound = false;
  tide_listener_unbind(f.listener); /* whoever waits for it is told again */
  assert_true(f.unbound);
  hear(fd, "404 Not Found");
  close(fd);
  fd = client();
  assert_true(fd >= 0); /* neither gated nor closed */
  close(fd);
}

static void a_successor_gates_what_is_its_own(void **state) {
  tide_handover handover = lent(f.listener);
  (void)state;
  tide_listener *next =
      added("127.0.0.1", tide_listener_port(f.listener), NULL, false);
  assert_true(tide_listener_adopt(next, &handover, TIDE_FIT_EXACT));
  listens(next);
  tide_listener_disown(f.listener, true);
  tide_listener_unbind(f.listener);
  tide_listener_unbind(next);
  assert_int_equal(client(), -1);
}

static void one_that_is_taken_back_is_emptied_as_before(void **state) {
  (void)state;
  int other = lent(f.listener).fd;
  tide_listener_disown(f.listener, true);
  tide_listener_disown(f.listener, false);
  tide_listener_unbind(f.listener);
  assert_int_equal(client(), -1); /* gated, though somebody has it as well */
  close(other);
}

static void probes_go_on_being_welcome(void **state) {
  (void)state;
  int fd = client();
  turn();
  tide_listener_disown(f.listener, true);
  tide_listener_unbind(f.listener);
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  say(fd, GET("/health/ready"));
  hear(fd, NULL);
  assert_heard("200 OK");
  assert_heard("Connection: close\r\n");
  assert_heard("\"successor\":true");
  close(fd);
}

static void a_path_goes_to_the_successor_with_its_socket(void **state) {
  char path[] = "/tmp/moontide-test-XXXXXX";
  char error[256];
  struct stat st;
  (void)state;
  close(mkstemp(path));
  unlink(path);
  tide_listener *old = added(NULL, 0, path, false);
  listens(old);
  tide_handover handover = lent(old);
  tide_listener *next = added(NULL, 0, path, false);
  handover.inode++; /* the file is another one by now */
  assert_false(tide_listener_adopt(next, &handover, TIDE_FIT_EXACT));
  handover.inode--;
  assert_true(tide_listener_adopt(next, &handover, TIDE_FIT_EXACT));
  assert_int_equal(tide_listener_bind(next, error, sizeof error), 0);
  tide_listener_disown(old, true);
  tide_listener_unbind(old);
  assert_int_equal(stat(path, &st), 0);
  tide_listener_shut(next);
  assert_int_not_equal(stat(path, &st), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_default, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(an_address_decides_what_fits),
      T(clients_of_ipv4_are_part_of_the_address),
      T(what_does_not_listen_does_not_fit),
      T(only_what_accepts_is_lent),
      T(the_queue_waits_while_it_is_held),
      T(a_client_in_between_is_the_successors),
      T(a_successor_gates_what_is_its_own),
      T(one_that_is_taken_back_is_emptied_as_before),
      T(probes_go_on_being_welcome),
      T(a_path_goes_to_the_successor_with_its_socket),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
