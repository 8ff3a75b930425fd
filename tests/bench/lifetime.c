/* lifetime PORT PATH IDLE_MS -- PROGRAM [ARGUMENT...]
 *
 * Starts a server, asks GET PATH on 127.0.0.1:PORT until the first 200, leaves
 * it idle, sends it SIGTERM and waits for its end. Prints on one line:
 *
 *   us from exec to the 200    RSS in KB after IDLE_MS    us from signal to end
 *   exit code, or 128 + the signal that ended it
 *
 * The clock starts before vfork: what a supervisor would see. The server's own
 * output goes to /dev/null.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_US = 50, GIVE_UP_S = 20 };

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void sleep_us(long us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static void die(const char *what) {
  fprintf(stderr, "lifetime: %s\n", what);
  exit(1);
}

static pid_t start(char **argv) {
  pid_t pid = vfork();
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    execvp(argv[0], argv);
    _exit(127);
  }
  if (pid < 0)
    die("cannot fork");
  return pid;
}

static int connect_to(unsigned short port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address)) {
    close(fd);
    return -1;
  }
  return fd;
}

/* One request on a connection of its own; whether its answer is 200. */
static int answers_200(unsigned short port, const char *request) {
  int ok = 0;
  char answer[64] = "";
  int fd = connect_to(port);
  if (fd < 0)
    return 0;
  struct pollfd readable = {.fd = fd, .events = POLLIN};
  if (write(fd, request, strlen(request)) > 0 && poll(&readable, 1, 2000) > 0 &&
      read(fd, answer, sizeof answer - 1) > 0)
    ok = strncmp(answer + 8, " 200", 4) == 0;
  close(fd);
  return ok;
}

/* Of one process, in KB; 0 when it is gone. The counters of statm lag behind by
 * a few hundred KB; this walks the page tables. */
static long rss_of(pid_t pid) {
  char path[64], line[256];
  long kb = 0;
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Rss: %ld", &kb) == 1)
      break;
  if (file)
    fclose(file);
  return kb;
}

/* Of a process and its children (nginx's worker). */
static long rss_of_tree(pid_t pid) {
  long total = rss_of(pid);
  char path[64];
  int child;
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
  FILE *file = fopen(path, "r");
  while (file && fscanf(file, "%d", &child) == 1)
    total += rss_of(child);
  if (file)
    fclose(file);
  return total;
}

int main(int argc, char **argv) {
  if (argc < 6 || strcmp(argv[4], "--") != 0)
    die("usage: lifetime PORT PATH IDLE_MS -- PROGRAM [ARGUMENT...]");
  unsigned short port = (unsigned short)atoi(argv[1]);
  char request[256];
  snprintf(request, sizeof request,
           "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[2]);

  uint64_t from = now_us();
  pid_t pid = start(argv + 5);
  while (!answers_200(port, request)) {
    int status;
    if (waitpid(pid, &status, WNOHANG) == pid)
      die("the server ended before it answered 200");
    if (now_us() - from > GIVE_UP_S * 1000000u) {
      kill(pid, SIGKILL);
      die("no 200 in time");
    }
    sleep_us(POLL_US);
  }
  uint64_t ready = now_us() - from;

  sleep_us(atol(argv[3]) * 1000);
  long rss = rss_of_tree(pid);

  int status;
  from = now_us();
  kill(pid, SIGTERM);
  waitpid(pid, &status, 0);
  uint64_t end = now_us() - from;
  printf("%llu %ld %llu %d\n", (unsigned long long)ready, rss,
         (unsigned long long)end,
         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}
