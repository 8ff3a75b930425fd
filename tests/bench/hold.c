/* hold PORT PATH COUNT
 *
 * Opens COUNT keep-alive connections to 127.0.0.1:PORT, makes one request on
 * each, prints "held" and keeps them, idle, until a signal ends it. They
 * come from several addresses of the loopback, which have 28,000 ports each.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PER_ADDRESS = 5000 };

static void die(const char *what) {
  fprintf(stderr, "hold: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct sockaddr_in address_of(uint32_t last, int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(0x7f000000u + last)};
}

static int connect_from(uint32_t last, int port) {
  struct sockaddr_in from = address_of(last, 0), to = address_of(1, port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) != 0)
    die("bind");
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
    die("connect");
  return fd;
}

/* One answer, which is not longer than the buffer and comes in one piece. */
static void ask(int fd, const char *request) {
  char answer[16384];
  if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
    die("send");
  ssize_t got = recv(fd, answer, sizeof answer, 0);
  if (got < 12)
    die("recv");
  if (memcmp(answer, "HTTP/1.1 200", 12) != 0) {
    fprintf(stderr, "hold: not a 200: %.*s\n", (int)got, answer);
    exit(1);
  }
}

static void allow_descriptors(int count) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= (rlim_t)count + 16)
    return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      limit.rlim_cur < (rlim_t)count + 16) {
    fprintf(stderr, "hold: raise the limit of open files (ulimit -n %d)\n",
            count + 16);
    exit(1);
  }
}

int main(int argc, char **argv) {
  char request[512];
  if (argc != 4) {
    fprintf(stderr, "usage: hold PORT PATH COUNT\n");
    return 64;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlives the bench */
  int count = atoi(argv[3]);
  allow_descriptors(count);
  snprintf(request, sizeof request,
           "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[2]);
  for (int i = 0; i < count; i++)
    ask(connect_from((uint32_t)(2 + i / PER_ADDRESS), atoi(argv[1])), request);
  printf("held\n");
  fflush(stdout);
  for (;;)
    pause();
}
