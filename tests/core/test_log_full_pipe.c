/* A reader that does not read: nobody waits, nothing important is lost, and
 * what is lost is counted and said once. */
#include "log_helpers.h"

#define RING ((size_t)256 * 1024)

static int ends[2];

static int open_pipe(void **state) {
  (void)state;
  return pipe(ends);
}

static int close_pipe(void **state) {
  (void)state;
  if (ends[0] >= 0)
    close(ends[0]);
  close(ends[1]);
  return 0;
}

/* Fills the pipe, so that the writer blocks with its first line. */
static void fill_pipe(void) {
  char block[4096];
  int flags = fcntl(ends[1], F_GETFL);

  memset(block, '-', sizeof block);
  fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
  while (write(ends[1], block, sizeof block) > 0)
    ;
  while (write(ends[1], block, 1) > 0)
    ;
  fcntl(ends[1], F_SETFL, flags);
}

#define FLOOD "a line of the flood, of middling size"

/* INFO until some are dropped. */
static void overflow(tide_log *log) {
  while (tide_log_dropped(log) < 100)
    write_message(log, TIDE_LOG_INFO, FLOOD);
}

/* The reader comes back: all that the pipe held and that comes after it. */
static char *read_while_flushing(tide_log *log) {
  char *all = NULL;
  size_t length = 0;
  bool flushed;

  do {
    flushed = tide_log_flush(log, SECOND / 100);
    char *part = read_all(ends[0]);
    size_t more = strlen(part);
    all = realloc(all, length + more + 1);
    assert_non_null(all);
    memcpy(all + length, part, more + 1);
    length += more;
    free(part);
  } while (!flushed);
  return all;
}

static void writing_never_waits(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], RING);
  uint64_t longest = 0;

  fill_pipe();
  for (int i = 0; i < 20000; i++) {
    uint64_t before = uv_hrtime();
    write_message(log, TIDE_LOG_INFO, "a line that has nowhere to go");
    uint64_t took = uv_hrtime() - before;
    if (took > longest)
      longest = took;
  }
  assert_true(tide_log_dropped(log) > 0);
  /* Far more than a copy takes, far less than a wait for the reader: a busy
   * machine may well take the processor away once. */
  assert_true(longest < SECOND / 2);
  close(ends[0]);
  ends[0] = -1;
  tide_log_close(log, SECOND);
}

static void the_descriptor_stays_blocking(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], 0);

  write_message(log, TIDE_LOG_INFO, "x");
  assert_true(tide_log_flush(log, SECOND));
  assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
  tide_log_close(log, SECOND);
}

/* Someone else may have made it so. */
static void a_non_blocking_descriptor_works(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], 0);

  fill_pipe();
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  write_message(log, TIDE_LOG_INFO, "after-the-wait");
  assert_false(tide_log_flush(log, SECOND / 50));
  char *text = read_while_flushing(log);
  assert_non_null(strstr(text, "msg=after-the-wait"));
  free(text);
  tide_log_close(log, SECOND);
}

static void errors_have_a_slice_of_their_own(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], RING);

  fill_pipe();
  overflow(log);
  uint64_t dropped = tide_log_dropped(log);
  write_message(log, TIDE_LOG_INFO, FLOOD);
  assert_int_equal(tide_log_dropped(log), ++dropped);
  for (int i = 0; i < 100; i++) {
    write_message(log, TIDE_LOG_WARN, "kept-warning");
    write_message(log, TIDE_LOG_ERROR, "kept-error");
  }
  assert_int_equal(tide_log_dropped(log), dropped);

  char *all = read_while_flushing(log);
  assert_int_equal(count_of(all, "kept-warning"), 100);
  assert_int_equal(count_of(all, "kept-error"), 100);
  char summary[96];
  snprintf(summary, sizeof summary,
           "msg=\"log records were dropped\" dropped=%zu\n", (size_t)dropped);
  assert_int_equal(count_of(all, "records were dropped"), 1);
  assert_non_null(strstr(all, summary));
  free(all);
  tide_log_close(log, SECOND);
}

static void a_flush_gives_up_in_time(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], 0);

  assert_true(tide_log_flush(log, 0)); /* nothing to wait for */
  fill_pipe();
  write_message(log, TIDE_LOG_INFO, "stuck");
  uint64_t before = uv_hrtime();
  assert_false(tide_log_flush(log, SECOND / 10));
  uint64_t took = uv_hrtime() - before;
  assert_true(took >= SECOND / 10);
  assert_true(took < 2 * SECOND);
  free(read_all(ends[0]));
  assert_true(tide_log_flush(log, 5 * SECOND));
  tide_log_close(log, SECOND);
}

static void close_leaves_a_stuck_writer_behind(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], 0);

  fill_pipe();
  write_message(log, TIDE_LOG_ERROR, "stuck");
  uint64_t before = uv_hrtime();
  tide_log_close(log, SECOND / 10);
  assert_true(uv_hrtime() - before < 2 * SECOND);
  /* It frees itself when the write returns; LeakSanitizer sees to that. */
  free(read_all(ends[0]));
}

static void close_carries_what_is_left(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], 0);

  for (int i = 0; i < 200; i++)
    write_message(log, TIDE_LOG_INFO, "line");
  tide_log_close(log, 5 * SECOND);
  char *text = read_all(ends[0]);
  assert_int_equal(count_of(text, "msg=line\n"), 200);
  free(text);
}

static void nobody_reads_any_more(void **state) {
  (void)state;
  tide_log *log = open_log(ends[1], RING);

  close(ends[0]);
  ends[0] = -1;
  write_message(log, TIDE_LOG_INFO, "into the void"); /* no SIGPIPE either */
  assert_true(tide_log_flush(log, 5 * SECOND));
  for (int i = 0; i < 10000; i++)
    write_message(log, TIDE_LOG_ERROR, "and on it runs");
  assert_int_equal(tide_log_dropped(log), 10001);
  assert_true(tide_log_flush(log, SECOND));
  tide_log_close(log, SECOND);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_pipe, close_pipe)
  const struct CMUnitTest tests[] = {
      TEST(writing_never_waits),
      TEST(the_descriptor_stays_blocking),
      TEST(a_non_blocking_descriptor_works),
      TEST(errors_have_a_slice_of_their_own),
      TEST(a_flush_gives_up_in_time),
      TEST(close_leaves_a_stuck_writer_behind),
      TEST(close_carries_what_is_left),
      TEST(nobody_reads_any_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
