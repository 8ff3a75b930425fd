/* proxy: TCP connections forwarded from ports to addresses, on an epoll that is
 * the program's own. Knows nothing of moontide.
 */
#ifndef PROXY_H
#define PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct proxy proxy;

/* Called when a connection begins and when it has ended; `begin` may refuse it
 * by returning false. */
typedef struct proxy_hooks {
  bool (*begin)(void *arg);
  void (*end)(void *arg);
  void *arg;
} proxy_hooks;

/* NULL with errno. */
proxy *proxy_new(int epoll, const proxy_hooks *hooks);

/* Opens the port, or gives the open one another target ("127.0.0.1:7100") for
 * the connections to come. Returns 0 or a negative errno. */
int proxy_route(proxy *proxy, uint16_t port, const char *target);
/* Closes ports that no proxy_route has named since the last call. */
void proxy_forget_others(proxy *proxy);
/* Closes all ports; connections go on. */
void proxy_close_ports(proxy *proxy);
/* Cuts all connections. */
void proxy_cut(proxy *proxy);

/* Ends it: ports, connections, memory. */
void proxy_free(proxy *proxy);

/* Takes up an event: `data` is epoll's, which holds a pointer of the proxy's.
 */
void proxy_event(proxy *proxy, void *data, uint32_t events);
/* Frees what has ended, once all events of a batch were taken up, and after a
 * wait of proxy_timeout. */
void proxy_collect(proxy *proxy);
/* For how long to wait for events at most: milliseconds, -1: for ever. */
int proxy_timeout(const proxy *proxy);

#endif
