/* Reads an HTTP/1.1 answer, on purpose not with the parser of the server. */
#include <string.h>
#include <strings.h>

#include "load.h"

typedef struct head {
  bool chunked;
  bool has_length;
  size_t length;
} head;

static bool parse_number(const char *text, size_t length, int base,
                         size_t *value) {
  *value = 0;
  if (length == 0 || length > 15)
    return false;
  for (size_t i = 0; i < length; i++) {
    const char *digits = "0123456789abcdef";
    char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
    const char *digit = c != '\0' ? strchr(digits, c) : NULL;
    if (digit == NULL || digit - digits >= base)
      return false;
    *value = *value * (size_t)base + (size_t)(digit - digits);
  }
  return true;
}

static bool same(const char *text, size_t length, const char *word) {
  return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

/* One line `name: value`, without its end. */
static bool parse_field(const char *line, size_t length, head *framing,
                        load_answer *answer) {
  const char *colon = memchr(line, ':', length);
  if (colon == NULL || colon == line)
    return false;
  size_t name = (size_t)(colon - line);
  const char *value = colon + 1;
  size_t rest = length - name - 1;
  while (rest > 0 && *value == ' ') {
    value++;
    rest--;
  }
  if (same(line, name, "content-length")) {
    if (framing->has_length || !parse_number(value, rest, 10, &framing->length))
      return false;
    framing->has_length = true;
  } else if (same(line, name, "transfer-encoding")) {
    framing->chunked = same(value, rest, "chunked");
    return framing->chunked;
  } else if (same(line, name, "connection")) {
    answer->close = same(value, rest, "close");
  }
  return true;
}

/* `end` is behind the empty line. */
static bool parse_head(const char *buffer, const char *end, head *framing,
                       load_answer *answer) {
  const char *line = memchr(buffer, '\n', (size_t)(end - buffer));
  size_t status;
  if (line++ - buffer < 14 || memcmp(buffer, "HTTP/1.1 ", 9) != 0 ||
      !parse_number(buffer + 9, 3, 10, &status))
    return false;
  answer->status = (int)status;
  while (line < end - 2) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    if (newline[-1] != '\r' ||
        !parse_field(line, (size_t)(newline - line) - 1, framing, answer))
      return false;
    line = newline + 1;
  }
  return framing->chunked != framing->has_length; /* exactly one of them */
}

/* Walks over the chunks; `joined` says where to put their bytes, or NULL. */
static load_answer_state walk_chunks(char *at, const char *end, char *joined,
                                     load_answer *answer, const char *start) {
  size_t total = 0;
  for (;;) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t size;
    if (newline == NULL)
      return LOAD_ANSWER_PART;
    if (newline[-1] != '\r' ||
        !parse_number(at, (size_t)(newline - at) - 1, 16, &size))
      return LOAD_ANSWER_BAD;
    at = newline + 1;
    if ((size_t)(end - at) < size + 2)
      return LOAD_ANSWER_PART;
    if (at[size] != '\r' || at[size + 1] != '\n')
      return LOAD_ANSWER_BAD;
    if (joined != NULL)
      memmove(joined + total, at, size);
    total += size;
    at += size + 2;
    if (size == 0)
      break;
  }
  answer->length = (size_t)(at - start);
  answer->body_length = total;
  return LOAD_ANSWER_WHOLE;
}

load_answer_state load_answer_parse(char *buffer, size_t length,
                                    load_answer *answer) {
  head framing = {0};
  memset(answer, 0, sizeof *answer);
  char *blank = memmem(buffer, length, "\r\n\r\n", 4);
  if (blank == NULL)
    return LOAD_ANSWER_PART;
  char *body = blank + 4;
  if (!parse_head(buffer, body, &framing, answer))
    return LOAD_ANSWER_BAD;
  answer->body = body;
  if (framing.chunked) {
    load_answer_state state =
        walk_chunks(body, buffer + length, NULL, answer, buffer);
    if (state != LOAD_ANSWER_WHOLE)
      return state;
    return walk_chunks(body, buffer + length, body, answer, buffer);
  }
  answer->length = (size_t)(body - buffer) + framing.length;
  answer->body_length = framing.length;
  return length < answer->length ? LOAD_ANSWER_PART : LOAD_ANSWER_WHOLE;
}
