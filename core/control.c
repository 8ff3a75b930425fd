#include "control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_inside.h"

enum { READ = 4096 }; /* bytes at once, unless a line is longer */

/* ---- connections -----------------------------------------------------------
 */

static control_conn *find(const tide_control *control, uint32_t id) {
  control_conn *conn = control->conns;
  while (conn != NULL && conn->id != id)
    conn = conn->next;
  return conn;
}

static void release(tide_control *control) {
  if (--control->handles == 0 && control->closing)
    free(control);
}

static void on_conn_closed(uv_handle_t *handle) {
  control_conn *conn = handle->data;
  tide_control *control = conn->control;
  free(conn->in);
  free(conn->out);
  free(conn);
  release(control);
}

static void end_conn(control_conn *conn) {
  control_conn **at = &conn->control->conns;
  while (*at != conn)
    at = &(*at)->next;
  *at = conn->next;
  conn->control->conn_count--;
  for (size_t i = 0; i < conn->fd_count; i++)
    close(conn->fds[i]);
  uv_close((uv_handle_t *)&conn->poll, on_conn_closed);
  close(conn->fd);
  conn->fd = -1; /* a loop over it ends here */
  tide_control__left(conn->control);
}

static void lost(control_conn *conn) {
  tide_control *control = conn->control;
  uint32_t id = conn->id;
  end_conn(conn);
  if (control->handlers.closed != NULL)
    control->handlers.closed(control->handlers.arg, id);
}

/* What a long line has needed goes back behind it: what comes next is taken in
 * small pieces again, so that a turn of the loop stays short. */
static void shrink(control_conn *conn) {
  char *smaller;
  if (conn->in_capacity <= READ || conn->in_length >= READ)
    return;
  smaller = realloc(conn->in, READ);
  if (smaller == NULL)
    return;
  conn->in = smaller;
  conn->in_capacity = READ;
}

/* Copies a line out, for its handler may end the connection. False: nothing of
 * it is left. */
static bool hand_over(control_conn *conn, const char *text, size_t length) {
  tide_control *control = conn->control;
  uint32_t id = conn->id;
  char *line = malloc(length + 1);
  if (line == NULL) {
    lost(conn);
    return false;
  }
  memcpy(line, text, length);
  if (control->handlers.line != NULL)
    control->handlers.line(control->handlers.arg, id, line, length);
  free(line);
  return !control->closing && find(control, id) == conn;
}

/* Hands over each whole line. False: nothing of the connection is left. */
static bool deliver(control_conn *conn) {
  size_t from = 0;
  const char *end;
  while ((end = memchr(conn->in + from, '\n', conn->in_length - from)) !=
         NULL) {
    const char *text = conn->in + from;
    from += (size_t)(end - text) + 1;
    if (!hand_over(conn, text, (size_t)(end - text)))
      return false;
  }
  conn->in_length -= from;
  memmove(conn->in, conn->in + from, conn->in_length);
  shrink(conn);
  return true;
}

static bool make_room(control_conn *conn) {
  size_t capacity = conn->in_capacity;
  if (conn->in_length < capacity)
    return true;
  if (capacity >= TIDE_CONTROL_LINE)
    return false;
  capacity = capacity == 0 ? READ : capacity * 2;
  char *grown = realloc(conn->in, capacity);
  if (grown == NULL)
    return false;
  conn->in = grown;
  conn->in_capacity = capacity;
  return true;
}

/* More than there is room for would be closed by the kernel, and the two sides
 * would count differently: then it is over. */
static bool keep_fds(control_conn *conn, struct msghdr *message) {
  bool whole = (message->msg_flags & MSG_CTRUNC) == 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL;
       c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      if (conn->fd_count < TIDE_CONTROL_FDS) {
        conn->fds[conn->fd_count++] = fd;
      } else {
        close(fd);
        whole = false;
      }
    }
  }
  return whole;
}

static ssize_t receive(control_conn *conn) {
  _Alignas(
      struct cmsghdr) char control[CMSG_SPACE(TIDE_CONTROL_FDS * sizeof(int))];
  struct iovec part = {conn->in + conn->in_length,
                       conn->in_capacity - conn->in_length};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control};
  ssize_t got = recvmsg(conn->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got > 0 && !keep_fds(conn, &message)) {
    errno = EPROTO;
    return -1;
  }
  return got;
}

static bool is_gone(const control_conn *conn) {
  struct pollfd at = {.fd = conn->fd};
  return poll(&at, 1, 0) > 0 && (at.revents & (POLLHUP | POLLERR)) != 0;
}

static void poll_conn(control_conn *conn);

/* It must not be polled for what is never taken: that would spin. */
static void over(control_conn *conn, tide_control_over why) {
  tide_control *control = conn->control;
  if (control->handlers.over == NULL) {
    lost(conn);
    return;
  }
  conn->over = true;
  poll_conn(conn);
  control->handlers.over(control->handlers.arg, conn->id, why);
}

/* Who closes its direction alone may have left out the end of its last line.
 * Half a line of one that is gone is nobody's. */
static void ended(control_conn *conn) {
  if (is_gone(conn)) {
    lost(conn);
    return;
  }
  if (conn->in_length > 0 && conn->control->handlers.over != NULL) {
    conn->in[conn->in_length++] = '\n'; /* make_room has left a byte */
    if (!deliver(conn))
      return;
  }
  over(conn, TIDE_CONTROL_ENDED);
}

static void read_some(control_conn *conn) {
  if (!make_room(conn)) {
    over(conn, TIDE_CONTROL_TOO_LONG);
    return;
  }
  ssize_t got = receive(conn);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (got < 0) {
    lost(conn);
  } else if (got == 0) {
    ended(conn);
  } else {
    conn->in_length += (size_t)got;
    deliver(conn);
  }
}

static void write_some(control_conn *conn) {
  ssize_t sent =
      send(conn->fd, conn->out, conn->out_length, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    lost(conn);
    return;
  }
  if (sent > 0) {
    conn->sent += (uint64_t)sent;
    conn->out_length -= (size_t)sent;
    memmove(conn->out, conn->out + sent, conn->out_length);
  }
  if (conn->out_length == 0) {
    free(conn->out);
    conn->out = NULL;
    conn->out_capacity = 0;
  }
  poll_conn(conn);
}

static void on_conn_ready(uv_poll_t *handle, int status, int events) {
  control_conn *conn = handle->data;
  uint32_t id = conn->id;
  tide_control *control = conn->control;
  if (status != 0) {
    lost(conn);
    return;
  }
  if ((events & UV_READABLE) && !conn->over)
    read_some(conn);
  if ((events & UV_WRITABLE) && !control->closing && find(control, id) == conn)
    write_some(conn);
}

static void poll_conn(control_conn *conn) {
  int events =
      (conn->over ? 0 : UV_READABLE) | (conn->out_length > 0 ? UV_WRITABLE : 0);
  uv_poll_start(&conn->poll, events, on_conn_ready);
}

control_conn *tide_control__add(tide_control *control, int fd) {
  control_conn *conn = calloc(1, sizeof *conn);
  if (conn == NULL || uv_poll_init(control->loop, &conn->poll, fd) != 0) {
    free(conn);
    close(fd);
    return NULL;
  }
  conn->owner = (tide_owner){TIDE_OWNER_MAGIC, "control connection"};
  conn->control = control;
  conn->fd = fd;
  conn->id = ++control->last_id;
  conn->poll.data = conn;
  conn->next = control->conns;
  control->conns = conn;
  control->conn_count++;
  control->handles++;
  uv_unref((uv_handle_t *)&conn->poll);
  poll_conn(conn);
  return conn;
}

bool tide_control_peer(const tide_control *control, uint32_t id, uid_t *uid,
                       pid_t *pid) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  const control_conn *conn = find(control, id);
  if (conn == NULL ||
      getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return false;
  *uid = peer.uid;
  *pid = peer.pid;
  return true;
}

/* ---- sending ---------------------------------------------------------------
 */

static ssize_t send_now(int to, const char *data, size_t length, const int *fds,
                        size_t count) {
  _Alignas(
      struct cmsghdr) char control[CMSG_SPACE(TIDE_CONTROL_FDS * sizeof(int))];
  struct iovec part = {(char *)(uintptr_t)data, length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof *fds);
    memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
  }
  return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Twice the room each time: a client that reads nothing has many lines. */
static int queue(control_conn *conn, const char *data, size_t length) {
  size_t wanted = conn->out_length + length;
  if (wanted > conn->out_capacity) {
    size_t capacity =
        wanted > 2 * conn->out_capacity ? wanted : 2 * conn->out_capacity;
    char *grown = realloc(conn->out, capacity);
    if (grown == NULL)
      return UV_ENOMEM;
    conn->out = grown;
    conn->out_capacity = capacity;
  }
  memcpy(conn->out + conn->out_length, data, length);
  conn->out_length = wanted;
  poll_conn(conn);
  return 0;
}

/* Descriptors go with the first byte, so that one cannot come without the
 * other; behind bytes that wait they would overtake them. */
int tide_control_send(tide_control *control, uint32_t id, const char *data,
                      size_t length, const int *fds, size_t count) {
  control_conn *conn = find(control, id);
  ssize_t sent = 0;
  if (conn == NULL)
    return UV_ENOTCONN;
  if (count > TIDE_CONTROL_FDS)
    return UV_E2BIG;
  if (conn->out_length > 0 && count > 0)
    return UV_EAGAIN;
  if (conn->out_length == 0) {
    sent = send_now(conn->fd, data, length, fds, count);
    if (sent < 0 && (count > 0 || (errno != EAGAIN && errno != EINTR)))
      return uv_translate_sys_error(errno);
    if (sent < 0)
      sent = 0;
  }
  conn->sent += (uint64_t)sent;
  if ((size_t)sent == length)
    return 0;
  int code = queue(conn, data + sent, length - (size_t)sent);
  if (code != 0 && sent > 0)
    end_conn(conn); /* half a line would garble the next one */
  return code;
}

size_t tide_control_queued(const tide_control *control, uint32_t id,
                           uint64_t *sent) {
  const control_conn *conn = find(control, id);
  *sent = conn != NULL ? conn->sent : 0;
  return conn != NULL ? conn->out_length : 0;
}

bool tide_control_gone(const tide_control *control, uint32_t id) {
  const control_conn *conn = find(control, id);
  return conn == NULL || is_gone(conn);
}

size_t tide_control_take(tide_control *control, uint32_t id, int *fds,
                         size_t most) {
  control_conn *conn = find(control, id);
  if (conn == NULL)
    return 0;
  size_t count = conn->fd_count < most ? conn->fd_count : most;
  memcpy(fds, conn->fds, count * sizeof *fds);
  conn->fd_count -= count;
  memmove(conn->fds, conn->fds + count, conn->fd_count * sizeof *fds);
  return count;
}

void tide_control_end(tide_control *control, uint32_t id) {
  control_conn *conn = find(control, id);
  if (conn != NULL)
    end_conn(conn);
}

/* ---- the room --------------------------------------------------------------
 */

int tide_control_open(tide_control **out, uv_loop_t *loop,
                      const tide_control_handlers *handlers) {
  tide_control *control = calloc(1, sizeof *control);
  *out = control;
  if (control == NULL)
    return UV_ENOMEM;
  control->owner = (tide_owner){TIDE_OWNER_MAGIC, "control socket"};
  control->loop = loop;
  control->handlers = *handlers;
  control->fd = -1;
  control->spare = -1;
  return 0;
}

static void on_poll_closed(uv_handle_t *handle) {
  tide_control *control = handle->data;
  control->poll_open = false;
  release(control);
}

static void on_again_closed(uv_handle_t *handle) {
  release(handle->data);
}

void tide_control_unlisten(tide_control *control) {
  if (control->fd < 0)
    return;
  uv_close((uv_handle_t *)&control->poll, on_poll_closed);
  uv_close((uv_handle_t *)&control->again, on_again_closed);
  tide_control__unlink(control);
  close(control->fd);
  control->fd = -1;
  if (control->spare >= 0)
    close(control->spare);
  control->spare = -1;
}

void tide_control_after_fork(tide_control *control) {
  if (control->spare >= 0)
    close(control->spare);
  control->spare = -1;
}

void tide_control_close(tide_control *control) {
  if (control == NULL)
    return;
  memset(&control->handlers, 0, sizeof control->handlers);
  while (control->conns != NULL)
    end_conn(control->conns);
  tide_control_unlisten(control);
  control->closing = true;
  if (control->handles == 0)
    free(control);
}
