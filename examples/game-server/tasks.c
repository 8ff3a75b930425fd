/* tasks.c: what takes too long for a frame: files are read and written by
 * threads, while the loop goes on.
 *
 * A cancel only leaves a note: it is the thread that says when a task is done,
 * always and once. What it has found is the loop thread's from then on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"

/* Detached: the host waits for tide_task_done, and for no longer than it may.
 */
static int begin(job *job, tide_token *token, void *(*fn)(void *)) {
  pthread_attr_t attributes;
  pthread_t thread;
  int error = pthread_attr_init(&attributes);
  if (error != 0)
    return -error;
  job->token = token;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  error = pthread_create(&thread, &attributes, fn, job);
  pthread_attr_destroy(&attributes);
  return error == 0 ? TIDE_PENDING : -error;
}

static void cancel(tide_host *host, tide_token *token, void *arg) {
  job *job = arg;
  (void)host;
  (void)token;
  atomic_store(&job->unwanted, 1);
}

/* errno as an error of moontide's, which takes libuv's, which are these. */
static int last_error(void) {
  return errno != 0 ? -errno : -EIO;
}

/* ---- the world ---- */

/* A file has a line "width height", and "x y" for each coin. */
static const char *parse(job *job, FILE *file) {
  game_world *world = &job->world;
  int x, y;
  *world = (game_world){0}; /* a task may be tried again */
  if (fscanf(file, "%d %d", &world->width, &world->height) != 2 ||
      world->width < 1 || world->height < 1 || world->width > 10000 ||
      world->height > 10000)
    return "the first line is no width and height, 1 to 10000";
  while (world->coins < GAME_COINS && fscanf(file, "%d %d", &x, &y) == 2) {
    if (atomic_load(&job->unwanted))
      return "cancelled";
    if (x < 0 || x > world->width || y < 0 || y > world->height)
      return "a coin is not in the world";
    world->coin[world->coins].x = x;
    world->coin[world->coins++].y = y;
  }
  return feof(file) ? NULL : "a line is no coin, or one too many";
}

static void *load(void *arg) {
  job *job = arg;
  FILE *file = fopen(job->path, "re");
  char message[512];
  const char *why;
  if (file == NULL) {
    int error = last_error();
    snprintf(message, sizeof message, "%s: %s", job->path,
             tide_strerror(error));
    tide_task_done(job->token, error, message);
    return NULL;
  }
  why = parse(job, file);
  fclose(file);
  snprintf(message, sizeof message, "%s: %s", job->path,
           why != NULL ? why : "loaded");
  tide_task_done(job->token, why != NULL ? TIDE_EINVAL : 0, message);
  return NULL;
}

static int begin_load(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  return begin(arg, token, load);
}

/* ---- the scores ---- */

/* Whole or not at all: a file that is there is replaced by one that is done. */
static int write_whole(job *job) {
  char path[sizeof job->path + 8];
  FILE *file;
  int failed;
  snprintf(path, sizeof path, "%s.new", job->path);
  errno = 0;
  file = fopen(path, "we");
  if (file == NULL)
    return last_error();
  failed = fputs(job->text, file) < 0 || fflush(file) != 0 ||
           fsync(fileno(file)) != 0;
  if (fclose(file) != 0 || failed || atomic_load(&job->unwanted) ||
      rename(path, job->path) != 0) {
    int error = last_error();
    unlink(path);
    return error;
  }
  return 0;
}

static void *save(void *arg) {
  job *job = arg;
  int error = write_whole(job);
  free(job->text);
  job->text = NULL;
  tide_task_done(job->token, error, NULL);
  return NULL;
}

/* The scores are the loop thread's: the text is made here. */
static int begin_save(tide_host *host, tide_token *token, void *arg) {
  server *server = arg;
  int rc;
  (void)host;
  server->save.text = game_scores(server->game);
  if (server->save.text == NULL)
    return -ENOMEM;
  if (server->save.text[0] == '\0') { /* nothing does not replace a file */
    free(server->save.text);
    return 0;
  }
  rc = begin(&server->save, token, save);
  if (rc != TIDE_PENDING)
    free(server->save.text);
  return rc;
}

static void cancel_save(tide_host *host, tide_token *token, void *arg) {
  server *server = arg;
  cancel(host, token, &server->save);
}

/* ---- public ---- */

static int set_path(job *job, const char *path) {
  if (strlen(path) >= sizeof job->path)
    return -ENAMETOOLONG;
  strcpy(job->path, path);
  return 0;
}

int tasks_load_world(server *server, const char *phase, const char *path) {
  tide_task_spec task;
  int rc = set_path(&server->load, path);
  if (rc != 0)
    return rc;
  tide_task_spec_init(&task);
  task.pipeline = TIDE_STARTUP_PIPELINE;
  task.phase = phase;
  task.name = "load";
  task.run = begin_load;
  task.cancel = cancel;
  task.arg = &server->load;
  return tide_task_add(server->host, &task);
}

int tasks_save_scores(server *server, const char *phase, const char *path) {
  tide_task_spec task;
  int rc = set_path(&server->save, path);
  if (rc != 0)
    return rc;
  tide_task_spec_init(&task);
  task.pipeline = TIDE_SHUTDOWN_PIPELINE;
  task.phase = phase;
  task.name = "save";
  task.run = begin_save;
  task.cancel = cancel_save;
  task.arg = server;
  return tide_task_add(server->host, &task);
}
