/* http: what the rest of the core sees of the HTTP rooms.
 *
 * One tide_http for each host: its listeners, connections, routes, and the
 * health answers that need no Lua. Knows loop, clock, log, state and work.
 *
 * Life of a listener: add, add routes, bind (the port is ours, or the boot
 * fails), listen (connections come), unbind (no new ones, none lost), drain
 * (what was received is answered, then the idle are closed), close.
 */
#ifndef TIDE_HTTP_H
#define TIDE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "../clock.h"
#include "../log.h"
#include "../state.h"
#include "../work.h"
#include "health.h"
#include "request.h"
#include "route.h"

typedef struct tide_http tide_http;
typedef struct tide_listener tide_listener;
typedef struct tide_exchange tide_exchange;

typedef struct tide_http_env {
  uv_loop_t *loop;
  tide_clock *clock;
  tide_log *log;
  tide_lifecycle *lifecycle;
  tide_work *work;
  uint64_t started_at; /* tide_clock_mono of the host's start */
} tide_http_env;

/* Makes the room; opens nothing. Returns 0 or UV_ENOMEM. */
int tide_http_open(tide_http **out, const tide_http_env *env);
/* Closes whatever is still open, at once. The memory goes with the last close
 * callback; the caller runs the loop dry. */
void tide_http_close(tide_http *http);

/* In a child: closes what the loop has no handle for. */
void tide_http_after_fork(tide_http *http);

/* The results of readiness checks. */
tide_health *tide_http_health(tide_http *http);

/* "linger", "accept_drain", "drain" or "force" while the state is draining and
 * there is an application listener, else NULL. */
const char *tide_http_drain_phase(const tide_http *http);

/* ---- handlers ------------------------------------------------------------ */

/* Who answers. An exchange stays valid until it is answered and written, or
 * lost; whoever keeps it longer compares generations. */
typedef struct tide_http_handlers {
  void *arg;
  /* A request has come for its route. May answer before it returns. */
  void (*start)(void *arg, tide_exchange *exchange);
  /* What the handler waits for is there: bytes, room, or the loss of both. */
  void (*wake)(void *arg, tide_exchange *exchange);
  /* The exchange ends without the handler, or the client of a route that is
   * watched has left: it should stop. */
  void (*abort)(void *arg, tide_exchange *exchange, const char *why);
  /* An unbind (drain = false) or a drain of the listener is complete. */
  void (*unbound)(void *arg, tide_listener *listener, bool drain);
} tide_http_handlers;

void tide_http_set_handlers(tide_http *http,
                            const tide_http_handlers *handlers);

/* ---- listeners ----------------------------------------------------------- */

/* All in ns; 0 turns a timeout off. */
typedef struct tide_http_timeouts {
  uint64_t idle; /* what the client is told; 1 s later it is closed */
  uint64_t head;
  uint64_t clamp; /* head, in a drain */
  uint64_t body;
  uint64_t total; /* head and body */
  uint64_t write;
  uint64_t linger;       /* after FIN, between reads */
  uint64_t linger_total; /* after FIN */
  uint64_t first_byte;   /* a silent connection is active while younger */
  uint64_t accept_drain; /* cap of an unbind */
  uint64_t stream;       /* streams that go on, after the start of a drain */
  uint32_t min_rate;     /* bytes/s of a body, after 5 s; 0: any */
  uint32_t write_rate;   /* bytes/s of an answer; 0: any */
} tide_http_timeouts;

typedef struct tide_listener_options {
  const char *name;
  const char *host; /* NULL with path or fd */
  const char *path; /* of a Unix socket */
  int port;
  int fd; /* inherited; -1: none */
  int backlog;
  bool manage; /* the management listener: health, no work accounts */
  bool health; /* /health* here too */
  bool reuse_port;
  bool v6_only;               /* of host "::": IPv4 clients stay out */
  bool early;                 /* listens from bind on */
  bool reject_in_drain;       /* new requests get a 503 from the drain on */
  uint64_t idle_close_spread; /* ns; idle ones are closed over that time */
  uint32_t max_requests;      /* on one connection; 0: no limit */
  uint32_t write_buffer;      /* queued bytes with which a handler waits */
  tide_http_limits limits;
  tide_http_timeouts timeouts;
} tide_listener_options;

void tide_listener_options_init(tide_listener_options *options);

/* Adds a listener; strings are copied. NULL when memory is out. */
tide_listener *tide_listener_add(tide_http *http,
                                 const tide_listener_options *options);
/* The options, to be changed before it is bound; not the strings. */
tide_listener_options *tide_listener_configure(tide_listener *listener);
tide_router *tide_listener_router(tide_listener *listener);
/* "127.0.0.1:8080" or the path, once bound. */
const char *tide_listener_address(const tide_listener *listener);
int tide_listener_port(const tide_listener *listener);

/* Opens and binds the socket. Returns 0, or a negative libuv error with a
 * sentence in `error`. Bound already: 0. */
int tide_listener_bind(tide_listener *listener, char *error, size_t size);
/* Connections are accepted from now on. */
int tide_listener_listen(tide_listener *listener, char *error, size_t size);
/* Closes the listener and its connections at once. The memory stays until the
 * room is closed. */
void tide_listener_shut(tide_listener *listener);

/* No new connections; those in the kernel's queue are accepted first. Done when
 * handlers.unbound is called, perhaps before this returns. */
void tide_listener_unbind(tide_listener *listener);
/* Closes idle connections, lets the others finish. Done as above. */
void tide_listener_drain(tide_listener *listener);
/* Ends what is left: 503 where no head was sent, RST elsewhere. Returns how
 * many requests that hit. */
int tide_listener_force(tide_listener *listener, const char *why);
/* The answers of a force had their time: RST for what was not taken. Returns
 * how many that hit. */
int tide_listener_reset(tide_listener *listener);
/* Whether no connection waits for a first byte, and none has come for so long.
 */
bool tide_listener_quiet(const tide_listener *listener, uint64_t since);
/* Connections that a drain still waits for, and requests among them. */
void tide_listener_counts(const tide_listener *listener, uint64_t *busy,
                          uint64_t *in_flight);

enum { TIDE_FORCED_NAMES = 32 };

/* A request that a drain ended by force. */
typedef struct tide_forced {
  const char *method;
  char path[128];
  uint64_t age;   /* ns */
  uint64_t bytes; /* of the answer that were written */
} tide_forced;

/* What a drain came to. */
typedef struct tide_drain_report {
  bool draining;            /* it has begun, or was skipped and forced */
  uint64_t served;          /* answers since the move to draining */
  uint64_t closed_idle;     /* idle connections closed */
  uint64_t queued;          /* clients in the accept queue when it was gated */
  uint64_t drained;         /* accepted from then on */
  uint64_t forced;          /* requests and answers ended by force */
  const tide_forced *names; /* of the first of them */
  uint32_t name_count;
} tide_drain_report;

void tide_listener_report(const tide_listener *listener,
                          tide_drain_report *out);

/* ---- looking in (look.c) --------------------------------------------------
 */

/* A connection as it is at the call; the texts are the room's. */
typedef struct tide_conn_view {
  const char *state; /* "idle", "head", "handler", "write", "upgraded", */
  char peer[96];     /* "closing"; "127.0.0.1:4711" or "unix" */
  uint64_t age;      /* ns since it was accepted */
  uint64_t
      request_age;    /* ns since the request's first byte; 0: there is none */
  const char *method; /* NULL until the head is complete */
  const char *path;
  size_t path_length;
  uint64_t received; /* bytes of its body */
  uint64_t sent;     /* bytes of its answer */
  uint32_t served;   /* requests begun */
  uint32_t queued;   /* bytes that the socket has not taken yet */
  uint32_t written;  /* all bytes ever written; wraps around */
} tide_conn_view;

typedef void (*tide_conn_view_fn)(void *arg, const tide_conn_view *view);

/* Calls `fn` for so many connections at most, those with a request first, which
 * must change none; returns how many there are. */
size_t tide_listener_look(const tide_listener *listener, size_t most,
                          tide_conn_view_fn fn, void *arg);

/* ---- handover (handover.c) ------------------------------------------------
 *
 * A listening socket goes from one process to its successor, which gets a
 * second descriptor of the same socket, and so of the same queue. */

typedef struct tide_handover {
  int fd;
  const char *address;
  bool inherited;  /* of systemd or a parent: not even ours to empty */
  uint64_t inode;  /* of a Unix socket's path that is ours to unlink; else 0 */
  uint64_t device; /* where that inode is */
} tide_handover;

/* How well a socket must fit what a listener declares. */
typedef enum tide_fit {
  TIDE_FIT_EXACT,   /* the address and the port */
  TIDE_FIT_ADDRESS, /* a declared port 0 is any port */
  TIDE_FIT_NAME,    /* nothing: it was declared by its name alone */
} tide_fit;

/* What a successor needs of it. False: there is no socket to hand over. */
bool tide_listener_lend(const tide_listener *listener, tide_handover *out);
/* Lets a listener that is not bound yet have this socket instead of one of its
 * own. False: it does not fit, and the descriptor stays the caller's. */
bool tide_listener_adopt(tide_listener *listener, const tide_handover *given,
                         tide_fit fit);
/* Stops accepting for a while, or goes on; the queue waits in the kernel. */
void tide_listener_hold(tide_listener *listener, bool hold);
/* The socket is the successor's from now on: an unbind only lets go of it. Or
 * it is ours again. */
void tide_listener_disown(tide_listener *listener, bool disown);

/* Never more than the process may have descriptors, less 64. */
void tide_http_set_max_connections(tide_http *http, uint32_t most);
void tide_http_set_max_in_flight(tide_http *http, uint32_t most);

/* ---- exchanges ----------------------------------------------------------- */

uint32_t tide_exchange_slot(const tide_exchange *exchange);
uint32_t tide_exchange_generation(const tide_exchange *exchange);
const tide_request *tide_exchange_request(const tide_exchange *exchange);
const tide_route_match *tide_exchange_match(const tide_exchange *exchange);
/* The client's address, "127.0.0.1:4711" or "unix". */
void tide_exchange_remote(const tide_exchange *exchange, char *out,
                          size_t size);
/* Why no more can be read or written; NULL: it can. */
const char *tide_exchange_lost(const tide_exchange *exchange);
/* Whether a head (any answer) has left already. */
bool tide_exchange_head_sent(const tide_exchange *exchange);

typedef struct tide_answer_header {
  const char *name;
  size_t name_length;
  const char *value;
  size_t value_length;
} tide_answer_header;

typedef struct tide_answer {
  int status;
  const char *type; /* of the body; NULL: none is named */
  const tide_answer_header *headers;
  size_t header_count;
  const char *body;
  size_t length;
  bool sized; /* the handler gave a Content-Length: `size` */
  uint64_t size;
  bool constant; /* type and headers are always the same where these are */
} tide_answer;

/* Why an answer was refused. */
typedef enum tide_answer_error {
  TIDE_ANSWER_OK = 0,
  TIDE_ANSWER_LOST,   /* the client is gone, or the request is over */
  TIDE_ANSWER_TWICE,  /* a head was sent already */
  TIDE_ANSWER_HEADER, /* CR, LF, NUL or a bad name in a header */
  TIDE_ANSWER_STATUS, /* not 200 to 599 */
  TIDE_ANSWER_LENGTH, /* framing among the headers */
  TIDE_ANSWER_SIZE,   /* Content-Length and the body do not agree */
  TIDE_ANSWER_PLAIN,  /* the client asked for no upgrade, or sent a body */
  TIDE_ANSWER_DRAIN,  /* a drain lets no stream begin */
} tide_answer_error;
const char *tide_answer_error_text(tide_answer_error error);

/* The whole answer at once. */
tide_answer_error tide_exchange_answer(tide_exchange *exchange,
                                       const tide_answer *answer);
/* A head whose body follows in pieces. Where none can follow, as behind a HEAD
 * request, the exchange is over with it. */
tide_answer_error tide_exchange_begin(tide_exchange *exchange,
                                      const tide_answer *answer);
/* The same; the body may end after any piece, so a drain ends it cleanly. */
tide_answer_error tide_exchange_begin_events(tide_exchange *exchange,
                                             const tide_answer *answer);
/* 101: from here on the connection is the handler's; it reads and writes bytes
 * with the functions for bodies and pieces. The answer names the protocol in an
 * Upgrade field. */
tide_answer_error tide_exchange_upgrade(tide_exchange *exchange,
                                        const tide_answer *answer);
/* Whether the client asks for another protocol, and may. */
bool tide_exchange_may_upgrade(const tide_exchange *exchange);
/* Our half of an upgraded connection ends when all is written. */
void tide_exchange_shutdown(tide_exchange *exchange);
/* A piece. *full: wait for a wake before the next (tide_exchange_want_room). */
tide_answer_error tide_exchange_write(tide_exchange *exchange, const char *data,
                                      size_t length, bool *full);
/* Bytes that the socket has not taken yet. */
size_t tide_exchange_queued(const tide_exchange *exchange);
/* The last piece was written. SIZE: more was promised; it is not over then. */
tide_answer_error tide_exchange_finish(tide_exchange *exchange);
/* The handler failed: 500 where no head was sent, else RST. */
void tide_exchange_broken(tide_exchange *exchange, int status);

/* Wake me when there is room again. Returns false when there is already. */
bool tide_exchange_want_room(tide_exchange *exchange);
/* Bytes of the body that are here, and whether they are the last. Asking sends
 * "100 Continue" where the client waits for it. NULL with *lost set: there will
 * be no (more) body. */
const char *tide_exchange_body(tide_exchange *exchange, size_t *length,
                               bool *complete, const char **lost);
/* The bytes were taken. */
void tide_exchange_take(tide_exchange *exchange, size_t length);
/* Wake me when more is here, or (`whole`) when all is. */
void tide_exchange_want_body(tide_exchange *exchange, bool whole);

/* NULL for a slot that is not in use, or whose generation has passed. */
tide_exchange *tide_http_exchange(const tide_http *http, uint32_t slot,
                                  uint32_t generation);

/* ---- numbers ------------------------------------------------------------- */

enum { TIDE_HTTP_BUCKETS = 11 };
/* Upper bounds in seconds; the last bucket is +Inf. */
extern const double tide_http_bucket_bounds[TIDE_HTTP_BUCKETS];

typedef struct tide_http_stats {
  uint64_t requests[6]; /* by status class; [0]: ended without an answer */
  uint64_t bucket[TIDE_HTTP_BUCKETS + 1];
  double duration_sum;
  uint64_t accepted;
  uint64_t connections; /* open now */
  uint64_t idle;        /* of these */
  uint64_t upgraded;    /* of the open ones */
  uint64_t in_flight;
  uint64_t refused; /* over the limits */
  uint64_t parse_errors;
  uint64_t timeouts;
  uint64_t aborted;       /* ended by the client or a drain */
  uint64_t half_requests; /* EOF inside a head */
} tide_http_stats;

void tide_http_get_stats(const tide_http *http, tide_http_stats *out);
/* Whether this points at one of the room's; of another, it may point nowhere.
 */
bool tide_http_has_listener(const tide_http *http,
                            const tide_listener *listener);

#endif
