/* What the scanner takes, llhttp takes with the same result: heads, and random
 * changes of them, fed whole (the scanner looks first) and with the first byte
 * alone (it never does). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/request.h"

enum { SIZE = 4096, CHANGES = 300000 };

static const char *const heads[] = {
    "GET /orders/42 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Mozilla/5.0 "
    "(X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\nConnection: "
    "keep-alive\r\nCookie: a=\"b c\"\r\n\r\n",
    "HEAD /a/b?x=1&y=%20#z HTTP/1.1\r\nHost: [::1]:80\r\nConnection: "
    "close\r\n\r\n",
    "DELETE /a HTTP/1.1\r\nHost:a\r\nX-Empty:\r\nX-High: \xc3\xa9\r\n\r\n",
    "OPTIONS /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\nGET / HTT",
    "GET /0123456789 HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
    "GET /0123456789 HTTP/1.1\r\nhOsT: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "0\r\n\r\n",
    "GET /0123456789 HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: "
    "upgrade\r\nProxy-Connection: close\r\n\r\n",
};

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint32_t random_below(uint32_t limit) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32) % limit;
}

typedef struct outcome {
  tide_feed feed;
  size_t used;
  tide_request request;
} outcome;

static const tide_http_limits *limits;

/* In a block of just this size, so that a read behind it is found. */
static char *begin(outcome *o, const char *text, size_t length) {
  char *copy = malloc(length);
  memcpy(copy, text, length);
  memset(&o->request, 0, sizeof o->request);
  tide_request_begin(&o->request, limits, copy);
  return copy;
}

static void feed_whole(outcome *o, const char *text, size_t length) {
  char *copy = begin(o, text, length);
  o->feed = tide_request_feed(&o->request, copy, length, &o->used);
  o->request.base = text;
  free(copy);
}

static void feed_apart(outcome *o, const char *text, size_t length) {
  char *copy = begin(o, text, length);
  size_t used = 0;
  o->feed = tide_request_feed(&o->request, copy, 1, &used);
  if (o->feed == TIDE_FEED_MORE) {
    o->feed = tide_request_feed(&o->request, copy + 1, length - 1, &o->used);
    o->used++;
  }
  o->request.base = text;
  free(copy);
}

static void fail_with(const char *what, const char *text, size_t length) {
  fprintf(stderr, "%s differs for:\n%.*s\n--\n", what, (int)length, text);
  fail();
}

#define SAME(field)                                                            \
  if (whole->request.field != apart->request.field)                            \
  fail_with(#field, text, length)

static void compare(const outcome *whole, const outcome *apart,
                    const char *text, size_t length) {
  if (whole->feed != apart->feed)
    fail_with("the outcome", text, length);
  SAME(status);
  if (whole->feed != TIDE_FEED_DONE)
    return;
  if (whole->used != apart->used)
    fail_with("the length", text, length);
  SAME(head_length);
  SAME(method);
  SAME(method_end);
  SAME(http_1_0);
  SAME(keep_alive);
  SAME(has_body);
  SAME(expect_continue);
  SAME(expect_unknown);
  SAME(upgrade);
  SAME(done);
  SAME(target);
  SAME(target_length);
  SAME(path);
  SAME(path_length);
  SAME(query);
  SAME(query_length);
  SAME(content_length);
  SAME(header_count);
  for (unsigned i = 0; i < whole->request.header_count; i++) {
    SAME(headers[i].name);
    SAME(headers[i].name_length);
    SAME(headers[i].value_length);
    if (whole->request.headers[i].value_length > 0)
      SAME(headers[i].value);
  }
}

static bool try_both(const char *text, size_t length) {
  static outcome whole, apart;
  feed_whole(&whole, text, length);
  feed_apart(&apart, text, length);
  compare(&whole, &apart, text, length);
  bool was_scanned = whole.feed == TIDE_FEED_DONE && !whole.request.parsing;
  tide_request_clear(&whole.request);
  tide_request_clear(&apart.request);
  return was_scanned;
}

/* Replaces, inserts, removes or repeats some bytes. */
static size_t change(char *text, size_t length) {
  static const char odd[] = " \t\r\n\0:;,/?#%*\x7f\x80\xff"
                            "aZ09\"{|}HTP.1";
  size_t at = random_below((uint32_t)length);
  size_t run = 1 + random_below(4);
  char byte = random_below(4) == 0 ? (char)random_below(256)
                                   : odd[random_below(sizeof odd - 1)];
  switch (random_below(4)) {
  case 0:
    text[at] = byte;
    return length;
  case 1:
    memmove(text + at + 1, text + at, length - at);
    text[at] = byte;
    return length + 1;
  case 2:
    if (run >= length - at)
      return at > 0 ? at : 1;
    memmove(text + at, text + at + run, length - at - run);
    return length - run;
  default:
    if (at + run > length)
      return length;
    memmove(text + at + run, text + at, length - at);
    return length + run;
  }
}

static void plain_heads_are_scanned(void **unused) {
  tide_http_limits usual;
  (void)unused;
  tide_http_limits_init(&usual);
  limits = &usual;
  assert_true(try_both(heads[0], strlen(heads[0])));
  for (size_t i = 1; i < sizeof heads / sizeof *heads; i++)
    try_both(heads[i], strlen(heads[i]));
}

static void changed_heads_have_one_result(void **unused) {
  tide_http_limits usual;
  char text[SIZE];
  unsigned scanned = 0;
  (void)unused;
  tide_http_limits_init(&usual);
  limits = &usual;
  for (unsigned i = 0; i < CHANGES; i++) {
    const char *head = heads[random_below(sizeof heads / sizeof *heads)];
    size_t length = strlen(head);
    memcpy(text, head, length);
    for (unsigned n = 1 + random_below(3); n > 0; n--)
      length = change(text, length);
    scanned += try_both(text, length);
  }
  /* Else the two were the same because nothing was scanned. */
  assert_true(scanned > CHANGES / 50);
}

static void limits_are_the_same(void **unused) {
  (void)unused;
  for (uint32_t i = 0; i < 400; i++) {
    tide_http_limits small;
    tide_http_limits_init(&small);
    limits = &small;
    small.request_line = i;
    try_both(heads[0], strlen(heads[0]));
    tide_http_limits_init(&small);
    small.head = i;
    try_both(heads[0], strlen(heads[0]));
    tide_http_limits_init(&small);
    small.field = i;
    try_both(heads[0], strlen(heads[0]));
    tide_http_limits_init(&small);
    small.fields = i % TIDE_HEADERS_MAX;
    try_both(heads[0], strlen(heads[0]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_heads_are_scanned),
      cmocka_unit_test(changed_heads_have_one_result),
      cmocka_unit_test(limits_are_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
