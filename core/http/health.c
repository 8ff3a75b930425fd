#include "health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* A few dozen at most: a list in order of their names, so that the body reads
 * the same each time. */
typedef struct check {
  struct check *next;
  char *name; /* as a JSON string, without its quotes */
  char *extra;
  uint64_t expires_at;
  bool ok;
  bool critical;
} check;

struct tide_health {
  check *checks;
};

tide_health *tide_health_new(void) {
  return calloc(1, sizeof(tide_health));
}

static void check_free(check *c) {
  free(c->name);
  free(c->extra);
  free(c);
}

void tide_health_free(tide_health *health) {
  if (health == NULL)
    return;
  for (check *c = health->checks, *next; c != NULL; c = next) {
    next = c->next;
    check_free(c);
  }
  free(health);
}

static char *json_escaped(const char *text) {
  char *out = malloc(strlen(text) * 6 + 1);
  char *at = out;
  if (out == NULL)
    return NULL;
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      at += sprintf(at, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
      at += sprintf(at, "\\u%04x", c);
    else
      *at++ = (char)c;
  }
  *at = '\0';
  return out;
}

/* The link that points at the check of this name, or where it would go. */
static check **place_of(tide_health *health, const char *name, bool *found) {
  check **link = &health->checks;
  *found = false;
  for (; *link != NULL; link = &(*link)->next) {
    int order = strcmp((*link)->name, name);
    if (order >= 0) {
      *found = order == 0;
      break;
    }
  }
  return link;
}

static check *check_new(tide_health *health, char *name) {
  bool found;
  check **link = place_of(health, name, &found);
  if (found) {
    free(name);
    return *link;
  }
  check *made = calloc(1, sizeof *made);
  if (made == NULL) {
    free(name);
    return NULL;
  }
  made->name = name;
  made->next = *link;
  *link = made;
  return made;
}

int tide_health_set(tide_health *health, const char *name,
                    const tide_health_result *result) {
  char *escaped = json_escaped(name);
  if (escaped == NULL)
    return UV_ENOMEM;
  check *c = check_new(health, escaped);
  if (c == NULL)
    return UV_ENOMEM;
  free(c->extra);
  c->extra = NULL;
  c->ok = result->ok;
  c->critical = result->critical;
  c->expires_at = result->expires_at;
  if (result->extra != NULL && result->extra[0] != '\0') {
    c->extra = strdup(result->extra);
    if (c->extra == NULL)
      return UV_ENOMEM;
  }
  return 0;
}

void tide_health_remove(tide_health *health, const char *name) {
  char *escaped = json_escaped(name);
  bool found;
  if (escaped == NULL)
    return;
  check **link = place_of(health, escaped, &found);
  free(escaped);
  if (!found)
    return;
  check *c = *link;
  *link = c->next;
  check_free(c);
}

const char *tide_health_status_name(tide_health_status status) {
  switch (status) {
  case TIDE_HEALTH_READY:
    return "ready";
  case TIDE_HEALTH_DEGRADED:
    return "degraded";
  case TIDE_HEALTH_NOT_READY:
    break;
  }
  return "not_ready";
}

static bool is_stale(const check *c, uint64_t now) {
  return c->expires_at != 0 && now > c->expires_at;
}

tide_health_status tide_health_judge(const tide_health *health,
                                     tide_state state, uint64_t now) {
  tide_health_status status = TIDE_HEALTH_READY;
  if (state != TIDE_READY)
    return TIDE_HEALTH_NOT_READY;
  for (const check *c = health->checks; c != NULL; c = c->next) {
    if (c->ok && !is_stale(c, now))
      continue;
    if (c->critical)
      return TIDE_HEALTH_NOT_READY;
    status = TIDE_HEALTH_DEGRADED;
  }
  return status;
}

typedef struct writer {
  char *out;
  size_t size;
  size_t length;
} writer;

/* Beyond the end only the length grows. */
static void put(writer *w, const char *text) {
  size_t length = strlen(text);
  if (w->length + length < w->size)
    memcpy(w->out + w->length, text, length + 1);
  w->length += length;
}

/* "12.345": seconds of ns, cut to ms. Not printf: a probe is asked often. */
static void put_seconds(writer *w, uint64_t ns) {
  char digits[24];
  size_t at = sizeof digits - 1;
  uint64_t left = ns / 1000000;
  digits[at] = '\0';
  for (int n = 0; n < 4 || left > 0; n++) {
    if (n == 3)
      digits[--at] = '.';
    digits[--at] = (char)('0' + left % 10);
    left /= 10;
  }
  put(w, digits + at);
}

static void put_checks(writer *w, const tide_health *health, uint64_t now) {
  for (const check *c = health->checks; c != NULL; c = c->next) {
    bool stale = is_stale(c, now);
    put(w, c == health->checks ? "\"" : ",\"");
    put(w, c->name);
    put(w, "\":{\"ok\":");
    put(w, c->ok && !stale ? "true" : "false");
    if (!c->critical)
      put(w, ",\"critical\":false");
    if (stale)
      put(w, ",\"stale\":true");
    if (c->extra != NULL) {
      put(w, ",");
      put(w, c->extra);
    }
    put(w, "}");
  }
}

size_t tide_health_body(const tide_health *health,
                        const tide_health_facts *facts, char *out,
                        size_t size) {
  writer w = {out, size, 0};
  tide_health_status status =
      tide_health_judge(health, facts->state, facts->now);
  put(&w, "{\"status\":\"");
  put(&w, tide_health_status_name(status));
  put(&w, "\",\"state\":\"");
  put(&w, tide_state_name(facts->state));
  if (facts->phase != NULL) {
    put(&w, "\",\"phase\":\"");
    put(&w, facts->phase);
  }
  put(&w, "\",\"uptimeSec\":");
  put_seconds(&w, facts->uptime);
  put(&w, ",\"checks\":{");
  put_checks(&w, health, facts->now);
  put(&w, "}}\n");
  return w.length;
}
