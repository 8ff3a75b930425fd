/* arena.c: steps of a pointer, a free list a size, malloc for the rest. */
#include "arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Address space for the small objects of most hosts, garbage included, and what
 * any uses at once. Pages between the two are taken when they are reached. */
#define ARENA_SIZE ((size_t)8 * 1024 * 1024)
#define USED_AT_ONCE ((size_t)416 * 1024)
#define GRAIN ((size_t)16) /* what malloc aligns to */
#define SMALL ((size_t)512)

typedef struct freed {
  struct freed *next;
} freed;

struct tide_arena {
  char *at, *end;
  freed *free[SMALL / GRAIN + 1]; /* by size in grains */
  _Alignas(16) char memory[];
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
tide_arena *tide_arena_new(void) {
  return NULL;
}
#else
/* Takes the pages that every start will touch in one go, which is half of what
 * a fault for each costs. Older kernels refuse; then they come one by one. */
static void take_pages(void *memory) {
#ifdef MADV_POPULATE_WRITE
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
  madvise((void *)first, USED_AT_ONCE, MADV_POPULATE_WRITE);
#else
  (void)memory;
#endif
}

tide_arena *tide_arena_new(void) {
  /* Not cleared as a whole: pages that are never reached cost nothing. */
  tide_arena *arena = malloc(sizeof *arena + ARENA_SIZE);
  if (arena == NULL)
    return NULL;
  take_pages(arena);
  memset(arena, 0, sizeof *arena);
  arena->at = arena->memory;
  arena->end = arena->memory + ARENA_SIZE;
  return arena;
}
#endif

void tide_arena_free(tide_arena *arena) {
  free(arena);
}

void tide_arena_use(const tide_arena *arena, size_t *taken, size_t *size) {
  *taken = (size_t)(arena->at - arena->memory);
  *size = ARENA_SIZE;
}

static size_t grains(size_t size) {
  return (size + GRAIN - 1) / GRAIN;
}

static bool inside(const tide_arena *arena, const void *block) {
  return arena != NULL &&
         (uintptr_t)block - (uintptr_t)arena->memory < ARENA_SIZE;
}

/* NULL when there is no room here. */
static void *take(tide_arena *arena, size_t size) {
  size_t n = grains(size);
  freed *block = arena->free[n];
  if (block != NULL) {
    arena->free[n] = block->next;
    return block;
  }
  if ((size_t)(arena->end - arena->at) < n * GRAIN)
    return NULL;
  block = (freed *)(void *)arena->at;
  arena->at += n * GRAIN;
  return block;
}

static void give_back(tide_arena *arena, void *block, size_t size) {
  freed *first = block;
  first->next = arena->free[grains(size)];
  arena->free[grains(size)] = first;
}

static void *allocate(tide_arena *arena, size_t size) {
  void *block = NULL;
  if (arena != NULL && size <= SMALL)
    block = take(arena, size);
  return block != NULL ? block : malloc(size);
}

/* Of a block of ours. Lua counts on it that shrinking does not fail. */
static void *resize(tide_arena *arena, void *block, size_t old_size,
                    size_t size) {
  void *moved;
  if (grains(size) == grains(old_size))
    return block;
  moved = allocate(arena, size);
  if (moved == NULL)
    return size < old_size ? block : NULL;
  memcpy(moved, block, size < old_size ? size : old_size);
  give_back(arena, block, old_size);
  return moved;
}

void *tide_arena_alloc(void *arg, void *block, size_t old_size, size_t size) {
  tide_arena *arena = arg;
  if (block == NULL) /* old_size tells what kind of object it is */
    return size > 0 ? allocate(arena, size) : NULL;
  if (!inside(arena, block)) {
    if (size > 0)
      return realloc(block, size);
    free(block);
    return NULL;
  }
  if (size > 0)
    return resize(arena, block, old_size, size);
  give_back(arena, block, old_size);
  return NULL;
}
