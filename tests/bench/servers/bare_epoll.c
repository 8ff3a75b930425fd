/* bare_epoll PORT: the least a server can be. One thread, epoll, a constant
 * answer to whatever comes, no parsing. What a start of this costs is the cost
 * of a process and a listening socket. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\n"
                             "Content-Length: 3\r\n\r\nok\n";

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int listen_on(unsigned short port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
    die("socket");
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
    die("bind");
  if (listen(fd, 1024) != 0)
    die("listen");
  return fd;
}

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    die("epoll_ctl");
}

static void serve(int fd) {
  char request[4096];
  ssize_t got = read(fd, request, sizeof request);
  if (got <= 0 || write(fd, answer, sizeof answer - 1) < 0)
    close(fd);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: bare_epoll PORT\n");
    return 64;
  }
  int listener = listen_on((unsigned short)atoi(argv[1]));
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0)
    die("epoll_create1");
  watch(epoll, listener);
  for (;;) {
    struct epoll_event events[64];
    int count = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd != listener) {
        serve(events[i].data.fd);
        continue;
      }
      int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0)
        watch(epoll, fd);
    }
  }
}
