#include "answers.h"

#include <string.h>
#include <strings.h>

#include "check.h"

typedef struct reader {
  const char *at;
  const char *end;
  bool ended;
} reader;

/* How the end of a body is told. */
typedef struct framing {
  bool length_said;
  bool chunked;
  size_t length;
  unsigned dates;
} framing;

uint64_t answers_hash(uint64_t seed, const char *data, size_t length) {
  uint64_t hash = seed != 0 ? seed : 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3u;
  return hash;
}

static size_t left(const reader *r) {
  return (size_t)(r->end - r->at);
}

/* The next line without its CRLF; NULL: it is not all here. */
static const char *line(reader *r, size_t *length) {
  const char *start = r->at;
  for (const char *p = start; p + 1 < r->end; p++) {
    CHECK(p[0] != '\n' && p[0] != '\0');
    if (p[0] != '\r')
      continue;
    CHECK(p[1] == '\n');
    *length = (size_t)(p - start);
    r->at = p + 2;
    return start;
  }
  return NULL;
}

static bool is(const char *text, size_t length, const char *name) {
  return length == strlen(name) && strncasecmp(text, name, length) == 0;
}

static size_t number(const char *text, size_t length, unsigned base) {
  static const char digits[] = "0123456789abcdef";
  size_t sum = 0;
  CHECK(length > 0 && length < 12);
  for (size_t i = 0; i < length; i++) {
    const char *found = strchr(digits, text[i]);
    CHECK(text[i] != '\0' && found != NULL && found < digits + base);
    sum = sum * base + (size_t)(found - digits);
  }
  return sum;
}

static void status_line(answer *a, const char *text, size_t length) {
  CHECK(length > 13 && memcmp(text, "HTTP/1.1 ", 9) == 0 && text[12] == ' ');
  a->status = (int)number(text + 9, 3, 10);
  CHECK(a->status >= 100 && a->status <= 599);
}

static void field(answer *a, framing *f, const char *text, size_t length) {
  const char *colon = memchr(text, ':', length);
  CHECK(colon != NULL && colon > text && colon + 1 < text + length &&
        colon[1] == ' ');
  size_t name = (size_t)(colon - text);
  const char *value = colon + 2;
  size_t size = length - name - 2;
  if (is(text, name, "content-length")) {
    CHECK(!f->length_said && !f->chunked);
    f->length_said = true;
    f->length = number(value, size, 10);
  } else if (is(text, name, "transfer-encoding")) {
    CHECK(!f->length_said && !f->chunked && is(value, size, "chunked"));
    f->chunked = true;
  } else if (is(text, name, "connection")) {
    CHECK(is(value, size, "close") || is(value, size, "keep-alive") ||
          (a->status == 101 && is(value, size, "upgrade")));
    CHECK(!a->close);
    a->close = is(value, size, "close");
  } else if (is(text, name, "date")) {
    CHECK(size == 29);
    f->dates++;
  } else if (is(text, name, "n")) {
    a->number = (long)number(value, size, 10);
  } else if (is(text, name, "cache-control")) {
    a->volatile_body = true;
  }
}

/* False: cut off. */
static bool head(reader *r, answer *a, framing *f) {
  size_t length;
  const char *text = line(r, &length);
  if (text == NULL)
    return false;
  status_line(a, text, length);
  for (;;) {
    text = line(r, &length);
    if (text == NULL)
      return false;
    if (length == 0)
      return true;
    field(a, f, text, length);
  }
}

/* At most `length` bytes of the body. */
static void some(reader *r, answer *a, size_t length) {
  size_t here = left(r) < length ? left(r) : length;
  a->body_hash = answers_hash(a->body_hash, r->at, here);
  a->body_length += here;
  r->at += here;
}

static bool chunks(reader *r, answer *a) {
  for (;;) {
    size_t length;
    const char *text = line(r, &length);
    if (text == NULL)
      return false;
    size_t size = number(text, length, 16);
    if (size > 0)
      some(r, a, size);
    text = line(r, &length);
    if (text == NULL)
      return false;
    CHECK(length == 0); /* no trailers of ours */
    if (size == 0)
      return true;
  }
}

static bool begins_an_answer(const reader *r) {
  return left(r) == 0 || (left(r) >= 9 && memcmp(r->at, "HTTP/1.1 ", 9) == 0);
}

/* False: cut off. No body of a test begins as an answer does, so one that is
 * promised and not there can be told: it was a HEAD's. */
static bool body(reader *r, answer *a, const framing *f) {
  if (a->status == 101) { /* the rest is of another protocol */
    CHECK(!f->length_said && !f->chunked);
    some(r, a, left(r));
    return true;
  }
  if (a->status == 204 || a->status == 304) {
    CHECK(!f->length_said && !f->chunked);
    return true;
  }
  if ((f->chunked || f->length > 0) && begins_an_answer(r)) {
    a->bare = true;
    return true;
  }
  if (f->chunked)
    return chunks(r, a);
  if (f->length_said) {
    some(r, a, f->length);
    return a->body_length == f->length;
  }
  if (!a->close) { /* no client could tell the end of a body */
    CHECK(begins_an_answer(r));
    a->bare = true;
    return true;
  }
  some(r, a, left(r));
  return r->ended;
}

void answers_read(answers *out, const char *data, size_t length, bool ended) {
  reader r = {data, data + length, ended};
  memset(out, 0, offsetof(answers, list));
  while (left(&r) > 0) {
    answer *a = &out->list[out->count];
    framing f = {0};
    memset(a, 0, sizeof *a);
    bool came = head(&r, a, &f);
    if (came && a->status == 100) {
      CHECK(!f.length_said && !f.chunked && !a->close);
      out->interim++;
      continue;
    }
    CHECK(!came || f.dates == 1);
    a->whole = came && body(&r, a, &f);
    out->bare_count += a->bare;
    out->count++;
    CHECK(out->count < ANSWERS_MAX);
    if (!a->whole)
      return;
    CHECK(!a->close || left(&r) == 0);
  }
}
