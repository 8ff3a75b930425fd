/* pty: runs a program at a terminal that a test types at (support/pty.lua).
 *
 *     pty COLUMNS ROWS PROGRAM [ARGUMENT]...
 *
 * What the program shows goes to standard output. Descriptor 3 says what to do,
 * a line each: `type HEX` (keys), `size COLUMNS ROWS`, `hangup`. Exits as the
 * program does; with 128 and the signal when that ended it.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMANDS = 3 };

static void write_all(int fd, const char *data, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, data, length);
    if (written < 0 && errno != EINTR)
      return;
    if (written > 0) {
      data += written;
      length -= (size_t)written;
    }
  }
}

static void type(int master, const char *hex) {
  unsigned byte;
  for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
    char key = (char)byte;
    write_all(master, &key, 1);
  }
}

/* False: the terminal is to be taken away. */
static bool obey(int master, const char *line) {
  struct winsize size = {0};
  if (strncmp(line, "type ", 5) == 0)
    type(master, line + 5);
  else if (sscanf(line, "size %hu %hu", &size.ws_col, &size.ws_row) == 2)
    ioctl(master, TIOCSWINSZ, &size);
  return strcmp(line, "hangup") != 0;
}

/* Reads commands; a line may come in pieces. False: hang up. */
static bool read_commands(int master, bool *open) {
  static char text[65536];
  static size_t length;
  ssize_t got = read(COMMANDS, text + length, sizeof text - length - 1);
  if (got <= 0) {
    *open = false;
    return true;
  }
  length += (size_t)got;
  char *start = text;
  char *end;
  text[length] = '\0';
  while ((end = strchr(start, '\n')) != NULL) {
    *end = '\0';
    if (!obey(master, start))
      return false;
    start = end + 1;
  }
  length -= (size_t)(start - text);
  memmove(text, start, length);
  return true;
}

/* Until the program has gone and all it showed has been read. */
static void relay(int master) {
  bool open = true;
  for (;;) {
    char shown[4096];
    struct pollfd fds[] = {{master, POLLIN, 0},
                           {open ? COMMANDS : -1, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0)
      continue;
    if (fds[0].revents != 0) {
      ssize_t got = read(master, shown, sizeof shown);
      if (got <= 0)
        return; /* EIO: nobody has the terminal open any more */
      write_all(STDOUT_FILENO, shown, (size_t)got);
    }
    if (fds[1].revents != 0 && !read_commands(master, &open))
      return;
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: pty COLUMNS ROWS PROGRAM [ARGUMENT]...\n");
    return 64;
  }
  struct winsize size = {.ws_col = (unsigned short)atoi(argv[1]),
                         .ws_row = (unsigned short)atoi(argv[2])};
  int master;
  int status = 0;
  pid_t pid = forkpty(&master, NULL, NULL, &size);
  if (pid < 0) {
    perror("pty: forkpty");
    return 1;
  }
  if (pid == 0) {
    close(COMMANDS);
    execv(argv[3], argv + 3);
    perror("pty: exec");
    _exit(127);
  }
  relay(master);
  close(master);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
