/* What a request parses to: each input whole, and one byte at a time, placed so
 * that a read past its end is found by the sanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "http/request.h"

#define H "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n"

/* status 0: accepted, and complete. */
typedef struct row {
  const char *name;
  const char *text;
  int status;
} row;

static const row rows[] = {
    {"plain", GET H "\r\n", 0},
    {"1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 0},
    {"no Host", GET "\r\n", 400},
    {"two Hosts", GET H H "\r\n", 400},
    {"empty Host", GET "Host: \r\n\r\n", 0},
    {"empty Host, no space", GET "Host:\r\n\r\n", 0},
    {"userinfo in Host", GET "Host: u@a\r\n\r\n", 400},
    {"path in Host", GET "Host: a/b\r\n\r\n", 400},
    {"port in Host", GET "Host: a:80\r\n\r\n", 0},
    {"IPv6 Host", GET "Host: [::1]:80\r\n\r\n", 0},
    {"HTTP/0.9", "GET /\r\n", 505},
    {"HTTP/0.9 and a bad field", "GET /\r\nX y\r\n\r\n", 505},
    {"a target cut off by the end of the line", "GET h\r\n", 400},
    {"HTTP/0.9 in absolute form, and noise", "GET http://a\r\n\x0cX: y\r\n\r\n",
     505},
    {"a scheme cut off by a line feed", "GET http:\nX\n\r\n", 400},
    {"HTTP/0.9 and a bare CR", "GET /\r0\n", 400},
    {"HTTP/0.9 and an empty line", "GET /\r\n\r\n", 505},
    {"two spaces behind the target", "GET /  HTTP/1.1\r\n" H "\r\n", 400},
    {"HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n", 505},
    {"HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", 505},
    {"HTTP/9.9", "GET / HTTP/9.9\r\n" H "\r\n", 505},
    {"long version", "GET / HTTP/4294967295.255\r\n" H "\r\n", 400},
    {"other version, and more", "GET / HTTP/3.0x\r\n" H "\r\n", 505},
    {"version of three digits", "GET / HTTP/1.10\r\n" H "\r\n", 400},
    {"RTSP", "DESCRIBE / RTSP/1.0\r\n" H "\r\n", 505},
    {"ICE", "SOURCE / ICE/1.0\r\n" H "\r\n", 505},
    {"RTSP with GET", "GET / RTSP/1.0\r\n" H "\r\n", 505},
    {"nearly RTSP", "GET / RTXP/1.0\r\n" H "\r\n", 400},
    {"method of RTSP", "PLAY / HTTP/1.1\r\n" H "\r\n", 501},
    {"endless method",
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA "
     "/ HTTP/1.1\r\n" H "\r\n",
     400},
    {"unknown method", "FOO / HTTP/1.1\r\n" H "\r\n", 501},
    {"lower-case method", "get / HTTP/1.1\r\n" H "\r\n", 501},
    {"method with a bad byte", "G@T / HTTP/1.1\r\n" H "\r\n", 400},
    {"TLS hello", "\x16\x03\x01\x02\x01\x01", 400},
    {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n", 501},
    {"two spaces", "GET  / HTTP/1.1\r\n" H "\r\n", 400},
    {"star", "GET * HTTP/1.1\r\n" H "\r\n", 400},
    {"star for OPTIONS", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0},
    {"fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n", 400},
    {"absolute", "GET http://a/x HTTP/1.1\r\n" H "\r\n", 0},
    {"absolute, upper case", "GET HTTP://A/x HTTP/1.1\r\n" H "\r\n", 0},
    {"absolute, usual port", "GET http://a:80/x HTTP/1.1\r\n" H "\r\n", 0},
    {"absolute, other port", "GET http://a:8/x HTTP/1.1\r\n" H "\r\n", 400},
    {"absolute, other Host", "GET http://b/x HTTP/1.1\r\n" H "\r\n", 400},
    {"absolute, userinfo", "GET http://u@a/x HTTP/1.1\r\n" H "\r\n", 400},
    {"high bytes in the target", "GET /\x80 HTTP/1.1\r\n" H "\r\n", 400},
    {"high bytes in a value", GET H "X: \xc3\xa9\r\n\r\n", 0},
    {"folded line", GET H "X: a\r\n b\r\n\r\n", 400},
    {"folded at once", GET H "X:\r\n b\r\n\r\n", 400},
    {"folded, tab", GET H "X: a\r\n\tb\r\n\r\n", 400},
    {"space before colon", GET H "X : a\r\n\r\n", 400},
    {"leading space", GET " X: a\r\n" H "\r\n", 400},
    {"bare LF", "GET / HTTP/1.1\nHost: a\n\n", 400},
    {"bare LF in a field", GET H "X: a\n\r\n", 400},
    {"bare CR in a value", GET H "X: :/\rSmuggled: x\r\n\r\n", 400},
    {"CR CR", GET H "\r\r\n", 400},
    {"NUL in a value", GET H "X: a\x01\r\n\r\n", 400},
    {"empty name", GET H ": x\r\n\r\n", 400},
    {"no colon", GET H "abc\r\n\r\n", 400},
    {"empty value", GET H "X:\r\n\r\n", 0},
    {"blank value", GET H "X:   \r\n\r\n", 0},
    {"trailing blanks", GET H "X: a  \r\n\r\n", 0},
    {"unknown expectation", GET H "Expect: tea\r\n\r\n", 0},
    {"bare LF as the end", GET H "\n", 400},
    {"bare LF as the end, no field", "GET / HTTP/1.0\r\n\n", 400},
    {"unknown expectation in 1.0", "GET / HTTP/1.0\r\nExpect: tea\r\n\r\n", 0},
    {"upgrade without body", GET H "Connection: upgrade\r\nUpgrade: x\r\n\r\n",
     0},

    {"length", "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc", 0},
    {"length 0", "POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 0},
    {"negative length", "POST / HTTP/1.1\r\n" H "Content-Length: -48\r\n\r\n",
     400},
    {"plus length", "POST / HTTP/1.1\r\n" H "Content-Length: +2\r\n\r\nab",
     400},
    {"empty length", "POST / HTTP/1.1\r\n" H "Content-Length: \r\n\r\n", 400},
    {"length twice",
     "POST / HTTP/1.1\r\n" H "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
     400},
    {"length list", "POST / HTTP/1.1\r\n" H "Content-Length: 2, 2\r\n\r\nab",
     400},
    {"length overflow",
     "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n",
     400},
    {"length and coding",
     "POST / HTTP/1.1\r\n" H
     "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400},
    {"coding and length",
     "POST / HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
     400},
};

#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
#define CODED(te) "POST / HTTP/1.1\r\n" H "Transfer-Encoding: " te "\r\n\r\n"

static const row chunked_rows[] = {
    {"chunked", CHUNKED "3\r\nabc\r\n0\r\n\r\n", 0},
    {"chunked, upper case", CODED("Chunked") "0\r\n\r\n", 0},
    {"extension", CHUNKED "3;a=b\r\nabc\r\n0\r\n\r\n", 0},
    {"trailer", CHUNKED "0\r\nX: y\r\n\r\n", 0},
    {"trailer Host", CHUNKED "0\r\nHost: b\r\n\r\n", 400},
    {"trailer Content-Length", CHUNKED "0\r\nContent-Length: 3\r\n\r\n", 400},
    {"trailer Authorization", CHUNKED "0\r\nAuthorization: x\r\n\r\n", 400},
    {"chunked in 1.0",
     "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"gzip, chunked", CODED("gzip, chunked") "0\r\n\r\n", 501},
    {"identity", CODED("identity") "0\r\n\r\n", 501},
    {"xchunked", CODED("xchunked") "0\r\n\r\n", 501},
    {"unknown", CODED("blegh") "0\r\n\r\n", 501},
    {"chunked, gzip", CODED("chunked, gzip") "0\r\n\r\n", 400},
    {"chunked twice", CODED("chunked, chunked") "0\r\n\r\n", 400},
    {"two codings fields",
     "POST / HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\n\r\n",
     400},
    {"bare LF after size", CHUNKED "3\nabc\r\n0\r\n\r\n", 400},
    {"0x size", CHUNKED "0x3\r\nabc\r\n0\r\n\r\n", 400},
    {"underscore in size", CHUNKED "0_2e\r\nabc\r\n0\r\n\r\n", 400},
    {"minus size", CHUNKED "-3\r\nabc\r\n0\r\n\r\n", 400},
    {"plus size", CHUNKED "+3\r\nabc\r\n0\r\n\r\n", 400},
    {"empty size", CHUNKED "\r\nabc\r\n0\r\n\r\n", 400},
    {"size overflow", CHUNKED "fffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400},
    {"blank after size", CHUNKED "3 \r\nabc\r\n0\r\n\r\n", 400},
    {"spill", CHUNKED "3\r\nabcd\r\n0\r\n\r\n", 400},
    {"bare LF after the last chunk", CHUNKED "0\r\n\n", 400},
};

typedef struct result {
  tide_feed end;
  int status;
  char body[64];
  size_t left; /* bytes behind the request */
} result;

/* A copy that ends where its allocation ends. */
static char *exact(const char *text, size_t length) {
  char *copy = malloc(length > 0 ? length : 1);
  assert_non_null(copy);
  memcpy(copy, text, length);
  return copy;
}

static tide_request request;
static tide_http_limits limits;

static void note(result *r, const tide_request *q) {
  r->status = q->status;
  size_t n =
      q->body_length < sizeof r->body - 1 ? q->body_length : sizeof r->body - 1;
  if (n > 0)
    memcpy(r->body, q->body, n);
  r->body[n] = '\0';
}

static result whole(const char *text, size_t length) {
  result r = {0};
  char *data = exact(text, length);
  size_t at = 0, used = 0;
  tide_request_begin(&request, &limits, data);
  do {
    r.end = tide_request_feed(&request, data + at, length - at, &used);
    at += used;
  } while (r.end == TIDE_FEED_HEAD);
  r.left = length - at;
  note(&r, &request);
  free(data);
  return r;
}

static result by_bytes(const char *text, size_t length) {
  result r = {0};
  tide_request_begin(&request, &limits, "");
  for (size_t i = 0; i < length; i++) {
    size_t used = 0;
    char *data = exact(text + i, 1);
    const char *at = data;
    if (!request.head_done)
      assert_true(tide_request_append(&request, data, 1, &at));
    r.end = tide_request_feed(&request, at, 1, &used);
    free(data);
    if (r.end == TIDE_FEED_DONE || r.end == TIDE_FEED_FAIL) {
      r.left = length - i - 1;
      break;
    }
  }
  note(&r, &request);
  return r;
}

static void check_row(const row *it, result (*feed)(const char *, size_t),
                      const char *how) {
  result r = feed(it->text, strlen(it->text));
  tide_feed end = it->status == 0 ? TIDE_FEED_DONE : TIDE_FEED_FAIL;
  bool done = it->status == 0;
  if (r.status != it->status || r.end != end || request.done != done)
    fail_msg("%s (%s): status %d, end %d (%s)", it->name, how, r.status,
             (int)r.end, request.why != NULL ? request.why : "");
}

static void rows_are_answered_as_the_table_says(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    check_row(&rows[i], whole, "whole");
    check_row(&rows[i], by_bytes, "by bytes");
  }
}

static void chunked_rows_are_answered_as_the_table_says(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof chunked_rows / sizeof *chunked_rows; i++) {
    check_row(&chunked_rows[i], whole, "whole");
    check_row(&chunked_rows[i], by_bytes, "by bytes");
  }
}

static void bytes_behind_the_head_are_left(void **state) {
  const char text[] = GET H "\r\n\rZ";
  (void)state;
  result r = whole(text, sizeof text - 1);
  assert_int_equal(r.end, TIDE_FEED_DONE);
  assert_int_equal(r.left, 2);
}

static void the_body_is_kept(void **state) {
  (void)state;
  const char text[] = CHUNKED "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\nnext";
  assert_string_equal(whole(text, sizeof text - 1).body, "abcdefg");
  assert_string_equal(by_bytes(text, sizeof text - 1).body, "abcdefg");
  assert_int_equal(whole(text, sizeof text - 1).left, 4);
}

static void fields_are_found_without_case(void **state) {
  size_t length = 0;
  unsigned from = 0;
  size_t used = 0;
  (void)state;
  const char text[] = GET "hOsT: a\r\nX-A: 1 \t\r\nx-a: 2\r\n\r\n";
  tide_request_begin(&request, &limits, text);
  assert_int_equal(tide_request_feed(&request, text, sizeof text - 1, &used),
                   TIDE_FEED_DONE);
  const char *value = tide_request_header(&request, "x-A", 3, &from, &length);
  assert_memory_equal(value, "1", 1);
  assert_int_equal(length, 1); /* without the blanks */
  value = tide_request_header(&request, "x-A", 3, &from, &length);
  assert_memory_equal(value, "2", 1);
  assert_null(tide_request_header(&request, "x-A", 3, &from, &length));
}

static void path_and_query_are_split(void **state) {
  const char text[] = "GET http://a/p/q?x=1&y HTTP/1.1\r\n" H "\r\n";
  size_t used = 0;
  (void)state;
  tide_request_begin(&request, &limits, text);
  assert_int_equal(tide_request_feed(&request, text, sizeof text - 1, &used),
                   TIDE_FEED_DONE);
  assert_int_equal(request.path_length, 4);
  assert_memory_equal(request.base + request.path, "/p/q", 4);
  assert_int_equal(request.query_length, 5);
  assert_memory_equal(request.base + request.query, "x=1&y", 5);
}

static void a_target_without_a_path_is_the_root(void **state) {
  const char text[] = "GET http://a?x=1 HTTP/1.1\r\n" H "\r\n";
  size_t used = 0;
  (void)state;
  tide_request_begin(&request, &limits, text);
  assert_int_equal(tide_request_feed(&request, text, sizeof text - 1, &used),
                   TIDE_FEED_DONE);
  assert_int_equal(request.path_length, 1);
  assert_memory_equal(request.base + request.path, "/", 1);
  assert_memory_equal(request.base + request.query, "x=1", 3);
}

/* ---- limits ----------------------------------------------------------------
 */

static char *repeated(const char *before, char what, size_t count,
                      const char *after, size_t *length) {
  size_t a = strlen(before), b = strlen(after);
  char *text = malloc(a + count + b + 1);
  assert_non_null(text);
  memcpy(text, before, a);
  memset(text + a, what, count);
  memcpy(text + a + count, after, b + 1);
  *length = a + count + b;
  return text;
}

static void expect_both(char *text, size_t length, int status) {
  assert_int_equal(whole(text, length).status, status);
  assert_int_equal(by_bytes(text, length).status, status);
  free(text);
}

static void long_things_have_their_own_answers(void **state) {
  size_t n;
  char *text;
  (void)state;
  text = repeated("GET /", 'a', 9000, " HTTP/1.1\r\n" H "\r\n", &n);
  expect_both(text, n, 414);
  text = repeated("GET /", 'a', 8000, " HTTP/1.1\r\n" H "\r\n", &n);
  expect_both(text, n, 0);
  text = repeated(GET H "X: ", 'a', 8300, "\r\n\r\n", &n);
  expect_both(text, n, 431);
  text = repeated(GET H, 'a', 8300, ": x\r\n\r\n", &n);
  expect_both(text, n, 431);
  text = repeated(GET H "X:", ' ', 34000, "a\r\n\r\n", &n);
  expect_both(text, n, 431);
}

static void many_fields_are_too_many(void **state) {
  char text[4096] = GET H;
  (void)state;
  for (int i = 0; i < 99; i++)
    strcat(text, "X: a\r\n");
  strcat(text, "\r\n");
  assert_int_equal(whole(text, strlen(text)).status, 0);
  text[strlen(text) - 2] = '\0';
  strcat(text, "X: a\r\n\r\n");
  assert_int_equal(whole(text, strlen(text)).status, 431);
  assert_int_equal(by_bytes(text, strlen(text)).status, 431);
}

static void bodies_have_a_limit(void **state) {
  size_t n;
  (void)state;
  limits.body = 8;
  char *text = repeated(CHUNKED "9\r\n", 'b', 9, "\r\n0\r\n\r\n", &n);
  expect_both(text, n, 413);
  text = repeated(CHUNKED "8\r\n", 'b', 8, "\r\n0\r\n\r\n", &n);
  expect_both(text, n, 0);
  limits.body = 1024 * 1024;
}

static void framing_has_limits(void **state) {
  size_t n;
  char *text;
  (void)state;
  text = repeated(CHUNKED "2;", 'e', 5000, "\r\nab\r\n0\r\n\r\n", &n);
  expect_both(text, n, 400);
  text = repeated(CHUNKED "0\r\nX: ", 'e', 5000, "\r\n\r\n", &n);
  expect_both(text, n, 431);
}

static void tiny_chunks_end_some_time(void **state) {
  char *text = malloc(80000);
  (void)state;
  assert_non_null(text);
  strcpy(text, CHUNKED);
  size_t at = strlen(text);
  for (int i = 0; i < 4000; i++, at += 10)
    memcpy(text + at, "1;aaa\r\nx\r\n", 10);
  text[at] = '\0';
  result r = by_bytes(text, strlen(text));
  assert_int_equal(r.status, 400);
  free(text);
}

static int set_up(void **state) {
  (void)state;
  tide_http_limits_init(&limits);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tide_request_clear(&request);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_answered_as_the_table_says),
      cmocka_unit_test(chunked_rows_are_answered_as_the_table_says),
      cmocka_unit_test(bytes_behind_the_head_are_left),
      cmocka_unit_test(the_body_is_kept),
      cmocka_unit_test(fields_are_found_without_case),
      cmocka_unit_test(path_and_query_are_split),
      cmocka_unit_test(a_target_without_a_path_is_the_root),
      cmocka_unit_test(long_things_have_their_own_answers),
      cmocka_unit_test(many_fields_are_too_many),
      cmocka_unit_test(bodies_have_a_limit),
      cmocka_unit_test(framing_has_limits),
      cmocka_unit_test(tiny_chunks_end_some_time),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
