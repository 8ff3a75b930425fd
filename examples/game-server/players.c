/* players.c: a table of players, and their socket. */
#include "players.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONGEST = 128 };

int players_open(players *players, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int error;
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    error = errno;
    close(fd);
    return -error;
  }
  players->fd = fd;
  return 0;
}

void players_close(players *players) {
  if (players->fd >= 0)
    close(players->fd);
  players->fd = -1;
}

/* ---- datagrams ---- */

bool players_receive(players *players, struct sockaddr_in *from, char *text,
                     size_t size) {
  socklen_t length = sizeof *from;
  ssize_t n;
  if (players->fd < 0)
    return false;
  do /* an earlier answer's "nobody is there" is no end of the queue */
    n = recvfrom(players->fd, text, size - 1, 0, (struct sockaddr *)from,
                 &length);
  while (n < 0 && (errno == EINTR || errno == ECONNREFUSED));
  if (n < 0)
    return false;
  text[n] = '\0';
  text[strcspn(text, "\r\n")] = '\0';
  return true;
}

void players_tell(const players *players, const struct sockaddr_in *to,
                  const char *format, ...) {
  char text[LONGEST];
  va_list arguments;
  int n;
  va_start(arguments, format);
  n = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (n < 0 || players->fd < 0)
    return;
  if ((size_t)n >= sizeof text)
    n = sizeof text - 1;
  sendto(players->fd, text, (size_t)n, MSG_DONTWAIT,
         (const struct sockaddr *)to, sizeof *to);
}

/* ---- the table ---- */

player *players_find(players *players, const struct sockaddr_in *address) {
  for (int i = 0; i < GAME_PLAYERS; i++) {
    player *at = &players->all[i];
    if (at->there && at->address.sin_port == address->sin_port &&
        at->address.sin_addr.s_addr == address->sin_addr.s_addr)
      return at;
  }
  return NULL;
}

player *players_add(players *players, const struct sockaddr_in *address,
                    const char *name) {
  for (int i = 0; i < GAME_PLAYERS; i++) {
    player *at = &players->all[i];
    if (at->there)
      continue;
    *at = (player){.there = true, .address = *address};
    snprintf(at->name, sizeof at->name, "%s", name);
    players->count++;
    return at;
  }
  return NULL;
}

void players_remove(players *players, player *player) {
  player->there = false;
  players->count--;
}
