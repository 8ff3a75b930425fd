/* conn: the life of a connection and its states.
 *
 *   IDLE -> HEAD -> HANDLER -> WRITE -> IDLE or FIN -> CLOSED
 *
 * The order of a close matters: all is written, then FIN, then what the client
 * still sends is read and discarded until its FIN. Closing with unread input
 * would make the kernel send RST, which destroys an answer under way.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

int tide_conn__unread(const tide_conn *conn) {
  int bytes = 0;
  return ioctl(conn->fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

bool tide_conn__has_input(const tide_conn *conn) {
  return conn->read_ahead || conn->pending_length > 0 ||
         tide_conn__unread(conn) > 0;
}

/* libuv makes an EOF of a hang-up that comes with data, also where it was a
 * reset: only a TCP socket that is still connected was closed in good order. A
 * Unix socket knows no reset, but tells a peer that is gone from one that has
 * closed its half. */
bool tide_conn__was_reset(const tide_conn *conn) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  struct pollfd look = {.fd = conn->fd};
  if (conn->listener->is_unix)
    return poll(&look, 1, 0) > 0 && (look.revents & POLLHUP) != 0;
  return getpeername(conn->fd, (struct sockaddr *)&peer, &length) != 0;
}

bool tide_conn__is_busy(const tide_conn *conn) {
  return conn->state == TIDE_CONN_HEAD || conn->state == TIDE_CONN_HANDLER ||
         conn->state == TIDE_CONN_WRITE;
}

bool tide_conn__is_young(const tide_conn *conn, uint64_t now) {
  return conn->served == 0 &&
         now < conn->opened_at + conn->listener->options.timeouts.first_byte;
}

/* Where connections in a state are counted; NULL: nowhere. */
static uint32_t *count_of(tide_listener *listener, tide_conn_state state) {
  switch (state) {
  case TIDE_CONN_IDLE:
    return &listener->idle;
  case TIDE_CONN_HEAD:
  case TIDE_CONN_HANDLER:
  case TIDE_CONN_WRITE:
    return &listener->busy;
  case TIDE_CONN_UPGRADED:
    return &listener->upgraded;
  case TIDE_CONN_FIN:
  case TIDE_CONN_CLOSED:
    break;
  }
  return NULL;
}

void tide_conn__set_state(tide_conn *conn, tide_conn_state state) {
  uint32_t *from = count_of(conn->listener, (tide_conn_state)conn->state);
  uint32_t *to = count_of(conn->listener, state);
  conn->state = (uint8_t)state;
  if (from == to)
    return;
  if (from != NULL)
    --*from;
  if (to != NULL)
    ++*to;
}

static void link_conn(tide_conn *conn) {
  tide_listener *listener = conn->listener;
  conn->next = listener->conns;
  if (conn->next != NULL)
    conn->next->previous = conn;
  listener->conns = conn;
  listener->conn_count++;
  listener->idle++;
  listener->http->connections += !listener->options.manage;
  listener->http->handles++;
}

static void unlink_conn(tide_conn *conn) {
  tide_listener *listener = conn->listener;
  if (listener->sweep == conn)
    listener->sweep = conn->next;
  if (conn->previous != NULL)
    conn->previous->next = conn->next;
  else
    listener->conns = conn->next;
  if (conn->next != NULL)
    conn->next->previous = conn->previous;
  listener->conn_count--;
  listener->http->connections -= !listener->options.manage;
  listener->http->reserved -= conn->reserved;
}

tide_conn *tide_conn__open(tide_listener *listener, int fd) {
  tide_http *http = listener->http;
  tide_conn *conn = calloc(1, sizeof *conn);
  if (conn == NULL) {
    close(fd);
    return NULL;
  }
  conn->owner = (tide_owner){TIDE_OWNER_MAGIC, "http connection"};
  conn->listener = listener;
  conn->fd = fd;
  conn->opened_at = tide_http__now(http);
  int error;
  if (listener->is_unix) {
    uv_pipe_init(http->env.loop, &conn->io.pipe, 0);
    error = uv_pipe_open(&conn->io.pipe, fd);
  } else {
    uv_tcp_init(http->env.loop, &conn->io.tcp);
    error = uv_tcp_open(&conn->io.tcp, fd);
  }
  conn->io.handle.data = conn;
  uv_unref(&conn->io.handle);
  conn->state = TIDE_CONN_IDLE;
  link_conn(conn);
  if (error == 0)
    error = tide_conn__read_start(conn);
  else
    close(fd); /* the handle did not take it */
  if (error != 0) {
    tide_conn__destroy(conn, false);
    return NULL;
  }
  tide_timeouts__set(conn, TIDE_WAIT_IDLE);
  return conn;
}

static void on_closed(uv_handle_t *handle) {
  tide_conn *conn = handle->data;
  tide_http *http = conn->listener->http;
  free(conn->pending);
  free(conn);
  tide_http__handle_closed(http);
}

/* A queued turn would find the connection closed; it is taken out instead. */
static void leave_turn(tide_conn *conn) {
  tide_conn **link = &conn->listener->http->turn_list;
  while (*link != NULL && *link != conn)
    link = &(*link)->next_turn;
  if (*link == conn)
    *link = conn->next_turn;
  conn->in_turn = false;
}

void tide_conn__destroy(tide_conn *conn, bool reset) {
  if (conn->state == TIDE_CONN_CLOSED)
    return;
  tide_listener *listener = conn->listener;
  tide_http *http = listener->http;
  tide_timeouts__clear(conn);
  if (conn->holding) {
    conn->holding = false;
    listener->holding--;
  }
  if (conn->in_turn)
    leave_turn(conn);
  if (conn->read_ahead)
    tide_reads__forget(conn);
  tide_conn__set_state(conn, TIDE_CONN_CLOSED);
  conn->reading = false;
  tide_conn__batch_drop(conn);
  unlink_conn(conn);
  if (reset && !listener->is_unix) {
    struct linger hard = {1, 0};
    setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  uv_close(&conn->io.handle, on_closed);
  if (conn->exchange != NULL)
    tide_exchange__lose(conn->exchange, "aborted");
  if (!http->closing) {
    tide_listener__reserve(http);
    tide_listener__resume(http);
    tide_drain__check(listener);
  }
}

/* A client that has sent all it has may wait for its answer, or be gone: only a
 * reset tells, and nobody is told of it who does not read. */
void tide_conn__rest(tide_conn *conn) {
  if (conn->waiting != TIDE_WAIT_NONE)
    return;
  if (conn->queued > 0) {
    tide_timeouts__set(conn, TIDE_WAIT_WRITE);
    return;
  }
  if (conn->reading || conn->exchange == NULL || !conn->exchange->handling)
    return;
  if (conn->state == TIDE_CONN_HANDLER || conn->state == TIDE_CONN_UPGRADED)
    tide_timeouts__set(conn, TIDE_WAIT_PEER);
}

bool tide_conn__look(tide_conn *conn) {
  if (!tide_conn__was_reset(conn))
    return false;
  conn->listener->http->stats.aborted++;
  tide_conn__destroy(conn, false);
  return true;
}

/* All is written: our FIN goes out, theirs is awaited. */
static void enter_fin(tide_conn *conn) {
  tide_listener *listener = conn->listener;
  conn->finishing = false;
  conn->unread_seen |= conn->pending_length > 0;
  conn->pending_length = 0;
  shutdown(conn->fd, SHUT_WR);
  if (conn->eof) {
    tide_conn__destroy(conn, false);
    return;
  }
  tide_conn__set_state(conn, TIDE_CONN_FIN);
  conn->fin_until =
      tide_http__now(listener->http) + listener->options.timeouts.linger_total;
  if (tide_conn__read_start(conn) != 0) {
    tide_conn__destroy(conn, false);
    return;
  }
  tide_timeouts__set(conn, TIDE_WAIT_LINGER);
  tide_drain__hold(conn);
  tide_drain__check(listener);
}

void tide_conn__finish(tide_conn *conn) {
  if (conn->state >= TIDE_CONN_FIN)
    return;
  conn->must_close = true;
  if (conn->queued == 0 && conn->listener->http->batch != conn) {
    enter_fin(conn);
    return;
  }
  conn->finishing = true;
  tide_conn__set_state(conn, TIDE_CONN_WRITE);
  if (conn->queued > 0 && conn->waiting != TIDE_WAIT_WRITE)
    tide_timeouts__set(conn, TIDE_WAIT_WRITE);
}

void tide_conn__answered(tide_conn *conn) {
  if (conn->state >= TIDE_CONN_FIN)
    return;
  if (conn->eof && conn->pending_length == 0)
    conn->must_close = true;
  if (conn->must_close) {
    conn->after_answer = true;
    tide_conn__finish(conn);
    return;
  }
  if (conn->queued > 0) {
    tide_conn__set_state(conn, TIDE_CONN_WRITE);
    tide_conn__rest(conn);
    return;
  }
  tide_conn__set_state(conn, TIDE_CONN_IDLE);
  tide_drain__idle(conn->listener);
  if (conn->processing)
    return; /* there may be more in this read; its end sets the timeout */
  tide_timeouts__set(conn, TIDE_WAIT_IDLE);
  if (conn->pending_length > 0)
    tide_conn__later(conn);
  else if (!conn->reading && !conn->eof && tide_conn__read_start(conn) != 0)
    tide_conn__destroy(conn, false);
}

void tide_conn__later(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  if (conn->in_turn)
    return;
  conn->in_turn = true;
  conn->next_turn = http->turn_list;
  http->turn_list = conn;
  tide_http__need_turn(http);
}
