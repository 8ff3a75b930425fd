/* What the strict clients are told to do; the head of strict_client.c says how.
 */
#ifndef STRICT_OPTIONS_H
#define STRICT_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum mode {
  CLOSE,
  POST,
  KEEP,
  THINK,
  POST_THINK,
  PIPELINE,
  IDLE,
  SILENT
} mode;
typedef struct options {
  struct sockaddr_in address;
  const char *path;
  mode mode;
  int clients;
  uint64_t until; /* on the clock of now_us */
  int pause_ms;
  int pid; /* of the server, whose end is waited for; 0: none */
  bool once, retry_refused;
} options;

extern options opt;

/* 0, or the exit code after what is wrong was said. */
int options_parse(int argc, char **argv);
const char *options_mode(void);
/* Whether the mode sends POSTs. */
bool posts(void);
/* Microseconds of the monotonic clock. */
uint64_t now_us(void);

#endif
