#include "notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#define FIRST_LISTEN_FD 3

struct tide_notify {
  int fd; /* -1: nobody to notify */
  struct sockaddr_un address;
  socklen_t address_length;
  uint64_t watchdog_interval; /* ns */
  int listen_fds;
  char *name_list;    /* $LISTEN_FDNAMES, cut up in place */
  const char **names; /* listen_fds of them */
};

/* A decimal number without sign or anything behind it; `otherwise` for all
 * that is none. */
static uint64_t read_number(const char *text, uint64_t otherwise) {
  char *end;

  if (text == NULL || *text < '0' || *text > '9')
    return otherwise;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  return errno == 0 && *end == '\0' ? number : otherwise;
}

/* Whether this variable holds our process id. */
static bool is_ours(const char *pid, bool when_unset) {
  if (pid == NULL)
    return when_unset;
  return read_number(pid, 0) == (uint64_t)getpid();
}

/* An absolute path, or '@' and a name in the abstract namespace. Whatever else
 * systemd may offer some day is not understood, and so nobody is notified. */
static void open_socket(tide_notify *notify, const char *path) {
  size_t length = path == NULL ? 0 : strlen(path);

  if (length < 2 || length >= sizeof notify->address.sun_path ||
      (path[0] != '/' && path[0] != '@'))
    return;
  notify->address.sun_family = AF_UNIX;
  memcpy(notify->address.sun_path, path, length);
  if (path[0] == '@')
    notify->address.sun_path[0] = '\0'; /* and its length ends the name */
  else
    length++;
  notify->address_length =
      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void read_watchdog(tide_notify *notify) {
  uint64_t usec = read_number(getenv("WATCHDOG_USEC"), 0);

  if (is_ours(getenv("WATCHDOG_PID"), true) && usec <= UINT64_MAX / 1000)
    notify->watchdog_interval = usec * 1000 / 2;
}

/* Makes an inherited descriptor like one of our own. False: it is not open. */
static bool adopt(int fd) {
  int flags = fcntl(fd, F_GETFD);
  int status = fcntl(fd, F_GETFL);

  return flags >= 0 && status >= 0 &&
         fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == 0 &&
         fcntl(fd, F_SETFL, status | O_NONBLOCK) == 0;
}

/* The names are separated by colons; a missing one is "". */
static int read_names(tide_notify *notify, const char *list) {
  size_t count = (size_t)notify->listen_fds;

  notify->name_list = strdup(list == NULL ? "" : list);
  notify->names = calloc(count, sizeof *notify->names);
  if (notify->name_list == NULL || notify->names == NULL)
    return UV_ENOMEM;
  char *rest = notify->name_list;
  for (size_t i = 0; i < count; i++) {
    const char *name = strsep(&rest, ":");
    notify->names[i] = name == NULL ? "" : name;
  }
  return 0;
}

static int read_listen_fds(tide_notify *notify) {
  uint64_t offered = read_number(getenv("LISTEN_FDS"), 0);

  if (!is_ours(getenv("LISTEN_PID"), false))
    return 0;
  while ((uint64_t)notify->listen_fds < offered &&
         adopt(FIRST_LISTEN_FD + notify->listen_fds))
    notify->listen_fds++;
  if (notify->listen_fds == 0)
    return 0;
  return read_names(notify, getenv("LISTEN_FDNAMES"));
}

static void unset_variables(void) {
  static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",
                                      "WATCHDOG_PID",  "LISTEN_FDS",
                                      "LISTEN_PID",    "LISTEN_FDNAMES"};

  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    unsetenv(names[i]);
}

int tide_notify_open(tide_notify **out) {
  tide_notify *notify = calloc(1, sizeof *notify);

  *out = NULL;
  if (notify == NULL)
    return UV_ENOMEM;
  notify->fd = -1;
  open_socket(notify, getenv("NOTIFY_SOCKET"));
  read_watchdog(notify);
  int err = read_listen_fds(notify);
  unset_variables();
  if (err != 0) {
    tide_notify_close(notify);
    return err;
  }
  *out = notify;
  return 0;
}

void tide_notify_after_fork(tide_notify *notify) {
  if (notify->fd >= 0)
    close(notify->fd);
  notify->fd = -1;
}

void tide_notify_close(tide_notify *notify) {
  if (notify == NULL)
    return;
  if (notify->fd >= 0)
    close(notify->fd);
  free(notify->names);
  free(notify->name_list);
  free(notify);
}

bool tide_notify_active(const tide_notify *notify) {
  return notify->fd >= 0;
}

int tide_notify_send(tide_notify *notify, const char *lines) {
  ssize_t n;

  if (notify->fd < 0)
    return 0;
  do {
    n = sendto(notify->fd, lines, strlen(lines), MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&notify->address,
               notify->address_length);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : 0;
}

void tide_notify_mute(tide_notify *notify) {
  if (notify->fd >= 0)
    close(notify->fd);
  notify->fd = -1;
}

uint64_t tide_notify_watchdog_interval(const tide_notify *notify) {
  return notify->watchdog_interval;
}

int tide_notify_listen_fds(const tide_notify *notify) {
  return notify->listen_fds;
}

int tide_notify_listen_fd(const tide_notify *notify, int index,
                          const char **name) {
  if (index < 0 || index >= notify->listen_fds)
    return UV_EINVAL;
  if (name != NULL)
    *name = notify->names[index];
  return FIRST_LISTEN_FD + index;
}
