/* health: what probes are told, without asking Lua.
 *
 * The readiness checks' latest results live here, each with the moment it goes
 * stale, so a probe gets a true answer even while Lua spins. The lifecycle
 * state decides first. [loop]
 */
#ifndef TIDE_HTTP_HEALTH_H
#define TIDE_HTTP_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../state.h"

typedef struct tide_health tide_health;

tide_health *tide_health_new(void);
void tide_health_free(tide_health *health);

typedef struct tide_health_result {
  bool ok;
  bool critical;
  const char *extra;   /* members of a JSON object, `"latencyMs":12`; or NULL */
  uint64_t expires_at; /* ns of the clock; after it: not ok, stale. 0: never */
} tide_health_result;

/* Sets or replaces a check's result; strings are copied. 0 or UV_ENOMEM. */
int tide_health_set(tide_health *health, const char *name,
                    const tide_health_result *result);
void tide_health_remove(tide_health *health, const char *name);

typedef enum tide_health_status {
  TIDE_HEALTH_READY,
  TIDE_HEALTH_DEGRADED, /* 200: only checks that are not critical fail */
  TIDE_HEALTH_NOT_READY,
} tide_health_status;
const char *tide_health_status_name(tide_health_status status);

tide_health_status tide_health_judge(const tide_health *health,
                                     tide_state state, uint64_t now);

/* Of whom the body of /health/ready speaks. */
typedef struct tide_health_facts {
  tide_state state;
  const char *phase; /* of a drain, or NULL */
  uint64_t now;
  uint64_t uptime; /* in ns */
} tide_health_facts;

/* Writes the body of /health/ready; returns its whole length, as snprintf
 * does. */
size_t tide_health_body(const tide_health *health,
                        const tide_health_facts *facts, char *out, size_t size);

#endif
