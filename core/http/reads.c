/* reads: what was read in this turn of the loop, until all of it is here.
 *
 * A handler runs faster right behind another handler than behind a system call,
 * which has other code and other data in the caches. So what the ready sockets
 * hold is read first, into one buffer, and taken when the loop has polled, in
 * the same turn, in the order it came. A full buffer is taken at once, and so
 * is everything before an end of file or an error is looked at.
 */
#include "internal.h"

/* A read is offered at least so much room. */
enum { LEAST = 16384 };

static void run(tide_http *http);

static void on_check(uv_check_t *handle) {
  run(handle->data);
}

void tide_reads__room(tide_http *http, uv_buf_t *buf) {
  *buf = uv_buf_init(http->read + http->read_length,
                     (unsigned)(TIDE_READ_SIZE - http->read_length));
}

void tide_reads__add(tide_conn *conn, size_t length) {
  tide_http *http = conn->listener->http;
  if (http->read_count == 0)
    uv_check_start(&http->check, on_check);
  http->reads[http->read_count++] =
      (tide_read){conn, (uint32_t)http->read_length, (uint32_t)length};
  http->read_length += length;
  conn->read_ahead = true;
  if (http->read_count == TIDE_READS_MAX ||
      TIDE_READ_SIZE - http->read_length < LEAST)
    run(http);
}

/* Taking may close any of the connections, so each is looked at when it is its
 * turn; nothing is added meanwhile. */
static void run(tide_http *http) {
  for (unsigned i = 0; i < http->read_count; i++) {
    tide_read *r = &http->reads[i];
    if (r->conn == NULL)
      continue;
    tide_conn__take(r->conn, http->read + r->at, r->length);
  }
  for (unsigned i = 0; i < http->read_count; i++)
    if (http->reads[i].conn != NULL)
      http->reads[i].conn->read_ahead = false;
  http->read_count = 0;
  http->read_length = 0;
  uv_check_stop(&http->check);
}

void tide_reads__flush(tide_conn *conn) {
  if (conn->read_ahead)
    run(conn->listener->http);
}

void tide_reads__forget(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  for (unsigned i = 0; i < http->read_count; i++)
    if (http->reads[i].conn == conn)
      http->reads[i].conn = NULL;
}
