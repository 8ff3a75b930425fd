/* fuzz_response: heads with whatever a script might put into them.
 *
 * An input is three bytes (status, facts, method) and then header fields: name,
 * byte 0x1e, value, byte 0x1f, and so on. What the check lets through must come
 * out as one head, with these fields and no other, in the room that was said.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <llhttp.h>

#include "check.h"
#include "http/response.h"

enum { FIELDS_MAX = 16 };

static const int statuses[] = {200, 204, 304, 404, 205, 99, 600, 299};

typedef struct seen {
  unsigned fields;
  unsigned wanted; /* of the answer's own, in order */
  bool complete;
  const tide_answer *answer;
  const char *name;
  size_t name_length;
} seen;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is(const char *text, size_t length, const char *name) {
  return length == strlen(name) && strncasecmp(text, name, length) == 0;
}

/* ---- what may pass --------------------------------------------------------
 */

static bool is_token(const char *s, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (s[i] <= ' ' || s[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", s[i]))
      return false;
  return length > 0;
}

static bool sound(const tide_answer *a) {
  if (a->status < 200 || a->status > 599)
    return false;
  for (size_t i = 0; i < a->header_count; i++) {
    const tide_answer_header *h = &a->headers[i];
    if (!is_token(h->name, h->name_length))
      return false;
    if (memchr(h->value, '\r', h->value_length) != NULL ||
        memchr(h->value, '\n', h->value_length) != NULL ||
        memchr(h->value, '\0', h->value_length) != NULL)
      return false;
    if (is(h->name, h->name_length, "content-length") ||
        is(h->name, h->name_length, "transfer-encoding"))
      return false;
  }
  return true;
}

/* ---- what comes out -------------------------------------------------------
 */

/* Written by the server itself, whatever the answer says. */
static bool is_ours(const tide_answer_header *h) {
  return is(h->name, h->name_length, "connection") ||
         is(h->name, h->name_length, "date") ||
         is(h->name, h->name_length, "keep-alive");
}

static void field(seen *s, const char *name, size_t name_length,
                  const char *value, size_t length) {
  const tide_answer *a = s->answer;
  s->fields++;
  while (s->wanted < a->header_count && is_ours(&a->headers[s->wanted]))
    s->wanted++;
  if (s->wanted == a->header_count || is(name, name_length, "date"))
    return;
  const tide_answer_header *h = &a->headers[s->wanted++];
  CHECK(name_length == h->name_length &&
        memcmp(name, h->name, name_length) == 0);
  CHECK(length == h->value_length && memcmp(value, h->value, length) == 0);
}

/* Lines that end with CRLF, and an empty one at the very end. */
static void read_head(seen *s, const char *head, size_t length) {
  const char *at = head, *end = head + length;
  for (bool first = true;; first = false) {
    const char *cr = memchr(at, '\r', (size_t)(end - at));
    CHECK(cr != NULL && cr + 1 < end && cr[1] == '\n');
    CHECK(memchr(at, '\n', (size_t)(cr - at)) == NULL);
    if (cr == at)
      break;
    const char *colon = memchr(at, ':', (size_t)(cr - at));
    if (first)
      CHECK(memcmp(at, "HTTP/1.1 ", 9) == 0);
    else
      CHECK(colon != NULL && colon[1] == ' ');
    if (!first)
      field(s, at, (size_t)(colon - at), colon + 2, (size_t)(cr - colon) - 2);
    at = cr + 2;
  }
  CHECK(at + 2 == end);
}

static unsigned expected_fields(const tide_answer *a,
                                const tide_head_facts *facts) {
  unsigned n = 1; /* Date */
  bool typed = false;
  for (size_t i = 0; i < a->header_count; i++) {
    n += !is_ours(&a->headers[i]);
    typed |= is(a->headers[i].name, a->headers[i].name_length, "content-type");
  }
  bool body = tide_status_has_body(a->status);
  n += body && a->type != NULL && !typed;
  bool known = facts->head_request && !facts->streaming
                   ? a->sized || a->length > 0
                   : !facts->streaming || a->sized;
  n += a->status == 205 ||
       (body && (known || !(facts->http_1_0 || facts->head_request)));
  if (facts->close || facts->idle == NULL)
    return n + (facts->close || facts->http_1_0);
  return n + 2; /* Connection and Keep-Alive */
}

static void check_framing(const tide_answer *a, const tide_head_facts *facts,
                          tide_body_framing framing) {
  bool body = tide_status_has_body(a->status) && a->status != 205 &&
              !facts->head_request;
  CHECK((framing != TIDE_FRAMING_NONE) == body);
  CHECK(framing != TIDE_FRAMING_CHUNKED || !facts->http_1_0);
  CHECK(framing != TIDE_FRAMING_CLOSE || facts->close);
}

static void write_head(const tide_answer *a, tide_head_facts facts) {
  size_t bound = tide_response_bound(a);
  char *out = malloc(bound); /* a write beyond is the sanitizer's */
  tide_body_framing framing;
  seen s = {.answer = a};
  CHECK(out != NULL);
  size_t length = tide_response_head(out, a, &facts, &framing);
  CHECK(length <= bound);
  read_head(&s, out, length);
  CHECK_SAYING(s.fields == expected_fields(a, &facts), s.fields);
  check_framing(a, &facts, framing);
  free(out);
}

/* ---- the target -----------------------------------------------------------
 */

static size_t split(const char *at, const char *end,
                    tide_answer_header *headers) {
  size_t count = 0;
  while (at < end && count < FIELDS_MAX) {
    const char *stop = memchr(at, 0x1f, (size_t)(end - at));
    if (stop == NULL)
      stop = end;
    const char *middle = memchr(at, 0x1e, (size_t)(stop - at));
    const char *value = middle != NULL ? middle + 1 : stop;
    headers[count++] = (tide_answer_header){
        at, (size_t)((middle != NULL ? middle : stop) - at), value,
        (size_t)(stop - value)};
    at = stop + (stop < end);
  }
  return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char date[40];
  tide_answer_header headers[FIELDS_MAX];
  if (size < 3)
    return -1;
  const char *text = (const char *)data;
  tide_response_date(date, (int64_t)data[2] << 32 | data[1] << 16 | data[0]);
  CHECK_SAYING(strlen(date) == 29, strlen(date));
  tide_head_facts facts = {.date = date,
                           .idle = data[1] & 128 ? "75" : NULL,
                           .head_request = data[1] & 1,
                           .http_1_0 = data[1] & 2,
                           .streaming = data[1] & 4,
                           .close = data[1] & 8};
  tide_answer a = {.status = statuses[data[0] % 8],
                   .type = data[1] & 16 ? "text/plain" : NULL,
                   .headers = headers,
                   .length = data[2],
                   .sized = data[1] & 32};
  a.size = data[1] & 64 ? UINT64_MAX : a.length;
  a.header_count = split(text + 3, text + size, headers);
  CHECK((tide_response_check(&a) == TIDE_ANSWER_OK) == sound(&a));
  if (sound(&a))
    write_head(&a, facts);
  return 0;
}
