/* files.c: `moontide.core.files`: the little that the library does with folders
 * itself. luv has all of it, but an exit report is no reason to load luv. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lua.h"

static int fail(lua_State *L, const char *path) {
  int error = uv_translate_sys_error(errno);
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s: %s", uv_err_name(error), uv_strerror(error),
                  path);
  return 2;
}

/* files.mkdir(path) -> true | nil, message: for this user only. One that is
 * there already is as good. */
static int make_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (mkdir(path, S_IRWXU) != 0 && errno != EEXIST)
    return fail(L, path);
  lua_pushboolean(L, 1);
  return 1;
}

/* files.list(path) -> names, in no order, without "." and ".." | nil, message
 */
static int list_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  const struct dirent *entry;
  lua_Integer count = 0;
  DIR *folder;
  lua_settop(L, 1);
  lua_newtable(L);
  folder = opendir(path);
  if (folder == NULL)
    return fail(L, path);
  while ((entry = readdir(folder)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    lua_pushstring(L, entry->d_name);
    lua_rawseti(L, 2, ++count);
  }
  closedir(folder);
  return 1;
}

int tide_lua_open_files(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"mkdir", make_folder},
      {"list", list_folder},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
