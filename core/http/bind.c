/* bind: the sockets behind the listeners. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../unix_path.h"
#include "internal.h"

/* One place for what all failures have in common. */
static int complain(const tide_listener *listener, char *error, size_t size,
                    const char *where, const char *hint, int code) {
  snprintf(error, size, "listener \"%s\": cannot bind %s: %s%s%s%s",
           listener->options.name, where, uv_strerror(code),
           hint[0] != '\0' ? " (" : "", hint, hint[0] != '\0' ? ")" : "");
  return code;
}

static const char *tcp_hint(int code) {
  switch (code) {
  case UV_EADDRINUSE:
    return "another process has it; port = 0 picks a free one";
  case UV_EAFNOSUPPORT:
    return "this machine has no IPv6";
  case UV_EADDRNOTAVAIL:
    return "no interface of this machine has that address";
  case UV_EACCES:
    return "ports below 1024 need a privilege";
  default:
    return "";
  }
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
  /* "::" takes IPv4 clients as well unless told not to, whatever the sysctl
   * net.ipv6.bindv6only says. */
  if (address->ai_family == AF_INET6)
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, listener->options.v6_only);
  if (bind(fd, address->ai_addr, address->ai_addrlen) != 0) {
    int code = uv_translate_sys_error(errno);
    close(fd);
    return code;
  }
  listener->fd = fd;
  return 0;
}

/* "127.0.0.1:8080", "[::1]:8080" */
static void write_place(const tide_listener_options *options, char *where,
                        size_t size) {
  const char *host = options->host != NULL ? options->host : "*";
  bool v6 = strchr(host, ':') != NULL;
  snprintf(where, size, v6 ? "[%.120s]:%d" : "%.120s:%d", host, options->port);
}

int tide_listener__resolve(const tide_listener *listener,
                           struct addrinfo **found, char *error, size_t size) {
  const tide_listener_options *options = &listener->options;
  struct addrinfo hints = {.ai_family = AF_UNSPEC,
                           .ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  char port[16];
  char where[160];
  snprintf(port, sizeof port, "%d", options->port);
  write_place(options, where, sizeof where);
  *found = NULL;
  int code = getaddrinfo(options->host, port, &hints, found);
  if (code == 0)
    return 0;
  snprintf(error, size, "listener \"%s\": cannot resolve %s: %s", options->name,
           where, gai_strerror(code));
  return UV_EAI_NONAME;
}

/* The first of its addresses that can be bound. */
static int bind_tcp(tide_listener *listener, char *error, size_t size) {
  struct addrinfo *found;
  char where[160];
  int code = tide_listener__resolve(listener, &found, error, size);
  if (code != 0)
    return code;
  write_place(&listener->options, where, sizeof where);
  code = UV_EADDRNOTAVAIL;
  for (struct addrinfo *a = found; a != NULL && code != 0; a = a->ai_next)
    code = open_tcp(listener, a);
  freeaddrinfo(found);
  return code == 0
             ? 0
             : complain(listener, error, size, where, tcp_hint(code), code);
}

static int bind_unix(tide_listener *listener, char *error, size_t size) {
  const char *path = listener->options.path;
  struct sockaddr_un address;
  char why[160] = "";
  int code = tide_unix_address(path, &address, why, sizeof why);
  if (code == 0)
    code = tide_unix_make_way(&address, why, sizeof why);
  if (code != 0)
    return complain(listener, error, size, path, why, code);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return complain(listener, error, size, path, "",
                    uv_translate_sys_error(errno));
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    code = uv_translate_sys_error(errno);
    close(fd);
    return complain(listener, error, size, path, "", code);
  }
  listener->fd = fd;
  tide_unix_note(path, &listener->inode, &listener->device);
  return 0;
}

static int adopt(tide_listener *listener, char *error, size_t size) {
  int fd = listener->options.fd;
  if (!tide_listener__accepts(fd)) {
    snprintf(error, size,
             "listener \"%s\": inherited fd %d is not a listening socket",
             listener->options.name, fd);
    return UV_EINVAL;
  }
  if (!listener->handed)
    listener->inherited = true;
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
  return listener->options.early && !listener->handed
             ? tide_listener_listen(listener, error, size)
             : 0;
}

void tide_listener__unlink(tide_listener *listener) {
  const char *path = listener->options.path;
  if (path == NULL || tide_listener__is_foreign(listener))
    return;
  /* A successor may have bound the path by now: then it is not ours. */
  if (tide_unix_is_still(path, listener->inode, listener->device))
    unlink(path);
  listener->inode = 0; /* the number may be a successor's in a moment */
}
