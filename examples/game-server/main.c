/* A game server with a loop of its own: sixty frames a second, and moontide has
 * a share of each.
 *
 * Matches are work that a shutdown waits for. What a match is, where the world
 * comes from and where the scores go says the script.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server.h"

#define SECOND UINT64_C(1000000000)
#define FRAME (SECOND / GAME_RATE)

enum {
  HOST_SHARE_US = 25, /* of a frame's 16667 */
  MOST_BEHIND = 5,    /* frames that are made up for */
};

/* ---- what the game tells the host ---- */

static bool on_match_begin(void *arg) {
  const server *server = arg;
  return tide_work_begin(server->host, "match") == 0;
}

static void on_match_end(void *arg) {
  const server *server = arg;
  tide_work_end(server->host, "match");
}

/* ---- what the host tells the game ---- */

/* Nobody waits for a match that could end only after the drain: the doors close
 * with the move to draining, long before tide_work_begin would refuse. */
static void on_event(tide_host *host, const tide_event *event, void *arg) {
  server *server = arg;
  (void)host;
  if (event->kind != TIDE_EVENT_STATE)
    return;
  if (event->to == TIDE_READY) /* the startup has gone well */
    game_set_world(server->game, &server->load.world);
  else if (event->to == TIDE_DRAINING)
    game_close_doors(server->game, "draining");
}

/* After the drain: what still plays has had its time. */
static int cut(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  (void)token;
  game_end_all(arg, "shutdown");
  return 0;
}

/* A server that is full wants no more players sent. */
static int has_room(tide_host *host, void *arg) {
  (void)host;
  return game_has_room(arg) ? 0 : -EBUSY;
}

static int add_parts(server *server) {
  tide_task_spec task;
  tide_check_spec check;
  int rc = tide_on_event(server->host, on_event, server);
  if (rc < 0)
    return rc;
  tide_task_spec_init(&task);
  task.pipeline = TIDE_SHUTDOWN_PIPELINE;
  task.phase = "service-stop";
  task.name = "cut-matches";
  task.run = cut;
  task.arg = server->game;
  if ((rc = tide_task_add(server->host, &task)) != 0)
    return rc;
  tide_check_spec_init(&check);
  check.name = "room";
  check.every_ms = 500;
  check.failures = 1;
  check.run = has_room;
  check.arg = server->game;
  return tide_check_add(server->host, &check);
}

static int set_up(server *server, const char *script) {
  int rc = script_open(server);
  if (rc == 0)
    rc = add_parts(server);
  if (rc == 0)
    rc = tide_load(server->host, script);
  return rc != 0 ? rc : tide_start(server->host);
}

/* ---- frames ---- */

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* By an absolute time, so that what a frame takes does not add up. */
static void sleep_until(uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / SECOND),
                       .tv_nsec = (long)(ns % SECOND)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
    ;
}

/* When the frame after that of `at` begins. A few that are late are made up for
 * at once, for each moves the world by the same time; after a longer stop the
 * world has stood still. */
static uint64_t next_frame(server *server, uint64_t at) {
  uint64_t behind = now() > at + FRAME ? (now() - at) / FRAME : 0;
  if (behind <= MOST_BEHIND)
    return at + FRAME;
  server->late += behind;
  return now();
}

static int run(server *server) {
  uint64_t at = now(), began;
  int rc;
  for (;;) {
    game_frame(server->game);
    began = now();
    rc = tide_tick(server->host, HOST_SHARE_US);
    frames_add(&server->share, now() - began);
    if (rc < 0)
      return rc;
    if (rc == TIDE_IS_STOPPED)
      return tide_exit_code(server->host);
    at = next_frame(server, at);
    sleep_until(at);
  }
}

static void print_frames(const server *server) {
  const frames *share = &server->share;
  printf("%" PRIu64 " frames, %" PRIu64 " left out; the host's share of one: "
         "p50 %" PRIu64 " us, p99 %" PRIu64 " us, most %" PRIu64 " us\n",
         share->count, server->late, frames_percentile(share, 50) / 1000,
         frames_percentile(share, 99) / 1000, share->max / 1000);
}

/* ---- the program ---- */

static int serve(server *server, const char *script, int argc, char **argv) {
  tide_options options;
  int rc;
  tide_options_init(&options);
  options.name = "game-server";
  options.flags = TIDE_SIGNALS | TIDE_SIGPIPE | TIDE_INTERRUPT | TIDE_MANAGE |
                  TIDE_CONSOLE | TIDE_LOG_STDERR;
  options.argc = argc;
  options.argv = argv;
  rc = tide_new(&server->host, &options);
  if (rc != 0) {
    fprintf(stderr, "no host: %s\n", tide_strerror(rc));
    return rc;
  }
  rc = set_up(server, script);
  if (rc == 0)
    rc = run(server);
  if (rc < 0)
    fprintf(stderr, "%s: %s\n", tide_err_name(rc),
            tide_last_error(server->host));
  print_frames(server);
  game_end_all(server->game, "shutdown");
  tide_free(server->host);
  return rc;
}

int main(int argc, char **argv) {
  static server server;
  game_hooks hooks = {on_match_begin, on_match_end, &server};
  int rc;
  if (argc < 2) {
    fprintf(stderr, "game-server SCRIPT: what script?\n");
    return 64;
  }
  server.game = game_new(&hooks);
  if (server.game == NULL) {
    perror("game-server");
    return 1;
  }
  rc = serve(&server, argv[1], argc - 2, argv + 2);
  game_free(server.game);
  return rc >= 0 ? rc : 1;
}
