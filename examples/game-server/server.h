/* server: what the parts that know moontide share. */
#ifndef SERVER_H
#define SERVER_H

#include <moontide.h>
#include <stdatomic.h>

#include "frames.h"
#include "game.h"

/* A file's work on a thread (tasks.c). What it holds belongs to the thread
 * until the task has ended. */
typedef struct job {
  tide_token *token;
  atomic_int unwanted; /* set by a cancel */
  char path[256];
  game_world world; /* loaded from there */
  char *text;       /* to be saved there */
} job;

/* There is one, and it lives as long as the process: a thread that the host has
 * given up may still look at its job. */
typedef struct server {
  tide_host *host;
  game *game;
  frames share;  /* the host's time in each frame */
  uint64_t late; /* frames that were left out, because others took too long */
  job load;
  job save;
} server;

/* script.c: puts the table `game` into the host's Lua state. Returns 0 or an
 * error of moontide's. */
int script_open(server *server);

/* tasks.c: a task of the startup that loads the world, one of the shutdown that
 * saves the scores. Errors of tide_task_add, UV_ENAMETOOLONG. */
int tasks_load_world(server *server, const char *phase, const char *path);
int tasks_save_scores(server *server, const char *phase, const char *path);

#endif
