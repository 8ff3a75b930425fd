/* strict_client: many HTTP/1.1 clients in one thread that forgive nothing.
 *
 *   strict_client --port 8080 --clients 64 --mode think --for 5000
 *
 * Every client works in a closed loop until it is refused (or, with
 * --retry-refused, until the time is up), never sends anything twice, and says
 * how each request ended. "running" is printed once every client had an answer;
 * one JSON line at the end. What it asks the server for: GET /hello, which is
 * answered "hello", and POST /echo.
 *
 *   --mode close     GET, a connection for each, `Connection: close`
 *          post      POST of a number of its own, a connection for each
 *          keep      GET, kept alive, no pause
 *          think     the same with a pause of 0 to 4 ms, or to --pause MS
 *          post_think  POSTs kept alive, with the same pause
 *          pipeline  four GETs in one write
 *          idle      one GET, then waits until the server closes
 *          silent    connects and waits until the server closes
 *   --once           one request for each client
 *   --path P         instead of /hello or /echo
 *   --pid PID        also say when that process ended: `exit_at`
 *
 * How a request can end beside `answered`: `refused` is a connect that was
 * (safe to repeat). `eof_reused`: FIN before any byte of the answer, on a
 * connection that was used before (safe to repeat if idempotent).
 * `unprocessed`: pipelined behind an answer that said close. All else is a
 * fault of the server: `reset_fresh`, `eof_fresh` (a first request),
 * `reset_reused`, `truncated`, `wrong` (not the answer to this request),
 * `timeout`. Points of time are seconds of the monotonic clock; `closed_at` are
 * deciles of when the server closed.
 */
#include "strict_options.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 2048, DEPTH = 4, PATIENCE_MS = 20000 };

typedef enum outcome {
  ANSWERED,
  REFUSED,
  EOF_REUSED,
  UNPROCESSED,
  RESET_FRESH,
  EOF_FRESH,
  RESET_REUSED,
  TRUNCATED,
  WRONG,
  TIMEOUT,
  OUTCOMES
} outcome;
static const char *const outcome_names[] = {
    "answered",  "refused",      "eof_reused", "unprocessed", "reset_fresh",
    "eof_fresh", "reset_reused", "truncated",  "wrong",       "timeout"};

typedef enum state { CONNECTING, ASKING, RESTING, WATCHING, DONE } state;

typedef struct client {
  int fd;
  state state;
  int served;  /* answers on this connection */
  int waiting; /* requests sent on it without an answer */
  bool asked, had_one;
  uint64_t wake_at; /* while it rests */
  uint64_t since;   /* of the last progress */
  uint64_t number;  /* in the body of a POST */
  size_t length;
  char buffer[BUFFER];
} client;

static client *clients;
static int poll_fd, alive, warm, started;
static uint64_t counts[OUTCOMES], next_number;
static double *closed_at; /* idle and silent: when the server closed */
static int closed;
static double last_answer_at, exit_at;

static void drop(client *c) {
  if (c->fd >= 0)
    close(c->fd);
  c->fd = -1;
  c->served = c->waiting = 0;
  c->length = 0;
}

static void done(client *c) {
  drop(c);
  if (c->state != DONE)
    alive--;
  c->state = DONE;
}

static void rest(client *c, uint64_t us) {
  c->state = RESTING;
  c->wake_at = now_us() + us;
}

/* ---- asking ---------------------------------------------------------------
 */

static size_t request_text(client *c, char *out, size_t size) {
  const char *close_it = opt.mode == CLOSE ? "Connection: close\r\n" : "";
  int n;
  if (posts()) {
    char body[24];
    c->number = ++next_number;
    int length =
        snprintf(body, sizeof body, "%llu", (unsigned long long)c->number);
    n = snprintf(out, size,
                 "POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n%s",
                 opt.path, length, body);
  } else {
    n = snprintf(out, size, "GET %s HTTP/1.1\r\nHost: t\r\n%s\r\n", opt.path,
                 close_it);
  }
  return (size_t)n;
}

static void connected_again(client *c);

/* How the requests that are under way ended, without an answer. */
static void lost(client *c, bool reset) {
  outcome how = c->length > 0    ? TRUNCATED
                : c->served == 0 ? (reset ? RESET_FRESH : EOF_FRESH)
                : reset          ? RESET_REUSED
                                 : EOF_REUSED;
  counts[how] += (uint64_t)c->waiting;
  drop(c);
  if (opt.once)
    done(c);
  else
    connected_again(c);
}

/* Says it when all clients have come so far. */
static void milestone(bool *reached, int *count, const char *name) {
  if (*reached)
    return;
  *reached = true;
  if (++*count < opt.clients)
    return;
  puts(name);
  fflush(stdout);
}

static void ask(client *c) {
  char text[DEPTH * 256];
  size_t length = 0;
  int count = opt.mode == PIPELINE ? DEPTH : 1;
  for (int i = 0; i < count; i++)
    length += request_text(c, text + length, sizeof text - length);
  c->state = ASKING;
  c->waiting = count;
  c->since = now_us();
  /* An error is seen by the read that follows, behind what came before it. */
  (void)!send(c->fd, text, length, MSG_NOSIGNAL);
  milestone(&c->asked, &started, "sent");
}

static void refused(client *c) {
  drop(c);
  counts[REFUSED]++;
  if (opt.retry_refused && now_us() < opt.until)
    rest(c, 1000);
  else
    done(c);
}

static void connected_again(client *c) {
  struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
  int one = 1;
  if (now_us() >= opt.until) {
    done(c);
    return;
  }
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) {
    perror("strict_client: socket");
    exit(2);
  }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  c->state = CONNECTING;
  c->since = now_us();
  if (connect(c->fd, (struct sockaddr *)&opt.address, sizeof opt.address) !=
          0 &&
      errno != EINPROGRESS) {
    refused(c);
    return;
  }
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

/* ---- answers --------------------------------------------------------------
 */

typedef struct answer {
  int status;
  size_t head, body;
  bool close;
} answer;

/* False while the head is not whole. */
static bool parse(const char *text, size_t length, answer *a) {
  const char *end = memmem(text, length, "\r\n\r\n", 4);
  if (end == NULL)
    return false;
  a->head = (size_t)(end - text) + 4;
  a->status = length > 12 ? atoi(text + 9) : 0;
  a->body = 0;
  a->close = false;
  for (const char *line = strchr(text, '\n') + 1; line < end + 2;
       line = strchr(line, '\n') + 1) {
    if (strncasecmp(line, "Content-Length:", 15) == 0)
      a->body = (size_t)atol(line + 15);
    if (strncasecmp(line, "Connection: close", 17) == 0)
      a->close = true;
  }
  return true;
}

/* Of another path nobody knows what it answers. */
static bool is_right(const client *c, const answer *a) {
  char number[24];
  const char *want = strcmp(opt.path, "/hello") == 0 ? "hello" : NULL;
  snprintf(number, sizeof number, "%llu", (unsigned long long)c->number);
  if (posts())
    want = number;
  return a->status / 100 == 2 &&
         (want == NULL || (a->body == strlen(want) &&
                           memcmp(c->buffer + a->head, want, a->body) == 0));
}

static void answered(client *c, const answer *a) {
  counts[is_right(c, a) ? ANSWERED : WRONG]++;
  c->served++;
  last_answer_at = (double)now_us() / 1e6;
  c->waiting--;
  milestone(&c->had_one, &warm, "running");
}

/* One more round for a client whose answers are all here. */
static void go_on(client *c, bool close_it) {
  if (c->waiting > 0 && close_it)
    counts[UNPROCESSED] += (uint64_t)c->waiting;
  c->waiting = 0;
  if (opt.mode == IDLE) {
    c->state = WATCHING;
    return;
  }
  if (opt.once || now_us() >= opt.until) {
    done(c);
    return;
  }
  if (close_it || opt.mode == CLOSE || opt.mode == POST) {
    drop(c);
    connected_again(c);
  } else if (opt.mode == THINK || opt.mode == POST_THINK) {
    rest(c, (uint64_t)(rand() % (opt.pause_ms * 1000)));
  } else {
    ask(c);
  }
}

static void take_answers(client *c) {
  answer a = {0};
  c->buffer[c->length] = '\0';
  while (c->waiting > 0 && parse(c->buffer, c->length, &a) &&
         c->length >= a.head + a.body) {
    answered(c, &a);
    c->length -= a.head + a.body;
    memmove(c->buffer, c->buffer + a.head + a.body, c->length + 1);
    if (a.close || c->waiting == 0) {
      go_on(c, a.close);
      return;
    }
  }
}

/* ---- events ---------------------------------------------------------------
 */

static void watched_closed(client *c, bool reset) {
  if (reset)
    counts[RESET_REUSED]++;
  closed_at[closed++] = (double)now_us() / 1e6;
  done(c);
}

static void readable(client *c) {
  ssize_t n = recv(c->fd, c->buffer + c->length, BUFFER - 1 - c->length, 0);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n > 0) {
    c->length += (size_t)n;
    c->since = now_us();
    if (c->state == ASKING)
      take_answers(c);
    else
      counts[WRONG]++; /* nobody asked */
    return;
  }
  if (c->state == ASKING) {
    lost(c, n < 0);
  } else if (c->state == WATCHING) {
    watched_closed(c, n < 0);
  } else { /* closed while it rested: nothing is lost */
    counts[RESET_REUSED] += n < 0;
    drop(c);
    connected_again(c);
  }
}

static void connected(client *c) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == ECONNREFUSED) {
    refused(c);
    return;
  }
  if (error != 0) {
    c->waiting = 1;
    lost(c, true);
    return;
  }
  epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &event);
  if (opt.mode != SILENT) {
    ask(c);
    return;
  }
  c->state = WATCHING;
  milestone(&c->had_one, &warm, "running");
}

/* Whether there is nothing to hope for: no answer for long, or no close. */
static bool in_vain(const client *c, uint64_t now) {
  if (c->state == WATCHING)
    return now >= opt.until;
  return (c->state == ASKING || c->state == CONNECTING) &&
         now > c->since + PATIENCE_MS * 1000ull;
}

static void tick(void) {
  uint64_t now = now_us();
  for (int i = 0; i < opt.clients; i++) {
    client *c = &clients[i];
    if (in_vain(c, now)) {
      counts[TIMEOUT]++;
      done(c);
    } else if (c->state == RESTING && now >= c->wake_at) {
      if (c->fd < 0)
        connected_again(c);
      else if (now >= opt.until)
        done(c);
      else
        ask(c);
    }
  }
}

static void run(void) {
  struct epoll_event events[256];
  uint64_t last = 0;
  while (alive > 0) {
    int n = epoll_wait(poll_fd, events, 256, 1);
    for (int i = 0; i < n; i++) {
      client *c = events[i].data.ptr;
      if (c->state == CONNECTING)
        connected(c);
      else if (c->state != DONE && c->fd >= 0)
        readable(c);
    }
    if (now_us() >= last + 500) {
      tick();
      last = now_us();
    }
  }
}

/* ---- the whole -------------------------------------------------------------
 */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(void) {
  printf("{\"mode\":\"%s\"", options_mode());
  for (int i = 0; i < OUTCOMES; i++)
    printf(",\"%s\":%llu", outcome_names[i], (unsigned long long)counts[i]);
  printf(",\"last_answer_at\":%.6f,\"closed\":%d", last_answer_at, closed);
  if (exit_at > 0)
    printf(",\"exit_at\":%.6f", exit_at);
  qsort(closed_at, (size_t)closed, sizeof *closed_at, by_value);
  for (int i = 0; closed > 0 && i <= 10; i++)
    printf("%s%.6f", i == 0 ? ",\"closed_at\":[" : ",",
           closed_at[i * (closed - 1) / 10]);
  puts(closed > 0 ? "]}" : "}");
}

/* Nobody sees the end of a process sooner than who waits for nothing else. */
static void wait_for_exit(void) {
  int fd = (int)syscall(SYS_pidfd_open, opt.pid, 0);
  if (fd < 0) /* it is over */
    exit_at = (double)now_us() / 1e6;
  if (fd < 0)
    return;
  struct pollfd server = {fd, POLLIN, 0};
  if (poll(&server, 1, PATIENCE_MS) == 1)
    exit_at = (double)now_us() / 1e6;
  close(fd);
}

int main(int argc, char **argv) {
  int wrong = options_parse(argc, argv);
  if (wrong != 0)
    return wrong;
  srand((unsigned)getpid());
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  clients = calloc((size_t)opt.clients, sizeof *clients);
  closed_at = calloc((size_t)opt.clients, sizeof *closed_at);
  if (poll_fd < 0 || clients == NULL || closed_at == NULL)
    return 2;
  alive = opt.clients;
  for (int i = 0; i < opt.clients; i++) {
    clients[i].fd = -1;
    connected_again(&clients[i]);
  }
  run();
  if (opt.pid != 0)
    wait_for_exit();
  report();
  return 0;
}
