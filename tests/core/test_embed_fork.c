/* A child of the program has no part in the host: what it gets, it does not
 * hand to its parent, what it has copies of, it lets go of. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "embed_helpers.h"
#include "fork.h"

static tide_host *host_with(unsigned flags, uv_loop_t *loop,
                            const char *script) {
  tide_options options;
  tide_host *host;
  tide_options_init(&options);
  options.flags = flags;
  options.loop = loop;
  host = new_host_with(&options);
  load(host, script);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  return host;
}

static int status_of(pid_t pid) {
  int status;
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

/* The child says that it is there, and waits. */
static pid_t waiting_child(int *told) {
  int ends[2];
  char byte;
  pid_t pid;
  assert_int_equal(pipe(ends), 0);
  pid = fork();
  if (pid == 0) {
    alarm(20); /* it does not outlive the test, whatever comes of that */
    if (write(ends[1], "x", 1) == 1)
      while (true)
        pause();
    _exit(1);
  }
  close(ends[1]);
  assert_int_equal(read(ends[0], &byte, 1), 1);
  *told = ends[0];
  return pid;
}

/* libuv's handler would write into the pipe that both have: the parent would
 * hear of a signal that it did not get, and never close its handle. */
static void a_signal_of_the_childs_is_the_childs(void **state) {
  static const int numbers[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1};
  tide_host *host = host_with(TIDE_SIGNALS, NULL, PLAIN);
  (void)state;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int told, status;
    pid_t pid = waiting_child(&told);
    assert_int_equal(kill(pid, numbers[i]), 0);
    status = status_of(pid);
    close(told);
    assert_true(WIFSIGNALED(status)); /* as if nobody had a handler there */
    assert_int_equal(WTERMSIG(status), numbers[i]);
  }
  for (int i = 0; i < 20; i++)
    assert_int_not_equal(tide_step(host, 1), TIDE_IS_STOPPED);
  assert_int_equal(tide_host_state(host), TIDE_READY);
  assert_int_equal(kill(getpid(), SIGTERM), 0); /* its own, it hears */
  step_until(host, TIDE_STOPPED);
  tide_free(host); /* and does not wait for what was not its own */
}

/* ---- what a child keeps ---- */

static const char MUCH[] =
    PLAIN "local uv = require 'luv'\n"
          "tide.http.listen { port = 0 }\n"
          "uv.new_timer():start(1000, 0, function() end)\n"
          "local s = uv.new_tcp() s:bind('127.0.0.1', 0)\n"
          "s:listen(1, function() end)\n"
          "uv.new_fs_event():start('/', {}, function() end)\n"
          "uv.new_signal():start('sigwinch', function() end)\n";

/* What a child has more than the program had without a host. */
static int kept_by_a_child(tide_host *host, int before) {
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    tide_after_fork(host);
    tide_after_fork(host);
    tide_free(host);
    _exit(entries_of("/proc/self/fd") - before);
  }
  status = status_of(pid);
  assert_true(WIFEXITED(status));
  return (int8_t)WEXITSTATUS(status);
}

/* libuv's pipe for all loops is there before and after: it makes another one in
 * each child, and there is no way to have it closed. */
static void nothing_but_libuvs_pipe_stays_in_a_child(void **state) {
  unsigned flags = TIDE_SIGNALS | TIDE_INTERRUPT | TIDE_MANAGE | TIDE_CONSOLE;
  int before = entries_of("/proc/self/fd");
  tide_host *host;
  (void)state;
  host = host_with(flags, NULL, MUCH);
  for (int i = 0; i < 20; i++) /* the console comes a little later */
    tide_step(host, 5);
  assert_true(entries_of("/proc/self/fd") > before + 10);
  assert_int_equal(kept_by_a_child(host, before), 0);
  stop(host);
  /* And of one whose host has stopped, or is on the way. */
  host = host_with(flags, NULL, MUCH);
  tide_drain(host, "test");
  step_until(host, TIDE_STOPPED);
  assert_int_equal(kept_by_a_child(host, before), 0);
  tide_free(host);
}

/* What a thread of the host's is opening, and no handle tells of yet: the line
 * beside the loop comes some 50 ms after the start. */
static void nothing_of_what_is_just_being_opened(void **state) {
  int before = entries_of("/proc/self/fd");
  (void)state;
  for (int i = 0; i < 10; i++) {
    tide_host *host = host_with(TIDE_CONSOLE, NULL, PLAIN);
    double begun = now();
    while (now() < begun + 0.03)
      tide_step(host, 5);
    while (now() < begun + 0.08)
      assert_int_equal(kept_by_a_child(host, before), 0);
    assert_true(tide_step(host, 0) >= 0);
    stop(host);
  }
}

/* Neither who opens a file on a busy disk nor a fork waits for the other for
 * ever; and who held it off in the parent is not there in the child. */
static void a_fork_waits_for_a_moment_only(void **state) {
  double began = now();
  pid_t pid;
  int status;
  (void)state;
  assert_true(tide_fork_hold_off());
  assert_false(tide_fork_hold_off());
  pid = fork();
  if (pid == 0)
    _exit(tide_fork_hold_off() ? 0 : 1);
  status = status_of(pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_false(tide_fork_hold_off()); /* the fork has not taken it away */
  assert_true(now() - began < 5);     /* some 20 ms each */
  tide_fork_go_ahead(true);
  assert_true(tide_fork_hold_off());
  tide_fork_go_ahead(true);
}

/* The loop and what the program has on it is the program's to close. */
static void on_a_loop_of_the_programs_only_what_is_the_hosts(void **state) {
  uv_loop_t loop;
  uv_udp_t own;
  uv_os_fd_t fd;
  struct sockaddr_in any;
  tide_host *host;
  int before;
  (void)state;
  assert_int_equal(uv_loop_init(&loop), 0);
  uv_ip4_addr("127.0.0.1", 0, &any);
  uv_udp_init(&loop, &own);
  own.data = NULL;
  assert_int_equal(uv_udp_bind(&own, (struct sockaddr *)&any, 0), 0);
  assert_int_equal(uv_fileno((uv_handle_t *)&own, &fd), 0);
  before = entries_of("/proc/self/fd");
  host = host_with(0, &loop, PLAIN "tide.http.listen { port = 0 }");
  assert_true(entries_of("/proc/self/fd") > before);
  assert_int_equal(kept_by_a_child(host, before), 0);
  stop(host);
  uv_close((uv_handle_t *)&own, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- many, in the middle of everything ---- */

struct storm {
  atomic_bool over;
  atomic_int children;
};

/* As a program does that starts others, from a thread of its own. */
static void *fork_and_exec(void *arg) {
  struct storm *storm = arg;
  while (!atomic_load(&storm->over)) {
    pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/true", "true", (char *)NULL);
      _exit(127);
    }
    if (pid > 0)
      waitpid(pid, NULL, 0);
    atomic_fetch_add(&storm->children, 1);
  }
  return NULL;
}

static void *signal_group(void *arg) {
  struct storm *storm = arg;
  while (!atomic_load(&storm->over)) {
    kill(0, SIGTERM); /* whoever is just being made, too */
    usleep(200);
  }
  return NULL;
}

/* In a process of its own, for its group is signalled. */
static int live_in_a_storm(void) {
  struct storm storm = {0};
  pthread_t threads[3];
  tide_host *host;
  setpgid(0, 0);
  host = host_with(TIDE_SIGNALS | TIDE_INTERRUPT, NULL,
                   PLAIN "tide.shutdown:task('service-stop', 'some time', "
                         "function() tide.sleep(0.3) end)");
  for (int i = 0; i < 3; i++)
    if (pthread_create(&threads[i], NULL, i < 2 ? fork_and_exec : signal_group,
                       &storm) != 0)
      return 1;
  step_until(host, TIDE_STOPPED);
  atomic_store(&storm.over, true);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  if (tide_exit_code(host) != 143 || atomic_load(&storm.children) < 5)
    return tide_exit_code(host);
  alarm(20);
  tide_free(host); /* waits for no signal that a child has had */
  return 0;
}

static void children_that_are_made_while_it_is_terminated(void **state) {
  int status;
  pid_t pid = fork();
  (void)state;
  if (pid == 0) {
    alarm(60);
    _exit(live_in_a_storm());
  }
  status = status_of(pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* What a process opens once, it has opened then. */
static int warm_up(void **state) {
  (void)state;
  stop(host_with(TIDE_SIGNALS, NULL, PLAIN));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_signal_of_the_childs_is_the_childs),
      cmocka_unit_test(nothing_but_libuvs_pipe_stays_in_a_child),
      cmocka_unit_test(nothing_of_what_is_just_being_opened),
      cmocka_unit_test(a_fork_waits_for_a_moment_only),
      cmocka_unit_test(on_a_loop_of_the_programs_only_what_is_the_hosts),
      cmocka_unit_test(children_that_are_made_while_it_is_terminated),
  };
  return cmocka_run_group_tests(tests, warm_up, NULL);
}
