/* control_inside: what control.c (connections) and control_listen.c (the socket
 * they come by) share. */
#ifndef TIDE_CONTROL_INSIDE_H
#define TIDE_CONTROL_INSIDE_H

#include <sys/un.h>

#include "control.h"
#include "owner.h"

typedef struct control_conn {
  tide_owner owner; /* first: the handle points here */
  struct control_conn *next;
  tide_control *control;
  uv_poll_t poll;
  int fd;
  uint32_t id;
  char *in; /* received, not a whole line yet */
  size_t in_length;
  size_t in_capacity;
  char *out; /* the socket was full */
  size_t out_length;
  size_t out_capacity;
  uint64_t sent;             /* bytes that have left */
  int fds[TIDE_CONTROL_FDS]; /* received, not taken */
  size_t fd_count;
  bool over; /* nothing more is read */
} control_conn;

struct tide_control {
  tide_owner owner; /* first: the handle points here */
  uv_loop_t *loop;
  tide_control_handlers handlers;
  uv_poll_t poll;
  bool poll_open;   /* until its close callback */
  int fd;           /* listens; -1: not */
  int spare;        /* to accept with when there are no descriptors left */
  bool deaf;        /* there was not even that one: until somebody leaves */
  uv_timer_t again; /* ... or until this rings: somebody else may have */
  struct sockaddr_un at; /* where */
  uint64_t inode;
  uint64_t device;
  control_conn *conns;
  uint32_t conn_count;
  uint32_t last_id;
  int handles; /* open ones */
  bool closing;
};

/* Takes the descriptor over; NULL when that fails. */
control_conn *tide_control__add(tide_control *control, int fd);
/* A connection has ended: there is a descriptor again. */
void tide_control__left(tide_control *control);
/* Removes the file of the listening socket, if it still is ours. */
void tide_control__unlink(tide_control *control);

#endif
