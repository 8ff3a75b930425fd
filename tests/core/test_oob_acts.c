/* What is asked over the out-of-band line while Lua runs: where it is, an end
 * to it, and an end to the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "oob_helpers.h"

/* ---- a client beside Lua ---------------------------------------------- */

/* Lua runs on this thread, the client on another; what it has heard is looked
 * at when both are done. */
typedef struct dialogue {
  oob_world *w;
  const char *const *lines;
  size_t count;
  _Atomic bool over;
  char said[4][4096];
} dialogue;

static bool lua_runs(const oob_world *w) {
  tide_running now;
  tide_interrupt_running(w->interrupt, &now);
  return now.id != 0;
}

static void *talk(void *arg) {
  dialogue *d = arg;
  oob_client *c = oob_connect(d->w->path);
  size_t i;
  while (!lua_runs(d->w))
    usleep(500);
  usleep(50 * 1000); /* as a person would, some time after it began */
  for (i = 0; i < d->count; i++)
    snprintf(d->said[i], sizeof d->said[i], "%.4000s", oob_ask(c, d->lines[i]));
  atomic_store(&d->over, true);
  oob_hang_up(c);
  return NULL;
}

/* c_call(dialogue): a call of C that lasts until all was asked. */
static int c_call(lua_State *L) {
  dialogue *d = lua_touserdata(L, 1);
  while (!atomic_load(&d->over))
    continue;
  return 0;
}

static int run_beside(oob_world *w, const char *code, dialogue *d) {
  tide_slice slice;
  pthread_t thread;
  int status;
  d->w = w;
  assert_int_equal(luaL_loadbuffer(w->L, code, strlen(code), "=app.lua"),
                   LUA_OK);
  lua_register(w->L, "c_call", c_call);
  lua_pushlightuserdata(w->L, d);
  pthread_create(&thread, NULL, talk, d);
  tide_slice_enter(w->interrupt, &slice, w->L, 0);
  slice.kind = "luv callback";
  status = lua_pcall(w->L, 1, 0, 0);
  tide_slice_leave(w->interrupt, &slice);
  pthread_join(thread, NULL);
  lua_settop(w->L, 0);
  return status;
}

static void where_says_the_line_of_lua_that_spins(void **state) {
  static const char *const lines[] = {"where", "where", "interrupt", "where"};
  dialogue d = {.lines = lines, .count = 4};
#if defined(__SANITIZE_THREAD__)
  skip(); /* it defers signals until the next system call */
#endif
  assert_int_equal(run_beside(*state, "\n\nwhile true do end", &d), LUA_ERRRUN);
  assert_has(d.said[0], "\"lua\":{\"what\":\"luv callback\"");
  assert_has(d.said[0], "\"at\":\"app.lua:3\",\"in_c\":false");
  assert_has(d.said[0], "Lua runs: luv callback at app.lua:3");
  assert_has(d.said[1], "\"at\":\"app.lua:3\",\"in_c\":false");
  assert_has(d.said[2], "\"text\":\"interrupted\"");
  assert_has(d.said[2], "\"status\":\"ok\"");
  assert_has(d.said[3], "\"lua\":null");
}

static void where_tells_a_long_call_of_c(void **state) {
  static const char *const lines[] = {"where", "interrupt"};
  dialogue d = {.lines = lines, .count = 2};
#if defined(__SANITIZE_THREAD__)
  skip();
#endif
  /* Behind the call, where Lua runs again, the interrupt arrives. */
  assert_int_equal(run_beside(*state, "c_call(...) while true do end", &d),
                   LUA_ERRRUN);
  assert_has(d.said[0], "\"what\":\"luv callback\"");
  assert_has(d.said[0], "\"in_c\":true");
  assert_has(d.said[1], "in a C call: cannot be interrupted before");
  assert_has(d.said[1], "\"status\":\"error\"");
}

static void an_interrupt_outlasts_a_pcall_loop(void **state) {
  static const char *const lines[] = {"interrupt"};
  dialogue d = {.lines = lines, .count = 1};
#if defined(__SANITIZE_THREAD__)
  skip();
#endif
  assert_int_equal(
      run_beside(*state,
                 "while true do pcall(function() while true do end end) end",
                 &d),
      LUA_ERRRUN);
  assert_has(d.said[0], "\"text\":\"interrupted\"");
}

/* Slices that end at once are none that spin: whichever runs next would be hit
 * for the one that was meant. */
static void short_slices_are_not_interrupted(void **state) {
  static const char *const lines[] = {"interrupt"};
  oob_world *w = *state;
  dialogue d = {.w = w, .lines = lines, .count = 1};
  pthread_t thread;
  tide_slice slice, first;
  uint64_t until = tide_clock_mono() + 600 * TIDE_MS;
  uint64_t last = tide_clock_mono(), now, longest = 0;
  pthread_create(&thread, NULL, talk, &d);
  while (tide_clock_mono() < until) {
    tide_slice_enter(w->interrupt, &first, w->L, 0);
    tide_slice_enter(w->interrupt, &slice, w->L, 0);
    if (luaL_dostring(w->L, "for i = 1, 100 do end") != LUA_OK)
      lua_pop(w->L, 1); /* counted below */
    tide_slice_leave(w->interrupt, &slice);
    tide_slice_leave(w->interrupt, &first);
    now = tide_clock_mono();
    longest = now - last > longest ? now - last : longest;
    last = now;
  }
  pthread_join(thread, NULL);
  if (longest < 50 * TIDE_MS) /* else one was long: no processor was free */
    assert_int_equal(tide_interrupt_count(w->interrupt), 0);
  assert_has(d.said[0], "\"status\":\"ok\"");
}

static void there_may_be_nothing_to_interrupt(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  assert_has(oob_ask(c, "interrupt"), "no Lua runs");
  assert_has(c->text, "\"status\":\"ok\"");
  oob_hang_up(c);
}

/* Whoever still waits for an answer (here for a slice that spins, for 300 ms)
 * gets it when the host goes, in either way. */
static void assert_answered_by(void (*end)(tide_watchdog *watchdog)) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  oob_client *c;
  uint64_t began;
  oob_start(w, &options);
  oob_wait_file(w->path, true);
  c = oob_connect(w->path);
  assert_has(oob_ask(c, "where"), "\"status\":\"ok\"");
  oob_send(c, "interrupt\n");
  usleep(50000);
  began = tide_clock_mono();
  end(w->watchdog);
  assert_true(oob_read(c, "\"status\":\"cancelled\""));
  assert_has(c->text, "the process ends");
  assert_true(tide_clock_mono() - began < 200 * TIDE_MS);
  if (end != tide_watchdog_stop)
    tide_watchdog_stop(w->watchdog);
  oob_hang_up(c);
  oob_remove(w);
}

static void who_waits_is_answered_before_the_end(void **state) {
  (void)state;
  assert_answered_by(tide_watchdog_stop);
  assert_answered_by(tide_watchdog_leave);
}

/* The hook that looks for the line leaves a debugger's alone, and goes. */
static void count_lines(lua_State *L, lua_Debug *ar) {
  (void)L;
  (void)ar;
}

static void another_hook_is_left_alone(void **state) {
  static const char *const lines[] = {"where", "interrupt"};
  oob_world *w = *state;
  dialogue d = {.lines = lines, .count = 2};
#if defined(__SANITIZE_THREAD__)
  skip();
#endif
  lua_sethook(w->L, count_lines, LUA_MASKLINE, 0);
  assert_int_equal(run_beside(w, "while true do end", &d), LUA_ERRRUN);
  assert_ptr_equal(lua_gethook(w->L), count_lines);
  assert_has(d.said[0], "\"what\":\"luv callback\"");
  assert_has(d.said[0], "\"in_c\":false");
  lua_sethook(w->L, NULL, 0, 0);
  run_beside(w, "while true do end", &d);
  assert_null(lua_gethook(w->L));
}

/* ---- abort ------------------------------------------------------------ */

static void on_overrun(void *arg, tide_total which) {
  (void)arg;
  (void)which;
}

static void a_program_is_not_aborted(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  oob_client *c;
  (void)state;
  options.on_overrun = on_overrun;
  oob_start(w, &options);
  c = oob_connect(w->path);
  assert_has(oob_ask(c, "abort"), "\"status\":\"refused\"");
  assert_has(c->text, "part of a program");
  oob_hang_up(c);
  tide_watchdog_stop(w->watchdog);
  oob_remove(w);
}

static void run_child(oob_world *w, int to, const char *termination_log) {
  tide_watchdog_options options = oob_options(w);
  dup2(to, STDERR_FILENO);
  options.termination_log = termination_log;
  oob_start(w, &options);
  tide_watchdog_phase(w->watchdog, "db");
  tide_watchdog_begin(w->watchdog, "db/connect", "app.lua:12");
  for (;;)
    pause();
}

static void read_all(int fd, char *out, size_t size) {
  size_t length = 0;
  ssize_t got;
  while (length < size - 1 &&
         (got = read(fd, out + length, size - 1 - length)) > 0)
    length += (size_t)got;
  out[length] = '\0';
}

static void assert_last_words(const char *path) {
  char text[1024];
  int fd = open(path, O_RDONLY);
  assert_true(fd >= 0);
  read_all(fd, text, sizeof text);
  close(fd);
  assert_string_equal(
      text, "exit 1: aborted over the out-of-band line in phase db\n");
  unlink(path);
}

/* The descriptor of what is to be read of the child. */
static int start_child(oob_world *w, const char *log, pid_t *pid) {
  int fds[2];
  int fd = open(log, O_CREAT | O_WRONLY, 0600); /* the kubelet makes it */
  close(fd);
  assert_int_equal(pipe(fds), 0);
  *pid = fork();
  if (*pid == 0)
    run_child(w, fds[1], log);
  close(fds[1]);
  snprintf(w->path, sizeof w->path, "%s/app-%d.oob", w->directory, (int)*pid);
  oob_wait_file(w->path, true);
  return fds[0];
}

static void an_abort_says_what_ran_and_ends_the_process(void **state) {
  oob_world *w = oob_new();
  char text[8192], log[64];
  int status, from;
  oob_client *c;
  pid_t pid;
  (void)state;
  snprintf(log, sizeof log, "%s/termination-log", w->directory);
  from = start_child(w, log, &pid);
  c = oob_connect(w->path);
  assert_has(oob_ask(c, "{\"id\":1,\"type\":\"abort\"}"), "\"status\":\"ok\"");
  assert_closed(c);
  oob_hang_up(c);
  read_all(from, text, sizeof text);
  close(from);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_has(text, "\"msg\":\"an abort was asked for\",\"name\":\"test\"");
  assert_has(text, "aborted over the out-of-band line; ending the process");
  assert_has(text, "\"what\":\"db/connect\",\"site\":\"app.lua:12\"");
  assert_int_equal(access(w->path, F_OK), -1);
  assert_last_words(log);
  oob_remove(w);
}

#define WITH_LINE(test)                                                        \
  cmocka_unit_test_setup_teardown(test, oob_setup, oob_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_LINE(where_says_the_line_of_lua_that_spins),
      WITH_LINE(where_tells_a_long_call_of_c),
      WITH_LINE(an_interrupt_outlasts_a_pcall_loop),
      WITH_LINE(short_slices_are_not_interrupted),
      WITH_LINE(there_may_be_nothing_to_interrupt),
      WITH_LINE(another_hook_is_left_alone),
      cmocka_unit_test(who_waits_is_answered_before_the_end),
      cmocka_unit_test(a_program_is_not_aborted),
      cmocka_unit_test(an_abort_says_what_ran_and_ends_the_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
