/* control.c: `moontide.core.control`: the control sockets, and listening
 * sockets on their way to a successor. Not part of `moontide.core`: it is
 * made when it is first required, after the start. */
#include "../control.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

/* The function for each kind of event; the addresses are the registry keys. */
static const char accepted_key, line_key, over_key, closed_key;

typedef struct event {
  const char *key;
  uint32_t id;
  uid_t uid;
  pid_t pid;
  const char *text; /* of a line */
  size_t length;
} event;

/* Protected: there may be no memory for the line. */
static int tell(lua_State *L) {
  const event *e = lua_touserdata(L, 1);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, e->key) != LUA_TFUNCTION)
    return 0;
  lua_pushinteger(L, e->id);
  if (e->text != NULL) {
    lua_pushlstring(L, e->text, e->length);
    lua_call(L, 2, 0);
    return 0;
  }
  lua_pushinteger(L, (lua_Integer)e->uid);
  lua_pushinteger(L, (lua_Integer)e->pid);
  lua_call(L, 3, 0);
  return 0;
}

/* The room calls nothing once it is closed, so there is a Lua state. */
static void call(tide_host *host, event e) {
  lua_pushcfunction(host->L, tell);
  lua_pushlightuserdata(host->L, &e);
  tide_host__call(host, 1, 0, "control");
}

static void on_accepted(void *arg, uint32_t id, uid_t uid, pid_t pid) {
  call(arg, (event){.key = &accepted_key, .id = id, .uid = uid, .pid = pid});
}

static void on_line(void *arg, uint32_t id, const char *text, size_t length) {
  call(arg,
       (event){.key = &line_key, .id = id, .text = text, .length = length});
}

static void on_over(void *arg, uint32_t id, tide_control_over why) {
  const char *text = why == TIDE_CONTROL_ENDED ? "ended" : "too long";
  call(arg,
       (event){
           .key = &over_key, .id = id, .text = text, .length = strlen(text)});
}

static void on_closed(void *arg, uint32_t id) {
  call(arg, (event){.key = &closed_key, .id = id});
}

static tide_control *room(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  tide_control_handlers handlers = {host, on_accepted, on_line, on_over,
                                    on_closed};
  tide_lua_room(L); /* it is there as long as the host is on its loop */
  if (host->control == NULL &&
      tide_control_open(&host->control, host->loop, &handlers) != 0)
    luaL_error(L, "out of memory");
  return host->control;
}

/* nil, the error's name, a sentence */
static int failed(lua_State *L, int code, const char *error) {
  lua_pushnil(L);
  lua_pushstring(L, uv_err_name(code));
  lua_pushstring(L, error != NULL ? error : uv_strerror(code));
  return 3;
}

static int succeeded(lua_State *L) {
  lua_pushboolean(L, 1);
  return 1;
}

/* control.on { accepted =, line =, over =, closed = }: those that are there */
static int on(lua_State *L) {
  static const struct {
    const char *name;
    const char *key;
  } fields[] = {{"accepted", &accepted_key},
                {"line", &line_key},
                {"over", &over_key},
                {"closed", &closed_key}};
  luaL_checktype(L, 1, LUA_TTABLE);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (lua_getfield(L, 1, fields[i].name) == LUA_TNIL)
      lua_pop(L, 1);
    else
      lua_rawsetp(L, LUA_REGISTRYINDEX, fields[i].key);
  }
  return 0;
}

static tide_control_access check_access(lua_State *L, int index) {
  return lua_toboolean(L, index) ? TIDE_CONTROL_SHARED : TIDE_CONTROL_PRIVATE;
}

/* control.directory(path, shared, make) -> true | nil, name, message */
static int directory(lua_State *L) {
  char error[512];
  int code = tide_control_directory(luaL_checkstring(L, 1), check_access(L, 2),
                                    lua_toboolean(L, 3), error, sizeof error);
  return code == 0 ? succeeded(L) : failed(L, code, error);
}

/* control.listen(directory, file, shared) -> true | nil, name, message */
static int listen_there(lua_State *L) {
  char error[512];
  int code = tide_control_listen(room(L), luaL_checkstring(L, 1),
                                 luaL_checkstring(L, 2), check_access(L, 3),
                                 error, sizeof error);
  return code == 0 ? succeeded(L) : failed(L, code, error);
}

/* control.unlisten(): the file goes, connections stay */
static int unlisten(lua_State *L) {
  tide_control_unlisten(room(L));
  return 0;
}

/* control.connect(path) -> id | nil, name, message */
static int connect_there(lua_State *L) {
  uint32_t id;
  int code = tide_control_connect(room(L), luaL_checkstring(L, 1), &id);
  if (code != 0)
    return failed(L, code, NULL);
  lua_pushinteger(L, id);
  return 1;
}

static uint32_t check_id(lua_State *L) {
  return (uint32_t)luaL_checkinteger(L, 1);
}

/* control.peer(id) -> uid, pid | nothing */
static int peer(lua_State *L) {
  uid_t uid;
  pid_t pid;
  if (!tide_control_peer(room(L), check_id(L), &uid, &pid))
    return 0;
  lua_pushinteger(L, (lua_Integer)uid);
  lua_pushinteger(L, (lua_Integer)pid);
  return 2;
}

/* control.send(id, line, descriptors) -> true | nil, name, message */
static int send_line(lua_State *L) {
  int fds[TIDE_CONTROL_FDS];
  size_t count = 0;
  size_t length;
  const char *line = luaL_checklstring(L, 2, &length);
  if (!lua_isnoneornil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    count = (size_t)luaL_len(L, 3);
    if (count > TIDE_CONTROL_FDS)
      return failed(L, UV_E2BIG, NULL);
    for (size_t i = 0; i < count; i++) {
      lua_geti(L, 3, (lua_Integer)i + 1);
      fds[i] = (int)luaL_checkinteger(L, -1);
      lua_pop(L, 1);
    }
  }
  int code = tide_control_send(room(L), check_id(L), line, length, fds, count);
  return code == 0 ? succeeded(L) : failed(L, code, NULL);
}

/* control.queued(id) -> bytes that wait for the other side, bytes that have
 * left since the beginning */
static int queued(lua_State *L) {
  uint64_t sent;
  size_t bytes = tide_control_queued(room(L), check_id(L), &sent);
  lua_pushinteger(L, (lua_Integer)bytes);
  lua_pushinteger(L, (lua_Integer)sent);
  return 2;
}

/* control.gone(id) -> whether the other side has closed both directions */
static int gone(lua_State *L) {
  lua_pushboolean(L, tide_control_gone(room(L), check_id(L)));
  return 1;
}

/* control.take(id) -> { descriptor, ... }: all that have come */
static int take(lua_State *L) {
  int fds[TIDE_CONTROL_FDS];
  size_t count = tide_control_take(room(L), check_id(L), fds, TIDE_CONTROL_FDS);
  lua_createtable(L, (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    lua_pushinteger(L, fds[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* control.finish(id): closes a connection */
static int finish(lua_State *L) {
  tide_control_end(room(L), check_id(L));
  return 0;
}

/* control.close_fd(descriptor): one that was taken and is of no use */
static int close_fd(lua_State *L) {
  close((int)luaL_checkinteger(L, 1));
  return 0;
}

/* control.realpath(path) -> path | nil: there is none */
static int real_path(lua_State *L) {
  char *real = realpath(luaL_checkstring(L, 1), NULL);
  if (real == NULL)
    return 0;
  lua_pushstring(L, real);
  free(real);
  return 1;
}

static int uid(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)geteuid());
  return 1;
}

/* ---- listening sockets -----------------------------------------------------
 */

/* control.lend(listener) -> { fd =, address =, inherited =, inode =, device = }
 * | nil: it has no socket to hand over */
static int lend(lua_State *L) {
  tide_handover lent;
  if (!tide_listener_lend(tide_lua_check_listener(L), &lent))
    return 0;
  lua_createtable(L, 0, 5);
  lua_pushinteger(L, lent.fd);
  lua_setfield(L, -2, "fd");
  lua_pushstring(L, lent.address);
  lua_setfield(L, -2, "address");
  lua_pushboolean(L, lent.inherited);
  lua_setfield(L, -2, "inherited");
  lua_pushinteger(L, (lua_Integer)lent.inode);
  lua_setfield(L, -2, "inode");
  lua_pushinteger(L, (lua_Integer)lent.device);
  lua_setfield(L, -2, "device");
  return 1;
}

static lua_Integer integer_field(lua_State *L, int index, const char *name) {
  lua_getfield(L, index, name);
  lua_Integer value = luaL_optinteger(L, -1, 0);
  lua_pop(L, 1);
  return value;
}

/* control.adopt(listener, lent, "exact" | "address" | "name") -> whether it
 * has the socket now */
static int adopt(lua_State *L) {
  static const char *const fits[] = {"exact", "address", "name", NULL};
  tide_listener *listener = tide_lua_check_listener(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  tide_fit fit = (tide_fit)luaL_checkoption(L, 3, NULL, fits);
  lua_getfield(L, 2, "inherited");
  tide_handover given = {
      .fd = (int)integer_field(L, 2, "fd"),
      .inherited = lua_toboolean(L, -1),
      .inode = (uint64_t)integer_field(L, 2, "inode"),
      .device = (uint64_t)integer_field(L, 2, "device"),
  };
  lua_pushboolean(L, tide_listener_adopt(listener, &given, fit));
  return 1;
}

/* control.hold(listener, hold) */
static int hold(lua_State *L) {
  tide_listener_hold(tide_lua_check_listener(L), lua_toboolean(L, 2));
  return 0;
}

/* control.disown(listener, disown): its unbind only lets go of it, or empties
 * it again */
static int disown(lua_State *L) {
  tide_listener_disown(tide_lua_check_listener(L), lua_toboolean(L, 2));
  return 0;
}

int tide_lua_open_control(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"on", on},
      {"directory", directory},
      {"listen", listen_there},
      {"unlisten", unlisten},
      {"connect", connect_there},
      {"peer", peer},
      {"send", send_line},
      {"queued", queued},
      {"gone", gone},
      {"take", take},
      {"finish", finish},
      {"close_fd", close_fd},
      {"realpath", real_path},
      {"uid", uid},
      {"lend", lend},
      {"adopt", adopt},
      {"hold", hold},
      {"disown", disown},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
