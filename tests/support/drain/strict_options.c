#include "strict_options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

options opt;

static const char *const mode_names[] = {"close", "post",       "keep",
                                         "think", "post_think", "pipeline",
                                         "idle",  "silent"};

uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

const char *options_mode(void) {
  return mode_names[opt.mode];
}

bool posts(void) {
  return opt.mode == POST || opt.mode == POST_THINK;
}

static int usage(const char *wrong) {
  fprintf(stderr, "strict_client: %s (the head of its source says how)\n",
          wrong);
  return 64;
}

static bool set_mode(const char *name) {
  for (int i = CLOSE; i <= SILENT; i++)
    if (strcmp(mode_names[i], name) == 0) {
      opt.mode = (mode)i;
      return true;
    }
  return false;
}

/* False: there is no such option, or it has no such value. */
static bool set(const char *name, const char *value) {
  if (strcmp(name, "--mode") == 0)
    return set_mode(value);
  if (strcmp(name, "--host") == 0)
    return inet_pton(AF_INET, value, &opt.address.sin_addr) == 1;
  if (strcmp(name, "--path") == 0) {
    opt.path = value;
    return true;
  }
  int number = atoi(value);
  if (strcmp(name, "--port") == 0)
    opt.address.sin_port = htons((uint16_t)number);
  else if (strcmp(name, "--clients") == 0)
    opt.clients = number;
  else if (strcmp(name, "--for") == 0)
    opt.until = now_us() + (uint64_t)number * 1000;
  else if (strcmp(name, "--pid") == 0)
    opt.pid = number;
  else if (strcmp(name, "--pause") == 0)
    opt.pause_ms = number;
  else
    return false;
  return number > 0;
}

int options_parse(int argc, char **argv) {
  opt.address.sin_family = AF_INET;
  opt.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  opt.clients = 1;
  opt.pause_ms = 4;
  opt.until = now_us() + 10000000;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--once") == 0)
      opt.once = true;
    else if (strcmp(argv[i], "--retry-refused") == 0)
      opt.retry_refused = true;
    else if (i + 1 == argc || !set(argv[i], argv[i + 1]))
      return usage(argv[i]);
    else
      i++;
  }
  if (opt.path == NULL)
    opt.path = posts() ? "/echo" : "/hello";
  return opt.address.sin_port != 0 ? 0 : usage("no --port");
}
