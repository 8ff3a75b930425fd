/* notify: talking to systemd without its library.
 *
 * sd_notify datagrams and socket activation. The variables ($NOTIFY_SOCKET,
 * $WATCHDOG_USEC, $LISTEN_FDS, ...) are read once and unset, so that children
 * do not inherit them. [loop]
 */
#ifndef TIDE_NOTIFY_H
#define TIDE_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide_notify tide_notify;

/* Reads the environment. Never fails for a missing variable; returns 0 or a
 * negative libuv error (out of memory). */
int tide_notify_open(tide_notify **out);
void tide_notify_close(tide_notify *notify);
/* In a child: closes its copy of the socket, and that is all. */
void tide_notify_after_fork(tide_notify *notify);

/* Whether there is somebody to notify. */
bool tide_notify_active(const tide_notify *notify);
/* Sends lines ("READY=1\nSTATUS=..."), one datagram, without blocking. Returns
 * 0, or a negative errno. Without a socket: 0. */
int tide_notify_send(tide_notify *notify, const char *lines);
/* Sends nothing from now on: another process is the service. */
void tide_notify_mute(tide_notify *notify);
/* Half of WATCHDOG_USEC in ns when the watchdog is meant for us, else 0. */
uint64_t tide_notify_watchdog_interval(const tide_notify *notify);

/* Inherited listening sockets: count, and the i-th one's fd and name (""
 * without LISTEN_FDNAMES). They are CLOEXEC and non-blocking. */
int tide_notify_listen_fds(const tide_notify *notify);
int tide_notify_listen_fd(const tide_notify *notify, int index,
                          const char **name);

#endif
