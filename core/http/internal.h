/* internal: what the HTTP rooms share among themselves.
 *
 * A listener accepts; a connection reads one request at a time into an exchange
 * (a request and its answer), which a handler answers; the connection writes.
 * An idle connection holds no exchange, no buffer and no timer of its own: it
 * stands in a FIFO list of its listener, one for each kind of timeout.
 */
#ifndef TIDE_HTTP_INTERNAL_H
#define TIDE_HTTP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "../owner.h"
#include "http.h"
#include "request.h"
#include "response.h"
#include "route.h"

enum {
  TIDE_READ_SIZE = 65536,  /* the shared read buffer */
  TIDE_READS_MAX = 128,    /* reads that it holds */
  TIDE_OUT_SIZE = 65536,   /* answers gathered for one write */
  TIDE_HIGH_WATER = 65536, /* unread bytes with which a client waits */
  TIDE_CLOSES_PER_TURN = 50,
  TIDE_EXTRA_CONNECTIONS = 64, /* over the limit, told so with a 503 */
  TIDE_HEALTH_CONNECTIONS = 8, /* over the limit, for probes */
};

/* ---- timeouts ----------------------------------------------------------- */

typedef enum tide_wait {
  TIDE_WAIT_NONE,
  TIDE_WAIT_IDLE,   /* for the first byte of a request */
  TIDE_WAIT_HEAD,   /* from that byte to the end of the head; never reset */
  TIDE_WAIT_CLAMP,  /* the same in a drain */
  TIDE_WAIT_BODY,   /* between two reads */
  TIDE_WAIT_WRITE,  /* without a byte taken by the socket */
  TIDE_WAIT_LINGER, /* after our FIN, between two reads */
  TIDE_WAIT_PEER,   /* for the next look whether the client is still there */
  TIDE_WAIT_KINDS,
} tide_wait;

/* A place in one of the lists. `at` grows from head to tail, because all in a
 * list wait equally long. */
typedef struct tide_place {
  struct tide_place *next;
  struct tide_place *previous;
} tide_place;

/* ---- exchange ----------------------------------------------------------- */

typedef struct tide_exchange {
  tide_request request;
  struct tide_conn *conn; /* NULL while in the pool */
  struct tide_exchange *next_free;
  uint32_t slot;       /* its number, small; for the handler's tables */
  uint32_t generation; /* grows when it ends: what is stale can be told */
  tide_route_match match;
  uint64_t started_at; /* first byte */
  uint64_t head_took;  /* until the head was complete */
  uint64_t waits_from; /* for the client's body, while it is waited for */
  uint64_t waited;     /* for it, before that */

  tide_body_framing framing;
  int status;
  bool handling; /* a handler was started and has not ended */
  bool counted;  /* in the work accounts */
  bool head_sent;
  bool answered; /* the answer is complete (perhaps still queued) */
  bool continue_sent;
  bool body_wanted; /* the handler waits for bytes of the body */
  bool body_whole;  /* ... for all of them */
  bool room_wanted; /* the handler waits for room to write */
  bool streaming;   /* the answer comes in pieces */
  bool sized;       /* ... that have been promised to be `to_come` bytes */
  bool clean_end;   /* ... of which any may be the last: events */
  bool watched;     /* the handler is cancelled when its client leaves */
  bool shut_wanted; /* our half ends as soon as all is written */
  bool shut;        /* it has ended */
  uint64_t to_come;
  const char *lost; /* why no more can be read or written; NULL: it can */
  uint64_t sent;    /* bytes of the answer */
} tide_exchange;

/* ---- connection --------------------------------------------------------- */

typedef enum tide_conn_state {
  TIDE_CONN_IDLE,     /* no byte of a request seen */
  TIDE_CONN_HEAD,     /* some bytes of a head */
  TIDE_CONN_HANDLER,  /* an answer is being made; the body may still arrive */
  TIDE_CONN_WRITE,    /* the answer is complete, the socket is not done */
  TIDE_CONN_UPGRADED, /* bytes of another protocol, for the handler */
  TIDE_CONN_FIN,      /* our FIN is sent; what comes is read and discarded */
  TIDE_CONN_CLOSED,
} tide_conn_state;

/* Bytes the socket did not take at once; the data follow the struct. */
typedef struct tide_chunk {
  uv_write_t request;
  struct tide_conn *conn;
  size_t length;
  char data[];
} tide_chunk;

typedef struct tide_conn {
  tide_owner owner;
  tide_place place;       /* in a timeout list */
  uint64_t wait_until;    /* of that list */
  struct tide_conn *next; /* all of a listener */
  struct tide_conn *previous;
  struct tide_conn *next_turn; /* in the list of http->turn */
  struct tide_listener *listener;
  tide_exchange *exchange;
  char *pending; /* bytes read but not parsed yet */
  uint32_t pending_length;
  uint32_t pending_capacity;
  uint32_t queued;     /* bytes given to uv_write, not yet done */
  uint32_t given;      /* all bytes ever written; wraps around */
  uint32_t stalled_at; /* how far it was when the write timeout last looked */
  uint32_t served;     /* requests begun */
  int fd;
  uint64_t opened_at;
  uint64_t fin_until; /* total of the lingering close */
  uint8_t state;
  uint8_t waiting;     /* tide_wait: the list it stands in */
  uint8_t blank;       /* bytes of empty lines before a request */
  bool must_close : 1; /* no further request is parsed (I2) */
  bool eof : 1;        /* the client's FIN was seen */
  bool reading : 1;
  bool in_turn : 1;
  bool processing : 1;
  bool unread_seen : 1;  /* input arrived that nobody will parse */
  bool probed : 1;       /* a late timeout was put off once */
  bool after_answer : 1; /* of a FIN: it follows an answer */
  bool finishing : 1;    /* FIN as soon as all is written */
  bool read_ahead : 1;   /* some of its bytes are among http->reads */
  bool holding : 1;      /* counted in listener->holding */
  bool reserved : 1;     /* counted in http->reserved: for a probe only */
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } io;
} tide_conn;

/* ---- listener ----------------------------------------------------------- */

typedef enum tide_unbind {
  TIDE_BOUND,    /* accepting, or about to */
  TIDE_GATED,    /* no new SYN; the queue is being emptied */
  TIDE_EMPTYING, /* the gate was refused: accept until EAGAIN */
  TIDE_UNBOUND,  /* the socket is closed */
} tide_unbind;

typedef struct tide_listener {
  tide_owner owner;
  struct tide_listener *next;
  struct tide_http *http;
  tide_listener_options options; /* strings owned */
  tide_router *router;
  tide_work_source work;
  char *work_name;
  uv_poll_t poll;
  int fd;
  bool poll_open;
  bool listening;
  bool paused;    /* too many connections, or no file descriptor left */
  bool held;      /* while a successor is asked whether it accepts */
  bool inherited; /* its queue is somebody else's: never gated, emptied, */
                  /* shut down or unlinked */
  bool handed;    /* from a process that we follow */
  bool succeeded; /* its socket is a successor's now: as if inherited */
  bool is_unix;
  bool is_v6;
  uint64_t inode; /* of a Unix socket we made */
  uint64_t device;
  uint16_t port; /* the real one */
  char address[128];
  char idle_text[16]; /* seconds, told to clients; "": nothing is told */

  tide_conn *conns;
  uint32_t conn_count;
  uint32_t busy;     /* between the first byte of a request and its answer */
  uint32_t idle;     /* waiting for a first byte */
  uint32_t upgraded; /* speaking another protocol */
  uint32_t holding;  /* our FIN is sent, and a drain waits for theirs */
  uint64_t hold_step;
  tide_place lists[TIDE_WAIT_KINDS];

  tide_unbind unbind;
  uint64_t unbind_from;
  uint64_t unbind_next; /* the next look */
  uint64_t unbind_until;
  uint64_t accepted_at; /* the last one */
  bool draining;        /* idle connections are being closed */
  bool told_drained;
  bool forcing; /* the drain's time is over: what begins now is told 503 */
  /* of a drain: when streams are ended; 0: not, or done */
  uint64_t streams_until;
  uint64_t drain_from;
  uint32_t idle_at_drain;
  tide_conn *sweep; /* the next one to look at */

  uint64_t answered;        /* all answers that were written whole */
  uint64_t answered_before; /* of these, before the move to draining */
  uint64_t closed_idle;     /* by the drain */
  uint64_t queued;          /* in the kernel's queue when it was gated */
  uint64_t drained;         /* accepted after the gate */
  uint32_t forced;          /* requests and answers ended by force */
  uint32_t forced_named;
  tide_forced *forced_names; /* TIDE_FORCED_NAMES of them, or NULL */
} tide_listener;

/* The head of an answer that says nothing of its own, but for the length of its
 * body: it is the same for a second. (plain.c) */
typedef struct tide_plain_head {
  const char *type; /* for this type, these headers, this idle timeout; by */
  const tide_answer_header *headers; /* their addresses */
  const char *idle;
  uint64_t until; /* the end of the second */
  size_t length;
  size_t number; /* where the length goes, in the place of one digit */
  char text[512];
} tide_plain_head;

/* Bytes of a connection in the shared read buffer, not taken yet. */
typedef struct tide_read {
  tide_conn *conn; /* NULL: it is closed */
  uint32_t at;
  uint32_t length;
} tide_read;

/* ---- the room ----------------------------------------------------------- */

struct tide_http {
  tide_owner owner;
  tide_http_env env;
  tide_state_observer observer;
  tide_listener *listeners;
  tide_http_handlers handlers;
  tide_health *health;
  uv_idle_t turn; /* work for the next turn of the loop; started when needed */
  uv_check_t check;       /* takes what this turn has read; likewise */
  tide_deadline deadline; /* sweeps the timeout lists */
  uint64_t pace_at;       /* the next look at those who are slow */
  tide_place *pacing;     /* where that look is */
  tide_deadline ticker;   /* paces an unbind, the end of a pause */
  int handles;            /* open ones, connections included */
  bool closing;
  tide_conn *turn_list;
  uint32_t connections; /* not those of the management listener */
  uint32_t max_connections;
  uint32_t reserved; /* of those over the limit: in places for probes */
  uint64_t pause_until;
  uint64_t full_at; /* when accepting failed last */
  int reserve_fd;   /* given up to accept and close when none is left */

  tide_exchange **exchanges; /* all ever made, by slot */
  uint32_t exchange_count;
  uint32_t exchange_capacity;
  tide_exchange *free_exchanges;
  uint32_t in_flight;
  uint32_t max_in_flight;

  tide_read reads[TIDE_READS_MAX];
  unsigned read_count;
  size_t read_length; /* of the read buffer, in use by these */
  uint64_t read_at;   /* the time, while one read is being taken; else 0 */
  tide_conn *batch;   /* whose answers are gathered in `out` */
  size_t out_length;
  size_t out_whole; /* of these, up to the end of the last complete answer */
  bool must_close_default; /* draining: each head says close */
  char date[40];
  uint64_t date_until; /* when another second begins */
  tide_plain_head plain[2];
  unsigned plain_next;     /* the one to be made anew */
  uint64_t batch_answered; /* requests of this read, for the histogram */
  tide_http_stats stats;
  char out[TIDE_OUT_SIZE];
  char read[TIDE_READ_SIZE];
};

/* conn.c */
/* Takes the socket over, also when it fails and returns NULL. */
tide_conn *tide_conn__open(tide_listener *listener, int fd);
void tide_conn__set_state(tide_conn *conn, tide_conn_state state);
bool tide_conn__is_busy(const tide_conn *conn);
/* Sends FIN once all is written, then reads on until the client is done. */
void tide_conn__finish(tide_conn *conn);
/* Closes at once; `reset`: with RST. */
void tide_conn__destroy(tide_conn *conn, bool reset);
/* Asks the next loop turn to look at the connection. */
void tide_conn__later(tide_conn *conn);
bool tide_conn__is_young(const tide_conn *conn, uint64_t now);
/* As tide_exchange_remote. */
void tide_conn__remote(const tide_conn *conn, char *out, size_t size);
/* Bytes that wait in the kernel, unread. */
int tide_conn__unread(const tide_conn *conn);
/* Whether there are bytes that nobody has looked at yet, wherever they wait. */
bool tide_conn__has_input(const tide_conn *conn);
/* Whether the client has closed with RST, as far as one can tell without
 * reading. */
bool tide_conn__was_reset(const tide_conn *conn);
/* Where no timer runs: one for bytes that are queued, or, where nobody reads
 * while a handler is at work, one to look after the client now and then. */
void tide_conn__rest(tide_conn *conn);
/* Whether the client has left; then the connection is gone. */
bool tide_conn__look(tide_conn *conn);

/* conn_read.c */
int tide_conn__read_start(tide_conn *conn);
/* Parses what is pending, and goes on with the next request. */
void tide_conn__process(tide_conn *conn);

/* What was read of a connection's bytes is looked at. */
void tide_conn__take(tide_conn *conn, const char *data, size_t length);

/* reads.c */
/* Where the next read goes. */
void tide_reads__room(tide_http *http, uv_buf_t *buf);
/* So much was read there: it is taken at the end of the poll, or now. */
void tide_reads__add(tide_conn *conn, size_t length);
/* Takes what was read of the connection before, in its turn. */
void tide_reads__flush(tide_conn *conn);
/* The connection closes. */
void tide_reads__forget(tide_conn *conn);

/* conn_write.c */
void tide_conn__write(tide_conn *conn, const uv_buf_t *bufs, unsigned count);
/* Of the bytes ever written, how many the socket took; wraps around. */
uint32_t tide_conn__taken(const tide_conn *conn);
void tide_conn__batch_begin(tide_conn *conn);
void tide_conn__batch_end(tide_conn *conn);
/* The gathered answers up to here are complete. */
void tide_conn__batch_mark(tide_conn *conn);
/* Before a close at once: sends the complete ones, drops the rest. */
void tide_conn__batch_drop(tide_conn *conn);

/* The answer of the present request is complete. */
void tide_conn__answered(tide_conn *conn);

/* answer.c: what goes with each 503; the Date of now; whether the connection
 * closes behind an answer */
extern const tide_answer_header tide_answer__retry_after;
const char *tide_answer__date(tide_http *http);
bool tide_answer__is_last(const tide_exchange *exchange);

/* plain.c: writes an answer into the batch, if it is a plain one. */
bool tide_answer__plain(tide_exchange *exchange, const tide_answer *answer);

/* exchange.c */
/* Requests that were begun and answered in the read that ends now. */
void tide_exchange__count_batch(tide_http *http);
tide_exchange *tide_exchange__take(tide_conn *conn);
/* The answer is complete and written, or there will be none. */
void tide_exchange__end(tide_exchange *exchange);
/* The complete head came: finds the route. False: it is answered already. */
bool tide_exchange__route(tide_exchange *exchange);
/* Starts the route's handler. */
void tide_exchange__start(tide_exchange *exchange);
/* More of the body is here, or all of it. */
void tide_exchange__body_came(tide_exchange *exchange);
void tide_exchange__fail(tide_exchange *exchange, int status);
/* No more can be read or written: the handler is told. */
void tide_exchange__lose(tide_exchange *exchange, const char *why);
/* The handler is told to stop, if one is at work. */
void tide_exchange__abort(tide_exchange *exchange, const char *why);

/* answer.c */
/* Writes the answer to a client that there is no room for; returns its length.
 */
size_t tide_answer__unavailable(tide_http *http, char *out, size_t size);
/* It has become a stream: its handler ends with its client, unless the route
 * says otherwise. */
void tide_exchange__watch(tide_exchange *exchange);
/* There is room to write again. */
void tide_exchange__room(tide_exchange *exchange);
/* Writes the head. Returns LOST when memory is out. */
tide_answer_error tide_exchange__head(tide_exchange *exchange,
                                      const tide_answer *answer,
                                      tide_head_facts *facts);

/* upgrade.c: bytes of the other protocol; returns how many were taken. */
size_t tide_upgrade__feed(tide_conn *conn, const char *data, size_t length);
/* The client will send no more. */
void tide_upgrade__eof(tide_conn *conn);
/* All is written: our half ends where the handler wished it. */
void tide_upgrade__written(tide_conn *conn);

/* streams.c: ends what would go on for ever, at the end of a drain's
 * stream_grace: events with a clean last chunk, upgraded connections with FIN,
 * other answers in pieces with RST, for half of one must not pass for all. */
void tide_streams__end(tide_listener *listener);
/* The drain has begun: its streams end when stream_grace is over. */
void tide_streams__drain(tide_listener *listener);
void tide_streams__tick(tide_listener *listener, uint64_t now);

/* timeouts.c */
void tide_timeouts__init(tide_listener *listener);
void tide_timeouts__set(tide_conn *conn, tide_wait kind);
void tide_timeouts__clear(tide_conn *conn);
/* Whether the client takes too long for its body, by its rate or in all. */
bool tide_timeouts__body_is_late(const tide_conn *conn, uint64_t now);
void tide_timeouts__sweep(tide_deadline *deadline);

/* accept.c */
/* Accepts so many at most; true: none is left in the queue. */
bool tide_listener__accept(tide_listener *listener, int most);
/* Room was made: those that had to stop for want of it go on. */
void tide_listener__resume(tide_http *http);
/* Polls the socket, unless something keeps it from accepting. */
void tide_listener__watch(tide_listener *listener);
/* Opens the descriptor that is kept for a full table, if it is not open. */
void tide_listener__reserve(tide_http *http);

/* server.c */
void tide_listener__close(tide_listener *listener);
void tide_listener__free(tide_listener *listener);

/* handover.c: whether the queue of its socket is somebody else's. */
bool tide_listener__is_foreign(const tide_listener *listener);
/* Whether a descriptor is a socket that listens. */
bool tide_listener__accepts(int fd);
/* bind.c: removes the path of a Unix socket, if it still is ours. */
void tide_listener__unlink(tide_listener *listener);
/* The addresses that the options ask for; a negative libuv error, with a
 * sentence. The caller frees them with freeaddrinfo. */
struct addrinfo;
int tide_listener__resolve(const tide_listener *listener,
                           struct addrinfo **found, char *error, size_t size);

/* unbind.c: the next step of an unbind, when it is due. */
void tide_unbind__tick(tide_listener *listener, uint64_t now);

/* drain.c */
void tide_drain__told(tide_listener *listener, bool drain);
void tide_drain__tick(tide_http *http);
bool tide_drain__turn(tide_listener *listener);
/* Whether a closed connection's FIN still holds the drain; keeps the count. */
void tide_drain__hold(tide_conn *conn);
/* A connection has become idle whose head was sent before the drain began,
 * without a close. */
void tide_drain__idle(tide_listener *listener);
/* Something that a drain waits for has changed. */
void tide_drain__check(tide_listener *listener);

/* force.c */
/* The process drains from now on: says what there is. */
void tide_drain__announced(tide_http *http);
/* The connection's request is ended by force: a record, a name, a count. */
void tide_force__note(tide_conn *conn, const char *why);

/* pending.c: clients of a listening socket that are not accepted yet, those
 * whose handshake is under way among them; -1: unknown. */
int tide_pending__count(int socket, bool is_v6);

/* probe.c: answers /health*; false: not one of its paths, or not asked for. */
bool tide_health__answer(tide_exchange *exchange);
/* Whether it is one of its paths, whatever the method. */
bool tide_health__knows(const tide_exchange *exchange);

/* http.c */
uint64_t tide_http__now(const tide_http *http);
tide_state tide_http__state(const tide_http *http);
void tide_http__need_turn(tide_http *http);
void tide_http__handle_closed(tide_http *http);
void tide_http__tick_at(tide_http *http, uint64_t at);
void tide_http__log(tide_http *http, tide_log_level level, const char *message,
                    const tide_field *fields, size_t count);

#endif
