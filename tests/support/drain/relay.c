/* relay: two network namespaces and a slow wire between them.
 *
 *   relay [MS]      so many milliseconds each way; default 20
 *
 * Prints one line with two paths, of the namespaces in which 10.99.0.1 (the
 * server) and 10.99.0.2 (the clients) live, for `nsenter --net=PATH`, then
 * carries packets between them until SIGTERM. At the end one JSON line: what
 * TCP segments it carried. Of RSTs from the server, `refusals` answer a SYN
 * that finds no listener, and `resets` are all others: of connections that were
 * there. Exit code 77 with a reason where the machine does not let it (no
 * privilege, no tun device).
 *
 * The kernel's own delay queue (netem) is not everywhere; a tun device is, and
 * who carries the packets also sees each of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77, MTU = 1500, QUEUE = 16384 };

typedef struct packet {
  uint64_t due; /* us */
  uint16_t length;
  char data[MTU];
} packet;

/* One direction: a ring, for all wait equally long. */
typedef struct wire {
  int from, to;
  packet ring[QUEUE];
  unsigned head, count;
} wire;

static uint64_t delay_us = 20000;
static wire wires[2];
static volatile sig_atomic_t stop;
static unsigned long segments, refusals, resets, client_resets, fins, dropped;

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void skip(const char *what) {
  printf("skipped: %s: %s\n", what, strerror(errno));
  exit(SKIPPED);
}

/* ---- the two ends ----------------------------------------------------------
 */

static void set_address(struct ifreq *request, const char *text) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  inet_pton(AF_INET, text, &address.sin_addr);
  memcpy(&request->ifr_addr, &address, sizeof address);
}

static void up(int control, const char *name) {
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  request.ifr_flags = IFF_UP;
  if (ioctl(control, SIOCSIFFLAGS, &request) != 0)
    skip("bringing an interface up");
}

/* A new namespace with an end of the wire in it. Returns the device; *space is
 * the namespace. */
static int make_end(const char *address, int *space) {
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  if (unshare(CLONE_NEWNET) != 0)
    skip("a network namespace");
  *space = open("/proc/self/ns/net", O_RDONLY);
  int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  int control = socket(AF_INET, SOCK_DGRAM, 0);
  if (*space < 0 || device < 0 || control < 0)
    skip("/dev/net/tun");
  snprintf(request.ifr_name, sizeof request.ifr_name, "wire");
  if (ioctl(device, TUNSETIFF, &request) != 0)
    skip("a tun device");
  request.ifr_qlen = 10000;
  ioctl(control, SIOCSIFTXQLEN, &request);
  set_address(&request, address);
  if (ioctl(control, SIOCSIFADDR, &request) != 0)
    skip("an address");
  set_address(&request, "255.255.255.0");
  if (ioctl(control, SIOCSIFNETMASK, &request) != 0)
    skip("a netmask");
  up(control, "wire");
  up(control, "lo");
  close(control);
  return device;
}

/* ---- carrying ---------------------------------------------------------------
 */

static void look(const unsigned char *data, size_t length, bool from_server) {
  enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };
  if (length < 40 || data[0] >> 4 != 4 || data[9] != IPPROTO_TCP)
    return;
  size_t ip = (size_t)(data[0] & 15) * 4;
  if (length < ip + 20)
    return;
  const unsigned char *tcp = data + ip;
  static const unsigned char zero[4];
  segments++;
  fins += (tcp[13] & FIN) != 0;
  if ((tcp[13] & RST) == 0)
    return;
  /* A client resets what is left of an older connection when it is answered
   * for that one instead of being refused: its port was in use before. */
  if (!from_server) {
    client_resets++;
    return;
  }
  if ((tcp[13] & ACK) != 0 && memcmp(tcp + 4, zero, 4) == 0)
    refusals++; /* it answers a SYN: there is no sequence number yet */
  else
    resets++;
}

static void take_in(wire *w) {
  while (w->count < QUEUE) {
    packet *p = &w->ring[(w->head + w->count) % QUEUE];
    ssize_t n = read(w->from, p->data, MTU);
    if (n <= 0)
      return;
    look((const unsigned char *)p->data, (size_t)n, w == &wires[0]);
    p->length = (uint16_t)n;
    p->due = now_us() + delay_us;
    w->count++;
  }
}

static void give_out(wire *w) {
  uint64_t now = now_us();
  while (w->count > 0 && w->ring[w->head].due <= now) {
    const packet *p = &w->ring[w->head];
    if (write(w->to, p->data, p->length) != p->length)
      dropped++;
    w->head = (w->head + 1) % QUEUE;
    w->count--;
  }
}

/* How long nothing is due, in ns. */
static struct timespec pause_of(void) {
  uint64_t now = now_us();
  uint64_t wait = 1000000;
  for (int i = 0; i < 2; i++) {
    const wire *w = &wires[i];
    if (w->count == 0)
      continue;
    uint64_t due = w->ring[w->head].due;
    uint64_t left = due > now ? due - now : 0;
    wait = left < wait ? left : wait;
  }
  return (struct timespec){(time_t)(wait / 1000000),
                           (long)(wait % 1000000) * 1000};
}

static void on_signal(int number) {
  stop = number;
}

/* SIGTERM is let in only while it waits. It also comes with the end of who
 * started this. */
static void watch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  sigprocmask(SIG_BLOCK, &held, NULL);
  sigaction(SIGTERM, &action, NULL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static void carry(void) {
  struct pollfd fds[2] = {{wires[0].from, POLLIN, 0},
                          {wires[1].from, POLLIN, 0}};
  sigset_t none;
  sigemptyset(&none);
  while (!stop) {
    struct timespec pause = pause_of();
    if (ppoll(fds, 2, &pause, &none) < 0 && errno != EINTR)
      return;
    for (int i = 0; i < 2; i++) {
      take_in(&wires[i]);
      give_out(&wires[i]);
    }
  }
}

int main(int argc, char **argv) {
  int spaces[2], ends[2];
  if (argc > 1)
    delay_us = (uint64_t)(atof(argv[1]) * 1000);
  watch_signals();
  ends[0] = make_end("10.99.0.1", &spaces[0]);
  ends[1] = make_end("10.99.0.2", &spaces[1]);
  wires[0].from = wires[1].to = ends[0];
  wires[1].from = wires[0].to = ends[1];
  printf("/proc/%d/fd/%d /proc/%d/fd/%d\n", (int)getpid(), spaces[0],
         (int)getpid(), spaces[1]);
  fflush(stdout);
  carry();
  printf("{\"segments\":%lu,\"fins\":%lu,\"refusals\":%lu,\"resets\":%lu,"
         "\"client_resets\":%lu,\"dropped\":%lu}\n",
         segments, fins, refusals, resets, client_resets, dropped);
  return 0;
}
