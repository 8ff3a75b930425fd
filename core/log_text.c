#include "log_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

size_t tide__utf8_length(const char *s, size_t length) {
  const unsigned char *p = (const unsigned char *)s;
  size_t need;
  uint32_t code, least;

  if (length == 0)
    return 0;
  if (p[0] < 0x80)
    return 1;
  if (p[0] >= 0xC2 && p[0] <= 0xDF) {
    need = 2;
    code = p[0] & 0x1Fu;
    least = 0x80;
  } else if ((p[0] & 0xF0) == 0xE0) {
    need = 3;
    code = p[0] & 0x0Fu;
    least = 0x800;
  } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    need = 4;
    code = p[0] & 0x07u;
    least = 0x10000;
  } else {
    return 0;
  }
  if (length < need)
    return 0;
  for (size_t i = 1; i < need; i++) {
    if ((p[i] & 0xC0) != 0x80)
      return 0;
    code = code << 6 | (p[i] & 0x3Fu);
  }
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
    return 0;
  return need;
}

/* The code of a character that readers may take for a control or a line end,
 * beyond ASCII: U+0080 to U+009F, U+2028, U+2029. 0 for all others. */
static unsigned wide_control(const char *s, size_t length) {
  const unsigned char *p = (const unsigned char *)s;

  if (length == 2 && p[0] == 0xC2 && p[1] <= 0x9F)
    return p[1];
  if (length == 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] & 0xFE) == 0xA8)
    return 0x2000u | (p[2] & 0x3Fu);
  return 0;
}

bool tide__text_needs_quotes(const char *s, size_t length) {
  if (length == 0)
    return true;
  for (size_t i = 0; i < length;) {
    unsigned char c = (unsigned char)s[i];
    if (c <= ' ' || c == '=' || c == '"' || c == 0x7F)
      return true;
    size_t n = tide__utf8_length(s + i, length - i);
    if (wide_control(s + i, n) != 0)
      return true;
    i += n == 0 ? 1 : n;
  }
  return false;
}

bool tide__text_put(tide_text *text, const char *s, size_t length) {
  if (text->truncated || length > text->limit - text->length) {
    text->truncated = true;
    return false;
  }
  memcpy(text->data + text->length, s, length);
  text->length += length;
  return true;
}

static bool put_code(tide_text *text, unsigned code) {
  char escape[8];

  snprintf(escape, sizeof escape, "\\u%04x", code & 0xFFFFu);
  return tide__text_put(text, escape, 6);
}

/* One ASCII character that cannot stand inside quotes as it is. */
static bool put_escaped(tide_text *text, char c) {
  static const char plain[] = "\"\\\n\r\t\b\f";
  static const char named[] = "\"\\nrtbf";
  const char *found = c == 0 ? NULL : strchr(plain, c);

  if (found == NULL)
    return put_code(text, (unsigned char)c);
  return tide__text_put(text, (char[]){'\\', named[found - plain]}, 2);
}

/* How many characters from here on are ASCII that needs no attention. */
static size_t plain_run(const char *s, size_t length, tide_escape escape) {
  size_t n = 0;

  while (n < length) {
    unsigned char c = (unsigned char)s[n];
    if (c < ' ' || c >= 0x7F)
      break;
    if (escape == TIDE_ESCAPE_QUOTED && (c == '"' || c == '\\'))
      break;
    n++;
  }
  return n;
}

/* The character at `s`, which is not plain. Returns its length, 0 when it did
 * not fit. */
static size_t put_special(tide_text *text, const char *s, size_t length,
                          tide_escape escape) {
  size_t n = tide__utf8_length(s, length);
  unsigned control = wide_control(s, n);
  bool fitted;

  if (n == 0) {
    n = 1;
    fitted = tide__text_put(text, REPLACEMENT, 3);
  } else if (escape == TIDE_ESCAPE_QUOTED && n == 1) {
    fitted = put_escaped(text, *s);
  } else if (escape == TIDE_ESCAPE_QUOTED && control != 0) {
    fitted = put_code(text, control);
  } else {
    fitted = tide__text_put(text, s, n);
  }
  return fitted ? n : 0;
}

void tide__text_string(tide_text *text, const char *s, size_t length,
                       tide_escape escape) {
  while (length > 0 && !text->truncated) {
    size_t n = plain_run(s, length, escape);
    if (n > 0) {
      size_t room = text->limit - text->length;
      tide__text_put(text, s, n < room ? n : room);
      text->truncated = n > room;
    } else {
      n = put_special(text, s, length, escape);
    }
    s += n;
    length -= n;
  }
}

bool tide__text_number(tide_text *text, double number) {
  char digits[40];
  int length = 0;

  for (int precision = 15; precision <= 17; precision++) {
    length = snprintf(digits, sizeof digits, "%.*g", precision, number);
    if (strtod(digits, NULL) == number)
      break;
  }
  /* A locale's decimal comma (one byte in every glibc locale that has one). */
  for (int i = 0; i < length; i++) {
    if (strchr("0123456789+-e.", digits[i]) == NULL)
      digits[i] = '.';
  }
  return tide__text_put(text, digits, (size_t)length);
}

bool tide__text_integer(tide_text *text, int64_t number) {
  char digits[20]; /* INT64_MIN has 19 and a sign */
  char *first = digits + sizeof digits;
  uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

  do {
    *--first = (char)('0' + left % 10);
    left /= 10;
  } while (left > 0);
  if (number < 0)
    *--first = '-';
  return tide__text_put(text, first, (size_t)(digits + sizeof digits - first));
}
