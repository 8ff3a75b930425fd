/* Reads the command line, turns the clients, and reports. See load.h.
 *
 * When every client has had an answer, the line "under way" is written to
 * standard output. SIGTERM, SIGINT or the time of --for ends the load: nothing
 * new is asked, what is under way is waited for. Then comes one line of JSON,
 * and the exit code is 0 when nothing failed, else 1. Each failure is a line
 * on standard error. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

static volatile sig_atomic_t asked_to_stop;

static void stop(int signal) {
  (void)signal;
  asked_to_stop = 1;
}

double load_now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static const char usage[] =
    "usage: load --to HOST:PORT [--to ...] [options]\n"
    "  --keep-alive N    clients that keep their connection, GET and POST\n"
    "  --per-request N   clients with a connection for each request\n"
    "  --pipelined N     clients that send several GETs at once\n"
    "  --depth N         so many (8)\n"
    "  --post N          clients that POST on a kept connection\n"
    "  --think MS        pause between two requests of a --post client (20)\n"
    "  --pace MS         pause between two requests of any other (0)\n"
    "  --slow MS         every third request asks for ?ms=MS (0)\n"
    "  --body BYTES      of a POST, behind its id (0)\n"
    "  --timeout MS      for an answer (10000)\n"
    "  --for SECONDS     ends by itself (0: on SIGTERM)\n"
    "  --retry-refused   a refused connection is tried again, at the next "
    "--to\n"
    "  --prefix NAME     of all ids (the process id)\n"
    "  --ids FILE        gets the ids of the answered POSTs\n";

static void refuse(const char *what, const char *value) {
  fprintf(stderr, "load: %s: %s\n%s", what, value, usage);
  exit(64);
}

static double number(const char *name, const char *text, double least,
                     double most) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || value < least || value > most) {
    char what[96];
    snprintf(what, sizeof what, "--%s wants a number from %g to %g, not", name,
             least, most);
    refuse(what, text);
  }
  return value;
}

static void add_address(load_options *options, const char *text) {
  char host[64];
  const char *colon = strrchr(text, ':');
  if (options->to_count == LOAD_ADDRESSES_MAX)
    refuse("too many --to", text);
  if (colon == NULL || (size_t)(colon - text) >= sizeof host)
    refuse("--to wants HOST:PORT, not", text);
  struct sockaddr_in *to = &options->to[options->to_count++];
  memcpy(host, text, (size_t)(colon - text));
  host[colon - text] = '\0';
  to->sin_family = AF_INET;
  to->sin_port = htons((uint16_t)number("to", colon + 1, 1, 65535));
  if (inet_pton(AF_INET, host, &to->sin_addr) != 1)
    refuse("--to wants an IPv4 address, not", text);
}

static FILE *open_ids(const char *path) {
  FILE *file = fopen(path, "w");
  if (file == NULL)
    refuse(path, strerror(errno));
  return file;
}

enum {
  DEPTH = LOAD_KINDS,
  THINK,
  PACE,
  SLOW,
  BODY,
  TIMEOUT,
  FOR,
  TO,
  RETRY,
  PREFIX,
  IDS,
  HELP
};

static const struct option names[] = {
    {"keep-alive", required_argument, NULL, LOAD_KEEP_ALIVE},
    {"per-request", required_argument, NULL, LOAD_PER_REQUEST},
    {"pipelined", required_argument, NULL, LOAD_PIPELINED},
    {"post", required_argument, NULL, LOAD_POST},
    {"depth", required_argument, NULL, DEPTH},
    {"think", required_argument, NULL, THINK},
    {"pace", required_argument, NULL, PACE},
    {"slow", required_argument, NULL, SLOW},
    {"body", required_argument, NULL, BODY},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"for", required_argument, NULL, FOR},
    {"to", required_argument, NULL, TO},
    {"retry-refused", no_argument, NULL, RETRY},
    {"prefix", required_argument, NULL, PREFIX},
    {"ids", required_argument, NULL, IDS},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static void set_number(load_options *o, int option, const char *name) {
  switch (option) {
  case DEPTH:
    o->depth = (int)number(name, optarg, 1, LOAD_DEPTH_MAX);
    break;
  case THINK:
    o->think = number(name, optarg, 0, 1e6) / 1e3;
    break;
  case PACE:
    o->pace = number(name, optarg, 0, 1e6) / 1e3;
    break;
  case SLOW:
    o->slow_ms = (int)number(name, optarg, 0, 1e6);
    break;
  case BODY:
    o->body = (size_t)number(name, optarg, 0, 1e8);
    break;
  case TIMEOUT:
    o->timeout = number(name, optarg, 1, 1e6) / 1e3;
    break;
  case FOR:
    o->run_for = number(name, optarg, 0, 1e6);
    break;
  default: /* a kind */
    o->clients[option] = (int)number(name, optarg, 0, 10000);
    break;
  }
}

static void read_options(load_options *options, int argc, char **argv) {
  int option;
  int index = 0;
  while ((option = getopt_long(argc, argv, "", names, &index)) != -1) {
    switch (option) {
    case '?':
      fputs(usage, stderr);
      exit(64);
    case HELP:
      fputs(usage, stdout);
      exit(0);
    case TO:
      add_address(options, optarg);
      break;
    case RETRY:
      options->retry_refused = true;
      break;
    case PREFIX:
      options->prefix = optarg;
      break;
    case IDS:
      options->ids = open_ids(optarg);
      break;
    default:
      set_number(options, option, names[index].name);
    }
  }
  if (optind < argc)
    refuse("does not take", argv[optind]);
  if (options->to_count == 0)
    refuse("is missing", "--to HOST:PORT");
  if (strlen(options->prefix) > 16)
    refuse("--prefix is longer than 16 bytes", options->prefix);
}

/* Turns all clients until the last has ended. */
static void turn(load_run *run, load_client **clients, int count) {
  struct epoll_event events[256];
  bool told = false;
  while (run->working > 0) {
    double now = load_now();
    double wake_at = now + 0.1;
    run->stopping =
        asked_to_stop || (run->options.run_for > 0 &&
                          now - run->started_at > run->options.run_for);
    for (int i = 0; i < count; i++) {
      if (run->stopping || now >= load_client_wake_at(clients[i]))
        load_client_turn(clients[i], 0, now);
      if (load_client_wake_at(clients[i]) < wake_at)
        wake_at = load_client_wake_at(clients[i]);
    }
    if (!told && run->unanswered == 0) {
      told = true;
      puts("under way");
      fflush(stdout);
    }
    int wait_ms = wake_at > now ? (int)((wake_at - now) * 1e3) + 1 : 0;
    int n = epoll_wait(run->epoll, events, 256, wait_ms);
    now = load_now();
    for (int i = 0; i < n; i++)
      load_client_turn(events[i].data.ptr, events[i].events, now);
  }
}

static load_client **make_clients(load_run *run, int *count) {
  const int *wanted = run->options.clients;
  *count = 0;
  for (int kind = 0; kind < LOAD_KINDS; kind++)
    *count += wanted[kind];
  if (*count == 0)
    refuse("is missing", "--keep-alive, --per-request, --pipelined or --post");
  load_client **clients = calloc((size_t)*count, sizeof *clients);
  int i = 0;
  for (int kind = 0; kind < LOAD_KINDS; kind++)
    for (int n = 0; n < wanted[kind]; n++)
      clients[i++] = load_client_new(run, (load_kind)kind, n);
  return clients;
}

int main(int argc, char **argv) {
  char prefix[16];
  snprintf(prefix, sizeof prefix, "%d", (int)getpid());
  load_run run = {.options = {.depth = 8, .think = 0.02, .timeout = 10}};
  run.options.prefix = prefix;
  read_options(&run.options, argc, argv);
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  run.epoll = epoll_create1(EPOLL_CLOEXEC);
  run.started_at = load_now();
  int count;
  load_client **clients = make_clients(&run, &count);
  turn(&run, clients, count);
  load_report(&run, load_now(), stdout);
  if (run.options.ids != NULL)
    fclose(run.options.ids);
  while (count > 0)
    load_client_free(clients[--count]);
  free(clients);
  close(run.epoll);
  return load_failures(&run) > 0;
}
