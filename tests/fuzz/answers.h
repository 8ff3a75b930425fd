/* answers: reads what a server sent on one connection, and trusts none of it.
 *
 * Shares no code with the core. Ends the process (check.h) at the first byte
 * that is no answer, at two framings of one answer, and at any byte behind an
 * answer that said close.
 */
#ifndef FUZZ_ANSWERS_H
#define FUZZ_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWERS_MAX = 512 };

typedef struct answer {
  int status;
  long number;        /* of its field "N", 0 without one */
  bool close;         /* said to be the last */
  bool volatile_body; /* differs from run to run: it has a Cache-Control */
  bool bare;          /* its head promises a body that did not come: a HEAD */
  bool whole;         /* up to its last byte */
  uint64_t body_hash;
  size_t body_length;
} answer;

typedef struct answers {
  size_t count;      /* final ones */
  size_t interim;    /* 100 Continue */
  size_t bare_count; /* answers that must be those of a HEAD */
  answer list[ANSWERS_MAX];
} answers;

/* Reads all that came on a connection. `ended`: the server's FIN came behind
 * it, which is the end of a body without another one. What is cut off in its
 * midst is the last answer, with `whole` not set. */
void answers_read(answers *out, const char *data, size_t length, bool ended);

/* FNV-1a; `seed` is a former result, or 0. */
uint64_t answers_hash(uint64_t seed, const char *data, size_t length);

#endif
