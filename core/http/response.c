#include "response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../date.h"

const char *tide_status_text(int status) {
  static const struct {
    int status;
    const char *text;
  } table[] = {
      {100, "Continue"},
      {101, "Switching Protocols"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {203, "Non-Authoritative Information"},
      {204, "No Content"},
      {205, "Reset Content"},
      {206, "Partial Content"},
      {300, "Multiple Choices"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {402, "Payment Required"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {418, "I'm a teapot"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {423, "Locked"},
      {424, "Failed Dependency"},
      {425, "Too Early"},
      {426, "Upgrade Required"},
      {428, "Precondition Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {451, "Unavailable For Legal Reasons"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
      {508, "Loop Detected"},
  };
  if (status == 200)
    return "OK";
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].status == status)
      return table[i].text;
  return "Unknown";
}

bool tide_status_has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

const char *tide_answer_error_text(tide_answer_error error) {
  switch (error) {
  case TIDE_ANSWER_OK:
    return "no error";
  case TIDE_ANSWER_LOST:
    return "the request is over: the client is gone, or it was answered";
  case TIDE_ANSWER_TWICE:
    return "the request is answered already";
  case TIDE_ANSWER_HEADER:
    return "a header has a bad name, or a line break or NUL in it";
  case TIDE_ANSWER_STATUS:
    return "the status of an answer is a whole number from 200 to 599";
  case TIDE_ANSWER_LENGTH:
    return "Content-Length and Transfer-Encoding are set by the server";
  case TIDE_ANSWER_SIZE:
    return "the body does not have the length that Content-Length promises";
  case TIDE_ANSWER_PLAIN:
    return "the client asks for no upgrade, or sent a body with it";
  case TIDE_ANSWER_DRAIN:
    return "the process is draining: no stream begins";
  }
  return "unknown error";
}

static bool name_is_sound(const char *name, size_t length) {
  static const char punctuation[] = "!#$%&'*+-.^_`|~";
  for (size_t i = 0; i < length; i++) {
    char c = name[i];
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                (c >= '0' && c <= '9');
    if (!word && (c == '\0' || strchr(punctuation, c) == NULL))
      return false;
  }
  return length > 0;
}

static bool value_is_sound(const char *value, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (value[i] == '\r' || value[i] == '\n' || value[i] == '\0')
      return false;
  return true;
}

static bool is(const tide_answer_header *header, const char *name) {
  return header->name_length == strlen(name) &&
         strncasecmp(header->name, name, header->name_length) == 0;
}

tide_answer_error tide_response_check(const tide_answer *answer) {
  if (answer->status < 200 || answer->status > 599)
    return TIDE_ANSWER_STATUS;
  for (size_t i = 0; i < answer->header_count; i++) {
    const tide_answer_header *h = &answer->headers[i];
    if (!name_is_sound(h->name, h->name_length) ||
        !value_is_sound(h->value, h->value_length))
      return TIDE_ANSWER_HEADER;
    if (is(h, "content-length") || is(h, "transfer-encoding"))
      return TIDE_ANSWER_LENGTH;
  }
  return TIDE_ANSWER_OK;
}

size_t tide_response_bound(const tide_answer *answer) {
  size_t size = 384 + (answer->type != NULL ? strlen(answer->type) : 0);
  for (size_t i = 0; i < answer->header_count; i++)
    size +=
        answer->headers[i].name_length + answer->headers[i].value_length + 4;
  return size;
}

static char *put(char *at, const char *text, size_t length) {
  memcpy(at, text, length);
  return at + length;
}

#define PUT(at, literal) put((at), literal, sizeof(literal) - 1)

char *tide_response_number(char *out, uint64_t number) {
  char digits[20];
  size_t n = sizeof digits;
  do {
    digits[--n] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  return put(out, digits + n, sizeof digits - n);
}

static char *put_status(char *at, int status) {
  if (status == 200)
    return PUT(at, "HTTP/1.1 200 OK\r\n");
  const char *text = tide_status_text(status);
  at = PUT(at, "HTTP/1.1 ");
  at = tide_response_number(at, (uint64_t)status);
  *at++ = ' ';
  at = put(at, text, strlen(text));
  return PUT(at, "\r\n");
}

/* Copies the answer's own headers; some of them it takes over itself. */
static char *put_headers(char *at, const tide_answer *answer,
                         tide_head_facts *facts, bool *typed) {
  for (size_t i = 0; i < answer->header_count; i++) {
    const tide_answer_header *h = &answer->headers[i];
    if (is(h, "connection")) {
      if (h->value_length == 5 && strncasecmp(h->value, "close", 5) == 0)
        facts->close = true;
      continue;
    }
    if (is(h, "date") || is(h, "keep-alive"))
      continue;
    if (is(h, "content-type"))
      *typed = true;
    at = put(at, h->name, h->name_length);
    at = PUT(at, ": ");
    at = put(at, h->value, h->value_length);
    at = PUT(at, "\r\n");
  }
  return at;
}

static char *put_framing(char *at, const tide_answer *answer,
                         tide_head_facts *facts, tide_body_framing *framing) {
  *framing = TIDE_FRAMING_NONE;
  if (answer->status == 205) /* it has none, but is framed like one that has */
    return PUT(at, "Content-Length: 0\r\n");
  if (!tide_status_has_body(answer->status))
    return at;
  if (facts->head_request && !answer->sized && answer->length == 0)
    return at; /* a handler of HEAD has no body: that says nothing of GET's */
  if (answer->sized || !facts->streaming) {
    at = PUT(at, "Content-Length: ");
    at =
        tide_response_number(at, answer->sized ? answer->size : answer->length);
    if (!facts->head_request)
      *framing = TIDE_FRAMING_LENGTH;
    return PUT(at, "\r\n");
  }
  if (facts->head_request) /* nothing follows, and no length is known */
    return at;
  if (facts->http_1_0) {
    facts->close = true;
    *framing = TIDE_FRAMING_CLOSE;
    return at;
  }
  *framing = TIDE_FRAMING_CHUNKED;
  return PUT(at, "Transfer-Encoding: chunked\r\n");
}

/* What becomes of the connection. A client that knows how long it may be idle
 * does not send a request into our close. */
static char *put_connection(char *at, const tide_head_facts *facts) {
  if (facts->upgrade)
    return PUT(at, "Connection: Upgrade\r\n");
  if (facts->close)
    return PUT(at, "Connection: close\r\n");
  if (facts->idle != NULL && facts->idle[0] != '\0') {
    at = PUT(at, "Connection: keep-alive\r\nKeep-Alive: timeout=");
    at = put(at, facts->idle, strlen(facts->idle));
    return PUT(at, "\r\n");
  }
  return facts->http_1_0 ? PUT(at, "Connection: keep-alive\r\n") : at;
}

size_t tide_response_head(char *out, const tide_answer *answer,
                          tide_head_facts *facts, tide_body_framing *framing) {
  bool typed = false;
  char *at = put_status(out, answer->status);
  at = PUT(at, "Date: ");
  at = put(at, facts->date, strlen(facts->date));
  at = PUT(at, "\r\n");
  if (answer->header_count > 0)
    at = put_headers(at, answer, facts, &typed);
  if (answer->type != NULL && !typed && tide_status_has_body(answer->status)) {
    at = PUT(at, "Content-Type: ");
    at = put(at, answer->type, strlen(answer->type));
    at = PUT(at, "\r\n");
  }
  at = put_framing(at, answer, facts, framing);
  at = put_connection(at, facts);
  at = PUT(at, "\r\n");
  return (size_t)(at - out);
}

size_t tide_response_chunk(char *out, size_t length) {
  static const char hex[] = "0123456789abcdef";
  char digits[16];
  size_t n = sizeof digits;
  do {
    digits[--n] = hex[length & 15];
    length >>= 4;
  } while (length > 0);
  size_t count = sizeof digits - n;
  memcpy(out, digits + n, count);
  memcpy(out + count, "\r\n", 2);
  return count + 2;
}

void tide_response_date(char *out, int64_t unix_seconds) {
  static const char *const days[] = {"Sun", "Mon", "Tue", "Wed",
                                     "Thu", "Fri", "Sat"};
  static const char *const months[] = {"Jan", "Feb", "Mar", "Apr",
                                       "May", "Jun", "Jul", "Aug",
                                       "Sep", "Oct", "Nov", "Dec"};
  int64_t seconds = unix_seconds > 0 ? unix_seconds : 0; /* a clock never set */
  int64_t since = seconds / 86400;
  unsigned of_day = (unsigned)(seconds % 86400);
  int year, month, day;
  tide_date_of(since, &year, &month, &day);
  /* Not strftime: it would follow the locale of an embedding program. The first
   * day of 1970 was a Thursday. */
  snprintf(out, 40, "%s, %02u %s %04u %02u:%02u:%02u GMT",
           days[(since + 4) % 7], (unsigned)day % 100u, months[month - 1],
           (unsigned)year % 10000u, of_day / 3600 % 24, of_day / 60 % 60,
           of_day % 60);
}
