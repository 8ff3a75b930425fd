#include "unix_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

/* Whether some socket of this network namespace is bound to the path. A line of
 * the list ends in " PATH". */
static bool is_bound(const char *path) {
  char line[512];
  size_t length = strlen(path);
  bool found = false;
  FILE *list = fopen("/proc/net/unix", "re");
  if (list == NULL)
    return false; /* no /proc: the refused connect has to do */
  while (!found && fgets(line, sizeof line, list) != NULL) {
    size_t end = strcspn(line, "\n");
    found = end > length && line[end - length - 1] == ' ' &&
            memcmp(line + end - length, path, length) == 0;
  }
  fclose(list);
  return found;
}

/* Who made the listening socket, in words. */
static void name_holder(int fd, char *why, size_t size) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  char path[64], name[64] = "";
  FILE *file;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      peer.pid <= 0) {
    snprintf(why, size, "another process listens on it");
    return;
  }
  snprintf(path, sizeof path, "/proc/%d/comm", (int)peer.pid);
  file = fopen(path, "re");
  if (file != NULL) {
    if (fgets(name, sizeof name, file) != NULL)
      name[strcspn(name, "\n")] = '\0';
    fclose(file);
  }
  snprintf(why, size, "process %d%s%s%s listens on it", (int)peer.pid,
           name[0] != '\0' ? " (" : "", name, name[0] != '\0' ? ")" : "");
}

/* 0: nobody answers. */
static int ask(const struct sockaddr_un *address, char *why, size_t size) {
  int result = UV_EADDRINUSE;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return uv_translate_sys_error(errno);
  if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
    name_holder(fd, why, size);
  else if (errno == ECONNREFUSED)
    result = 0;
  else if (errno == EAGAIN)
    snprintf(why, size, "another process listens on it, its queue is full");
  else
    snprintf(why, size, "it cannot be told whose it is: %s", strerror(errno));
  close(fd);
  return result;
}

int tide_unix_address(const char *path, struct sockaddr_un *address, char *why,
                      size_t size) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) {
    snprintf(why, size,
             "the path of a Unix socket has at most %zu bytes, this one %zu",
             sizeof address->sun_path - 1, strlen(path));
    return UV_ENAMETOOLONG;
  }
  memcpy(address->sun_path, path, strlen(path) + 1);
  return 0;
}

int tide_unix_make_way(const struct sockaddr_un *address, char *why,
                       size_t size) {
  const char *path = address->sun_path;
  struct stat st;
  if (lstat(path, &st) != 0)
    return 0; /* free, or bind says what is wrong */
  if (!S_ISSOCK(st.st_mode)) {
    snprintf(why, size, "there is a file of that name that is no socket");
    return UV_EADDRINUSE;
  }
  int code = ask(address, why, size);
  if (code != 0)
    return code;
  if (is_bound(path)) {
    snprintf(why, size, "a process that does not listen yet has it");
    return UV_EADDRINUSE;
  }
  unlink(path);
  return 0;
}

void tide_unix_note(const char *path, uint64_t *inode, uint64_t *device) {
  struct stat st;
  bool found = stat(path, &st) == 0;
  *inode = found ? st.st_ino : 0;
  *device = found ? st.st_dev : 0;
}

bool tide_unix_is_still(const char *path, uint64_t inode, uint64_t device) {
  struct stat st;
  return inode != 0 && stat(path, &st) == 0 && st.st_ino == inode &&
         st.st_dev == device;
}
