/* A host without flags leaves its process alone; a child of fork knows that it
 * is one; a limit of memory fails a task and not the process. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "embed_helpers.h"

/* ---- the process -----------------------------------------------------------
 */

struct process {
  struct sigaction actions[65];
  sigset_t mask;
  mode_t umask;
  char directory[4096];
  char locale[256];
  int files;
  int threads;
};

static void look(struct process *process) {
  int i;
  memset(process, 0, sizeof *process);
  for (i = 1; i < 65; i++)
    sigaction(i, NULL, &process->actions[i]);
  pthread_sigmask(SIG_SETMASK, NULL, &process->mask);
  process->umask = umask(0);
  umask(process->umask);
  assert_non_null(getcwd(process->directory, sizeof process->directory));
  snprintf(process->locale, sizeof process->locale, "%s",
           setlocale(LC_ALL, NULL));
  process->files = entries_of("/proc/self/fd");
  process->threads = entries_of("/proc/self/task");
}

static void assert_same(const struct process *a, const struct process *b) {
  int i;
  for (i = 1; i < 65; i++) {
    assert_true(a->actions[i].sa_handler == b->actions[i].sa_handler);
    assert_int_equal(a->actions[i].sa_flags, b->actions[i].sa_flags);
  }
  assert_memory_equal(&a->mask, &b->mask, sizeof a->mask);
  assert_int_equal(a->umask, b->umask);
  assert_string_equal(a->directory, b->directory);
  assert_string_equal(a->locale, b->locale);
}

static tide_host *ready_host(void) {
  tide_host *host =
      started(PLAIN "tide.http.listen { port = 0 }\n"
                    "tide.check('c', function() return true end)");
  step_until(host, TIDE_READY);
  return host;
}

static void the_process_stays_as_it_was(void **state) {
  struct process first, before, ready, after;
  tide_host *host;
  (void)state;
  look(&first);
  stop(ready_host()); /* libuv's pool of threads stays with the process */
  look(&before);
  assert_same(&first, &before);
  host = ready_host();
  look(&ready);
  assert_same(&before, &ready);
  assert_int_equal(stop(host), 0);
  look(&after);
  assert_same(&before, &after);
  assert_int_equal(before.files, after.files);
  assert_int_equal(before.threads, after.threads);
}

static void nothing_is_written_to_the_standard_streams(void **state) {
  int saved_out = dup(1), saved_err = dup(2), ends[2], i;
  char text[256];
  ssize_t n;
  (void)state;
  assert_int_equal(pipe(ends), 0);
  dup2(ends[1], 1);
  dup2(ends[1], 2);
  for (i = 0; i < 2; i++) {
    tide_host *host =
        started(i == 0 ? PLAIN
                       : PLAIN "tide.startup:phase('a', function() "
                               "error 'no' end)");
    step_until(host, i == 0 ? TIDE_READY : TIDE_STOPPED);
    stop(host);
  }
  dup2(saved_out, 1);
  dup2(saved_err, 2);
  close(saved_out);
  close(saved_err);
  close(ends[1]);
  n = read(ends[0], text, sizeof text);
  close(ends[0]);
  assert_int_equal(n, 0);
}

static void os_exit_of_a_script_does_not_end_the_program(void **state) {
  tide_host *host = started(PLAIN "tide.spawn(function() os.exit(7) end)");
  (void)state;
  step_until(host, TIDE_STOPPED);
  assert_int_equal(tide_exit_code(host), 7);
  tide_free(host);
}

/* ---- a child ---------------------------------------------------------------
 */

static int child_of(tide_host *host) {
  int before = entries_of("/proc/self/fd");
  if (tide_step(host, 0) != TIDE_EFORKED ||
      tide_drain(host, "child") != TIDE_EFORKED ||
      tide_post(host, NULL, NULL) != TIDE_EFORKED ||
      tide_work_begin(host, "x") != TIDE_EFORKED ||
      tide_fd(host) != TIDE_EFORKED)
    return 1;
  tide_after_fork(host);
  if (entries_of("/proc/self/fd") >= before)
    return 2;
  tide_after_fork(host);
  tide_free(host); /* as good as nothing */
  return 0;
}

static void a_child_is_told_and_the_parent_goes_on(void **state) {
  tide_host *host = started(PLAIN "tide.http.listen { port = 0 }\n"
                                  "tide.spawn(function() while true do "
                                  "tide.sleep(0.005) end end)");
  int status, i;
  pid_t pid;
  (void)state;
  step_until(host, TIDE_READY);
  pid = fork();
  if (pid == 0)
    _exit(child_of(host));
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  for (i = 0; i < 5; i++) /* its timers still come, its epoll is whole */
    assert_true(tide_step(host, 1000) >= 0);
  assert_int_equal(stop(host), 0);
}

/* ---- memory ----------------------------------------------------------------
 */

static void a_task_that_takes_too_much_fails_alone(void **state) {
  tide_options options;
  tide_host *host;
  tide_info info = {.size = sizeof info};
  (void)state;
  tide_options_init(&options);
  options.lua_memory_limit = (size_t)8 * 1024 * 1024;
  host = new_host_with(&options);
  load(host, PLAIN
       "tide.startup:phase('big', { on_fail = 'warn' }, function()\n"
       "  local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end\n"
       "end)\n"
       "tide.startup:phase('after', function() after = true end)\n"
       "tide.shutdown:task('service-stop', 'told', function()\n"
       "  assert(after) ended = true end)");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_int_equal(tide_get_info(host, &info), 0);
  assert_true(info.lua_bytes < options.lua_memory_limit);
  assert_int_equal(stop(host), 0);
}

static void limits_that_cannot_be_are_refused(void **state) {
  tide_options options;
  tide_host *host;
  (void)state;
  tide_options_init(&options);
  options.lua_memory_limit = 1000;
  assert_int_equal(tide_new(&host, &options), TIDE_EINVAL);
}

static size_t taken;

static void *count(void *arg, void *block, size_t old_size, size_t new_size) {
  size_t *bytes = arg;
  *bytes += new_size - (block != NULL ? old_size : 0);
  if (new_size > 0)
    return realloc(block, new_size);
  free(block);
  return NULL;
}

static void the_program_can_bring_its_own_memory(void **state) {
  tide_options options;
  tide_host *host;
  (void)state;
  tide_options_init(&options);
  options.alloc = count;
  options.alloc_arg = &taken;
  host = new_host_with(&options);
  assert_true(taken > 100000);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  stop(host);
  assert_int_equal(taken, 0);
}

/* ---- a loop of the program's own --------------------------------------------
 */

static void on_tick(uv_timer_t *timer) {
  ++*(int *)timer->data;
}

static void a_loop_of_the_callers_stays_the_callers(void **state) {
  uv_loop_t loop;
  uv_timer_t timer;
  tide_options options;
  tide_host *host;
  int ticks = 0, before;
  (void)state;
  assert_int_equal(uv_loop_init(&loop), 0);
  uv_timer_init(&loop, &timer);
  timer.data = &ticks;
  uv_timer_start(&timer, on_tick, 1, 1);
  tide_options_init(&options);
  options.loop = &loop;
  host = new_host_with(&options);
  load(host, PLAIN "tide.http.listen { port = 0 }");
  assert_int_equal(tide_start(host), 0);
  while (tide_host_state(host) != TIDE_READY)
    uv_run(&loop, UV_RUN_ONCE);
  assert_int_equal(tide_drain(host, "test"), 0);
  while (tide_host_state(host) != TIDE_STOPPED)
    uv_run(&loop, UV_RUN_ONCE);
  tide_free(host);
  before = ticks;
  while (ticks < before + 3)
    uv_run(&loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&timer, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0); /* nothing of ours is left */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_process_stays_as_it_was),
      cmocka_unit_test(nothing_is_written_to_the_standard_streams),
      cmocka_unit_test(os_exit_of_a_script_does_not_end_the_program),
      cmocka_unit_test(a_child_is_told_and_the_parent_goes_on),
      cmocka_unit_test(a_task_that_takes_too_much_fails_alone),
      cmocka_unit_test(limits_that_cannot_be_are_refused),
      cmocka_unit_test(the_program_can_bring_its_own_memory),
      cmocka_unit_test(a_loop_of_the_callers_stays_the_callers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
