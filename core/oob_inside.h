/* oob: the out-of-band line, for a host whose loop does not answer.
 *
 * The watchdog's thread listens at NAME-PID.oob, beside the control socket, and
 * answers what can be told from atomics while Lua spins, a C call takes for
 * ever, or the loop is gone: a line is `where`, `status`, `interrupt` or
 * `abort`, or a JSON object with that as its `type`; answers are JSON, a line
 * each, the last of them `done`.
 *
 *   oob_place.c    where it is, opening and closing
 *   oob.c          clients, their lines, waiting
 *   oob_request.c  what a line asks for
 *   oob_act.c      doing that, as far as it takes time
 *   oob_answer.c   the words of the answers
 *
 * Nothing here waits for a client, takes a lock or allocates while the line is
 * open, and for a fork it waits some milliseconds at most (fork.h): totals are
 * looked at between any two steps. What a client sends and is sent is bounded;
 * when all places are taken, the one that has been silent longest goes. All of
 * it is the watchdog's thread but for what says [loop].
 */
#ifndef TIDE_OOB_INSIDE_H
#define TIDE_OOB_INSIDE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "control.h"
#include "interrupt.h"

enum {
  TIDE_OOB_CLIENTS = 4,
  TIDE_OOB_LINE = 4096,
  TIDE_OOB_OUT = 65536,
  TIDE_OOB_TEXT = 16384, /* of one answer, as a person reads it */
  TIDE_OOB_ID = 64,
};

struct tide_watchdog;

/* ---- requests ---- */

typedef enum tide_oob_type {
  TIDE_OOB_UNKNOWN,
  TIDE_OOB_WHERE,
  TIDE_OOB_STATUS,
  TIDE_OOB_INTERRUPT,
  TIDE_OOB_ABORT,
  TIDE_OOB_BAD, /* `type` says what is wrong */
} tide_oob_type;

typedef struct tide_oob_request {
  tide_oob_type type;
  char id[TIDE_OOB_ID]; /* as JSON, as it came; empty: none */
  char name[128];       /* of an unknown one, or what is wrong with a bad */
} tide_oob_request;

/* oob_request.c */
void tide_oob_parse(const char *line, size_t length, tide_oob_request *request);

/* ---- clients ---- */

typedef struct tide_oob_client {
  int fd; /* -1: the place is free */
  uid_t uid;
  pid_t pid;
  uint64_t heard_at;
  bool eof;  /* it sends no more */
  bool busy; /* with `request`: no further line is read */
  bool over; /* to be closed when all is sent */
  tide_oob_request request;
  uint64_t began;
  uint64_t named_at; /* where: when the name had come */
  uint64_t slice;    /* interrupt: which; 0: none yet */
  uint64_t slice_at;
  uint64_t count; /* and how often any was interrupted before */
  size_t in_length;
  size_t out_length;
  char in[TIDE_OOB_LINE];
  char out[TIDE_OOB_OUT];
} tide_oob_client;

/* The large part, mapped when the line is opened; only what is used of it takes
 * memory. */
typedef struct tide_oob_room {
  tide_oob_client clients[TIDE_OOB_CLIENTS];
  char text[TIDE_OOB_TEXT];
} tide_oob_room;

/* What the loop hands over; freed by it. */
typedef struct tide_oob_place {
  struct tide_oob_place *next; /* in `taken` */
  char directory[sizeof((struct sockaddr_un *)0)->sun_path];
  char name[64];
  char file[128]; /* empty: nowhere */
  bool too_long;
  bool shared;
} tide_oob_place;

typedef enum tide_oob_state {
  TIDE_OOB_CLOSED,
  TIDE_OOB_OPENING,
  TIDE_OOB_OPEN,
  TIDE_OOB_LEFT, /* for good: the loop is about to end the process */
} tide_oob_state;

typedef struct tide_oob {
  _Atomic int state;
  _Atomic int policy;
  _Atomic int busy;                /* clients whose request is worked on */
  _Atomic bool leaving;            /* the loop waits for those */
  _Atomic(tide_oob_place *) given; /* by the loop, not taken up yet */
  _Atomic(tide_oob_place *) taken; /* those copied: the loop's to free */

  tide_oob_place place; /* as it was taken up */
  uint64_t open_at;     /* when to try (again); TIDE_NEVER: not */
  int tries;
  bool warned;
  pthread_t opener; /* while it is being opened: files may take their time */
  _Atomic bool opened;
  int open_result; /* behind `opened`, with open_error */
  tide_binding binding;
  char open_error[512];
  int spare;           /* kept for a client when there are no descriptors */
  uint64_t deaf_until; /* even that was not enough; 0: listens */
  int fd;
  int coming; /* a client who has no place yet */
  struct sockaddr_un at;
  uint64_t inode, device;
  tide_oob_room *room;
} tide_oob;

/* oob_place.c */
void tide_oob_init(struct tide_watchdog *watchdog); /* [loop] */
/* Frees what the loop had given; the thread has ended. [loop] */
void tide_oob_release(tide_oob *oob);
/* Opens, closes or moves it if that is due. Returns when to look again. */
uint64_t tide_oob_attend(struct tide_watchdog *watchdog, uint64_t now);
/* Drops all clients and removes the file. */
void tide_oob_close(struct tide_watchdog *watchdog);

/* oob.c */

/* What is due. Returns when to look again. */
uint64_t tide_oob_look(struct tide_watchdog *watchdog, uint64_t now);
/* Answers whoever still waits, for the thread ends. */
void tide_oob_farewell(struct tide_watchdog *watchdog);
/* Sleeps until `at`, a ring (true) or something to do here, and does it. */
bool tide_oob_wait(struct tide_watchdog *watchdog, uint64_t at);
void tide_oob_drop(tide_oob_client *client);

/* oob_act.c */

/* Begins the client's request; `busy` is set if it takes time. */
void tide_oob_begin(struct tide_watchdog *watchdog, tide_oob_client *client);
/* Goes on with it. Returns when to come again. */
uint64_t tide_oob_go_on(struct tide_watchdog *watchdog, tide_oob_client *client,
                        uint64_t now);
/* Ends it: the process does. */
void tide_oob_break_off(tide_oob_client *client);
/* A record of who did what, in the log's place. */
void tide_oob_audit(const struct tide_watchdog *watchdog, uid_t uid, pid_t pid,
                    const char *message, const char *detail);

/* oob_answer.c: each adds lines to what the client is sent */
void tide_oob_tell_where(struct tide_watchdog *watchdog,
                         tide_oob_client *client, const tide_noted *slice);
void tide_oob_tell_status(struct tide_watchdog *watchdog,
                          tide_oob_client *client);
/* A sentence; `type` is "value" or "error". */
void tide_oob_tell(tide_oob_client *client, const char *type,
                   const char *sentence);
void tide_oob_done(tide_oob_client *client, const char *status);

#endif
