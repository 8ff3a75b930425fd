/* pending: how many clients of a listening socket have not been accepted.
 *
 * Those in its queue can be accepted; those whose handshake is under way can
 * only be waited for, and accept does not tell of them. But each of both holds
 * a reference to the socket, from its SYN on, and /proc/net/tcp tells the
 * number: the socket's own is the one more. Listening sockets come first there,
 * so a line or two are read, in some hundredths of a millisecond; the other way
 * to ask (NETLINK_SOCK_DIAG) makes the kernel walk all its connections, which
 * takes 20 ms and more where tens of thousands wait out their time.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

enum {
  LISTEN = 0x0a,
  CHUNK = 256, /* little, for the kernel makes as many lines as are asked for */
};

/* One line of the table: whether it is the last that is of interest; *count is
 * set when it is that of the inode. */
static bool last_line(const char *line, unsigned long long inode, int *count) {
  unsigned state;
  unsigned long long found;
  int references;
  /* sl local remote st tx:rx tr:when retrnsmt uid timeout inode ref */
  if (sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*s %*s %llu %d", &state,
             &found, &references) != 3)
    return false; /* the title */
  if (state == LISTEN && found != inode)
    return false;
  if (state == LISTEN)
    *count = references - 1;
  return true;
}

static int search(int fd, unsigned long long inode) {
  char text[2 * CHUNK + 1];
  size_t length = 0;
  int count = -1;
  for (;;) {
    ssize_t got = read(fd, text + length, CHUNK);
    if (got <= 0)
      return count;
    length += (size_t)got;
    text[length] = '\0';
    char *line = text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
      *end = '\0';
      if (last_line(line, inode, &count))
        return count;
    }
    length -= (size_t)(line - text);
    if (length > CHUNK)
      return count; /* no line is so long */
    memmove(text, line, length);
  }
}

int tide_pending__count(int socket, bool is_v6) {
  struct stat st;
  int fd =
      open(is_v6 ? "/proc/net/tcp6" : "/proc/net/tcp", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  int count = fstat(socket, &st) == 0 ? search(fd, st.st_ino) : -1;
  close(fd);
  return count;
}
