/* interrupt_hook.c: the hook that raises, and when it is on.
 *
 * Two contexts meet here. The handler interrupts the loop thread anywhere, also
 * inside the Lua library, and does one thing only: lua_sethook, which Lua
 * allows there. Everything else (raising, tracebacks, taking hooks off) happens
 * in the hook or in push and pop, where the thread is in a known place; while
 * they change hooks they keep the handler out by `busy`.
 */
#include <lauxlib.h>
#include <string.h>

#include "clock.h"
#include "interrupt_inside.h"

/* After the first raise the hook is off for the first time, so that `<close>`
 * variables and error handlers can run; see interrupt.h. */
#define SECOND_RAISE (10 * TIDE_MS)
#define THIRD_RAISE (20 * TIDE_MS)
#define STICKY 3

/* How many instructions the library's own code has to finish what it does: a
 * few milliseconds. (Not time: the thread may have had to wait for a
 * processor.) */
#define SPARED 20000

#define LOAD(field)                                                            \
  atomic_load_explicit(&interrupt->field, memory_order_relaxed)
#define STORE(field, value)                                                    \
  atomic_store_explicit(&interrupt->field, (value), memory_order_relaxed)

/* Keys in the registry; the addresses count. */
static const char interrupt_key, value_key, traceback_key;

static void hook(lua_State *L, lua_Debug *ar);

/* ---- when ------------------------------------------------------------- */

static bool is_late(const tide_interrupt *interrupt, const tide_slice *slice,
                    uint64_t now) {
  return (slice->deadline != 0 && now >= slice->deadline) ||
         LOAD(forced) == slice->id;
}

static bool is_due(const tide_interrupt *interrupt, uint64_t now) {
  const tide_slice *slice = LOAD(slice);
  if (slice == NULL || !is_late(interrupt, slice, now))
    return false;
  switch (slice->raises) {
  case 1:
    return now - slice->raised_at >= SECOND_RAISE;
  case 2:
    return now - slice->raised_at >= THIRD_RAISE;
  default:
    return true;
  }
}

/* ---- hooks on and off ------------------------------------------------- */

static void set_hook(lua_State *L) {
  /* Calls, too: a C function that calls C functions never counts. */
  lua_sethook(L, hook, LUA_MASKCOUNT | LUA_MASKCALL, 1);
}

/* A state that has the hook already gets it once more: Lua may just have been
 * about to clear the trap of the running function when it was first set. Then
 * the state is in the chain twice, or has inherited the hook, or this is the
 * next poke. */
static void hook_frame(tide_frame *frame) {
  if (lua_gethook(frame->L) == hook) {
    set_hook(frame->L);
    return;
  }
  frame->old_hook = lua_gethook(frame->L);
  frame->old_mask = lua_gethookmask(frame->L);
  frame->old_count = lua_gethookcount(frame->L);
  frame->hooked = true;
  set_hook(frame->L);
}

static void unhook_frame(tide_frame *frame) {
  if (!frame->hooked)
    return;
  frame->hooked = false;
  lua_sethook(frame->L, frame->old_hook, frame->old_mask, frame->old_count);
}

static void enter_busy(tide_interrupt *interrupt) {
  STORE(busy, true);
  atomic_signal_fence(memory_order_seq_cst);
}

static void leave_busy(tide_interrupt *interrupt) {
  atomic_signal_fence(memory_order_seq_cst);
  STORE(busy, false);
}

static void arm_chain(tide_interrupt *interrupt, tide_slice *slice) {
  tide_frame *frame;
  STORE(armed, true);
  for (frame = LOAD(top); frame != NULL; frame = frame->parent) {
    hook_frame(frame);
    if (frame == &slice->frame)
      break; /* what is further out does not run before this slice ends */
  }
}

void tide_interrupt__arm(tide_interrupt *interrupt) {
  if (!LOAD(busy) && is_due(interrupt, tide_clock_mono()))
    arm_chain(interrupt, LOAD(slice));
}

void tide_interrupt__arm_frame(tide_interrupt *interrupt, tide_frame *frame) {
  if (!is_due(interrupt, tide_clock_mono()))
    return;
  enter_busy(interrupt);
  hook_frame(frame);
  leave_busy(interrupt);
}

/* Whether any frame is hooked; then push and pop must go on looking. */
static bool any_hooked(const tide_interrupt *interrupt) {
  const tide_frame *frame;
  for (frame = LOAD(top); frame != NULL; frame = frame->parent)
    if (frame->hooked)
      return true;
  return false;
}

void tide_interrupt__restore(tide_interrupt *interrupt, tide_frame *frame) {
  enter_busy(interrupt);
  unhook_frame(frame);
  STORE(armed, any_hooked(interrupt));
  leave_busy(interrupt);
}

void tide_interrupt__carry(tide_interrupt *interrupt, tide_slice *running,
                           const tide_slice *from) {
  if (from->raises <= running->raises ||
      !is_late(interrupt, running, tide_clock_mono()))
    return;
  running->raises = from->raises;
  running->raised_at = from->raised_at;
  if (!is_due(interrupt, tide_clock_mono()))
    return;
  enter_busy(interrupt);
  arm_chain(interrupt, running);
  leave_busy(interrupt);
}

/* Takes the hook off the running slice, and off L, which may have it by
 * inheritance: a new coroutine starts with its maker's hook. */
static void disarm(tide_interrupt *interrupt, lua_State *L) {
  const tide_slice *slice = LOAD(slice);
  tide_frame *frame;
  enter_busy(interrupt);
  for (frame = LOAD(top); frame != NULL; frame = frame->parent) {
    unhook_frame(frame);
    if (slice != NULL && frame == &slice->frame)
      break;
  }
  if (lua_gethook(L) == hook)
    lua_sethook(L, NULL, 0, 0);
  STORE(armed, any_hooked(interrupt));
  leave_busy(interrupt);
}

tide_frame *tide_interrupt_hooked(tide_interrupt *interrupt, lua_State *L) {
  tide_frame *frame = interrupt != NULL ? LOAD(top) : NULL;
  while (frame != NULL && !(frame->hooked && frame->L == L))
    frame = frame->parent;
  return frame;
}

void tide_interrupt_rehook(tide_frame *frame) {
  frame->hooked = false;
  hook_frame(frame);
}

/* ---- raising ---------------------------------------------------------- */

tide_interrupt *tide_interrupt__of(lua_State *L) {
  tide_interrupt *interrupt;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &interrupt_key);
  interrupt = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return interrupt;
}

bool tide_interrupt_is_library(const lua_Debug *ar) {
  return strncmp(ar->source, "@moontide/", 10) == 0;
}

bool tide_interrupt_in_library(lua_State *L, lua_Debug *ar) {
  int level = 0;
  do {
    lua_getinfo(L, "S", ar);
    if (*ar->what != 'C')
      return tide_interrupt_is_library(ar);
  } while (++level < 10 && lua_getstack(L, level, ar));
  return false;
}

/* The library keeps books (a task waits, a lock is held) that an error between
 * any two instructions would leave half written. So the raise waits until a
 * function of the script runs again, though not for long: the library may have
 * been given something endless to do. */
static bool is_spared(tide_slice *slice, lua_State *L, lua_Debug *ar) {
  if (slice->spared >= SPARED || !tide_interrupt_in_library(L, ar))
    return false;
  slice->spared++;
  return true;
}

static void hook(lua_State *L, lua_Debug *ar) {
  tide_interrupt *interrupt = tide_interrupt__of(L);
  uint64_t now = tide_clock_mono();
  tide_slice *slice;
  if (interrupt == NULL) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (!is_due(interrupt, now)) { /* left over from a slice that has ended */
    disarm(interrupt, L);
    return;
  }
  tide_interrupt_note_line(interrupt, L);
  slice = LOAD(slice);
  if (is_spared(slice, L, ar))
    return;
  slice->spared = 0;
  if (++slice->raises < STICKY)
    disarm(interrupt, L);
  if (slice->raises == 1) {
    slice->raised_at = now;
    STORE(count, LOAD(count) + 1);
    tide_interrupt__push_trace(L, LOAD(top), &slice->frame);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
  }
  tide_interrupt_push_value(L);
  lua_error(L);
}

/* ---- the value -------------------------------------------------------- */

static int value_tostring(lua_State *L) {
  lua_pushliteral(L, "interrupted: ran on past its deadline without awaiting");
  return 1;
}

static int value_newindex(lua_State *L) {
  return luaL_error(L, "the interrupted value cannot be changed");
}

/* One value for the whole state, so that it can be compared; its fields are
 * behind a metatable, so that nobody changes them for the next one. */
static void make_value(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__tostring", value_tostring},
                                         {"__newindex", value_newindex},
                                         {NULL, NULL}};
  lua_newtable(L);
  luaL_newlib(L, metamethods);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "interrupted");
  lua_setfield(L, -2, "kind");
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &value_key);
}

void tide_interrupt_push_value(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &value_key);
}

void tide_interrupt_push_traceback(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &traceback_key);
}

void tide_interrupt_bind(tide_interrupt *interrupt, lua_State *L) {
  lua_pushlightuserdata(L, interrupt);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &interrupt_key);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &value_key) == LUA_TNIL)
    make_value(L);
  lua_pop(L, 1);
}

void tide_interrupt_unbind(lua_State *L) {
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &interrupt_key);
}
