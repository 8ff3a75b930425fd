/* diag: asks the kernel which handshakes of a port are under way.
 *
 * A gated listener may be closed once none is: each has then become a
 * connection in the accept queue, or is gone. One NETLINK_SOCK_DIAG dump,
 * filtered to the state and the port; no privilege is needed.
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

enum { SYN_RECV = 3 }; /* TCP_SYN_RECV of the kernel */

static int ask(int fd, int family, uint16_t port) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
  } request;
  memset(&request, 0, sizeof request);
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = (uint8_t)family;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = 1u << SYN_RECV;
  request.body.id.idiag_sport = htons(port);
  return send(fd, &request, sizeof request, 0) == sizeof request ? 0 : -1;
}

/* Counts the messages of one reply; *done: it was the last. */
static int count(const char *data, size_t length, uint16_t port, bool *done) {
  int found = 0;
  const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)data;
  while (length >= sizeof *header && header->nlmsg_len >= sizeof *header &&
         header->nlmsg_len <= length) {
    if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) {
      *done = true;
      return header->nlmsg_type == NLMSG_ERROR ? -1 : found;
    }
    const struct inet_diag_msg *m = NLMSG_DATA(header);
    found += m->idiag_state == SYN_RECV && ntohs(m->id.idiag_sport) == port;
    size_t step = NLMSG_ALIGN(header->nlmsg_len);
    if (step >= length)
      break;
    length -= step;
    header =
        (const struct nlmsghdr *)(const void *)((const char *)header + step);
  }
  return found;
}

int tide_diag__syn_recv(int family, uint16_t port) {
  _Alignas(struct nlmsghdr) char buffer[8192];
  int total = -1;
  int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0)
    return -1;
  bool done = ask(fd, family, port) != 0;
  while (!done) {
    ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0)
      break;
    int found = count(buffer, (size_t)got, port, &done);
    if (found < 0)
      break;
    total = (total < 0 ? 0 : total) + found;
  }
  close(fd);
  return total;
}
