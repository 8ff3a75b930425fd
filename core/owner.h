/* owner: who holds a libuv handle.
 *
 * Every handle of the core points with its `data` at a struct whose first
 * member is a tide_owner. A walk over the loop can so tell the core's handles
 * from those of scripts and of an embedding program, and name them.
 */
#ifndef TIDE_OWNER_H
#define TIDE_OWNER_H

#include <stdint.h>

#define TIDE_OWNER_MAGIC ((uint64_t)0x7469646568616e64) /* "tidehand" */

typedef struct tide_owner {
  uint64_t magic;   /* TIDE_OWNER_MAGIC */
  const char *name; /* a literal: "clock", "http listener", ... */
} tide_owner;

#endif
