/* moontide.core.log: records from Lua. */
#include <string.h>

#include "lua.h"

#define MAX_FIELDS 64

static void string_field(lua_State *L, int index, tide_field *field) {
  field->type = TIDE_FIELD_STRING;
  field->value.string.data =
      lua_tolstring(L, index, &field->value.string.length);
}

/* The value at `index`, which stays on the stack while the field is used. What
 * has no type of its own in a record is replaced by its tostring. */
static void read_value(lua_State *L, int index, tide_field *field) {
  switch (lua_type(L, index)) {
  case LUA_TSTRING:
    string_field(L, index, field);
    break;
  case LUA_TBOOLEAN:
    field->type = TIDE_FIELD_BOOLEAN;
    field->value.boolean = lua_toboolean(L, index) != 0;
    break;
  case LUA_TNUMBER:
    if (lua_isinteger(L, index)) {
      field->type = TIDE_FIELD_INTEGER;
      field->value.integer = lua_tointeger(L, index);
    } else {
      field->type = TIDE_FIELD_NUMBER;
      field->value.number = lua_tonumber(L, index);
    }
    break;
  default:
    luaL_tolstring(L, index, NULL);
    lua_replace(L, index);
    string_field(L, index, field);
  }
}

/* The pairs from `first` on; a pair whose value is nil is left out, and one
 * beyond the 64th. */
static size_t read_fields(lua_State *L, int first, tide_field *fields) {
  int top = lua_gettop(L);
  size_t count = 0;
  for (int i = first; i < top && count < MAX_FIELDS; i += 2) {
    if (lua_isnil(L, i + 1))
      continue;
    fields[count].key = luaL_checkstring(L, i);
    read_value(L, i + 1, &fields[count]);
    count++;
  }
  return count;
}

/* write(level, component, message, k1, v1, ...) */
static int log_write(lua_State *L) {
  tide_log *log = tide_lua_host(L)->log;
  tide_log_level level = (tide_log_level)luaL_checkinteger(L, 1);
  const char *component = luaL_checkstring(L, 2);
  const char *message = luaL_checkstring(L, 3);
  tide_field fields[MAX_FIELDS];

  if (tide_log_enabled(log, level))
    tide_log_write(log, level, component, message, fields,
                   read_fields(L, 4, fields));
  return 0;
}

/* audit(component, message, k1, v1, ...): whatever the level is. */
static int log_audit(lua_State *L) {
  const char *component = luaL_checkstring(L, 1);
  const char *message = luaL_checkstring(L, 2);
  tide_field fields[MAX_FIELDS];

  tide_log_audit(tide_lua_host(L)->log, component, message, fields,
                 read_fields(L, 3, fields));
  return 0;
}

static int log_enabled(lua_State *L) {
  tide_log_level level = (tide_log_level)luaL_checkinteger(L, 1);

  lua_pushboolean(L, tide_log_enabled(tide_lua_host(L)->log, level));
  return 1;
}

/* set_level(name): as the setting log.level spells it. */
static int log_set_level(lua_State *L) {
  static const char *const names[] = {"debug", "info", "warn", "error", NULL};
  int level = luaL_checkoption(L, 1, NULL, names);
  tide_log_set_level(tide_lua_host(L)->log, (tide_log_level)level);
  return 0;
}

static int log_set_format(lua_State *L) {
  static const char *const names[] = {"logfmt", "json", NULL};
  tide_host *host = tide_lua_host(L);
  tide_log_format format = (tide_log_format)luaL_checkoption(L, 1, NULL, names);

  tide_log_set_format(host->log, format);
  if (host->watchdog != NULL) /* its last words go to the same stream */
    tide_watchdog_set_format(host->watchdog, format);
  return 0;
}

/* true, or nil and a message. */
static int push_result(lua_State *L, int err) {
  if (err == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushfstring(L, "it cannot be opened for writing: %s", strerror(-err));
  return 2;
}

static int log_set_file(lua_State *L) {
  const char *path = luaL_optstring(L, 1, "");

  return push_result(L, tide_log_set_file(tide_lua_host(L)->log, path));
}

static int log_reopen(lua_State *L) {
  return push_result(L, tide_log_reopen(tide_lua_host(L)->log));
}

/* release(): records that the host holds back at its start may be written. */
static int log_release(lua_State *L) {
  tide_log_release(tide_lua_host(L)->log);
  return 0;
}

/* flush(seconds) -> whether all has left. Blocks that long at most. */
static int log_flush(lua_State *L) {
  lua_Number seconds = luaL_optnumber(L, 1, 0);
  uint64_t timeout =
      seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : 0;

  lua_pushboolean(L, tide_log_flush(tide_lua_host(L)->log, timeout));
  return 1;
}

static int log_dropped(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)tide_log_dropped(tide_lua_host(L)->log));
  return 1;
}

int tide_lua_open_log(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"write", log_write},
      {"audit", log_audit},
      {"enabled", log_enabled},
      {"set_level", log_set_level},
      {"set_format", log_set_format},
      {"set_file", log_set_file},
      {"reopen", log_reopen},
      {"release", log_release},
      {"flush", log_flush},
      {"dropped", log_dropped},
      {NULL, NULL},
  };

  tide_lua_newlib(L, functions);
  return 1;
}
