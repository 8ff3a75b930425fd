/* Hosts come and go a thousand times, with all that a host can have when it
 * goes: no descriptor, no thread and no byte more. */

#include "embed_helpers.h"

#ifdef __SANITIZE_THREAD__ /* a host takes fifty times as long */
enum { CYCLES = 60 };
#else
enum { CYCLES = 1000 };
#endif

/* What a cycle has, as bits of its number. */
enum { INTERRUPTED = 1, LISTENS = 2, ABANDONS = 4, POSTED = 8, RUNS = 16 };

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void);
static size_t bytes(void) {
  return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t bytes(void) { /* the leak is looked for in the other build */
  return 0;
}
#endif

static int keep_token(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  *(tide_token **)arg = token;
  return TIDE_PENDING;
}

static void on_post(tide_host *host, void *arg, int status) {
  (void)host;
  (void)status;
  ++*(int *)arg;
}

static tide_host *make(unsigned kind, tide_token **token) {
  tide_options options;
  tide_task_spec task;
  tide_host *host;
  tide_options_init(&options);
  options.flags = (kind & INTERRUPTED) != 0 ? TIDE_INTERRUPT : 0;
  host = new_host_with(&options);
  load(host, (kind & LISTENS) != 0
                 ? PLAIN "tide.http.listen { port = 0 }\n"
                         "tide.startup:phase('world', function() end)"
                 : PLAIN "tide.startup:phase('world', function() end)");
  if ((kind & ABANDONS) != 0) {
    tide_task_spec_init(&task);
    task.phase = "service-stop";
    task.pipeline = TIDE_SHUTDOWN_PIPELINE;
    task.name = "never";
    task.run = keep_token;
    task.arg = token;
    assert_int_equal(tide_task_add(host, &task), 0);
  }
  assert_int_equal(tide_start(host), 0);
  return host;
}

/* One whose task does not end is freed in the middle of its shutdown. */
static void drain(tide_host *host, unsigned kind, tide_token **token) {
  double end = now() + 10;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_drain(host, "test"), 0);
  if ((kind & ABANDONS) == 0)
    step_until(host, TIDE_STOPPED);
  else
    while (*token == NULL && now() < end)
      assert_true(tide_step(host, 20) >= 0);
}

static void cycle(unsigned kind) {
  tide_token *token = NULL;
  tide_host *host = make(kind, &token);
  int called = 0;
  if ((kind & POSTED) != 0) {
    assert_int_equal(tide_post(host, on_post, &called), 0);
    assert_int_equal(tide_work_begin(host, "match"), 0);
    assert_int_equal(tide_work_end(host, "match"), 0);
  }
  if ((kind & RUNS) != 0)
    drain(host, kind, &token);
  tide_free(host);
  assert_int_equal(called, (kind & POSTED) != 0);
  if (token != NULL)
    tide_task_done(token, 0, "the host is gone");
  assert_int_equal(token != NULL, (kind & RUNS) != 0 && (kind & ABANDONS) != 0);
}

static void nothing_is_left_of_a_thousand(void **state) {
  int files, threads;
  size_t taken;
  (void)state;
  for (unsigned i = 0; i < 64; i++) /* what a process makes once */
    cycle(i);
  files = entries_of("/proc/self/fd");
  threads = entries_of("/proc/self/task");
  taken = bytes();
  for (unsigned i = 0; i < CYCLES; i++)
    cycle(i);
  assert_int_equal(entries_of("/proc/self/fd"), files);
  assert_int_equal(entries_of("/proc/self/task"), threads);
  assert_int_equal(bytes(), taken);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_left_of_a_thousand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
