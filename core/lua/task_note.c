/* task_note.c: what a running task is called, said in a signal handler.
 *
 * The handler runs on the loop's thread, so what belongs to the running task
 * stays where it is meanwhile. But it may have come in the middle of anything
 * that Lua does: no function of Lua's may be called, no table looked at. What
 * is copied is what lies in C structs.
 */
#include <llhttp.h>
#include <string.h>

#include "../append.h"
#include "../http/route.h"
#include "task.h"

const char tide_slice_of_task[] = "task";

/* How far up a task without a name looks for one that has it. */
#define OWNERS 8

static size_t put_route(char *out, size_t size, size_t at,
                        const tide_route *route) {
  at = tide_append(out, size, at,
                   llhttp_method_name((llhttp_method_t)route->method));
  at = tide_append(out, size, at, " ");
  return tide_append(out, size, at, route->pattern);
}

/* " of GET /orders/:id", or of the name that its options gave; 0: it has
 * neither. Routes live as long as the room they are in. */
static size_t put_name(const tide_host *host, const tide_task *t, char *out,
                       size_t size, size_t at) {
  bool served = t->serves != NULL && host->http != NULL;
  if (t->name[0] == '\0' && !served)
    return 0;
  if (at > 0)
    at = tide_append(out, size, at, " of ");
  if (t->name[0] != '\0')
    return tide_append(out, size, at, t->name);
  return put_route(out, size, at, t->serves);
}

/* tide.timeout, tide.race: what it is for says more. */
static bool says_little(const tide_task *t) {
  return strncmp(t->name, "tide.", 5) == 0;
}

/* A task that was just spawned has the name of whoever spawned it to go by. */
static void put_task(const tide_host *host, const tide_task *t, char *out,
                     size_t size) {
  size_t at = 0, end;
  int i;
  for (i = 0; i < OWNERS && t != NULL; i++, t = t->scope->owner) {
    end = put_name(host, t, out, size, at);
    if (end > 0 && !says_little(t))
      return;
    at = end > 0 ? end : at > 0 ? at : tide_append(out, size, 0, "a task");
  }
  if (i == 1 && at == strlen("a task"))
    tide_append(out, size, 0, "a root task");
  else
    tide_append(out, size, at, " of a root task");
}

/* The turn of the loop is younger than what it runs by a few microseconds, or
 * by what it has run before; nobody reads a clock for each slice. */
static uint64_t describe(void *arg, const tide_slice *slice, char *out,
                         size_t size) {
  const tide_host *host = arg;
  const tide_sched *s = host->sched;
  const tide_task *t = s != NULL ? s->current : NULL;
  if (slice->kind == tide_slice_of_task && t != NULL)
    put_task(host, t, out, size);
  return uv_now(host->loop) * TIDE_MS;
}

void tide_task_name_slices(tide_host *host) {
  tide_interrupt_set_describe(host->interrupt, describe, host);
}
