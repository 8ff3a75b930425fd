#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

room the_room;

static void open_http(void) {
  tide_listener_options options;
  tide_lifecycle_init(&the_room.lifecycle);
  tide_work_init(&the_room.work);
  tide_http_env env = {.loop = &the_room.loop,
                       .clock = &the_room.clock,
                       .lifecycle = &the_room.lifecycle,
                       .work = &the_room.work,
                       .started_at = tide_clock_mono()};
  CHECK(tide_http_open(&the_room.http, &env) == 0);
  tide_http_set_handlers(the_room.http, &handlers_table);
  tide_listener_options_init(&options);
  options.health = true;
  the_room.listener = tide_listener_add(the_room.http, &options);
  CHECK(the_room.listener != NULL);
  the_room.listener->is_unix = true;
  handlers_add(the_room.listener);
  CHECK(tide_lifecycle_move(&the_room.lifecycle, TIDE_READY) == 1);
  the_room.handles = the_room.http->handles;
}

/* In the place of libuv's, so that the date is virtual, too. */
int uv_gettimeofday(uv_timeval64_t *tv) {
  tv->tv_sec = (int64_t)(the_room.clock.virtual_now / TIDE_SEC);
  tv->tv_usec = 0;
  return 0;
}

/* Nothing depends on when this runs: the same inputs take the same ways. */
void room_open(void) {
  uv_loop_init(&the_room.loop);
  uv_async_init(&the_room.loop, &the_room.keep, NULL);
  tide_clock_init(&the_room.clock, &the_room.loop);
  tide_clock_make_virtual(&the_room.clock);
  the_room.clock.virtual_now = 1000 * TIDE_SEC;
  open_http();
}

void room_renew(void) {
  tide_http_close(the_room.http);
  room_turn(); /* the close callbacks */
  open_http();
}

void room_begin(void) {
  for (int i = 0; i < CLIENTS; i++) {
    memset(&the_room.clients[i], 0, offsetof(client, promises));
    the_room.clients[i].promise_count = 0;
    the_room.clients[i].fd = -1;
  }
  the_room.http->env.started_at = tide_clock_mono(); /* told by /health */
  the_room.numbers = 0;
  the_room.big_left = 2;
  the_room.unbound = the_room.drained = false;
}

void room_turn(void) {
  uv_run(&the_room.loop, UV_RUN_NOWAIT);
}

tide_conn *room_lives(const client *c) {
  for (tide_conn *at = the_room.listener->conns; at != NULL; at = at->next)
    if (at == c->conn)
      return at;
  return NULL;
}

static void check_conn(const tide_conn *conn) {
  CHECK((conn->state == TIDE_CONN_HEAD) <= (conn->exchange != NULL));
  CHECK((conn->state == TIDE_CONN_IDLE) <= (conn->exchange == NULL));
  CHECK((conn->state == TIDE_CONN_FIN) <= (conn->exchange == NULL));
  CHECK(conn->exchange == NULL || conn->exchange->conn == conn);
  /* Kept to be parsed later: what was one read over the mark, at most (I1). */
  CHECK_SAYING(conn->pending_length < TIDE_HIGH_WATER + TIDE_READ_SIZE,
               conn->pending_length);
}

void room_check(void) {
  const tide_listener *l = the_room.listener;
  uint32_t count = 0, busy = 0, idle = 0, upgraded = 0, running = 0;
  for (const tide_conn *conn = l->conns; conn != NULL; conn = conn->next) {
    count++;
    busy += tide_conn__is_busy(conn);
    idle += conn->state == TIDE_CONN_IDLE;
    upgraded += conn->state == TIDE_CONN_UPGRADED;
    check_conn(conn);
  }
  for (int i = 0; i < CLIENTS; i++) {
    handlers_prune(&the_room.clients[i]);
    const handling *now = &the_room.clients[i].now;
    running += now->runs && !now->upgraded;
  }
  CHECK_SAYING(l->conn_count == count, l->conn_count);
  CHECK_SAYING(l->busy == busy, l->busy);
  CHECK_SAYING(l->idle == idle, l->idle);
  CHECK_SAYING(l->upgraded == upgraded, l->upgraded);
  CHECK_SAYING(the_room.http->connections == count, count);
  CHECK_SAYING(the_room.http->in_flight == running, running);
  CHECK_SAYING(tide_work_active(&the_room.work) == running, running);
  CHECK(the_room.http->batch == NULL && the_room.http->out_length == 0);
  CHECK(the_room.http->read_at == 0);
}

void room_check_empty(void) {
  const tide_listener *l = the_room.listener;
  room_check();
  CHECK_SAYING(l->conn_count == 0, l->conn_count);
  CHECK_SAYING(the_room.http->in_flight == 0, the_room.http->in_flight);
  CHECK_SAYING(l->holding == 0, l->holding);
  CHECK_SAYING(the_room.http->handles == the_room.handles,
               the_room.http->handles);
  CHECK(the_room.http->turn_list == NULL);
  for (int i = 0; i < TIDE_WAIT_KINDS; i++)
    CHECK_SAYING(l->lists[i].next == &l->lists[i], i);
}

/* ---- clients --------------------------------------------------------------
 */

void client_open(client *c) {
  int pair[2];
  int small = 16384; /* so that a large answer must wait for its reader */
  if (c->fd >= 0 || c->gone)
    return;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) == 0);
  setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  tide_conn *conn = tide_conn__open(the_room.listener, pair[1]);
  CHECK(conn != NULL);
  /* Memory of one that was freed may be used again. */
  for (int i = 0; i < CLIENTS; i++)
    if (the_room.clients[i].conn == conn)
      the_room.clients[i].conn = NULL;
  c->fd = pair[0];
  c->conn = conn;
}

/* How many requests may be taken for a HEAD, wherever the bytes were cut. */
static void count_heads(client *c, const char *data, size_t length) {
  for (size_t i = 0; i < length; i++) {
    c->last_four = c->last_four << 8 | (unsigned char)data[i];
    c->heads += c->last_four == 0x48454144; /* HEAD */
  }
}

bool client_send(client *c, const char *data, size_t length) {
  if (c->fd < 0 || c->half_closed)
    return false;
  ssize_t n = send(c->fd, data, length, MSG_NOSIGNAL);
  if (n > 0) {
    c->sent += (size_t)n;
    count_heads(c, data, (size_t)n);
  }
  return n == (ssize_t)length;
}

bool client_read(client *c) {
  bool came = false;
  while (c->fd >= 0 && !c->ended) {
    if (c->in_capacity - c->in_length < 4096) {
      c->in_capacity = c->in_capacity == 0 ? 16384 : c->in_capacity * 2;
      c->in = realloc(c->in, c->in_capacity);
      CHECK(c->in != NULL);
    }
    ssize_t n =
        recv(c->fd, c->in + c->in_length, c->in_capacity - c->in_length, 0);
    if (n < 0 && errno == EAGAIN)
      break;
    came = true;
    /* A reset is for answers that must not be taken for whole ones (I4). */
    CHECK_SAYING(n >= 0 || c->may_lose, errno);
    c->ended = n <= 0;
    if (n > 0)
      c->in_length += (size_t)n;
  }
  return came;
}

void client_half_close(client *c) {
  if (c->fd < 0 || c->half_closed)
    return;
  c->half_closed = true;
  shutdown(c->fd, SHUT_WR);
}

void client_leave(client *c) {
  if (c->fd < 0)
    return;
  c->gone = c->may_lose = true;
  close(c->fd);
  c->fd = -1;
}

void client_free(client *c) {
  if (c->fd >= 0)
    close(c->fd);
  c->fd = -1;
  free(c->in);
  c->in = NULL;
}
