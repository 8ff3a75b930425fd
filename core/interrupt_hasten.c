/* interrupt_hasten.c: a count hook that comes in time.
 *
 * Instructions are a poor measure of time: ten thousand of them last 0.1 ms, or
 * minutes where each calls into C. So who has a count hook on what runs may ask
 * that it comes at the next instruction or call (C functions that call C
 * functions never count) once a time has passed. It gets a timer of its own:
 * the watchdog's is set for deadlines.
 */
#include "clock.h"
#include "interrupt_inside.h"

/* Where the hook could not be set, or was set back; and the longest that a
 * slice may wait for the timer of the one before it. */
#define AGAIN (TIDE_MS / 4)

#define LOAD(field)                                                            \
  atomic_load_explicit(&interrupt->field, memory_order_relaxed)
#define STORE(field, value)                                                    \
  atomic_store_explicit(&interrupt->field, (value), memory_order_relaxed)

static void set_timer(tide_interrupt *interrupt, uint64_t at) {
  struct itimerspec when = {.it_value = tide_interrupt__timespec(at)};
  STORE(hasten.set_for, at);
  timer_settime(interrupt->hasten.timer, TIMER_ABSTIME, &when, NULL);
}

/* Most slices end long before, so a timer that is still set for one of them is
 * left as it is: when it comes, it is set for the slice that runs then. */
void tide_interrupt_hasten(tide_interrupt *interrupt, lua_Hook hook,
                           uint64_t now, uint64_t at) {
  if (interrupt == NULL)
    return;
  if (!interrupt->hasten.has_timer) {
    if (!tide_interrupt__new_timer(&interrupt->hasten.timer))
      return; /* it comes by its count */
    interrupt->hasten.has_timer = true;
    interrupt->hasten.hook = hook;
  }
  STORE(hasten.at, at);
  STORE(hasten.id, LOAD(last_id) + 1);
  if (now >= LOAD(hasten.set_for))
    set_timer(interrupt, at);
}

bool tide_interrupt__hastens(const tide_interrupt *interrupt, lua_State *L) {
  return interrupt->hasten.has_timer &&
         lua_gethook(L) == interrupt->hasten.hook;
}

/* Whether the slice runs, or one inside of it. */
static bool runs(const tide_interrupt *interrupt, uint64_t id) {
  const tide_slice *slice = LOAD(slice);
  while (slice != NULL && slice->id != id)
    slice = slice->outer;
  return slice != NULL;
}

/* Between two instructions of the thread, as in interrupt_hook.c. The timer is
 * set once more as long as the slice lasts. */
void tide_interrupt__hasten(tide_interrupt *interrupt) {
  const tide_frame *top = LOAD(top);
  uint64_t now;
  if (!interrupt->hasten.has_timer || !runs(interrupt, LOAD(hasten.id)))
    return;
  now = tide_clock_mono();
  if (now < LOAD(hasten.at)) {
    set_timer(interrupt, LOAD(hasten.at));
    return;
  }
  if (!LOAD(busy) && tide_interrupt__hastens(interrupt, top->L))
    lua_sethook(top->L, interrupt->hasten.hook,
                lua_gethookmask(top->L) | LUA_MASKCOUNT | LUA_MASKCALL, 1);
  set_timer(interrupt, now + AGAIN);
}

void tide_interrupt__end_hasten(tide_interrupt *interrupt) {
  if (interrupt->hasten.has_timer)
    timer_delete(interrupt->hasten.timer);
}
