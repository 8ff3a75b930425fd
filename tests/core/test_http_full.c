/* A full house: more connections than there may be, or than there are file
 * descriptors for. Who is inside is served, probes are answered, and the next
 * ones come in as soon as somebody leaves. */
#include "http_time.h"

#include <sys/resource.h>

enum { MOST = 4, EXTRA = 64, KEPT = 8 };

static tide_listener *manage;
static int inside[MOST];

static tide_http_stats stats_now(void) {
  tide_http_stats stats;
  tide_http_get_stats(f.http, &stats);
  return stats;
}

/* As many connections as there may be, each of which has been served. */
static void fill(void) {
  tide_http_set_max_connections(f.http, MOST);
  for (int i = 0; i < MOST; i++) {
    inside[i] = client();
    say(inside[i], GET("/hello"));
    hear(inside[i], "hello");
  }
}

static void leave(int *fds, int count) {
  for (int i = 0; i < count; i++)
    close(fds[i]);
}

static void assert_served(int fd) {
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("HTTP/1.1 200 OK");
}

static int open_plain(void **state) {
  tide_listener_options options;
  (void)state;
  tide_listener_options_init(&options);
  open_room(&options);
  become_ready();
  return 0;
}

static int open_managed(void **state) {
  char error[256];
  tide_listener_options options;
  int failed = open_virtual(state);
  tide_listener_options_init(&options);
  options.name = "manage";
  options.manage = options.health = true;
  manage = tide_listener_add(f.http, &options);
  assert_non_null(manage);
  assert_int_equal(tide_listener_bind(manage, error, sizeof error), 0);
  assert_int_equal(tide_listener_listen(manage, error, sizeof error), 0);
  return failed;
}

/* ---- connections -----------------------------------------------------------
 */

static void the_next_ones_are_told_503(void **state) {
  (void)state;
  fill();
  int extra = client();
  hear(extra, NULL); /* before it has said anything */
  assert_heard("HTTP/1.1 503 Service Unavailable\r\n");
  assert_heard("Date: ");
  assert_heard("Retry-After: 1\r\n");
  assert_heard("Content-Length: 19\r\n");
  assert_heard("Connection: close\r\n");
  assert_heard("<eof>");
  close(extra);
  for (int i = 0; i < MOST; i++)
    assert_served(inside[i]);
  assert_int_equal(stats_now().refused, 1);
  close(inside[0]);
  settle();
  inside[0] = client();
  assert_served(inside[0]);
  leave(inside, MOST);
}

/* They are read away: a reset would destroy what they are told. */
static void what_they_send_meanwhile_does_no_harm(void **state) {
  (void)state;
  fill();
  for (int i = 0; i < 10; i++) {
    int extra = client();
    say(extra, GET("/hello"));
    turn();
    send(extra, "more", 4, MSG_NOSIGNAL);
    hear(extra, NULL);
    assert_heard("HTTP/1.1 503");
    assert_heard("<eof>");
    close(extra);
  }
  leave(inside, MOST);
}

static void more_than_that_wait_in_the_queue(void **state) {
  int fds[EXTRA + 20];
  (void)state;
  fill();
  for (int i = 0; i < EXTRA + 20; i++)
    fds[i] = client();
  settle();
  assert_int_equal(stats_now().connections, MOST + EXTRA);
  assert_int_equal(stats_now().accepted, MOST + EXTRA);
  /* One of those that were told so goes: one more is told. */
  close(fds[0]);
  WAIT(stats_now().accepted == MOST + EXTRA + 1);
  settle();
  assert_int_equal(stats_now().accepted, MOST + EXTRA + 1);
  /* All of them go, and one of those inside: the next one is served. */
  leave(fds + 1, EXTRA + 19);
  close(inside[0]);
  WAIT(stats_now().accepted == MOST + EXTRA + 20);
  WAIT(stats_now().connections == MOST - 1);
  inside[0] = client();
  assert_served(inside[0]);
  leave(inside, MOST);
}

/* Again and again: a pause that is forgotten would end it. */
static void each_storm_is_followed_by_service(void **state) {
  int fds[EXTRA + 20];
  (void)state;
  for (int round = 0; round < 20; round++) {
    fill();
    for (int i = 0; i < EXTRA + 20; i++)
      fds[i] = client();
    settle();
    leave(fds, EXTRA + 20);
    leave(inside, MOST);
    WAIT(stats_now().connections == 0);
  }
}

/* ---- probes ----------------------------------------------------------------
 */

static void a_probe_is_answered_on_the_full_listener(void **state) {
  (void)state;
  fill();
  for (int i = 0; i < 3 * KEPT; i++) {
    int probe = client();
    say(probe, GET("/health/ready"));
    hear(probe, NULL);
    assert_heard("HTTP/1.1 200 OK");
    assert_heard("Connection: close\r\n");
    assert_heard("<eof>");
    close(probe);
    int other = client();
    say(other, GET("/hello"));
    hear(other, NULL);
    assert_heard("HTTP/1.1 503");
    assert_heard("Retry-After: 1\r\n");
    close(other);
  }
  leave(inside, MOST);
}

/* Those that take the places of probes and say nothing lose them. */
static void silent_ones_do_not_keep_probes_out(void **state) {
  int silent[KEPT];
  (void)state;
  fill();
  for (int i = 0; i < KEPT; i++)
    silent[i] = client();
  settle();
  int probe = client();
  hear(probe, NULL);
  assert_heard("HTTP/1.1 503");
  close(probe);
  pass(5250 * TIDE_MS);
  hear(silent[0], NULL);
  assert_string_equal(heard, "<eof>");
  leave(silent, KEPT);
  settle();
  probe = client();
  say(probe, GET("/health"));
  hear(probe, NULL);
  assert_heard("HTTP/1.1 200 OK");
  close(probe);
  leave(inside, MOST);
}

static void the_management_listener_has_its_own_places(void **state) {
  int extra[EXTRA];
  (void)state;
  fill();
  for (int i = 0; i < EXTRA; i++)
    extra[i] = client();
  settle();
  for (int i = 0; i < 20; i++) {
    int probe = client_of(manage);
    say(probe, GET("/health/ready"));
    hear(probe, "checks");
    assert_heard("HTTP/1.1 200 OK");
    close(probe);
  }
  leave(extra, EXTRA);
  leave(inside, MOST);
}

static void
those_who_crowd_the_management_listener_crowd_only_that(void **state) {
  enum { CROWD = KEPT + EXTRA + 20 };
  int fds[CROWD];
  (void)state;
  fill();
  for (int i = 0; i < CROWD; i++)
    fds[i] = client_of(manage);
  settle();
  for (int i = 0; i < MOST; i++)
    assert_served(inside[i]);
  close(inside[0]);
  settle();
  inside[0] = client();
  assert_served(inside[0]);
  leave(fds, CROWD);
  settle();
  int probe = client_of(manage);
  say(probe, GET("/health"));
  hear(probe, "alive");
  assert_heard("HTTP/1.1 200 OK");
  close(probe);
  leave(inside, MOST);
}

static void probes_do_not_count_as_requests_in_flight(void **state) {
  int busy = client();
  int probe = client();
  (void)state;
  tide_http_set_max_in_flight(f.http, 1);
  say(busy, GET("/later"));
  WAIT(held() != NULL);
  say(probe, GET("/health/ready"));
  hear(probe, "checks");
  assert_heard("HTTP/1.1 200 OK");
  say(probe, GET("/hello"));
  hear(probe, "Unavailable");
  assert_heard("HTTP/1.1 503");
  close(busy);
  close(probe);
}

/* ---- file descriptors ------------------------------------------------------
 */

static struct rlimit before;

/* Leaves the process so many descriptors beyond those it has. */
static void leave_descriptors(int count) {
  int fd = dup(0);
  struct rlimit tight;
  close(fd);
  getrlimit(RLIMIT_NOFILE, &before);
  tight = before;
  tight.rlim_cur = (rlim_t)(fd + count);
  setrlimit(RLIMIT_NOFILE, &tight);
}

static void free_descriptors(void) {
  setrlimit(RLIMIT_NOFILE, &before);
}

static void no_descriptor_left_is_survived(void **state) {
  int fds[64], opened = 0;
  int kept = client();
  (void)state;
  assert_served(kept);
  leave_descriptors(20);
  while (opened < 64 && (fds[opened] = client()) >= 0)
    opened++;
  settle();
  assert_true(opened > 15);
  assert_served(kept);
  leave(fds, opened);
  free_descriptors();
  pass(100 * TIDE_MS);
  int fd = client();
  assert_served(fd);
  close(fd);
  close(kept);
}

/* The client's own descriptor is there already; the server's is not. */
static void a_probe_gets_the_last_descriptor(void **state) {
  int probe = client_of(manage);
  int other = client();
  (void)state;
  leave_descriptors(0);
  say(probe, GET("/health/ready"));
  hear(probe, NULL);
  assert_heard("HTTP/1.1 200 OK");
  assert_heard("Connection: close\r\n");
  close(probe);
  pass(200 * TIDE_MS);
  hear(other, NULL); /* its turn came with the next try */
  assert_heard("HTTP/1.1 503");
  close(other);
  free_descriptors();
  pass(200 * TIDE_MS);
  other = client();
  assert_served(other);
  close(other);
}

/* While accepting pauses, the loop has nothing to do. */
static void a_full_table_does_not_spin_the_loop(void **state) {
  int waiting[8];
  (void)state;
  for (int i = 0; i < 8; i++)
    waiting[i] = client();
  leave_descriptors(0);
  settle();
  uint64_t accepted = stats_now().refused + stats_now().accepted;
  for (int i = 0; i < 500; i++)
    turn();
  assert_int_equal(stats_now().refused + stats_now().accepted, accepted);
  assert_true(accepted <= 1);
  free_descriptors();
  pass(100 * TIDE_MS);
  for (int i = 1; i < 8; i++) {
    assert_served(waiting[i]);
    close(waiting[i]);
  }
  close(waiting[0]);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_managed, close_room)
#define PLAIN(name)                                                            \
  cmocka_unit_test_setup_teardown(name, open_plain, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAIN(the_next_ones_are_told_503),
      PLAIN(what_they_send_meanwhile_does_no_harm),
      PLAIN(more_than_that_wait_in_the_queue),
      PLAIN(each_storm_is_followed_by_service),
      TEST(a_probe_is_answered_on_the_full_listener),
      TEST(silent_ones_do_not_keep_probes_out),
      TEST(the_management_listener_has_its_own_places),
      TEST(those_who_crowd_the_management_listener_crowd_only_that),
      TEST(probes_do_not_count_as_requests_in_flight),
      TEST(no_descriptor_left_is_survived),
      TEST(a_probe_gets_the_last_descriptor),
      TEST(a_full_table_does_not_spin_the_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
