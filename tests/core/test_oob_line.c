/* The out-of-band line: where it is, for how long, and what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "oob_helpers.h"

/* ---- the file --------------------------------------------------------- */

static void it_is_its_user_s_alone(void **state) {
  oob_world *w = *state;
  struct stat st;
  assert_int_equal(stat(w->path, &st), 0);
  assert_true(S_ISSOCK(st.st_mode));
  assert_int_equal(st.st_mode & 0777, 0600);
  assert_int_equal(st.st_uid, geteuid());
}

static void nothing_is_there_in_the_first_50_ms(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  (void)state;
  oob_start(w, &options);
  oob_wait_file(w->path, true);
  assert_true(tide_clock_mono() - options.started_at >= 50 * TIDE_MS);
  tide_watchdog_stop(w->watchdog);
  assert_int_equal(access(w->path, F_OK), -1);
  oob_remove(w);
}

static void none_is_made_without_the_option(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  (void)state;
  options.line = false;
  oob_start(w, &options);
  usleep(120 * 1000); /* with it, the file would be there after 50 ms */
  assert_int_equal(access(w->path, F_OK), -1);
  tide_watchdog_stop(w->watchdog);
  oob_remove(w);
}

static void a_file_that_a_dead_process_has_left_is_replaced(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  oob_client *c;
  (void)state;
  snprintf(at.sun_path, sizeof at.sun_path, "%s", w->path);
  assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
  close(fd);
  oob_start(w, &options);
  c = oob_connect(w->path);
  assert_has(oob_ask(c, "status"), "\"status\":\"ok\"");
  oob_hang_up(c);
  tide_watchdog_stop(w->watchdog);
  oob_remove(w);
}

static void a_file_that_is_somebody_else_s_stays(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  int fd;
  oob_ask(c, "status"); /* by now it knows its own */
  assert_int_equal(unlink(w->path), 0);
  fd = open(w->path, O_CREAT | O_EXCL | O_WRONLY, 0600);
  assert_true(fd >= 0);
  close(fd);
  tide_watchdog_leave(w->watchdog);
  assert_int_equal(access(w->path, F_OK), 0);
  oob_hang_up(c);
}

static void who_ends_the_process_removes_it(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  assert_has(oob_ask(c, "status"), "\"status\":\"ok\"");
  tide_watchdog_leave(w->watchdog);
  assert_int_equal(access(w->path, F_OK), -1);
  assert_has(oob_ask(c, "status"), "\"status\":\"ok\""); /* to the end */
  oob_hang_up(c);
}

static void it_moves_when_the_name_is_known(void **state) {
  oob_world *w = *state;
  char first[100];
  memcpy(first, w->path, sizeof first);
  snprintf(w->path, sizeof w->path, "%s/a_name-%d.oob", w->directory,
           (int)getpid());
  assert_int_equal(
      tide_watchdog_place(w->watchdog, w->directory, "a/name", false), 0);
  oob_wait_file(w->path, true);
  assert_int_equal(access(first, F_OK), -1);
}

static void without_a_name_it_is_nowhere(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  oob_ask(c, "status");
  assert_int_equal(tide_watchdog_place(w->watchdog, NULL, NULL, false), 0);
  assert_closed(c);
  oob_wait_file(w->path, false);
  oob_hang_up(c);
}

static void the_policy_off_closes_it(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  oob_ask(c, "status");
  tide_watchdog_set_policy(w->watchdog, TIDE_POLICY_OFF);
  assert_closed(c);
  oob_wait_file(w->path, false);
  oob_hang_up(c);
  tide_watchdog_set_policy(w->watchdog, TIDE_POLICY_INSPECT);
  oob_wait_file(w->path, true);
}

static void a_directory_of_others_is_none(void **state) {
  oob_world *w = oob_new();
  tide_watchdog_options options = oob_options(w);
  int saved = dup(STDERR_FILENO), fds[2];
  char text[4096];
  ssize_t got;
  (void)state;
  assert_int_equal(pipe(fds), 0);
  dup2(fds[1], STDERR_FILENO);
  assert_int_equal(chmod(w->directory, 0755), 0);
  oob_start(w, &options);
  got = read(fds[0], text, sizeof text - 1);
  dup2(saved, STDERR_FILENO);
  assert_true(got > 0);
  text[got] = '\0';
  assert_has(text, "no out-of-band line");
  assert_has(text, "its mode is 0755");
  assert_int_equal(access(w->path, F_OK), -1);
  tide_watchdog_stop(w->watchdog);
  close(saved);
  close(fds[0]);
  close(fds[1]);
  oob_remove(w);
}

/* ---- what it says ----------------------------------------------------- */

static void where_says_what_the_loop_has_noted(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  const char *said;
  tide_watchdog_phase(w->watchdog, "db");
  tide_watchdog_begin(w->watchdog, "db/connect", "app.lua:12");
  tide_watchdog_begin(w->watchdog, "a \"quoted\"\nname", "");
  said = oob_ask(c, "where");
  assert_has(said, "{\"type\":\"value\",\"where\":{\"name\":\"test\",\"pid\":");
  assert_has(said, "\"state\":\"starting\",\"state_ms\":");
  assert_has(said, "\"phase\":\"db\",\"phase_ms\":");
  assert_has(said, "\"lua\":null");
  assert_has(said, "{\"what\":\"db/connect\",\"site\":\"app.lua:12\",\"ms\":");
  assert_has(said, "{\"what\":\"a \\\"quoted\\\"\\nname\",\"site\":\"\"");
  assert_has(said, "\"more\":0}");
  assert_has(said, "\"text\":\"starting for ");
  assert_has(said, "{\"type\":\"done\",\"status\":\"ok\",\"ms\":");
  oob_hang_up(c);
}

/* Each of the 64 as long as it may be, and every byte of it escaped: the line
 * ends all the same, and says how many it has left out. */
static void much_is_cut_to_the_room_that_there_is(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  char wild[100];
  const char *said, *end;
  int i;
  memset(wild, '\1', sizeof wild - 1);
  wild[sizeof wild - 1] = '\0';
  for (i = 0; i < 66; i++)
    tide_watchdog_begin(w->watchdog, wild, wild);
  said = oob_ask(c, "where");
  assert_has(said, "\\u0001\",\"site\":\"\\u0001");
  assert_lacks(said, "\"more\":0}");
  end = strchr(said, '\n');
  assert_memory_equal(end - 2, "\"}", 2);
  assert_memory_equal(end + 1, "{\"type\":\"done\"", 14);
  oob_hang_up(c);
}

static void status_says_state_and_totals(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  tide_work_source source = {.name = "http"};
  const char *said = oob_ask(c, "status");
  assert_has(said, "\"startup_left_ms\":null,\"shutdown_left_ms\":null");
  assert_has(said, "\"in_flight\":0");
  tide_lifecycle_move(&w->lifecycle, TIDE_READY);
  tide_lifecycle_move(&w->lifecycle, TIDE_DRAINING);
  tide_work_add_source(&w->work, &source);
  tide_work_enter(&source);
  tide_watchdog_total(w->watchdog, TIDE_TOTAL_SHUTDOWN,
                      tide_clock_mono() + 3600 * TIDE_SEC);
  said = oob_ask(c, "status");
  assert_has(said, "\"state\":\"draining\"");
  assert_has(said, "\"shutdown_left_ms\":3599");
  assert_has(said, "\"in_flight\":1");
  tide_work_leave(&source);
  oob_hang_up(c);
}

static void it_knows_a_loop_that_waits_from_a_stuck_one(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  tide_beat_turn(&w->beat, tide_clock_mono() / TIDE_MS - 5000);
  assert_has(oob_ask(c, "status"), "\"loop\":{\"alive_ms\":50");
  assert_has(c->text, "\"waits\":false}");
  tide_beat_wait(&w->beat);
  assert_has(oob_ask(c, "status"), "\"waits\":true}");
  oob_hang_up(c);
}

/* ---- idle ------------------------------------------------------------- */

static long switches_of(const char *name) {
  char path[300], line[128];
  long count = -1;
  struct dirent *entry;
  DIR *tasks = opendir("/proc/self/task");
  while ((entry = readdir(tasks)) != NULL) {
    bool ours = false;
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
      if (strncmp(line, "Name:", 5) == 0)
        ours = strstr(line, name) != NULL;
      if (ours && strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
        count = strtol(line + 24, NULL, 10);
    }
    if (file != NULL)
      fclose(file);
  }
  closedir(tasks);
  return count;
}

/* With a client that says nothing, and the line open. */
static void it_never_wakes_an_idle_process(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  long before;
  oob_ask(c, "status");
  usleep(100 * 1000); /* it looks around a last time, then sleeps for good */
  before = switches_of("tide-watchdog");
  assert_true(before > 0);
  usleep(1500 * 1000);
  assert_int_equal(switches_of("tide-watchdog"), before);
  oob_hang_up(c);
}

/* What the child opens may get the numbers of what was closed. */
static int rings_into_a_file(oob_world *w) {
  struct stat st;
  FILE *files[32];
  int i;
  tide_watchdog_after_fork(w->watchdog);
  for (i = 0; i < 32; i++)
    files[i] = tmpfile();
  tide_watchdog_signal(w->watchdog);
  for (i = 0; i < 32; i++)
    if (files[i] == NULL || fstat(fileno(files[i]), &st) != 0 ||
        st.st_size != 0)
      return 1;
  return 0;
}

static void a_child_rings_nobody(void **state) {
  oob_world *w = *state;
  oob_client *c = oob_connect(w->path);
  int status;
  pid_t child;
  oob_ask(c, "status");
  child = fork();
  assert_true(child >= 0);
  if (child == 0)
    _exit(rings_into_a_file(w));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_has(oob_ask(c, "status"), "\"status\":\"ok\""); /* the parent's */
  oob_hang_up(c);
}

#define WITH_LINE(test)                                                        \
  cmocka_unit_test_setup_teardown(test, oob_setup, oob_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_LINE(it_is_its_user_s_alone),
      cmocka_unit_test(nothing_is_there_in_the_first_50_ms),
      cmocka_unit_test(none_is_made_without_the_option),
      cmocka_unit_test(a_file_that_a_dead_process_has_left_is_replaced),
      WITH_LINE(a_file_that_is_somebody_else_s_stays),
      WITH_LINE(who_ends_the_process_removes_it),
      WITH_LINE(it_moves_when_the_name_is_known),
      WITH_LINE(without_a_name_it_is_nowhere),
      WITH_LINE(the_policy_off_closes_it),
      cmocka_unit_test(a_directory_of_others_is_none),
      WITH_LINE(where_says_what_the_loop_has_noted),
      WITH_LINE(much_is_cut_to_the_room_that_there_is),
      WITH_LINE(status_says_state_and_totals),
      WITH_LINE(it_knows_a_loop_that_waits_from_a_stuck_one),
      WITH_LINE(it_never_wakes_an_idle_process),
      WITH_LINE(a_child_rings_nobody),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
