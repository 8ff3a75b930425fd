/* loader.c: where `require` finds the library, and luv on the host's loop.
 *
 * The library is embedded as bytecode, loaded on first `require`. With
 * MOONTIDE_LUA_PATH it comes from that folder instead ("lua" in the tree).
 */
#include <stdlib.h>
#include <string.h>

#include "../modules/modules.h"
#include "embedded.h"
#include "evaluation.h"
#include "lua.h"

/* ---- the library -----------------------------------------------------------
 */

static int by_name(const void *name, const void *entry) {
  return strcmp(name, ((const tide_embedded *)entry)->name);
}

static const tide_embedded *find_embedded(const char *name) {
  return bsearch(name, tide__embedded, tide__embedded_count,
                 sizeof tide__embedded[0], by_name);
}

static bool file_exists(const char *path) {
  FILE *file = fopen(path, "re");
  if (file != NULL)
    fclose(file);
  return file != NULL;
}

/* "moontide" and all below it: that name space is the library's. */
static bool in_library(const char *name) {
  return strncmp(name, "moontide", 8) == 0 &&
         (name[8] == '\0' || name[8] == '.');
}

/* Pushes "ROOT/moontide/task.lua" or ".../task/init.lua", whichever exists. */
static const char *find_file(lua_State *L, const char *root, const char *name) {
  const char *base = luaL_gsub(L, name, ".", "/");
  const char *path = lua_pushfstring(L, "%s/%s.lua", root, base);
  if (file_exists(path))
    return path;
  path = lua_pushfstring(L, "%s/%s/init.lua", root, base);
  return file_exists(path) ? path : NULL;
}

/* What is written in C: the core, and parts of it that most scripts never ask
 * for. NULL for another name. */
static lua_CFunction find_native(const char *name) {
  static const luaL_Reg parts[] = {
      {"", tide_lua_open_core},
      {".client", tide_lua_open_client},
      {".control", tide_lua_open_control},
      {".digest", tide_lua_open_digest},
#ifdef TIDE_EDIT
      {".edit", tide_lua_open_edit},
#endif
      {".embed", tide_lua_open_embed},
      {".evaluation", tide_lua_open_evaluation},
      {".json", tide_lua_open_json},
      {".look", tide_lua_open_look},
#ifdef TIDE_SQLITE
      {".sqlite", tide_lua_open_sqlite},
#endif
      {".tail", tide_lua_open_tail},
      {".work", tide_lua_open_work},
  };
  static const char prefix[] = "moontide.core";
  if (strncmp(name, prefix, sizeof prefix - 1) != 0)
    return NULL;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strcmp(name + sizeof prefix - 1, parts[i].name) == 0)
      return parts[i].func;
  return NULL;
}

/* A searcher for moontide.*: before the others, so that a file of the script's
 * cannot come in between, and so that none of them first puts into words that
 * it has no such module. */
static int searcher(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const char *root = lua_tostring(L, lua_upvalueindex(2));
  const char *path;
  const tide_embedded *entry;
  lua_CFunction native;
  int rc;
  if (!in_library(name))
    return 0;
  if ((native = find_native(name)) != NULL) {
    tide_lua_push_host(L);
    lua_pushcclosure(L, native, 1);
    return 1;
  }
  if (strcmp(name, "moontide.init") == 0)
    name = "moontide"; /* what module.c asks for */
  if (root != NULL && (path = find_file(L, root, name)) != NULL) {
    rc = luaL_loadfile(L, path);
  } else {
    entry = find_embedded(name);
    if (entry == NULL) /* no use in looking further */
      return luaL_error(L, "no module '%s' in the moontide library", name);
    rc = luaL_loadbufferx(L, (const char *)entry->code, entry->size, name, "b");
  }
  if (rc != LUA_OK)
    return lua_error(L);
  lua_pushstring(L, name);
  return 2;
}

/* Whether a name in package.loaded is the library's, or luv on our loop. */
static bool is_ours(const char *name) {
  return in_library(name) || strcmp(name, "luv") == 0;
}

static void forget_loaded(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushnil(L);
  while (lua_next(L, -2) != 0) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING || !is_ours(lua_tostring(L, -1)))
      continue;
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, -4); /* a field that is there may be cleared on the way */
  }
  lua_pop(L, 1);
}

static void remove_searcher(lua_State *L) {
  lua_Integer i = 1, last;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  last = luaL_len(L, -1);
  while (i <= last && (lua_geti(L, -1, i), lua_tocfunction(L, -1) != searcher))
    lua_pop(L, 1), i++;
  if (i <= last)
    lua_pop(L, 1);
  for (; i <= last; i++) {
    lua_geti(L, -1, i + 1);
    lua_seti(L, -2, i);
  }
  lua_pop(L, 2);
}

void tide_lua_close_loader(lua_State *L) {
  forget_loaded(L);
  remove_searcher(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushnil(L);
  lua_setfield(L, -2, "luv");
  lua_pop(L, 1);
}

static void insert_searcher(lua_State *L) {
  lua_Integer i;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  for (i = luaL_len(L, -1); i >= 1; i--) {
    lua_geti(L, -1, i);
    lua_seti(L, -2, i + 1);
  }
  tide_lua_push_host(L);
  lua_pushstring(L, getenv("MOONTIDE_LUA_PATH"));
  lua_pushcclosure(L, searcher, 2);
  lua_seti(L, -2, 1);
  lua_pop(L, 2);
}

/* ---- set-up ----------------------------------------------------------------
 */

static void preload(lua_State *L, const char *name, lua_CFunction open) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  tide_lua_push_host(L);
  lua_pushcclosure(L, open, 1);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

/* luv makes a loop of its own when nobody has set one: too late for ours. */
static void warn_of_luv(lua_State *L, tide_host *host) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, "luv") != LUA_TNIL)
    tide_log_write(host->log, TIDE_LOG_WARN, "host",
                   "luv was required before moontide: its handles are on a "
                   "loop that the host does not run; require moontide first",
                   NULL, 0);
  lua_pop(L, 2);
}

void tide_lua_open_loader(lua_State *L, tide_host *host) {
  if (!host->owns_lua)
    warn_of_luv(L, host);
  insert_searcher(L);
  preload(L, "luv", tide_lua_open_luv);
}
