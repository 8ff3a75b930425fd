/* interrupt_inside: what the files of the interrupt room share.
 *
 * The fields are in three groups by who may touch them. "Handler" is the poke's
 * signal handler; it runs on the loop thread between any two of its
 * instructions, so what it reads is atomic, too, though no other thread does.
 */
#ifndef TIDE_INTERRUPT_INSIDE_H
#define TIDE_INTERRUPT_INSIDE_H

#include <time.h>

#include "interrupt.h"

/* The answer to a question of the watchdog's. It counts up `asked`; the handler
 * writes `what` and stores `named`, the hook writes `at` and stores `seen`. Who
 * has answered writes no more before the next question, and the watchdog asks
 * no other while it reads. */
typedef struct tide_note {
  _Atomic uint32_t asked;
  _Atomic uint32_t named;
  _Atomic uint32_t seen;
  _Atomic bool looking;
  _Atomic uint64_t id;
  _Atomic uint64_t since;
  char what[128];
  char at[160];
} tide_note;

struct tide_interrupt {
  /* Written by the loop, read by the watchdog. */
  _Atomic uint64_t running;  /* id of the running slice */
  _Atomic uint64_t deadline; /* its deadline */
  _Atomic uint64_t last_id;  /* ids count up from 1 */
  _Atomic uint64_t count;

  /* Written by the watchdog, read by the handler and the hook. */
  _Atomic uint64_t forced;

  /* Set by the watchdog, cleared by the handler: a poke is on its way.
   * Real-time signals queue up, and a handler that has a deep stack to walk
   * would else find the next ones waiting for ever. */
  _Atomic bool poked;

  /* The loop and the handler. */
  _Atomic(tide_slice *) slice;
  _Atomic(tide_frame *) top;
  _Atomic bool armed; /* a frame of the chain may be hooked: do not take the
                         short way through push and pop */
  _Atomic bool busy;  /* the loop is at work on hooks: the handler keeps out
                         and the next poke, 2 ms later, finds its work */

  tide_note note;
  tide_describe_fn describe;
  void *describe_arg;

  timer_t timer; /* pokes; the watchdog sets it */
  bool has_timer;
  struct {
    timer_t timer; /* set by the loop and the handler */
    bool has_timer;
    lua_Hook hook;
    _Atomic uint64_t id; /* of the slice */
    _Atomic uint64_t at;
    _Atomic uint64_t set_for; /* the timer, last */
  } hasten;                   /* interrupt_hasten.c */
  tide_alarm *alarm;
  pthread_t thread;
  tide_interrupt *next; /* of the same thread */
};

/* interrupt_signal.c: claims the signal and lists the interrupt for its
 * handler; returns 0 or a negative libuv error. */
int tide_interrupt__listen(tide_interrupt *interrupt);
void tide_interrupt__unlisten(tide_interrupt *interrupt);
/* A timer that pokes this thread; false: there is none to be had. */
bool tide_interrupt__new_timer(timer_t *timer);
struct timespec tide_interrupt__timespec(uint64_t ns);

/* interrupt_hasten.c */

/* Sets the hook that was asked for to come, if its time has. [handler] */
void tide_interrupt__hasten(tide_interrupt *interrupt);
/* Whether the state has that hook. [handler] */
bool tide_interrupt__hastens(const tide_interrupt *interrupt, lua_State *L);
void tide_interrupt__end_hasten(tide_interrupt *interrupt);

/* interrupt_hook.c */

/* Hooks the chain of the running slice if that is late and the present step
 * allows it. [handler] */
void tide_interrupt__arm(tide_interrupt *interrupt);
/* Hooks one frame that has just become the innermost, likewise. */
void tide_interrupt__arm_frame(tide_interrupt *interrupt, tide_frame *frame);
/* The running slice goes on with the steps that its inner or outer one has
 * reached, if it is late as well: otherwise a loop of entries would make each
 * begin with the first step again. */
void tide_interrupt__carry(tide_interrupt *interrupt, tide_slice *running,
                           const tide_slice *from);
/* Gives a frame that has left the chain its old hook back. */
void tide_interrupt__restore(tide_interrupt *interrupt, tide_frame *frame);

/* interrupt_note.c: answers, if something is asked. [handler] */
void tide_interrupt__note(tide_interrupt *interrupt);
/* interrupt_hook.c: the interrupt that L stands under, or NULL. */
tide_interrupt *tide_interrupt__of(lua_State *L);

/* interrupt_trace.c: pushes on L, the running state, its traceback and those of
 * the states that resumed it. */
void tide_interrupt__push_trace(lua_State *L, const tide_frame *innermost,
                                const tide_frame *outermost);

#endif
