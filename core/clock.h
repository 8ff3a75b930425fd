/* clock: what time it is, and what is due next.
 *
 * One binary heap of deadlines stands behind one uv_timer_t, so a deadline
 * costs a few words in its owner and no handle. A deadline is intrusive: its
 * owner embeds the struct, and must clear it before freeing itself.
 *
 * Time is nanoseconds of CLOCK_MONOTONIC, or of a virtual clock that only
 * moves when told to (for tests). All functions are for the loop thread but
 * tide_clock_mono and tide_clock_boot, which any thread may call.
 */
#ifndef TIDE_CLOCK_H
#define TIDE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "owner.h"

#define TIDE_US ((uint64_t)1000)
#define TIDE_MS ((uint64_t)1000000)
#define TIDE_SEC ((uint64_t)1000000000)

/* So many units in ns; what no sum could hold is so long that nobody sees its
 * end. */
static inline uint64_t tide_clock_ns(int64_t amount, uint64_t unit) {
  const uint64_t longest = UINT64_MAX / 4;
  return (uint64_t)amount > longest / unit ? longest : (uint64_t)amount * unit;
}

typedef struct tide_deadline tide_deadline;
typedef void (*tide_deadline_fn)(tide_deadline *deadline);

struct tide_deadline {
  uint64_t at;         /* ns on the clock's scale */
  size_t slot;         /* place in the heap + 1; 0: not pending */
  tide_deadline_fn fn; /* called once, after the deadline left the heap */
};

typedef struct tide_clock {
  tide_owner owner;
  uv_timer_t timer;
  tide_deadline **heap;
  size_t count;
  size_t capacity;
  uint64_t armed_at;    /* what the uv timer is set for; 0: not armed */
  uint64_t late;        /* how late the loop came for the last one, ns */
  uint64_t virtual_now; /* meaningful only while is_virtual */
  bool is_virtual;
  bool firing;
} tide_clock;

/* CLOCK_MONOTONIC in ns. [any] */
uint64_t tide_clock_mono(void);
/* CLOCK_BOOTTIME in ns: goes on while the machine is suspended. [any] */
uint64_t tide_clock_boot(void);

/* Prepares the clock on the loop. Returns 0 or a libuv error. */
int tide_clock_init(tide_clock *clock, uv_loop_t *loop);
/* Stops the timer and closes its handle; pending deadlines never fire. The
 * clock's memory must live until the loop has run the close callback. */
void tide_clock_close(tide_clock *clock);

/* The time of this clock, read afresh (not the loop's cached time). */
uint64_t tide_clock_now(const tide_clock *clock);

/* Sets or moves a deadline; one that is already past fires in the next loop
 * turn, never from inside this call. Returns 0 or UV_ENOMEM. */
int tide_deadline_set(tide_clock *clock, tide_deadline *deadline, uint64_t at);
/* Withdraws it; harmless when it is not pending. */
void tide_deadline_clear(tide_clock *clock, tide_deadline *deadline);
/* True between set and its callback (or clear). */
bool tide_deadline_pending(const tide_deadline *deadline);
/* Whether the earliest deadline is at most `ns` away. [loop] */
bool tide_clock_due_within(const tide_clock *clock, uint64_t ns);

/* Turns the clock virtual, standing at the present time. */
void tide_clock_make_virtual(tide_clock *clock);
/* Moves a virtual clock on, firing what falls due, in order of time. */
void tide_clock_advance(tide_clock *clock, uint64_t ns);

#endif
