/* The program's own work, what it is told, and what it can ask. */
#include <stdio.h>

#include "embed_helpers.h"

/* ---- work ------------------------------------------------------------------
 */

static void a_drain_waits_for_the_programs_work(void **state) {
  tide_host *host = started(PLAIN);
  tide_info info = {.size = sizeof info};
  double began;
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_get_info(host, &info), 0);
  assert_int_equal(info.work, 2);
  assert_int_equal(tide_drain(host, "test"), 0);
  began = now();
  while (now() < began + 0.1)
    assert_int_not_equal(tide_step(host, 10), TIDE_IS_STOPPED);
  assert_int_equal(tide_get_info(host, &info), 0);
  assert_int_equal(info.state, TIDE_DRAINING);
  assert_string_equal(info.phase, "service-requests-done");
  assert_true(info.slack_ms > 0 && info.slack_ms < 40000);
  assert_int_equal(tide_work_begin(host, "match"), TIDE_EDRAINING);
  assert_int_equal(tide_work_end(host, "match"), 0);
  assert_int_equal(tide_work_end(host, "match"), 0);
  assert_int_equal(tide_work_end(host, "match"), TIDE_EINVAL);
  assert_int_equal(stop(host), 0);
}

static void a_kill_does_not_wait(void **state) {
  tide_host *host = started(PLAIN);
  double began = now();
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_kill(host, "test"), 0);
  step_until(host, TIDE_STOPPED);
  assert_true(now() - began < 8); /* the phase would have 30 s */
  tide_free(host);
}

static void names_of_work_are_checked(void **state) {
  tide_host *host = new_host();
  (void)state;
  assert_int_equal(tide_work_begin(host, NULL), TIDE_EINVAL);
  assert_int_equal(tide_work_begin(host, ""), TIDE_EINVAL);
  assert_int_equal(tide_work_begin(host, "two words"), TIDE_EINVAL);
  assert_int_equal(tide_work_end(host, "none"), TIDE_EINVAL);
  tide_free(host);
}

static char log_text[65536];

static void keep_log(void *arg, tide_log_severity severity, const char *line,
                     size_t length) {
  (void)arg;
  (void)severity;
  strncat(log_text, line, length < 8000 ? length : 8000);
}

static void work_that_does_not_end_is_named(void **state) {
  tide_options options;
  tide_host *host;
  (void)state;
  tide_options_init(&options);
  options.on_log = keep_log;
  log_text[0] = '\0';
  host = new_host_with(&options);
  load(host, "local tide = require 'moontide'\n"
             "tide.config { manage = false, shutdown = { linger = 0, "
             "drain = '50ms' } }");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  stop(host);
  assert_non_null(strstr(log_text, "work of the program is still in flight"));
  assert_non_null(strstr(log_text, "1 match"));
}

/* ---- events ----------------------------------------------------------------
 */

static char heard[4096];

static void on_event(tide_host *host, const tide_event *event, void *arg) {
  (void)host;
  (void)arg;
  switch (event->kind) {
  case TIDE_EVENT_STATE:
    sprintf(heard + strlen(heard), "%s ", tide_state_name(event->to));
    break;
  case TIDE_EVENT_PHASE_BEGAN:
    sprintf(heard + strlen(heard), "+%s ", event->phase);
    break;
  case TIDE_EVENT_PHASE_ENDED:
    sprintf(heard + strlen(heard), "-%s:%s ", event->phase, event->outcome);
    break;
  case TIDE_EVENT_TASK_ENDED:
    sprintf(heard + strlen(heard), "%s/%s:%s ", event->phase, event->task,
            event->outcome);
    break;
  }
}

static int last_id;

static void hear_once(tide_host *host, const tide_event *event, void *arg) {
  int *count = arg;
  (void)event;
  ++*count;
  assert_int_equal(tide_off_event(host, last_id), 0);
}

static void the_program_hears_what_happens(void **state) {
  tide_host *host = new_host();
  int once = 0;
  (void)state;
  heard[0] = '\0';
  assert_true(tide_on_event(host, on_event, NULL) > 0);
  last_id = tide_on_event(host, hear_once, &once);
  assert_true(last_id > 0);
  assert_int_equal(tide_off_event(host, 99), TIDE_EINVAL);
  load(host, PLAIN
       "tide.startup:phase('db', function() tide.sleep(0) end)\n"
       "tide.shutdown:task('service-stop', 'bad', function() error 'x' end)");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_string_equal(heard, "+db db/db:ok -db:ok ready ");
  heard[0] = '\0';
  stop(host);
  assert_non_null(strstr(heard, "draining "));
  assert_non_null(strstr(heard, "+service-stop service-stop/bad:failed "
                                "-service-stop:"));
  assert_non_null(strstr(heard, "stopped "));
  assert_int_equal(once, 1);
}

/* ---- checks ----------------------------------------------------------------
 */

static int healthy;
static int asked;

static int look(tide_host *host, void *arg) {
  (void)host;
  (void)arg;
  asked++;
  return healthy ? 0 : TIDE_ESTATE;
}

static void a_check_in_c_is_asked(void **state) {
  tide_host *host = new_host();
  tide_check_spec check;
  double end = now() + 10;
  (void)state;
  tide_check_spec_init(&check);
  check.name = "world";
  check.every_ms = 10;
  check.run = look;
  healthy = 1;
  assert_int_equal(tide_check_add(host, &check), 0);
  assert_int_equal(tide_check_add(host, &check), TIDE_ELUA);
  assert_non_null(strstr(tide_last_error(host), "exists already"));
  check.run = NULL;
  assert_int_equal(tide_check_add(host, &check), TIDE_EINVAL);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  while (asked < 3 && now() < end)
    tide_step(host, 20);
  assert_true(asked >= 3);
  stop(host);
}

static void info_fills_what_the_caller_has_room_for(void **state) {
  tide_host *host = started(PLAIN);
  struct {
    tide_info info;
    char guard;
  } small = {.guard = 7};
  (void)state;
  step_until(host, TIDE_READY);
  memset(&small.info, 0x55, sizeof small.info);
  small.info.size = offsetof(tide_info, work);
  assert_int_equal(tide_get_info(host, &small.info), 0);
  assert_int_equal(small.info.state, TIDE_READY);
  assert_int_equal(small.info.exit_code, -1);
  assert_int_equal(small.info.size, offsetof(tide_info, work));
  assert_int_equal(small.info.tasks, 0x5555555555555555);
  small.info.size = 0;
  assert_int_equal(tide_get_info(host, &small.info), TIDE_EINVAL);
  assert_int_equal(small.guard, 7);
  stop(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_drain_waits_for_the_programs_work),
      cmocka_unit_test(a_kill_does_not_wait),
      cmocka_unit_test(names_of_work_are_checked),
      cmocka_unit_test(work_that_does_not_end_is_named),
      cmocka_unit_test(the_program_hears_what_happens),
      cmocka_unit_test(a_check_in_c_is_asked),
      cmocka_unit_test(info_fills_what_the_caller_has_room_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
