/* From where a program may ask for the drain: before the start, from a
 * callback of the host's, from another thread, from a signal of its own. */
#include <errno.h>
#include <lua.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "embed_helpers.h"

/* Its hook, which awaits, keeps the reason it was given. */
#define SCRIPT                                                                 \
  "local tide = require 'moontide'\n"                                          \
  "tide.config { manage = false, shutdown = { linger = 0 } }\n"                \
  "tide.shutdown:task('service-stop', 'hook', function(reason)\n"              \
  "  tide.sleep(0.01)\n"                                                       \
  "  why = tostring(reason)\n"                                                 \
  "end)\n"

static void ended_well(tide_host *host, const char *reason) {
  lua_State *L = tide_lua(host);
  const char *why;
  assert_int_equal(tide_exit_code(host), 0);
  lua_getglobal(L, "why");
  why = lua_tostring(L, -1);
  assert_true(why != NULL && strstr(why, reason) != NULL);
  tide_free(host);
}

static void ends_well(tide_host *host, const char *reason) {
  step_until(host, TIDE_STOPPED);
  ended_well(host, reason);
}

static void before_the_start(void **state) {
  tide_host *host = new_host();
  (void)state;
  load(host, SCRIPT);
  assert_int_equal(tide_drain(host, "early"), 0);
  assert_int_equal(tide_start(host), 0);
  ends_well(host, "early"); /* the main chunk runs, the pipeline follows */
}

static void drain_now(tide_host *host, void *arg, int status) {
  (void)arg;
  assert_int_equal(status, 0);
  assert_int_equal(tide_drain(host, "posted"), 0);
  assert_int_equal(tide_drain(host, "again"), 0); /* the first one counts */
}

static void from_a_callback(void **state) {
  tide_host *host = started(SCRIPT);
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_post(host, drain_now, NULL), 0);
  ends_well(host, "posted");
}

static void *drain_from_thread(void *arg) {
  return (void *)(intptr_t)tide_drain(arg, "thread");
}

static void from_another_thread(void **state) {
  tide_host *host = started(SCRIPT);
  (void)state;
  step_until(host, TIDE_READY);
  assert_ptr_equal(on_thread(drain_from_thread, host), NULL);
  ends_well(host, "thread");
}

static int self_pipe[2];

static void on_usr2(int number) {
  int saved = errno;
  ssize_t sent = write(self_pipe[1], "!", 1);
  (void)number;
  (void)sent; /* a full pipe has said it already */
  errno = saved;
}

/* The program's own loop: a poll of the host's descriptor and of the pipe. */
static void poll_until_stopped(tide_host *host) {
  struct pollfd fds[] = {{.fd = tide_fd(host), .events = POLLIN},
                         {.fd = self_pipe[0], .events = POLLIN}};
  char byte;
  while (tide_dispatch(host) != TIDE_IS_STOPPED) {
    if (tide_host_state(host) == TIDE_READY)
      assert_int_equal(raise(SIGUSR2), 0);
    if (poll(fds, 2, tide_timeout(host)) <= 0 || !(fds[1].revents & POLLIN))
      continue;
    assert_int_equal(read(self_pipe[0], &byte, 1), 1);
    assert_int_equal(tide_drain(host, "SIGUSR2"), 0);
  }
}

static void from_a_handlers_self_pipe(void **state) {
  struct sigaction action = {.sa_handler = on_usr2}, before;
  tide_host *host;
  (void)state;
  assert_int_equal(pipe(self_pipe), 0);
  assert_int_equal(sigaction(SIGUSR2, &action, &before), 0);
  host = started(SCRIPT);
  poll_until_stopped(host);
  ended_well(host, "SIGUSR2");
  assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
  close(self_pipe[0]);
  close(self_pipe[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(before_the_start),
      cmocka_unit_test(from_a_callback),
      cmocka_unit_test(from_another_thread),
      cmocka_unit_test(from_a_handlers_self_pipe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
