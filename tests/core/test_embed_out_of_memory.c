/* Memory that is refused, wherever that is: a host is not made, or its script
 * fails, or its run does; the program goes on, and nothing leaks. */
#include <lua.h>
#include <uv.h>

#include "embed_helpers.h"

/* Fails the allocation of this number, and with `for_good` all that follow. */
struct faults {
  long at;
  long count;
  bool for_good;
  size_t bytes;
};

static void *faulty(void *arg, void *block, size_t old_size, size_t new_size) {
  struct faults *faults = arg;
  size_t before = block != NULL ? old_size : 0;
  void *result;
  if (new_size == 0) {
    free(block);
    faults->bytes -= before;
    return NULL;
  }
  if (new_size > before) { /* Lua counts on it that shrinking works */
    faults->count++;
    if (faults->at > 0 && (faults->for_good ? faults->count >= faults->at
                                            : faults->count == faults->at))
      return NULL;
  }
  result = realloc(block, new_size);
  assert_non_null(result);
  faults->bytes += new_size - before;
  return result;
}

static const char SCRIPT[] =
    PLAIN "local uv = require 'luv'\n"
          "uv.new_timer():start(60000, 0, print)\n"
          "local server = uv.new_tcp()\n"
          "server:bind('127.0.0.1', 0)\n"
          "server:listen(1, print)\n"
          "tide.http.listen { port = 0 }:get('/', function() return 'x' end)\n"
          "tide.startup:phase('world', function() tide.sleep(0) end)\n"
          "tide.check('fine', { every = 1 }, function() return true end)\n"
          "tide.shutdown:task('service-stop', 'saved', function()\n"
          "  tide.scope(function(s) s:spawn(tide.sleep, 0) end)\n"
          "  tide.json.encode { list = { 1, 2.5 }, text = ('y'):rep(3000) }\n"
          "end)\n"
          "tide.spawn(function() tide.sleep(0.001) end)\n";

static int fine(tide_host *host, void *arg) {
  (void)host;
  (void)arg;
  return 0;
}

static int run(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  (void)arg;
  tide_task_done(token, 0, "done");
  return TIDE_PENDING;
}

static void on_event(tide_host *host, const tide_event *event, void *arg) {
  (void)host;
  (void)event;
  (void)arg;
}

static void add_parts(tide_host *host) {
  tide_phase_spec phase;
  tide_task_spec task;
  tide_check_spec check;
  tide_phase_spec_init(&phase);
  phase.name = "c";
  tide_phase_add(host, &phase);
  tide_task_spec_init(&task);
  task.phase = "c";
  task.name = "task";
  task.run = run;
  tide_task_add(host, &task);
  tide_check_spec_init(&check);
  check.name = "c";
  check.run = fine;
  tide_check_add(host, &check);
  tide_on_event(host, on_event, NULL);
}

static void post(tide_host *host, void *arg, int status) {
  (void)arg;
  if (status == 0) {
    tide_info info = {.size = sizeof info};
    tide_get_info(host, &info);
  }
}

static void turn_to(tide_host *host, tide_state state) {
  for (int i = 0; i < 60 && tide_host_state(host) < state; i++)
    assert_true(tide_step(host, 1) >= 0);
}

static void use(tide_host *host) {
  int rc = tide_load_buffer(host, "test", SCRIPT, strlen(SCRIPT));
  if (rc != 0)
    assert_true(rc == TIDE_ESCRIPT || rc == TIDE_ELUA || rc == UV_ENOMEM);
  add_parts(host);
  rc = tide_start(host);
  if (rc != 0)
    return;
  turn_to(host, TIDE_READY);
  tide_post(host, post, NULL);
  tide_work_begin(host, "match");
  tide_step(host, 0);
  tide_work_end(host, "match");
  tide_drain(host, "test");
  turn_to(host, TIDE_STOPPED);
}

static long one(long at, bool for_good, bool interrupt) {
  struct faults faults = {.at = at, .for_good = for_good};
  tide_options options;
  tide_host *host;
  int rc;
  tide_options_init(&options);
  options.alloc = faulty;
  options.alloc_arg = &faults;
  options.flags = interrupt ? TIDE_INTERRUPT : 0;
  rc = tide_new(&host, &options);
  if (rc == 0) {
    use(host);
    tide_free(host);
  } else {
    assert_null(host);
  }
  assert_int_equal(faults.bytes, 0);
  return faults.count;
}

/* Each so many: all of them (TIDE_FAULT_STEP=1) take minutes. The steps of two
 * runs are not in step with each other, nor with what a host repeats. */
static void nothing_breaks(bool for_good) {
  const char *given = getenv("TIDE_FAULT_STEP");
  long all = one(0, false, false), step = given != NULL ? atol(given) : 83;
  assert_true(all > 1000 && step > 0);
  for (long at = 1; at <= all; at += step)
    one(at, for_good, at % 2 == 0);
}

static void one_that_fails_breaks_nothing(void **state) {
  (void)state;
  nothing_breaks(false);
}

static void none_left_breaks_nothing(void **state) {
  (void)state;
  nothing_breaks(true);
}

/* ---- tasks -----------------------------------------------------------------
 */

/* Tasks begin while the allocation fails, wait, and go on behind a collection:
 * whatever they run in must be known to the collector. */
static long tasks_begin(long at) {
  static const char script[] =
      PLAIN "ended = 0\n"
            "local function work() tide.sleep(0) tide.sleep(0.002) "
            "ended = ended + 1 end\n"
            "function begin(n) for _ = 1, n do tide.spawn(work) end end\n"
            "tide.spawn(function() tide.sleep(60) end)\n";
  struct faults faults = {.for_good = true};
  tide_options options;
  tide_host *host;
  lua_State *L;
  long count;
  tide_options_init(&options);
  options.alloc = faulty;
  options.alloc_arg = &faults;
  host = new_host_with(&options);
  load(host, script);
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  L = tide_lua(host);
  lua_getglobal(L, "begin");
  lua_pushinteger(L, 10);
  assert_int_equal(tide_call(host, 1, 0), 0);
  count = faults.count;
  faults.at = at > 0 ? count + at : 0;
  tide_step(host, 0);
  count = faults.count - count;
  faults.at = 0;
  lua_gc(L, LUA_GCCOLLECT);
  lua_gc(L, LUA_GCCOLLECT);
  for (int i = 0; i < 5 && tide_host_state(host) == TIDE_READY; i++)
    tide_step(host, 2);
  tide_free(host);
  return count;
}

static void tasks_that_begin_are_known_to_the_collector(void **state) {
  long all = tasks_begin(0);
  (void)state;
  assert_true(all > 20);
  for (long at = 1; at <= all; at++)
    tasks_begin(at);
}

/* ---- a limit ---------------------------------------------------------------
 */

static int take_more(lua_State *L) {
  lua_newuserdatauv(L, (size_t)1024 * 1024, 0);
  return 1;
}

/* As luv does, which pushes what it has read before it calls. */
static void a_limit_does_not_end_what_nobody_protects(void **state) {
  enum { LIMIT = 4 * 1024 * 1024 };
  static char read[64 * 1024];
  tide_options options;
  tide_host *host;
  lua_State *L;
  (void)state;
  tide_options_init(&options);
  options.lua_memory_limit = LIMIT;
  host = new_host_with(&options);
  /* What is left is for the host itself, and less than what comes below. */
  load(host, PLAIN "kept = {}\n"
                   "while pcall(function() kept[#kept + 1] = "
                   "('x'):rep(1000) .. #kept end) do end\n"
                   "for i = 1, 500 do kept[i] = false end");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  L = tide_lua(host);
  for (int i = 0; i < 40; i++)
    lua_pushlstring(L, read, sizeof read - (size_t)i);
  lua_pushcfunction(L, take_more);
  assert_int_equal(tide_call(host, 0, 0), TIDE_ELUA);
  assert_non_null(strstr(tide_last_error(host), "not enough memory"));
  lua_pop(L, 40);
  assert_int_equal(stop(host), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_that_fails_breaks_nothing),
      cmocka_unit_test(none_left_breaks_nothing),
      cmocka_unit_test(tasks_that_begin_are_known_to_the_collector),
      cmocka_unit_test(a_limit_does_not_end_what_nobody_protects),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
