#include "json_text.h"

#include <string.h>

#include "../log_text.h"

#define FIRST_SIZE 1024

void *tide_json_resize(lua_State *L, void *block, size_t old_size,
                       size_t size) {
  void *arg;
  lua_Alloc alloc = lua_getallocf(L, &arg);
  return alloc(arg, block, old_size, size);
}

static bool reserve(lua_State *L, tide_json_text *text, size_t more) {
  size_t size = text->size > 0 ? text->size : FIRST_SIZE;
  char *grown;
  if (more <= text->size - text->length)
    return true;
  while (size - text->length < more)
    size *= 2;
  grown = tide_json_resize(L, text->data, text->size, size);
  if (grown == NULL)
    return false;
  text->data = grown;
  text->size = size;
  return true;
}

bool tide_json_put(lua_State *L, tide_json_text *text, const char *bytes,
                   size_t length) {
  if (!reserve(L, text, length))
    return false;
  memcpy(text->data + text->length, bytes, length);
  text->length += length;
  return true;
}

/* Whether the byte stands for itself inside of quotes. */
static bool is_plain(unsigned char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* An ASCII character that is not plain, as two or six bytes. */
static bool put_escape(lua_State *L, tide_json_text *text, unsigned char c) {
  static const char plain[] = "\"\\\n\r\t\b\f";
  static const char named[] = "\"\\nrtbf";
  static const char digits[] = "0123456789abcdef";
  const char *found = c != 0 ? strchr(plain, c) : NULL;
  char out[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
  if (found == NULL)
    return tide_json_put(L, text, out, 6);
  out[1] = named[found - plain];
  return tide_json_put(L, text, out, 2);
}

bool tide_json_string(lua_State *L, tide_json_text *text, const char *s,
                      size_t length) {
  const char *end = s + length;
  bool fits = tide_json_put(L, text, "\"", 1);
  while (fits && s < end) {
    const char *from = s;
    size_t n;
    while (s < end && is_plain((unsigned char)*s))
      s++;
    fits = tide_json_put(L, text, from, (size_t)(s - from));
    if (!fits || s == end)
      break;
    n = tide__utf8_length(s, (size_t)(end - s));
    if (n == 1)
      fits = put_escape(L, text, (unsigned char)*s);
    else
      fits = n > 0 ? tide_json_put(L, text, s, n)
                   : tide_json_put(L, text, "\xEF\xBF\xBD", 3); /* U+FFFD */
    s += n > 0 ? n : 1;
  }
  return fits && tide_json_put(L, text, "\"", 1);
}

bool tide_json_integer(lua_State *L, tide_json_text *text, lua_Integer number) {
  char digits[24];
  tide_text out = {.data = digits, .limit = sizeof digits};
  tide__text_integer(&out, number);
  return tide_json_put(L, text, digits, out.length);
}

bool tide_json_float(lua_State *L, tide_json_text *text, lua_Number number) {
  char digits[40];
  tide_text out = {.data = digits, .limit = sizeof digits};
  tide__text_number(&out, number);
  return tide_json_put(L, text, digits, out.length);
}

void tide_json_free(lua_State *L, tide_json_text *text) {
  tide_json_resize(L, text->data, text->size, 0);
  *text = (tide_json_text){0};
}
