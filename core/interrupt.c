/* interrupt.c: slices, frames, and what the watchdog sees of them. */
#include "interrupt.h"

#include <stdlib.h>
#include <uv.h>

#include "interrupt_inside.h"

#define LOAD(field)                                                            \
  atomic_load_explicit(&interrupt->field, memory_order_relaxed)
#define STORE(field, value)                                                    \
  atomic_store_explicit(&interrupt->field, (value), memory_order_relaxed)

int tide_interrupt_init(tide_interrupt **out) {
  tide_interrupt *interrupt = calloc(1, sizeof *interrupt);
  int rc;
  *out = NULL;
  if (interrupt == NULL)
    return UV_ENOMEM;
  interrupt->thread = pthread_self();
  rc = tide_interrupt__listen(interrupt);
  if (rc != 0) {
    free(interrupt);
    return rc;
  }
  *out = interrupt;
  return 0;
}

void tide_interrupt_free(tide_interrupt *interrupt) {
  if (interrupt == NULL)
    return;
  tide_interrupt__unlisten(interrupt);
  free(interrupt);
}

/* ---- frames ----------------------------------------------------------- */

/* The frame must be whole before the handler can find it. */
static void link_frame(tide_interrupt *interrupt, tide_frame *frame,
                       lua_State *L) {
  frame->parent = LOAD(top);
  frame->L = L;
  frame->hooked = false;
  atomic_signal_fence(memory_order_release);
  STORE(top, frame);
  atomic_signal_fence(memory_order_acq_rel);
}

/* Once it is off the chain, the handler cannot hook it any more. */
static void unlink_frame(tide_interrupt *interrupt, tide_frame *frame,
                         tide_frame *top) {
  STORE(top, top);
  atomic_signal_fence(memory_order_acq_rel);
  if (__builtin_expect(LOAD(armed), false))
    tide_interrupt__restore(interrupt, frame);
}

void tide_frame_push(tide_interrupt *interrupt, tide_frame *frame,
                     lua_State *L) {
  if (interrupt == NULL)
    return;
  link_frame(interrupt, frame, L);
  if (__builtin_expect(LOAD(armed), false))
    tide_interrupt__arm_frame(interrupt, frame);
}

void tide_frame_pop(tide_interrupt *interrupt, tide_frame *frame) {
  if (interrupt != NULL)
    unlink_frame(interrupt, frame, frame->parent);
}

/* ---- slices ----------------------------------------------------------- */

/* Makes it the running slice, for the handler and for the watchdog. */
static void publish(tide_interrupt *interrupt, tide_slice *slice) {
  uint64_t deadline = slice != NULL ? slice->deadline : 0;
  atomic_signal_fence(memory_order_release);
  STORE(slice, slice);
  STORE(deadline, deadline);
  STORE(running, slice != NULL ? slice->id : 0);
  if (deadline != 0 && interrupt->alarm != NULL)
    tide_alarm_need(interrupt->alarm, deadline);
}

void tide_slice_enter_task(tide_interrupt *interrupt, tide_slice *slice,
                           lua_State *L, uint64_t deadline) {
  if (interrupt == NULL)
    return;
  slice->outer = LOAD(slice);
  slice->id = LOAD(last_id) + 1;
  slice->deadline = deadline;
  slice->kind = NULL;
  slice->spared = 0;
  slice->raises = 0;
  STORE(last_id, slice->id);
  link_frame(interrupt, &slice->frame, L);
  publish(interrupt, slice);
}

void tide_slice_enter(tide_interrupt *interrupt, tide_slice *slice,
                      lua_State *L, uint64_t deadline) {
  tide_slice *outer;
  bool inherits;
  if (interrupt == NULL)
    return;
  outer = LOAD(slice);
  inherits = outer != NULL && outer->deadline != 0 &&
             (deadline == 0 || outer->deadline < deadline);
  tide_slice_enter_task(interrupt, slice, L,
                        inherits ? outer->deadline : deadline);
  if (inherits && outer->raises > 0)
    tide_interrupt__carry(interrupt, slice, outer);
}

void tide_slice_leave(tide_interrupt *interrupt, tide_slice *slice) {
  if (interrupt == NULL)
    return;
  publish(interrupt, slice->outer);
  unlink_frame(interrupt, &slice->frame, slice->frame.parent);
  if (__builtin_expect(slice->raises > 0, false) && slice->outer != NULL)
    tide_interrupt__carry(interrupt, slice->outer, slice);
}

/* ---- questions -------------------------------------------------------- */

bool tide_interrupt_pending(const tide_interrupt *interrupt) {
  const tide_slice *slice = interrupt != NULL ? LOAD(slice) : NULL;
  return slice != NULL && slice->raises > 0;
}

int tide_interrupt_depth(const tide_interrupt *interrupt, int limit) {
  const tide_frame *frame = interrupt != NULL ? LOAD(top) : NULL;
  int depth = 0;
  for (; frame != NULL && depth < limit; frame = frame->parent)
    depth++;
  return depth;
}

uint64_t tide_interrupt_count(const tide_interrupt *interrupt) {
  return interrupt != NULL ? LOAD(count) : 0;
}

void tide_interrupt_running(const tide_interrupt *interrupt,
                            tide_running *running) {
  running->id = LOAD(running);
  running->deadline = LOAD(deadline);
  running->last_id = LOAD(last_id);
}

void tide_interrupt_force(tide_interrupt *interrupt, uint64_t id) {
  STORE(forced, id);
}

void tide_interrupt_set_describe(tide_interrupt *interrupt, tide_describe_fn fn,
                                 void *arg) {
  if (interrupt == NULL)
    return;
  interrupt->describe_arg = arg;
  atomic_signal_fence(memory_order_release);
  interrupt->describe = fn;
}

void tide_interrupt_set_alarm(tide_interrupt *interrupt, tide_alarm *alarm) {
  interrupt->alarm = alarm;
}
