/* What any HTTP/1.1 server is asked first: the kinds of checks of h1spec
 * (github.com/uNetworking/h1spec), in rows of our own. A request that is not
 * complete is waited for, wherever it was cut. */
#include "http_wire.h"

#define REQUEST "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define WITH(fields) WIRE("GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n")

static const wire_row complete[] = {
    {"a request", WITH(""), "200 keep", 1, false},
    {"odd case, a tab, nothing",
     WIRE("GET / HTTP/1.1\r\nhOsT:\ta\r\nx:\r\n"
          "\r\n"),
     "200 keep", 1, false},
    {"an empty value", WITH("X-Nothing: \r\n"), "200 keep", 1, false},
    {"a body",
     WIRE("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
          "hello"),
     "200 keep", 1, false},
    {"Expect", WITH("Expect: 100-continue\r\n"), "200 keep", 1, false},
};

static const wire_row refused[] = {
    {"no version", WIRE("GET / \r\n\r\n"), "400 close", 0, false},
    {"another version", WIRE("GET / HTTP/9.9\r\nHost: a\r\n\r\n"), "505 close",
     0, false},
    {"words before the method",
     WIRE("One moreGET / HTTP/1.1\r\nHost: a\r\n\r\n"), "501 close", 0, false},
    {"brackets in a name", WITH("X[0]: test\r\n"), "400 close", 0, false},
    {"a control in a value", WITH("X: a\x07\r\n"), "400 close", 0, false},
    {"no Host", WIRE("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"),
     "400 close", 0, false},
    {"two Hosts", WITH("Host: b\r\n"), "400 close", 0, false},
    {"a negative length", WITH("Content-Length: -1234\r\n"), "400 close", 0,
     false},
    {"a negative length of many digits",
     WITH("Content-Length: -987654321987654321987654321\r\n"), "400 close", 0,
     false},
    {"a length of letters", WITH("Content-Length: abc\r\n"), "400 close", 0,
     false},
    {"a length and a coding",
     WITH("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), "400 close",
     0, false},
    {"CR instead of a line's end",
     WIRE("GET / HTTP/1.1\r\nHost: a\r\n\rX: Test\r\n\r\n"), "400 close", 0,
     false},
};

static void what_is_complete_is_served(void **state) {
  (void)state;
  WIRE_TABLE(complete);
}

static void what_is_wrong_is_refused(void **state) {
  (void)state;
  WIRE_TABLE(refused);
}

/* Each beginning of a request, all of them without their last byte. */
static void what_is_incomplete_is_waited_for(void **state) {
  int wrong = 0;
  (void)state;
  for (size_t n = 1; n < sizeof REQUEST - 1; n++) {
    char name[32];
    snprintf(name, sizeof name, "the first %zu bytes", n);
    wire_row row = {name, REQUEST, n, "wait", 0, false};
    wrong += wire_check(&row);
  }
  assert_int_equal(wrong, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_open, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_is_complete_is_served),
      TEST(what_is_wrong_is_refused),
      TEST(what_is_incomplete_is_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
