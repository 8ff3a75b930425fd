/* proxy.c: forwarding. An end of a connection reads only while the other one
 * has room, so a slow side holds up the fast one and not the memory.
 *
 * A connection takes two descriptors. The second one is had before the first
 * one is accepted, so nobody is taken out of a queue only to be refused. When
 * there is none left, ports are not listened to for a while: epoll would report
 * them again and again, for as long as somebody waits there. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 16384, BACKLOG = 512, PAUSE_MS = 100 };

/* What an event is about; the first member of ports and ends. */
typedef struct watched {
  void (*on_event)(proxy *proxy, struct watched *watched, uint32_t events);
} watched;

typedef struct port {
  watched watched;
  struct port *next;
  int fd;
  uint16_t number;
  struct sockaddr_in target;
  bool wanted;
} port;

typedef struct end {
  watched watched;
  struct link *link;
  struct end *other;
  int fd;
  uint32_t interest;   /* what epoll was told */
  char data[ROOM];     /* read here, to be written to the other */
  size_t from, length; /* of data */
  bool connecting;
  bool eof;  /* nothing more comes from here */
  bool shut; /* the other's end was passed on to here */
} end;

typedef struct link {
  struct link *next;
  struct link *previous;
  end ends[2]; /* the client, the target */
} link_t;

struct proxy {
  int epoll;
  proxy_hooks hooks;
  port *ports;
  port *closed;
  link_t *links;
  link_t *dead;      /* an event of the same batch may still name them */
  int spare;         /* for the target of the next connection; -1: none */
  int64_t resume_at; /* ms; 0: ports are listened to */
};

/* ---- descriptors -----------------------------------------------------------
 */

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void listen_to_ports(proxy *proxy, uint32_t interest) {
  for (port *port = proxy->ports; port != NULL; port = port->next) {
    struct epoll_event event = {.events = interest, .data.ptr = port};
    epoll_ctl(proxy->epoll, EPOLL_CTL_MOD, port->fd, &event);
  }
}

static void pause_ports(proxy *proxy) {
  if (proxy->resume_at == 0)
    listen_to_ports(proxy, 0);
  proxy->resume_at = now_ms() + PAUSE_MS;
}

static void resume_ports(proxy *proxy) {
  if (proxy->resume_at != 0)
    listen_to_ports(proxy, EPOLLIN);
  proxy->resume_at = 0;
}

static bool have_spare(proxy *proxy) {
  if (proxy->spare < 0)
    proxy->spare =
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return proxy->spare >= 0;
}

/* Errors of accept(2) that are the connection's, and say nothing of the next
 * one; of the others but EAGAIN, it will be the same for a while. */
static bool may_try_again(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO ||
         error == EPERM;
}

/* ---- connections -----------------------------------------------------------
 */

static void close_link(proxy *proxy, link_t *link) {
  if (link->ends[0].fd < 0)
    return; /* already */
  for (int i = 0; i < 2; i++) {
    close(link->ends[i].fd);
    link->ends[i].fd = -1;
  }
  if (link->next != NULL)
    link->next->previous = link->previous;
  *(link->previous != NULL ? &link->previous->next : &proxy->links) =
      link->next;
  link->next = proxy->dead;
  proxy->dead = link;
  proxy->hooks.end(proxy->hooks.arg);
  resume_ports(proxy); /* there are two descriptors again */
}

int proxy_timeout(const proxy *proxy) {
  int64_t left = proxy->resume_at - now_ms();
  if (proxy->resume_at == 0)
    return -1;
  return left > 0 ? (int)left : 0;
}

void proxy_collect(proxy *proxy) {
  if (proxy->resume_at != 0 && now_ms() >= proxy->resume_at)
    resume_ports(proxy); /* somebody else may have let go of some */
  while (proxy->dead != NULL) {
    link_t *link = proxy->dead;
    proxy->dead = link->next;
    free(link);
  }
  while (proxy->closed != NULL) {
    port *port = proxy->closed;
    proxy->closed = port->next;
    free(port);
  }
}

static void watch(proxy *proxy, end *end) {
  uint32_t interest = 0;
  struct epoll_event event;
  if (end->connecting || end->other->length > 0)
    interest |= EPOLLOUT;
  if (!end->connecting && !end->eof && end->length == 0)
    interest |= EPOLLIN;
  if (interest == end->interest)
    return;
  end->interest = interest;
  event = (struct epoll_event){.events = interest, .data.ptr = end};
  epoll_ctl(proxy->epoll, EPOLL_CTL_MOD, end->fd, &event);
}

/* Returns false when the connection is broken. */
static bool fill(end *end) {
  ssize_t n;
  if (end->eof || end->length > 0)
    return true;
  n = read(end->fd, end->data, ROOM);
  if (n > 0) {
    end->from = 0;
    end->length = (size_t)n;
    return true;
  }
  if (n == 0)
    end->eof = true;
  return n == 0 || errno == EAGAIN || errno == EINTR;
}

/* What the other end has read goes out here, and then its end. */
static bool flush(end *end) {
  struct end *source = end->other;
  ssize_t n;
  if (source->length > 0) {
    n = send(end->fd, source->data + source->from, source->length,
             MSG_NOSIGNAL);
    if (n < 0)
      return errno == EAGAIN || errno == EINTR;
    source->from += (size_t)n;
    source->length -= (size_t)n;
  }
  if (source->eof && source->length == 0 && !end->shut) {
    end->shut = true;
    shutdown(end->fd, SHUT_WR);
  }
  return true;
}

static bool connected(end *end) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  end->connecting = false;
  return error == 0;
}

static void on_end(proxy *proxy, watched *watched, uint32_t events) {
  end *at = (end *)watched;
  link_t *link = at->link;
  bool fine = true;
  if (at->fd < 0)
    return; /* closed by an event of the same batch */
  if (at->connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
    fine = connected(at);
  if (fine && !at->connecting && (events & (EPOLLIN | EPOLLHUP)) != 0)
    fine = fill(at);
  for (int i = 0; fine && i < 2; i++)
    if (!link->ends[i].connecting)
      fine = flush(&link->ends[i]);
  if (!fine || (events & EPOLLERR) != 0 ||
      (link->ends[0].shut && link->ends[1].shut)) {
    close_link(proxy, link);
    return;
  }
  watch(proxy, &link->ends[0]);
  watch(proxy, &link->ends[1]);
}

static bool add(proxy *proxy, watched *watched, int fd, uint32_t interest) {
  struct epoll_event event = {.events = interest, .data.ptr = watched};
  return epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static link_t *new_link(proxy *proxy, int client, int target) {
  link_t *link = calloc(1, sizeof *link);
  if (link == NULL)
    return NULL;
  for (int i = 0; i < 2; i++) {
    end *end = &link->ends[i];
    end->watched.on_event = on_end;
    end->link = link;
    end->other = &link->ends[1 - i];
    end->fd = i == 0 ? client : target;
  }
  link->ends[1].connecting = true;
  if (!add(proxy, &link->ends[0].watched, client, 0) ||
      !add(proxy, &link->ends[1].watched, target, 0)) {
    free(link);
    return NULL;
  }
  return link;
}

/* Begins to forward a client; false: it was closed. */
static bool forward(proxy *proxy, const port *port, int client) {
  int target = proxy->spare;
  link_t *link = NULL;
  proxy->spare = -1;
  if (connect(target, (const struct sockaddr *)&port->target,
              sizeof port->target) == 0 ||
      errno == EINPROGRESS)
    link = new_link(proxy, client, target);
  if (link == NULL) {
    close(target);
    close(client);
    return false;
  }
  link->next = proxy->links;
  if (proxy->links != NULL)
    proxy->links->previous = link;
  proxy->links = link;
  watch(proxy, &link->ends[0]);
  watch(proxy, &link->ends[1]);
  return true;
}

/* ---- ports ---- */

/* The next client of a port's queue; -1: none, or none can be taken now. */
static int accept_one(proxy *proxy, const port *port) {
  int client;
  do {
    if (!have_spare(proxy)) {
      pause_ports(proxy);
      return -1;
    }
    client = accept4(port->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (client < 0 && may_try_again(errno));
  if (client < 0 && errno != EAGAIN)
    pause_ports(proxy);
  return client;
}

static void on_port(proxy *proxy, watched *watched, uint32_t events) {
  port *port = (struct port *)watched;
  int client;
  (void)events;
  while (port->fd >= 0 && (client = accept_one(proxy, port)) >= 0)
    if (!proxy->hooks.begin(proxy->hooks.arg))
      close(client);
    else if (!forward(proxy, port, client))
      proxy->hooks.end(proxy->hooks.arg);
}

static int listen_on(uint16_t number) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(number),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1, error;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
      listen(fd, BACKLOG) == 0)
    return fd;
  error = errno;
  close(fd);
  return -error;
}

static int parse_target(const char *text, struct sockaddr_in *out) {
  const char *colon = strrchr(text, ':');
  char host[INET_ADDRSTRLEN];
  long number = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
  if (number < 1 || number > 65535 || (size_t)(colon - text) >= sizeof host)
    return -EINVAL;
  memcpy(host, text, (size_t)(colon - text));
  host[colon - text] = '\0';
  *out = (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)number)};
  return inet_pton(AF_INET, host, &out->sin_addr) == 1 ? 0 : -EINVAL;
}

static int open_port(proxy *proxy, uint16_t number,
                     const struct sockaddr_in *target) {
  int fd = listen_on(number), error = ENOMEM;
  port *opened;
  if (fd < 0)
    return fd;
  opened = calloc(1, sizeof *opened);
  if (opened == NULL)
    goto fail;
  opened->watched.on_event = on_port;
  opened->number = number;
  opened->target = *target;
  opened->wanted = true;
  opened->fd = fd;
  if (!add(proxy, &opened->watched, fd, proxy->resume_at == 0 ? EPOLLIN : 0)) {
    error = errno;
    goto fail;
  }
  opened->next = proxy->ports;
  proxy->ports = opened;
  return 0;

fail:
  free(opened);
  close(fd);
  return -error;
}

/* Those in the queue of a port that closes are taken first. */
static void close_port(proxy *proxy, port **at) {
  port *port = *at;
  on_port(proxy, &port->watched, EPOLLIN);
  close(port->fd);
  port->fd = -1;
  *at = port->next;
  port->next = proxy->closed;
  proxy->closed = port;
}

/* ---- public ---- */

proxy *proxy_new(int epoll, const proxy_hooks *hooks) {
  proxy *made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->epoll = epoll;
  made->spare = -1;
  made->hooks = *hooks;
  return made;
}

int proxy_route(proxy *proxy, uint16_t number, const char *target) {
  struct sockaddr_in address;
  int error = parse_target(target, &address);
  if (error != 0)
    return error;
  for (port *port = proxy->ports; port != NULL; port = port->next)
    if (port->number == number) {
      port->target = address;
      port->wanted = true;
      return 0;
    }
  return open_port(proxy, number, &address);
}

void proxy_forget_others(proxy *proxy) {
  port **at = &proxy->ports;
  while (*at != NULL) {
    if (!(*at)->wanted) {
      close_port(proxy, at);
    } else {
      (*at)->wanted = false;
      at = &(*at)->next;
    }
  }
}

void proxy_close_ports(proxy *proxy) {
  while (proxy->ports != NULL)
    close_port(proxy, &proxy->ports);
}

void proxy_cut(proxy *proxy) {
  while (proxy->links != NULL)
    close_link(proxy, proxy->links);
}

void proxy_free(proxy *proxy) {
  proxy_close_ports(proxy);
  proxy_cut(proxy);
  proxy_collect(proxy);
  if (proxy->spare >= 0)
    close(proxy->spare);
  free(proxy);
}

void proxy_event(proxy *proxy, void *data, uint32_t events) {
  watched *watched = data;
  watched->on_event(proxy, watched, events);
}
