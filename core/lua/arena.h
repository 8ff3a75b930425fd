/* arena: memory for the first objects of a Lua state.
 *
 * A start makes ten thousand small objects and frees hardly any. Here that is a
 * step of a pointer each, a tenth of what malloc takes; what is freed goes to
 * the next object of its size. An arena does not grow: when it is full, and for
 * all that is not small, malloc takes over, so a script that fills memory and
 * empties it again finds malloc's manners and not ours.
 */
#ifndef TIDE_ARENA_H
#define TIDE_ARENA_H

#include <stddef.h>

typedef struct tide_arena tide_arena;

/* NULL when there is no memory, and under the sanitizers, which want to see
 * each object by itself: tide_arena_alloc does without. */
tide_arena *tide_arena_new(void);
/* After lua_close. */
void tide_arena_free(tide_arena *arena);

/* How much of it was ever handed out, and how much there is. */
void tide_arena_use(const tide_arena *arena, size_t *taken, size_t *size);

/* A lua_Alloc; `arg` is a tide_arena or NULL. */
void *tide_arena_alloc(void *arg, void *block, size_t old_size, size_t size);

#endif
