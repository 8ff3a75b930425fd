/* fuzz_log: a record of hostile texts, as logfmt and as JSON.
 *
 * An input is a byte of choices, then strings that end with byte 0x1f: the
 * component, the message, then keys and values in turn. Whatever they hold, the
 * result is one line of valid UTF-8, within its length; JSON is an object.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "log_format.h"
#include "log_text.h"

enum { STRINGS_MAX = 34 };

static char strings[STRINGS_MAX][20000];
static size_t lengths[STRINGS_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a reader of JSON, as strict as the grammar ---------------------------
 */

typedef struct reader {
  const char *at;
  const char *end;
} reader;

static bool next_is(reader *r, char c) {
  if (r->at == r->end || *r->at != c)
    return false;
  r->at++;
  return true;
}

static void escape(reader *r) {
  CHECK(r->at < r->end);
  char c = *r->at++;
  if (c != 'u') {
    CHECK(strchr("\"\\/bfnrt", c) != NULL && c != '\0');
    return;
  }
  for (int i = 0; i < 4; i++) {
    CHECK(r->at < r->end && *r->at != '\0');
    CHECK(strchr("0123456789abcdefABCDEF", *r->at++) != NULL);
  }
}

static void string(reader *r) {
  CHECK(next_is(r, '"'));
  while (!next_is(r, '"')) {
    CHECK(r->at < r->end && (unsigned char)*r->at >= ' ');
    if (next_is(r, '\\'))
      escape(r);
    else
      r->at++;
  }
}

static void digits(reader *r) {
  const char *from = r->at;
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
    r->at++;
  CHECK(r->at > from);
}

static void number(reader *r) {
  next_is(r, '-');
  const char *from = r->at;
  digits(r);
  CHECK(*from != '0' || r->at == from + 1);
  if (next_is(r, '.'))
    digits(r);
  if (!next_is(r, 'e'))
    return;
  if (!next_is(r, '-'))
    next_is(r, '+');
  digits(r);
}

static void value(reader *r) {
  static const char *const words[] = {"true", "false", "null"};
  CHECK(r->at < r->end);
  if (*r->at == '"') {
    string(r);
    return;
  }
  for (size_t i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(r->end - r->at) >= n && memcmp(r->at, words[i], n) == 0) {
      r->at += n;
      return;
    }
  }
  number(r);
}

static void object(const char *text, size_t length) {
  reader r = {text, text + length};
  CHECK(next_is(&r, '{'));
  do {
    string(&r);
    CHECK(next_is(&r, ':'));
    value(&r);
  } while (next_is(&r, ','));
  CHECK(next_is(&r, '}'));
  CHECK(r.at == r.end);
}

/* ---- lines ----------------------------------------------------------------
 */

static void check_line(const char *line, size_t length,
                       tide_log_format format) {
  CHECK_SAYING(length > 0 && length <= TIDE_LOG_LINE, length);
  CHECK(line[length - 1] == '\n');
  for (size_t i = 0; i + 1 < length;) {
    size_t n = tide__utf8_length(line + i, length - i);
    CHECK_SAYING(n > 0, i);
    CHECK_SAYING((unsigned char)line[i] >= ' ' && line[i] != 0x7f, i);
    i += n;
  }
  if (format == TIDE_LOG_JSON)
    object(line, length - 1);
  else
    CHECK(memcmp(line, "time=", 5) == 0);
}

/* ---- the target -----------------------------------------------------------
 */

/* Strings of an input; one that ends with 'x' times ten is made long. */
static size_t split(const char *at, const char *end) {
  size_t count = 0;
  while (at < end && count < STRINGS_MAX) {
    const char *stop = memchr(at, 0x1f, (size_t)(end - at));
    size_t n = (size_t)((stop != NULL ? stop : end) - at);
    memcpy(strings[count], at, n);
    if (n >= 10 && memcmp(at + n - 10, "xxxxxxxxxx", 10) == 0)
      while (n < 16500)
        strings[count][n++] = 'x';
    strings[count][n] = '\0';
    lengths[count++] = n;
    at = stop != NULL ? stop + 1 : end;
  }
  return count;
}

static tide_field field_of(unsigned kind, size_t key) {
  tide_field f = {.key = strings[key], .type = TIDE_FIELD_STRING};
  f.value.string.data = strings[key + 1];
  f.value.string.length = lengths[key + 1];
  if (kind % 4 == 0)
    return f;
  double n = 0;
  memcpy(&n, strings[key + 1],
         lengths[key + 1] < sizeof n ? lengths[key + 1] : sizeof n);
  f.type = kind % 4 == 1   ? TIDE_FIELD_INTEGER
           : kind % 4 == 2 ? TIDE_FIELD_NUMBER
                           : TIDE_FIELD_BOOLEAN;
  if (f.type == TIDE_FIELD_NUMBER)
    f.value.number = n;
  else if (f.type == TIDE_FIELD_INTEGER)
    memcpy(&f.value.integer, &n, sizeof n);
  else
    f.value.boolean = n > 0;
  return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tide_field fields[STRINGS_MAX / 2];
  const char *text = (const char *)data;
  if (size < 1)
    return -1;
  size_t count = split(text + 1, text + size);
  tide_record record = {.level = (tide_log_level)(data[0] % 4),
                        .component = count > 0 ? strings[0] : NULL,
                        .message = count > 1 ? strings[1] : NULL,
                        .fields = fields};
  record.time.tv_sec = (time_t)data[0] << (data[0] % 40);
  for (size_t i = 2; i + 1 < count; i += 2)
    fields[record.count++] =
        field_of((unsigned)(data[0] >> 2) + (unsigned)i / 2 - 1, i);
  for (int format = TIDE_LOG_LOGFMT; format <= TIDE_LOG_JSON; format++) {
    char *line = malloc(TIDE_LOG_LINE);
    CHECK(line != NULL);
    size_t length = tide__log_format(line, (tide_log_format)format, &record);
    check_line(line, length, (tide_log_format)format);
    free(line);
  }
  return 0;
}
