/* raw PORT: what libuv and llhttp cost, and nothing else.
 *
 * A constant answer to every request, as fast as the two libraries allow: one
 * read buffer for all connections, all answers of a read gathered into one
 * uv_try_write, no timer, no allocation for a request. No routes, no checks, no
 * handler: what a real server adds is measured against this.
 */
#include <llhttp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* As long as moontide's answer to the same request, so that the kernel copies
 * as much. */
static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                             "Content-Type: text/plain; charset=utf-8\r\n"
                             "Content-Length: 8\r\n"
                             "Connection: keep-alive\r\n"
                             "Keep-Alive: timeout=75\r\n\r\norder 42";

enum { ANSWER_SIZE = sizeof answer - 1, BUFFER_SIZE = 65536 };

typedef struct connection {
  uv_tcp_t tcp;
  llhttp_t parser;
} connection;

/* What the socket did not take at once. */
typedef struct rest {
  uv_write_t request;
  char data[];
} rest;

static llhttp_settings_t settings;
static char input[BUFFER_SIZE];
static char output[4 * BUFFER_SIZE];
static size_t gathered;

static void die(const char *what, int code) {
  fprintf(stderr, "raw: %s: %s\n", what, uv_strerror(code));
  exit(1);
}

static void on_closed(uv_handle_t *handle) {
  free(handle->data);
}

static void close_connection(connection *c) {
  if (!uv_is_closing((uv_handle_t *)&c->tcp))
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_written(uv_write_t *request, int status) {
  connection *c = request->handle->data;
  free(request);
  if (status != 0)
    close_connection(c);
}

static void queue(connection *c, const char *data, size_t length) {
  rest *r = malloc(sizeof *r + length);
  if (r == NULL)
    die("memory", UV_ENOMEM);
  memcpy(r->data, data, length);
  uv_buf_t buf = uv_buf_init(r->data, (unsigned)length);
  uv_write(&r->request, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
}

static void send_gathered(connection *c) {
  uv_buf_t buf = uv_buf_init(output, (unsigned)gathered);
  int taken = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
  if (taken == UV_EAGAIN)
    taken = 0;
  if (taken < 0)
    close_connection(c);
  else if ((size_t)taken < gathered)
    queue(c, output + taken, gathered - (size_t)taken);
  gathered = 0;
}

static int on_message_complete(llhttp_t *parser) {
  if (gathered + ANSWER_SIZE > sizeof output)
    send_gathered(parser->data);
  memcpy(output + gathered, answer, ANSWER_SIZE);
  gathered += ANSWER_SIZE;
  return 0;
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  (void)handle, (void)hint;
  *buf = uv_buf_init(input, sizeof input);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf) {
  connection *c = stream->data;
  if (count < 0) {
    close_connection(c);
    return;
  }
  bool wrong = llhttp_execute(&c->parser, buf->base, (size_t)count) != HPE_OK;
  if (gathered > 0)
    send_gathered(c);
  if (wrong)
    close_connection(c);
}

static void on_connection(uv_stream_t *listener, int status) {
  connection *c = status == 0 ? malloc(sizeof *c) : NULL;
  if (c == NULL)
    return;
  uv_tcp_init(listener->loop, &c->tcp);
  c->tcp.data = c;
  llhttp_init(&c->parser, HTTP_REQUEST, &settings);
  c->parser.data = c;
  if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0 ||
      uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
    close_connection(c);
}

int main(int argc, char **argv) {
  uv_loop_t *loop = uv_default_loop();
  struct sockaddr_in address;
  uv_tcp_t listener;
  int code;
  if (argc != 2) {
    fprintf(stderr, "usage: raw PORT\n");
    return 64;
  }
  llhttp_settings_init(&settings);
  settings.on_message_complete = on_message_complete;
  uv_ip4_addr("127.0.0.1", atoi(argv[1]), &address);
  uv_tcp_init(loop, &listener);
  if ((code = uv_tcp_bind(&listener, (struct sockaddr *)&address, 0)) != 0)
    die("bind", code);
  code = uv_listen((uv_stream_t *)&listener, 1024, on_connection);
  if (code != 0)
    die("listen", code);
  return uv_run(loop, UV_RUN_DEFAULT);
}
