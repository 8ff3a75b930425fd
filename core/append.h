/* append: text put together where printf may not be called: in a signal
 * handler. */
#ifndef TIDE_APPEND_H
#define TIDE_APPEND_H

#include <stddef.h>

/* Writes `text` behind the first `at` bytes of out, as far as it fits with the
 * NUL; returns where its end is now. Async-signal-safe. */
static inline size_t tide_append(char *out, size_t size, size_t at,
                                 const char *text) {
  while (*text != '\0' && at + 1 < size)
    out[at++] = *text++;
  out[at] = '\0';
  return at;
}

#endif
