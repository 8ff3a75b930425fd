/* game.c: joining, matches, frames. */
#include "game.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "players.h"

enum {
  TELL_EVERY = GAME_RATE / 10,
  SILENT_FOR = 5 * GAME_RATE, /* then a player has gone */
  MESSAGES = 1000,            /* that a frame takes: the rest has to wait */
  REACH = 2,                  /* of a player to a coin */
};

typedef struct match {
  unsigned id; /* 0: none */
  int players;
  uint64_t ends; /* the frame */
} match;

typedef struct score {
  struct score *next;
  int points;
  char name[GAME_NAME + 1];
} score;

struct game {
  game_hooks hooks;
  game_rules rules;
  game_world world;
  const char *closed; /* why nobody may join; NULL: all may */
  uint64_t frame;
  unsigned last_id;
  int waiting;
  match matches[GAME_MATCHES];
  players players;
  score *scores;
};

/* For every player that is there. */
#define EACH_PLAYER(at, game)                                                  \
  for (player *at = (game)->players.all;                                       \
       at < (game)->players.all + GAME_PLAYERS; at++)                          \
    if (at->there)

/* ---- scores ---- */

/* A score that cannot be kept for want of memory is not kept. */
static void keep_score(game *game, const player *player) {
  score *at = game->scores;
  while (at != NULL && strcmp(at->name, player->name) != 0)
    at = at->next;
  if (at == NULL) {
    at = calloc(1, sizeof *at);
    if (at == NULL)
      return;
    memcpy(at->name, player->name, sizeof at->name);
    at->next = game->scores;
    game->scores = at;
  }
  at->points += player->points;
}

char *game_scores(const game *game) {
  size_t size = 1, length = 0;
  char *text;
  for (const score *at = game->scores; at != NULL; at = at->next)
    size += sizeof at->name + 16;
  text = malloc(size);
  if (text == NULL)
    return NULL;
  text[0] = '\0';
  for (const score *at = game->scores; at != NULL; at = at->next)
    length += (size_t)snprintf(text + length, size - length, "%d %s\n",
                               at->points, at->name);
  return text;
}

/* ---- matches ---- */

static match *find_match(game *game, unsigned id) {
  for (int i = 0; i < GAME_MATCHES; i++)
    if (id != 0 && game->matches[i].id == id)
      return &game->matches[i];
  return NULL;
}

static match *free_match(game *game) {
  for (int i = 0; i < GAME_MATCHES; i++)
    if (game->matches[i].id == 0)
      return &game->matches[i];
  return NULL;
}

static void end_match(game *game, match *match, const char *why) {
  EACH_PLAYER (at, game) {
    if (at->match != match->id)
      continue;
    players_tell(&game->players, &at->address, "over %u %d %s", match->id,
                 at->points, why);
    keep_score(game, at);
    players_remove(&game->players, at);
  }
  match->id = 0;
  game->hooks.end(game->hooks.arg);
}

static void refuse_waiting(game *game, const char *why) {
  EACH_PLAYER (at, game)
    if (at->match == 0) {
      players_tell(&game->players, &at->address, "refused %s", why);
      players_remove(&game->players, at);
    }
  game->waiting = 0;
}

/* Those who have waited enter the match, as many as it takes. */
static void enter(game *game, match *match) {
  EACH_PLAYER (at, game) {
    if (at->match != 0 || match->players == game->rules.players)
      continue;
    at->match = match->id;
    at->x = game->world.width * (match->players + 1.0) /
            (game->rules.players + 1.0);
    at->y = game->world.height / 2.0;
    match->players++;
    game->waiting--;
    players_tell(&game->players, &at->address, "match %u %g", match->id,
                 game->rules.seconds);
  }
}

static void begin_matches(game *game) {
  while (game->waiting >= game->rules.players) {
    match *match = free_match(game);
    if (match == NULL)
      return; /* they wait for one to end */
    if (!game->hooks.begin(game->hooks.arg)) {
      refuse_waiting(game, "draining");
      return;
    }
    match->id = ++game->last_id;
    match->players = 0;
    match->ends = game->frame + (uint64_t)(game->rules.seconds * GAME_RATE);
    enter(game, match);
  }
}

/* ---- messages ---- */

static bool is_name(const char *name) {
  size_t length = strlen(name);
  return length > 0 && length <= GAME_NAME &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == length;
}

static const char *refusal(const game *game, const char *name) {
  if (game->closed != NULL)
    return game->closed;
  if (game->world.width == 0)
    return "starting";
  if (!is_name(name))
    return "that is no name";
  return game_has_room(game) ? NULL : "full";
}

/* A datagram may be lost, so a player asks until there is an answer. */
static void on_join(game *game, player *player,
                    const struct sockaddr_in *address, const char *name) {
  const char *why = player == NULL ? refusal(game, name) : NULL;
  if (why != NULL) {
    players_tell(&game->players, address, "refused %s", why);
    return;
  }
  if (player == NULL) {
    player = players_add(&game->players, address, name);
    if (player == NULL)
      return;
    game->waiting++;
  }
  player->heard = game->frame;
  if (player->match != 0)
    players_tell(&game->players, address, "match %u %g", player->match,
                 game->rules.seconds);
  else if (game->waiting < game->rules.players)
    players_tell(&game->players, address, "wait %d",
                 game->rules.players - game->waiting);
}

/* Of a match whose last player has left nothing is left. */
static void leave(game *game, player *player) {
  match *match = find_match(game, player->match);
  keep_score(game, player);
  players_remove(&game->players, player);
  if (match == NULL)
    game->waiting--;
  else if (--match->players == 0)
    end_match(game, match, "left");
}

static void on_message(game *game, const struct sockaddr_in *from,
                       const char *text) {
  player *player = players_find(&game->players, from);
  double dx, dy;
  if (strncmp(text, "join ", 5) == 0) {
    on_join(game, player, from, text + 5);
    return;
  }
  if (player == NULL)
    return;
  player->heard = game->frame;
  if (strcmp(text, "leave") == 0) {
    leave(game, player);
  } else if (sscanf(text, "go %lf %lf", &dx, &dy) == 2 && dx >= -10 &&
             dx <= 10 && dy >= -10 && dy <= 10) {
    player->dx = dx;
    player->dy = dy;
  }
}

/* ---- frames ---- */

static double within(double value, double most) {
  return value < 0 ? 0 : value > most ? most : value;
}

/* Coins come back where the next frame's number says. */
static void collect(game *game, player *player) {
  game_world *world = &game->world;
  for (int i = 0; i < world->coins; i++) {
    double x = world->coin[i].x - player->x, y = world->coin[i].y - player->y;
    if (x * x + y * y > REACH * REACH)
      continue;
    player->points++;
    world->coin[i].x = (int)(game->frame * 7919 % (uint64_t)world->width);
    world->coin[i].y = (int)(game->frame * 104729 % (uint64_t)world->height);
  }
}

static void move(game *game, player *player) {
  player->x = within(player->x + player->dx / GAME_RATE, game->world.width);
  player->y = within(player->y + player->dy / GAME_RATE, game->world.height);
  collect(game, player);
  if (game->frame % TELL_EVERY == 0)
    players_tell(&game->players, &player->address, "at %.1f %.1f %d", player->x,
                 player->y, player->points);
}

void game_frame(game *game) {
  struct sockaddr_in from;
  char text[128];
  game->frame++;
  for (int i = 0; i < MESSAGES; i++)
    if (players_receive(&game->players, &from, text, sizeof text))
      on_message(game, &from, text);
    else
      break;
  EACH_PLAYER (at, game) {
    if (game->frame - at->heard > SILENT_FOR)
      leave(game, at);
    else if (at->match != 0)
      move(game, at);
  }
  for (int i = 0; i < GAME_MATCHES; i++)
    if (game->matches[i].id != 0 && game->frame >= game->matches[i].ends)
      end_match(game, &game->matches[i], "time");
  begin_matches(game);
}

/* ---- public ---- */

game *game_new(const game_hooks *hooks) {
  game *made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->hooks = *hooks;
  made->rules = (game_rules){2, GAME_PLAYERS, 60};
  made->players.fd = -1;
  return made;
}

void game_free(game *game) {
  game_end_all(game, "shutdown");
  players_close(&game->players);
  while (game->scores != NULL) {
    score *at = game->scores;
    game->scores = at->next;
    free(at);
  }
  free(game);
}

void game_set_rules(game *game, const game_rules *rules) {
  game->rules = *rules;
}

void game_set_world(game *game, const game_world *world) {
  game->world = *world;
}

int game_open(game *game, uint16_t port) {
  return players_open(&game->players, port);
}

void game_close_doors(game *game, const char *why) {
  game->closed = why;
  refuse_waiting(game, why);
  EACH_PLAYER (at, game)
    players_tell(&game->players, &at->address, "notice %s", why);
}

bool game_end_match(game *game, unsigned id, const char *why) {
  match *match = find_match(game, id);
  if (match != NULL)
    end_match(game, match, why);
  return match != NULL;
}

void game_end_all(game *game, const char *why) {
  for (int i = 0; i < GAME_MATCHES; i++)
    if (game->matches[i].id != 0)
      end_match(game, &game->matches[i], why);
}

bool game_has_room(const game *game) {
  return game->players.count < game->rules.most_players &&
         game->players.count < GAME_PLAYERS;
}

int game_players(const game *game) {
  return game->players.count;
}

game_match_info game_match_at(const game *game, int place) {
  const match *match = &game->matches[place];
  game_match_info info = {.id = match->id, .players = match->players};
  if (match->id == 0)
    return info;
  info.seconds_left = (double)(match->ends - game->frame) / GAME_RATE;
  for (int i = 0; i < GAME_PLAYERS; i++)
    if (game->players.all[i].there && game->players.all[i].match == match->id)
      info.points += game->players.all[i].points;
  return info;
}
