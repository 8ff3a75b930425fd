/* fuzz_conn: bytes into a connection, in pieces, among everything else that can
 * happen to it.
 *
 * An input is a script, a line feed, and what the client sends. Each character
 * of the script is one step, then comes a turn of the loop:
 *
 *   +          behind a step: no turn yet
 *   a..z 0..9  sends the next 1..26, 32..16384 bytes
 *   C          goes on with the other client (bytes are dealt to both in turn)
 *   N          the client stops reading; the next N: it goes on
 *   H X        the client closes its half; closes all without reading
 *   A W V B    cues for the handler: end, a small piece, a large one, fail
 *   T L        half a second, 20 seconds go by
 *   G D S      the process drains (linger); the listener does; its streams end
 *   F Z        all is ended by force; what is left is reset
 *   =          (first) compares: the bytes whole, and in the pieces the script
 *              says, over and over, must get the same answers
 *   # % ! ~ ^  (anywhere) small limits; three requests for a connection; one
 *              in flight; idle closes over time; a drain that rejects
 *
 * At the end the rest is sent, handlers come to their end, clients close their
 * half; then all must be answered, and nothing be left.
 */
#include <signal.h>
#include <string.h>

#include "check.h"
#include "room.h"

enum { TURNS_MAX = 4000, SCRIPT_MAX = 64 };

typedef struct input {
  const char *script;
  size_t script_length;
  const char *bytes;
  size_t length;
} input;

static answers first, second;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- ends -----------------------------------------------------------------
 */

/* Everybody reads what is there; true: somebody got something. */
static bool read_all(void) {
  bool came = false;
  for (int i = 0; i < CLIENTS; i++)
    if (!the_room.clients[i].stalled)
      came |= client_read(&the_room.clients[i]);
  return came;
}

/* Turns until nothing moves any more; handlers that wait come to their end. */
static void settle(void) {
  int quiet = 0;
  for (int turns = 0; quiet < 3; turns++) {
    bool moved = false;
    CHECK(turns < TURNS_MAX);
    room_turn();
    for (int i = 0; i < CLIENTS; i++)
      moved |= handlers_finish(&the_room.clients[i]);
    moved |= read_all();
    quiet = moved ? 0 : quiet + 1;
  }
  room_check();
}

/* Without a client that reads nothing or a time that passes, the server closes
 * on its own. */
static void finish(void) {
  for (int i = 0; i < CLIENTS; i++)
    the_room.clients[i].stalled = false;
  settle();
  for (int i = 0; i < CLIENTS; i++)
    client_half_close(&the_room.clients[i]);
  settle();
  for (int i = 0; i < CLIENTS; i++) {
    client *c = &the_room.clients[i];
    CHECK_SAYING(c->fd < 0 || c->ended, i);
    CHECK_SAYING(room_lives(c) == NULL, i);
  }
  room_check_empty();
}

/* What was promised came, in order; nothing else bears a number (I3). */
static void check_promises(const client *c, const answers *got) {
  size_t next = 0;
  for (size_t i = 0; i < got->count; i++) {
    const answer *a = &got->list[i];
    CHECK_SAYING(a->whole || c->may_lose, i);
    if (a->number == 0)
      continue;
    CHECK_SAYING(next < c->promise_count, a->number);
    const promise *p = &c->promises[next++];
    CHECK_SAYING(a->number == p->number, a->number);
    CHECK_SAYING(p->complete || c->may_lose, a->number);
    /* I7; a 101 ends HTTP here, and says so in the place of close. */
    CHECK_SAYING(a->close || !p->last || !a->whole || a->status == 101,
                 a->number);
  }
  CHECK_SAYING(next == c->promise_count || c->may_lose, next);
}

/* For a person who looks at one input: FUZZ_SHOW=1. */
static void show(const client *c) {
  if (getenv("FUZZ_SHOW") == NULL || c->in_length == 0)
    return;
  fprintf(stderr, "-- client %d got:\n%.*s\n", (int)(c - the_room.clients),
          (int)c->in_length, c->in);
}

/* Returns how many answers came. */
static size_t check_client(client *c, answers *got) {
  show(c);
  answers_read(got, c->in != NULL ? c->in : "", c->in_length, c->ended);
  CHECK_SAYING(got->count <= c->sent / 26 + 1, got->count);
  CHECK_SAYING(got->bare_count <= c->heads || c->may_lose, got->bare_count);
  check_promises(c, got);
  return got->count;
}

static uint64_t counted(void) {
  tide_http_stats stats;
  uint64_t sum = 0;
  tide_http_get_stats(the_room.http, &stats);
  for (int i = 1; i < 6; i++)
    sum += stats.requests[i];
  return sum;
}

/* Ends the input: `before` is what counted() said at its beginning. */
static void conclude(uint64_t before, answers *got) {
  uint64_t came = 0;
  bool may_lose = false;
  finish();
  for (int i = CLIENTS - 1; i >= 0; i--) {
    came += check_client(&the_room.clients[i], got);
    may_lose |= the_room.clients[i].may_lose;
    client_free(&the_room.clients[i]);
  }
  CHECK_SAYING(came == counted() - before || may_lose, came);
  CHECK_SAYING(came <= counted() - before, came);
}

/* ---- comparing ------------------------------------------------------------
 */

static size_t piece_of(char step) {
  if (step >= 'a' && step <= 'z')
    return (size_t)(step - 'a') + 1;
  if (step >= '0' && step <= '9')
    return (size_t)32 << (step - '0');
  return 0;
}

static size_t next_piece(const input *in, size_t *step) {
  for (size_t i = 0; i < in->script_length; i++) {
    size_t piece = piece_of(in->script[(*step)++ % in->script_length]);
    if (piece > 0)
      return piece;
  }
  return 1;
}

static void send_in_pieces(const input *in, bool whole) {
  client *c = &the_room.clients[0];
  size_t step = 0;
  for (size_t at = 0; at < in->length;) {
    size_t piece = whole ? in->length : next_piece(in, &step);
    if (piece > in->length - at)
      piece = in->length - at;
    if (!client_send(c, in->bytes + at, piece))
      return; /* the server has closed: nobody would read it */
    at += piece;
    room_turn();
    handlers_finish(c);
    read_all();
    room_check();
  }
}

static void run_pieces(const input *in, bool whole, answers *got) {
  uint64_t before = counted();
  room_begin();
  the_room.read_first = true;
  client_open(&the_room.clients[0]);
  send_in_pieces(in, whole);
  conclude(before, got);
}

/* By the parser, before all of it was here. */
static bool refused(const answer *a) {
  static const int statuses[] = {400, 413, 414, 431, 501, 505};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (a->status == statuses[i])
      return a->number == 0 && a->close;
  return false;
}

static bool over_a_limit(const answer *a) {
  return a->status == 413 || a->status == 414 || a->status == 431;
}

/* What the bytes say decides, not how they were cut. One thing is left to
 * chance: a request that is both too large and malformed is refused for either,
 * for the parser hands over what it has at the end of a piece. */
static bool same_status(const answer *a, const answer *b) {
  if (a->status == b->status)
    return true;
  return refused(a) && refused(b) && (over_a_limit(a) || over_a_limit(b));
}

static void compare(const input *in) {
  run_pieces(in, true, &first);
  run_pieces(in, false, &second);
  for (size_t i = 0; i < first.count && i < second.count; i++) {
    const answer *a = &first.list[i], *b = &second.list[i];
    CHECK_SAYING(same_status(a, b), a->status * 1000 + b->status);
    if (a->status != b->status)
      continue;
    CHECK_SAYING(a->close == b->close, i);
    CHECK_SAYING(a->whole == b->whole && a->bare == b->bare, i);
    CHECK_SAYING(a->body_hash == b->body_hash || a->volatile_body, i);
  }
  CHECK_SAYING(first.count == second.count, first.count * 1000 + second.count);
}

/* ---- a script -------------------------------------------------------------
 */

typedef struct player {
  const input *in;
  size_t at; /* of the bytes */
  client *now;
  bool draining;
} player;

static void send_piece(player *p, size_t length) {
  size_t left = p->in->length - p->at;
  if (length > left)
    length = left;
  client_open(p->now);
  client_send(p->now, p->in->bytes + p->at, length);
  p->at += length;
}

static void pass(uint64_t ns) {
  for (int i = 0; i < CLIENTS; i++) {
    client *c = &the_room.clients[i];
    const tide_conn *conn = room_lives(c);
    /* What times out behind the head can only be cut off. */
    if (c->stalled || c->now.runs || (conn != NULL && conn->queued > 0))
      c->may_lose = true;
    /* All deadlines pass here without a look at what has come; a linger that
     * ends so closes on unread bytes. */
    if (conn != NULL && tide_conn__unread(conn) > 0)
      c->may_lose = true;
  }
  tide_clock_advance(&the_room.clock, ns);
}

static void cut_off(void) {
  for (int i = 0; i < CLIENTS; i++)
    the_room.clients[i].may_lose = true;
  tide_listener_reset(the_room.listener);
}

static void drain(player *p, char step) {
  if (!p->draining)
    tide_lifecycle_move(&the_room.lifecycle, TIDE_DRAINING);
  p->draining = true;
  if (step == 'G')
    return;
  if (!the_room.unbound)
    tide_listener_unbind(the_room.listener);
  if (!the_room.drained) /* who asks again is told again */
    tide_listener_drain(the_room.listener);
  if (step == 'S')
    tide_streams__end(the_room.listener);
  if (step == 'Z')
    cut_off();
  if (step == 'F')
    tide_listener_force(the_room.listener, "drain timeout");
}

static void cue(client *c, char step) {
  switch (step) {
  case 'A':
    handlers_finish(c);
    break;
  case 'W':
    handlers_write(c, 3);
    break;
  case 'V':
    handlers_write(c, 30000);
    break;
  default:
    handlers_break(c);
  }
}

static void play_step(player *p, char step) {
  client *c = p->now;
  if (piece_of(step) > 0)
    send_piece(p, piece_of(step));
  else if (step == 'C')
    p->now = &the_room.clients[c == &the_room.clients[0]];
  else if (step == 'N')
    c->stalled = !c->stalled;
  else if (step == 'H')
    client_half_close(c);
  else if (step == 'X')
    client_leave(c);
  else if (step == 'T' || step == 'L')
    pass(step == 'T' ? TIDE_SEC / 2 : 20 * TIDE_SEC);
  else if (strchr("AWVB", step) != NULL)
    cue(c, step);
  else if (strchr("GDSFZ", step) != NULL)
    drain(p, step);
}

static void play(const input *in) {
  player p = {.in = in, .now = &the_room.clients[0]};
  uint64_t before = counted();
  room_begin();
  the_room.read_first = false;
  for (size_t i = 0; i < in->script_length; i++) {
    if (in->script[i] == '\0' || in->script[i] == '+')
      continue; /* no step, and no turn behind it */
    play_step(&p, in->script[i]);
    if (i + 1 < in->script_length && in->script[i + 1] == '+')
      continue;
    room_turn();
    read_all();
    room_check();
  }
  if (p.at < in->length)
    send_piece(&p, in->length);
  conclude(before, &first);
  if (!p.draining)
    return;
  CHECK(!the_room.listener->draining || the_room.drained);
  room_renew();
}

/* ---- the target -----------------------------------------------------------
 */

static bool asks(const input *in, char option) {
  return memchr(in->script, option, in->script_length) != NULL;
}

static void configure(const input *in) {
  tide_listener_options *options = tide_listener_configure(the_room.listener);
  tide_http_limits_init(&options->limits);
  options->max_requests = asks(in, '%') ? 3 : 10000;
  options->idle_close_spread = asks(in, '~') ? 10 * TIDE_SEC : 0;
  options->reject_in_drain = asks(in, '^');
  tide_http_set_max_in_flight(the_room.http, asks(in, '!') ? 1 : 1024);
  if (asks(in, '#'))
    options->limits = (tide_http_limits){.request_line = 48,
                                         .head = 160,
                                         .field = 64,
                                         .fields = 6,
                                         .trailers = 32,
                                         .trailer_fields = 2,
                                         .chunk_extensions = 16,
                                         .body = 64};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *end = memchr(text, '\n', size);
  if (end == NULL || end - text > SCRIPT_MAX || size > 8192)
    return -1;
  if (the_room.http == NULL) {
    signal(SIGPIPE, SIG_IGN); /* as the host does */
    room_open();
  }
  input in = {.script = text, .script_length = (size_t)(end - text)};
  in.bytes = end + 1;
  in.length = size - in.script_length - 1;
  configure(&in);
  if (in.script_length > 0 && text[0] == '=')
    compare(&in);
  else
    play(&in);
  return 0;
}
