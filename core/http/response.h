/* response: the one place where an answer becomes bytes.
 *
 * Every head, be it of a handler, an error or a probe, is written here, so that
 * "Connection: close" cannot be forgotten: it is decided in this moment, not
 * when the request was parsed. Pure: facts in, bytes out.
 */
#ifndef TIDE_HTTP_RESPONSE_H
#define TIDE_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http.h"

/* How the client can tell the end of the body. */
typedef enum tide_body_framing {
  TIDE_FRAMING_NONE,   /* there is none */
  TIDE_FRAMING_LENGTH, /* Content-Length */
  TIDE_FRAMING_CHUNKED,
  TIDE_FRAMING_CLOSE, /* HTTP/1.0: the connection ends with it */
} tide_body_framing;

/* What the head depends on besides the answer. */
typedef struct tide_head_facts {
  const char *date;  /* "Sun, 06 Nov 1994 08:49:37 GMT" */
  const char *idle;  /* seconds that the connection may be idle; or NULL */
  bool head_request; /* HEAD: the body is left out, not its length */
  bool http_1_0;
  bool streaming; /* the body follows in pieces */
  bool close;     /* this is the last answer of the connection */
  bool upgrade;   /* 101: the connection changes its protocol */
} tide_head_facts;

/* "Not Found"; "Unknown" for one that has no name. */
const char *tide_status_text(int status);
/* Whether an answer with this status can have a body. */
bool tide_status_has_body(int status);

/* Checks names, values and status. */
tide_answer_error tide_response_check(const tide_answer *answer);
/* Bytes that the head takes at most. */
size_t tide_response_bound(const tide_answer *answer);
/* Writes the head into `out` (of at least that size); returns its length and
 * sets *framing. A "Connection: close" among the headers sets facts->close. */
size_t tide_response_head(char *out, const tide_answer *answer,
                          tide_head_facts *facts, tide_body_framing *framing);

/* Writes the line before a chunk ("1f4\r\n"); `out` has room for 20. */
size_t tide_response_chunk(char *out, size_t length);

/* Writes a number in 20 digits at most; returns where it ends. */
char *tide_response_number(char *out, uint64_t number);

/* The date of a moment, for the header; `out` has room for 40. */
void tide_response_date(char *out, int64_t unix_seconds);

#endif
