/* handover: a listening socket goes from a process to its successor.
 *
 * Both hold a descriptor of one socket, and so of one queue: there is no moment
 * in which a client is refused, and none in which a queue is closed with
 * clients in it. Who may accept is agreed elsewhere (lua/moontide/takeover).
 */
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../unix_path.h"
#include "internal.h"

typedef union any_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  struct sockaddr_un un;
} any_address;

bool tide_listener_lend(const tide_listener *listener, tide_handover *out) {
  if (listener->fd < 0 || !listener->listening ||
      listener->unbind != TIDE_BOUND)
    return false;
  *out = (tide_handover){
      .fd = listener->fd,
      .address = listener->address,
      .inherited = listener->inherited,
      .inode = listener->inherited ? 0 : listener->inode,
      .device = listener->device,
  };
  return true;
}

bool tide_listener__accepts(int fd) {
  int accepting = 0;
  socklen_t length = sizeof accepting;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) == 0 &&
         accepting != 0;
}

/* The same interface, and the same clients. */
static bool same_v6(const any_address *has, const struct addrinfo *wanted,
                    int fd, bool v6_only) {
  const struct sockaddr_in6 *v6 =
      (const struct sockaddr_in6 *)(const void *)wanted->ai_addr;
  int only = 0;
  socklen_t length = sizeof only;
  if (memcmp(&has->v6.sin6_addr, &v6->sin6_addr, sizeof v6->sin6_addr) != 0 ||
      has->v6.sin6_scope_id != v6->sin6_scope_id)
    return false;
  if (!IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
    return true;
  return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length) == 0 &&
         (only != 0) == v6_only;
}

static bool same_host(const any_address *has, const struct addrinfo *wanted,
                      int fd, bool v6_only) {
  if (has->any.sa_family != wanted->ai_family)
    return false;
  if (wanted->ai_family == AF_INET6)
    return same_v6(has, wanted, fd, v6_only);
  const struct sockaddr_in *v4 =
      (const struct sockaddr_in *)(const void *)wanted->ai_addr;
  return has->v4.sin_addr.s_addr == v4->sin_addr.s_addr;
}

static bool fits_tcp(const tide_listener *listener, const any_address *has,
                     int fd, bool any_port) {
  struct addrinfo *found;
  char error[256];
  bool fits = false;
  int port = listener->options.port;
  int has_port = ntohs(has->any.sa_family == AF_INET6 ? has->v6.sin6_port
                                                      : has->v4.sin_port);
  if (port != has_port && !(port == 0 && any_port))
    return false;
  if (tide_listener__resolve(listener, &found, error, sizeof error) != 0)
    return false;
  for (struct addrinfo *a = found; a != NULL && !fits; a = a->ai_next)
    fits = same_host(has, a, fd, listener->options.v6_only);
  freeaddrinfo(found);
  return fits;
}

/* Whether the socket is bound to what the listener declares. */
static bool fits(const tide_listener *listener, int fd, tide_fit fit) {
  any_address has;
  socklen_t length = sizeof has;
  const char *path = listener->options.path;
  memset(&has, 0, sizeof has);
  if (!tide_listener__accepts(fd) || getsockname(fd, &has.any, &length) != 0)
    return false;
  if (fit == TIDE_FIT_NAME)
    return true;
  if (has.any.sa_family == AF_UNIX)
    return path != NULL && strcmp(has.un.sun_path, path) == 0;
  return path == NULL && fits_tcp(listener, &has, fd, fit == TIDE_FIT_ADDRESS);
}

/* Whether the path of a Unix socket still leads to it. Else nobody could ever
 * connect, and the listener had better bind the path anew. */
static bool is_reachable(const tide_listener *listener,
                         const tide_handover *given) {
  const char *path = listener->options.path;
  return path == NULL || given->inode == 0 ||
         tide_unix_is_still(path, given->inode, given->device);
}

bool tide_listener_adopt(tide_listener *listener, const tide_handover *given,
                         tide_fit fit) {
  if (listener->fd >= 0 || listener->options.fd >= 0 ||
      !fits(listener, given->fd, fit) || !is_reachable(listener, given))
    return false;
  listener->options.fd = given->fd;
  listener->handed = true;
  listener->inherited = given->inherited;
  listener->inode = given->inode; /* so the path is ours to unlink */
  listener->device = given->device;
  return true;
}

void tide_listener_hold(tide_listener *listener, bool hold) {
  listener->held = hold;
  if (hold && listener->poll_open)
    uv_poll_stop(&listener->poll);
  else if (!hold)
    tide_listener__watch(listener);
}

void tide_listener_disown(tide_listener *listener, bool disown) {
  listener->succeeded = disown;
}

bool tide_listener__is_foreign(const tide_listener *listener) {
  return listener->inherited || listener->succeeded;
}
