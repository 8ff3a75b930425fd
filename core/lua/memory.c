/* memory.c: the allocator of a host's own Lua state. */
#include "memory.h"

#include <stdbool.h>

static bool too_much(const tide_memory *memory, size_t more) {
  return memory->guarded > 0 &&
         (memory->used > memory->limit || more > memory->limit - memory->used);
}

/* As lua_Alloc. Without a block, `old_size` is a type and no size. Lua counts
 * on it that nothing fails that makes a block smaller. */
static void *limited(void *arg, void *block, size_t old_size, size_t new_size) {
  tide_memory *memory = arg;
  size_t before = block != NULL ? old_size : 0;
  void *result;
  if (new_size > before && too_much(memory, new_size - before))
    return NULL;
  result = memory->below(memory->below_arg, block, old_size, new_size);
  if (result != NULL || new_size == 0)
    memory->used = memory->used - before + new_size;
  return result;
}

void tide_memory_init(tide_memory *memory, tide_alloc_fn alloc, void *arg,
                      size_t limit) {
  *memory = (tide_memory){.alloc = alloc, .arg = arg, .limit = limit};
  if (alloc == NULL) {
    memory->arena = tide_arena_new();
    memory->alloc = tide_arena_alloc;
    memory->arg = memory->arena;
  }
  if (limit == 0)
    return;
  memory->below = memory->alloc;
  memory->below_arg = memory->arg;
  memory->alloc = limited;
  memory->arg = memory;
}

void tide_memory_free(tide_memory *memory) {
  tide_arena_free(memory->arena);
  memory->arena = NULL;
}
