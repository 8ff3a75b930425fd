/* Hosts come and go in one process: what a script has opened goes with its
 * host, whether it ran to its end, was never started, or could not be loaded.
 * The leak sanitizer sees the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <string.h>

#include "moontide.h"

#ifdef __SANITIZE_THREAD__ /* a host takes fifty times as long */
enum { RUNS = 20, HOSTS = 60 };
#else
enum { RUNS = 200, HOSTS = 1000 };
#endif

static const char SCRIPT[] =
    "local tide, uv = require 'moontide', require 'luv'\n"
    "tide.config { manage = false, shutdown = { linger = 0 } }\n"
    "tide.http.listen { port = 0 }\n"
    "tide.component('db', { start = function() tide.sleep(0) end })\n"
    "uv.new_timer():start(60000, 0, function() end)\n"
    "uv.new_pipe(false):open(uv.pipe({}, {}).read)\n"
    "uv.fs_stat('/', function() end)\n"
    "tide.spawn(function() tide.event('never'):wait() end)\n"
    "tide.spawn(function() tide.sleep(0.001) tide.shutdown:run 'admin' end)\n";

static int open_files(void) {
  DIR *dir = opendir("/proc/self/fd");
  int count = 0;
  assert_non_null(dir);
  while (readdir(dir) != NULL)
    count++;
  closedir(dir);
  return count;
}

static tide_host *new_host(void) {
  tide_options options;
  tide_host *host;
  tide_options_init(&options);
  options.flags = TIDE_INTERRUPT;
  assert_int_equal(tide_new(&host, &options), 0);
  return host;
}

static void load(tide_host *host) {
  assert_int_equal(tide_load_buffer(host, "life", SCRIPT, strlen(SCRIPT)), 0);
}

static void run_one(void) {
  tide_host *host = new_host();
  load(host);
  assert_int_equal(tide_start(host), 0);
  assert_int_equal(tide_run(host), 0);
  assert_int_equal(tide_host_state(host), TIDE_STOPPED);
  tide_free(host);
}

static void many_runs_leave_no_file_open(void **state) {
  int before, i;
  (void)state;
  run_one(); /* what the process opens once, it has opened now */
  before = open_files();
  for (i = 0; i < RUNS; i++)
    run_one();
  /* The read end of each script's pipe is luv's and closed; the write end is a
   * number that the script has dropped. */
  assert_int_equal(open_files(), before + RUNS);
}

static void hosts_that_never_ran_leave_no_file_open(void **state) {
  int before = open_files(), i;
  (void)state;
  for (i = 0; i < HOSTS; i++) {
    tide_host *host = new_host();
    if (i % 3 == 1)
      load(host);
    if (i % 3 == 2)
      assert_int_equal(tide_load_buffer(host, "bad", "x = = 1", 7),
                       TIDE_ESCRIPT);
    tide_free(host);
  }
  assert_int_equal(open_files(), before);
}

static void a_host_that_was_started_may_be_freed_before_it_ran(void **state) {
  tide_host *host = new_host();
  (void)state;
  load(host);
  assert_int_equal(tide_start(host), 0);
  tide_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_runs_leave_no_file_open),
      cmocka_unit_test(hosts_that_never_ran_leave_no_file_open),
      cmocka_unit_test(a_host_that_was_started_may_be_freed_before_it_ran),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
