/* load [OPTION...] PORT PATH PID...
 *
 * Keeps a server on 127.0.0.1:PORT busy for one window and prints on one line:
 *
 *   answers   seconds   CPU seconds of the server   of this client   of others
 *
 * "The server" is the processes PID, with all their threads; "others" is what
 * else ran on this machine. Options: -c connections (50), -d requests sent
 * together on each (1), -n header fields (8), -t ms of the window (300), -w ms
 * before it (50).
 *
 * Each connection sends its requests, reads all answers, and begins again. It
 * does as little as a client can: no answer is parsed but the first one, of
 * which the length is learned; a later one that is not a 200 of that length is
 * looked at again. So it is faster than what it measures.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_SIZE = 1 << 18, PIDS_MAX = 64, EVENTS = 256 };

typedef struct connection {
  int fd;
  int owed;    /* answers that have not come yet */
  size_t kept; /* of `part`: the beginning of an answer */
  char part[8192];
} connection;

typedef struct sample {
  double at, server, client, machine;
} sample;

static int connections = 50, depth = 1, fields = 8, window_ms = 300,
           warm_ms = 50;
static clockid_t server_clocks[PIDS_MAX];
static int server_count;
static char requests[BUFFER_SIZE], input[BUFFER_SIZE];
static size_t requests_length;
static size_t usual; /* the length of an answer */
static uint64_t answers;

static void die(const char *what) {
  fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void refuse(const char *what) {
  fprintf(stderr, "load: %s\n", what);
  exit(1);
}

/* ---- time -------------------------------------------------------------- */

static double read_clock(clockid_t id) {
  struct timespec t;
  if (clock_gettime(id, &t) != 0)
    die("clock");
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds that the machine's CPUs were not idle. */
static double machine_busy(void) {
  unsigned long long user, nice, system, idle, wait, irq, soft, steal;
  FILE *file = fopen("/proc/stat", "r");
  if (file == NULL ||
      fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
             &system, &idle, &wait, &irq, &soft, &steal) != 8)
    die("/proc/stat");
  fclose(file);
  return (double)(user + nice + system + irq + soft + steal) /
         (double)sysconf(_SC_CLK_TCK);
}

static sample take_sample(void) {
  sample s = {.at = read_clock(CLOCK_MONOTONIC),
              .client = read_clock(CLOCK_PROCESS_CPUTIME_ID),
              .machine = machine_busy()};
  for (int i = 0; i < server_count; i++)
    s.server += read_clock(server_clocks[i]);
  return s;
}

/* ---- requests ---------------------------------------------------------- */

/* What a browser sends. */
static const char *const field_lines[] = {
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101\r\n",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*\r\n",
    "Accept-Language: en-US,en;q=0.5\r\n",
    "Accept-Encoding: gzip, deflate, br\r\n",
    "Cookie: session=0123456789abcdef0123456789abcdef\r\n",
    "Cache-Control: no-cache\r\n",
    "Referer: http://localhost/orders\r\n",
};

static void make_requests(const char *path) {
  int known = (int)(sizeof field_lines / sizeof *field_lines);
  char *at = requests;
  char *end = requests + sizeof requests - 4096;
  for (int i = 0; i < depth; i++) {
    if (at + strlen(path) > end)
      refuse("so many requests do not fit");
    at += sprintf(at, "GET %s HTTP/1.1\r\nHost: localhost\r\n", path);
    for (int n = 1; n < fields && n <= known; n++)
      at += sprintf(at, "%s", field_lines[n - 1]);
    at += sprintf(at, "\r\n");
  }
  requests_length = (size_t)(at - requests);
}

static void send_requests(connection *c) {
  ssize_t sent = send(c->fd, requests, requests_length, MSG_NOSIGNAL);
  if (sent != (ssize_t)requests_length)
    die("send"); /* blocking: all of it, or the server is gone */
  c->owed = depth;
}

/* ---- answers ----------------------------------------------------------- */

/* The length of the answer at `at`; 0: its head is not whole yet. */
static size_t parse(const char *at, size_t length) {
  const char *end = memmem(at, length, "\r\n\r\n", 4);
  const char *field;
  if (end == NULL)
    return 0;
  if (memcmp(at, "HTTP/1.1 200", 12) != 0) {
    fprintf(stderr, "load: not a 200:\n%.*s\n", (int)(end - at), at);
    exit(1);
  }
  for (field = at; field < end; field++)
    if (*field == '\n' && strncasecmp(field + 1, "content-length:", 15) == 0)
      return (size_t)(end + 4 - at) + (size_t)atol(field + 16);
  refuse("an answer without Content-Length");
  return 0;
}

/* Whether the usual length holds here: behind it is the next answer. */
static bool is_usual(const char *at, size_t length) {
  return usual != 0 && length >= usual && memcmp(at, "HTTP/1.1 200", 12) == 0 &&
         (length == usual || at[usual] == 'H');
}

/* Counts whole answers; returns the bytes they took. */
static size_t count(connection *c, const char *data, size_t length) {
  size_t at = 0;
  while (at < length) {
    size_t size = usual;
    if (!is_usual(data + at, length - at)) {
      size = parse(data + at, length - at);
      if (size == 0 || size > length - at)
        break;
      usual = size;
    }
    at += size;
    answers++;
    c->owed--;
  }
  return at;
}

static void take_answers(connection *c) {
  memcpy(input, c->part, c->kept);
  ssize_t got = recv(c->fd, input + c->kept, sizeof input - c->kept, 0);
  if (got <= 0)
    die("the server closed a connection");
  size_t length = c->kept + (size_t)got;
  size_t used = count(c, input, length);
  c->kept = length - used;
  if (c->kept > sizeof c->part)
    refuse("an answer is too long");
  memcpy(c->part, input + used, c->kept);
  if (c->owed == 0)
    send_requests(c);
}

/* ---- a window ---------------------------------------------------------- */

static int connect_to(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int on = 1;
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static int open_all(int port) {
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < connections; i++) {
    connection *c = calloc(1, sizeof *c);
    if (c == NULL)
      die("memory");
    c->fd = connect_to(port);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
      die("epoll_ctl");
    send_requests(c);
  }
  return epoll;
}

static void run_until(int epoll, double end) {
  struct epoll_event events[EVENTS];
  while (read_clock(CLOCK_MONOTONIC) < end) {
    int n = epoll_wait(epoll, events, EVENTS, 5000);
    if (n == 0)
      refuse("no answer for 5 s");
    for (int i = 0; i < n; i++)
      take_answers(events[i].data.ptr);
  }
}

static void add_server(const char *pid) {
  if (server_count == PIDS_MAX ||
      clock_getcpuclockid(atoi(pid), &server_clocks[server_count++]) != 0)
    refuse("no such process");
}

static void usage(void) {
  fprintf(stderr, "usage: load [-c connections] [-d depth] [-n fields] "
                  "[-t ms] [-w ms] PORT PATH PID...\n");
  exit(64);
}

static void read_options(int argc, char **argv) {
  int option;
  while ((option = getopt(argc, argv, "c:d:n:t:w:")) != -1) {
    int *value = option == 'c'   ? &connections
                 : option == 'd' ? &depth
                 : option == 'n' ? &fields
                 : option == 't' ? &window_ms
                 : option == 'w' ? &warm_ms
                                 : NULL;
    if (value == NULL || (*value = atoi(optarg)) < (option == 'w' ? 0 : 1))
      usage();
  }
  if (argc - optind < 3)
    usage();
}

int main(int argc, char **argv) {
  read_options(argc, argv);
  for (int i = optind + 2; i < argc; i++)
    add_server(argv[i]);
  make_requests(argv[optind + 1]);
  int epoll = open_all(atoi(argv[optind]));
  run_until(epoll, read_clock(CLOCK_MONOTONIC) + warm_ms / 1e3);
  answers = 0;
  sample from = take_sample();
  run_until(epoll, from.at + window_ms / 1e3);
  uint64_t counted = answers;
  sample to = take_sample();
  double server = to.server - from.server, client = to.client - from.client;
  printf("%llu %.6f %.6f %.6f %.6f\n", (unsigned long long)counted,
         to.at - from.at, server, client,
         to.machine - from.machine - server - client);
  return 0;
}
