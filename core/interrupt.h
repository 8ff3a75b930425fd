/* interrupt: stopping Lua that runs without awaiting.
 *
 * Every entry into Lua is a *slice*: an lua_State that starts to run and a
 * deadline (0: none). Coroutines that a slice resumes are linked behind it, so
 * the chain of running states is known. When the watchdog sees a slice past its
 * deadline, it sends a signal to the loop thread; the handler hooks every state
 * of the chain; the hook raises `interrupted` in the innermost one.
 *
 * Three steps: raised once, then the hook is off for 10 ms so that cleanup can
 * run, then raised again; from the third raise on (20 ms after the first) the
 * hook stays until the slice has ended, so that no pcall loop outlives it.
 *
 * The signal is only a poke: whether the running slice is late is decided by
 * the handler and again by the hook, both on the loop thread, from the slice
 * that runs at that moment. So no slice is ever stopped for the one before it,
 * and nothing but the loop thread writes deadlines.
 *
 * Nothing is armed while a slice is in time: entering and leaving cost a few
 * stores, no system call.
 */
#ifndef TIDE_INTERRUPT_H
#define TIDE_INTERRUPT_H

#include <lua.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alarm.h"

/* A running state, on the C stack of whoever resumed it. */
typedef struct tide_frame {
  struct tide_frame *parent;
  lua_State *L;
  bool hooked; /* the raising hook is set; below is what it replaced */
  int old_mask;
  int old_count;
  lua_Hook old_hook;
} tide_frame;

typedef struct tide_interrupt tide_interrupt;

/* One for each host that has TIDE_INTERRUPT, made on its loop thread; claims a
 * real-time signal for the process when the first is made. Returns 0,
 * UV_ENOTSUP when no such signal is free, or another libuv error. */
int tide_interrupt_init(tide_interrupt **out);
/* The watchdog that used it must have stopped. [loop] */
void tide_interrupt_free(tide_interrupt *interrupt);

/* Tells a Lua state which interrupt its code stands under, and makes the
 * `interrupted` value. Until then nothing is raised in that state. May raise a
 * Lua error (out of memory). [loop] */
void tide_interrupt_bind(tide_interrupt *interrupt, lua_State *L);
/* For a state that outlives its interrupt. [loop] */
void tide_interrupt_unbind(lua_State *L);

/* A slice: on the C stack of whoever enters Lua. */
typedef struct tide_slice {
  tide_frame frame;
  struct tide_slice *outer;
  uint64_t id;
  uint64_t deadline;
  const char *kind;   /* a literal, set behind the entry, or NULL */
  uint64_t raised_at; /* the first raise */
  unsigned spared;    /* instructions of the library's since it was due */
  unsigned raises;
} tide_slice;

/* A slice begins on this thread: L runs until `deadline` (tide_clock_mono ns,
 * 0: as long as it likes). Slices may nest (a callback that C calls inside a
 * slice); an inner one never gets more time than the outer, and leaving it
 * restores the outer. No-ops for a NULL interrupt. [loop] */
void tide_slice_enter(tide_interrupt *interrupt, tide_slice *slice,
                      lua_State *L, uint64_t deadline);
/* The same for a task that a scheduler resumes: its deadline is its own, since
 * its time is not the scheduler's. [loop] */
void tide_slice_enter_task(tide_interrupt *interrupt, tide_slice *slice,
                           lua_State *L, uint64_t deadline);
void tide_slice_leave(tide_interrupt *interrupt, tide_slice *slice);

/* A coroutine is resumed inside the slice, and has come back. */
void tide_frame_push(tide_interrupt *interrupt, tide_frame *frame,
                     lua_State *L);
void tide_frame_pop(tide_interrupt *interrupt, tide_frame *frame);

/* Whether the running slice is being interrupted: it was raised in. [loop] */
bool tide_interrupt_pending(const tide_interrupt *interrupt);
/* How many states run inside each other, counted up to `limit`. [loop] */
int tide_interrupt_depth(const tide_interrupt *interrupt, int limit);
/* Pushes the `interrupted` value: a table with kind = "interrupted" that
 * cannot be changed; nil in a state that is not bound. */
void tide_interrupt_push_value(lua_State *L);
/* Pushes the traceback of the last interrupted slice, or nil. */
void tide_interrupt_push_traceback(lua_State *L);
/* The frame of a running state that has the raising hook, or NULL: for
 * debug.sethook, which must not remove it. [loop] */
tide_frame *tide_interrupt_hooked(tide_interrupt *interrupt, lua_State *L);
/* A debugger has set its own hook on the state of a hooked frame: keeps that
 * for later and puts the raising hook back. [loop] */
void tide_interrupt_rehook(tide_frame *frame);

/* Whether lua_getinfo "S" tells of a function of the embedded library. */
bool tide_interrupt_is_library(const lua_Debug *ar);
/* For a hook: whether the innermost Lua function is of the embedded library.
 * [loop] */
bool tide_interrupt_in_library(lua_State *L, lua_Debug *ar);
/* For a hook: says where L is, if the watchdog has asked. [loop] */
void tide_interrupt_note_line(tide_interrupt *interrupt, lua_State *L);
/* The slice that is entered next, now, runs states with this count hook: from
 * `at` on (both tide_clock_mono) it comes at the next instruction or call,
 * whatever the count. There is one such hook. A no-op for a NULL interrupt.
 * [loop] */
void tide_interrupt_hasten(tide_interrupt *interrupt, lua_Hook hook,
                           uint64_t now, uint64_t at);

/* How often slices were interrupted since the start. [any] */
uint64_t tide_interrupt_count(const tide_interrupt *interrupt);

/* Writes what a slice runs, in words that end in NUL, and returns since when
 * (tide_clock_mono ns, not before the turn it began in; 0: not known). On the
 * loop's thread, but out of a signal handler, between any two of its
 * instructions. */
typedef uint64_t (*tide_describe_fn)(void *arg, const tide_slice *slice,
                                     char *out, size_t size);
/* NULL: the slice's kind is all there is to say. [loop] */
void tide_interrupt_set_describe(tide_interrupt *interrupt, tide_describe_fn fn,
                                 void *arg);

/* ---- the watchdog's side ---------------------------------------------- */

/* The slice that runs now, as the loop published it. */
typedef struct tide_running {
  uint64_t id;       /* 0: none */
  uint64_t deadline; /* 0: none */
  uint64_t last_id;  /* of the latest slice entered: has anything run since? */
} tide_running;

void tide_interrupt_running(const tide_interrupt *interrupt,
                            tide_running *running);
/* Asks the loop thread to look whether its slice is late. */
void tide_interrupt_poke(tide_interrupt *interrupt);
/* Has the kernel do that at a point of tide_clock_mono() and every so often
 * from then on; 0: no more. Returns false when there is no timer for it. */
bool tide_interrupt_poke_at(tide_interrupt *interrupt, uint64_t at,
                            uint64_t every);
/* This slice must end whatever its deadline (0: none must). */
void tide_interrupt_force(tide_interrupt *interrupt, uint64_t id);

/* What the running slice is, as its own thread has noted it when asked. */
typedef struct tide_noted {
  uint64_t id;    /* of the slice; 0: none ran */
  uint64_t since; /* 0: not known */
  bool looking;   /* its next instruction says where it is */
  bool seen;      /* and has */
  char what[128]; /* "GET /orders/:id", "luv callback" */
  char at[160];   /* "app.lua:12"; empty: not known */
} tide_noted;

/* Has the loop thread note what it runs. Nothing of the loop's is followed from
 * another thread: the poke's handler copies the names, and a hook the line, if
 * Lua still executes instructions. */
void tide_interrupt_ask(tide_interrupt *interrupt);
/* Whether that was noted; asks again where the poke was lost. */
bool tide_interrupt_noted(tide_interrupt *interrupt, tide_noted *noted);

/* Slices that need the watchdog earlier than it would wake ring this alarm
 * (NULL: nobody watches). [loop] */
void tide_interrupt_set_alarm(tide_interrupt *interrupt, tide_alarm *alarm);

#endif
