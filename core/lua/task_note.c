/* task_note.c: what a running task is called, said in a signal handler.
 *
 * The handler runs on the loop's thread, so what belongs to the running task
 * stays where it is meanwhile. But it may have come in the middle of anything
 * that Lua does: no function of Lua's may be called, no table looked at. What
 * is copied is what lies in C structs.
 */
#include <llhttp.h>
#include <stdlib.h>
#include <string.h>

#include "../append.h"
#include "../http/route.h"
#include "task.h"

const char tide_slice_of_task[] = "task";

/* How far up a task without a name looks for one that has it. */
#define OWNERS 8

void tide_task_name(lua_State *L, tide_sched *s, const tide_task *t) {
  unsigned block = (unsigned)t->place / TIDE_NAMES;
  const char *name = lua_tostring(L, -1);
  if (block >= TIDE_NAME_BLOCKS)
    return;
  if (s->names[block] == NULL)
    s->names[block] = calloc(1, sizeof *s->names[block]);
  if (s->names[block] != NULL)
    tide_append((*s->names[block])[t->place % TIDE_NAMES], TIDE_NAME_SIZE, 0,
                name);
}

/* "" when there is none. */
static const char *name_of(const tide_task *t) {
  unsigned block = (unsigned)t->place / TIDE_NAMES;
  if (block >= TIDE_NAME_BLOCKS || t->sched->names[block] == NULL)
    return "";
  return (*t->sched->names[block])[t->place % TIDE_NAMES];
}

/* The route whose handler it is, or was in its life before; they live as long
 * as the room they are in. */
static const tide_route *route_of(const tide_host *host, const tide_task *t) {
  bool known = t->route > 0 && (size_t)t->route < host->route_count;
  return known && host->http != NULL ? host->routes[t->route] : NULL;
}

static size_t put_route(char *out, size_t size, size_t at,
                        const tide_route *route) {
  at = tide_append(out, size, at,
                   llhttp_method_name((llhttp_method_t)route->method));
  at = tide_append(out, size, at, " ");
  return tide_append(out, size, at, route->pattern);
}

/* " of GET /orders/:id", or of the name that its options gave; 0: it has
 * neither. */
static size_t put_name(const tide_host *host, const tide_task *t, char *out,
                       size_t size, size_t at) {
  const char *name = name_of(t);
  const tide_route *route = route_of(host, t);
  if (*name == '\0' && route == NULL)
    return 0;
  if (at > 0)
    at = tide_append(out, size, at, " of ");
  if (*name != '\0')
    return tide_append(out, size, at, name);
  return put_route(out, size, at, route);
}

/* tide.timeout, tide.race: what it is for says more. */
static bool says_little(const tide_task *t) {
  return strncmp(name_of(t), "tide.", 5) == 0;
}

/* A task that was just spawned has the name of whoever spawned it to go by. */
static void put_task(const tide_host *host, const tide_task *t, char *out,
                     size_t size) {
  size_t at = 0;
  int i;
  for (i = 0; i < OWNERS && t != NULL; i++, t = t->scope->owner) {
    size_t end = put_name(host, t, out, size, at);
    if (end > 0 && !says_little(t))
      return;
    if (end > 0)
      at = end;
    else if (at == 0)
      at = tide_append(out, size, 0, "a task");
  }
  if (i == 1 && *out == 'a')
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
