/* work: what a drain waits for.
 *
 * In-flight HTTP requests, jobs and an embedder's own work are counted here and
 * nowhere else, by kind. Whoever waits is told the instant a count reaches
 * zero.
 */
#ifndef TIDE_WORK_H
#define TIDE_WORK_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tide_work tide_work;

/* Called on the loop thread each time `active` of the source becomes zero. */
typedef void (*tide_work_idle_fn)(void *arg);

/* One countable thing: "http:8080", "jobs", "match". Its memory is the
 * owner's. `name` must live as long as the source. */
typedef struct tide_work_source {
  struct tide_work_source *next;
  tide_work *of; /* NULL: not counted with others (any more) */
  const char *name;
  uint64_t active;
  uint64_t total;
  tide_work_idle_fn on_idle; /* or NULL */
  void *arg;
} tide_work_source;

struct tide_work {
  tide_work_source *sources;
  _Atomic uint64_t active; /* of all of them */
};

void tide_work_init(tide_work *work);
/* Lets go of the sources that are left. */
void tide_work_close(tide_work *work);
void tide_work_add_source(tide_work *work, tide_work_source *source);
/* Nothing happens when it is in none. */
void tide_work_remove_source(tide_work_source *source);
void tide_work_enter(tide_work_source *source);
/* May call on_idle before it returns. */
void tide_work_leave(tide_work_source *source);
/* Sum of `active` over all sources. [any] */
uint64_t tide_work_active(const tide_work *work);

#endif
