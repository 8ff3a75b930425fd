/* control_listen: the socket of a host that others find by its file.
 *
 * The directory is the first gate: it must be ours, and nobody else may enter
 * it. The file's mode is the second, who connects (SO_PEERCRED) the third. With
 * shared access others enter and connect, but change nothing; the third gate is
 * then the only one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_inside.h"
#include "fork.h"
#include "unix_path.h"

enum { ACCEPTS_PER_TURN = 8, LOCK_TRIES = 20, DEAF_MS = 1000 };

static int fail(char *error, size_t size, const char *what, const char *where,
                const char *why, int code) {
  snprintf(error, size, "%s %s: %s", what, where,
           why[0] != '\0' ? why : uv_strerror(code));
  return code;
}

/* A new one; chmod, for the umask may have taken the bits of others. */
static int make_directory(const char *path, tide_control_access access) {
  if (mkdir(path, S_IRWXU) != 0)
    return errno == EEXIST ? 0 : uv_translate_sys_error(errno);
  if (access == TIDE_CONTROL_SHARED && chmod(path, 0711) != 0)
    return uv_translate_sys_error(errno);
  return 0;
}

int tide_control_directory(const char *path, tide_control_access access,
                           bool make, char *error, size_t size) {
  bool shared = access == TIDE_CONTROL_SHARED;
  struct stat st;
  char why[128];
  int code = make ? make_directory(path, access) : 0;
  if (code != 0)
    return fail(error, size, "cannot make the directory", path, "", code);
  if (lstat(path, &st) != 0)
    return fail(error, size, "the directory", path, "",
                uv_translate_sys_error(errno));
  if (!S_ISDIR(st.st_mode))
    return fail(error, size, "the directory", path, "is not a directory",
                UV_ENOTDIR);
  snprintf(why, sizeof why, "belongs to user %u, not to user %u",
           (unsigned)st.st_uid, (unsigned)geteuid());
  if (st.st_uid != geteuid())
    return fail(error, size, "the directory", path, why, UV_EPERM);
  snprintf(why, sizeof why, "its mode is %04o: others can %s it, not %s",
           (unsigned)(st.st_mode & 07777), shared ? "write to" : "enter",
           shared ? "0711" : "0700");
  if ((st.st_mode & (shared ? 022 : 077)) != 0)
    return fail(error, size, "the directory", path, why, UV_EPERM);
  return 0;
}

/* What systemd or the session gives may be a list; an absolute path counts. */
static bool first_of(const char *name, char *out, size_t size) {
  const char *list = getenv(name);
  int length = list != NULL ? (int)strcspn(list, ":") : 0;
  if (length == 0 || list[0] != '/')
    return false;
  snprintf(out, size, "%.*s/moontide", length, list);
  return true;
}

void tide_control_place(char *out, size_t size) {
  if (!first_of("RUNTIME_DIRECTORY", out, size) &&
      !first_of("XDG_RUNTIME_DIR", out, size))
    snprintf(out, size, "/tmp/moontide-%u", (unsigned)geteuid());
}

static int lock_file(const char *directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/.lock", directory);
  int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  return fd >= 0 ? fd : uv_translate_sys_error(errno);
}

static bool locks(int fd) {
  return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Those who bind in the directory do it one after the other: what one has found
 * left behind, another may have bound before it is removed. The lock is held
 * for microseconds. */
static int lock(const char *directory) {
  struct timespec pause = {.tv_nsec = 1000000};
  int fd = lock_file(directory), tries = LOCK_TRIES;
  while (fd >= 0 && !locks(fd)) {
    if (--tries <= 0) {
      close(fd);
      return UV_EBUSY;
    }
    nanosleep(&pause, NULL);
  }
  return fd;
}

/* The same place under a name that nobody looks for, as long. */
static void hide(const struct sockaddr_un *address,
                 struct sockaddr_un *hidden) {
  *hidden = *address;
  hidden->sun_path[strlen(hidden->sun_path) - 1] = '~';
}

/* Bound and listening under one name, then given the other: who finds the file
 * is never refused, which would mean to him that its process has died. Under
 * the lock, so that what is there under the first name was left behind. */
static int publish(int fd, const struct sockaddr_un *address) {
  struct sockaddr_un hidden;
  hide(address, &hidden);
  unlink(hidden.sun_path);
  if (bind(fd, (const struct sockaddr *)&hidden, sizeof hidden) != 0)
    return uv_translate_sys_error(errno);
  if (listen(fd, TIDE_CONTROL_CONNS) == 0 &&
      rename(hidden.sun_path, address->sun_path) == 0)
    return 0;
  int code = uv_translate_sys_error(errno);
  unlink(hidden.sun_path);
  return code;
}

static int new_socket(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return fd >= 0 ? fd : uv_translate_sys_error(errno);
}

/* The mode that the file will have, less the umask, which is the whole
 * process's: it is left alone. */
static int listen_at(int fd, const struct sockaddr_un *address) {
  return fchmod(fd, S_IRUSR | S_IWUSR) != 0 ? uv_translate_sys_error(errno)
                                            : publish(fd, address);
}

static int open_socket(const struct sockaddr_un *address) {
  int fd = new_socket();
  int code = fd >= 0 ? listen_at(fd, address) : fd;
  if (code == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return code;
}

/* Under the lock. */
static int bind_aside(tide_binding *binding, const struct sockaddr_un *address,
                      char *why, size_t size) {
  int code = tide_unix_make_way(address, why, size);
  if (code != 0)
    return code;
  bool held = tide_fork_hold_off();
  binding->fd = new_socket();
  tide_fork_go_ahead(held);
  code = binding->fd >= 0 ? listen_at(binding->fd, address) : binding->fd;
  if (code != 0)
    tide_fork_close(&binding->fd);
  return code;
}

int tide_control_bind(const struct sockaddr_un *address, const char *directory,
                      tide_binding *binding, char *error, size_t size) {
  char why[256] = "";
  bool held = tide_fork_hold_off();
  int code = binding->lock = lock_file(directory);
  tide_fork_go_ahead(held);
  if (binding->lock >= 0)
    code = locks(binding->lock) ? bind_aside(binding, address, why, sizeof why)
                                : UV_EBUSY;
  tide_fork_close(&binding->lock);
  return code == 0
             ? 0
             : fail(error, size, "cannot open", address->sun_path, why, code);
}

static void refuse(int fd) {
  static const char text[] =
      "{\"type\":\"error\",\"message\":\"too many connections\"}\n";
  send(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  close(fd);
}

static void accepted(tide_control *control, int fd) {
  struct ucred peer = {0};
  socklen_t length = sizeof peer;
  if (control->conn_count >= TIDE_CONTROL_CONNS) {
    refuse(fd);
    return;
  }
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    close(fd);
    return;
  }
  control_conn *conn = tide_control__add(control, fd);
  if (conn != NULL && control->handlers.accepted != NULL)
    control->handlers.accepted(control->handlers.arg, conn->id, peer.uid,
                               peer.pid);
}

static int accept_one(int fd) {
  return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void on_again(uv_timer_t *timer);

/* A process out of descriptors is one that somebody wants to look into: there
 * is one kept for him. Then the socket waits until he has left, or for a while
 * (also where it is memory that is short): polled on, it would spin. */
static int accept_with_spare(tide_control *control) {
  int fd = -1;
  if (control->spare >= 0) {
    close(control->spare);
    control->spare = -1;
    fd = accept_one(control->fd);
  }
  if (fd < 0) {
    control->deaf = true;
    uv_poll_stop(&control->poll);
    uv_timer_start(&control->again, on_again, DEAF_MS, 0);
  }
  return fd;
}

static void keep_spare(tide_control *control) {
  if (control->spare < 0)
    control->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_ready(uv_poll_t *handle, int status, int events) {
  tide_control *control = handle->data;
  (void)events;
  for (int i = 0; status == 0 && i < ACCEPTS_PER_TURN && control->fd >= 0;
       i++) {
    int fd = accept_one(control->fd);
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED)
      fd = accept_with_spare(control);
    if (fd < 0)
      return;
    accepted(control, fd);
  }
}

void tide_control__left(tide_control *control) {
  if (control->fd < 0)
    return;
  keep_spare(control);
  if (!control->deaf)
    return;
  control->deaf = false;
  uv_timer_stop(&control->again);
  uv_poll_start(&control->poll, UV_READABLE, on_ready);
}

static void on_again(uv_timer_t *timer) {
  tide_control__left(timer->data);
}

static int watch(tide_control *control, int fd) {
  int code = uv_poll_init(control->loop, &control->poll, fd);
  if (code != 0)
    return code;
  control->fd = fd;
  control->poll_open = true;
  control->poll.data = control;
  uv_timer_init(control->loop, &control->again);
  control->again.data = control;
  control->handles += 2;
  control->deaf = false;
  keep_spare(control);
  uv_unref((uv_handle_t *)&control->poll);
  uv_poll_start(&control->poll, UV_READABLE, on_ready);
  return 0;
}

/* Under the lock. */
static int bind_there(tide_control *control, tide_control_access access,
                      char *why, size_t size) {
  int code = tide_unix_make_way(&control->at, why, size);
  int fd = code == 0 ? open_socket(&control->at) : code;
  if (fd < 0)
    return fd;
  tide_unix_note(control->at.sun_path, &control->inode, &control->device);
  /* Nobody else can put a link there. */
  if (access == TIDE_CONTROL_SHARED && chmod(control->at.sun_path, 0666) != 0)
    code = uv_translate_sys_error(errno);
  if (code == 0)
    code = watch(control, fd);
  if (code != 0) {
    tide_control__unlink(control);
    close(fd);
  }
  return code;
}

int tide_control_listen(tide_control *control, const char *directory,
                        const char *file, tide_control_access access,
                        char *error, size_t size) {
  char path[4096];
  char why[256] = "";
  snprintf(path, sizeof path, "%s/%s", directory, file);
  if (control->poll_open)
    return fail(error, size, "control socket", path, "there is one already",
                UV_EALREADY);
  int code = tide_unix_address(path, &control->at, why, sizeof why);
  if (code != 0)
    return fail(error, size, "cannot open the control socket", path, why, code);
  code = tide_control_directory(directory, access, true, error, size);
  if (code != 0)
    return code;
  int held = lock(directory);
  code = held < 0 ? held : bind_there(control, access, why, sizeof why);
  if (held >= 0)
    close(held);
  return code == 0 ? 0
                   : fail(error, size, "cannot open the control socket", path,
                          why, code);
}

/* As long as the socket is open, no other file can get its inode. */
void tide_control__unlink(tide_control *control) {
  if (tide_unix_is_still(control->at.sun_path, control->inode, control->device))
    unlink(control->at.sun_path);
  control->inode = 0;
}

int tide_control_connect(tide_control *control, const char *path,
                         uint32_t *id) {
  struct sockaddr_un address;
  char why[128];
  int code = tide_unix_address(path, &address, why, sizeof why);
  if (code != 0)
    return code;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return uv_translate_sys_error(errno);
  /* Between Unix sockets it is there at once, or not at all. */
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    code = uv_translate_sys_error(errno);
    close(fd);
    return code;
  }
  control_conn *conn = tide_control__add(control, fd);
  if (conn == NULL)
    return UV_ENOMEM;
  *id = conn->id;
  return 0;
}
