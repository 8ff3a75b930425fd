/* head: what a request must be beyond what llhttp asks for.
 *
 * llhttp finds the pieces of a message, but it is no server: it accepts missing
 * and double Host fields, folded values, codings it cannot decode, targets that
 * mean nothing. Each rule here has a row in the tests.
 */
#include <string.h>
#include <strings.h>

#include "request.h"

static bool is_token(char c) {
  static const char punctuation[] = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || (c != '\0' && strchr(punctuation, c));
}

/* "HTTP/x.y", whole, and none that is spoken here: where it is one of those,
 * what comes behind it is wrong. */
static bool is_other_version(const char *text, size_t length) {
  return length == 8 && memcmp(text, "HTTP/", 5) == 0 && text[5] >= '0' &&
         text[5] <= '9' && text[6] == '.' && text[7] >= '0' && text[7] <= '9' &&
         memcmp(text + 5, "1.0", 3) != 0 && memcmp(text + 5, "1.1", 3) != 0;
}

static bool starts(const char *text, size_t length, const char *with) {
  size_t n = strlen(with);
  return length >= n && memcmp(text, with, n) == 0;
}

/* What stands behind the target, so far. */
static const char *behind_target(const tide_request *r, size_t seen,
                                 size_t *length) {
  size_t at = (size_t)r->target + r->target_length;
  while (at < seen && r->base[at] == ' ')
    at++;
  *length = at < seen ? seen - at : 0;
  return r->base + at;
}

/* llhttp stopped at the byte behind, within or after "HTTP/x.y". */
static void explain_version(tide_request *r, size_t seen) {
  size_t length;
  const char *text = behind_target(r, seen, &length);
  if (is_other_version(text, length))
    tide_request_fail(r, 505, "protocol version not supported");
  else
    tide_request_fail(r, 400, "malformed protocol version");
}

/* No "HTTP/" behind the target, or one that the method does not fit. Which
 * protocol it is may not be told before some more bytes are here. */
static void explain_protocol(tide_request *r, size_t seen) {
  static const char *const others[] = {"RTSP/", "ICE/"};
  size_t length;
  const char *text = behind_target(r, seen, &length);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    size_t n = strlen(others[i]);
    if (memcmp(text, others[i], length < n ? length : n) != 0)
      continue;
    r->undecided = HPE_INVALID_CONSTANT;
    if (length >= n)
      tide_request_fail(r, 505, "not HTTP");
    return;
  }
  if (starts(text, length, "HTTP/"))
    tide_request_fail(r, 501, "method not implemented");
  tide_request_fail(r, 400, "malformed request line");
}

enum { METHOD_MAX = 64 };

/* A method llhttp does not know may be a fine one: it is 501 once it turns out
 * to be a token and a space. Until then more bytes are awaited. */
static void explain_method(tide_request *r, size_t seen) {
  const char *text = r->base;
  if (seen > 0 && (unsigned char)text[0] == 0x16) {
    tide_request_fail(r, 400, "TLS on a plain port");
    return;
  }
  size_t length = 0;
  while (length < seen && length < METHOD_MAX && is_token(text[length]))
    length++;
  if (length == seen && length < METHOD_MAX)
    r->undecided = HPE_INVALID_METHOD;
  else if (length > 0 && length < METHOD_MAX && text[length] == ' ')
    tide_request_fail(r, 501, "method not implemented");
  else
    tide_request_fail(r, 400, "malformed request line");
}

void tide_request_explain(tide_request *request, llhttp_errno_t error,
                          size_t seen) {
  switch (error) {
  case HPE_INVALID_METHOD:
    explain_method(request, seen);
    break;
  case HPE_INVALID_VERSION:
    explain_version(request, seen);
    break;
  case HPE_PAUSED_H2_UPGRADE:
    tide_request_fail(request, 505, "HTTP/2 is not spoken here");
    break;
  case HPE_INVALID_CONSTANT:
    if (request->target_length > 0 && request->header_count == 0)
      explain_protocol(request, seen);
    else
      tide_request_fail(request, 400, "malformed request line");
    break;
  default:
    tide_request_fail(request, 400, llhttp_errno_name(error));
  }
}

static bool bad(tide_request *r, const char *why) {
  return tide_request_fail(r, 400, why);
}

/* METHOD SP target SP HTTP/1.x CRLF, with single spaces. */
static bool check_line(tide_request *r) {
  size_t after = (size_t)r->target + r->target_length;
  const char *version = r->base + after + 1;
  if (r->base[after] != ' ')
    return tide_request_fail(r, 505, "HTTP/0.9 is not spoken here");
  if (r->target != r->method_end + 1 || r->target_length == 0 ||
      *version == ' ')
    return bad(r, "more than one space in the request line");
  if (strncmp(version, "HTTP/", 5) != 0)
    return tide_request_fail(r, 505, "not HTTP");
  if (r->parser.http_major != 1)
    return tide_request_fail(r, 505, "protocol version not supported");
  if (r->method == HTTP_CONNECT)
    return tide_request_fail(r, 501, "CONNECT is not implemented");
  if (r->method > HTTP_SOURCE)
    return tide_request_fail(r, 501, "method not implemented");
  return true;
}

/* Between the end of a name and the next line there is a colon, blanks, the
 * value, blanks and one CRLF; anything else is a folded line. Behind the last
 * one stands a CRLF of its own: llhttp lets a bare LF end the head. */
static bool check_lines(tide_request *r) {
  const char *end = r->base + r->target + r->target_length + 9;
  if (end[0] != '\r' || end[1] != '\n')
    return bad(r, "malformed request line");
  for (unsigned i = 0; i < r->header_count; i++) {
    const tide_header *h = &r->headers[i];
    if (h->name_length == 0)
      return bad(r, "empty header name");
    const char *at = r->base + h->name + h->name_length;
    if (*at++ != ':')
      return bad(r, "header line without a colon");
    const char *value = r->base + h->value;
    if (h->value_length > 0) {
      while (at < value && (*at == ' ' || *at == '\t'))
        at++;
      if (at != value)
        return bad(r, "folded header line");
      at = value + h->value_length;
    }
    while (*at == ' ' || *at == '\t')
      at++;
    if (at[0] != '\r' || at[1] != '\n')
      return bad(r, "folded header line");
    end = at;
    if (i + 1 < r->header_count && at + 2 != r->base + r->headers[i + 1].name)
      return bad(r, "folded header line");
    if (memchr(value, '\r', h->value_length) != NULL)
      return bad(r, "carriage return in a header value");
  }
  return end[2] == '\r' || bad(r, "bare line feed at the end of the head");
}

static bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}

/* What nearly all names are made of. */
static bool is_usual(char c) {
  return (unsigned char)((c | 0x20) - 'a') < 26 ||
         (unsigned char)(c - '0') < 10 || c == '.';
}

/* The length of the name or address before the port; `length` + 1: it is none.
 */
static size_t host_end(const char *host, size_t length) {
  static const char punctuation[] = "-._~!$&'()*+,;=";
  bool literal = length > 0 && host[0] == '[';
  size_t at = literal;
  for (;; at++) {
    while (at < length && is_usual(host[at]))
      at++;
    if (at == length || host[at] == (literal ? ']' : ':'))
      break;
    char c = host[at];
    if (c == '%' && at + 2 < length && is_hex(host[at + 1]) &&
        is_hex(host[at + 2]))
      continue;
    if ((c == '\0' || strchr(punctuation, c) == NULL) && !(literal && c == ':'))
      return length + 1;
  }
  if (!literal)
    return at;
  return at == length || at == 1 ? length + 1 : at + 1; /* ']' closes it */
}

/* host[:port] without userinfo; empty is legal, a port alone is not. */
bool tide_request_host_is_sound(const char *host, size_t length) {
  size_t at = host_end(host, length);
  unsigned long port = 0;
  if (at >= length)
    return at == length;
  if (at == 0 || host[at] != ':')
    return false;
  while (++at < length && host[at] >= '0' && host[at] <= '9' && port <= 65535)
    port = port * 10 + (unsigned long)(host[at] - '0');
  return at == length && port <= 65535;
}

/* The length of "http://" or "https://" at the start; 0: neither. */
static size_t scheme_of(const char *target, size_t length) {
  if (length >= 7 && strncasecmp(target, "http://", 7) == 0)
    return 7;
  return length >= 8 && strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

/* The length of an authority without the port that its scheme has anyway. */
static size_t without_port(const char *text, size_t length, size_t scheme) {
  const char *port = scheme == 8 ? ":443" : ":80";
  size_t n = strlen(port);
  bool has = length >= n && memcmp(text + length - n, port, n) == 0;
  return has ? length - n : length;
}

/* http://authority/path: the authority counts, and must agree with Host. */
static bool split_absolute(tide_request *r, const tide_header *host) {
  const char *target = r->base + r->target;
  size_t length = r->target_length;
  size_t scheme = scheme_of(target, length);
  if (scheme == 0)
    return bad(r, "malformed request target");
  const char *authority = target + scheme;
  size_t size = 0;
  while (scheme + size < length && authority[size] != '/' &&
         authority[size] != '?')
    size++;
  if (size == 0 || !tide_request_host_is_sound(authority, size))
    return bad(r, "malformed authority in the request target");
  size_t name = without_port(authority, size, scheme);
  if (host != NULL &&
      (without_port(r->base + host->value, host->value_length, scheme) !=
           name ||
       strncasecmp(r->base + host->value, authority, name) != 0))
    return bad(r, "Host differs from the request target");
  size_t rest = length - scheme - size;
  if (rest > 0 && authority[size] == '/') {
    r->path = (uint16_t)(r->target + scheme + size);
    r->path_length = (uint16_t)rest;
    return true;
  }
  /* No path is "/": the second slash of the scheme serves for it. */
  r->path = (uint16_t)(r->target + scheme - 1);
  r->path_length = 1;
  if (rest > 0) {
    r->query = (uint16_t)(r->target + scheme + size + 1);
    r->query_length = (uint16_t)(rest - 1);
  }
  return true;
}

static bool check_target(tide_request *r, const tide_header *host) {
  const char *target = r->base + r->target;
  r->path = r->target;
  r->path_length = r->target_length;
  if (memchr(target, '#', r->target_length) != NULL)
    return bad(r, "fragment in the request target");
  if (target[0] == '*') {
    if (r->target_length != 1 || r->method != HTTP_OPTIONS)
      return bad(r, "malformed request target");
  } else if (target[0] != '/' && !split_absolute(r, host)) {
    return false;
  }
  const char *path = r->base + r->path;
  const char *mark = memchr(path, '?', r->path_length);
  if (mark != NULL) {
    size_t length = (size_t)(mark - path);
    r->query = (uint16_t)(r->path + length + 1);
    r->query_length = (uint16_t)(r->path_length - length - 1);
    r->path_length = (uint16_t)length;
  }
  return true;
}

static bool value_is(const tide_request *r, const tide_header *h,
                     const char *text) {
  return h->value_length == strlen(text) &&
         strncasecmp(r->base + h->value, text, h->value_length) == 0;
}

static bool check_coding(tide_request *r, const tide_header *coding,
                         unsigned count) {
  if (r->http_1_0)
    return bad(r, "transfer coding in HTTP/1.0");
  if (count > 1)
    return bad(r, "more than one Transfer-Encoding");
  if (value_is(r, coding, "chunked"))
    return true;
  const char *value = r->base + coding->value;
  for (size_t i = 0; i + 7 < coding->value_length; i++)
    if (strncasecmp(value + i, "chunked", 7) == 0 &&
        (i == 0 || !is_token(value[i - 1])) && !is_token(value[i + 7]))
      return bad(r, "chunked is not the last transfer coding");
  return tide_request_fail(r, 501, "transfer coding not implemented");
}

typedef struct seen_fields {
  const tide_header *host;
  const tide_header *coding;
  unsigned hosts;
  unsigned codings;
  unsigned lengths;
} seen_fields;

static void note_field(tide_request *r, const tide_header *h,
                       seen_fields *seen) {
  const char *name = r->base + h->name;
  switch (h->name_length) {
  case 4:
    if (strncasecmp(name, "host", 4) == 0) {
      seen->host = h;
      seen->hosts++;
    }
    break;
  case 6:
    if (!r->http_1_0 && strncasecmp(name, "expect", 6) == 0) {
      if (value_is(r, h, "100-continue"))
        r->expect_continue = true;
      else
        r->expect_unknown = true;
    }
    break;
  case 14:
    if (strncasecmp(name, "content-length", 14) == 0)
      seen->lengths++;
    break;
  case 17:
    if (strncasecmp(name, "transfer-encoding", 17) == 0) {
      seen->coding = h;
      seen->codings++;
    }
    break;
  default:
    break;
  }
}

bool tide_request_check(tide_request *request) {
  seen_fields seen = {0};
  if (!check_line(request) || !check_lines(request))
    return false;
  for (unsigned i = 0; i < request->header_count; i++)
    note_field(request, &request->headers[i], &seen);
  if (seen.hosts > 1 || (seen.hosts == 0 && !request->http_1_0))
    return bad(request, "exactly one Host is needed");
  if (seen.host != NULL &&
      !tide_request_host_is_sound(request->base + seen.host->value,
                                  seen.host->value_length))
    return bad(request, "malformed Host");
  if (seen.lengths > 1 || (seen.lengths > 0 && seen.codings > 0))
    return bad(request, "ambiguous message length");
  if (seen.codings > 0 && !check_coding(request, seen.coding, seen.codings))
    return false;
  return check_target(request, seen.host);
}
