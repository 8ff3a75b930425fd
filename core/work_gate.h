/* work_gate: the embedding program's own work, counted from any thread.
 *
 * By kind, under one mutex, with a gate that a shutdown closes: after that no
 * work begins, so what a drain waits for only shrinks.
 */
#ifndef TIDE_WORK_GATE_H
#define TIDE_WORK_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

typedef struct tide_work_kind tide_work_kind;

enum { TIDE_WORK_NAME = 64 }; /* with its end */

typedef struct tide_work_count {
  uint64_t active;
  char name[TIDE_WORK_NAME];
} tide_work_count;

typedef struct tide_work_gate {
  uv_mutex_t lock;
  bool open; /* the mutex exists */
  bool closed;
  bool waited_for;  /* `wake` is wanted when nothing is left */
  uv_async_t *wake; /* sent then */
  uint64_t active;  /* of all kinds */
  tide_work_kind *kinds;
} tide_work_gate;

/* 0 or a libuv error. [loop] */
int tide_work_gate_init(tide_work_gate *gate, uv_async_t *wake);
void tide_work_gate_destroy(tide_work_gate *gate); /* [loop] */

/* 0, TIDE_EDRAINING, TIDE_EINVAL (a bad name), UV_ENOMEM. [any] */
int tide_work_gate_enter(tide_work_gate *gate, const char *name);
/* 0, or TIDE_EINVAL when there is none of this kind. [any] */
int tide_work_gate_leave(tide_work_gate *gate, const char *name);

/* No more from now on. [loop] */
void tide_work_gate_close(tide_work_gate *gate);
/* Nor is `wake` touched any more. [loop] */
void tide_work_gate_shut(tide_work_gate *gate);
/* How much is left; above 0, `wake` is sent when nothing is. [loop] */
uint64_t tide_work_gate_wait(tide_work_gate *gate);
/* What there is now. [any] */
uint64_t tide_work_gate_active(tide_work_gate *gate);
/* The kinds of which there is some, so many at most; returns how many were
 * written. [any] */
size_t tide_work_gate_list(tide_work_gate *gate, tide_work_count *out,
                           size_t most);
/* "2 match, 1 session" as far as there is room. [any] */
void tide_work_gate_describe(tide_work_gate *gate, char *out, size_t size);

#endif
