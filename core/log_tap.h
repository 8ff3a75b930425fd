/* log_tap: who reads along with the log.
 *
 * Records of any thread, as JSON lines, on their way to the loop: a buffer
 * under a mutex, and an async handle that says there is something. While nobody
 * reads there is no buffer, and a record costs nothing more than before. A
 * reader that does not keep up loses records, which are counted; nobody waits
 * for it.
 */
#ifndef TIDE_LOG_TAP_H
#define TIDE_LOG_TAP_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "log.h"

typedef struct tide_log_tap tide_log_tap;

/* There is something to take. [loop] */
typedef void (*tide_log_tap_fn)(void *arg);

/* Makes it; the handle keeps no loop alive. 0 or a negative libuv error. [loop]
 */
int tide_log_tap_open(tide_log_tap **out, uv_loop_t *loop, tide_log_tap_fn fn,
                      void *arg);
/* Takes a line without its end; none once it is closed. [any] */
void tide_log_tap_put(tide_log_tap *tap, tide_log_level level, const char *line,
                      size_t length);
/* Calls `fn` for each record since the last time, and returns how many were
 * lost meanwhile. The lines live as long as the call. [loop] */
typedef void (*tide_log_tap_each)(void *arg, tide_log_level level,
                                  const char *line, size_t length);
uint64_t tide_log_tap_take(tide_log_tap *tap, tide_log_tap_each fn, void *arg);
/* Closes the handle. Writers may still come. NULL is fine. [loop] */
void tide_log_tap_close(tide_log_tap *tap);
/* Behind the last turn of the loop and the end of the log. NULL is fine. */
void tide_log_tap_free(tide_log_tap *tap);

#endif
