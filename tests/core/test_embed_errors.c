/* Each error that the header names for a function, provoked: by what is wrong
 * with the call, by its time, and in a child of fork. (The wrong thread is
 * test_embed_loop's, after tide_close test_embed_close's, want of memory
 * test_embed_faults's.) */
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "embed_helpers.h"

static void nothing(tide_host *host, void *arg) {
  (void)host;
  (void)arg;
}

static int fine(tide_host *host, void *arg) {
  nothing(host, arg);
  return 0;
}

static int run(tide_host *host, tide_token *token, void *arg) {
  (void)token;
  nothing(host, arg);
  return 0;
}

static void on_event(tide_host *host, const tide_event *event, void *arg) {
  (void)event;
  nothing(host, arg);
}

static void on_post(tide_host *host, void *arg, int status) {
  (void)status;
  nothing(host, arg);
}

/* Fails with the error, which has a text of its own. */
static void assert_says(tide_host *host, int rc, int error, const char *text) {
  assert_int_equal(rc, error);
  if (strstr(tide_last_error(host), text) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", text, tide_last_error(host));
}

static void options_that_cannot_be(void **state) {
  tide_options options;
  tide_host *host = (tide_host *)&options;
  (void)state;
  tide_options_init(&options);
  options.size = 0;
  assert_int_equal(tide_new(&host, &options), TIDE_EINVAL);
  assert_null(host);
  options.size = sizeof options - 1;
  assert_true(tide_new(&host, &options) == TIDE_EINVAL || host != NULL);
  tide_free(host);
  tide_free(NULL);
}

static void scripts_that_cannot_be(void **state) {
  tide_host *host = new_host();
  (void)state;
  assert_int_equal(tide_start(host), TIDE_ESTATE);
  assert_int_equal(tide_load(host, NULL), TIDE_EINVAL);
  assert_int_equal(tide_load_buffer(host, NULL, "", 0), TIDE_EINVAL);
  assert_int_equal(tide_load_buffer(host, "x", NULL, 0), TIDE_EINVAL);
  assert_says(host, tide_load(host, "/nowhere"), TIDE_ESCRIPT, "/nowhere");
  assert_says(host, tide_load(host, "/tmp"), TIDE_ESCRIPT, "/tmp");
  assert_says(host, tide_load_buffer(host, "x", "= 1", 3), TIDE_ESCRIPT,
              "x:1:");
  assert_says(host, tide_load_buffer(host, "x", "\033Lua", 4), TIDE_ESCRIPT,
              "binary");
  load(host, PLAIN);
  assert_int_equal(tide_load(host, "x"), TIDE_ESTATE);
  assert_int_equal(tide_start(host), 0);
  assert_int_equal(tide_start(host), TIDE_ESTATE);
  assert_int_equal(tide_exit_code(host), TIDE_ESTATE);
  stop(host);
}

static void parts_that_cannot_be(void **state) {
  tide_host *host = new_host();
  tide_phase_spec phase;
  tide_task_spec task;
  tide_check_spec check;
  (void)state;
  tide_phase_spec_init(&phase);
  assert_says(host, tide_phase_add(host, &phase), TIDE_EINVAL, "a name");
  phase.name = "p";
  phase.pipeline = (tide_pipeline)7;
  assert_says(host, tide_phase_add(host, &phase), TIDE_EINVAL, "pipeline");
  tide_task_spec_init(&task);
  assert_says(host, tide_task_add(host, &task), TIDE_EINVAL, "a name");
  task.phase = "no-such-phase";
  task.name = "t";
  task.run = run;
  assert_says(host, tide_task_add(host, &task), TIDE_ELUA, "no-such-phase");
  tide_check_spec_init(&check);
  assert_says(host, tide_check_add(host, &check), TIDE_EINVAL, "a name");
  check.size = 0;
  assert_int_equal(tide_check_add(host, &check), TIDE_EINVAL);
  tide_free(host);
}

static void parts_that_come_too_late(void **state) {
  tide_host *host = started(PLAIN "tide.startup:phase('early', function() "
                                  "end)");
  tide_phase_spec phase;
  tide_task_spec task;
  (void)state;
  step_until(host, TIDE_READY);
  tide_phase_spec_init(&phase);
  phase.name = "late";
  assert_says(host, tide_phase_add(host, &phase), TIDE_ELUA, "late");
  tide_task_spec_init(&task);
  task.phase = "early";
  task.name = "late";
  task.run = run;
  assert_says(host, tide_task_add(host, &task), TIDE_ESTATE, "early");
  stop(host);
}

static void what_is_asked_of_a_running_host(void **state) {
  static const char longest[] = "0123456789012345678901234567890123456789"
                                "01234567890123456789012";
  tide_host *host = started(PLAIN);
  tide_info info = {.size = 0};
  char longer[sizeof longest + 1] = "x";
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_post(host, NULL, NULL), TIDE_EINVAL);
  assert_int_equal(tide_on_event(host, NULL, NULL), TIDE_EINVAL);
  assert_int_equal(tide_off_event(host, 0), TIDE_EINVAL);
  assert_int_equal(tide_off_event(host, 99), TIDE_EINVAL);
  assert_int_equal(tide_get_info(host, &info), TIDE_EINVAL);
  assert_int_equal(tide_work_begin(host, longest), 0);
  assert_int_equal(tide_work_end(host, longest), 0);
  strcat(longer, longest);
  assert_int_equal(tide_work_begin(host, longer), TIDE_EINVAL);
  assert_int_equal(tide_work_begin(host, ""), TIDE_EINVAL);
  assert_int_equal(tide_work_begin(host, "a b"), TIDE_EINVAL);
  assert_int_equal(tide_work_begin(host, NULL), TIDE_EINVAL);
  assert_int_equal(tide_work_end(host, "never"), TIDE_EINVAL);
  assert_int_equal(tide_work_end(host, longest), TIDE_EINVAL); /* it is over */
  stop(host);
}

/* The number of the first that does not, or 0. */
static int all_say_forked(tide_host *host) {
  tide_phase_spec phase;
  tide_task_spec task;
  tide_check_spec check;
  tide_info info = {.size = sizeof info};
  tide_phase_spec_init(&phase);
  tide_task_spec_init(&task);
  tide_check_spec_init(&check);
  check.name = "c";
  check.run = fine;
  int results[] = {tide_load(host, "x"),
                   tide_load_buffer(host, "x", "", 0),
                   tide_start(host),
                   tide_run(host),
                   tide_step(host, 0),
                   tide_tick(host, 0),
                   tide_dispatch(host),
                   tide_fd(host),
                   tide_timeout(host),
                   tide_exit_code(host),
                   tide_post(host, on_post, NULL),
                   tide_drain(host, "x"),
                   tide_kill(host, "x"),
                   tide_work_begin(host, "x"),
                   tide_work_end(host, "x"),
                   tide_phase_add(host, &phase),
                   tide_task_add(host, &task),
                   tide_check_add(host, &check),
                   tide_on_event(host, on_event, NULL),
                   tide_off_event(host, 1),
                   tide_get_info(host, &info),
                   tide_call(host, 0, 0),
                   tide_close(host, nothing, NULL)};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (results[i] != TIDE_EFORKED)
      return (int)i + 1;
  return 0;
}

static void all_of_it_in_a_child(void **state) {
  tide_host *host = started(PLAIN);
  int status;
  pid_t pid;
  (void)state;
  step_until(host, TIDE_READY);
  pid = fork();
  if (pid == 0)
    _exit(all_say_forked(host));
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  stop(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_that_cannot_be),
      cmocka_unit_test(scripts_that_cannot_be),
      cmocka_unit_test(parts_that_cannot_be),
      cmocka_unit_test(parts_that_come_too_late),
      cmocka_unit_test(what_is_asked_of_a_running_host),
      cmocka_unit_test(all_of_it_in_a_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
