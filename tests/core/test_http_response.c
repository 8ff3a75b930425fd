/* What an answer looks like on the wire, for each kind of answer and client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/response.h"

static char head[4096];
static tide_body_framing framing;

static void write_head(const tide_answer *answer, tide_head_facts facts) {
  facts.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  size_t length = tide_response_head(head, answer, &facts, &framing);
  assert_true(length <= tide_response_bound(answer));
  head[length] = '\0';
}

#define assert_has(text) assert_non_null(strstr(head, (text)))
#define assert_lacks(text) assert_null(strstr(head, (text)))

static void a_plain_answer(void **state) {
  tide_answer answer = {.status = 200, .type = "text/plain", .length = 5};
  (void)state;
  write_head(&answer, (tide_head_facts){0});
  assert_string_equal(head, "HTTP/1.1 200 OK\r\n"
                            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                            "Content-Type: text/plain\r\n"
                            "Content-Length: 5\r\n\r\n");
  assert_int_equal(framing, TIDE_FRAMING_LENGTH);
}

/* One row for each way a body can be framed, or left out. */
static void the_framing_fits_client_and_status(void **state) {
  static const struct {
    int status;
    bool head_request, http_1_0, streaming;
    tide_body_framing framing;
    const char *has;
    const char *lacks;
  } rows[] = {
      {200, 0, 0, 1, TIDE_FRAMING_CHUNKED, "Transfer-Encoding: chunked\r\n",
       "Content-Length"},
      {200, 0, 1, 1, TIDE_FRAMING_CLOSE, "Connection: close\r\n",
       "Transfer-Encoding"},
      {200, 0, 1, 0, TIDE_FRAMING_LENGTH, "Connection: keep-alive\r\n",
       "Transfer-Encoding"},
      {200, 1, 0, 0, TIDE_FRAMING_NONE, "Content-Length: 7\r\n",
       "Transfer-Encoding"},
      {200, 1, 0, 1, TIDE_FRAMING_NONE, "HTTP/1.1 200", "Content-Length"},
      {200, 1, 0, 1, TIDE_FRAMING_NONE, "HTTP/1.1 200", "Transfer-Encoding"},
      {200, 1, 1, 1, TIDE_FRAMING_NONE, "keep-alive", "Connection: close"},
      {205, 0, 0, 0, TIDE_FRAMING_NONE, "Content-Length: 0\r\n", "Transfer-"},
      {205, 0, 0, 1, TIDE_FRAMING_NONE, "Content-Length: 0\r\n", "Transfer-"},
      {204, 0, 0, 0, TIDE_FRAMING_NONE, "204 No Content", "Content-"},
      {204, 0, 0, 1, TIDE_FRAMING_NONE, "204 No Content", "Transfer-"},
      {304, 0, 0, 0, TIDE_FRAMING_NONE, "304 Not Modified", "Content-"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tide_answer answer = {
        .status = rows[i].status, .type = "text/plain", .length = 7};
    write_head(&answer, (tide_head_facts){.head_request = rows[i].head_request,
                                          .http_1_0 = rows[i].http_1_0,
                                          .streaming = rows[i].streaming});
    assert_int_equal(framing, rows[i].framing);
    assert_has(rows[i].has);
    assert_lacks(rows[i].lacks);
  }
}

static void how_long_it_may_be_idle_is_said(void **state) {
  tide_answer_header own = {"keep-alive", 10, "timeout=9", 9};
  tide_answer answer = {.status = 200, .headers = &own, .header_count = 1};
  (void)state;
  write_head(&answer, (tide_head_facts){.idle = "75"});
  assert_has("Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n");
  assert_lacks("timeout=9");
  write_head(&answer, (tide_head_facts){.idle = "75", .close = true});
  assert_has("Connection: close\r\n");
  assert_lacks("eep-");
  write_head(&answer, (tide_head_facts){.idle = ""});
  assert_lacks("onnection");
}

static void close_is_said_once(void **state) {
  tide_answer_header own = {"connection", 10, "Close", 5};
  tide_answer answer = {.status = 200, .headers = &own, .header_count = 1};
  tide_head_facts facts = {.date = "x"};
  (void)state;
  size_t length = tide_response_head(head, &answer, &facts, &framing);
  head[length] = '\0';
  assert_true(facts.close);
  assert_has("Connection: close\r\n");
  assert_lacks("connection: Close");
  own.value = "keep-alive";
  own.value_length = 10;
  write_head(&answer, (tide_head_facts){.close = true});
  assert_has("Connection: close\r\n");
  assert_lacks("keep-alive");
}

static void own_headers_stand_as_given(void **state) {
  tide_answer_header own[] = {{"X-A", 3, "1", 1},
                              {"X-A", 3, "2", 1},
                              {"content-type", 12, "a/b", 3},
                              {"Empty", 5, "", 0}};
  tide_answer answer = {
      .status = 201, .type = "text/plain", .headers = own, .header_count = 4};
  (void)state;
  assert_int_equal(tide_response_check(&answer), TIDE_ANSWER_OK);
  write_head(&answer, (tide_head_facts){0});
  assert_has("HTTP/1.1 201 Created\r\n");
  assert_has("X-A: 1\r\nX-A: 2\r\ncontent-type: a/b\r\nEmpty: \r\n");
  assert_lacks("text/plain");
}

static void what_would_break_a_head_is_refused(void **state) {
  static const tide_answer_header bad[] = {
      {"X", 1, "a\rb", 3},   {"X", 1, "a\nb", 3},     {"X", 1, "a\0b", 3},
      {"X:", 2, "a", 1},     {"X Y", 3, "a", 1},      {"", 0, "a", 1},
      {"X\r\nY", 4, "a", 1}, {"\xc3\xa9", 2, "a", 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tide_answer answer = {.status = 200, .headers = &bad[i], .header_count = 1};
    assert_int_equal(tide_response_check(&answer), TIDE_ANSWER_HEADER);
  }
  static const int statuses[] = {0, 100, 101, 199, 600, -1};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    tide_answer answer = {.status = statuses[i]};
    assert_int_equal(tide_response_check(&answer), TIDE_ANSWER_STATUS);
  }
}

static void every_answer_fits_its_bound(void **state) {
  static const int odd[] = {200, 299, 404, 431, 451, 511, 599};
  (void)state;
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    tide_answer answer = {.status = odd[i], .length = SIZE_MAX};
    write_head(&answer, (tide_head_facts){.close = true});
    write_head(&answer, (tide_head_facts){.http_1_0 = true});
  }
}

static void chunks_have_their_size_in_hex(void **state) {
  char line[20];
  (void)state;
  assert_int_equal(tide_response_chunk(line, 1), 3);
  assert_memory_equal(line, "1\r\n", 3);
  assert_int_equal(tide_response_chunk(line, 0x1f4a0), 7);
  assert_memory_equal(line, "1f4a0\r\n", 7);
  assert_int_equal(tide_response_chunk(line, SIZE_MAX), 18);
}

static void dates_are_those_of_http(void **state) {
  char date[40];
  (void)state;
  tide_response_date(date, 784111777);
  assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
  tide_response_date(date, 951782400);
  assert_string_equal(date, "Tue, 29 Feb 2000 00:00:00 GMT");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_plain_answer),
      cmocka_unit_test(the_framing_fits_client_and_status),
      cmocka_unit_test(how_long_it_may_be_idle_is_said),
      cmocka_unit_test(close_is_said_once),
      cmocka_unit_test(own_headers_stand_as_given),
      cmocka_unit_test(what_would_break_a_head_is_refused),
      cmocka_unit_test(every_answer_fits_its_bound),
      cmocka_unit_test(chunks_have_their_size_in_hex),
      cmocka_unit_test(dates_are_those_of_http),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
