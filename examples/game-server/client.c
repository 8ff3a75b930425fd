/* client PORT NAME...: players for the server, one for each name.
 *
 * Each asks to join until it is answered, runs about, and prints what it is
 * told. Ends when all are done: 0 when all have played to the end, 3 when one
 * was refused, 1 when the server was not heard of for five seconds.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, STEP_MS = 100, SILENT_MS = 5000 };

typedef enum { JOINS, WAITS, PLAYS, DONE } progress;

typedef struct bot {
  const char *name;
  int fd;
  progress progress;
  int64_t heard;
} bot;

static int worst; /* exit code */

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void fail(bot *bot, int code, const char *why) {
  printf("%s: %s\n", bot->name, why);
  bot->progress = DONE;
  if (worst == 0 || code < worst)
    worst = code;
}

static bool connect_bot(bot *bot, const char *name, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  bot->name = name;
  bot->heard = now_ms();
  bot->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return bot->fd >= 0 &&
         connect(bot->fd, (struct sockaddr *)&address, sizeof address) == 0;
}

/* What is lost is said again by the next step. */
static void say(const bot *bot, const char *text) {
  if (send(bot->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
    return;
}

static void step(bot *bot) {
  char text[64];
  if (bot->progress == DONE)
    return;
  if (now_ms() - bot->heard > SILENT_MS) {
    fail(bot, 1, "no server");
    return;
  }
  if (bot->progress == PLAYS)
    snprintf(text, sizeof text, "go %d %d", rand() % 21 - 10, rand() % 21 - 10);
  else
    snprintf(text, sizeof text, "join %s", bot->name);
  say(bot, text);
}

static void take(bot *bot, const char *text) {
  bot->heard = now_ms();
  if (strncmp(text, "at ", 3) == 0 || bot->progress == DONE)
    return;
  if (strncmp(text, "wait ", 5) == 0 && bot->progress == JOINS) {
    bot->progress = WAITS;
  } else if (strncmp(text, "match ", 6) == 0) {
    if (bot->progress == PLAYS)
      return; /* told twice, as it was asked twice */
    bot->progress = PLAYS;
  } else if (strncmp(text, "over ", 5) == 0) {
    bot->progress = DONE;
  } else if (strncmp(text, "refused ", 8) == 0) {
    fail(bot, 3, text);
    return;
  } else if (strncmp(text, "notice ", 7) != 0) {
    return;
  }
  printf("%s: %s\n", bot->name, text);
}

static void receive(bot *bot) {
  char text[128];
  ssize_t n;
  while ((n = recv(bot->fd, text, sizeof text - 1, 0)) >= 0) {
    text[n] = '\0';
    take(bot, text);
  }
}

static bool all_done(const bot *bots, int count) {
  for (int i = 0; i < count; i++)
    if (bots[i].progress != DONE)
      return false;
  return true;
}

static void play(bot *bots, int count) {
  struct pollfd polled[MOST];
  int64_t next = 0;
  while (!all_done(bots, count)) {
    for (int i = 0; i < count; i++)
      polled[i] = (struct pollfd){.fd = bots[i].fd, .events = POLLIN};
    if (now_ms() >= next) {
      next = now_ms() + STEP_MS;
      for (int i = 0; i < count; i++)
        step(&bots[i]);
    }
    poll(polled, (nfds_t)count, STEP_MS / 4);
    for (int i = 0; i < count; i++)
      receive(&bots[i]);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  static bot bots[MOST];
  int count = argc - 2;
  long port = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  if (port < 1 || port > 65535 || count < 1 || count > MOST) {
    fprintf(stderr, "client PORT NAME...: a port and 1 to %d names\n", MOST);
    return 64;
  }
  for (int i = 0; i < count; i++)
    if (!connect_bot(&bots[i], argv[i + 2], (uint16_t)port)) {
      perror("client");
      return 1;
    }
  play(bots, count);
  return worst;
}
