/* log_text: a line that is built inside a fixed buffer.
 *
 * What does not fit is left out at a character's border and remembered, so that
 * a line cut short is still valid text. Knows nothing of records. [any]
 */
#ifndef TIDE_LOG_TEXT_H
#define TIDE_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide_text {
  char *data;
  size_t length;
  size_t limit;   /* how far the content may go, below the buffer's size */
  bool truncated; /* something was left out */
} tide_text;

/* How a string's characters are written. */
typedef enum tide_escape {
  TIDE_ESCAPE_NONE,   /* as they are; only invalid UTF-8 is replaced */
  TIDE_ESCAPE_QUOTED, /* as inside the quotes of JSON and of logfmt */
} tide_escape;

/* The length of the UTF-8 character at `s` (1 to 4), or 0 when the bytes are
 * none: overlong, a surrogate, beyond U+10FFFF, or cut off. */
size_t tide__utf8_length(const char *s, size_t length);

/* Whether logfmt must quote this value: it is empty, or has a space, '=', '"'
 * or a control (C1 and the Unicode line ends included). */
bool tide__text_needs_quotes(const char *s, size_t length);

/* All of it, or nothing and `truncated`. Returns whether it fitted. */
bool tide__text_put(tide_text *text, const char *s, size_t length);
/* As many characters as fit. */
void tide__text_string(tide_text *text, const char *s, size_t length,
                       tide_escape escape);
/* The shortest decimal that reads back as the same number, with a point
 * whatever the locale. The number is finite. */
bool tide__text_number(tide_text *text, double number);
bool tide__text_integer(tide_text *text, int64_t number);

#endif
