/* Where the lines go: levels, callback, files, rotation, a full disk. */
#include "log_helpers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

static char directory[] = "/tmp/tide_log_XXXXXX";
static char path[64], rotated[64];

static int make_directory(void **state) {
  (void)state;
  if (mkdtemp(directory) == NULL)
    return -1;
  snprintf(path, sizeof path, "%s/app.log", directory);
  snprintf(rotated, sizeof rotated, "%s/app.log.1", directory);
  return 0;
}

static int remove_directory(void **state) {
  (void)state;
  unlink(path);
  unlink(rotated);
  return rmdir(directory);
}

static void assert_file_has(const char *file, const char *what, size_t times) {
  char *text = read_file(file);

  assert_int_equal(count_of(text, what), times);
  free(text);
}

static void levels_below_the_set_one_are_skipped(void **state) {
  (void)state;
  tide_log *log = open_log(1, 0);

  assert_false(tide_log_enabled(log, TIDE_LOG_DEBUG));
  assert_true(tide_log_enabled(log, TIDE_LOG_INFO));
  tide_log_set_level(log, TIDE_LOG_ERROR);
  assert_false(tide_log_enabled(log, TIDE_LOG_WARN));
  assert_true(tide_log_enabled(log, TIDE_LOG_ERROR));
  write_message(log, TIDE_LOG_WARN, "not written");
  tide_log_close(log, SECOND);
}

static void without_a_target_nothing_is_enabled(void **state) {
  (void)state;
  tide_log *log = open_log(-1, 0);

  assert_false(tide_log_enabled(log, TIDE_LOG_ERROR));
  write_message(log, TIDE_LOG_ERROR, "x");
  assert_int_equal(tide_log_dropped(log), 0);
  tide_log_close(log, SECOND);
}

struct heard {
  int count;
  tide_log_level level;
  char line[256];
};

static void hear(void *arg, tide_log_level level, const char *line,
                 size_t length) {
  struct heard *heard = arg;

  assert_int_equal(strlen(line), length);
  heard->count++;
  heard->level = level;
  snprintf(heard->line, sizeof heard->line, "%s", line);
}

static void a_program_may_take_the_lines(void **state) {
  (void)state;
  struct heard heard = {0};
  tide_log_options options = {.fd = -1,
                              .fn = hear,
                              .arg = &heard,
                              .level = TIDE_LOG_INFO,
                              .format = TIDE_LOG_JSON};
  tide_log *log;

  assert_int_equal(tide_log_open(&log, &options), 0);
  write_message(log, TIDE_LOG_WARN, "to the program");
  write_message(log, TIDE_LOG_DEBUG, "not this");
  assert_int_equal(heard.count, 1);
  assert_int_equal(heard.level, TIDE_LOG_WARN);
  assert_non_null(strstr(heard.line, "\"msg\":\"to the program\"}"));
  tide_log_close(log, SECOND);
}

static void lines_go_to_the_target_of_their_time(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  tide_log *log = open_log(ends[1], 0);

  write_message(log, TIDE_LOG_INFO, "first");
  assert_int_equal(tide_log_set_file(log, path), 0);
  write_message(log, TIDE_LOG_INFO, "second");
  assert_true(tide_log_flush(log, 5 * SECOND));
  assert_int_equal(tide_log_set_file(log, NULL), 0);
  write_message(log, TIDE_LOG_INFO, "third");
  assert_true(tide_log_flush(log, 5 * SECOND));
  tide_log_close(log, SECOND);
  char *text = read_all(ends[0]);
  assert_int_equal(count_of(text, "msg="), 2);
  assert_non_null(strstr(text, "first"));
  assert_non_null(strstr(text, "third"));
  free(text);
  assert_file_has(path, "msg=second\n", 1);
  unlink(path);
  close(ends[0]);
  close(ends[1]);
}

static void reopen_follows_a_rotation(void **state) {
  (void)state;
  struct stat status;
  tide_log *log = open_log(-1, 0);

  assert_int_equal(tide_log_reopen(log), 0); /* no file: nothing to do */
  assert_int_equal(tide_log_set_file(log, path), 0);
  write_message(log, TIDE_LOG_INFO, "one");
  assert_true(tide_log_flush(log, 5 * SECOND));
  assert_int_equal(rename(path, rotated), 0);
  write_message(log, TIDE_LOG_INFO, "two");
  assert_true(tide_log_flush(log, 5 * SECOND));
  assert_int_equal(tide_log_reopen(log), 0);
  write_message(log, TIDE_LOG_INFO, "three");
  tide_log_close(log, 5 * SECOND);
  assert_file_has(rotated, "msg=one\n", 1);
  assert_file_has(rotated, "msg=two\n", 1);
  assert_file_has(rotated, "msg=three\n", 0);
  assert_file_has(path, "msg=three\n", 1);
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_mode & 0007, 0); /* not for everybody */
  unlink(rotated);
  unlink(path);
}

static void a_file_that_cannot_be_opened_changes_nothing(void **state) {
  (void)state;
  tide_log *log = open_log(-1, 0);

  assert_int_equal(tide_log_set_file(log, path), 0);
  assert_int_equal(tide_log_set_file(log, directory), -EISDIR);
  assert_int_equal(tide_log_set_file(log, "/no/such/place"), -ENOENT);
  assert_int_equal(mkfifo(rotated, 0600), 0);
  assert_int_equal(tide_log_set_file(log, rotated), -ENXIO);
  write_message(log, TIDE_LOG_INFO, "still here");
  tide_log_close(log, 5 * SECOND);
  assert_file_has(path, "still here", 1);
  unlink(rotated);
  unlink(path);
}

static void a_full_disk_costs_records_not_the_log(void **state) {
  (void)state;
  tide_log *log = open_log(-1, 0);

  assert_int_equal(tide_log_set_file(log, "/dev/full"), 0);
  write_message(log, TIDE_LOG_ERROR, "lost");
  write_message(log, TIDE_LOG_ERROR, "lost");
  assert_true(tide_log_flush(log, 5 * SECOND));
  assert_int_equal(tide_log_dropped(log), 2);
  assert_int_equal(tide_log_set_file(log, path), 0);
  write_message(log, TIDE_LOG_INFO, "room again");
  tide_log_close(log, 5 * SECOND);
  assert_file_has(path, "room again", 1);
  assert_file_has(path, "dropped=2\n", 1);
  unlink(path);
}

static void the_writer_takes_no_signals(void **state) {
  (void)state;
  sigset_t set, before;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  tide_log *log = open_log(ends[1], 0);

  write_message(log, TIDE_LOG_INFO, "starts the thread");
  assert_true(tide_log_flush(log, 5 * SECOND));
  /* Blocked here too, so with a thread that took it the process would end. */
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  kill(getpid(), SIGUSR2);
  int number = 0;
  assert_int_equal(sigwait(&set, &number), 0);
  assert_int_equal(number, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  tide_log_close(log, SECOND);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(levels_below_the_set_one_are_skipped),
      cmocka_unit_test(without_a_target_nothing_is_enabled),
      cmocka_unit_test(a_program_may_take_the_lines),
      cmocka_unit_test(lines_go_to_the_target_of_their_time),
      cmocka_unit_test(reopen_follows_a_rotation),
      cmocka_unit_test(a_file_that_cannot_be_opened_changes_nothing),
      cmocka_unit_test(a_full_disk_costs_records_not_the_log),
      cmocka_unit_test(the_writer_takes_no_signals),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
