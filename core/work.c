/* work.c: in-flight accounting. */
#include "work.h"

#include <assert.h>
#include <stddef.h>

/* The loop alone writes the sum; others only read it. */
static void count(tide_work *work, uint64_t change) {
  uint64_t active = atomic_load_explicit(&work->active, memory_order_relaxed);
  atomic_store_explicit(&work->active, active + change, memory_order_relaxed);
}

void tide_work_init(tide_work *work) {
  work->sources = NULL;
  atomic_init(&work->active, 0);
}

void tide_work_close(tide_work *work) {
  while (work->sources != NULL)
    tide_work_remove_source(work->sources);
}

void tide_work_add_source(tide_work *work, tide_work_source *source) {
  source->of = work;
  source->active = 0;
  source->total = 0;
  source->next = work->sources;
  work->sources = source;
}

void tide_work_remove_source(tide_work_source *source) {
  if (source->of == NULL)
    return;
  tide_work_source **link = &source->of->sources;
  while (*link != source)
    link = &(*link)->next;
  *link = source->next;
  count(source->of, (uint64_t)0 - source->active);
  source->of = NULL;
}

void tide_work_enter(tide_work_source *source) {
  source->active++;
  source->total++;
  if (source->of != NULL)
    count(source->of, 1);
}

void tide_work_leave(tide_work_source *source) {
  assert(source->active > 0);
  source->active--;
  if (source->of != NULL)
    count(source->of, (uint64_t)-1);
  if (source->active == 0 && source->on_idle != NULL)
    source->on_idle(source->arg);
}

uint64_t tide_work_active(const tide_work *work) {
  return atomic_load_explicit(&work->active, memory_order_relaxed);
}
