/* client.c: `moontide.core.client`: the other end of a control socket.
 *
 * Commands such as `moontide console` serve nobody. They wait for a person and
 * for a process at once, in a plain poll: no loop, no tasks. Connections are
 * never blocking, so that a process that hangs cannot hold up Ctrl-C; what does
 * not go at once is sent by `wait`.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lua/lua.h"
#include "../unix_path.h"
#include "modules.h"

#define CONNECTION "moontide.client"

enum { PIECE = 65536, CONNS = 4 };

typedef struct connection {
  int fd; /* -1: closed */
  char *out;
  size_t out_length;
  bool broken; /* the other side is gone; what it had sent can be read */
} connection;

static connection *check_connection(lua_State *L, int index) {
  return luaL_checkudata(L, index, CONNECTION);
}

/* nil, the error's name, a sentence */
static int failed(lua_State *L, int code, const char *why) {
  lua_pushnil(L);
  lua_pushstring(L, uv_err_name(code));
  lua_pushstring(L, why[0] != '\0' ? why : uv_strerror(code));
  return 3;
}

/* Sends what waits, as far as it goes. */
static void flush(connection *c) {
  while (c->out_length > 0 && !c->broken) {
    ssize_t sent =
        send(c->fd, c->out, c->out_length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      c->broken = errno != EAGAIN && errno != EINTR;
      return;
    }
    c->out_length -= (size_t)sent;
    memmove(c->out, c->out + sent, c->out_length);
  }
}

/* connection:send(text) -> whether the other side is there */
static int send_text(lua_State *L) {
  connection *c = check_connection(L, 1);
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  if (c->fd >= 0 && !c->broken && length > 0) {
    char *grown = realloc(c->out, c->out_length + length);
    if (grown == NULL)
      return luaL_error(L, "out of memory");
    memcpy(grown + c->out_length, text, length);
    c->out = grown;
    c->out_length += length;
    flush(c);
  }
  lua_pushboolean(L, c->fd >= 0 && !c->broken);
  return 1;
}

/* connection:receive() -> text, "" when there is none yet | nil at the end */
static int receive(lua_State *L) {
  connection *c = check_connection(L, 1);
  char piece[PIECE];
  ssize_t got = c->fd < 0 ? 0 : recv(c->fd, piece, sizeof piece, MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
    return 0;
  lua_pushlstring(L, piece, got > 0 ? (size_t)got : 0);
  return 1;
}

/* connection:peer() -> uid, pid of who listens | nothing */
static int peer(lua_State *L) {
  const connection *c = check_connection(L, 1);
  struct ucred who;
  socklen_t length = sizeof who;
  if (c->fd < 0 ||
      getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
    return 0;
  lua_pushinteger(L, (lua_Integer)who.uid);
  lua_pushinteger(L, (lua_Integer)who.pid);
  return 2;
}

/* connection:close() */
static int close_connection(lua_State *L) {
  connection *c = check_connection(L, 1);
  if (c->fd >= 0)
    close(c->fd);
  c->fd = -1;
  free(c->out);
  c->out = NULL;
  c->out_length = 0;
  return 0;
}

static void push_methods(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"send", send_text},         {"receive", receive},       {"peer", peer},
      {"close", close_connection}, {"__gc", close_connection}, {NULL, NULL},
  };
  if (luaL_newmetatable(L, CONNECTION)) {
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
  }
}

/* client.connect(path) -> connection | nil, name, sentence. "EAGAIN": as many
 * as may wait for that process to accept them do so already. */
static int connect_there(lua_State *L) {
  struct sockaddr_un address;
  char why[128] = "";
  int code =
      tide_unix_address(luaL_checkstring(L, 1), &address, why, sizeof why);
  if (code != 0)
    return failed(L, code, why);
  connection *c = lua_newuserdatauv(L, sizeof *c, 0);
  *c = (connection){.fd = -1};
  push_methods(L);
  lua_setmetatable(L, -2);
  c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (c->fd >= 0 &&
      connect(c->fd, (const struct sockaddr *)&address, sizeof address) == 0)
    return 1;
  code = uv_translate_sys_error(errno);
  if (c->fd >= 0)
    close(c->fd);
  c->fd = -1;
  return failed(L, code, why);
}

/* Milliseconds of a bound in seconds, never less; -1 for none. */
static int milliseconds(lua_State *L, int index) {
  if (lua_isnoneornil(L, index))
    return -1;
  lua_Number seconds = luaL_checknumber(L, index);
  if (!(seconds > 0))
    return 0;
  return seconds > 3600 ? 3600000 : (int)(seconds * 1000) + 1;
}

/* client.wait(seconds|nil, stdin, connection...) -> whether there is input, the
 * name of a signal | nil, then for each connection whether it can be read */
static int wait_for(lua_State *L) {
  struct pollfd fds[CONNS + 2];
  connection *conns[CONNS];
  int count = lua_gettop(L) - 2;
  int timeout = milliseconds(L, 1);
  luaL_argcheck(L, count <= CONNS, CONNS + 3, "too many connections");
  fds[0] = (struct pollfd){lua_toboolean(L, 2) ? STDIN_FILENO : -1, POLLIN, 0};
  fds[1] = (struct pollfd){tide_client_signal_fd(), POLLIN, 0};
  for (int i = 0; i < count; i++) {
    conns[i] = check_connection(L, i + 3);
    short events = conns[i]->out_length > 0 ? POLLIN | POLLOUT : POLLIN;
    fds[i + 2] = (struct pollfd){conns[i]->fd, events, 0};
  }
  if (poll(fds, (nfds_t)(count > 0 ? count : 0) + 2, timeout) < 0)
    for (int i = 0; i < count + 2; i++)
      fds[i].revents = 0;
  lua_pushboolean(L, fds[0].revents != 0);
  if (fds[1].revents == 0 || !tide_client_push_signal(L))
    lua_pushnil(L);
  for (int i = 0; i < count; i++) {
    if ((fds[i + 2].revents & POLLOUT) != 0)
      flush(conns[i]);
    lua_pushboolean(L, (fds[i + 2].revents & ~POLLOUT) != 0);
  }
  return count > 0 ? count + 2 : 2;
}

/* Ctrl-C takes what was typed away again, also between a poll and the read,
 * which then would wait for the next key. The shell has stdin's description,
 * too, so that a mode of that is not for us to change: this is our own. */
static int input_fd(void) {
  static int fd = -1;
  if (fd < 0 && isatty(STDIN_FILENO))
    fd = open("/proc/self/fd/0", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  return fd >= 0 ? fd : STDIN_FILENO;
}

/* client.read() -> what has been typed, "" for nothing | nil at the end */
static int read_stdin(lua_State *L) {
  char piece[4096];
  ssize_t got = read(input_fd(), piece, sizeof piece);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
    return 0;
  lua_pushlstring(L, piece, got > 0 ? (size_t)got : 0);
  return 1;
}

/* client.now() -> seconds that never go back */
static int now(lua_State *L) {
  lua_pushnumber(L, (lua_Number)uv_hrtime() / 1e9);
  return 1;
}

int tide_lua_open_client(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"connect", connect_there},
      {"wait", wait_for},
      {"read", read_stdin},
      {"now", now},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  tide_client_add_terminal(L);
  return 1;
}
