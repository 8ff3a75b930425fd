/* Several threads write at once: each line is whole, each thread's lines keep
 * their order, and none is lost that was not counted. */
#include "log_helpers.h"

#define THREADS 4
#define LINES 3000

struct job {
  tide_log *log;
  int number;
};

static void write_lines(void *arg) {
  struct job *job = arg;
  static const char padding[] = "........................................";

  for (int i = 0; i < LINES; i++) {
    tide_field fields[] = {
        TIDE_F_INT("thread", job->number),
        TIDE_F_INT("line", i),
        {.key = "padding",
         .type = TIDE_FIELD_STRING,
         .value.string = {padding, (size_t)(i * 7 % 40)}},
    };
    tide_log_write(job->log, TIDE_LOG_INFO, "test", "from a thread", fields, 3);
  }
}

struct reader {
  int fd;
  FILE *file;
  int next[THREADS];
  int lines;
  bool summary;
};

static void read_lines(void *arg) {
  struct reader *reader = arg;
  char line[1024];

  while (fgets(line, sizeof line, reader->file) != NULL) {
    int thread, number;
    if (strstr(line, "were dropped") != NULL) {
      reader->summary = true;
      continue;
    }
    const char *at = strstr(line, "msg=\"from a thread\" thread=");
    assert_non_null(at);
    assert_int_equal(count_of(line, "time="), 1);
    assert_int_equal(
        sscanf(at, "msg=\"from a thread\" thread=%d line=%d", &thread, &number),
        2);
    assert_true(number >= reader->next[thread]);
    reader->next[thread] = number + 1;
    reader->lines++;
  }
}

static void run_with_ring(size_t ring) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  tide_log *log = open_log(ends[1], ring);
  struct reader reader = {.file = fdopen(ends[0], "r")};
  struct job jobs[THREADS];
  uv_thread_t threads[THREADS], reading;

  assert_int_equal(uv_thread_create(&reading, read_lines, &reader), 0);
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (struct job){.log = log, .number = i};
    assert_int_equal(uv_thread_create(&threads[i], write_lines, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; i++)
    uv_thread_join(&threads[i]);
  assert_true(tide_log_flush(log, 20 * SECOND));
  uint64_t dropped = tide_log_dropped(log);
  tide_log_close(log, SECOND);
  close(ends[1]);
  uv_thread_join(&reading);
  fclose(reader.file);
  assert_int_equal((uint64_t)reader.lines + dropped, THREADS * LINES);
  assert_int_equal(reader.summary, dropped > 0);
}

static void lines_are_whole_and_in_order(void **state) {
  (void)state;
  run_with_ring(0);
}

/* The ring wraps many times and drops. */
static void the_same_with_a_small_ring(void **state) {
  (void)state;
  run_with_ring(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_are_whole_and_in_order),
      cmocka_unit_test(the_same_with_a_small_ring),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
