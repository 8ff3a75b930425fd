/* host.c: `moontide.core.host`: the loop, its pump, and the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "task.h"

static int set_pump(lua_State *L) {
  tide_lua_keep(L, &tide_lua_host(L)->pump, 1);
  return 0;
}

static int on_idle(lua_State *L) {
  tide_lua_keep(L, &tide_lua_host(L)->idle_fn, 1);
  return 0;
}

static int on_uncaught(lua_State *L) {
  tide_lua_keep(L, &tide_lua_host(L)->uncaught_fn, 1);
  return 0;
}

static int on_drain(lua_State *L) {
  tide_lua_keep(L, &tide_lua_host(L)->drain_fn, 1);
  return 0;
}

static int wake(lua_State *L) {
  tide_host__wake(tide_lua_host(L));
  return 0;
}

static int stop(lua_State *L) {
  tide_host__stop(tide_lua_host(L), (int)luaL_checkinteger(L, 1));
  return 0;
}

/* Whether anything but the host itself would keep the loop going. The host's
 * own handles are unreferenced, all but the async one. */
static int script_alive(lua_State *L) {
  lua_pushboolean(L, tide_host__script_alive(tide_lua_host(L)));
  return 1;
}

static int set_log_timeout(lua_State *L) {
  lua_Number seconds = luaL_checknumber(L, 1);
  tide_lua_host(L)->log_close_timeout =
      (uint64_t)(seconds * (lua_Number)TIDE_SEC);
  return 0;
}

static int check(lua_State *L, int rc) {
  if (rc == 0)
    return 0;
  return luaL_error(L, "%s: %s", tide_err_name(rc), tide_strerror(rc));
}

/* A stock interpreter hands its process to the host here. */
static int watch(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  if (host->mode == TIDE_MODE_MODULE)
    host->flags |= TIDE_INTERRUPT | TIDE_EXIT;
  check(L, tide_host__watch(host));
  tide_interrupt_bind(host->interrupt, L);
  tide_task_name_slices(host);
  return 0;
}

static int run(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  if (host->running)
    return luaL_error(L, "the host runs already");
  tide_host__wake(host); /* the caller's own Lua may have queued something */
  while (!host->stopped)
    tide_host__run_loop(host, UV_RUN_DEFAULT);
  host->stopped = false;
  lua_pushinteger(L, host->exit_code);
  return 1;
}

static int turn(lua_State *L) {
  tide_host__wake(tide_lua_host(L));
  if (!tide_host__turn(tide_lua_host(L), lua_toboolean(L, 1)))
    return luaL_error(L, "the loop cannot be turned from inside itself");
  return 0;
}

static int native_exit(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  int code = (int)luaL_checkinteger(L, 1);
  tide_log_flush(host->log, host->log_close_timeout);
  _exit(code);
}

static int load_file(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (tide_lua_loadfile(L, path) != LUA_OK) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  return 1;
}

/* The variables that may be settings, as a table: Lua can ask for a variable
 * by name only. */
static int environ_table(lua_State *L) {
  char **at;
  lua_newtable(L);
  for (at = environ; at != NULL && *at != NULL; at++) {
    const char *equals = strchr(*at, '=');
    if (equals == NULL || strncmp(*at, "MOONTIDE_", 9) != 0)
      continue;
    lua_pushlstring(L, *at, (size_t)(equals - *at));
    lua_pushstring(L, equals + 1);
    lua_rawset(L, -3);
  }
  return 1;
}

static int hrtime(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)tide_clock_mono());
  return 1;
}

/* host.where(level) -> source, short source, line; nothing above the stack.
 * What debug.getinfo says, without a table: it is asked for each phase. The
 * source of a C function is "=[C]". */
static int where(lua_State *L) {
  lua_Debug info;
  if (!lua_getstack(L, (int)luaL_checkinteger(L, 1), &info))
    return 0;
  lua_getinfo(L, "Sl", &info);
  lua_pushlstring(L, info.source, info.srclen);
  lua_pushstring(L, info.short_src);
  lua_pushinteger(L, info.currentline);
  return 3;
}

static void push_flags(lua_State *L, const tide_host *host) {
  static const struct {
    const char *name;
    unsigned flag;
  } flags[] = {
      {"signals", TIDE_SIGNALS},     {"sigpipe", TIDE_SIGPIPE},
      {"interrupt", TIDE_INTERRUPT}, {"manage", TIDE_MANAGE},
      {"console", TIDE_CONSOLE},     {"log_stderr", TIDE_LOG_STDERR},
      {"exit", TIDE_EXIT},
  };
  size_t i;
  lua_newtable(L);
  for (i = 0; i < sizeof flags / sizeof flags[0]; i++) {
    lua_pushboolean(L, (host->flags & flags[i].flag) != 0);
    lua_setfield(L, -2, flags[i].name);
  }
}

static void push_options(lua_State *L, const tide_host *host) {
  lua_newtable(L);
  if (host->startup_timeout_ms >= 0) {
    lua_pushnumber(L, (lua_Number)host->startup_timeout_ms / 1000);
    lua_setfield(L, -2, "startup_timeout");
  }
  if (host->shutdown_timeout_ms >= 0) {
    lua_pushnumber(L, (lua_Number)host->shutdown_timeout_ms / 1000);
    lua_setfield(L, -2, "shutdown_timeout");
  }
}

static void push_args(lua_State *L, const tide_host *host) {
  int i;
  lua_newtable(L);
  for (i = 0; i < host->argc; i++) {
    lua_pushstring(L, host->argv[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

int tide_lua_open_host(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  static const char *const modes[] = {"process", "module", "embedded"};
  static const luaL_Reg functions[] = {
      {"set_pump", set_pump},
      {"on_idle", on_idle},
      {"on_uncaught", on_uncaught},
      {"on_drain", on_drain},
      {"wake", wake},
      {"stop", stop},
      {"script_alive", script_alive},
      {"set_log_timeout", set_log_timeout},
      {"watch", watch},
      {"run", run},
      {"turn", turn},
      {"exit", native_exit},
      {"loadfile", load_file},
      {"hrtime", hrtime},
      {"environ", environ_table},
      {"where", where},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  lua_pushstring(L, modes[host->mode]);
  lua_setfield(L, -2, "mode");
  lua_pushstring(L, host->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, tide_version_string());
  lua_setfield(L, -2, "version");
  lua_pushinteger(L, (lua_Integer)getpid());
  lua_setfield(L, -2, "pid");
  lua_pushboolean(L, host->owns_lua);
  lua_setfield(L, -2, "owns_lua");
  push_flags(L, host);
  lua_setfield(L, -2, "flags");
  push_options(L, host);
  lua_setfield(L, -2, "options");
  push_args(L, host);
  lua_setfield(L, -2, "args");
  return 1;
}
