/* game: players on a UDP socket, who collect coins in matches. Knows nothing of
 * moontide.
 *
 * All of it belongs to one thread, that of the frames. Messages are datagrams
 * of text:
 *
 *   join NAME, go DX DY, leave          from a player
 *   wait N                              a match begins when N more have joined
 *   match ID SECONDS                    it has begun
 *   at X Y POINTS                       where the player is, ten times a second
 *   over ID POINTS WHY                  it has ended
 *   refused WHY                         nothing begins for this player
 *   notice WHY                          to those who play: this is coming
 */
#ifndef GAME_H
#define GAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  GAME_RATE = 60, /* frames a second */
  GAME_NAME = 31,
  GAME_PLAYERS = 256,
  GAME_MATCHES = 128,
  GAME_COINS = 64,
};

typedef struct game game;

typedef struct game_rules {
  int players;      /* of a match */
  int most_players; /* of the server, waiting or playing */
  double seconds;   /* of a match */
} game_rules;

typedef struct game_world {
  int width, height;
  int coins;
  struct {
    int x, y;
  } coin[GAME_COINS];
} game_world;

/* Called when a match is to begin, and when it has ended; `begin` may refuse it
 * by returning false. */
typedef struct game_hooks {
  bool (*begin)(void *arg);
  void (*end)(void *arg);
  void *arg;
} game_hooks;

typedef struct game_match_info {
  unsigned id; /* 0: there is no match in this place */
  int players;
  double seconds_left;
  int points; /* of all players */
} game_match_info;

/* NULL with errno. */
game *game_new(const game_hooks *hooks);
void game_free(game *game);

void game_set_rules(game *game, const game_rules *rules);
/* Nothing begins without a world. */
void game_set_world(game *game, const game_world *world);
/* Opens the socket on 127.0.0.1. Returns 0 or a negative errno. */
int game_open(game *game, uint16_t port);

/* One frame: takes what players sent, moves everything by 1/60 s, tells. */
void game_frame(game *game);

/* No match begins from now on: who waits is refused, who plays gets a notice,
 * who joins is refused. */
void game_close_doors(game *game, const char *why);
/* Ends a match at once; false when there is none of this id. */
bool game_end_match(game *game, unsigned id, const char *why);
void game_end_all(game *game, const char *why);

/* Whether one more may join. */
bool game_has_room(const game *game);
/* Waiting or playing. */
int game_players(const game *game);
/* What is in the place, from 0 to GAME_MATCHES - 1. */
game_match_info game_match_at(const game *game, int place);
/* All scores so far, a line each: points, name. The caller frees it; NULL when
 * memory is out. */
char *game_scores(const game *game);

#endif
