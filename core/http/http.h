/* http: what the rest of the core sees of the HTTP rooms.
 *
 * One tide_http for each host: its listeners, connections, routes, and the
 * health answers that need no Lua. Knows loop, clock, log, state and work.
 */
#ifndef TIDE_HTTP_H
#define TIDE_HTTP_H

#include <stdbool.h>
#include <uv.h>

#include "../clock.h"
#include "../log.h"
#include "../state.h"
#include "../work.h"

typedef struct tide_http tide_http;

typedef struct tide_http_env {
  uv_loop_t *loop;
  tide_clock *clock;
  tide_log *log;
  tide_lifecycle *lifecycle;
  tide_work *work;
  uint64_t started_at; /* tide_clock_mono of the host's start */
} tide_http_env;

/* Makes the room; opens nothing. Returns 0 or UV_ENOMEM. */
int tide_http_open(tide_http **out, const tide_http_env *env);
/* Closes whatever is still open, at once. The memory goes with the last close
 * callback; the caller runs the loop dry. */
void tide_http_close(tide_http *http);
/* Whether an application listener is open (it keeps the process up). */
bool tide_http_listening(const tide_http *http);

#endif
