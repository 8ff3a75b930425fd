/* control: Unix sockets by which processes of one user talk to a host.
 *
 * Mechanism only: a socket that only its owner can reach, who is at the other
 * end, lines in both directions, and descriptors that travel with them. What
 * the lines say is Lua's (lua/moontide/control.lua). The room is made when it
 * is first used; its handles keep no loop alive. [loop]
 */
#ifndef TIDE_CONTROL_H
#define TIDE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>
#include <uv.h>

typedef struct tide_control tide_control;

enum {
  TIDE_CONTROL_LINE = 1 << 20, /* longer ones end the connection */
  TIDE_CONTROL_FDS = 64,       /* with one line */
  TIDE_CONTROL_CONNS = 64, /* clients at once; more are told so and closed */
};

/* Why nothing more is read from a connection that still can be written to. */
typedef enum tide_control_over {
  TIDE_CONTROL_ENDED,    /* the other side has closed its direction */
  TIDE_CONTROL_TOO_LONG, /* a line has no end */
} tide_control_over;

/* Connections are named by numbers that never come again, so that a stale one
 * is harmless. */
typedef struct tide_control_handlers {
  void *arg;
  void (*accepted)(void *arg, uint32_t id, uid_t uid, pid_t pid);
  void (*line)(void *arg, uint32_t id, const char *text, size_t length);
  /* Nothing more will be read; who is told ends the connection when it has said
   * what it has to say. NULL: it is closed at once. */
  void (*over)(void *arg, uint32_t id, tide_control_over why);
  /* The other side is gone; not called after tide_control_end. */
  void (*closed)(void *arg, uint32_t id);
} tide_control_handlers;

/* Makes the room; opens nothing. 0 or UV_ENOMEM. */
int tide_control_open(tide_control **out, uv_loop_t *loop,
                      const tide_control_handlers *handlers);
/* Closes everything. The memory goes with the last close callback; the caller
 * runs the loop dry. */
void tide_control_close(tide_control *control);

/* In a child: closes what the loop has no handle for. */
void tide_control_after_fork(tide_control *control);

/* Who can get at the socket: its user alone, who else comes is stopped by the
 * directory; or anybody, and the handler looks who it is. */
typedef enum tide_control_access {
  TIDE_CONTROL_PRIVATE,
  TIDE_CONTROL_SHARED,
} tide_control_access;

/* Whether the directory is one that nobody else can reach into (private), or
 * change (shared); `make`: it is made if need be. 0, or a negative libuv error
 * with a sentence. */
int tide_control_directory(const char *path, tide_control_access access,
                           bool make, char *error, size_t size);
/* Where control sockets are unless something else is said, for who cannot ask
 * Lua (lua/moontide/control_files.lua): in what systemd or the session gives,
 * else in /tmp. */
void tide_control_place(char *out, size_t size);
/* What is opened while a socket is bound; negative: nothing. A child that is
 * made meanwhile finds it here. */
typedef struct tide_binding {
  int lock; /* of the directory; closed again */
  int fd;
} tide_binding;
/* Binds and listens there, in a directory that was found right; waits for
 * nothing. 0, or a negative libuv error with a sentence: UV_EBUSY while others
 * bind in the directory. Not for the loop's thread (fork.h). */
int tide_control_bind(const struct sockaddr_un *address, const char *directory,
                      tide_binding *binding, char *error, size_t size);
/* Listens in such a directory. 0, or a negative libuv error with a sentence:
 * UV_EALREADY while it listens, and for a turn of the loop behind that. */
int tide_control_listen(tide_control *control, const char *directory,
                        const char *file, tide_control_access access,
                        char *error, size_t size);
/* Listens no longer, and removes the file if it still is ours. */
void tide_control_unlisten(tide_control *control);

/* Connects. 0, or a negative libuv error: UV_ECONNREFUSED is a file that was
 * left behind. */
int tide_control_connect(tide_control *control, const char *path, uint32_t *id);
/* Who is at the other end. False: there is no such connection. */
bool tide_control_peer(const tide_control *control, uint32_t id, uid_t *uid,
                       pid_t *pid);
/* Sends bytes (a line, with its end), and descriptors, which stay the caller's.
 * 0, or a negative libuv error; without memory for the rest of what was sent in
 * part, the connection is closed. */
int tide_control_send(tide_control *control, uint32_t id, const char *data,
                      size_t length, const int *fds, size_t count);
/* How many bytes wait for the other side to read; `sent`: how many have left
 * since the beginning, by which one sees whether it reads at all. */
size_t tide_control_queued(const tide_control *control, uint32_t id,
                           uint64_t *sent);
/* Whether the other side has closed both directions: of a connection of which
 * nothing is read any more. */
bool tide_control_gone(const tide_control *control, uint32_t id);
/* Descriptors that have come; they are the caller's from now on. */
size_t tide_control_take(tide_control *control, uint32_t id, int *fds,
                         size_t most);
/* Closes a connection. */
void tide_control_end(tide_control *control, uint32_t id);

#endif
