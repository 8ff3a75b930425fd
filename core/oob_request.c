/* oob_request.c: what a line of the out-of-band line asks for: a word, or a
 * flat JSON object with a `type`. Pure. */
#include <string.h>

#include "append.h"
#include "oob_inside.h"

typedef struct scan {
  const char *at;
  const char *end;
} scan;

typedef struct span {
  const char *at;
  size_t length;
} span;

static void skip_space(scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
    s->at++;
}

static bool take(scan *s, char c) {
  skip_space(s);
  if (s->at >= s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

/* A string as it stands, escapes and all, with its quotes. */
static bool take_string(scan *s, span *out) {
  skip_space(s);
  out->at = s->at;
  if (!take(s, '"'))
    return false;
  while (s->at < s->end && *s->at != '"') {
    if ((unsigned char)*s->at < ' ')
      return false;
    if (*s->at == '\\' && ++s->at >= s->end)
      return false;
    s->at++;
  }
  if (!take(s, '"'))
    return false;
  out->length = (size_t)(s->at - out->at);
  return true;
}

/* A string, a number or one of the three words. */
static bool take_value(scan *s, span *out) {
  static const char plain[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzE";
  skip_space(s);
  if (s->at < s->end && *s->at == '"')
    return take_string(s, out);
  out->at = s->at;
  while (s->at < s->end && strchr(plain, *s->at) != NULL && *s->at != '\0')
    s->at++;
  out->length = (size_t)(s->at - out->at);
  return out->length > 0;
}

static bool is(const span *text, const char *word) {
  return text->length == strlen(word) &&
         memcmp(text->at, word, text->length) == 0;
}

static void bad(tide_oob_request *request, const char *why) {
  request->type = TIDE_OOB_BAD;
  tide_append(request->name, sizeof request->name, 0, why);
}

static void copy(char *out, size_t size, const span *text) {
  size_t length = text->length < size ? text->length : size - 1;
  memcpy(out, text->at, length);
  out[length] = '\0';
}

static void name_type(tide_oob_request *request, const span *word) {
  static const struct {
    const char *name;
    tide_oob_type type;
  } types[] = {{"where", TIDE_OOB_WHERE},
               {"status", TIDE_OOB_STATUS},
               {"interrupt", TIDE_OOB_INTERRUPT},
               {"abort", TIDE_OOB_ABORT}};
  size_t i;
  request->type = TIDE_OOB_UNKNOWN;
  copy(request->name, sizeof request->name, word);
  for (i = 0; i < sizeof types / sizeof *types; i++)
    if (is(word, types[i].name))
      request->type = types[i].type;
}

static bool take_digits(scan *s) {
  const char *from = s->at;
  while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
    s->at++;
  return s->at > from;
}

/* As JSON has them: 17, -0.5, 1e9. */
static bool is_number(const span *text) {
  scan s = {text->at, text->at + text->length};
  const char *first;
  bool sound;
  take(&s, '-');
  first = s.at;
  sound = take_digits(&s) && (*first != '0' || s.at == first + 1);
  if (take(&s, '.'))
    sound = sound && take_digits(&s);
  if (take(&s, 'e') || take(&s, 'E')) {
    if (!take(&s, '-'))
      take(&s, '+');
    sound = sound && take_digits(&s);
  }
  return sound && s.at == s.end;
}

/* A number, or a string without escapes: what can be sent back as it came. */
static bool take_id(tide_oob_request *request, const span *value) {
  bool plain = *value->at == '"'
                   ? memchr(value->at, '\\', value->length) == NULL
                   : is_number(value);
  bool sound = plain && value->length < sizeof request->id;
  if (sound)
    copy(request->id, sizeof request->id, value);
  return sound;
}

/* A member of the object; others than id and type mean nothing here. */
static bool take_member(scan *s, tide_oob_request *request, span *type) {
  span key, value;
  if (!take_string(s, &key) || !take(s, ':') || !take_value(s, &value))
    return false;
  if (is(&key, "\"id\"") && !take_id(request, &value))
    return false;
  if (is(&key, "\"type\"") && *value.at == '"')
    *type = (span){value.at + 1, value.length - 2};
  return true;
}

static void parse_object(scan *s, tide_oob_request *request) {
  span type = {NULL, 0};
  bool sound = take(s, '{');
  if (sound && !take(s, '}')) {
    do
      sound = take_member(s, request, &type);
    while (sound && take(s, ','));
    sound = sound && take(s, '}');
  }
  skip_space(s);
  if (!sound || s->at < s->end)
    bad(request, "a flat JSON object a line is wanted, its id a number or a "
                 "short string without escapes");
  else if (type.at == NULL)
    bad(request, "the object lacks a type");
  else
    name_type(request, &type);
}

void tide_oob_parse(const char *line, size_t length,
                    tide_oob_request *request) {
  scan s = {line, line + length};
  *request = (tide_oob_request){.type = TIDE_OOB_UNKNOWN};
  skip_space(&s);
  while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '\t'))
    s.end--;
  if (s.at < s.end && *s.at == '{') {
    parse_object(&s, request);
  } else {
    span word = {s.at, (size_t)(s.end - s.at)};
    name_type(request, &word);
  }
}
