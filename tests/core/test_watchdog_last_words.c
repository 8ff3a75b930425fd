/* What the watchdog says of Lua that ran when a total passed: to the log's
 * descriptor, and where the kubelet looks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "append.h"
#include "clock.h"
#include "interrupt.h"
#include "watchdog.h"

#define TOTAL (200 * TIDE_MS)
/* It would be for ever. (ThreadSanitizer takes a second to end a process.) */
#define HANGS (5 * TIDE_SEC)

typedef struct ending {
  char output[16384]; /* to fd 2 */
  char log[2048];     /* the termination log */
  uint64_t took;      /* from the total's beginning to the end */
} ending;

static uint64_t describe(void *arg, const tide_slice *slice, char *out,
                         size_t size) {
  (void)slice;
  tide_append(out, size, 0, arg);
  return 0;
}

static int c_call(lua_State *L) {
  (void)L;
  for (;;)
    continue;
  return 0;
}

static void child(const char *code, const char *log) {
  static char name[] = "GET /orders/:id";
  tide_watchdog_options options = {.name = "dumped", .termination_log = log};
  tide_watchdog *watchdog;
  tide_slice slice;
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "c_call", c_call);
  if (tide_interrupt_init(&options.interrupt) != 0 ||
      tide_watchdog_start(&watchdog, &options) != 0)
    _exit(99);
  tide_interrupt_bind(options.interrupt, L);
  tide_interrupt_set_describe(options.interrupt, describe, name);
  tide_watchdog_phase(watchdog, "service-stop");
  tide_watchdog_set_format(watchdog, TIDE_LOG_LOGFMT);
  tide_watchdog_total(watchdog, TIDE_TOTAL_SHUTDOWN, tide_clock_mono() + TOTAL);
  if (luaL_loadbuffer(L, code, strlen(code), "=app.lua") != LUA_OK)
    _exit(98);
  tide_slice_enter(options.interrupt, &slice, L, 0);
  lua_pcall(L, 0, 0, 0);
  tide_slice_leave(options.interrupt, &slice);
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
  close(fd);
}

/* `log` is a path, with or without a file. */
static void run(const char *code, const char *log, ending *end) {
  uint64_t began = tide_clock_mono();
  int fds[2], status;
  pid_t pid;
  assert_int_equal(pipe(fds), 0);
  fflush(NULL);
  pid = fork();
  if (pid == 0) {
    dup2(fds[1], STDERR_FILENO);
    child(code, log);
  }
  close(fds[1]);
  read_all(fds[0], end->output, sizeof end->output);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  end->took = tide_clock_mono() - began;
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void run_with_log(const char *code, ending *end) {
  char path[] = "/tmp/tide-last-words-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  run(code, path, end);
  read_all(fd, end->log, sizeof end->log);
  unlink(path);
}

static void assert_has(const char *text, const char *what) {
  if (strstr(text, what) == NULL)
    fail_msg("\"%s\" is not in: %s", what, text);
}

static void lua_that_spins_is_named_with_its_line(void **state) {
  ending end;
  (void)state;
#if defined(__SANITIZE_THREAD__)
  skip(); /* it defers signals until the next system call */
#endif
  run_with_log("\nwhile true do end", &end);
  assert_has(end.output, "msg=\"Lua was running\" what=\"GET /orders/:id\" "
                         "at=app.lua:2\n");
  assert_string_equal(end.log,
                      "exit 1: the shutdown total has passed in phase "
                      "service-stop; Lua was running: GET /orders/:id at "
                      "app.lua:2\n");
}

static void a_call_of_c_is_named_without_one(void **state) {
  ending end;
  (void)state;
#if defined(__SANITIZE_THREAD__)
  skip();
#endif
  run_with_log("c_call()", &end);
  assert_has(end.output, "msg=\"Lua was running\" what=\"GET /orders/:id\"\n");
  assert_has(end.log, "; Lua was running: GET /orders/:id\n");
}

static void lua_that_has_returned_is_not_named(void **state) {
  ending end;
  (void)state;
  run_with_log("return", &end);
  assert_has(end.output, "msg=\"the shutdown total has passed; ending the "
                         "process\" name=dumped phase=service-stop");
  assert_null(strstr(end.output, "Lua was running"));
  assert_string_equal(
      end.log, "exit 1: the shutdown total has passed in phase service-stop\n");
}

/* The question before the total does not put it off. */
static void the_end_comes_at_the_total(void **state) {
  ending end;
  (void)state;
  run_with_log("while true do end", &end);
  assert_true(end.took >= TOTAL);
  assert_true(end.took < TOTAL + HANGS);
}

static void a_file_that_is_not_there_is_not_made(void **state) {
  ending end;
  (void)state;
  run("return", "/tmp/tide-last-words-none", &end);
  assert_int_equal(access("/tmp/tide-last-words-none", F_OK), -1);
}

/* What nobody reads would keep the process for ever. */
static void a_pipe_is_no_termination_log(void **state) {
  char path[] = "/tmp/tide-last-words-XXXXXX";
  ending end;
  int fd = mkstemp(path);
  (void)state;
  close(fd);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  run("return", path, &end);
  assert_true(end.took < TOTAL + HANGS);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lua_that_spins_is_named_with_its_line),
      cmocka_unit_test(a_call_of_c_is_named_without_one),
      cmocka_unit_test(lua_that_has_returned_is_not_named),
      cmocka_unit_test(the_end_comes_at_the_total),
      cmocka_unit_test(a_file_that_is_not_there_is_not_made),
      cmocka_unit_test(a_pipe_is_no_termination_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
