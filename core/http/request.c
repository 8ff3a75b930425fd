#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void tide_http_limits_init(tide_http_limits *limits) {
  *limits = (tide_http_limits){
      .request_line = 8192,
      .head = 32768,
      .field = 8192,
      .fields = TIDE_HEADERS_MAX,
      .trailers = 4096,
      .trailer_fields = 16,
      .chunk_extensions = 4096,
      .body = 1u << 20,
  };
}

bool tide_request_fail(tide_request *request, int status, const char *why) {
  /* Also where the last byte was the wrong one: a handler that has read the
   * body so far must not take it for the whole. */
  request->done = false;
  if (request->status == 0) {
    request->status = status;
    request->why = why;
  }
  return false;
}

/* A callback's way to end the parse: the error that counts is ours. */
static int refuse(tide_request *request, int status, const char *why) {
  tide_request_fail(request, status, why);
  return HPE_USER;
}

static size_t offset_of(const tide_request *request, const char *at) {
  return (size_t)(at - request->base);
}

static tide_request *of(llhttp_t *parser) {
  return parser->data;
}

static int on_method(llhttp_t *parser, const char *at, size_t length) {
  of(parser)->method_end = (uint16_t)(offset_of(of(parser), at) + length);
  return 0;
}

/* Known from here on, so that also a head refused later is answered as a HEAD
 * wants it: without a body. */
static int on_method_complete(llhttp_t *parser) {
  of(parser)->method = parser->method;
  return 0;
}

/* A span may come in pieces; they are contiguous, so only the end moves. */
static int on_url(llhttp_t *parser, const char *at, size_t length) {
  tide_request *r = of(parser);
  size_t offset = offset_of(r, at);
  if (offset + length > r->limits->request_line)
    return refuse(r, 414, "request line too long");
  if (r->target_length == 0)
    r->target = (uint16_t)offset;
  r->target_length = (uint16_t)(offset + length - r->target);
  return 0;
}

static int on_trailer_name(tide_request *r, const char *at, size_t length) {
  for (size_t i = 0; i < length; i++, r->trailer_length++)
    if (r->trailer_length < sizeof r->trailer_name)
      r->trailer_name[r->trailer_length] = at[i];
  return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t length) {
  tide_request *r = of(parser);
  if (r->head_done)
    return on_trailer_name(r, at, length);
  size_t offset = offset_of(r, at);
  if (offset + length - r->target - r->target_length > r->limits->head)
    return refuse(r, 431, "header fields too long");
  tide_header *h = &r->headers[r->header_count];
  if (r->header_count == r->limits->fields)
    return refuse(r, 431, "too many header fields");
  if (h->name_length == 0)
    h->name = (uint16_t)offset;
  h->name_length = (uint16_t)(offset + length - h->name);
  if (h->name_length > r->limits->field)
    return refuse(r, 431, "header field too long");
  return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length) {
  tide_request *r = of(parser);
  if (r->head_done)
    return 0; /* trailers are looked at and dropped */
  size_t offset = offset_of(r, at);
  tide_header *h = &r->headers[r->header_count];
  if (h->value == 0)
    h->value = (uint16_t)offset;
  h->value_length = (uint16_t)(offset + length - h->value);
  if ((size_t)h->name_length + h->value_length > r->limits->field)
    return refuse(r, 431, "header field too long");
  if (offset + length - r->target - r->target_length > r->limits->head)
    return refuse(r, 431, "header fields too long");
  return 0;
}

static bool trailer_is(const tide_request *r, const char *name) {
  size_t length = strlen(name);
  return r->trailer_length == length &&
         strncasecmp(r->trailer_name, name, length) == 0;
}

/* Fields that would change what the message means may not come late. */
static bool trailer_is_forbidden(const tide_request *r) {
  static const char *const names[] = {
      "host",
      "content-length",
      "transfer-encoding",
      "authorization",
      "proxy-authorization",
      "connection",
      "content-type",
      "expect",
      "te",
      "trailer",
      "upgrade",
      "content-range",
      "content-encoding",
      "cookie",
      "forwarded",
      "x-forwarded-for",
      "x-forwarded-host",
      "x-forwarded-proto",
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (trailer_is(r, names[i]))
      return true;
  return r->trailer_length == 0;
}

/* llhttp leaves the blanks behind a value in it. */
static void trim(const tide_request *r, tide_header *h) {
  const char *value = r->base + h->value;
  while (h->value_length > 0 && (value[h->value_length - 1] == ' ' ||
                                 value[h->value_length - 1] == '\t'))
    h->value_length--;
}

static int on_value_complete(llhttp_t *parser) {
  tide_request *r = of(parser);
  if (!r->head_done) {
    trim(r, &r->headers[r->header_count]);
    if (++r->header_count < TIDE_HEADERS_MAX)
      r->headers[r->header_count] = (tide_header){0};
    return 0;
  }
  if (trailer_is_forbidden(r))
    return refuse(r, 400, "field not allowed in a trailer");
  r->trailer_length = 0;
  if (++r->trailer_count > r->limits->trailer_fields)
    return refuse(r, 431, "too many trailers");
  return 0;
}

static int on_headers_complete(llhttp_t *parser) {
  tide_request *r = of(parser);
  r->head_done = true;
  r->http_1_0 = parser->http_major == 1 && parser->http_minor == 0;
  r->keep_alive = llhttp_should_keep_alive(parser) != 0;
  r->upgrade = parser->upgrade != 0;
  r->content_length = parser->content_length;
  r->chunked = (parser->flags & F_CHUNKED) != 0;
  if (!tide_request_check(r))
    return HPE_USER;
  r->has_body = r->chunked || r->content_length > 0;
  /* With a body, stop here: the handler may want to start before it. */
  return r->has_body ? HPE_PAUSED : 0;
}

static bool body_reserve(tide_request *r, size_t more) {
  if (r->body_taken == r->body_length) {
    r->body_taken = r->body_length = 0;
  } else if (r->body_taken > 0 && r->body_length + more > r->body_capacity) {
    r->body_length -= r->body_taken;
    memmove(r->body, r->body + r->body_taken, r->body_length);
    r->body_taken = 0;
  }
  if (r->body_length + more <= r->body_capacity)
    return true;
  size_t capacity = r->body_capacity == 0 ? 4096 : r->body_capacity * 2;
  if (r->content_length > 0 && r->body_capacity == 0 &&
      r->content_length <= 65536)
    capacity = (size_t)r->content_length;
  while (capacity < r->body_length + more)
    capacity *= 2;
  char *grown = realloc(r->body, capacity);
  if (grown == NULL)
    return false;
  r->body = grown;
  r->body_capacity = capacity;
  return true;
}

bool tide_request_put(tide_request *request, const char *data, size_t length) {
  if (!body_reserve(request, length))
    return false;
  memcpy(request->body + request->body_length, data, length);
  request->body_length += length;
  return true;
}

static int on_body(llhttp_t *parser, const char *at, size_t length) {
  tide_request *r = of(parser);
  r->body_total += length;
  if (r->body_total > r->body_limit)
    return refuse(r, 413, "body too large");
  return tide_request_put(r, at, length) ? 0 : refuse(r, 503, "out of memory");
}

static int on_extension(llhttp_t *parser, const char *at, size_t length) {
  tide_request *r = of(parser);
  (void)at;
  r->extension_bytes += (uint32_t)length;
  return r->extension_bytes > r->limits->chunk_extensions
             ? refuse(r, 400, "chunk extensions too long")
             : 0;
}

/* A chunk says how large it is before it comes. The pause tells where in the
 * bytes it says so: framing is judged there, wherever reads were cut. */
static int on_chunk_header(llhttp_t *parser) {
  tide_request *r = of(parser);
  if (parser->content_length > r->body_limit - r->body_total)
    return refuse(r, 413, "body too large");
  r->at_chunk = true;
  r->in_trailers = parser->content_length == 0;
  return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *parser) {
  of(parser)->done = true;
  return HPE_PAUSED; /* one request at a time */
}

static const llhttp_settings_t settings = {
    .on_method = on_method,
    .on_method_complete = on_method_complete,
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

void tide_request_begin(tide_request *request, const tide_http_limits *limits,
                        const char *base) {
  char *own = request->own;
  char *body = request->body;
  size_t own_capacity = request->own_capacity;
  size_t body_capacity = request->body_capacity;
  /* Not the parser, which is made when it is needed, and not the header table:
   * header_count says how much of it is set. */
  memset(&request->limits, 0,
         offsetof(tide_request, headers) - offsetof(tide_request, limits));
  memset(&request->headers[0], 0, sizeof request->headers[0]);
  memset(&request->method_end, 0,
         sizeof *request - offsetof(tide_request, method_end));
  request->own = own;
  request->own_capacity = own_capacity;
  request->body = body;
  request->body_capacity = body_capacity;
  request->limits = limits;
  request->body_limit = limits->body;
  request->base = base;
}

void tide_request_clear(tide_request *request) {
  free(request->own);
  free(request->body);
  memset(request, 0, sizeof *request);
}

/* "GET /" and the end of the line, which llhttp takes for the beginning of
 * more, or finds an error behind, if that is here already. */
static void refuse_http_0_9(tide_request *r, size_t seen) {
  size_t after = (size_t)r->target + r->target_length;
  if (r->target_length == 0 || seen <= after)
    return;
  bool bare = r->base[after] == '\n';
  if (bare || (seen > after + 1 && memcmp(r->base + after, "\r\n", 2) == 0))
    tide_request_fail(r, 505, "HTTP/0.9 is not spoken here");
}

/* What can be told of a head before it is complete: that it is longer than any
 * may be. */
static bool head_is_hopeless(tide_request *r, size_t seen) {
  if (r->headers[0].name_length == 0 &&
      seen > (size_t)r->limits->request_line + 64)
    return !tide_request_fail(r, r->target_length == 0 ? 400 : 414,
                              "request line too long");
  if (seen > (size_t)r->target + r->target_length + r->limits->head)
    return !tide_request_fail(r, 431, "header fields too long");
  return false;
}

/* Framing must stay in proportion to what it carries. */
static bool framing_is_fair(tide_request *r, size_t wire) {
  r->wire_bytes += wire;
  if (!r->chunked ||
      r->wire_bytes <= 4096 + 3 * r->body_total + r->trailer_bytes)
    return true;
  return tide_request_fail(r, 400, "chunks too small");
}

/* Behind the last chunk: each line ends with CRLF, none continues the one
 * before it, and an empty one is the end. llhttp is less strict. */
static bool trailers_are_sound(tide_request *r, const char *data,
                               size_t length) {
  for (size_t i = 0; i < length && r->in_trailers; i++) {
    char c = data[i];
    if ((r->last_byte == '\r') != (c == '\n'))
      return tide_request_fail(r, 400, "bare line break in the trailers");
    if (r->trailer_line == 0 && (c == ' ' || c == '\t'))
      return tide_request_fail(r, 400, "folded trailer line");
    if (++r->trailer_bytes > r->limits->trailers)
      return tide_request_fail(r, 431, "trailers too long");
    if (c == '\n') {
      r->in_trailers = r->trailer_line > 1;
      r->trailer_line = 0;
    } else {
      r->trailer_line++;
    }
    r->last_byte = c;
  }
  return true;
}

/* The parser has stopped in the midst: at the end of the head, or of all. */
static tide_feed after_pause(tide_request *r, const char *end, size_t taken) {
  if (!r->done) {
    r->head_length = offset_of(r, end);
    llhttp_resume(&r->parser);
    return TIDE_FEED_HEAD;
  }
  if (r->head_length == 0) {
    r->head_length = offset_of(r, end);
    return TIDE_FEED_DONE;
  }
  r->done = framing_is_fair(r, taken);
  return r->done ? TIDE_FEED_DONE : TIDE_FEED_FAIL;
}

/* Runs the parser over a body, or the rest of one. */
static tide_feed feed_body(tide_request *r, const char *data, size_t length,
                           size_t *used) {
  size_t at = 0;
  llhttp_errno_t error;
  do {
    const char *from = data + at;
    if (!trailers_are_sound(r, from, length - at))
      return TIDE_FEED_FAIL;
    r->at_chunk = false;
    error = llhttp_execute(&r->parser, from, length - at);
    size_t taken = length - at;
    if (error == HPE_PAUSED)
      taken = (size_t)(llhttp_get_error_pos(&r->parser) - from);
    at += taken;
    *used = at;
    if (error == HPE_PAUSED && !r->at_chunk)
      return after_pause(r, from + taken, taken);
    if (error == HPE_PAUSED)
      llhttp_resume(&r->parser);
    else if (error != HPE_OK || r->status != 0)
      tide_request_explain(r, error, 0);
    if (r->status != 0 || !framing_is_fair(r, taken))
      return TIDE_FEED_FAIL;
  } while (error == HPE_PAUSED && at < length);
  return TIDE_FEED_MORE;
}

/* What may say why: not the bytes behind a bad target or version, for which of
 * them are here is chance. */
static size_t stopped_at(const tide_request *r, llhttp_errno_t error,
                         size_t seen) {
  if (error == HPE_INVALID_VERSION)
    return offset_of(r, llhttp_get_error_pos(&r->parser));
  if (error == HPE_INVALID_URL) /* here it is one behind the bad byte */
    return offset_of(r, llhttp_get_error_pos(&r->parser)) - 1;
  return seen;
}

/* A plain head at once, before llhttp has seen a byte; false: it shall look. */
static bool scanned(tide_request *r, const char *data, size_t length) {
  if (data == r->base && tide_request_scan(r, length))
    return true;
  r->header_count = 0;
  r->headers[0] = (tide_header){0};
  r->target = r->target_length = r->query = r->query_length = 0;
  llhttp_init(&r->parser, HTTP_REQUEST, &settings);
  r->parser.data = r;
  r->parsing = true;
  return false;
}

tide_feed tide_request_feed(tide_request *request, const char *data,
                            size_t length, size_t *used) {
  llhttp_errno_t error = request->undecided;
  size_t seen = offset_of(request, data + length);
  *used = length;
  if (request->head_done)
    return feed_body(request, data, length, used);
  if (!request->parsing && scanned(request, data, length)) {
    *used = request->head_length;
    return TIDE_FEED_DONE;
  }
  if (request->undecided == HPE_OK)
    error = llhttp_execute(&request->parser, data, length);
  if (error == HPE_PAUSED) {
    *used = (size_t)(llhttp_get_error_pos(&request->parser) - data);
    return after_pause(request, data + *used, *used);
  }
  size_t stop = stopped_at(request, error, seen);
  refuse_http_0_9(request, stop);
  if (error != HPE_OK || request->status != 0)
    tide_request_explain(request, error, stop);
  if (request->status != 0 || head_is_hopeless(request, seen))
    return TIDE_FEED_FAIL;
  return TIDE_FEED_MORE;
}

static bool own_reserve(tide_request *r, size_t capacity) {
  if (capacity <= r->own_capacity)
    return true;
  size_t size = r->own_capacity == 0 ? 1024 : r->own_capacity;
  while (size < capacity)
    size *= 2;
  char *grown = realloc(r->own, size);
  if (grown == NULL)
    return false;
  r->own = grown;
  r->own_capacity = size;
  return true;
}

bool tide_request_own(tide_request *request, size_t length) {
  if (request->base == request->own)
    return true;
  if (!own_reserve(request, length))
    return false;
  memcpy(request->own, request->base, length);
  request->own_length = length;
  request->base = request->own;
  return true;
}

bool tide_request_append(tide_request *request, const char *bytes,
                         size_t length, const char **data) {
  if (!own_reserve(request, request->own_length + length))
    return false;
  request->base = request->own;
  *data = request->own + request->own_length;
  memcpy(request->own + request->own_length, bytes, length);
  request->own_length += length;
  return true;
}

const char *tide_request_header(const tide_request *request, const char *name,
                                size_t name_length, unsigned *from,
                                size_t *length) {
  for (unsigned i = *from; i < request->header_count; i++) {
    const tide_header *h = &request->headers[i];
    if (h->name_length == name_length &&
        strncasecmp(request->base + h->name, name, name_length) == 0) {
      *from = i + 1;
      *length = h->value_length;
      return request->base + h->value;
    }
  }
  return NULL;
}
