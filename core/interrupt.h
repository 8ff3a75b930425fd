/* interrupt: stopping Lua that runs without awaiting.
 *
 * Every entry into Lua is a *slice*: an lua_State that starts to run and a
 * deadline (0: none). Coroutines that a slice resumes are linked behind it, so
 * the chain of running states is known. When the watchdog sees a slice past its
 * deadline, it sends a signal to the loop thread; the handler hooks every state
 * of the chain; the hook raises `interrupted` in the innermost one.
 *
 * Three steps: raised once, then the hook is off for 10 ms so that cleanup can
 * run, then raised again; from the third raise on (+20 ms) the hook stays until
 * the slice has ended, so that no pcall loop outlives it.
 *
 * Nothing is armed while a slice is in time: entering and leaving cost a few
 * stores, no system call.
 */
#ifndef TIDE_INTERRUPT_H
#define TIDE_INTERRUPT_H

#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A running state, on the C stack of whoever resumed it. */
typedef struct tide_frame {
  struct tide_frame *parent;
  lua_State *L;
} tide_frame;

typedef struct tide_interrupt tide_interrupt;

/* One for each host that has TIDE_INTERRUPT; claims a real-time signal for the
 * process when the first is made. Returns 0 or a negative libuv error. */
int tide_interrupt_init(tide_interrupt **out);
void tide_interrupt_free(tide_interrupt *interrupt);

/* A slice begins on this thread: L runs until `deadline` (tide_clock_mono ns,
 * 0: as long as it likes). Slices may nest (a luv callback inside a uv_run in a
 * slice); the inner one has its own deadline and restores the outer. Both are
 * no-ops for a NULL interrupt. [loop] */
typedef struct tide_slice {
  tide_frame frame;
  tide_frame *outer_top;
  uint64_t outer_deadline;
} tide_slice;
void tide_slice_enter(tide_interrupt *interrupt, tide_slice *slice,
                      lua_State *L, uint64_t deadline);
void tide_slice_leave(tide_interrupt *interrupt, tide_slice *slice);

/* A coroutine is resumed inside the slice, and has come back. */
void tide_frame_push(tide_interrupt *interrupt, tide_frame *frame,
                     lua_State *L);
void tide_frame_pop(tide_interrupt *interrupt, tide_frame *frame);

/* Whether the running slice is being interrupted: C loops in tracked functions
 * (xpcall's handler) ask before they run more Lua. */
bool tide_interrupt_pending(const tide_interrupt *interrupt);
/* The innermost running state, or NULL outside any slice. [loop] */
lua_State *tide_interrupt_top(const tide_interrupt *interrupt);

/* How often slices were interrupted since the start. [any] */
uint64_t tide_interrupt_count(const tide_interrupt *interrupt);

#endif
