/* The fork-style init, as a subreaper: what PID 1 does, without being it. (The
 * real PID 1 is in tests/e2e.) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* It belongs to the program, not to the library. */
#include "cli/init.c" /* NOLINT(bugprone-suspicious-include) */

static int to_test[2]; /* what the program under the init has to say */

/* Runs `program` under an init of its own; returns the init's pid. */
static pid_t start(const char *mode, int (*program)(void)) {
  assert_int_equal(pipe(to_test), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    close(to_test[0]);
    _exit(tide_init_maybe(mode) == 0 ? program() : 99);
  }
  close(to_test[1]);
  return pid;
}

/* The init's exit code; it must have ended by itself. */
static int finish(pid_t init) {
  int status;

  assert_int_equal(waitpid(init, &status, 0), init);
  assert_true(WIFEXITED(status));
  close(to_test[0]);
  return WEXITSTATUS(status);
}

static int say(int number) {
  return write(to_test[1], &number, sizeof number) == sizeof number ? 0 : 98;
}

static int hear(void) {
  int number = -1;
  struct pollfd ready = {.fd = to_test[0], .events = POLLIN};

  assert_int_equal(poll(&ready, 1, 10000), 1);
  assert_int_equal(read(to_test[0], &number, sizeof number), sizeof number);
  return number;
}

static int exit_with_7(void) {
  return 7;
}

static void the_exit_code_passes(void **state) {
  (void)state;
  assert_int_equal(finish(start("on", exit_with_7)), 7);
}

static int die_of_kill(void) {
  raise(SIGKILL);
  return 0;
}

static void a_signal_s_end_is_128_and_its_number(void **state) {
  (void)state;
  assert_int_equal(finish(start("on", die_of_kill)), 128 + SIGKILL);
}

static int tell_pids(void) {
  say(getpid());
  say(getppid());
  return 0;
}

static void without_need_nothing_is_forked(void **state) {
  (void)state;
  const char *const modes[] = {"off", "auto"};

  for (size_t i = 0; i < 2; i++) {
    pid_t pid = start(modes[i], tell_pids);
    assert_int_equal(hear(), pid);
    assert_int_equal(hear(), getpid());
    assert_int_equal(finish(pid), 0);
  }
}

static int tell_signals(void) {
  sigset_t set;
  siginfo_t info;

  sigfillset(&set);
  sigprocmask(SIG_SETMASK, &set, NULL);
  say(0);
  for (;;) {
    int number = sigwaitinfo(&set, &info);
    say(number);
    say(info.si_pid);
    if (number == SIGTERM)
      return 3;
  }
}

static void signals_are_forwarded_with_their_sender(void **state) {
  (void)state;
  static const int numbers[] = {SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1, SIGUSR2,
                                SIGCONT, SIGWINCH, SIGALRM, SIGTERM};
  pid_t init = start("on", tell_signals);

  assert_int_equal(hear(), 0);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    kill(init, numbers[i]);
    assert_int_equal(hear(), numbers[i]);
    assert_int_equal(hear(), getpid());
  }
  assert_int_equal(finish(init), 3);
}

/* Gone from the process table, zombies too. */
static bool is_gone(pid_t pid) {
  return kill(pid, 0) != 0 && errno == ESRCH;
}

static int leave_orphans(void) {
  int line[2];
  pid_t orphan = 0;

  if (pipe(line) != 0)
    return 97;
  for (int i = 0; i < 20; i++) {
    pid_t middle = fork();
    if (middle == 0) {
      pid_t parent = getpid();
      pid_t child = fork();
      if (child == 0) {
        while (getppid() == parent)
          sched_yield(); /* until it is an orphan */
        _exit(0);
      }
      _exit(write(line[1], &child, sizeof child) == sizeof child ? 0 : 1);
    }
    waitpid(middle, NULL, 0);
    if (read(line[0], &orphan, sizeof orphan) != sizeof orphan)
      return 96;
    for (int tries = 0; !is_gone(orphan); tries++) {
      if (tries == 10000)
        return 95; /* a zombie */
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
  }
  return 0;
}

static void orphans_are_reaped_while_the_program_runs(void **state) {
  (void)state;
  assert_int_equal(finish(start("on", leave_orphans)), 0);
}

static int tell_mask(void) {
  sigset_t mask;

  sigprocmask(SIG_SETMASK, NULL, &mask);
  for (int number = 1; number < 32; number++)
    say(sigismember(&mask, number));
  return 0;
}

static void the_program_gets_the_mask_it_came_with(void **state) {
  (void)state;
  sigset_t mask, before;

  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  sigprocmask(SIG_SETMASK, &mask, &before);
  pid_t init = start("on", tell_mask);
  for (int number = 1; number < 32; number++)
    assert_int_equal(hear(), number == SIGUSR2);
  sigprocmask(SIG_SETMASK, &before, NULL);
  assert_int_equal(finish(init), 0);
}

static int close_and_wait(void) {
  close(to_test[1]);
  pause();
  return 0;
}

static void the_init_holds_no_file_open(void **state) {
  (void)state;
  pid_t init = start("on", close_and_wait);
  struct pollfd ready = {.fd = to_test[0], .events = POLLIN};

  assert_int_equal(poll(&ready, 1, 10000), 1);
  assert_true(ready.revents & POLLHUP);
  kill(init, SIGTERM);
  assert_int_equal(finish(init), 128 + SIGTERM);
}

static int tell_and_wait(void) {
  say(getpid());
  say(getpgrp());
  pause();
  return 0;
}

static void the_program_does_not_outlive_its_init(void **state) {
  (void)state;
  pid_t init = start("on", tell_and_wait);
  int program = hear();
  int status;

  assert_int_equal(hear(), program); /* a group of its own */
  kill(init, SIGKILL);
  assert_int_equal(waitpid(init, &status, 0), init);
  struct pollfd ready = {.fd = to_test[0], .events = POLLIN};
  assert_int_equal(poll(&ready, 1, 10000), 1);
  assert_true(ready.revents & POLLHUP);
  close(to_test[0]);
}

static bool is_our_pid(const char *value) {
  return value != NULL && strtol(value, NULL, 10) == getpid();
}

static int tell_addressee(void) {
  say(is_our_pid(getenv("LISTEN_PID")));
  say(is_our_pid(getenv("WATCHDOG_PID")));
  return 0;
}

static int be_addressed(void) {
  char pid[16];
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  setenv("LISTEN_PID", pid, 1);
  setenv("WATCHDOG_PID", "1", 1);
  return tide_init_maybe("on") == 0 ? tell_addressee() : 94;
}

static void sockets_for_the_init_are_the_program_s(void **state) {
  (void)state;
  pid_t pid = start("off", be_addressed);

  assert_int_equal(hear(), 1);
  assert_int_equal(hear(), 0);
  assert_int_equal(finish(pid), 0);
}

static void the_mode_is_found_before_the_script(void **state) {
  (void)state;
  static const struct {
    const char *words[5];
    const char *mode;
  } cases[] = {
      {{"moontide", "app.lua"}, "auto"},
      {{"moontide", "--init=on", "app.lua"}, "on"},
      {{"moontide", "run", "--init", "off", "app.lua"}, "off"},
      {{"moontide", "run", "app.lua", "--init=on"}, "auto"},
      {{"moontide", "run", "--", "--init=on"}, "auto"},
      {{"moontide", "--name", "x", "--init=on", "app.lua"}, "on"},
      {{"moontide", "--init"}, "auto"},
      {{"moontide", "--initial=on"}, "auto"},
      {{"moontide"}, "auto"},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int argc = 0;
    while (argc < 5 && cases[i].words[argc] != NULL)
      argc++;
    assert_string_equal(tide_init_mode(argc, (char **)cases[i].words),
                        cases[i].mode);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_exit_code_passes),
      cmocka_unit_test(a_signal_s_end_is_128_and_its_number),
      cmocka_unit_test(without_need_nothing_is_forked),
      cmocka_unit_test(signals_are_forwarded_with_their_sender),
      cmocka_unit_test(orphans_are_reaped_while_the_program_runs),
      cmocka_unit_test(the_program_gets_the_mask_it_came_with),
      cmocka_unit_test(the_init_holds_no_file_open),
      cmocka_unit_test(the_program_does_not_outlive_its_init),
      cmocka_unit_test(sockets_for_the_init_are_the_program_s),
      cmocka_unit_test(the_mode_is_found_before_the_script),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
