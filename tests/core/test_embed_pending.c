/* Threads of libuv's pool still work for a host when it goes: files, names,
 * functions, databases. What they were asked comes back to nobody, and finds
 * nothing that has gone. The address sanitizer sees the rest. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

#include "embed_helpers.h"

/* More than there are threads: some of it has not begun. The last is known to
 * have, for it takes part in a chain. */
#define FILES                                                                  \
  "local uv = require 'luv'\n"                                                 \
  "for i = 1, 50 do\n"                                                         \
  "  uv.fs_stat('/', function() called = true end)\n"                          \
  "  uv.fs_scandir('/', function() called = true end)\n"                       \
  "  uv.random(100000, 0, function() called = true end)\n"                     \
  "end\n"                                                                      \
  "uv.getaddrinfo('localhost', nil, {}, function() called = true end)\n"

#define FUNCTIONS                                                              \
  "for i = 1, 10 do tide.spawn(function()\n"                                   \
  "  tide.offload(function()\n"                                                \
  "    local n = 0 for i = 1, 2e5 do n = n + i end return n\n"                 \
  "  end)\n"                                                                   \
  "  called = true\n"                                                          \
  "end) end\n"

#define STREAMS                                                                \
  "local uv = require 'luv'\n"                                                 \
  "local ends = uv.socketpair(nil, nil, { nonblock = true }, "                 \
  "{ nonblock = true })\n"                                                     \
  "local s = uv.new_tcp() s:open(ends[1])\n"                                   \
  "s:write(('x'):rep(10000000), function() called = true end)\n"               \
  "s:shutdown(function() called = true end)\n"                                 \
  "other = uv.new_tcp() other:open(ends[2])\n"

/* Reads that take some time, then writes that wait for them. */
#define DATABASE                                                               \
  "local sqlite = require 'moontide.core.sqlite'\n"                            \
  "db = assert(sqlite.open(os.getenv 'TIDE_TEST_DATABASE', 1000))\n"           \
  "other = assert(sqlite.open(os.getenv 'TIDE_TEST_DATABASE', 1000))\n"        \
  "calls = 0 local function told() calls = calls + 1 end\n"                    \
  "for _, at in ipairs { db, other } do\n"                                     \
  "  at:run(told, 'create table if not exists t (a)')\n"                       \
  "  at:run(told, [[with recursive n(i) as (select 1 union all\n"              \
  "    select i + 1 from n where i < 200000) select sum(i) from n]])\n"        \
  "  for i = 1, 200 do at:run(told, 'insert into t values (?)', i) end\n"      \
  "  at:close(told)\n"                                                         \
  "end\n"

static const char *const kinds[] = {
    FILES,
    FUNCTIONS,
    STREAMS,
#ifndef TIDE_TEST_NO_SQLITE
    DATABASE,
#endif
};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct room {
  uv_loop_t loop;
  lua_State *L; /* the program's, or NULL */
  tide_host *host;
  bool closed;
};

static void on_closed(tide_host *host, void *arg) {
  (void)host;
  ((struct room *)arg)->closed = true;
}

static lua_State *new_state(void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  return L;
}

/* A host that has begun it all, and no more. */
static void begin(struct room *room, const char *work, bool own_lua) {
  tide_options options;
  char script[8192];
  memset(room, 0, sizeof *room);
  assert_int_equal(uv_loop_init(&room->loop), 0);
  tide_options_init(&options);
  options.loop = &room->loop;
  if (!own_lua)
    options.lua = room->L = new_state();
  room->host = new_host_with(&options);
  snprintf(script, sizeof script, PLAIN "%s begun = true", work);
  load(room->host, script);
  assert_int_equal(tide_start(room->host), 0);
  uv_run(&room->loop, UV_RUN_NOWAIT);
}

/* The state is left, with what the script has put there. */
static void end(struct room *room) {
  if (room->L != NULL) {
    assert_int_equal(lua_getglobal(room->L, "begun"), LUA_TBOOLEAN);
    lua_pop(room->L, 1);
    lua_gc(room->L, LUA_GCCOLLECT);
    lua_close(room->L);
  }
  assert_int_equal(uv_run(&room->loop, UV_RUN_NOWAIT), 0);
  assert_int_equal(uv_loop_close(&room->loop), 0);
}

static void freed_in_the_middle(void **state) {
  (void)state;
  for (int i = 0; i < KINDS * 2; i++) {
    struct room room;
    begin(&room, kinds[i / 2], i % 2 == 0);
    tide_free(room.host);
    end(&room);
  }
}

/* As fast as it goes, so that most of it is still under way. */
static void closed_in_the_middle(void **state) {
  (void)state;
  for (int i = 0; i < KINDS * 2; i++) {
    struct room room;
    double limit = now() + 30;
    begin(&room, kinds[i / 2], i % 2 == 0);
    tide_kill(room.host, "test");
    while (tide_host_state(room.host) != TIDE_STOPPED && now() < limit)
      uv_run(&room.loop, UV_RUN_NOWAIT);
    assert_int_equal(tide_close(room.host, on_closed, &room), 0);
    while (!room.closed && now() < limit)
      uv_run(&room.loop, UV_RUN_ONCE);
    assert_true(room.closed);
    assert_int_equal(uv_loop_alive(&room.loop), 0);
    tide_free(room.host);
    end(&room);
  }
}

/* uv_run returns by itself when the host has gone: nothing waits for more. */
static void closed_by_a_loop_that_ends(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    struct room room;
    begin(&room, kinds[i], true);
    tide_kill(room.host, "test");
    while (tide_host_state(room.host) != TIDE_STOPPED)
      uv_run(&room.loop, UV_RUN_NOWAIT);
    assert_int_equal(tide_close(room.host, on_closed, &room), 0);
    assert_int_equal(uv_run(&room.loop, UV_RUN_DEFAULT), 0);
    assert_true(room.closed);
    tide_free(room.host);
    end(&room);
  }
}

static void on_a_loop_of_its_own(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    char script[8192];
    tide_host *host;
    snprintf(script, sizeof script, PLAIN "%s", kinds[i]);
    host = started(script);
    tide_step(host, 0);
    tide_free(host);
  }
}

#ifndef TIDE_TEST_NO_SQLITE
/* The program's Lua still has the database, and the functions that asked. */
static void a_database_that_outlives_its_host_is_refused(void **state) {
  static const char after[] =
      "assert(calls == before, calls)\n"
      "for _, try in ipairs { 'run', 'run_now', 'close' } do\n"
      "  local ok, why = pcall(db[try], db, print, 'select 1')\n"
      "  assert(not ok and why:find 'the host of this database has ended',\n"
      "    why)\n"
      "end\n"
      "db, other = nil\n"
      "collectgarbage() collectgarbage()\n";
  struct room room;
  (void)state;
  begin(&room, DATABASE, false);
  lua_getglobal(room.L, "calls");
  lua_setglobal(room.L, "before");
  tide_free(room.host);
  if (luaL_dostring(room.L, after) != LUA_OK)
    fail_msg("%s", lua_tostring(room.L, -1));
  end(&room);
}
#endif

static int make_database(void **state) {
  char path[64];
  (void)state;
  snprintf(path, sizeof path, "/tmp/tide-test-pending-%d", (int)getpid());
  return setenv("TIDE_TEST_DATABASE", path, 1);
}

static int remove_database(void **state) {
  (void)state;
  return unlink(getenv("TIDE_TEST_DATABASE"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(freed_in_the_middle),
      cmocka_unit_test(closed_in_the_middle),
      cmocka_unit_test(closed_by_a_loop_that_ends),
      cmocka_unit_test(on_a_loop_of_its_own),
#ifndef TIDE_TEST_NO_SQLITE
      cmocka_unit_test(a_database_that_outlives_its_host_is_refused),
#endif
  };
  return cmocka_run_group_tests(tests, make_database, remove_database);
}
