/* script.c: what the script sees: the table `game`.
 *
 *   game.rules { players = 2, seconds = 60, most_players = 100 }
 *   game.load_world(phase, path), game.save_scores(phase, path)
 *   game.open(port)
 *   game.matches() -> { { id =, players =, points =, seconds_left = }, ... }
 *   game.end_match(id) -> boolean
 *   game.players() -> integer
 *   game.frames(anew) -> { frames =, late =, p50_us =, p99_us =, max_us = };
 *     with `anew` true, they are counted from now on
 */
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "server.h"

/* Each function has it as its upvalue. */
static server *server_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

static int check(lua_State *L, server *server, int rc) {
  const char *why = tide_last_error(server->host);
  if (rc == 0)
    return 0;
  return luaL_error(L, "%s", rc == TIDE_ELUA ? why : tide_strerror(rc));
}

/* ---- rules, files, port ---- */

static lua_Number field(lua_State *L, const char *key, lua_Number otherwise,
                        lua_Number least, lua_Number most) {
  lua_Number value;
  lua_getfield(L, 1, key);
  value = luaL_optnumber(L, -1, otherwise);
  lua_pop(L, 1);
  if (!(value >= least && value <= most))
    luaL_error(L, "game.rules: %s is %f, not between %f and %f", key, value,
               least, most);
  return value;
}

static int rules(lua_State *L) {
  game_rules rules;
  luaL_checktype(L, 1, LUA_TTABLE);
  rules.players = (int)field(L, "players", 2, 1, GAME_PLAYERS);
  rules.most_players =
      (int)field(L, "most_players", GAME_PLAYERS, 1, GAME_PLAYERS);
  rules.seconds = field(L, "seconds", 60, 0.1, 86400);
  game_set_rules(server_of(L)->game, &rules);
  return 0;
}

static int load_world(lua_State *L) {
  server *server = server_of(L);
  return check(
      L, server,
      tasks_load_world(server, luaL_checkstring(L, 1), luaL_checkstring(L, 2)));
}

static int save_scores(lua_State *L) {
  server *server = server_of(L);
  return check(L, server,
               tasks_save_scores(server, luaL_checkstring(L, 1),
                                 luaL_checkstring(L, 2)));
}

static int open_port(lua_State *L) {
  lua_Integer port = luaL_checkinteger(L, 1);
  int error;
  luaL_argcheck(L, port > 0 && port < 65536, 1, "is not a port");
  error = game_open(server_of(L)->game, (uint16_t)port);
  if (error == 0)
    return 0;
  return luaL_error(L, "UDP port %d: %s", (int)port, tide_strerror(error));
}

/* ---- looking, and ending ---- */

static void set_integer(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void push_match(lua_State *L, const game_match_info *match) {
  lua_createtable(L, 0, 4);
  set_integer(L, "id", match->id);
  set_integer(L, "players", match->players);
  set_integer(L, "points", match->points);
  lua_pushnumber(L, match->seconds_left);
  lua_setfield(L, -2, "seconds_left");
}

static int matches(lua_State *L) {
  const game *game = server_of(L)->game;
  lua_Integer count = 0;
  lua_newtable(L);
  for (int i = 0; i < GAME_MATCHES; i++) {
    game_match_info match = game_match_at(game, i);
    if (match.id == 0)
      continue;
    push_match(L, &match);
    lua_rawseti(L, -2, ++count);
  }
  return 1;
}

static int end_match(lua_State *L) {
  lua_Integer id = luaL_checkinteger(L, 1);
  bool ended = id > 0 && id <= UINT32_MAX &&
               game_end_match(server_of(L)->game, (unsigned)id, "ended");
  lua_pushboolean(L, ended);
  return 1;
}

static int players(lua_State *L) {
  lua_pushinteger(L, game_players(server_of(L)->game));
  return 1;
}

static void set_us(lua_State *L, const char *key, uint64_t ns) {
  lua_pushnumber(L, (lua_Number)ns / 1000);
  lua_setfield(L, -2, key);
}

static int frames_table(lua_State *L) {
  server *server = server_of(L);
  lua_createtable(L, 0, 5);
  set_integer(L, "frames", (lua_Integer)server->share.count);
  set_integer(L, "late", (lua_Integer)server->late);
  set_us(L, "p50_us", frames_percentile(&server->share, 50));
  set_us(L, "p99_us", frames_percentile(&server->share, 99));
  set_us(L, "max_us", server->share.max);
  if (lua_toboolean(L, 1))
    server->share = (frames){0};
  return 1;
}

/* ---- opening: in one protected call, since all of it may raise ---- */

static int open_table(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"rules", rules},
      {"load_world", load_world},
      {"save_scores", save_scores},
      {"open", open_port},
      {"matches", matches},
      {"end_match", end_match},
      {"players", players},
      {"frames", frames_table},
      {NULL, NULL},
  };
  luaL_newlibtable(L, functions);
  lua_pushvalue(L, 1);
  luaL_setfuncs(L, functions, 1);
  lua_setglobal(L, "game");
  return 0;
}

int script_open(server *server) {
  lua_State *L = tide_lua(server->host);
  lua_pushcfunction(L, open_table);
  lua_pushlightuserdata(L, server);
  return tide_call(server->host, 1, 0);
}
