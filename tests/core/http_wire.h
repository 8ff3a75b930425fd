/* Raw bytes in, what the server says out: tables of rows.
 *
 * Each row is sent on a connection of its own: whole, one byte at a time, and
 * cut at random places. What is heard must not depend on the cuts. After it,
 * the state of the connection is proved, not waited for:
 *
 *   keep    one more request is answered with 200, and nothing came before it
 *   close   the server has ended the connection in good order (no RST)
 *   wait    the server waits for more: on EOF it ends without a word
 *
 * `want` is the statuses in their order, then one of these: "200 404 keep".
 * "h200" answers a HEAD: no body may follow; "100?" may be there or not.
 * Every answer has its own checks: see check_head.
 */
#ifndef HTTP_WIRE_H
#define HTTP_WIRE_H

#include "http_helpers.h"

typedef struct wire_row {
  const char *name;
  const char *text;
  size_t length;
  const char *want;
  int started; /* handlers that begin; -1: depends on the cuts */
  bool half;   /* the client closes its half behind the bytes */
} wire_row;

#define WIRE(text) (text), sizeof(text) - 1

enum { WIRE_WHOLE, WIRE_BYTES, WIRE_RANDOM, WIRE_WAYS = WIRE_RANDOM + 4 };

static inline int wire_open(void **state) {
  int failed = open_default(state);
  add_route(HTTP_GET, "/", ROUTE_HELLO);
  add_route(HTTP_POST, "/", ROUTE_ECHO);
  add_route(HTTP_GET, "/read", ROUTE_ECHO);
  return failed;
}

/* ---- sending ---------------------------------------------------------------
 */

static inline void wire_piece(int fd, const char *data, size_t length) {
  size_t sent = 0;
  uint64_t stop = uv_hrtime() + 5000000000u;
  while (sent < length && uv_hrtime() < stop) {
    ssize_t n = send(fd, data + sent, length - sent, MSG_NOSIGNAL);
    if (n > 0)
      sent += (size_t)n;
    else if (n < 0 && errno != EAGAIN)
      return; /* the server is done with us; what it said is read later */
    turn();
    turn();
  }
}

static inline void wire_send(int fd, const wire_row *row, int way) {
  unsigned seed = (unsigned)way * 7919u + (unsigned)row->length;
  for (size_t at = 0; at < row->length;) {
    size_t left = row->length - at;
    size_t n = left;
    if (way == WIRE_BYTES)
      n = 1;
    else if (way >= WIRE_RANDOM)
      n = 1 + (size_t)rand_r(&seed) % (left < 64 ? left : left / 2);
    wire_piece(fd, row->text + at, n);
    at += n;
  }
}

/* ---- reading ---------------------------------------------------------------
 */

/* A field's value within a head; NULL when it is not there. */
static inline const char *wire_field(const char *head, const char *end,
                                     const char *name) {
  size_t n = strlen(name);
  for (const char *at = head; at < end; at++)
    if (memcmp(at, "\r\n", 2) == 0 && strncasecmp(at + 2, name, n) == 0)
      return at + 2 + n;
  return NULL;
}

/* What every answer must have; the last one says close, or (`may`) need not,
 * because the client said itself that nothing follows. Returns what is wrong,
 * or NULL. */
static inline const char *check_head(const char *head, const char *end,
                                     int status, bool last, bool may) {
  const char *connection = wire_field(head, end, "Connection: ");
  bool close = connection != NULL && memcmp(connection, "close\r\n", 7) == 0;
  bool bodiless = status < 200 || status == 204 || status == 304;
  const char *length = wire_field(head, end, "Content-Length: ");
  if (memcmp(head, "HTTP/1.1 ", 9) != 0)
    return "a status line of its own";
  if (status >= 200 && wire_field(head, end, "Date: ") == NULL)
    return "no Date";
  if (bodiless && (length != NULL || wire_field(head, end, "Transfer-")))
    return "framing where no body can be";
  if (status >= 400 && length == NULL)
    return "an error without Content-Length";
  if (close != last && status >= 200 && !(may && last && status < 400))
    return close ? "close is said too early" : "close is not said";
  if (status == 405 && wire_field(head, end, "Allow: ") == NULL)
    return "405 without Allow";
  if (status == 503 && wire_field(head, end, "Retry-After: ") == NULL)
    return "503 without Retry-After";
  return NULL;
}

/* The end of a chunked body that begins at `at`; NULL: broken. */
static inline const char *wire_chunks(const char *at) {
  for (;;) {
    char *after;
    unsigned long size = strtoul(at, &after, 16);
    if (memcmp(after, "\r\n", 2) != 0)
      return NULL;
    at = after + 2 + size;
    if (memcmp(at, "\r\n", 2) != 0)
      return NULL;
    at += 2;
    if (size == 0)
      return at;
  }
}

typedef struct wire_result {
  char said[256]; /* "200 404 <eof>" */
  const char *wrong;
} wire_result;

static inline void wire_wrong(wire_result *r, const char *what) {
  if (r->wrong == NULL)
    r->wrong = what;
}

static inline void wire_note(wire_result *r, const char *text) {
  size_t n = strlen(r->said);
  snprintf(r->said + n, sizeof r->said - n, "%.40s", text);
}

static inline const char *wire_next(const char *want) {
  size_t n = strcspn(want, " ");
  return want + n + (want[n] == ' ');
}

/* Reads one answer at `at`; returns where the next one begins, NULL when that
 * cannot be told. */
static inline const char *wire_answer(const char *at, bool head_only, bool half,
                                      wire_result *r) {
  char text[16];
  const char *end = strstr(at, "\r\n\r\n");
  int status = atoi(at + 9);
  if (end == NULL) {
    wire_wrong(r, "half a head");
    return NULL;
  }
  const char *length = wire_field(at, end, "Content-Length: ");
  const char *next = end + 4;
  if (!head_only && wire_field(at, end, "Transfer-Encoding: chunked") != NULL)
    next = wire_chunks(next);
  else if (!head_only && length != NULL)
    next += atol(length);
  bool last = next == NULL || strncmp(next, "HTTP/", 5) != 0;
  const char *wrong = check_head(at, end + 2, status, last, half);
  if (wrong != NULL)
    wire_wrong(r, wrong);
  snprintf(text, sizeof text, "%s%d ", head_only ? "h" : "", status);
  wire_note(r, text);
  if (next == NULL)
    wire_wrong(r, "a broken chunk");
  return next;
}

/* Reads what was heard, as `want` says it comes. */
static inline void wire_read(const char *want, bool half, wire_result *r) {
  const char *at = heard;
  while (strncmp(at, "HTTP/", 5) == 0) {
    bool is_100 = strncmp(at + 9, "100", 3) == 0;
    if (strncmp(want, "100?", 4) == 0) {
      want = wire_next(want);
      if (is_100) {
        at = strstr(at, "\r\n\r\n") + 4;
        continue;
      }
    }
    at = wire_answer(at, *want == 'h', half, r);
    if (at == NULL)
      return;
    want = wire_next(want);
  }
  wire_note(r, at);
}

/* ---- rows ------------------------------------------------------------------
 */

static inline const char *wire_end(const char *want) {
  const char *space = strrchr(want, ' ');
  return space != NULL ? space + 1 : want;
}

static inline wire_result wire_run(const wire_row *row, int way) {
  wire_result r = {"", NULL};
  char want[256];
  const char *end = wire_end(row->want);
  bool keep = strcmp(end, "keep") == 0;
  bool half = row->half || strcmp(end, "wait") == 0;
  int fd = client();
  f.started = 0;
  wire_send(fd, row, way);
  if (keep)
    say(fd, GET_CLOSE("/hello"));
  if (half)
    shutdown(fd, SHUT_WR);
  hear(fd, NULL);
  close(fd);
  snprintf(want, sizeof want, "%.*s%s<eof>", (int)(end - row->want), row->want,
           keep ? "200 " : "");
  wire_read(want, half, &r);
  if (strcmp(strncmp(want, "100?", 4) == 0 ? want + 5 : want, r.said) != 0)
    wire_wrong(&r, "other answers");
  if (row->started >= 0 && f.started - keep != row->started)
    wire_wrong(&r, "other handlers ran");
  if (strstr(heard, "EVIL") != NULL)
    wire_wrong(&r, "bytes of the client are repeated");
  return r;
}

/* Runs a row in all ways; returns how many went wrong, having said so. */
static inline int wire_check(const wire_row *row) {
  static const char *const ways[] = {"whole", "by bytes", "cut 1",
                                     "cut 2", "cut 3",    "cut 4"};
  int wrong = 0;
  for (int way = 0; way < WIRE_WAYS; way++) {
    wire_result r = wire_run(row, way);
    if (r.wrong == NULL)
      continue;
    wrong++;
    print_error("%s (%s): %s: wanted \"%s\" and %d handlers, got \"%s\" and "
                "%d\n",
                row->name, ways[way], r.wrong, row->want, row->started, r.said,
                f.started);
  }
  return wrong;
}

static inline void wire_table(const wire_row *rows, size_t count) {
  int wrong = 0;
  for (size_t i = 0; i < count; i++)
    wrong += wire_check(&rows[i]);
  assert_int_equal(wrong, 0);
  assert_int_equal(tide_work_active(&f.work), 0);
}

#define WIRE_TABLE(rows) wire_table((rows), sizeof(rows) / sizeof *(rows))

/* `before`, `count` times `with`, `after`: for rows that are long. */
static inline int wire_long(const char *name, const char *before,
                            const char *with, size_t count, const char *after,
                            const char *want, int started) {
  size_t n = strlen(with);
  size_t length = strlen(before) + n * count + strlen(after);
  char *text = malloc(length + 1);
  assert_non_null(text);
  char *at = stpcpy(text, before);
  for (size_t i = 0; i < count; i++, at += n)
    memcpy(at, with, n);
  strcpy(at, after);
  wire_row row = {name, text, length, want, started, false};
  int wrong = wire_check(&row);
  free(text);
  return wrong;
}

#endif
