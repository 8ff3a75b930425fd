/* json_text: JSON text that grows. Knows nothing of tables. */
#ifndef TIDE_LUA_JSON_TEXT_H
#define TIDE_LUA_JSON_TEXT_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tide_json_text {
  char *data; /* of the Lua state's allocator: its limit holds for it */
  size_t size;
  size_t length;
} tide_json_text;

/* Memory of the state's allocator; `size` 0 frees. No collection, so nothing of
 * a script runs. */
void *tide_json_resize(lua_State *L, void *block, size_t old_size, size_t size);

/* All of these: false when there is no memory, and the text is as it was, or
 * has a part of what was to come. */
bool tide_json_put(lua_State *L, tide_json_text *text, const char *bytes,
                   size_t length);
/* In quotes; a byte of no UTF-8 character becomes U+FFFD. */
bool tide_json_string(lua_State *L, tide_json_text *text, const char *s,
                      size_t length);
bool tide_json_integer(lua_State *L, tide_json_text *text, lua_Integer number);
/* The shortest decimal that reads back as the same; the number is finite. */
bool tide_json_float(lua_State *L, tide_json_text *text, lua_Number number);

void tide_json_free(lua_State *L, tide_json_text *text);

#endif
