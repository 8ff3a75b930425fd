/* interrupt_note.c: what runs, noted by the thread that runs it.
 *
 * Names of tasks and routes lie in memory that the loop may free at any moment,
 * so no other thread may look at them. But the handler of a poke runs on the
 * loop's own thread: between two of its instructions nothing is freed. It
 * copies the name of what the running slice is, and sets a hook that tells the
 * line, once, if Lua gets to execute another instruction. If it does not, it is
 * inside of one long call of C.
 */
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "append.h"
#include "interrupt_inside.h"

#define LOAD(field)                                                            \
  atomic_load_explicit(&interrupt->field, memory_order_relaxed)

/* How far out a line of the script's is looked for, from a line of ours. */
#define LEVELS 20

/* ---- the line --------------------------------------------------------- */

static bool is_ours(const lua_Debug *ar) {
  return strncmp(ar->source, "@moontide/", 10) == 0;
}

/* The innermost line of the script's, else the innermost of all. */
static void write_line(lua_State *L, char *out, size_t size) {
  lua_Debug ar;
  int level;
  out[0] = '\0';
  for (level = 0; level < LEVELS && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    if (ar.currentline <= 0 || (out[0] != '\0' && is_ours(&ar)))
      continue;
    snprintf(out, size, "%s:%d", ar.short_src, ar.currentline);
    if (!is_ours(&ar))
      return;
  }
}

void tide_interrupt_note_line(tide_interrupt *interrupt, lua_State *L) {
  uint32_t asked = LOAD(note.asked);
  if (asked == LOAD(note.seen) || asked != LOAD(note.named))
    return;
  write_line(L, interrupt->note.at, sizeof interrupt->note.at);
  atomic_store_explicit(&interrupt->note.seen, asked, memory_order_release);
}

/* Once: a state that was left with it meanwhile, or has inherited it, has it
 * taken off here. */
static void look(lua_State *L, lua_Debug *ar) {
  tide_interrupt *interrupt = tide_interrupt__of(L);
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  if (interrupt != NULL)
    tide_interrupt_note_line(interrupt, L);
}

/* ---- the name --------------------------------------------------------- */

/* Other hooks are left alone, but the one that raises tells the line, too, and
 * so does that of evaluations. */
static bool look_at(tide_interrupt *interrupt, const tide_frame *top) {
  if (top == NULL || LOAD(busy))
    return false;
  if (top->hooked || tide_interrupt__hastens(interrupt, top->L))
    return true;
  if (lua_gethook(top->L) != NULL && lua_gethook(top->L) != look)
    return false;
  lua_sethook(top->L, look, LUA_MASKCOUNT | LUA_MASKCALL, 1);
  return true;
}

static uint64_t write_name(const tide_interrupt *interrupt,
                           const tide_slice *slice, char *out, size_t size) {
  const char *kind = slice->kind != NULL ? slice->kind : "Lua";
  uint64_t since = 0;
  if (interrupt->describe != NULL)
    since = interrupt->describe(interrupt->describe_arg, slice, out, size);
  if (out[0] == '\0')
    tide_append(out, size, 0, kind);
  return since;
}

void tide_interrupt__note(tide_interrupt *interrupt) {
  tide_note *note = &interrupt->note;
  const tide_slice *slice = LOAD(slice);
  uint32_t asked = atomic_load(&note->asked);
  uint64_t since = 0;
  bool looking = false;
  if (asked == LOAD(note.named))
    return;
  note->what[0] = '\0';
  if (slice != NULL) {
    since = write_name(interrupt, slice, note->what, sizeof note->what);
    looking = look_at(interrupt, LOAD(top));
  }
  atomic_store(&note->id, slice != NULL ? slice->id : 0);
  atomic_store(&note->since, since);
  atomic_store(&note->looking, looking);
  atomic_store_explicit(&note->named, asked, memory_order_release);
}

/* ---- the watchdog's side ---------------------------------------------- */

/* A question is over with its name, whether the line came or not: it may come
 * while the watchdog copies it only if `seen` says that it has come. */
void tide_interrupt_ask(tide_interrupt *interrupt) {
  tide_note *note = &interrupt->note;
  if (atomic_load(&note->named) == atomic_load(&note->asked))
    atomic_fetch_add(&note->asked, 1);
  tide_interrupt_poke(interrupt);
}

bool tide_interrupt_noted(tide_interrupt *interrupt, tide_noted *noted) {
  tide_note *note = &interrupt->note;
  uint32_t asked = atomic_load(&note->asked);
  memset(noted, 0, sizeof *noted);
  if (atomic_load_explicit(&note->named, memory_order_acquire) != asked) {
    tide_interrupt_poke(interrupt);
    return false;
  }
  noted->id = atomic_load(&note->id);
  noted->since = atomic_load(&note->since);
  noted->looking = atomic_load(&note->looking);
  memcpy(noted->what, note->what, sizeof noted->what);
  noted->seen =
      atomic_load_explicit(&note->seen, memory_order_acquire) == asked;
  if (noted->seen)
    memcpy(noted->at, note->at, sizeof noted->at);
  return true;
}
