/* room: a real room of core/http with one listener, kept over all inputs, and
 * the clients of one input, who are joined to it by socket pairs.
 *
 * The listener is one of a Unix socket that never was bound: connections are
 * handed to it as accept would. Time is virtual and moves when a script says.
 */
#ifndef FUZZ_ROOM_H
#define FUZZ_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers.h"
#include "http/internal.h"

enum { CLIENTS = 2, NUMBERS_MAX = ANSWERS_MAX };

/* An answer that a handler gave, and that its client must so get. */
typedef struct promise {
  long number;
  bool complete; /* the handler came to its end */
  bool last;     /* the process was draining: it must say close */
} promise;

/* The handler that runs for a client; at most one does (I1). */
typedef struct handling {
  bool runs;
  uint32_t slot;
  uint32_t generation;
  int route;
  long number;
  bool begun;    /* a head has left, the body follows */
  bool upgraded; /* to bytes that it sends back; no request any more */
  size_t left;   /* of a body whose length was promised */
  uint64_t hash; /* of the body so far */
  size_t length;
} handling;

typedef struct client {
  int fd;          /* -1: not opened, or gone */
  tide_conn *conn; /* the server's side; perhaps freed (room_lives) */
  bool stalled;    /* reads nothing for now */
  bool half_closed;
  bool gone;       /* closed without reading all */
  bool may_lose;   /* something happened after which answers may be cut off */
  bool ended;      /* the server's FIN */
  bool last_asked; /* a request that said close was handled (I2) */
  size_t sent;
  uint32_t last_four; /* bytes that were sent */
  size_t heads;       /* of these, "HEAD": it needs no space behind it */
  char *in;
  size_t in_length;
  size_t in_capacity;
  handling now;
  promise promises[NUMBERS_MAX];
  size_t promise_count;
} client;

typedef struct room {
  uv_loop_t loop;
  uv_async_t keep; /* the room's handles do not keep a loop turning */
  tide_clock clock;
  tide_lifecycle lifecycle;
  tide_work work;
  tide_http *http;
  tide_listener *listener;
  int handles; /* open ones of a room without connections */
  client clients[CLIENTS];
  long numbers;      /* handlers started for this input */
  bool read_first;   /* each handler reads its whole body before it answers */
  unsigned big_left; /* large answers that may still be given */
  bool unbound;
  bool drained;
} room;

extern room the_room;

/* room.c */
void room_open(void);
/* Closes the room and makes a new one: after a drain, which ends it. */
void room_renew(void);
/* Forgets the clients and counts of the input before. */
void room_begin(void);
void room_turn(void);
/* NULL when the server has closed the connection. */
tide_conn *room_lives(const client *c);
/* Counts and lists agree with each other and with the handlers that run. */
void room_check(void);
/* Nothing is left of the clients. */
void room_check_empty(void);

void client_open(client *c);
/* False: the server takes no more just now, or at all. */
bool client_send(client *c, const char *data, size_t length);
/* Reads all there is; true: something came. */
bool client_read(client *c);
void client_half_close(client *c);
void client_leave(client *c);
/* Frees what it has read. */
void client_free(client *c);

/* handlers.c */
void handlers_add(tide_listener *listener);
extern const tide_http_handlers handlers_table;
/* Lets a handler that waits for its cue go on to its end; false: none did. */
bool handlers_finish(client *c);
/* The cues of a script: a piece of a stream, a failure. */
void handlers_write(client *c, size_t length);
void handlers_break(client *c);
/* Drops the note of a handler whose exchange is over. */
void handlers_prune(client *c);

#endif
