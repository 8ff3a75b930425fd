/* handlers: who answers the requests of a fuzzed connection, in all the ways
 * that a script could: at once, on a cue, in pieces, wrongly, not at all.
 *
 * The answer says what the handler saw, so that two runs with the same bytes
 * can be compared, and carries a number that no other answer of the run has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "room.h"

enum {
  ROUTE_NOW = 1, /* without a look at the body */
  ROUTE_ECHO,    /* when the whole body is here */
  ROUTE_PIECES,  /* takes the body as it comes */
  ROUTE_LATER,   /* on a cue */
  ROUTE_STREAM,  /* in pieces, on cues */
  ROUTE_FEED,    /* the same, on a route that a drain refuses */
  ROUTE_EVENTS,  /* the same, and any piece may be the last */
  ROUTE_SIZED,   /* the same, of a length that the head promises */
  ROUTE_UPGRADE, /* another protocol: sends back what it gets */
  ROUTE_EMPTY,   /* 204 */
  ROUTE_BIG,     /* more than fits into a socket */
  ROUTE_CLOSE,   /* says close itself */
  ROUTE_BROKEN,  /* 500 */
  ROUTE_HALF,    /* fails behind the head */
  ROUTE_WRONG,   /* a header with a line break, then a second answer */
  ROUTE_FORCE,   /* ends a drain by force, its own request with the others */
};

static char big[70000];

static void add(tide_listener *listener, unsigned method, const char *pattern,
                int id) {
  char error[256];
  tide_route *route = tide_router_add(tide_listener_router(listener), method,
                                      pattern, error, sizeof error);
  CHECK(route != NULL);
  route->id = id;
  route->stream = id == ROUTE_FEED;
  route->watch = id == ROUTE_LATER || id == ROUTE_ECHO;
}

void handlers_add(tide_listener *listener) {
  static const struct {
    const char *pattern;
    int id;
  } routes[] = {
      {"/", ROUTE_NOW},
      {"/now", ROUTE_NOW},
      {"/items/:id/:part", ROUTE_NOW},
      {"/echo", ROUTE_ECHO},
      {"/pieces", ROUTE_PIECES},
      {"/later", ROUTE_LATER},
      {"/stream", ROUTE_STREAM},
      {"/feed", ROUTE_FEED},
      {"/events", ROUTE_EVENTS},
      {"/sized", ROUTE_SIZED},
      {"/upgrade", ROUTE_UPGRADE},
      {"/empty", ROUTE_EMPTY},
      {"/big", ROUTE_BIG},
      {"/close", ROUTE_CLOSE},
      {"/broken", ROUTE_BROKEN},
      {"/half", ROUTE_HALF},
      {"/wrong", ROUTE_WRONG},
      {"/force", ROUTE_FORCE},
  };
  memset(big, 'b', sizeof big);
  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
    add(listener, HTTP_GET, routes[i].pattern, routes[i].id);
    add(listener, HTTP_POST, routes[i].pattern, routes[i].id);
  }
  add(listener, HTTP_OPTIONS, "/now", ROUTE_NOW);
}

static client *client_of(const tide_exchange *x) {
  for (int i = 0; i < CLIENTS; i++)
    if (the_room.clients[i].conn == x->conn)
      return &the_room.clients[i];
  abort(); /* a request of nobody */
}

static tide_exchange *exchange_of(const client *c) {
  if (!c->now.runs)
    return NULL;
  return tide_http_exchange(the_room.http, c->now.slot, c->now.generation);
}

void handlers_prune(client *c) {
  if (c->now.runs && exchange_of(c) == NULL)
    c->now.runs = false;
}

/* ---- answering ------------------------------------------------------------
 */

/* What the handler was told of the request: all of it. */
static uint64_t seen(const tide_exchange *x) {
  const tide_request *r = tide_exchange_request(x);
  const tide_route_match *m = tide_exchange_match(x);
  uint64_t hash =
      answers_hash(r->method + 1, r->base + r->path, r->path_length);
  hash = answers_hash(hash, r->base + r->query, r->query_length);
  for (unsigned i = 0; i < r->header_count; i++) {
    const tide_header *h = &r->headers[i];
    hash = answers_hash(hash, r->base + h->name, h->name_length);
    hash = answers_hash(hash, r->base + h->value, h->value_length);
  }
  for (unsigned i = 0; i < m->route->param_count; i++)
    hash = answers_hash(hash, r->base + r->path + m->params[i].at,
                        m->params[i].length);
  return hash;
}

static void promised(client *c, bool complete) {
  CHECK(c->promise_count < NUMBERS_MAX);
  c->promises[c->promise_count++] =
      (promise){c->now.number, complete, the_room.http->must_close_default};
}

/* The head of each answer: its number among the headers. */
static tide_answer head(const client *c, int status, char digits[24],
                        tide_answer_header headers[2]) {
  int n = snprintf(digits, 24, "%ld", c->now.number);
  headers[0] = (tide_answer_header){"N", 1, digits, (size_t)n};
  return (tide_answer){.status = status,
                       .type = "text/plain",
                       .headers = headers,
                       .header_count = 1};
}

static void reply(client *c, tide_exchange *x, int status, const char *body,
                  size_t length) {
  char digits[24];
  tide_answer_header headers[2];
  tide_answer a = head(c, status, digits, headers);
  a.body = body;
  a.length = length;
  if (c->now.route == ROUTE_CLOSE) {
    headers[1] = (tide_answer_header){"Connection", 10, "Close", 5};
    a.header_count = 2;
  }
  promised(c, true);
  if (tide_exchange_answer(x, &a) != TIDE_ANSWER_OK)
    c->promise_count--;
  handlers_prune(c);
}

static void reply_seen(client *c, tide_exchange *x) {
  char text[96];
  int n = snprintf(text, sizeof text, "route %d saw %016llx body %016llx %zu\n",
                   c->now.route, (unsigned long long)seen(x),
                   (unsigned long long)c->now.hash, c->now.length);
  reply(c, x, 200, text, (size_t)n);
}

enum { SIZE = 50000 };

static tide_answer_error begin_as(client *c, tide_exchange *x, tide_answer *a) {
  if (c->now.route == ROUTE_EVENTS)
    return tide_exchange_begin_events(x, a);
  a->sized = c->now.route == ROUTE_SIZED;
  a->size = c->now.left = a->sized ? SIZE : 0;
  return tide_exchange_begin(x, a);
}

static void begin(client *c, tide_exchange *x) {
  char digits[24];
  tide_answer_header headers[2];
  tide_answer a = head(c, 200, digits, headers);
  promised(c, false);
  tide_answer_error error = begin_as(c, x, &a);
  if (error != TIDE_ANSWER_OK) {
    c->promise_count--;
    CHECK(error == TIDE_ANSWER_LOST || error == TIDE_ANSWER_DRAIN);
    if (error == TIDE_ANSWER_DRAIN)
      reply_seen(c, x);
    return;
  }
  c->now.begun = true;
  if (exchange_of(c) == NULL) { /* a HEAD: that was all */
    c->promises[c->promise_count - 1].complete = true;
    return;
  }
  /* What goes wrong with the body can now only be told by cutting off. */
  if (!tide_exchange_request(x)->done)
    c->may_lose = true;
}

static void upgrade(client *c, tide_exchange *x) {
  char digits[24];
  tide_answer_header headers[2];
  tide_answer a = head(c, 101, digits, headers);
  headers[1] = (tide_answer_header){"Upgrade", 7, "x", 1};
  a.header_count = 2;
  a.type = NULL;
  promised(c, true);
  tide_answer_error error = tide_exchange_upgrade(x, &a);
  if (error != TIDE_ANSWER_OK)
    c->promise_count--;
  if (error == TIDE_ANSWER_PLAIN || error == TIDE_ANSWER_DRAIN)
    reply_seen(c, x);
  if (error != TIDE_ANSWER_OK)
    return;
  c->now.begun = c->now.upgraded = true;
  tide_exchange_want_body(x, false);
}

/* Sends back what has come; the client's end is the end. */
static void send_back(client *c, tide_exchange *x) {
  size_t length;
  bool complete, full;
  const char *lost;
  const char *data = tide_exchange_body(x, &length, &complete, &lost);
  if (data == NULL)
    return;
  tide_answer_error error = tide_exchange_write(x, data, length, &full);
  if (error != TIDE_ANSWER_OK || exchange_of(c) == NULL)
    return;
  tide_exchange_take(x, length);
  if (complete)
    tide_exchange_finish(x);
  else
    tide_exchange_want_body(x, false);
}

static void wrong(client *c, tide_exchange *x) {
  static const tide_answer_header split = {"A", 1, "b\r\nEvil: c", 10};
  tide_answer a = {.status = 200, .headers = &split, .header_count = 1};
  uint32_t generation = tide_exchange_generation(x);
  CHECK(tide_exchange_answer(x, &a) == TIDE_ANSWER_HEADER);
  a = (tide_answer){.status = 99};
  CHECK(tide_exchange_answer(x, &a) == TIDE_ANSWER_STATUS);
  reply_seen(c, x);
  a.status = 200;
  if (tide_http_exchange(the_room.http, tide_exchange_slot(x), generation))
    CHECK(tide_exchange_answer(x, &a) == TIDE_ANSWER_TWICE);
}

static void run(client *c, tide_exchange *x) {
  switch (c->now.route) {
  case ROUTE_LATER:
  case ROUTE_STREAM:
  case ROUTE_FEED:
  case ROUTE_EVENTS:
  case ROUTE_SIZED:
    break; /* waits for its cue */
  case ROUTE_UPGRADE:
    upgrade(c, x);
    break;
  case ROUTE_EMPTY:
    reply(c, x, 204, NULL, 0);
    break;
  case ROUTE_BIG:
    if (the_room.big_left > 0) {
      the_room.big_left--;
      reply(c, x, 200, big, sizeof big);
      break;
    }
    reply_seen(c, x);
    break;
  case ROUTE_BROKEN:
    tide_exchange_broken(x, 500);
    break;
  case ROUTE_HALF:
    begin(c, x);
    handlers_break(c);
    break;
  case ROUTE_WRONG:
    wrong(c, x);
    break;
  case ROUTE_FORCE:
    if (the_room.listener->draining)
      tide_listener_force(the_room.listener, "drain timeout");
    else
      reply_seen(c, x);
    break;
  default:
    reply_seen(c, x);
  }
}

/* ---- reading --------------------------------------------------------------
 */

static bool reads(const client *c) {
  return the_room.read_first || c->now.route == ROUTE_ECHO ||
         c->now.route == ROUTE_PIECES;
}

static void note_body(client *c, const char *data, size_t length) {
  c->now.hash = answers_hash(c->now.hash, data, length);
  c->now.length += length;
}

/* Reads on as far as the body is here, then answers. */
static void step(client *c, tide_exchange *x) {
  size_t length;
  bool complete;
  const char *lost;
  const char *data = tide_exchange_body(x, &length, &complete, &lost);
  if (data == NULL) {
    CHECK(lost != NULL);
    /* A handler may try all the same, or end without an answer. */
    if (!the_room.read_first && c->now.number % 2 == 1)
      reply(c, x, 400, "lost", 4);
    return;
  }
  if (complete || c->now.route == ROUTE_PIECES) {
    note_body(c, data, length);
    tide_exchange_take(x, length);
  }
  if (complete)
    run(c, x);
  else
    tide_exchange_want_body(x, c->now.route != ROUTE_PIECES);
}

/* ---- what the room calls --------------------------------------------------
 */

static void on_start(void *arg, tide_exchange *x) {
  client *c = client_of(x);
  const tide_request *r = tide_exchange_request(x);
  (void)arg;
  handlers_prune(c);
  CHECK(!c->now.runs);                           /* I1 */
  CHECK(!c->last_asked && !x->conn->must_close); /* I2 */
  CHECK(r->head_done);
  c->last_asked = !r->keep_alive;
  c->now = (handling){.runs = true,
                      .slot = tide_exchange_slot(x),
                      .generation = tide_exchange_generation(x),
                      .route = tide_exchange_match(x)->route->id,
                      .number = ++the_room.numbers};
  if (reads(c))
    step(c, x);
  else
    run(c, x);
}

static void on_wake(void *arg, tide_exchange *x) {
  client *c = client_of(x);
  (void)arg;
  CHECK(exchange_of(c) == x);
  if (c->now.upgraded)
    send_back(c, x);
  else if (reads(c) && !c->now.begun)
    step(c, x);
}

static void on_abort(void *arg, tide_exchange *x, const char *why) {
  client *c = client_of(x);
  (void)arg;
  CHECK(exchange_of(c) == x && why != NULL);
  bool clean = c->now.route == ROUTE_EVENTS || c->now.upgraded;
  if (c->now.begun && clean && strcmp(why, "stream grace") == 0)
    c->promises[c->promise_count - 1].complete = true;
  else
    c->may_lose |= c->now.begun;
  /* A cancelled task may still answer while it ends. */
  if (!c->now.begun && c->now.number % 2 == 1)
    reply(c, x, 503, "aborted", 7);
}

static void on_unbound(void *arg, tide_listener *listener, bool drain) {
  (void)arg;
  CHECK(listener == the_room.listener);
  CHECK(drain ? the_room.unbound && !the_room.drained : !the_room.unbound);
  the_room.unbound = true;
  the_room.drained = drain;
}

const tide_http_handlers handlers_table = {
    .start = on_start,
    .wake = on_wake,
    .abort = on_abort,
    .unbound = on_unbound,
};

/* ---- cues -----------------------------------------------------------------
 */

/* Whether it waits for a cue, and not for the body before it. */
static bool on_cue(const client *c, const tide_exchange *x) {
  bool waits = c->now.route >= ROUTE_LATER && c->now.route <= ROUTE_SIZED;
  return waits && (tide_exchange_request(x)->done || !reads(c));
}

void handlers_write(client *c, size_t length) {
  bool full = false;
  tide_exchange *x = exchange_of(c);
  if (x == NULL || !on_cue(c, x) || c->now.route == ROUTE_LATER)
    return;
  if (!c->now.begun)
    begin(c, x);
  x = exchange_of(c);
  if (x == NULL || !c->now.begun)
    return;
  tide_answer_error error = tide_exchange_write(x, big, length, &full);
  bool beyond = c->now.route == ROUTE_SIZED && length > c->now.left;
  CHECK(error == TIDE_ANSWER_OK || error == TIDE_ANSWER_LOST ||
        (beyond && error == TIDE_ANSWER_SIZE));
  if (error != TIDE_ANSWER_OK)
    return;
  c->now.left -= c->now.route == ROUTE_SIZED ? length : 0;
  if (full)
    tide_exchange_want_room(x);
}

bool handlers_finish(client *c) {
  tide_exchange *x = exchange_of(c);
  if (x == NULL || !on_cue(c, x))
    return false;
  if (c->now.route == ROUTE_LATER) {
    reply_seen(c, x);
    return true;
  }
  bool sized = c->now.route == ROUTE_SIZED;
  handlers_write(c, sized && c->now.begun ? c->now.left : 100);
  if (sized && c->now.left > 0)
    handlers_write(c, c->now.left);
  x = exchange_of(c);
  if (x == NULL || !c->now.begun)
    return true;
  c->promises[c->promise_count - 1].complete = true;
  CHECK(tide_exchange_finish(x) == TIDE_ANSWER_OK);
  handlers_prune(c);
  return true;
}

void handlers_break(client *c) {
  tide_exchange *x = exchange_of(c);
  if (x == NULL)
    return;
  c->may_lose |= c->now.begun;
  tide_exchange_broken(x, 500);
  handlers_prune(c);
}
