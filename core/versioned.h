/* versioned: structs of the public header that begin with their size. */
#ifndef TIDE_VERSIONED_H
#define TIDE_VERSIONED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Copies what the caller's struct has over the defaults in `own`. Its size may
 * be that of an older header; false when it is of a newer one and says
 * something that is not known here, or says no size at all. */
static inline bool tide_struct_take(void *own, size_t own_size,
                                    const void *given) {
  size_t size, i;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size)
    return false;
  for (i = own_size; i < size; i++)
    if (((const char *)given)[i] != 0)
      return false;
  memcpy(own, given, size < own_size ? size : own_size);
  return true;
}

#endif
