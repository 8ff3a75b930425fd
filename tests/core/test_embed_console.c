/* The console of a host inside another program: only when it asks for it, and
 * nobody can take its sockets over. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "embed_helpers.h"

static char directory[64];
static char path[108];

static int make_directory(void **state) {
  (void)state;
  strcpy(directory, "/tmp/moontide-test-XXXXXX");
  if (mkdtemp(directory) == NULL)
    return -1;
  snprintf(path, sizeof path, "%s/game-%d.sock", directory, (int)getpid());
  return 0;
}

static int remove_directory(void **state) {
  char command[96];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", directory);
  return system(command);
}

static tide_host *host_with(unsigned flags, const char *more) {
  char text[512];
  tide_options options;
  tide_host *host;
  tide_options_init(&options);
  options.flags = flags;
  snprintf(text, sizeof text,
           "local tide = require 'moontide'\n"
           "tide.config { name = 'game', manage = false,\n"
           "  shutdown = { linger = 0 }, control = { dir = '%s' } }\n%s",
           directory, more);
  host = new_host_with(&options);
  load(host, text);
  assert_int_equal(tide_start(host), 0);
  return host;
}

static void step_for(tide_host *host, double seconds) {
  double end = now() + seconds;
  while (now() < end)
    assert_true(tide_step(host, 5) >= 0);
}

static bool is_there(void) {
  struct stat st;
  return stat(path, &st) == 0;
}

static void wait_for_socket(tide_host *host) {
  double end = now() + 10;
  while (!is_there() && now() < end)
    assert_true(tide_step(host, 5) >= 0);
  assert_true(is_there());
}

static int dial(void) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
  assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  return fd;
}

/* What comes until `wanted` is in it, while the host turns. */
static void expect(tide_host *host, int fd, const char *wanted) {
  static char got[65536];
  size_t length = 0;
  double end = now() + 10;
  got[0] = '\0';
  while (strstr(got, wanted) == NULL && now() < end) {
    ssize_t n = read(fd, got + length, sizeof got - 1 - length);
    length += n > 0 ? (size_t)n : 0;
    got[length] = '\0';
    assert_true(tide_step(host, 5) >= 0);
  }
  if (strstr(got, wanted) == NULL)
    fail_msg("waited in vain for %s; what came: %s", wanted, got);
}

static void ask(tide_host *host, int fd, const char *text, const char *wanted) {
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  expect(host, fd, wanted);
}

/* Longer than a start takes before its socket opens. */
static void without_the_flag_there_is_none(void **state) {
  tide_host *host;
  (void)state;
  host = host_with(0, "tide.http.listen { port = 0 }\n");
  step_until(host, TIDE_READY);
  step_for(host, 0.2);
  assert_false(is_there());
  assert_int_equal(stop(host), 0);
}

static void with_it_one_can_look_in(void **state) {
  tide_host *host;
  int fd;
  (void)state;
  host = host_with(TIDE_CONSOLE, "level = 7\n");
  wait_for_socket(host);
  fd = dial();
  ask(host, fd, "{\"id\":1,\"type\":\"hello\",\"want\":\"console\"}\n",
      "\"name\":\"game\"");
  ask(host, fd, "{\"id\":2,\"type\":\"eval\",\"source\":\"level + 1\"}\n",
      "\"text\":\"8\"");
  assert_int_equal(stop(host), 0);
  assert_false(is_there());
  close(fd);
}

static void nobody_takes_its_sockets(void **state) {
  tide_host *host;
  int fd;
  (void)state;
  host = host_with(TIDE_CONSOLE, "tide.http.listen { port = 0 }\n");
  wait_for_socket(host);
  fd = dial();
  ask(host, fd,
      "{\"id\":1,\"type\":\"takeover\",\"protocol\":1,\"name\":\"game\"}\n",
      "\"why\":\"embedded\"");
  assert_int_equal(tide_host_state(host), TIDE_READY);
  assert_int_equal(stop(host), 0);
  close(fd);
}

/* The program that embeds it goes on: nothing of a session is left. */
static void one_that_looks_in_is_no_reason_to_stay(void **state) {
  tide_host *host;
  int before = 0, fd = -1;
  (void)state;
  for (int i = 0; i < 3; i++) {
    host = host_with(TIDE_CONSOLE, "");
    wait_for_socket(host);
    fd = dial();
    ask(host, fd,
        "{\"id\":1,\"type\":\"tail\",\"level\":\"debug\"}\n"
        "{\"id\":2,\"type\":\"eval\",\"source\":\"tide.sleep(20)\"}\n"
        "{\"id\":3,\"type\":\"eval\",\"source\":\"1 + 1\"}\n",
        "\"text\":\"2\"");
    double began = now();
    assert_int_equal(stop(host), 0);
    assert_true(now() - began < 5); /* 0.05 here, 20 would be the sleep's */
    close(fd);
    if (i == 0)
      before = entries_of("/proc/self/fd");
    assert_int_equal(entries_of("/proc/self/fd"), before);
  }
}

#define T(name)                                                                \
  cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

/* A program that goes on without turning the loop: nothing of the host could
 * answer who looks in. */
static void one_that_has_stopped_is_not_found(void **state) {
  tide_host *host = host_with(TIDE_CONSOLE, "");
  char word;
  int fd;
  (void)state;
  wait_for_socket(host);
  fd = dial(); /* and says nothing */
  step_for(host, 0.05);
  assert_int_equal(tide_drain(host, "test"), 0);
  assert_int_equal(tide_run(host), 0);
  assert_false(is_there());
  assert_int_equal(recv(fd, &word, 1, MSG_DONTWAIT), 0); /* closed */
  close(fd);
  tide_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      T(without_the_flag_there_is_none),
      T(with_it_one_can_look_in),
      T(nobody_takes_its_sockets),
      T(one_that_looks_in_is_no_reason_to_stay),
      T(one_that_has_stopped_is_not_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
