/* oob_place.c: where the out-of-band line is: opening it, closing it.
 *
 * The loop only says where, in passing; the thread does what costs time, when
 * the process has shown that it lives longer than a short command. The file is
 * removed by whoever ends the process: the thread, or the loop, which finds the
 * path settled once `state` says that it is open.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "clock.h"
#include "fork.h"
#include "unix_path.h"
#include "watchdog_inside.h"
#include "watchdog_words.h"

/* Nothing before: a short run pays nothing for it. */
#define OPEN_AFTER (50 * TIDE_MS)
/* Somebody else binds in the directory just now. */
#define TRY_EVERY (5 * TIDE_MS)
#define TRIES 40
/* There are no descriptors, or no memory: in a while there may be. */
#define TRY_LATER (1 * TIDE_SEC)

void tide_oob_init(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  oob->fd = -1;
  oob->spare = -1;
  oob->coming = -1;
  oob->binding = (tide_binding){.lock = -1, .fd = -1};
  oob->policy = TIDE_POLICY_EVAL;
  oob->open_at = watchdog->options.line
                     ? watchdog->options.started_at + OPEN_AFTER
                     : TIDE_NEVER;
}

/* ---- what the loop says ----------------------------------------------- */

static void free_taken(tide_oob *oob) {
  tide_oob_place *place = atomic_exchange(&oob->taken, NULL);
  while (place != NULL) {
    tide_oob_place *next = place->next;
    free(place);
    place = next;
  }
}

void tide_oob_release(tide_oob *oob) {
  free_taken(oob);
  free(atomic_exchange(&oob->given, NULL));
  if (oob->room != NULL)
    munmap(oob->room, sizeof *oob->room);
}

static bool copy(char *to, size_t size, const char *from) {
  return snprintf(to, size, "%s", from) < (int)size;
}

static void fill(tide_oob_place *place, const char *directory,
                 const char *name) {
  char *c;
  int length;
  if (name == NULL)
    return;
  if (directory == NULL)
    tide_control_place(place->directory, sizeof place->directory);
  else
    place->too_long =
        !copy(place->directory, sizeof place->directory, directory);
  copy(place->name, sizeof place->name, name); /* as far as it fits */
  length = snprintf(place->file, sizeof place->file, "%s-%d.oob", name,
                    (int)getpid());
  place->too_long |= length >= (int)sizeof place->file;
  for (c = place->file; *c != '\0'; c++)
    if (*c == '/')
      *c = '_';
}

/* The thread takes it up in its own time; only a line that is open, or late, is
 * worth a ring. */
int tide_watchdog_place(tide_watchdog *watchdog, const char *directory,
                        const char *name, bool shared) {
  tide_oob *oob = &watchdog->oob;
  tide_oob_place *place;
  if (!watchdog->options.line)
    return 0;
  place = calloc(1, sizeof *place);
  if (place == NULL)
    return UV_ENOMEM;
  fill(place, directory, name);
  place->shared = shared;
  free(atomic_exchange(&oob->given, place));
  free_taken(oob);
  tide_alarm_need(&watchdog->alarm, watchdog->options.started_at + OPEN_AFTER);
  return 0;
}

void tide_watchdog_set_policy(tide_watchdog *watchdog, tide_policy policy) {
  if (atomic_exchange(&watchdog->oob.policy, (int)policy) != (int)policy &&
      watchdog->options.line)
    tide_alarm_need(&watchdog->alarm,
                    watchdog->options.started_at + OPEN_AFTER);
}

static void remove_file(const tide_oob *oob) {
  if (tide_unix_is_still(oob->at.sun_path, oob->inode, oob->device))
    unlink(oob->at.sun_path);
}

/* Whether the file is gone, and comes no more. */
static bool removed(tide_oob *oob) {
  int closed = TIDE_OOB_CLOSED, open = TIDE_OOB_OPEN;
  if (atomic_compare_exchange_strong(&oob->state, &closed, TIDE_OOB_LEFT))
    return true;
  if (!atomic_compare_exchange_strong(&oob->state, &open, TIDE_OOB_LEFT))
    return false; /* it is being opened */
  remove_file(oob);
  return true;
}

/* Opening takes a fraction of a millisecond, and so does an answer: the process
 * may end of the very interrupt that a client waits to hear of. */
void tide_watchdog_leave(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  struct timespec pause = {.tv_nsec = 50000};
  bool gone = removed(oob);
  int tries;
  if (atomic_load(&oob->busy) > 0) {
    atomic_store(&oob->leaving, true);
    tide_alarm_ring(&watchdog->alarm);
  }
  for (tries = 0; tries < 400; tries++) {
    if (gone && atomic_load(&oob->busy) == 0)
      return;
    nanosleep(&pause, NULL);
    gone = gone || removed(oob);
  }
}

/* ---- opening ---------------------------------------------------------- */

static void warn(tide_watchdog *watchdog, const char *error) {
  tide_words words = {.fd = STDERR_FILENO,
                      .format =
                          (tide_log_format)atomic_load(&watchdog->format)};
  tide_field field = TIDE_F_STR("error", error);
  tide_words_record(&words, TIDE_LOG_WARN, "no out-of-band line", &field, 1);
}

/* A fork finds none, or one without clients. */
static bool map_room(tide_oob *oob) {
  tide_oob_room *room;
  bool held;
  int i;
  if (oob->room != NULL)
    return true;
  room = mmap(NULL, sizeof *room, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    return false;
  for (i = 0; i < TIDE_OOB_CLIENTS; i++)
    room->clients[i].fd = -1;
  held = tide_fork_hold_off();
  oob->room = room;
  tide_fork_go_ahead(held);
  return true;
}

/* 0, UV_EBUSY, or another error with a sentence. [opener] */
static int listen_there(tide_oob *oob, char *error, size_t size) {
  char path[sizeof oob->place.directory + sizeof oob->place.file + 1];
  int rc;
  snprintf(path, sizeof path, "%s/%s", oob->place.directory, oob->place.file);
  rc = oob->place.too_long ? UV_ENAMETOOLONG
                           : tide_unix_address(path, &oob->at, error, size);
  if (rc == 0)
    rc = tide_control_directory(oob->place.directory,
                                oob->place.shared ? TIDE_CONTROL_SHARED
                                                  : TIDE_CONTROL_PRIVATE,
                                true, error, size);
  if (rc == 0)
    rc = tide_control_bind(&oob->at, oob->place.directory, &oob->binding, error,
                           size);
  if (rc == 0)
    tide_unix_note(oob->at.sun_path, &oob->inode, &oob->device);
  return rc;
}

/* A thread for a moment: a disk that is busy may hold up who makes a file for
 * seconds, and the watchdog has deadlines to keep meanwhile. */
static void *open_aside(void *arg) {
  tide_watchdog *watchdog = arg;
  tide_oob *oob = &watchdog->oob;
  oob->open_error[0] = '\0';
  oob->open_result = listen_there(oob, oob->open_error, sizeof oob->open_error);
  atomic_store(&oob->opened, true);
  tide_alarm_ring(&watchdog->alarm);
  return NULL;
}

static int begin_to_open(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  int rc = map_room(oob) ? tide_alarm_by_fd(&watchdog->alarm) : UV_ENOMEM;
  atomic_store(&oob->opened, false);
  if (rc == 0)
    rc = uv_translate_sys_error(
        pthread_create(&oob->opener, NULL, open_aside, watchdog));
  return rc;
}

/* Says so, once; returns when to try again. */
static uint64_t not_opened(tide_watchdog *watchdog, int rc, const char *error,
                           uint64_t now) {
  tide_oob *oob = &watchdog->oob;
  if (rc == UV_EBUSY && ++oob->tries < TRIES)
    return now + TRY_EVERY;
  if (!oob->warned)
    warn(watchdog, error[0] != '\0' ? error : uv_strerror(rc));
  oob->warned = true;
  return rc == UV_EMFILE || rc == UV_ENFILE || rc == UV_ENOMEM ||
                 rc == UV_EAGAIN
             ? now + TRY_LATER
             : TIDE_NEVER;
}

static uint64_t open_line(tide_watchdog *watchdog, uint64_t now) {
  tide_oob *oob = &watchdog->oob;
  int closed = TIDE_OOB_CLOSED, rc;
  if (!atomic_compare_exchange_strong(&oob->state, &closed, TIDE_OOB_OPENING))
    return TIDE_NEVER;
  rc = begin_to_open(watchdog);
  if (rc == 0)
    return TIDE_NEVER; /* it rings */
  atomic_store(&oob->state, TIDE_OOB_CLOSED);
  return not_opened(watchdog, rc, "", now);
}

static void move_fd(int *from, int *to) {
  bool held = tide_fork_hold_off();
  *to = *from;
  *from = -1;
  tide_fork_go_ahead(held);
}

/* The opener is done, or waited for. Returns when to try again. */
static uint64_t take_opened(tide_watchdog *watchdog, uint64_t now) {
  tide_oob *oob = &watchdog->oob;
  int rc;
  pthread_join(oob->opener, NULL);
  rc = oob->open_result;
  if (rc == 0)
    move_fd(&oob->binding.fd, &oob->fd);
  atomic_store(&oob->state, rc == 0 ? TIDE_OOB_OPEN : TIDE_OOB_CLOSED);
  if (rc != 0)
    return not_opened(watchdog, rc, oob->open_error, now);
  oob->warned = false;
  return TIDE_NEVER;
}

void tide_watchdog_after_fork(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  int fds[] = {atomic_exchange(&watchdog->alarm.fd, -1),
               oob->fd,
               oob->spare,
               oob->coming,
               oob->binding.fd,
               oob->binding.lock};
  size_t i;
  for (i = 0; i < sizeof fds / sizeof *fds; i++)
    if (fds[i] >= 0)
      close(fds[i]);
  for (i = 0; oob->room != NULL && i < TIDE_OOB_CLIENTS; i++)
    if (oob->room->clients[i].fd >= 0)
      close(oob->room->clients[i].fd);
}

/* ---- closing ---------------------------------------------------------- */

void tide_oob_close(tide_watchdog *watchdog) {
  tide_oob *oob = &watchdog->oob;
  int i, open = TIDE_OOB_OPEN;
  if (atomic_load(&oob->state) == TIDE_OOB_OPENING)
    take_opened(watchdog, 0);
  if (oob->fd < 0)
    return;
  if (atomic_compare_exchange_strong(&oob->state, &open, TIDE_OOB_CLOSED))
    remove_file(oob);
  for (i = 0; i < TIDE_OOB_CLIENTS; i++)
    if (oob->room->clients[i].fd >= 0)
      tide_oob_drop(&oob->room->clients[i]);
  tide_fork_close(&oob->spare);
  tide_fork_close(&oob->fd); /* behind the file: its inode is not free before */
}

/* ---- as time goes by -------------------------------------------------- */

/* Whether the place is another one now. */
static bool take_up(tide_oob *oob) {
  tide_oob_place *given = atomic_exchange(&oob->given, NULL);
  bool moved;
  if (given == NULL)
    return false;
  moved = strcmp(given->file, oob->place.file) != 0 ||
          strcmp(given->directory, oob->place.directory) != 0;
  oob->place = *given;
  given->next = atomic_load(&oob->taken);
  while (!atomic_compare_exchange_weak(&oob->taken, &given->next, given))
    continue;
  return moved;
}

uint64_t tide_oob_attend(tide_watchdog *watchdog, uint64_t now) {
  tide_oob *oob = &watchdog->oob;
  bool wanted, moved;
  if (!watchdog->options.line ||
      now < watchdog->options.started_at + OPEN_AFTER)
    return oob->open_at;
  if (atomic_load(&oob->state) == TIDE_OOB_OPENING) {
    if (!atomic_load(&oob->opened))
      return TIDE_NEVER; /* it rings */
    oob->open_at = take_opened(watchdog, now);
  }
  moved = take_up(oob);
  wanted = oob->place.file[0] != '\0' &&
           atomic_load(&oob->policy) != TIDE_POLICY_OFF;
  if (oob->fd >= 0 && (moved || !wanted)) {
    tide_oob_close(watchdog);
    moved = true;
  }
  if (moved) {
    oob->open_at = now;
    oob->tries = 0;
    oob->warned = false;
  }
  if (oob->fd < 0 && wanted && now >= oob->open_at)
    oob->open_at = open_line(watchdog, now);
  return wanted && oob->fd < 0 ? oob->open_at : TIDE_NEVER;
}
