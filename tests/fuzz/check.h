/* check: an assertion of a fuzz target, on in every build. */
#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Says what does not hold, and with which number, then ends the process, so
 * that the fuzzer keeps the input. */
#define CHECK_SAYING(condition, number)                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: does not hold: %s (%ld)\n", __FILE__, __LINE__,  \
              #condition, (long)(number));                                     \
      abort();                                                                 \
    }                                                                          \
  } while (0)
#define CHECK(condition) CHECK_SAYING(condition, 0)

#endif
