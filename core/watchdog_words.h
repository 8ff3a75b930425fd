/* watchdog_words: records of the watchdog's own, straight to a descriptor.
 *
 * In the form of the log's, past its ring, which the stuck loop may have
 * filled. Takes no lock and allocates nothing. [watchdog]
 */
#ifndef TIDE_WATCHDOG_WORDS_H
#define TIDE_WATCHDOG_WORDS_H

#include <stdint.h>

#include "log.h"

typedef struct tide_words {
  int fd;
  uint64_t give_up_at; /* how long a reader that does not read is waited for;
                          0: not at all */
  tide_log_format format;
} tide_words;

void tide_words_record(const tide_words *words, tide_log_level level,
                       const char *message, const tide_field *fields,
                       size_t count);

#endif
