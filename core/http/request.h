/* request: one request as it comes off the wire.
 *
 * llhttp finds the pieces, or scan.c where they are plain; a request keeps
 * where they lie, as offsets from `base`. While the head came in one read,
 * `base` is the loop's shared read buffer and nothing is copied. A request that
 * outlives the read (an incomplete head, a handler that awaits) gets a copy of
 * its own: tide_request_own. What llhttp lets through and we do not is in
 * head.c.
 *
 * Pure: bytes in, facts out. No loop, no I/O.
 */
#ifndef TIDE_HTTP_REQUEST_H
#define TIDE_HTTP_REQUEST_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "route.h"

enum { TIDE_HEADERS_MAX = 100 };

/* How large a request may be. See the table in the listener's options. */
typedef struct tide_http_limits {
  uint32_t request_line;
  uint32_t head;  /* all header fields together */
  uint32_t field; /* one of them */
  uint32_t fields;
  uint32_t trailers;
  uint32_t trailer_fields;
  uint32_t chunk_extensions;
  uint64_t body;
} tide_http_limits;

void tide_http_limits_init(tide_http_limits *limits);

/* A header field: name and value, as offsets from the request's base. */
typedef struct tide_header {
  uint16_t name;
  uint16_t name_length;
  uint16_t value;
  uint16_t value_length;
} tide_header;

/* What a call of tide_request_feed came to. */
typedef enum tide_feed {
  TIDE_FEED_MORE, /* all taken; more is needed */
  TIDE_FEED_HEAD, /* the head is complete and sound, a body follows */
  TIDE_FEED_DONE, /* the whole message is there */
  TIDE_FEED_FAIL, /* `status` says how to answer, `why` what was wrong */
} tide_feed;

typedef struct tide_request {
  llhttp_t parser;
  const tide_http_limits *limits;
  const char *base; /* where the head begins */
  char *own;        /* or NULL while base is the shared buffer */
  size_t own_length;
  size_t own_capacity;
  size_t head_length; /* of the whole head, once it is complete */

  /* The request line and fields. */
  unsigned method;
  bool http_1_0;
  bool keep_alive; /* the client's wish */
  bool has_body;
  bool chunked;
  bool expect_continue;
  bool expect_unknown; /* something else is expected: 417 */
  bool upgrade;
  bool parsing; /* llhttp has it; else it was, or will be, scanned */
  bool head_done;
  bool done;
  llhttp_errno_t undecided; /* refused, but how depends on the next bytes */
  uint16_t target, target_length;
  uint16_t path, path_length;
  uint16_t query, query_length; /* without the question mark */
  unsigned header_count;
  tide_header headers[TIDE_HEADERS_MAX];
  uint16_t method_end;
  uint64_t content_length;

  /* The body. Bytes before body_taken were given to the handler. */
  uint64_t body_limit;
  uint64_t body_total; /* seen so far */
  char *body;
  size_t body_length;
  size_t body_taken;
  size_t body_capacity;

  /* The framing around the body: counted, not kept. */
  uint64_t wire_bytes;
  uint32_t extension_bytes;
  uint32_t trailer_bytes;
  uint32_t trailer_count;
  char trailer_name[32];
  uint32_t trailer_length; /* of that name */
  uint32_t trailer_line;   /* bytes of the present line */
  bool at_chunk;           /* the parser stopped behind a chunk's size */
  bool in_trailers;        /* behind the last chunk */
  char last_byte;          /* of the trailers */

  int status; /* of a failure */
  const char *why;
} tide_request;

/* Begins a request whose first byte is at `base`. Memory that a former request
 * left in the struct is used again. */
void tide_request_begin(tide_request *request, const tide_http_limits *limits,
                        const char *base);
/* Frees what the struct holds, but not the struct. */
void tide_request_clear(tide_request *request);

/* Takes bytes of the head (contiguous with those before, from `base` on) or,
 * after TIDE_FEED_HEAD, of the body. *used is how many belong to this request.
 * After MORE in the head, call tide_request_own before the bytes move. */
tide_feed tide_request_feed(tide_request *request, const char *data,
                            size_t length, size_t *used);

/* Copies `length` bytes from base on, so that the read buffer may go. */
bool tide_request_own(tide_request *request, size_t length);
/* Adds bytes to an own, incomplete head. The bytes to feed are at *data. */
bool tide_request_append(tide_request *request, const char *bytes,
                         size_t length, const char **data);

/* Keeps bytes that the handler has not taken yet: of the body, or of another
 * protocol. False when memory is out. */
bool tide_request_put(tide_request *request, const char *data, size_t length);

/* The value of a field, names without case; NULL when it is not there. A field
 * that came more than once: the first from *from on (start with 0). */
const char *tide_request_header(const tide_request *request, const char *name,
                                size_t name_length, unsigned *from,
                                size_t *length);

/* Checks a complete head: Host, target, transfer coding, Expect. Sets the
 * derived fields; returns false after setting status and why. (head.c) */
bool tide_request_check(tide_request *request);
/* host[:port] without userinfo; empty is legal. (head.c) */
bool tide_request_host_is_sound(const char *host, size_t length);
/* Finds the pieces of a plain and sound head without a body that lies whole in
 * `length` bytes from base on, path and query too. False: it is not that plain,
 * and nothing is known of it; what was set so far is the caller's to undo.
 * (scan.c)
 */
bool tide_request_scan(tide_request *request, size_t length);
/* Turns an error of llhttp's into status and why, or notes it as undecided.
 * What it says depends on the bytes from the beginning on, not on the pieces
 * they came in. (head.c) */
void tide_request_explain(tide_request *request, llhttp_errno_t error,
                          size_t seen);
/* Sets status and why, unless set already; returns false. */
bool tide_request_fail(tide_request *request, int status, const char *why);

#endif
