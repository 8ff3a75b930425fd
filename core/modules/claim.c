/* claim.c: which living process a record belongs to.
 *
 * Several processes may share a database: an old one that drains, and its
 * successor. Each locks one byte of a file beside it, at an offset of its own
 * that goes into the records: the kernel lets go of the lock when the process
 * ends, however it ends, and whoever asks sees it. A pid would say less: it
 * comes back, and means something else in another container.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../lua/lua.h"
#include "modules.h"

#define CLAIM "moontide.claim"

typedef struct claim {
  int fd;
  int64_t token;
} claim;

static int fail(lua_State *L, const char *path, int error) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(error));
  return 2;
}

/* Locks of an open file description: a child has its own after exec, and
 * closing another descriptor of the same file lets go of nothing. */
static int lock_byte(int fd, int command, int64_t at, struct flock *lock) {
  memset(lock, 0, sizeof *lock);
  lock->l_type = F_WRLCK;
  lock->l_whence = SEEK_SET;
  lock->l_start = (off_t)at;
  lock->l_len = 1;
  return fcntl(fd, command, lock);
}

/* A place that nobody has: taken at random, the first try is as good as sure.
 */
static int take_place(claim *c) {
  struct flock lock;
  for (int i = 0; i < 8; i++) {
    uint64_t token;
    int rc = uv_random(NULL, NULL, &token, sizeof token, 0, NULL);
    if (rc != 0)
      return -rc;
    c->token = (int64_t)(token >> 16) + 1;
    if (lock_byte(c->fd, F_OFD_SETLK, c->token, &lock) == 0)
      return 0;
    if (errno != EAGAIN && errno != EACCES)
      return errno;
  }
  return EAGAIN;
}

/* claim:token() -> integer */
static int token_of(lua_State *L) {
  const claim *c = luaL_checkudata(L, 1, CLAIM);
  lua_pushinteger(L, c->token);
  return 1;
}

/* claim:alive(token) -> whether the process that has it lives */
static int is_alive(lua_State *L) {
  const claim *c = luaL_checkudata(L, 1, CLAIM);
  int64_t token = luaL_checkinteger(L, 2);
  struct flock lock;
  bool alive = token == c->token;
  if (!alive && token > 0 && c->fd >= 0 &&
      lock_byte(c->fd, F_OFD_GETLK, token, &lock) == 0)
    alive = lock.l_type != F_UNLCK;
  lua_pushboolean(L, alive);
  return 1;
}

static int release(lua_State *L) {
  claim *c = luaL_checkudata(L, 1, CLAIM);
  if (c->fd >= 0)
    close(c->fd);
  c->fd = -1;
  return 0;
}

static void push_methods(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"token", token_of}, {"alive", is_alive}, {"release", release},
      {"__gc", release},   {NULL, NULL},
  };
  if (luaL_newmetatable(L, CLAIM)) {
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
  }
}

int tide_lua_claim(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  claim *c = lua_newuserdatauv(L, sizeof *c, 0);
  int error;
  c->fd = -1;
  push_methods(L);
  lua_setmetatable(L, -2);
  c->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (c->fd < 0)
    return fail(L, path, errno);
  error = take_place(c);
  return error == 0 ? 1 : fail(L, path, error);
}
