/* Phases, tasks and checks in C stand in the same pipelines as the script's:
 * the same order, limits, cancellation and words. */
#include <unistd.h>

#include "embed_helpers.h"

static char order[1024];

static int reset_order(void **state) {
  (void)state;
  order[0] = '\0';
  return 0;
}

static void note(const char *what) {
  strcat(order, what);
  strcat(order, " ");
}

static int run_at_once(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  (void)token;
  note(arg);
  return 0;
}

static int run_and_fail(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  (void)token;
  (void)arg;
  return TIDE_EINVAL;
}

static tide_task_spec task_of(tide_pipeline pipeline, const char *phase,
                              const char *name) {
  tide_task_spec task;
  tide_task_spec_init(&task);
  task.pipeline = pipeline;
  task.phase = phase;
  task.name = name;
  task.run = run_at_once;
  task.arg = (void *)(uintptr_t)name;
  return task;
}

static void add_phase(tide_host *host, tide_pipeline pipeline, const char *name,
                      const char *after) {
  const char *names[] = {after, NULL};
  tide_phase_spec phase;
  tide_phase_spec_init(&phase);
  phase.pipeline = pipeline;
  phase.name = name;
  phase.after = after != NULL ? names : NULL;
  assert_int_equal(tide_phase_add(host, &phase), 0);
}

static void add_task(tide_host *host, tide_pipeline pipeline, const char *phase,
                     const char *name) {
  tide_task_spec task = task_of(pipeline, phase, name);
  assert_int_equal(tide_task_add(host, &task), 0);
}

static void they_run_in_the_order_of_the_graph(void **state) {
  tide_host *host = new_host();
  (void)state;
  add_phase(host, TIDE_STARTUP_PIPELINE, "world", NULL);
  add_phase(host, TIDE_STARTUP_PIPELINE, "players", "world");
  add_phase(host, TIDE_SHUTDOWN_PIPELINE, "save", "service-stop");
  add_task(host, TIDE_STARTUP_PIPELINE, "players", "open");
  add_task(host, TIDE_STARTUP_PIPELINE, "world", "load");
  add_task(host, TIDE_SHUTDOWN_PIPELINE, "save", "write");
  add_task(host, TIDE_SHUTDOWN_PIPELINE, "service-stop", "kick");
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_string_equal(order, "load open ");
  assert_int_equal(stop(host), 0);
  assert_string_equal(order, "load open kick write ");
}

/* ---- pending ---------------------------------------------------------------
 */

struct pending {
  tide_token *token;
  pthread_t thread;
  int delay_us;
  int status;
  const char *message;
  bool cancelled;
  bool ends_when_cancelled;
  bool joined;
};

static void *finish(void *arg) {
  struct pending *pending = arg;
  usleep((useconds_t)pending->delay_us);
  tide_task_done(pending->token, pending->status, pending->message);
  return NULL;
}

static int run_on_thread(tide_host *host, tide_token *token, void *arg) {
  struct pending *pending = arg;
  (void)host;
  pending->token = token;
  assert_int_equal(pthread_create(&pending->thread, NULL, finish, pending), 0);
  return TIDE_PENDING;
}

static int run_until_cancelled(tide_host *host, tide_token *token, void *arg) {
  struct pending *pending = arg;
  (void)host;
  pending->token = token;
  return TIDE_PENDING;
}

static void on_cancel(tide_host *host, tide_token *token, void *arg) {
  struct pending *pending = arg;
  (void)host;
  assert_ptr_equal(token, pending->token);
  pending->cancelled = true;
  if (pending->ends_when_cancelled)
    tide_task_done(token, TIDE_ECANCELED, NULL);
}

static int run_done_before_it_returns(tide_host *host, tide_token *token,
                                      void *arg) {
  (void)host;
  (void)arg;
  tide_task_done(token, 0, NULL);
  return TIDE_PENDING;
}

static void a_pending_task_holds_its_phase(void **state) {
  tide_host *host = new_host();
  struct pending pending = {.delay_us = 30000};
  tide_task_spec task = task_of(TIDE_STARTUP_PIPELINE, "world", "load");
  double began = now();
  (void)state;
  add_phase(host, TIDE_STARTUP_PIPELINE, "world", NULL);
  task.run = run_on_thread;
  task.arg = &pending;
  assert_int_equal(tide_task_add(host, &task), 0);
  task = task_of(TIDE_STARTUP_PIPELINE, "world", "early");
  task.run = run_done_before_it_returns;
  assert_int_equal(tide_task_add(host, &task), 0);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_true(now() - began >= 0.03);
  pthread_join(pending.thread, NULL);
  assert_int_equal(stop(host), 0);
}

static char log_text[65536];

static void keep_log(void *arg, tide_log_severity severity, const char *line,
                     size_t length) {
  (void)arg;
  (void)severity;
  strncat(log_text, line, length < 8000 ? length : 8000);
}

static tide_host *logged_host(void) {
  tide_options options;
  tide_options_init(&options);
  options.on_log = keep_log;
  log_text[0] = '\0';
  return new_host_with(&options);
}

static void a_failed_task_fails_the_startup_in_its_own_words(void **state) {
  tide_host *host = logged_host();
  struct pending pending = {.status = TIDE_EINVAL, .message = "no such map"};
  tide_task_spec task = task_of(TIDE_STARTUP_PIPELINE, "world", "load");
  (void)state;
  add_phase(host, TIDE_STARTUP_PIPELINE, "world", NULL);
  task.run = run_on_thread;
  task.arg = &pending;
  assert_int_equal(tide_task_add(host, &task), 0);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_STOPPED);
  pthread_join(pending.thread, NULL);
  assert_int_not_equal(tide_exit_code(host), 0);
  assert_non_null(strstr(log_text, "task load of phase world failed: no such "
                                   "map"));
  tide_free(host);
}

static void an_error_code_has_its_sentence(void **state) {
  tide_host *host = logged_host();
  tide_task_spec task = task_of(TIDE_SHUTDOWN_PIPELINE, "service-stop", "save");
  (void)state;
  task.run = run_and_fail;
  assert_int_equal(tide_task_add(host, &task), 0);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  stop(host);
  assert_non_null(strstr(log_text, "task save of phase service-stop failed: "
                                   "invalid argument"));
}

static int stop_with_late_task(struct pending *pending, int64_t timeout_ms) {
  tide_host *host = logged_host();
  tide_task_spec task = task_of(TIDE_SHUTDOWN_PIPELINE, "service-stop", "save");
  task.run = run_until_cancelled;
  task.cancel = on_cancel;
  task.timeout_ms = timeout_ms;
  task.arg = pending;
  assert_int_equal(tide_task_add(host, &task), 0);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  return stop(host);
}

static void a_late_task_is_cancelled(void **state) {
  struct pending pending = {.ends_when_cancelled = true};
  double began = now();
  (void)state;
  stop_with_late_task(&pending, 30);
  assert_true(pending.cancelled);
  assert_true(now() - began < 5);
  assert_non_null(
      strstr(log_text, "task save of phase service-stop timed out"));
}

static void one_that_does_not_end_is_abandoned(void **state) {
  struct pending pending = {.ends_when_cancelled = false};
  (void)state;
  stop_with_late_task(&pending, 30);
  assert_true(pending.cancelled);
  assert_non_null(strstr(log_text, "\"task\":\"save\""));
  tide_task_done(pending.token, 0, "after all"); /* the host is gone */
}

/* ---- misuse ----------------------------------------------------------------
 */

static void misuse_is_refused_with_words(void **state) {
  tide_host *host = new_host();
  tide_task_spec task = task_of(TIDE_STARTUP_PIPELINE, "wrold", "load");
  tide_phase_spec phase;
  (void)state;
  add_phase(host, TIDE_STARTUP_PIPELINE, "world", NULL);
  assert_int_equal(tide_task_add(host, &task), TIDE_ELUA);
  assert_non_null(strstr(tide_last_error(host), "did you mean \"world\"?"));
  task.phase = NULL;
  assert_int_equal(tide_task_add(host, &task), TIDE_EINVAL);
  assert_int_equal(tide_load(host, NULL), TIDE_EINVAL);
  assert_int_equal(tide_load_buffer(host, NULL, "", 0), TIDE_EINVAL);
  assert_int_equal(tide_load_buffer(host, "x", NULL, 0), TIDE_EINVAL);
  task = task_of((tide_pipeline)7, "world", "load");
  assert_int_equal(tide_task_add(host, &task), TIDE_EINVAL);
  task = task_of(TIDE_STARTUP_PIPELINE, "world", "load");
  task.size = 0;
  assert_int_equal(tide_task_add(host, &task), TIDE_EINVAL);
  tide_phase_spec_init(&phase);
  assert_int_equal(tide_phase_add(host, &phase), TIDE_EINVAL);
  phase.name = "world";
  assert_int_equal(tide_phase_add(host, &phase), TIDE_ELUA);
  assert_non_null(strstr(tide_last_error(host), "already defined"));
  tide_free(host);
}

static void what_comes_too_late_is_told(void **state) {
  tide_host *host = started(PLAIN);
  tide_task_spec task = task_of(TIDE_SHUTDOWN_PIPELINE, "service-stop", "a");
  tide_phase_spec phase;
  (void)state;
  step_until(host, TIDE_READY);
  tide_phase_spec_init(&phase);
  phase.name = "late";
  assert_int_equal(tide_phase_add(host, &phase), TIDE_ELUA);
  assert_int_equal(tide_task_add(host, &task), 0); /* it has not begun */
  assert_int_equal(tide_drain(host, "test"), 0);
  step_until(host, TIDE_STOPPED);
  task.name = "b";
  assert_int_equal(tide_task_add(host, &task), TIDE_ESTATE);
  assert_non_null(strstr(tide_last_error(host), "has already run"));
  assert_string_equal(order, "a ");
  tide_free(host);
}

/* A struct of a newer header, whose tail this library does not know. */
static void a_newer_struct_is_fine_while_its_tail_is_zero(void **state) {
  struct {
    tide_options options;
    char tail[16];
  } newer = {0};
  tide_host *host;
  (void)state;
  tide_options_init(&newer.options);
  newer.options.size = sizeof newer;
  assert_int_equal(tide_new(&host, &newer.options), 0);
  tide_free(host);
  newer.tail[15] = 1;
  assert_int_equal(tide_new(&host, &newer.options), TIDE_EINVAL);
  assert_null(host);
}

static void an_older_struct_has_the_defaults(void **state) {
  tide_options options;
  tide_host *host;
  (void)state;
  tide_options_init(&options);
  options.size = offsetof(tide_options, on_log);
  options.on_log = (void (*)(void *, tide_log_severity, const char *, size_t))(
      uintptr_t)1; /* beyond its size */
  assert_int_equal(tide_new(&host, &options), 0);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  stop(host);
}

#define TEST(name) cmocka_unit_test_setup(name, reset_order)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(they_run_in_the_order_of_the_graph),
      TEST(a_pending_task_holds_its_phase),
      TEST(a_failed_task_fails_the_startup_in_its_own_words),
      TEST(an_error_code_has_its_sentence),
      TEST(a_late_task_is_cancelled),
      TEST(one_that_does_not_end_is_abandoned),
      TEST(misuse_is_refused_with_words),
      TEST(what_comes_too_late_is_told),
      TEST(a_newer_struct_is_fine_while_its_tail_is_zero),
      TEST(an_older_struct_has_the_defaults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
