/* conn_write: bytes on their way out.
 *
 * While a connection reads, its answers gather in one buffer of the room and
 * leave in one write. What the socket does not take at once is copied and
 * queued; a handler that writes a stream waits while too much is queued.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

/* The socket is broken: nobody will read what is left. */
static void broken(tide_conn *conn) {
  conn->listener->http->stats.aborted++;
  tide_conn__destroy(conn, false);
}

static void all_written(tide_conn *conn) {
  if (conn->waiting == TIDE_WAIT_WRITE)
    tide_timeouts__clear(conn);
  if (conn->finishing) {
    tide_conn__finish(conn);
    return;
  }
  if (conn->exchange != NULL) {
    if (conn->state == TIDE_CONN_UPGRADED)
      tide_upgrade__written(conn);
    tide_conn__rest(conn);
    tide_exchange__room(conn->exchange);
    return;
  }
  if (conn->state == TIDE_CONN_WRITE)
    tide_conn__answered(conn);
}

static void on_written(uv_write_t *request, int status) {
  tide_chunk *chunk = (tide_chunk *)request;
  tide_conn *conn = chunk->conn;
  conn->queued -= (uint32_t)chunk->length;
  free(chunk);
  if (conn->state == TIDE_CONN_CLOSED)
    return;
  if (status < 0) {
    broken(conn);
    return;
  }
  if (conn->queued == 0)
    all_written(conn);
  else if (conn->exchange != NULL &&
           conn->queued < conn->listener->options.write_buffer / 2)
    tide_exchange__room(conn->exchange);
}

/* Queues a copy of what is behind the first `skip` bytes. */
static void queue_rest(tide_conn *conn, const uv_buf_t *bufs, unsigned count,
                       size_t skip, size_t total) {
  size_t left = total - skip;
  tide_chunk *chunk = malloc(sizeof *chunk + left);
  if (chunk == NULL) {
    broken(conn);
    return;
  }
  chunk->conn = conn;
  chunk->length = left;
  char *at = chunk->data;
  for (unsigned i = 0; i < count; i++) {
    size_t drop = skip < bufs[i].len ? skip : bufs[i].len;
    memcpy(at, bufs[i].base + drop, bufs[i].len - drop);
    at += bufs[i].len - drop;
    skip -= drop;
  }
  uv_buf_t buf = uv_buf_init(chunk->data, (unsigned)left);
  conn->queued += (uint32_t)left;
  if (uv_write(&chunk->request, &conn->io.stream, &buf, 1, on_written) != 0) {
    conn->queued -= (uint32_t)left;
    free(chunk);
    broken(conn);
    return;
  }
  /* A client that is still sending has a timeout already. */
  if (conn->waiting == TIDE_WAIT_NONE || conn->waiting == TIDE_WAIT_IDLE ||
      conn->waiting == TIDE_WAIT_PEER)
    tide_timeouts__set(conn, TIDE_WAIT_WRITE);
}

uint32_t tide_conn__taken(const tide_conn *conn) {
  return conn->given -
         (uint32_t)uv_stream_get_write_queue_size(&conn->io.stream);
}

/* Nothing is queued, so the socket may be written to directly; a client that
 * is gone must not raise SIGPIPE in a program that embeds the host. */
static ssize_t send_now(const tide_conn *conn, const uv_buf_t *bufs,
                        unsigned count) {
  /* uv_buf_t is laid out as struct iovec on every Unix. */
  struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)bufs,
                           .msg_iovlen = count};
  ssize_t taken;
  do
    taken = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (taken < 0 && errno == EINTR);
  return taken < 0 && (errno == EAGAIN || errno == ENOBUFS) ? 0 : taken;
}

static void write_now(tide_conn *conn, const uv_buf_t *bufs, unsigned count,
                      size_t total) {
  ssize_t taken = 0;
  conn->given += (uint32_t)total;
  if (conn->queued == 0) {
    taken = send_now(conn, bufs, count);
    if (taken < 0) {
      broken(conn);
      return;
    }
  }
  if ((size_t)taken < total)
    queue_rest(conn, bufs, count, (size_t)taken, total);
}

static void flush(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  size_t length = http->out_length;
  http->out_length = http->out_whole = 0;
  if (length == 0 || conn->state == TIDE_CONN_CLOSED)
    return;
  uv_buf_t buf = uv_buf_init(http->out, (unsigned)length);
  write_now(conn, &buf, 1, length);
}

void tide_conn__write(tide_conn *conn, const uv_buf_t *bufs, unsigned count) {
  tide_http *http = conn->listener->http;
  size_t total = 0;
  for (unsigned i = 0; i < count; i++)
    total += bufs[i].len;
  if (conn->state == TIDE_CONN_CLOSED || total == 0)
    return;
  if (http->batch != conn) {
    write_now(conn, bufs, count, total);
    return;
  }
  if (http->out_length + total > TIDE_OUT_SIZE)
    flush(conn);
  if (conn->state == TIDE_CONN_CLOSED)
    return;
  if (total > TIDE_OUT_SIZE) {
    write_now(conn, bufs, count, total);
    return;
  }
  for (unsigned i = 0; i < count; i++) {
    memcpy(http->out + http->out_length, bufs[i].base, bufs[i].len);
    http->out_length += bufs[i].len;
  }
}

void tide_conn__batch_begin(tide_conn *conn) {
  conn->listener->http->batch = conn;
}

void tide_conn__batch_mark(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  if (http->batch == conn)
    http->out_whole = http->out_length;
}

void tide_conn__batch_drop(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  if (http->batch != conn)
    return;
  uv_buf_t buf = uv_buf_init(http->out, (unsigned)http->out_whole);
  /* What is queued before it is lost with the handle, and so is this. */
  if (buf.len > 0 && conn->queued == 0)
    (void)send_now(conn, &buf, 1);
  http->out_length = http->out_whole = 0;
}

void tide_conn__batch_end(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  flush(conn);
  http->batch = NULL;
  if (conn->state == TIDE_CONN_CLOSED)
    return;
  if (conn->queued == 0 && conn->state == TIDE_CONN_UPGRADED)
    tide_upgrade__written(conn);
  if (conn->queued == 0 && conn->finishing)
    tide_conn__finish(conn);
  else if (conn->queued > 0 && conn->state == TIDE_CONN_IDLE)
    tide_conn__set_state(conn, TIDE_CONN_WRITE);
}
