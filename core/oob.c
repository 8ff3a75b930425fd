/* oob.c: who is at the out-of-band line, and what they send and are sent. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fork.h"
#include "watchdog_inside.h"

/* ---- clients ---------------------------------------------------------- */

void tide_oob_drop(tide_oob_client *client) {
  tide_fork_close(&client->fd);
}

/* What the socket takes now; the rest when it can be written again. */
static void send_out(tide_oob_client *client) {
  ssize_t sent;
  if (client->out_length == 0)
    return;
  sent = send(client->fd, client->out, client->out_length,
              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    tide_oob_drop(client);
    return;
  }
  if (sent > 0) {
    client->out_length -= (size_t)sent;
    memmove(client->out, client->out + sent, client->out_length);
  }
}

/* A line of a browser that was led here closes the connection: what comes
 * behind it would be read as requests. */
static bool is_http(const char *line, size_t length) {
  return memmem(line, length, " HTTP/", 6) != NULL;
}

static void begin_line(tide_watchdog *watchdog, tide_oob_client *client,
                       size_t length) {
  if (length > 0 && client->in[length - 1] == '\r')
    length--;
  if (is_http(client->in, length)) {
    tide_oob_audit(watchdog, client->uid, client->pid,
                   "refused a line that looks like HTTP", NULL);
    client->over = true;
    return;
  }
  tide_oob_parse(client->in, length, &client->request);
  client->began = tide_clock_mono();
  tide_oob_begin(watchdog, client);
}

/* One line at most: totals are looked at between two. */
static void next_line(tide_watchdog *watchdog, tide_oob_client *client) {
  char *end = memchr(client->in, '\n', client->in_length);
  size_t length;
  if (client->busy || client->out_length > 0 || client->over)
    return;
  if (end == NULL) {
    if (client->in_length == sizeof client->in) {
      client->request = (tide_oob_request){.type = TIDE_OOB_BAD}; /* no id */
      tide_oob_tell(client, "error", "a line has at most 4095 bytes");
      client->over = true;
    } else if (client->eof) {
      client->over = true;
    }
    return;
  }
  length = (size_t)(end - client->in);
  begin_line(watchdog, client, length);
  client->in_length -= length + 1;
  memmove(client->in, end + 1, client->in_length);
}

static void receive(tide_oob_client *client) {
  ssize_t got = recv(client->fd, client->in + client->in_length,
                     sizeof client->in - client->in_length, MSG_DONTWAIT);
  if (got > 0) {
    client->in_length += (size_t)got;
    client->heard_at = tide_clock_mono();
  } else if (got == 0) {
    client->eof = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    tide_oob_drop(client);
  }
}

static bool has_line(const tide_oob_client *client) {
  return !client->busy && client->out_length == 0 && !client->over &&
         memchr(client->in, '\n', client->in_length) != NULL;
}

static void finish(tide_oob_client *client) {
  if (client->fd >= 0)
    send_out(client);
  if (client->fd >= 0 && client->over && client->out_length == 0)
    tide_oob_drop(client);
}

/* How long it does not listen when there are no descriptors at all. */
#define DEAF (1 * TIDE_SEC)

/* ---- arriving --------------------------------------------------------- */

/* A free place, or that of whoever has been silent longest. */
static tide_oob_client *place_for(tide_oob_room *room) {
  tide_oob_client *found = &room->clients[0];
  int i;
  for (i = 0; i < TIDE_OOB_CLIENTS; i++) {
    tide_oob_client *client = &room->clients[i];
    if (client->fd < 0)
      return client;
    if (client->heard_at < found->heard_at)
      found = client;
  }
  tide_oob_drop(found);
  return found;
}

static void seat(tide_oob_client *client, int *fd, const struct ucred *peer) {
  bool held = tide_fork_hold_off();
  client->fd = *fd;
  *fd = -1;
  tide_fork_go_ahead(held);
  client->uid = peer->uid;
  client->pid = peer->pid;
  client->heard_at = tide_clock_mono();
  client->eof = client->busy = client->over = false;
  client->in_length = client->out_length = 0;
}

/* 0, or errno. */
static int accept_one(tide_oob *oob) {
  bool held = tide_fork_hold_off();
  int error;
  oob->coming = accept4(oob->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  error = oob->coming >= 0 ? 0 : errno;
  tide_fork_go_ahead(held);
  return error;
}

/* A process out of descriptors is one that somebody wants to look into: there
 * is one kept for him. Without it, or without memory, the socket waits: polled
 * on, it would spin. */
static void accept_with_spare(tide_oob *oob) {
  int error = accept_one(oob);
  if (error == 0 || error == EAGAIN || error == ECONNABORTED)
    return;
  if (oob->spare >= 0) {
    tide_fork_close(&oob->spare);
    error = accept_one(oob);
  }
  if (error != 0)
    oob->deaf_until = tide_clock_mono() + DEAF;
}

static void keep_spare(tide_oob *oob) {
  bool held;
  if (oob->spare >= 0)
    return;
  held = tide_fork_hold_off();
  oob->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
  tide_fork_go_ahead(held);
}

static uint64_t look_at_spare(tide_oob *oob, uint64_t now) {
  keep_spare(oob);
  if (oob->deaf_until == 0)
    return TIDE_NEVER;
  if (oob->spare >= 0 || now >= oob->deaf_until)
    oob->deaf_until = 0;
  return oob->deaf_until != 0 ? oob->deaf_until : now;
}

/* The directory lets nobody else in; this is for who came by another way. */
static void arrive(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  struct ucred peer = {0};
  socklen_t length = sizeof peer;
  accept_with_spare(oob);
  if (oob->coming < 0)
    return;
  if (getsockopt(oob->coming, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    tide_fork_close(&oob->coming);
  } else if (peer.uid != 0 && peer.uid != geteuid()) {
    tide_oob_audit(watchdog, peer.uid, peer.pid,
                   "refused who is neither this user nor root", NULL);
    tide_fork_close(&oob->coming);
  } else {
    seat(place_for(oob->room), &oob->coming, &peer);
  }
}

/* ---- waiting ---------------------------------------------------------- */

enum { AT_ALARM, AT_LISTEN, AT_CLIENTS };

/* Who is busy, or has not read the last answer, is not read from. */
static short events_of(const tide_oob_client *client) {
  if (client->out_length > 0)
    return POLLOUT;
  return client->busy || client->eof ? 0 : POLLIN;
}

static nfds_t gather(const tide_oob *oob, struct pollfd *fds) {
  int i;
  fds[AT_LISTEN] = (struct pollfd){.fd = oob->deaf_until == 0 ? oob->fd : -1,
                                   .events = POLLIN};
  for (i = 0; i < TIDE_OOB_CLIENTS; i++) {
    const tide_oob_client *client = &oob->room->clients[i];
    fds[AT_CLIENTS + i] = (struct pollfd){
        .fd = client->fd, .events = client->fd >= 0 ? events_of(client) : 0};
  }
  return AT_CLIENTS + TIDE_OOB_CLIENTS;
}

/* Hung up: the other side is gone altogether. What it had sent before is still
 * read, but for what it no longer reads itself nobody waits. */
static void serve(tide_oob_client *client, short events) {
  if (events & POLLIN)
    receive(client);
  else if (events & (POLLHUP | POLLERR | POLLNVAL))
    tide_oob_drop(client);
}

bool tide_oob_wait(tide_watchdog *watchdog, uint64_t at) {
  tide_oob *oob = &watchdog->oob;
  struct pollfd fds[AT_CLIENTS + TIDE_OOB_CLIENTS];
  bool rung;
  int i;
  if (oob->fd < 0)
    return tide_alarm_wait(&watchdog->alarm, at);
  rung = tide_alarm_poll(&watchdog->alarm, at, fds, gather(oob, fds));
  for (i = 0; i < TIDE_OOB_CLIENTS; i++)
    if (fds[AT_CLIENTS + i].revents != 0)
      serve(&oob->room->clients[i], fds[AT_CLIENTS + i].revents);
  if (fds[AT_LISTEN].revents != 0)
    arrive(watchdog);
  return rung;
}

static uint64_t look_at(tide_watchdog *watchdog, tide_oob_client *client,
                        uint64_t now) {
  uint64_t next = now;
  if (client->busy)
    next = tide_oob_go_on(watchdog, client, now);
  else
    next_line(watchdog, client);
  if (client->busy && atomic_load(&watchdog->oob.leaving))
    tide_oob_break_off(client);
  finish(client);
  if (client->fd < 0 || !(client->busy || has_line(client)))
    return TIDE_NEVER;
  return client->busy ? next : now;
}

uint64_t tide_oob_look(tide_watchdog *watchdog, uint64_t now) {
  tide_oob *oob = &watchdog->oob;
  uint64_t next = tide_oob_attend(watchdog, now);
  int i, busy = 0;
  if (oob->fd >= 0)
    next = tide_earlier(next, look_at_spare(oob, now));
  for (i = 0; oob->fd >= 0 && i < TIDE_OOB_CLIENTS; i++) {
    tide_oob_client *client = &oob->room->clients[i];
    if (client->fd >= 0)
      next = tide_earlier(next, look_at(watchdog, client, now));
    busy += client->fd >= 0 && client->busy;
  }
  atomic_store(&oob->busy, busy); /* behind what was sent */
  return next;
}

void tide_oob_farewell(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  int i;
  atomic_store(&oob->leaving, true);
  for (i = 0; oob->fd >= 0 && i < TIDE_OOB_CLIENTS; i++) {
    tide_oob_client *client = &oob->room->clients[i];
    if (client->fd >= 0 && client->busy)
      look_at(watchdog, client, tide_clock_mono());
  }
}
