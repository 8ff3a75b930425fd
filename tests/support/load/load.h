/* A load of HTTP clients that forgive nothing, for tests that stop and start
 * servers meanwhile. Every request carries an id that no other has, every
 * answer is compared with what was asked, byte by byte, and each failure is
 * named.
 *
 * Four kinds of clients, each a connection of its own, in a closed loop:
 *
 *   keep-alive   GET and POST in turn on a connection that is kept
 *   per-request  GET and POST in turn, a new connection for each; one of two
 *                says Connection: close, the other just closes
 *   pipelined    several GETs in one write, answered in order
 *   post         POST on a connection that is kept, with a pause between
 *
 * What the server must do:  GET /echo/ID[?ms=N]   200, the body is ID
 *                           POST /echo/ID[?ms=N]  200, the body of the request
 *
 * The rules of a decent client, and no more patience than that:
 *
 *   - after an answer with Connection: close the connection is left; what was
 *     pipelined behind it was not processed, and is sent again (`resent`)
 *   - a GET that meets the end of a kept connection, before any byte of its
 *     answer, is sent again (`retried`); a POST is never sent a second time:
 *     the same end is a failure
 *   - a refused connection is a failure, unless --retry-refused: then it is
 *     tried again, at the next address (`refused`)
 */
#ifndef TIDE_TESTS_LOAD_H
#define TIDE_TESTS_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { LOAD_DEPTH_MAX = 64, LOAD_ADDRESSES_MAX = 8, LOAD_ID_SIZE = 64 };

typedef enum {
  LOAD_KEEP_ALIVE,
  LOAD_PER_REQUEST,
  LOAD_PIPELINED,
  LOAD_POST,
  LOAD_KINDS
} load_kind;

/* Why a request failed. */
typedef enum {
  LOAD_REFUSED,   /* the connection was */
  LOAD_CONNECT,   /* no connection for another reason */
  LOAD_RESET,     /* ECONNRESET */
  LOAD_EOF,       /* the end before any byte of the answer */
  LOAD_TRUNCATED, /* the end, or a reset, within the answer */
  LOAD_STATUS,    /* not 200 */
  LOAD_MISMATCH,  /* not what was asked, or no HTTP */
  LOAD_TIMEOUT,
  LOAD_WHYS
} load_why;

typedef struct load_counts {
  uint64_t answered;
  uint64_t resent;
  uint64_t retried;
  uint64_t refused;     /* and tried again */
  uint64_t connections; /* made */
  uint64_t closed_idle; /* by the server, nothing being asked */
  uint64_t said_close;  /* answers with Connection: close not asked for */
  uint64_t failed[LOAD_WHYS];
  double slowest_ms; /* from the first write to the whole answer */
} load_counts;

typedef struct load_options {
  struct sockaddr_in to[LOAD_ADDRESSES_MAX];
  size_t to_count;
  int clients[LOAD_KINDS];
  int depth;          /* of a pipeline */
  double think;       /* s between two requests of a `post` client */
  double pace;        /* s between two requests of any other */
  int slow_ms;        /* every third request asks for ?ms=slow_ms */
  size_t body;        /* bytes that a POST carries behind its id */
  double timeout;     /* s for an answer */
  double run_for;     /* s; 0: until SIGTERM or SIGINT */
  bool retry_refused; /* a refused connection is tried again */
  const char *prefix; /* of every id */
  FILE *ids;          /* answered POSTs, a line each; or NULL */
} load_options;

typedef struct load_run {
  load_options options;
  int epoll;
  double started_at;
  bool stopping;
  int working;    /* clients that have not ended */
  int unanswered; /* clients that never had an answer */
  load_counts counts[LOAD_KINDS];
} load_run;

/* ---- answer.c: one HTTP/1.1 answer ---- */

typedef enum {
  LOAD_ANSWER_PART, /* more bytes are needed */
  LOAD_ANSWER_WHOLE,
  LOAD_ANSWER_BAD
} load_answer_state;

typedef struct load_answer {
  int status;
  bool close;       /* Connection: close */
  size_t length;    /* bytes of the whole answer */
  const char *body; /* within the buffer, chunks joined */
  size_t body_length;
} load_answer;

/* Looks at the start of `buffer`. Chunks are joined where they are, once the
 * answer is whole. */
load_answer_state load_answer_parse(char *buffer, size_t length,
                                    load_answer *answer);

/* ---- client.c ---- */

typedef struct load_client load_client;

load_client *load_client_new(load_run *run, load_kind kind, int number);
void load_client_free(load_client *client);
/* Something about its socket, or `events` 0: what its clock says. */
void load_client_turn(load_client *client, uint32_t events, double now);
/* When it wants its next turn at the latest. */
double load_client_wake_at(const load_client *client);

/* ---- report.c ---- */

extern const char *const load_kind_names[LOAD_KINDS];
extern const char *const load_why_names[LOAD_WHYS];

/* One line of JSON: the counts of each kind, and `failed` and `answered`. */
void load_report(const load_run *run, double now, FILE *out);
uint64_t load_failures(const load_run *run);

double load_now(void);

#endif
