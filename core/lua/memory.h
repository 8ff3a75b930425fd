/* memory: where the memory of a host's own Lua state comes from.
 *
 * The arena, or what the program gave; counted only where a limit is set. The
 * limit holds for what runs inside of a protected call. Outside, in what luv or
 * a program pushes before it calls, an error would end the process: what that
 * takes is given, and missing in the next call.
 */
#ifndef TIDE_MEMORY_H
#define TIDE_MEMORY_H

#include <stddef.h>

#include "arena.h"

typedef void *(*tide_alloc_fn)(void *arg, void *block, size_t old_size,
                               size_t new_size);

typedef struct tide_memory {
  tide_alloc_fn alloc; /* for lua_newstate, with `arg` */
  void *arg;
  tide_arena *arena;   /* NULL with an own function */
  tide_alloc_fn below; /* with a limit: who really does it */
  void *below_arg;
  size_t limit;
  size_t used;
  int guarded; /* calls into Lua that are under way: an error has a place */
} tide_memory;

/* `alloc` NULL: the arena; `limit` 0: none. The struct must not move. */
void tide_memory_init(tide_memory *memory, tide_alloc_fn alloc, void *arg,
                      size_t limit);
/* After lua_close; harmless when nothing was made. */
void tide_memory_free(tide_memory *memory);

#endif
