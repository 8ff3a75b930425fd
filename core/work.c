/* work.c: in-flight accounting. */
#include "work.h"

#include <assert.h>
#include <stddef.h>

void tide_work_init(tide_work *work) {
  work->sources = NULL;
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
  source->of = NULL;
}

void tide_work_enter(tide_work_source *source) {
  source->active++;
  source->total++;
}

void tide_work_leave(tide_work_source *source) {
  assert(source->active > 0);
  source->active--;
  if (source->active == 0 && source->on_idle != NULL)
    source->on_idle(source->arg);
}

uint64_t tide_work_active(const tide_work *work) {
  uint64_t sum = 0;
  const tide_work_source *source;
  for (source = work->sources; source != NULL; source = source->next)
    sum += source->active;
  return sum;
}
