/* clock.c: the deadline heap behind one uv timer. */
#include "clock.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

static uint64_t read_clock(clockid_t id) {
  struct timespec ts;
  clock_gettime(id, &ts); /* cannot fail for the clocks used here */
  return (uint64_t)ts.tv_sec * TIDE_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t tide_clock_mono(void) {
  return read_clock(CLOCK_MONOTONIC);
}

uint64_t tide_clock_boot(void) {
  return read_clock(CLOCK_BOOTTIME);
}

uint64_t tide_clock_now(const tide_clock *clock) {
  return clock->is_virtual ? clock->virtual_now : tide_clock_mono();
}

/* ---- the heap: earliest deadline at index 0 -------------------------------
 */

static void place(tide_clock *clock, size_t index, tide_deadline *deadline) {
  clock->heap[index] = deadline;
  deadline->slot = index + 1;
}

static void sift_up(tide_clock *clock, size_t index, tide_deadline *deadline) {
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (clock->heap[parent]->at <= deadline->at)
      break;
    place(clock, index, clock->heap[parent]);
    index = parent;
  }
  place(clock, index, deadline);
}

static void sift_down(tide_clock *clock, size_t index,
                      tide_deadline *deadline) {
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= clock->count)
      break;
    if (child + 1 < clock->count &&
        clock->heap[child + 1]->at < clock->heap[child]->at)
      child++;
    if (deadline->at <= clock->heap[child]->at)
      break;
    place(clock, index, clock->heap[child]);
    index = child;
  }
  place(clock, index, deadline);
}

static void remove_at(tide_clock *clock, size_t index) {
  tide_deadline *last = clock->heap[--clock->count];
  clock->heap[index]->slot = 0;
  if (index == clock->count)
    return;
  if (index > 0 && last->at < clock->heap[(index - 1) / 2]->at)
    sift_up(clock, index, last);
  else
    sift_down(clock, index, last);
}

static int grow(tide_clock *clock) {
  size_t capacity = clock->capacity ? clock->capacity * 2 : 64;
  tide_deadline **heap = realloc(clock->heap, capacity * sizeof *heap);
  if (heap == NULL)
    return UV_ENOMEM;
  clock->heap = heap;
  clock->capacity = capacity;
  return 0;
}

/* ---- the uv timer ---------------------------------------------------------
 */

static void on_timer(uv_timer_t *timer);

/* Sets the uv timer for the earliest deadline. It is only ever moved earlier
 * here: a timer that comes too early finds nothing due and is set anew, which
 * costs less than a timer call for each withdrawn deadline. */
static void arm(tide_clock *clock, uint64_t least_ms) {
  uint64_t at, now, delay;
  if (clock->is_virtual || clock->firing || clock->count == 0)
    return;
  at = clock->heap[0]->at;
  if (clock->armed_at != 0 && clock->armed_at <= at)
    return;
  /* libuv counts from the loop's cached time, which lags behind after a long
   * callback: bring it up to date or the timer would fire early. */
  uv_update_time(clock->timer.loop);
  now = tide_clock_mono();
  delay = at > now ? (at - now + TIDE_MS - 1) / TIDE_MS : 0;
  if (delay < least_ms)
    delay = least_ms;
  uv_timer_start(&clock->timer, on_timer, delay, 0);
  clock->armed_at = at;
}

/* Fires what is due at `now`, and nothing that a callback adds meanwhile with
 * a deadline already past: that waits for the next turn, so a callback that
 * always asks for "at once" cannot starve the loop. */
static void fire(tide_clock *clock, uint64_t now) {
  size_t left = clock->count;
  clock->firing = true;
  while (left-- > 0 && clock->count > 0 && clock->heap[0]->at <= now) {
    tide_deadline *deadline = clock->heap[0];
    remove_at(clock, 0);
    deadline->fn(deadline);
  }
  clock->firing = false;
}

static void on_timer(uv_timer_t *timer) {
  tide_clock *clock = timer->data;
  uint64_t now = tide_clock_mono();
  clock->late = now > clock->armed_at ? now - clock->armed_at : 0;
  clock->armed_at = 0;
  fire(clock, now);
  /* libuv runs a timer of 0 ms that was set by a timer in the same turn again,
   * and again: what is due already waits 1 ms, so that sockets get theirs. */
  arm(clock, 1);
}

/* ---- public ---------------------------------------------------------------
 */

int tide_clock_init(tide_clock *clock, uv_loop_t *loop) {
  int rc;
  *clock = (tide_clock){.owner = {TIDE_OWNER_MAGIC, "clock"}};
  rc = uv_timer_init(loop, &clock->timer);
  if (rc != 0)
    return rc;
  clock->timer.data = clock;
  uv_unref((uv_handle_t *)&clock->timer);
  return 0;
}

static void on_close(uv_handle_t *handle) {
  tide_clock *clock = handle->data;
  free(clock->heap);
  clock->heap = NULL;
  clock->capacity = 0;
}

void tide_clock_close(tide_clock *clock) {
  /* Owners may still clear their deadlines after this: they find slot 0. */
  while (clock->count > 0)
    remove_at(clock, clock->count - 1);
  uv_close((uv_handle_t *)&clock->timer, on_close);
}

int tide_deadline_set(tide_clock *clock, tide_deadline *deadline, uint64_t at) {
  assert(deadline->fn != NULL);
  if (deadline->slot != 0) {
    size_t index = deadline->slot - 1;
    deadline->at = at;
    if (index > 0 && at < clock->heap[(index - 1) / 2]->at)
      sift_up(clock, index, deadline);
    else
      sift_down(clock, index, deadline);
  } else {
    if (clock->count == clock->capacity && grow(clock) != 0)
      return UV_ENOMEM;
    deadline->at = at;
    sift_up(clock, clock->count++, deadline);
  }
  arm(clock, 0);
  return 0;
}

void tide_deadline_clear(tide_clock *clock, tide_deadline *deadline) {
  if (deadline->slot != 0)
    remove_at(clock, deadline->slot - 1);
}

bool tide_deadline_pending(const tide_deadline *deadline) {
  return deadline->slot != 0;
}

bool tide_clock_due_within(const tide_clock *clock, uint64_t ns) {
  return clock->count > 0 && clock->heap[0]->at <= tide_clock_now(clock) + ns;
}

void tide_clock_make_virtual(tide_clock *clock) {
  if (clock->is_virtual)
    return;
  clock->virtual_now = tide_clock_mono();
  clock->is_virtual = true;
  clock->armed_at = 0;
  uv_timer_stop(&clock->timer);
}

void tide_clock_advance(tide_clock *clock, uint64_t ns) {
  uint64_t end = clock->virtual_now + ns;
  assert(clock->is_virtual);
  while (clock->count > 0 && clock->heap[0]->at <= end) {
    if (clock->heap[0]->at > clock->virtual_now)
      clock->virtual_now = clock->heap[0]->at;
    fire(clock, clock->virtual_now);
  }
  clock->virtual_now = end;
}
