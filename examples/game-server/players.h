/* players: who is there, and the socket they are heard and told by. */
#ifndef PLAYERS_H
#define PLAYERS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "game.h"

typedef struct player {
  bool there;
  struct sockaddr_in address;
  char name[GAME_NAME + 1];
  uint64_t heard; /* the frame of the last datagram */
  unsigned match; /* its id; 0: waits for one */
  double x, y;
  double dx, dy; /* a second */
  int points;
} player;

typedef struct players {
  int fd;
  int count;
  player all[GAME_PLAYERS];
} players;

/* Returns 0 or a negative errno. */
int players_open(players *players, uint16_t port);
void players_close(players *players);

/* The next datagram as a text, in place of `text`; false when there is none. */
bool players_receive(players *players, struct sockaddr_in *from, char *text,
                     size_t size);
/* Tells it to an address. What the network drops is dropped. */
void players_tell(const players *players, const struct sockaddr_in *to,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Who is at that address, or NULL. */
player *players_find(players *players, const struct sockaddr_in *address);
/* A new one; NULL when there is no place left. */
player *players_add(players *players, const struct sockaddr_in *address,
                    const char *name);
void players_remove(players *players, player *player);

#endif
