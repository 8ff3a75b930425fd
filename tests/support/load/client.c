/* One client: its connection, its requests under way, what it makes of the end
 * of either. See load.h for the rules it goes by. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

typedef enum { RESTING, CONNECTING, TALKING, ENDED } state;

/* A request that has not been answered yet. */
typedef struct request {
  char id[LOAD_ID_SIZE];
  bool post;
  bool slow;
  bool close; /* it says Connection: close */
} request;

struct load_client {
  load_run *run;
  load_kind kind;
  int number;
  state state;
  int fd;
  size_t address;
  uint64_t sequence;
  uint64_t answers; /* on this connection */
  bool ever;        /* an answer at all */
  double wake_at;   /* the next request, or the end of patience */
  double asked_at;
  request batch[LOAD_DEPTH_MAX];
  size_t count, next; /* requests of the batch; the first unanswered */
  char *out;
  size_t out_length, out_sent, out_size;
  char *in;
  size_t in_length, in_size;
};

static load_counts *counts(load_client *client) {
  return &client->run->counts[client->kind];
}

/* ---- what a POST carries ---- */

/* The body of this id: the id, then bytes that follow from it. */
static size_t write_body(const load_client *client, const char *id, char *to) {
  size_t length = strlen(id);
  unsigned seed = 0;
  memcpy(to, id, length);
  for (size_t i = 0; i < length; i++)
    seed = seed * 31 + (unsigned char)id[i];
  for (size_t i = 0; i < client->run->options.body; i++)
    to[length + i] = (char)('a' + (seed + i * 7) % 26);
  return length + client->run->options.body;
}

static size_t body_size(const load_client *client) {
  return LOAD_ID_SIZE + client->run->options.body;
}

static void append_request(load_client *client, const request *ask) {
  char *to = client->out + client->out_length;
  size_t room = client->out_size - client->out_length;
  char query[32] = "";
  if (ask->slow)
    snprintf(query, sizeof query, "?ms=%d", client->run->options.slow_ms);
  int head = snprintf(to, room, "%s /echo/%s%s HTTP/1.1\r\nHost: load\r\n%s",
                      ask->post ? "POST" : "GET", ask->id, query,
                      ask->close ? "Connection: close\r\n" : "");
  if (ask->post)
    head += snprintf(to + head, room - (size_t)head,
                     "Content-Type: text/plain\r\nContent-Length: %zu\r\n",
                     strlen(ask->id) + client->run->options.body);
  head += snprintf(to + head, room - (size_t)head, "\r\n");
  client->out_length += (size_t)head;
  if (ask->post)
    client->out_length += write_body(client, ask->id, to + head);
}

/* Writes what is unanswered of the batch into `out`. */
static void write_batch(load_client *client) {
  client->out_length = 0;
  client->out_sent = 0;
  for (size_t i = client->next; i < client->count; i++)
    append_request(client, &client->batch[i]);
}

static void new_batch(load_client *client) {
  const load_options *options = &client->run->options;
  client->count = client->kind == LOAD_PIPELINED ? (size_t)options->depth : 1;
  client->next = 0;
  for (size_t i = 0; i < client->count; i++) {
    request *ask = &client->batch[i];
    uint64_t n = client->sequence++;
    snprintf(ask->id, sizeof ask->id, "%s-%s-%d-%llu", options->prefix,
             load_kind_names[client->kind], client->number,
             (unsigned long long)n);
    ask->post = client->kind == LOAD_POST ||
                (client->kind != LOAD_PIPELINED && n % 2 == 1);
    ask->slow = options->slow_ms > 0 && n % 3 == 2;
    ask->close = client->kind == LOAD_PER_REQUEST && n / 2 % 2 == 1;
  }
}

/* ---- the socket ---- */

static void disconnect(load_client *client) {
  if (client->fd >= 0)
    close(client->fd);
  client->fd = -1;
  client->answers = 0;
  client->in_length = 0;
}

static void watch(load_client *client, int operation, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = client};
  epoll_ctl(client->run->epoll, operation, client->fd, &event);
}

static void end(load_client *client) {
  disconnect(client);
  client->state = ENDED;
  client->wake_at = 1e18;
  client->run->working--;
}

static void rest(load_client *client, double seconds, double now) {
  client->state = RESTING;
  client->wake_at = now + seconds;
}

/* The requests of the batch that are unanswered have failed, for one reason; or
 * the last one, which got more than its answer. */
static void fail(load_client *client, load_why why, const char *detail,
                 double now) {
  size_t last = client->count > 0 ? client->count - 1 : 0;
  size_t unanswered = client->count - client->next;
  const request *ask =
      &client->batch[client->next < last ? client->next : last];
  fprintf(stderr,
          "failed kind=%s why=%s id=%s method=%s after=%llu bytes=%zu "
          "unanswered=%zu ms=%.1f at=%.3f %s\n",
          load_kind_names[client->kind], load_why_names[why], ask->id,
          ask->post ? "POST" : "GET", (unsigned long long)client->answers,
          client->in_length, unanswered, (now - client->asked_at) * 1e3,
          now - client->run->started_at, detail);
  counts(client)->failed[why] += unanswered > 0 ? unanswered : 1;
  disconnect(client);
  client->count = client->next = 0;
  rest(client, 0.01, now);
}

static void connect_now(load_client *client, double now) {
  const load_options *options = &client->run->options;
  const struct sockaddr_in *to = &options->to[client->address];
  int on = 1;
  client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (client->fd < 0) {
    fail(client, LOAD_CONNECT, strerror(errno), now);
    return;
  }
  setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  client->state = CONNECTING;
  if (connect(client->fd, (const struct sockaddr *)to, sizeof *to) < 0 &&
      errno != EINPROGRESS) {
    fail(client, LOAD_CONNECT, strerror(errno), now);
    return;
  }
  watch(client, EPOLL_CTL_ADD, EPOLLOUT);
}

/* Sends what is unanswered of the batch, on the connection there is or a new
 * one. */
static void ask(load_client *client, double now) {
  write_batch(client);
  client->wake_at = now + client->run->options.timeout;
  if (client->fd < 0) {
    connect_now(client, now);
    return;
  }
  client->state = TALKING;
  watch(client, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

static void ask_again(load_client *client, double now) {
  disconnect(client);
  ask(client, now);
}

static void next_batch(load_client *client, double now) {
  if (client->run->stopping) {
    end(client);
    return;
  }
  new_batch(client);
  client->asked_at = now;
  ask(client, now);
}

/* ---- answers ---- */

static bool is_right(load_client *client, const request *asked,
                     const load_answer *answer) {
  if (!asked->post)
    return answer->body_length == strlen(asked->id) &&
           memcmp(answer->body, asked->id, answer->body_length) == 0;
  char *wanted = malloc(body_size(client));
  size_t length = write_body(client, asked->id, wanted);
  bool right = answer->body_length == length &&
               memcmp(answer->body, wanted, length) == 0;
  free(wanted);
  return right;
}

static void count_answer(load_client *client, const request *asked,
                         const load_answer *answer, double now) {
  load_counts *sum = counts(client);
  double ms = (now - client->asked_at) * 1e3;
  sum->answered++;
  sum->said_close += answer->close && !asked->close;
  if (ms > sum->slowest_ms)
    sum->slowest_ms = ms;
  if (asked->post && client->run->options.ids != NULL)
    fprintf(client->run->options.ids, "%s\n", asked->id);
  client->answers++;
  if (!client->ever) {
    client->ever = true;
    client->run->unanswered--;
  }
}

static void batch_is_answered(load_client *client, bool close_it, double now) {
  const load_options *options = &client->run->options;
  if (close_it || client->kind == LOAD_PER_REQUEST)
    disconnect(client);
  else
    watch(client, EPOLL_CTL_MOD, EPOLLIN);
  rest(client, client->kind == LOAD_POST ? options->think : options->pace, now);
}

/* Takes one answer from the buffer; false: there is none, or it was the last
 * of this turn. */
static bool take_answer(load_client *client, double now) {
  load_answer answer;
  const request *asked = &client->batch[client->next];
  switch (load_answer_parse(client->in, client->in_length, &answer)) {
  case LOAD_ANSWER_PART:
    return false;
  case LOAD_ANSWER_BAD:
    fail(client, LOAD_MISMATCH, "not HTTP", now);
    return false;
  case LOAD_ANSWER_WHOLE:
    break;
  }
  if (answer.status != 200 || !is_right(client, asked, &answer)) {
    char detail[96];
    snprintf(detail, sizeof detail, "status=%d body=%.40s", answer.status,
             answer.body_length > 0 ? answer.body : "");
    fail(client, answer.status != 200 ? LOAD_STATUS : LOAD_MISMATCH, detail,
         now);
    return false;
  }
  count_answer(client, asked, &answer, now);
  client->in_length -= answer.length;
  memmove(client->in, client->in + answer.length, client->in_length);
  client->next++;
  if (client->next == client->count) {
    if (client->in_length > 0)
      fail(client, LOAD_MISMATCH, "more than was asked", now);
    else
      batch_is_answered(client, answer.close, now);
    return false;
  }
  if (answer.close) {
    counts(client)->resent += client->count - client->next;
    ask_again(client, now);
    return false;
  }
  return true;
}

/* ---- the ends of a connection ---- */

static void ended(load_client *client, int error, double now) {
  const request *asked = &client->batch[client->next];
  bool reset = error != 0;
  if (client->state == RESTING) {
    counts(client)->closed_idle++;
    disconnect(client);
  } else if (client->in_length > 0) {
    fail(client, LOAD_TRUNCATED, reset ? strerror(error) : "EOF", now);
  } else if (reset) {
    fail(client, LOAD_RESET, strerror(error), now);
  } else if (client->answers > 0 && client->next == 0 && !asked->post) {
    counts(client)->retried += client->count;
    ask_again(client, now);
  } else {
    fail(client, LOAD_EOF, client->answers > 0 ? "kept" : "fresh", now);
  }
}

static void read_now(load_client *client, double now) {
  for (;;) {
    if (client->in_size - client->in_length < 4096) {
      client->in_size = client->in_size * 2 + 8192;
      client->in = realloc(client->in, client->in_size);
    }
    ssize_t n = recv(client->fd, client->in + client->in_length,
                     client->in_size - client->in_length, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0) {
      ended(client, n < 0 ? errno : 0, now);
      return;
    }
    client->in_length += (size_t)n;
    if (client->state == RESTING) {
      fail(client, LOAD_MISMATCH, "not asked for", now);
      return;
    }
    while (take_answer(client, now)) {
    }
    if (client->state != TALKING || client->fd < 0)
      return;
  }
}

static void write_now(load_client *client, double now) {
  while (client->out_sent < client->out_length) {
    ssize_t n = send(client->fd, client->out + client->out_sent,
                     client->out_length - client->out_sent, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n < 0) {
      /* What came before, an answer or an end, says more than this error. */
      read_now(client, now);
      return;
    }
    client->out_sent += (size_t)n;
  }
  watch(client, EPOLL_CTL_MOD, EPOLLIN);
}

static void connected(load_client *client, double now) {
  const load_options *options = &client->run->options;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    counts(client)->connections++;
    client->state = TALKING;
    write_now(client, now);
  } else if (error == ECONNREFUSED && options->retry_refused &&
             now - client->asked_at < options->timeout) {
    counts(client)->refused++;
    client->address = (client->address + 1) % options->to_count;
    disconnect(client);
    rest(client, 0.005, now);
  } else {
    fail(client, error == ECONNREFUSED ? LOAD_REFUSED : LOAD_CONNECT,
         strerror(error), now);
  }
}

/* ---- turns ---- */

static void time_is_up(load_client *client, double now) {
  if (client->state != RESTING)
    fail(client, LOAD_TIMEOUT, "", now);
  else if (client->count > client->next) /* refused, and tried again */
    ask(client, now);
  else
    next_batch(client, now);
}

void load_client_turn(load_client *client, uint32_t events, double now) {
  if (client->state == CONNECTING && events != 0)
    connected(client, now);
  else if (client->state == TALKING && (events & EPOLLOUT) != 0)
    write_now(client, now);
  if (client->fd >= 0 && client->state != CONNECTING &&
      (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    read_now(client, now);
  if (client->state != ENDED &&
      (now >= client->wake_at ||
       (client->run->stopping && client->state == RESTING)))
    time_is_up(client, now);
}

double load_client_wake_at(const load_client *client) {
  return client->wake_at;
}

load_client *load_client_new(load_run *run, load_kind kind, int number) {
  load_client *client = calloc(1, sizeof *client);
  client->run = run;
  client->kind = kind;
  client->number = number;
  client->fd = -1;
  client->address = (size_t)number % run->options.to_count;
  client->out_size =
      (size_t)run->options.depth * (512 + body_size(client)) + 512;
  client->out = malloc(client->out_size);
  run->working++;
  run->unanswered++;
  return client;
}

void load_client_free(load_client *client) {
  disconnect(client);
  free(client->out);
  free(client->in);
  free(client);
}
