/* A program that has had a Lua state for years, and now gets a lifecycle.
 *
 * The state, its libraries and what it remembers stay the program's: moontide
 * is put into it, runs the script app.lua on it, and is gone again before the
 * state is closed.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <moontide.h>
#include <stdio.h>

/* What the program has always offered to its scripts. */
static int greet(lua_State *L) {
  printf("hello, %s\n", luaL_checkstring(L, 1));
  fflush(stdout);
  return 0;
}

static lua_State *make_state(void) {
  lua_State *L = luaL_newstate();
  if (L == NULL)
    return NULL;
  luaL_openlibs(L);
  lua_register(L, "greet", greet);
  if (luaL_dostring(L, "visits = 0") != LUA_OK)
    return NULL;
  return L;
}

/* Signals are the program's to give: without the flag it would handle SIGTERM
 * itself and call tide_drain. */
static int run(lua_State *L, const char *script) {
  tide_host *host;
  tide_options options;
  int rc;
  tide_options_init(&options);
  options.name = "embed-lua";
  options.lua = L;
  options.flags = TIDE_SIGNALS | TIDE_LOG_STDERR;
  rc = tide_new(&host, &options);
  if (rc != 0) {
    fprintf(stderr, "no host: %s\n", tide_strerror(rc));
    return 1;
  }
  if ((rc = tide_load(host, script)) != 0 || (rc = tide_start(host)) != 0 ||
      (rc = tide_run(host)) < 0)
    fprintf(stderr, "%s: %s\n", tide_err_name(rc), tide_last_error(host));
  tide_free(host);
  return rc >= 0 ? rc : 1;
}

int main(int argc, char **argv) {
  lua_State *L = make_state();
  int code;
  if (L == NULL)
    return 1;
  code = run(L, argc > 1 ? argv[1] : "app.lua");
  lua_getglobal(L, "visits"); /* the state is as usable as ever */
  printf("visits: %d\n", (int)lua_tointeger(L, -1));
  lua_close(L);
  return code;
}
