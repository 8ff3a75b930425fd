/* json.c: `moontide.core.json`: values as JSON text.
 *
 * Tables are read raw, and while one is walked through nothing of Lua's is
 * allocated: no code of a script runs, not even a finalizer, so nothing changes
 * below the walk.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "lua.h"

#define MOST_LEVELS 100
/* Slots of Lua's stack that a level needs beside its keys. */
#define SLOTS 8
/* Values between two looks at whether a hook wants to run: an interrupt, or the
 * end of an evaluation's slice. One that lets us go on may have changed what we
 * walk through, so that we begin anew, and look after so many times more: what
 * has an end is not begun often, and what has none meets its own. */
#define FIRST_LOOK 1024
#define LATER 8
#define LAST_LOOK (FIRST_LOOK * LATER * LATER * LATER * LATER * LATER)
/* What is kept for the next time, in bytes. */
#define KEPT 16384

enum { UP_NULL = 1, UP_ARRAY, UP_BOX, UP_LETS_HOOKS_RUN };

typedef struct key {
  const char *text;
  size_t length;
  int slot; /* of Lua's stack, where it is anchored */
} key;

/* Memory that lives as long as the function, so that an error leaves nothing
 * behind. */
typedef struct box {
  tide_json_text text;
  key *keys; /* of all levels */
  size_t keys_size;
} box;

typedef enum outcome {
  GOOD,
  BAD, /* `message` says why */
  NO_MEMORY,
  INTERRUPTED, /* a hook wants to run */
} outcome;

typedef struct level {
  const void *table;
  const char *name; /* where we are in it; NULL: at `index` */
  size_t name_length;
  lua_Integer index;
} level;

typedef struct writer {
  lua_State *L;
  box *box;
  const void *null, *array;
  size_t keys;   /* in use */
  lua_Hook hook; /* as it was when we began */
  int hook_count;
  unsigned values; /* since the last look */
  unsigned look_every;
  int depth;
  level levels[MOST_LEVELS];
  char message[512];
} writer;

static outcome put(writer *w, const char *text, size_t length) {
  return tide_json_put(w->L, &w->box->text, text, length) ? GOOD : NO_MEMORY;
}

/* ---- what is wrong ---------------------------------------------------- */

static void add(writer *w, const char *format, ...) {
  size_t length = strlen(w->message);
  va_list args;
  va_start(args, format);
  vsnprintf(w->message + length, sizeof w->message - length, format, args);
  va_end(args);
}

/* Where we are: `a.b[2]`. */
static void add_place(writer *w) {
  int i;
  if (w->depth == 0)
    add(w, "the top");
  for (i = 0; i < w->depth; i++) {
    const level *at = &w->levels[i];
    if (at->name == NULL)
      add(w, "[%lld]", (long long)at->index);
    else
      add(w, "%s%.*s", i > 0 ? "." : "", (int)at->name_length, at->name);
  }
}

static outcome refuse(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(w->message, sizeof w->message, format, args);
  va_end(args);
  add(w, " at ");
  add_place(w);
  return BAD;
}

/* It is the table that is wrong, not what is in it: for put_table. */
static outcome refuse_table(writer *w, const char *why) {
  w->depth--;
  return refuse(w, "%s", why);
}

static outcome refuse_kind(writer *w) {
  return refuse(w, "a %s has no form in JSON", luaL_typename(w->L, -1));
}

/* The keys of the table on the top make neither a list nor an object. */
static outcome refuse_keys(writer *w) {
  lua_State *L = w->L;
  lua_Integer length = (lua_Integer)lua_rawlen(L, -1);
  bool named = false;
  w->depth--; /* as in refuse_table */
  lua_pushnil(L);
  while (lua_next(L, -2) != 0) {
    lua_Integer index;
    lua_pop(L, 1);
    named = named || lua_type(L, -1) == LUA_TSTRING;
    if (lua_type(L, -1) == LUA_TSTRING)
      continue;
    if (!lua_isinteger(L, -1))
      return refuse(w, "a key that is a %s", luaL_typename(L, -1));
    index = lua_tointeger(L, -1);
    if (index < 1 || index > length)
      return refuse(w, "a list with a hole or a gap (index %lld beyond %lld)",
                    (long long)index, (long long)length);
  }
  return refuse(w, named ? "a table with both list and named entries"
                         : "a list with a hole");
}

/* ---- lists ------------------------------------------------------------ */

static outcome put_value(writer *w);

static outcome put_items(writer *w, lua_Integer length) {
  level *here = &w->levels[w->depth - 1];
  outcome rc = put(w, "[", 1);
  for (here->index = 1; rc == GOOD && here->index <= length; here->index++) {
    if (here->index > 1 && (rc = put(w, ",", 1)) != GOOD)
      break;
    lua_rawgeti(w->L, -1, here->index);
    rc = put_value(w);
    lua_pop(w->L, 1);
  }
  return rc == GOOD ? put(w, "]", 1) : rc;
}

/* The keys of a list are 1 to its length, and nothing else. */
static outcome put_list(writer *w) {
  lua_State *L = w->L;
  lua_Integer length = (lua_Integer)lua_rawlen(L, -1), count = 0;
  lua_pushnil(L);
  while (lua_next(L, -2) != 0) {
    lua_Integer index;
    lua_pop(L, 1);
    index = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    count++;
    if (index < 1 || index > length) {
      lua_pop(L, 1);
      return refuse_keys(w);
    }
  }
  return count == length ? put_items(w, length) : refuse_keys(w);
}

/* ---- objects ---------------------------------------------------------- */

static int by_text(const void *a, const void *b) {
  const key *x = a, *y = b;
  size_t length = x->length < y->length ? x->length : y->length;
  int order = memcmp(x->text, y->text, length);
  if (order != 0 || x->length == y->length)
    return order;
  return x->length < y->length ? -1 : 1;
}

/* The few that objects mostly have are in place sooner. */
static void sort(key *keys, size_t count) {
  size_t i, j;
  if (count > 24) {
    qsort(keys, count, sizeof *keys, by_text);
    return;
  }
  for (i = 1; i < count; i++) {
    key moved = keys[i];
    for (j = i; j > 0 && by_text(&keys[j - 1], &moved) > 0; j--)
      keys[j] = keys[j - 1];
    keys[j] = moved;
  }
}

static outcome put_member(writer *w, int table, key k) {
  lua_State *L = w->L;
  level *here = &w->levels[w->depth - 1];
  outcome rc;
  here->name = k.text;
  here->name_length = k.length;
  if (!tide_json_string(L, &w->box->text, k.text, k.length) ||
      put(w, ":", 1) != GOOD)
    return NO_MEMORY;
  lua_pushvalue(L, k.slot);
  lua_rawget(L, table);
  rc = put_value(w);
  lua_pop(L, 1);
  return rc;
}

static outcome put_members(writer *w, int table, size_t first, size_t count) {
  outcome rc = put(w, "{", 1);
  size_t i;
  sort(w->box->keys + first, count);
  for (i = first; rc == GOOD && i < first + count; i++) {
    if (i > first && (rc = put(w, ",", 1)) != GOOD)
      break;
    rc = put_member(w, table, w->box->keys[i]); /* they may move below it */
  }
  return rc == GOOD ? put(w, "}", 1) : rc;
}

static bool reserve_key(writer *w) {
  box *b = w->box;
  size_t size = b->keys_size > 0 ? b->keys_size * 2 : 16;
  key *grown;
  if (w->keys < b->keys_size)
    return true;
  grown = tide_json_resize(w->L, b->keys, b->keys_size * sizeof *grown,
                           size * sizeof *grown);
  if (grown == NULL)
    return false;
  b->keys = grown;
  b->keys_size = size;
  return true;
}

/* The key on the top, which stays there. */
static outcome take_key(writer *w) {
  lua_State *L = w->L;
  key *k;
  if (!lua_checkstack(L, SLOTS))
    return refuse_table(w, "too many members");
  if (!reserve_key(w))
    return NO_MEMORY;
  k = &w->box->keys[w->keys++];
  k->slot = lua_gettop(L);
  k->text = lua_tolstring(L, -1, &k->length);
  return GOOD;
}

/* Keys that are texts onto Lua's stack; `all`: there are no others. */
static outcome take_keys(writer *w, int table, bool *all) {
  lua_State *L = w->L;
  outcome rc = GOOD;
  *all = true;
  lua_pushnil(L);
  while (rc == GOOD && lua_next(L, table) != 0) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) {
      *all = false;
      return GOOD;
    }
    rc = take_key(w);
    if (rc == GOOD)
      lua_pushvalue(L, -1);
  }
  return rc;
}

/* ---- tables ----------------------------------------------------------- */

static bool is_marked_as_list(const writer *w) {
  bool marked = false;
  if (lua_getmetatable(w->L, -1)) {
    marked = lua_topointer(w->L, -1) == w->array;
    lua_pop(w->L, 1);
  }
  return marked;
}

/* The table on the top. An empty one is an object unless it is marked. */
static outcome put_entries(writer *w) {
  lua_State *L = w->L;
  int table = lua_gettop(L);
  bool marked = is_marked_as_list(w), all;
  size_t first = w->keys, count;
  outcome rc = take_keys(w, table, &all);
  count = w->keys - first;
  if (rc == GOOD && count > 0 && all && !marked)
    rc = put_members(w, table, first, count);
  lua_settop(L, table);
  w->keys = first;
  if (rc != GOOD || (count > 0 && all && !marked))
    return rc;
  if (count > 0)
    return refuse_keys(w);
  return all && !marked ? put(w, "{}", 2) : put_list(w);
}

static bool is_open(const writer *w, const void *table) {
  int i;
  for (i = 0; i < w->depth; i++)
    if (w->levels[i].table == table)
      return true;
  return false;
}

static outcome put_table(writer *w) {
  const void *table = lua_topointer(w->L, -1);
  int depth = w->depth;
  outcome rc;
  if (table == w->null)
    return put(w, "null", 4);
  if (is_open(w, table))
    return refuse(w, "a cycle");
  if (depth == MOST_LEVELS)
    return refuse(w, "more than %d levels", MOST_LEVELS);
  if (!lua_checkstack(w->L, SLOTS))
    return NO_MEMORY;
  w->levels[w->depth++] = (level){.table = table};
  rc = put_entries(w);
  w->depth = depth;
  return rc;
}

static outcome put_number(writer *w) {
  lua_State *L = w->L;
  lua_Number number;
  bool fits;
  if (lua_isinteger(L, -1)) {
    fits = tide_json_integer(L, &w->box->text, lua_tointeger(L, -1));
  } else {
    number = lua_tonumber(L, -1);
    if (!isfinite(number))
      return refuse(w, "%s has no form in JSON",
                    isnan(number) ? "NaN" : "an infinity");
    fits = tide_json_float(L, &w->box->text, number);
  }
  return fits ? GOOD : NO_MEMORY;
}

static outcome put_string(writer *w) {
  size_t length;
  const char *s = lua_tolstring(w->L, -1, &length);
  return tide_json_string(w->L, &w->box->text, s, length) ? GOOD : NO_MEMORY;
}

/* It was set since we began, or is due with the next instruction. */
static bool wants_hook(const writer *w) {
  lua_Hook hook = lua_gethook(w->L);
  int count = lua_gethookcount(w->L);
  return hook != w->hook || count != w->hook_count ||
         (hook != NULL && count == 1);
}

/* The value on the top, which stays there. */
static outcome put_value(writer *w) {
  lua_State *L = w->L;
  if (++w->values >= w->look_every) {
    w->values = 0;
    if (wants_hook(w))
      return INTERRUPTED;
  }
  switch (lua_type(L, -1)) {
  case LUA_TSTRING:
    return put_string(w);
  case LUA_TNUMBER:
    return put_number(w);
  case LUA_TTABLE:
    return put_table(w);
  case LUA_TBOOLEAN:
    return lua_toboolean(L, -1) ? put(w, "true", 4) : put(w, "false", 5);
  case LUA_TNIL:
    return put(w, "null", 4);
  case LUA_TLIGHTUSERDATA: /* NULL is cjson's null, and other libraries' */
    return lua_touserdata(L, -1) == NULL ? put(w, "null", 4) : refuse_kind(w);
  default:
    return refuse_kind(w);
  }
}

/* ---- the function ----------------------------------------------------- */

static outcome begin(writer *w, lua_State *L, unsigned look_every) {
  w->L = L;
  w->box = lua_touserdata(L, lua_upvalueindex(UP_BOX));
  w->null = lua_topointer(L, lua_upvalueindex(UP_NULL));
  w->array = lua_topointer(L, lua_upvalueindex(UP_ARRAY));
  w->keys = w->box->text.length = 0;
  w->hook = lua_gethook(L);
  w->hook_count = lua_gethookcount(L);
  w->look_every = look_every;
  w->values = 0;
  w->depth = 0;
  return put_value(w);
}

/* A hook comes with an instruction of Lua's: here is one. Mostly it raises, for
 * the task's time is over. */
static void let_hooks_run(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(UP_LETS_HOOKS_RUN));
  lua_call(L, 0, 0);
}

static void drop(lua_State *L, box *b) {
  tide_json_free(L, &b->text);
  tide_json_resize(L, b->keys, b->keys_size * sizeof *b->keys, 0);
  b->keys = NULL;
  b->keys_size = 0;
}

static int collect_box(lua_State *L) {
  drop(L, lua_touserdata(L, 1));
  return 0;
}

/* To the end, beginning anew where that is worth while. */
static outcome write_all(writer *w, lua_State *L) {
  unsigned look_every = FIRST_LOOK;
  bool collected = false;
  for (;;) {
    outcome rc = begin(w, L, look_every);
    lua_settop(L, 1);
    if (rc == INTERRUPTED) {
      let_hooks_run(L);
      look_every = look_every < LAST_LOOK ? look_every * LATER : LAST_LOOK;
    } else if (rc == NO_MEMORY && !collected) {
      lua_gc(L, LUA_GCCOLLECT);
      collected = true;
    } else {
      return rc;
    }
  }
}

/* encode(value) -> text. Raises for the caller. */
static int encode(lua_State *L) {
  writer w;
  outcome rc;
  lua_settop(L, 1);
  rc = write_all(&w, L);
  if (rc == NO_MEMORY)
    drop(L, w.box);
  if (rc != GOOD)
    return luaL_error(L, "json.encode: %s",
                      rc == BAD ? w.message : "not enough memory");
  lua_pushlstring(L, w.box->text.data, w.box->text.length);
  if (w.box->text.size + w.box->keys_size * sizeof(key) > KEPT)
    drop(L, w.box);
  return 1;
}

/* encoder(null, array) -> encode: `null` stands for JSON's, `array` is the
 * metatable of what is a list also when it is empty. */
static int encoder(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  *(box *)lua_newuserdatauv(L, sizeof(box), 0) = (box){0};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, collect_box);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  if (luaL_loadstring(L, "return") != LUA_OK)
    return lua_error(L);
  lua_pushcclosure(L, encode, 4);
  return 1;
}

int tide_lua_open_json(lua_State *L) {
  static const luaL_Reg functions[] = {{"encoder", encoder}, {NULL, NULL}};
  tide_lua_newlib(L, functions);
  return 1;
}
