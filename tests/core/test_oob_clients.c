/* Clients of the out-of-band line: how many, how much of what they send, and
 * that none of them keeps the watchdog from its work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "oob_helpers.h"

/* ---- requests --------------------------------------------------------- */

static void answers_carry_the_id_of_the_question(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  assert_has(oob_ask(c, "{\"id\":17,\"type\":\"status\"}"),
             "{\"id\":17,\"type\":\"value\",\"status\":{");
  assert_has(c->text, "{\"id\":17,\"type\":\"done\",\"status\":\"ok\"");
  assert_has(oob_ask(c, "{\"id\":-1.5e+9,\"type\":\"status\"}"),
             "{\"id\":-1.5e+9,\"type\":\"done\"");
  assert_has(oob_ask(c, " { \"type\" : \"where\" , \"id\" : \"a-1\" } \r"),
             "{\"id\":\"a-1\",\"type\":\"done\",\"status\":\"ok\"");
  oob_hang_up(c);
}

static void what_is_not_understood_is_said(void **state) {
  static const struct {
    const char *line;
    const char *status;
    const char *message;
  } cases[] = {
      {"wher", "unknown", "unknown request \\\"wher\\\""},
      {"", "unknown", "there are where, status, interrupt and abort"},
      {"{\"id\":1,\"type\":\"eval\"}", "unknown", "\\\"eval\\\""},
      {"{}", "error", "lacks a type"},
      {"{\"type\":7}", "error", "lacks a type"},
      {"{\"type\":\"where\"", "error", "a flat JSON object"},
      {"{\"type\":\"where\"} x", "error", "a flat JSON object"},
      {"{\"type\":\"where\",}", "error", "a flat JSON object"},
      {"{\"type\":{\"a\":1}}", "error", "a flat JSON object"},
      {"{\"id\":[1],\"type\":\"where\"}", "error", "a flat JSON object"},
      {"{\"id\":true,\"type\":\"where\"}", "error", "a number or a short"},
      {"{\"id\":1x,\"type\":\"where\"}", "error", "a number or a short"},
      {"{\"id\":01,\"type\":\"where\"}", "error", "a number or a short"},
      {"{\"id\":-,\"type\":\"where\"}", "error", "a number or a short"},
      {"{\"id\":1.,\"type\":\"where\"}", "error", "a number or a short"},
      {"{\"id\":1e,\"type\":\"where\"}", "error", "a number or a short"},
      {"{\"id\":\"\\q\",\"type\":\"where\"}", "error", "without escapes"},
      {"{\"id\":\"an id that is longer than what is kept of it, far longer, "
       "too long\",\"type\":\"where\"}",
       "error", "a short string"},
      {"{\"type\":\"where\\", "error", "a flat JSON object"},
  };
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  char status[64];
  size_t i;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(status, sizeof status, "\"status\":\"%s\"", cases[i].status);
    assert_has(oob_ask(c, cases[i].line), status);
    assert_has(c->text, cases[i].message);
  }
  oob_hang_up(c);
}

static void lines_that_come_together_are_answered_in_order(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  oob_send(c, "{\"id\":1,\"type\":\"status\"}\n{\"id\":2,\"type\":\"where\"}\n"
              "{\"id\":3,\"type\":\"st");
  assert_true(oob_read(c, "{\"id\":2,\"type\":\"done\""));
  assert_true(strstr(c->text, "{\"id\":1,\"type\":\"done\"") <
              strstr(c->text, "{\"id\":2,\"type\":\"value\""));
  oob_send(c, "atus\"}\n");
  assert_true(oob_read(c, "{\"id\":3,\"type\":\"done\""));
  oob_hang_up(c);
}

/* As `echo where | nc -U` does it. */
static void who_sends_no_more_gets_its_answers(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  oob_send(c, "where\nstatus\n");
  assert_int_equal(shutdown(c->fd, SHUT_WR), 0);
  assert_closed(c);
  assert_has(c->text, "\"where\":{");
  assert_has(c->text, "\"in_flight\":");
  oob_hang_up(c);
}

static void a_browser_is_sent_away(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  oob_send(c, "POST /abort HTTP/1.1\r\nabort\r\n\r\n");
  assert_closed(c);
  assert_int_equal(c->length, 0);
  oob_hang_up(c);
}

static void inspect_lets_look_alone(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  tide_watchdog_set_policy(w->watchdog, TIDE_POLICY_INSPECT);
  assert_has(oob_ask(c, "interrupt"), "\"status\":\"refused\"");
  assert_has(oob_ask(c, "abort"), "console.policy is inspect");
  assert_has(oob_ask(c, "where"), "\"status\":\"ok\"");
  assert_has(oob_ask(c, "status"), "\"status\":\"ok\"");
  oob_hang_up(c);
}

/* ---- bounds ----------------------------------------------------------- */

static void a_line_has_4_kib(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  char text[4097];
  memset(text, ' ', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  memcpy(text + 4089, "status\n", 8);
  oob_send(c, text); /* 4095 bytes and the end */
  assert_true(oob_read(c, "\"status\":\"ok\""));
  oob_ask(c, "{\"id\":7,\"type\":\"status\"}");
  memset(text, 'x', sizeof text - 1);
  oob_send(c, text);
  assert_closed(c);
  assert_has(c->text, "{\"type\":\"error\",\"message\":\"a line has at most "
                      "4095 bytes\"}");
  oob_hang_up(c);
}

/* Forgotten clients must not keep out who is needed. */
static void the_fifth_takes_the_place_of_the_longest_silent(void **state) {
  oob_world *w = *state;
  oob_client *c[5];
  int i;
  for (i = 0; i < 4; i++) {
    c[i] = oob_connect(w->path);
    oob_ask(c[i], "status");
  }
  oob_ask(c[0], "status"); /* now the second was silent longest */
  c[4] = oob_connect(w->path);
  oob_ask(c[4], "status");
  assert_closed(c[1]);
  oob_ask(c[0], "status");
  oob_ask(c[2], "status");
  oob_ask(c[3], "status");
  for (i = 0; i < 5; i++)
    oob_hang_up(c[i]);
}

static uint64_t cpu_time(void) {
  struct timespec ts;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * TIDE_SEC + (uint64_t)ts.tv_nsec;
}

static int count_fds(void) {
  int fd, count = 0;
  for (fd = 0; fd < 256; fd++)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

static void ten_thousand_clients_leave_nothing(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  int i, before;
  oob_ask(c, "status");
  oob_hang_up(c);
  before = count_fds() + 1; /* the next client, or its end not seen yet */
  for (i = 0; i < 10000; i++) {
    c = oob_connect(w->path);
    if (i % 100 == 0)
      oob_ask(c, "where");
    oob_hang_up(c);
  }
  c = oob_connect(w->path);
  oob_ask(c, "status");
  assert_true(count_fds() <= before + 4); /* of four places */
  oob_hang_up(c);
}

/* It is one that somebody wants to look into, and polling on a socket that
 * nothing can be accepted from would take a whole processor. */
static void a_process_without_descriptors_can_be_looked_into(void **state) {
  oob_world *w = *state;
  int fds[1024], count = 0, reserve = open("/dev/null", O_RDONLY);
  oob_client *first, *second, *before = oob_connect(w->path);
  struct rlimit old, few = {0};
  uint64_t used;
  oob_ask(before, "status"); /* it listens, and has its spare one */
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  few = (struct rlimit){256, old.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  while (count < 1024 && (fds[count] = open("/dev/null", O_RDONLY)) >= 0)
    count++;
  close(reserve);
  first = oob_connect(w->path); /* takes the last one for itself */
  assert_has(oob_ask(first, "status"), "\"status\":\"ok\"");
  close(fds[--count]);
  second = oob_connect(w->path); /* for which none is left */
  used = cpu_time();
  usleep(300 * 1000);
  assert_true(cpu_time() - used < 150 * TIDE_MS);
  oob_hang_up(first);
  assert_has(oob_ask(second, "status"), "\"status\":\"ok\"");
  oob_hang_up(second);
  oob_hang_up(before);
  while (count > 0)
    close(fds[--count]);
  setrlimit(RLIMIT_NOFILE, &old);
}

/* Opened when there are some again. */
static void descriptors_that_come_back_are_enough(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  struct rlimit old, none;
  (void)state;
  getrlimit(RLIMIT_NOFILE, &old);
  none = old;
  none.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &none);
  oob_start(w, &options);
  usleep(200 * 1000); /* it is tried after 50 ms */
  assert_int_equal(access(w->path, F_OK), -1);
  setrlimit(RLIMIT_NOFILE, &old);
  oob_wait_file(w->path, true);
  tide_watchdog_stop(w->watchdog);
  oob_remove(w);
}

/* ---- the watchdog's own work ------------------------------------------ */

typedef struct overrun {
  _Atomic uint64_t at;
} overrun;

static void on_overrun(void *arg, tide_total which) {
  (void)which;
  atomic_store(&((overrun *)arg)->at, tide_clock_mono());
}

typedef struct flood {
  const char *path;
  _Atomic bool stop;
} flood;

/* Sends as fast as it can and reads nothing. */
static void *never_read(void *arg) {
  flood *f = arg;
  oob_client *c = oob_connect(f->path);
  while (!atomic_load(&f->stop))
    if (send(c->fd, "where\nwhere\n", 12, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
      usleep(100);
  oob_hang_up(c);
  return NULL;
}

/* Asks and reads as fast as it can. */
static void *ask_on(void *arg) {
  flood *f = arg;
  oob_client *c = oob_connect(f->path);
  while (!atomic_load(&f->stop))
    oob_ask(c, "where");
  oob_hang_up(c);
  return NULL;
}

static uint64_t median_delay(tide_watchdog *watchdog, overrun *seen) {
  uint64_t delays[21], t;
  int i, j;
  for (i = 0; i < 21; i++) {
    uint64_t at = tide_clock_mono() + 30 * TIDE_MS;
    atomic_store(&seen->at, 0);
    tide_watchdog_total(watchdog, TIDE_TOTAL_SHUTDOWN, at);
    while (atomic_load(&seen->at) == 0) {
      assert_true(tide_clock_mono() < at + OOB_BOUND);
      usleep(1000);
    }
    assert_true(atomic_load(&seen->at) >= at);
    delays[i] = atomic_load(&seen->at) - at;
    for (j = i; j > 0 && delays[j] < delays[j - 1]; j--) {
      t = delays[j];
      delays[j] = delays[j - 1];
      delays[j - 1] = t;
    }
  }
  return delays[10];
}

/* The median, since on a busy machine any one of them may wait for a processor;
 * with clients that it waited for, each would be late. */
static void totals_end_to_the_millisecond_whatever_clients_do(void **state) {
  overrun seen = {0};
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  flood f = {.path = w->path};
  pthread_t threads[2];
  oob_client *silent;
  (void)state;
  options.on_overrun = on_overrun;
  options.arg = &seen;
  oob_start(w, &options);
  oob_wait_file(w->path, true);
  silent = oob_connect(w->path);
  oob_send(silent, "wher"); /* and says no more */
  pthread_create(&threads[0], NULL, never_read, &f);
  pthread_create(&threads[1], NULL, ask_on, &f);
  assert_true(median_delay(w->watchdog, &seen) < 3 * TIDE_MS);
  atomic_store(&f.stop, true);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  oob_hang_up(silent);
  tide_watchdog_stop(w->watchdog);
  oob_remove(w);
}

#define WITH_LINE(test)                                                        \
  cmocka_unit_test_setup_teardown(test, oob_setup, oob_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_LINE(answers_carry_the_id_of_the_question),
      WITH_LINE(what_is_not_understood_is_said),
      WITH_LINE(lines_that_come_together_are_answered_in_order),
      WITH_LINE(who_sends_no_more_gets_its_answers),
      WITH_LINE(a_browser_is_sent_away),
      WITH_LINE(inspect_lets_look_alone),
      WITH_LINE(a_line_has_4_kib),
      WITH_LINE(the_fifth_takes_the_place_of_the_longest_silent),
      WITH_LINE(a_process_without_descriptors_can_be_looked_into),
      cmocka_unit_test(descriptors_that_come_back_are_enough),
      WITH_LINE(ten_thousand_clients_leave_nothing),
      cmocka_unit_test(totals_end_to_the_millisecond_whatever_clients_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
