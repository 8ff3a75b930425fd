/* What probes are told in each state, by checks fresh and stale. */
#include "http_helpers.h"

static const char *ask(const char *text, const char *until) {
  int fd = client();
  say(fd, text);
  hear(fd, until);
  close(fd);
  return heard;
}

static int open_starting(void **state) {
  tide_listener_options options;
  (void)state;
  tide_listener_options_init(&options);
  options.health = true;
  open_room(&options);
  return 0;
}

static void set(const char *name, bool ok, bool critical, uint64_t expires) {
  tide_health_result result = {.ok = ok,
                               .critical = critical,
                               .extra = "\"latencyMs\":12",
                               .expires_at = expires};
  assert_int_equal(tide_health_set(tide_http_health(f.http), name, &result), 0);
}

static void starting_is_alive_and_not_ready(void **state) {
  (void)state;
  ask(GET("/health"), "}");
  assert_heard("200 OK");
  assert_heard("{\"status\":\"alive\"}");
  ask(GET("/health/live"), "}");
  assert_heard("200 OK");
  ask(GET("/health/startup"), "}");
  assert_heard("HTTP/1.1 503");
  ask(GET("/health/ready"), "}}");
  assert_heard("HTTP/1.1 503");
  assert_heard("Retry-After: 1\r\n");
  assert_heard("\"state\":\"starting\",\"uptimeSec\"");
}

static void starting_answers_503_to_everything_else(void **state) {
  (void)state;
  ask(GET("/hello"), NULL);
  assert_heard("HTTP/1.1 503");
  assert_heard("Retry-After: 1\r\n");
  assert_heard("Connection: close\r\n");
  ask(GET("/nope"), NULL);
  assert_heard("HTTP/1.1 503");
  assert_int_equal(f.started, 0);
}

static void ready_follows_the_state_in_the_same_turn(void **state) {
  (void)state;
  become_ready();
  ask(GET("/health/ready"), "}}");
  assert_heard("200 OK");
  assert_heard("\"status\":\"ready\"");
  ask(GET("/health/startup"), "}");
  assert_heard("200 OK");
  int fd = client();
  say(fd, GET("/health/ready"));
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 503");
  assert_heard("\"state\":\"draining\",\"phase\":\"linger\"");
  assert_heard("Retry-After: 1\r\n");
  assert_heard("Connection: close\r\n");
  close(fd);
  ask(GET("/health/live"), NULL);
  assert_heard("200 OK");
  assert_heard("Connection: close\r\n");
}

static void checks_decide_when_the_state_allows(void **state) {
  (void)state;
  become_ready();
  set("db", true, true, 0);
  set("mail", false, false, 0);
  ask(GET("/health/ready"), "}}");
  assert_heard("200 OK");
  assert_heard("\"status\":\"degraded\"");
  assert_heard("\"db\":{\"ok\":true,\"latencyMs\":12}");
  assert_heard("\"mail\":{\"ok\":false,\"critical\":false,\"latencyMs\":12}");
  set("db", false, true, 0);
  ask(GET("/health/ready"), "}}");
  assert_heard("HTTP/1.1 503");
  assert_heard("\"status\":\"not_ready\"");
  tide_health_remove(tide_http_health(f.http), "db");
  tide_health_remove(tide_http_health(f.http), "mail");
  ask(GET("/health/ready"), "}}");
  assert_heard("\"checks\":{}");
}

static void an_old_result_is_stale(void **state) {
  (void)state;
  become_ready();
  tide_clock_make_virtual(&f.clock);
  set("db", true, true, tide_clock_now(&f.clock) + TIDE_SEC);
  ask(GET("/health/ready"), "}}");
  assert_heard("200 OK");
  tide_clock_advance(&f.clock, 2 * TIDE_SEC);
  ask(GET("/health/ready"), "}}");
  assert_heard("HTTP/1.1 503");
  assert_heard("\"ok\":false,\"stale\":true");
}

static void names_are_escaped(void **state) {
  (void)state;
  become_ready();
  set("a\"b\\c\n", true, true, 0);
  ask(GET("/health/ready"), "}}");
  assert_heard("\"a\\\"b\\\\c\\u000a\":");
}

static void many_checks_fit(void **state) {
  char name[64];
  (void)state;
  become_ready();
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "a-check-with-a-rather-long-name-%d", i);
    set(name, true, true, 0);
  }
  ask(GET("/health/ready"), "}}");
  assert_heard("-199\"");
}

static void probes_are_not_in_flight(void **state) {
  (void)state;
  become_ready();
  tide_http_set_max_in_flight(f.http, 0);
  ask(GET("/health/ready"), "}}");
  assert_heard("200 OK");
  ask(GET("/hello"), "Unavailable");
  assert_heard("HTTP/1.1 503");
  assert_not_heard("Connection: close");
}

static void another_method_is_not_allowed(void **state) {
  (void)state;
  become_ready();
  ask("POST /health HTTP/1.1\r\nHost: a\r\n\r\n", "Allowed");
  assert_heard("HTTP/1.1 405");
  assert_heard("Allow: GET, HEAD\r\n");
  ask("OPTIONS /health/ready HTTP/1.1\r\nHost: a\r\n\r\n", "Allowed");
  assert_heard("HTTP/1.1 405");
  ask("POST /healthy HTTP/1.1\r\nHost: a\r\n\r\n", "Found");
  assert_heard("HTTP/1.1 404");
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_starting, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(starting_is_alive_and_not_ready),
      TEST(starting_answers_503_to_everything_else),
      TEST(ready_follows_the_state_in_the_same_turn),
      TEST(checks_decide_when_the_state_allows),
      TEST(an_old_result_is_stale),
      TEST(names_are_escaped),
      TEST(many_checks_fit),
      TEST(probes_are_not_in_flight),
      TEST(another_method_is_not_allowed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
