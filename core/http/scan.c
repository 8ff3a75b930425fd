/* scan: the heads that nearly all requests have, in one pass.
 *
 * llhttp takes a byte at a time through a state machine, since a head may end
 * anywhere in a read. One that lies whole in the buffer and is as plain as what
 * browsers and proxies send needs no states: this finds the same pieces in a
 * quarter of the time. It judges nothing: what it does not know at sight, a
 * body, an odd byte, a limit that is reached, it leaves to llhttp, from the
 * first byte on. So whatever it takes, llhttp takes with the same result;
 * tests/core/test_http_scan.c holds one against the other.
 */
#include <string.h>
#include <strings.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "request.h"

/* What a byte may be in. All of a path may be in a query. */
enum { IN_TOKEN = 1, IN_PATH = 2, IN_QUERY = 4 };
#define T IN_TOKEN
#define Q IN_QUERY
#define P (IN_PATH | IN_QUERY)
#define B (P | IN_TOKEN)
static const unsigned char kinds[256] =
    {
        /* clang-format off */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, B, P, T, B, B, B, B, P, P, B, B, P, B, B, P, /*   ! " # $ % & ' ( ) * + , - . / */
    B, B, B, B, B, B, B, B, B, B, P, P, P, P, P, Q, /* 0-9 : ; < = > ? */
    P, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, /* @ A-O */
    B, B, B, B, B, B, B, B, B, B, B, P, P, P, B, B, /* P-Z [ \ ] ^ _ */
    B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, /* ` a-o */
    B, B, B, B, B, B, B, B, B, B, B, P, B, P, B, 0, /* p-z { | } ~ DEL */
        /* clang-format on */
};

static const char *skip(const char *at, const char *end, unsigned char kind) {
  while (at < end && (kinds[(unsigned char)*at] & kind) != 0)
    at++;
  return at;
}

/* The first byte that cannot be in a token, or the end. Nearly all names are
 * letters and dashes. */
static const char *skip_name(const char *at, const char *end) {
#ifdef __SSE2__
  if (end - at >= 16) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    __m128i letter = _mm_sub_epi8(lower, _mm_set1_epi8('a'));
    __m128i alpha =
        _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
    __m128i dash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
    unsigned odd =
        0xffffu ^ (unsigned)_mm_movemask_epi8(_mm_or_si128(alpha, dash));
    at += odd != 0 ? __builtin_ctz(odd) : 16;
    if (odd != 0 && *at == ':')
      return at;
  }
#endif
  return skip(at, end, IN_TOKEN);
}

#ifdef __SSE2__
/* A bit for each of 16 bytes that is a control character. */
static unsigned controls(const char *at) {
  __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
  __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
  __m128i del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
  return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, del));
}
#endif

/* The first byte that is a control character, or the end. */
static const char *skip_text(const char *at, const char *end) {
#ifdef __SSE2__
  for (; end - at >= 32; at += 32) {
    unsigned mask = controls(at) | controls(at + 16) << 16;
    if (mask != 0)
      return at + __builtin_ctz(mask);
  }
  if (end - at >= 16) {
    unsigned mask = controls(at);
    if (mask != 0)
      return at + __builtin_ctz(mask);
    at += 16;
  }
#endif
  while (at < end && (unsigned char)*at > 0x1f && *at != 0x7f)
    at++;
  return at;
}

/* METHOD SP, of those that seldom have a body; NULL: another. */
static const char *scan_method(tide_request *r, const char *at) {
  static const struct {
    const char *text;
    unsigned length;
    unsigned method;
  } methods[] = {{"GET ", 4, HTTP_GET},
                 {"HEAD ", 5, HTTP_HEAD},
                 {"DELETE ", 7, HTTP_DELETE},
                 {"OPTIONS ", 8, HTTP_OPTIONS}};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (memcmp(at, methods[i].text, methods[i].length) == 0) {
      r->method = methods[i].method;
      r->method_end = (uint16_t)(methods[i].length - 1);
      return at + methods[i].length;
    }
  return NULL;
}

/* METHOD SP /target SP HTTP/1.1 CRLF; NULL: not so. */
static const char *scan_line(tide_request *r, const char *at, const char *end) {
  static const char version[] = " HTTP/1.1\r\n";
  const char *target = end - at >= 32 ? scan_method(r, at) : NULL;
  if (target == NULL || *target != '/')
    return NULL;
  const char *mark = skip(target, end, IN_PATH);
  const char *after = skip(mark, end, IN_QUERY);
  size_t offset = (size_t)(after - r->base);
  if (end - after < (ptrdiff_t)sizeof version + 1 || /* the CRLF behind it */
      memcmp(after, version, sizeof version - 1) != 0 ||
      offset > r->limits->request_line)
    return NULL;
  r->target = (uint16_t)(target - r->base);
  r->target_length = (uint16_t)(after - target);
  r->path = r->target;
  r->path_length = (uint16_t)(mark - target);
  if (mark != after) {
    r->query = (uint16_t)(mark + 1 - r->base);
    r->query_length = (uint16_t)(after - mark - 1);
  }
  return after + sizeof version - 1;
}

/* `what` in lower case. */
static bool is(const char *text, size_t length, const char *what) {
  return (text[0] | 0x20) == what[0] && strncasecmp(text, what, length) == 0 &&
         what[length] == '\0';
}

/* Whether the field is one that needs no judging: it means nothing to the
 * parser, or it is the one Host, or a Connection in plain words. */
static bool is_plain(tide_request *r, bool *host_seen, const char *name,
                     size_t length, const char *value, size_t value_length) {
  switch (length) {
  case 4:
    if (!is(name, length, "host"))
      return true;
    if (*host_seen || !tide_request_host_is_sound(value, value_length))
      return false;
    return *host_seen = true;
  case 6:
    return !is(name, length, "expect");
  case 7:
    return !is(name, length, "upgrade");
  case 10:
    if (!is(name, length, "connection"))
      return true;
    if (is(value, value_length, "keep-alive"))
      return r->keep_alive;
    if (!is(value, value_length, "close") || !r->keep_alive)
      return false;
    r->keep_alive = false;
    return true;
  case 14:
    return !is(name, length, "content-length");
  case 16:
    return !is(name, length, "proxy-connection");
  case 17:
    return !is(name, length, "transfer-encoding");
  default:
    return true;
  }
}

/* name ":" blanks value CRLF; NULL: not so, or not whole. */
static const char *scan_field(tide_request *r, bool *host_seen, const char *at,
                              const char *end) {
  const char *colon = skip_name(at, end);
  if (colon == at || colon == end || *colon != ':' ||
      r->header_count == r->limits->fields)
    return NULL;
  const char *value = colon + 1;
  while (value < end && *value == ' ')
    value++;
  const char *after = skip_text(value, end);
  if (end - after < 4 || after[0] != '\r' || after[1] != '\n' ||
      after == value || after[-1] == ' ')
    return NULL;
  size_t name_length = (size_t)(colon - at);
  size_t value_length = (size_t)(after - value);
  if (name_length + value_length > r->limits->field ||
      !is_plain(r, host_seen, at, name_length, value, value_length))
    return NULL;
  r->headers[r->header_count++] = (tide_header){
      .name = (uint16_t)(at - r->base),
      .name_length = (uint16_t)name_length,
      .value = (uint16_t)(value - r->base),
      .value_length = (uint16_t)value_length,
  };
  return after + 2;
}

/* Whether the fields, whose last line ends at `at`, are not longer than they
 * may be; what was noted of longer ones is worthless, and dropped with the
 * rest. */
static bool is_short(const tide_request *r, const char *at) {
  size_t line_end = (size_t)r->target + r->target_length;
  return (size_t)(at - r->base) - line_end <= r->limits->head + 2;
}

bool tide_request_scan(tide_request *request, size_t length) {
  const char *end = request->base + length;
  bool host_seen = false;
  request->keep_alive = true;
  const char *at = scan_line(request, request->base, end);
  while (at != NULL && *at != '\r')
    at = scan_field(request, &host_seen, at, end);
  if (at == NULL || at[1] != '\n' || !host_seen || !is_short(request, at))
    return false;
  request->head_length = (size_t)(at + 2 - request->base);
  request->head_done = true;
  request->done = true;
  return true;
}
