/* A turn of the loop between the two things that tide_kill leaves there: that
 * it is a kill, and the reason. Linked with --wrap=strdup, which stands between
 * them: the turn comes out of that. */
#include "embed_helpers.h"

static tide_host *turned_while_copied;

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text) {
  tide_host *host = turned_while_copied;
  turned_while_copied = NULL;
  if (host != NULL)
    assert_true(tide_step(host, 0) >= 0);
  return __real_strdup(text);
}

static void on_post(tide_host *host, void *arg, int status) {
  (void)host;
  assert_int_equal(status, 0);
  *(bool *)arg = true;
}

/* A plain drain would wait 30 s for the work. */
static void it_stays_a_kill(void **state) {
  tide_host *host = started(PLAIN);
  bool called = false;
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_post(host, on_post, &called), 0);
  turned_while_copied = host;
  assert_int_equal(tide_kill(host, "test"), 0);
  assert_true(called);            /* the loop has looked, and found no reason */
  step_until(host, TIDE_STOPPED); /* ten seconds at most */
  tide_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_stays_a_kill)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
