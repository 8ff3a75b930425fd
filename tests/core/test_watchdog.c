/* The thread outside the loop: totals, stop signals, and the dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "interrupt.h"
#include "watchdog.h"

/* ---- a child that is expected to be ended ----------------------------- */

typedef struct ending {
  int status;         /* of waitpid */
  uint64_t took;      /* from fork to its end */
  char output[65536]; /* what it wrote to fd 2 */
} ending;

typedef void (*child_fn)(tide_watchdog *watchdog);

static void child(int fd, tide_interrupt *interrupt, child_fn fn) {
  tide_watchdog_options options = {.name = "dumped", .interrupt = interrupt};
  tide_watchdog *watchdog;
  dup2(fd, STDERR_FILENO);
  if (tide_watchdog_start(&watchdog, &options) != 0)
    _exit(99);
  tide_watchdog_set_format(watchdog, TIDE_LOG_LOGFMT);
  fn(watchdog);
  for (;;)
    pause();
}

static void run_child(child_fn fn, ending *end, bool read_output) {
  uint64_t began = tide_clock_mono();
  size_t length = 0;
  ssize_t got;
  int fds[2];
  pid_t pid;
  assert_int_equal(pipe(fds), 0);
  fflush(NULL);
  pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    close(fds[0]);
    child(fds[1], NULL, fn);
  }
  close(fds[1]);
  while (read_output && length < sizeof end->output - 1 &&
         (got = read(fds[0], end->output + length,
                     sizeof end->output - 1 - length)) > 0)
    length += (size_t)got;
  end->output[length] = '\0';
  assert_int_equal(waitpid(pid, &end->status, 0), pid);
  end->took = tide_clock_mono() - began;
  close(fds[0]);
}

static void assert_ended(const ending *end, uint64_t after) {
  assert_true(WIFEXITED(end->status));
  assert_int_equal(WEXITSTATUS(end->status), 1);
  assert_true(end->took >= after);
  assert_true(end->took < after + 2 * TIDE_SEC); /* it would be for ever */
}

static void assert_written(const ending *end, const char *text) {
  if (strstr(end->output, text) == NULL)
    fail_msg("\"%s\" is not in:\n%s", text, end->output);
}

static unsigned occurrences(const char *text, const char *what) {
  unsigned count = 0;
  while ((text = strstr(text, what)) != NULL) {
    count++;
    text += strlen(what);
  }
  return count;
}

/* ---- totals ----------------------------------------------------------- */

static void two_entries(tide_watchdog *watchdog) {
  int gone;
  tide_watchdog_begin(watchdog, "service-stop/worker:outbox", "app.lua:12");
  gone = tide_watchdog_begin(watchdog, "over", "app.lua:1");
  tide_watchdog_begin(watchdog, "with \"quotes\"\n and a line", NULL);
  tide_watchdog_end(watchdog, gone);
  tide_watchdog_phase(watchdog, "service-stop");
  tide_watchdog_total(watchdog, TIDE_TOTAL_SHUTDOWN,
                      tide_clock_mono() + 50 * TIDE_MS);
}

static void a_total_writes_what_runs_and_ends(void **state) {
  ending end;
  (void)state;
  run_child(two_entries, &end, true);
  assert_ended(&end, 50 * TIDE_MS);
  assert_written(&end, "level=error component=watchdog msg=\"the shutdown "
                       "total has passed; ending the process\" name=dumped "
                       "phase=service-stop phase_ms=");
  assert_written(&end, "msg=\"still running\" what=service-stop/worker:outbox "
                       "site=app.lua:12 age_ms=");
  assert_written(&end, "what=\"with \\\"quotes\\\"\\n and a line\" age_ms=");
  assert_null(strstr(end.output, "what=over"));
  assert_int_equal(occurrences(end.output, "\n"), 3);
}

static void seventy_entries(tide_watchdog *watchdog) {
  char what[32];
  int i;
  for (i = 0; i < 70; i++) {
    snprintf(what, sizeof what, "task-%d", i);
    tide_watchdog_begin(watchdog, what, "app.lua:1");
  }
  tide_watchdog_end(watchdog, -1);
  tide_watchdog_total(watchdog, TIDE_TOTAL_STARTUP, tide_clock_mono());
}

static void what_has_no_place_is_counted(void **state) {
  ending end;
  (void)state;
  run_child(seventy_entries, &end, true);
  assert_ended(&end, 0);
  assert_written(&end, "the startup total has passed");
  assert_int_equal(occurrences(end.output, "msg=\"still running\""), 64);
  assert_written(&end, "msg=\"more were still running\" count=5");
}

static void long_names(tide_watchdog *watchdog) {
  char text[300];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  tide_watchdog_begin(watchdog, text, text);
  tide_watchdog_total(watchdog, TIDE_TOTAL_STARTUP, tide_clock_mono());
}

static void long_names_are_cut(void **state) {
  ending end;
  (void)state;
  run_child(long_names, &end, true);
  assert_ended(&end, 0);
  assert_non_null(strstr(end.output, "what=xxx"));
  assert_true(strlen(strstr(end.output, "what=xxx")) < 200);
}

/* Nobody reads, the pipe is full and blocks: at most 100 ms are lost. */
static void full_stderr(tide_watchdog *watchdog) {
  static const char junk[4096];
  int flags = fcntl(STDERR_FILENO, F_GETFL);
  fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
  while (write(STDERR_FILENO, junk, sizeof junk) > 0)
    continue;
  fcntl(STDERR_FILENO, F_SETFL, flags);
  seventy_entries(watchdog);
}

static void a_full_stderr_does_not_hold_it(void **state) {
  ending end;
  (void)state;
  run_child(full_stderr, &end, false);
  assert_ended(&end, 90 * TIDE_MS);
}

static void disarmed(tide_watchdog *watchdog) {
  tide_watchdog_total(watchdog, TIDE_TOTAL_STARTUP,
                      tide_clock_mono() + 50 * TIDE_MS);
  tide_watchdog_total(watchdog, TIDE_TOTAL_STARTUP, 0);
  usleep(150 * 1000); /* longer than the total */
  tide_watchdog_stop(watchdog);
  _exit(7);
}

static void a_disarmed_total_never_comes(void **state) {
  ending end;
  (void)state;
  run_child(disarmed, &end, true);
  assert_true(WIFEXITED(end.status));
  assert_int_equal(WEXITSTATUS(end.status), 7);
  assert_string_equal(end.output, "");
}

/* ---- stop signals ----------------------------------------------------- */

static tide_watchdog *signalled;

static void on_signal(int number) {
  (void)number;
  tide_watchdog_signal(signalled);
}

static void unanswered(tide_watchdog *watchdog) {
  signalled = watchdog;
  tide_watchdog_set_shutdown_total(watchdog, 100 * TIDE_MS);
  signal(SIGTERM, on_signal);
  raise(SIGTERM);
}

static void a_signal_starts_the_total(void **state) {
  ending end;
  (void)state;
  run_child(unanswered, &end, true);
  assert_ended(&end, 100 * TIDE_MS);
  assert_written(&end, "the shutdown total has passed");
}

/* Taken up late, the pipeline's own total does not win time. */
static void late_total(tide_watchdog *watchdog) {
  unanswered(watchdog);
  assert_true(tide_watchdog_taken(watchdog) != 0);
  assert_true(tide_watchdog_taken(watchdog) == 0);
  tide_watchdog_total(watchdog, TIDE_TOTAL_SHUTDOWN,
                      tide_clock_mono() + 3600 * TIDE_SEC);
}

static void the_total_counts_from_the_signal(void **state) {
  ending end;
  (void)state;
  run_child(late_total, &end, true);
  assert_ended(&end, 100 * TIDE_MS);
}

/* Once a shutdown is under way, another signal changes nothing. */
static void second_signal(tide_watchdog *watchdog) {
  tide_watchdog_total(watchdog, TIDE_TOTAL_SHUTDOWN,
                      tide_clock_mono() + 300 * TIDE_MS);
  unanswered(watchdog);
}

static void a_later_signal_does_not_shorten_it(void **state) {
  ending end;
  (void)state;
  run_child(second_signal, &end, true);
  assert_ended(&end, 300 * TIDE_MS);
}

/* ---- embedders -------------------------------------------------------- */

static void on_overrun(void *arg, tide_total which) {
  int *fd = arg;
  char name = which == TIDE_TOTAL_SHUTDOWN ? 'd' : 'u';
  if (write(*fd, &name, 1) != 1)
    abort();
}

static void a_callback_takes_the_place_of_the_end(void **state) {
  tide_watchdog_options options = {.on_overrun = on_overrun};
  tide_watchdog *watchdog;
  char got[2];
  int fds[2];
  (void)state;
  assert_int_equal(pipe(fds), 0);
  options.arg = &fds[1];
  assert_int_equal(tide_watchdog_start(&watchdog, &options), 0);
  tide_watchdog_total(watchdog, TIDE_TOTAL_STARTUP, tide_clock_mono());
  assert_int_equal(read(fds[0], &got[0], 1), 1);
  tide_watchdog_total(watchdog, TIDE_TOTAL_SHUTDOWN, tide_clock_mono());
  assert_int_equal(read(fds[0], &got[1], 1), 1);
  assert_memory_equal(got, "ud", 2);
  tide_watchdog_stop(watchdog);
  close(fds[0]);
  close(fds[1]);
}

/* A number in what the kernel says of the watchdog's thread. */
static uint64_t status_of_thread(const char *key, int base) {
  uint64_t number = 0;
  char path[300], line[128];
  struct dirent *entry;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  while ((entry = readdir(tasks)) != NULL) {
    bool ours = false;
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
      if (strncmp(line, "Name:", 5) == 0)
        ours = strstr(line, "tide-watchdog") != NULL;
      if (ours && strncmp(line, key, strlen(key)) == 0)
        number = strtoull(line + strlen(key), NULL, base);
    }
    if (file != NULL)
      fclose(file);
  }
  closedir(tasks);
  return number;
}

static void the_thread_blocks_every_signal(void **state) {
  tide_watchdog_options options = {0};
  tide_watchdog *watchdog;
  uint64_t mask = 0;
  int looks;
  sigset_t now;
  (void)state;
  assert_int_equal(tide_watchdog_start(&watchdog, &options), 0);
  for (looks = 0; mask == 0 && looks < 5000; looks++) {
    usleep(1000); /* it gives itself its name */
    mask = status_of_thread("SigBlk:", 16);
  }
  assert_true(mask & UINT64_C(1) << (SIGTERM - 1));
  assert_true(mask & UINT64_C(1) << (SIGRTMAX - 1));
  /* And this thread has its mask back. */
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  assert_false(sigismember(&now, SIGTERM));
  tide_watchdog_stop(watchdog);
}

/* ---- Lua -------------------------------------------------------------- */

/* How many system calls that sleep or wake a process made: each sleep of a
 * thread is a voluntary switch. */
static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

static void slice_of(tide_interrupt *interrupt, lua_State *L, const char *code,
                     uint64_t limit, int *status) {
  tide_slice slice;
  assert_int_equal(luaL_loadstring(L, code), LUA_OK);
  tide_slice_enter(interrupt, &slice, L,
                   limit != 0 ? tide_clock_mono() + limit : 0);
  *status = lua_pcall(L, 0, 0, 0);
  tide_slice_leave(interrupt, &slice);
}

static void start_both(tide_interrupt **interrupt, tide_watchdog **watchdog,
                       lua_State **L) {
  tide_watchdog_options options = {.shutdown_total = 3600 * TIDE_SEC};
  assert_int_equal(tide_interrupt_init(interrupt), 0);
  options.interrupt = *interrupt;
  assert_int_equal(tide_watchdog_start(watchdog, &options), 0);
  *L = luaL_newstate();
  luaL_openlibs(*L);
  tide_interrupt_bind(*interrupt, *L);
}

static void stop_both(tide_interrupt *interrupt, tide_watchdog *watchdog,
                      lua_State *L) {
  lua_close(L);
  tide_watchdog_stop(watchdog);
  tide_interrupt_free(interrupt);
}

/* The stop signal comes while Lua runs that may run for ever. */
static void a_signal_not_taken_up_ends_the_slice(void **state) {
  tide_interrupt *interrupt;
  uint64_t began = tide_clock_mono();
  lua_State *L;
  int status;
  (void)state;
#if defined(__SANITIZE_THREAD__)
  skip(); /* it defers signals until the next system call */
#endif
  start_both(&interrupt, &signalled, &L);
  tide_watchdog_signal(signalled);
  slice_of(interrupt, L,
           "while true do pcall(function() while true do end end)"
           " end",
           0, &status);
  assert_int_equal(status, LUA_ERRRUN);
  assert_true(tide_clock_mono() - began >= TIDE_SEC);
  assert_true(tide_clock_mono() - began < 3 * TIDE_SEC);
  assert_true(tide_watchdog_taken(signalled) != 0);
  /* And once it is taken up, Lua is left in peace. */
  slice_of(interrupt, L, "local n = 0 for i = 1, 2e7 do n = n + i end", 0,
           &status);
  assert_int_equal(status, LUA_OK);
  stop_both(interrupt, signalled, L);
}

/* Many slices, each earlier than the thread would wake: it is rung a few times,
 * not for each. */
static void slices_cost_no_system_call(void **state) {
  tide_interrupt *interrupt;
  tide_watchdog *watchdog;
  tide_slice slice;
  lua_State *L;
  uint64_t began, took;
  long before;
  int i;
  (void)state;
  start_both(&interrupt, &watchdog, &L);
  began = tide_clock_mono();
  before = switches();
  for (i = 0; i < 1000000; i++) {
    tide_slice_enter_task(interrupt, &slice, L,
                          began + (3600 - (uint64_t)i / 1000) * TIDE_SEC);
    tide_slice_leave(interrupt, &slice);
  }
  took = tide_clock_mono() - began;
  /* A short sleep is 4 ms, and this thread may be preempted now and then. */
  assert_true(switches() - before < 200 + (long)(took / TIDE_MS));
  stop_both(interrupt, watchdog, L);
}

static void an_idle_watchdog_sleeps(void **state) {
  tide_interrupt *interrupt;
  tide_watchdog *watchdog;
  lua_State *L;
  uint64_t before;
  int status;
  (void)state;
  start_both(&interrupt, &watchdog, &L);
  slice_of(interrupt, L, "return 1", TIDE_SEC, &status);
  usleep(2500 * 1000); /* it looks once more after 1 s, then sleeps for good */
  before = status_of_thread("voluntary_ctxt_switches:", 10);
  assert_true(before > 0);
  usleep(1500 * 1000);
  assert_int_equal(status_of_thread("voluntary_ctxt_switches:", 10), before);
  stop_both(interrupt, watchdog, L);
}

/* As in a game's loop: each frame has a slice, and pays for no wake. */
static void slices_now_and_then_do_not_wake_it(void **state) {
  tide_interrupt *interrupt;
  tide_watchdog *watchdog;
  lua_State *L;
  uint64_t before;
  int i, status;
  (void)state;
  start_both(&interrupt, &watchdog, &L);
  slice_of(interrupt, L, "return 1", 30 * TIDE_SEC, &status);
  usleep(100 * 1000);
  before = status_of_thread("voluntary_ctxt_switches:", 10);
  for (i = 0; i < 30; i++) {
    slice_of(interrupt, L, "return 1", 30 * TIDE_SEC, &status);
    usleep(16 * 1000);
  }
  /* Its own looks, once a second, are two wakes each. */
  assert_in_range(status_of_thread("voluntary_ctxt_switches:", 10), before,
                  before + 10);
  stop_both(interrupt, watchdog, L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_total_writes_what_runs_and_ends),
      cmocka_unit_test(what_has_no_place_is_counted),
      cmocka_unit_test(long_names_are_cut),
      cmocka_unit_test(a_full_stderr_does_not_hold_it),
      cmocka_unit_test(a_disarmed_total_never_comes),
      cmocka_unit_test(a_signal_starts_the_total),
      cmocka_unit_test(the_total_counts_from_the_signal),
      cmocka_unit_test(a_later_signal_does_not_shorten_it),
      cmocka_unit_test(a_callback_takes_the_place_of_the_end),
      cmocka_unit_test(the_thread_blocks_every_signal),
      cmocka_unit_test(a_signal_not_taken_up_ends_the_slice),
      cmocka_unit_test(slices_cost_no_system_call),
      cmocka_unit_test(an_idle_watchdog_sleeps),
      cmocka_unit_test(slices_now_and_then_do_not_wake_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
