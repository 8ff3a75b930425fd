/* work_gate.c: in-flight work that is not moontide's own. */
#include "work_gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "moontide.h"

enum { LONGEST_NAME = TIDE_WORK_NAME - 1 };

struct tide_work_kind {
  tide_work_kind *next;
  uint64_t active;
  char name[];
};

int tide_work_gate_init(tide_work_gate *gate, uv_async_t *wake) {
  int rc = uv_mutex_init(&gate->lock);
  gate->open = rc == 0;
  gate->wake = wake;
  return rc;
}

void tide_work_gate_destroy(tide_work_gate *gate) {
  tide_work_kind *kind, *next;
  if (!gate->open)
    return;
  for (kind = gate->kinds; kind != NULL; kind = next) {
    next = kind->next;
    free(kind);
  }
  uv_mutex_destroy(&gate->lock);
  gate->open = false;
}

/* ---- kinds, with the lock held ---------------------------------------------
 */

static tide_work_kind *find(const tide_work_gate *gate, const char *name) {
  tide_work_kind *kind = gate->kinds;
  while (kind != NULL && strcmp(kind->name, name) != 0)
    kind = kind->next;
  return kind;
}

/* Kinds stay: there are few, and most begin again. */
static tide_work_kind *find_or_make(tide_work_gate *gate, const char *name) {
  tide_work_kind *kind = find(gate, name);
  size_t length = strlen(name);
  if (kind != NULL)
    return kind;
  kind = calloc(1, sizeof *kind + length + 1);
  if (kind == NULL)
    return NULL;
  memcpy(kind->name, name, length + 1);
  kind->next = gate->kinds;
  gate->kinds = kind;
  return kind;
}

static bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_name(const char *name) {
  size_t length = 0;
  if (name == NULL)
    return false;
  for (; name[length] != '\0'; length++)
    if (length == LONGEST_NAME || !is_name_character(name[length]))
      return false;
  return length > 0;
}

/* ---- public ----------------------------------------------------------------
 */

int tide_work_gate_enter(tide_work_gate *gate, const char *name) {
  tide_work_kind *kind;
  int rc = TIDE_EDRAINING;
  if (!is_name(name))
    return TIDE_EINVAL;
  uv_mutex_lock(&gate->lock);
  if (!gate->closed) {
    kind = find_or_make(gate, name);
    rc = kind != NULL ? 0 : UV_ENOMEM;
    if (kind != NULL) {
      kind->active++;
      gate->active++;
    }
  }
  uv_mutex_unlock(&gate->lock);
  return rc;
}

int tide_work_gate_leave(tide_work_gate *gate, const char *name) {
  tide_work_kind *kind;
  int rc = TIDE_EINVAL;
  if (!is_name(name))
    return TIDE_EINVAL;
  uv_mutex_lock(&gate->lock);
  kind = find(gate, name);
  if (kind != NULL && kind->active > 0) {
    rc = 0;
    kind->active--;
    gate->active--;
    if (gate->active == 0 && gate->waited_for) {
      gate->waited_for = false;
      uv_async_send(gate->wake); /* under the lock: it is not closed yet */
    }
  }
  uv_mutex_unlock(&gate->lock);
  return rc;
}

void tide_work_gate_close(tide_work_gate *gate) {
  uv_mutex_lock(&gate->lock);
  gate->closed = true;
  uv_mutex_unlock(&gate->lock);
}

void tide_work_gate_shut(tide_work_gate *gate) {
  if (!gate->open)
    return;
  uv_mutex_lock(&gate->lock);
  gate->closed = true;
  gate->waited_for = false;
  uv_mutex_unlock(&gate->lock);
}

uint64_t tide_work_gate_wait(tide_work_gate *gate) {
  uint64_t active;
  uv_mutex_lock(&gate->lock);
  active = gate->active;
  gate->waited_for = active > 0;
  uv_mutex_unlock(&gate->lock);
  return active;
}

uint64_t tide_work_gate_active(tide_work_gate *gate) {
  uint64_t active;
  uv_mutex_lock(&gate->lock);
  active = gate->active;
  uv_mutex_unlock(&gate->lock);
  return active;
}

size_t tide_work_gate_list(tide_work_gate *gate, tide_work_count *out,
                           size_t most) {
  const tide_work_kind *kind;
  size_t count = 0;
  if (!gate->open)
    return 0;
  uv_mutex_lock(&gate->lock);
  for (kind = gate->kinds; kind != NULL && count < most; kind = kind->next)
    if (kind->active > 0) {
      out[count].active = kind->active;
      snprintf(out[count++].name, TIDE_WORK_NAME, "%s", kind->name);
    }
  uv_mutex_unlock(&gate->lock);
  return count;
}

void tide_work_gate_describe(tide_work_gate *gate, char *out, size_t size) {
  const tide_work_kind *kind;
  size_t length = 0;
  out[0] = '\0';
  uv_mutex_lock(&gate->lock);
  for (kind = gate->kinds; kind != NULL && length < size; kind = kind->next)
    if (kind->active > 0)
      length +=
          (size_t)snprintf(out + length, size - length, "%s%" PRIu64 " %s",
                           length > 0 ? ", " : "", kind->active, kind->name);
  uv_mutex_unlock(&gate->lock);
}
