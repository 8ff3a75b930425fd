/* bind: the sockets behind the listeners. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

/* One place for what all failures have in common. */
static int complain(const tide_listener *listener, char *error, size_t size,
                    const char *where, int code) {
  const char *hint = code == UV_EADDRINUSE
                         ? " (another process has it; port = 0 picks a free "
                           "one)"
                         : "";
  snprintf(error, size, "listener \"%s\": cannot bind %s: %s%s",
           listener->options.name, where, uv_strerror(code), hint);
  return code;
}

static void set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

/* Notes the real address and port. */
static void note_address(tide_listener *listener) {
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
  } address = {0};
  socklen_t length = sizeof address;
  char host[64] = "?";
  if (getsockname(listener->fd, &address.any, &length) != 0)
    return;
  if (address.any.sa_family == AF_UNIX) {
    listener->is_unix = true;
    snprintf(listener->address, sizeof listener->address, "%.107s",
             address.un.sun_path);
    return;
  }
  getnameinfo(&address.any, length, host, sizeof host, NULL, 0, NI_NUMERICHOST);
  bool v6 = address.any.sa_family == AF_INET6;
  listener->is_v6 = v6;
  listener->port = ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port);
  snprintf(listener->address, sizeof listener->address,
           v6 ? "[%s]:%d" : "%s:%d", host, listener->port);
}

static int open_tcp(tide_listener *listener, const struct addrinfo *address) {
  int fd =
      socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return uv_translate_sys_error(errno);
  set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (listener->options.reuse_port)
    set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  /* Inherited by accepted sockets: an answer is written whole, so there is
   * nothing to wait for. */
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (bind(fd, address->ai_addr, address->ai_addrlen) != 0) {
    int code = uv_translate_sys_error(errno);
    close(fd);
    return code;
  }
  listener->fd = fd;
  return 0;
}

static int bind_tcp(tide_listener *listener, char *error, size_t size) {
  const tide_listener_options *options = &listener->options;
  struct addrinfo hints = {.ai_family = AF_UNSPEC,
                           .ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  char port[16];
  char where[160];
  snprintf(port, sizeof port, "%d", options->port);
  snprintf(where, sizeof where, "%.120s:%d",
           options->host != NULL ? options->host : "*", options->port);
  int code = getaddrinfo(options->host, port, &hints, &found);
  if (code != 0) {
    snprintf(error, size, "listener \"%s\": cannot resolve %s: %s",
             options->name, where, gai_strerror(code));
    return UV_EAI_NONAME;
  }
  code = UV_EADDRNOTAVAIL;
  for (struct addrinfo *a = found; a != NULL && code != 0; a = a->ai_next)
    code = open_tcp(listener, a);
  freeaddrinfo(found);
  return code == 0 ? 0 : complain(listener, error, size, where, code);
}

/* A socket file that nobody answers on is left over from a process that died;
 * one that is answered belongs to somebody. */
static bool is_stale(const struct sockaddr_un *address) {
  struct stat st;
  if (lstat(address->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
    return false;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return false;
  bool refused =
      connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
      errno == ECONNREFUSED;
  close(fd);
  return refused;
}

static int bind_unix(tide_listener *listener, char *error, size_t size) {
  const char *path = listener->options.path;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct stat st;
  if (strlen(path) >= sizeof address.sun_path)
    return complain(listener, error, size, path, UV_ENAMETOOLONG);
  memcpy(address.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return complain(listener, error, size, path, uv_translate_sys_error(errno));
  if (is_stale(&address))
    unlink(path);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    int code = uv_translate_sys_error(errno);
    close(fd);
    return complain(listener, error, size, path, code);
  }
  listener->fd = fd;
  if (stat(path, &st) == 0) {
    listener->inode = st.st_ino;
    listener->device = st.st_dev;
  }
  return 0;
}

static int adopt(tide_listener *listener, char *error, size_t size) {
  int accepting = 0;
  socklen_t length = sizeof accepting;
  int fd = listener->options.fd;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) != 0 ||
      !accepting) {
    snprintf(error, size,
             "listener \"%s\": inherited fd %d is not a listening socket",
             listener->options.name, fd);
    return UV_EINVAL;
  }
  listener->fd = fd;
  return 0;
}

int tide_listener_bind(tide_listener *listener, char *error, size_t size) {
  int code;
  if (listener->fd >= 0)
    return 0;
  if (listener->options.fd >= 0)
    code = adopt(listener, error, size);
  else if (listener->options.path != NULL)
    code = bind_unix(listener, error, size);
  else
    code = bind_tcp(listener, error, size);
  if (code != 0)
    return code;
  note_address(listener);
  return listener->options.early ? tide_listener_listen(listener, error, size)
                                 : 0;
}

void tide_listener__unlink(tide_listener *listener) {
  struct stat st;
  const char *path = listener->options.path;
  if (path == NULL || listener->inode == 0 || listener->options.fd >= 0)
    return;
  /* A successor may have bound the path by now: then it is not ours. */
  if (stat(path, &st) == 0 && st.st_ino == listener->inode &&
      st.st_dev == listener->device)
    unlink(path);
}
