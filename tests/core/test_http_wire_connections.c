/* What becomes of a connection: pipelines, close and keep-alive, HTTP/1.0,
 * HEAD, Expect, Upgrade, half-close, empty lines, and heads that come late. */
#include "http_wire.h"

#define H "Host: a\r\n"
#define POST(fields, body) "POST /echo HTTP/1.1\r\n" H fields "\r\n" body
#define HEAD(path) "HEAD " path " HTTP/1.1\r\n" H "\r\n"
#define ASKED(fields) "GET /hello HTTP/1.1\r\n" H fields "\r\n"

static const wire_row pipelines[] = {
    {"three", WIRE(GET("/hello") GET("/nope") GET("/")), "200 404 200 keep", 2,
     false},
    {"with bodies between",
     WIRE(POST("Content-Length: 3\r\n", "abc") GET("/hello")
              POST("Content-Length: 3\r\n", "def")),
     "200 200 200 keep", 3, false},
    {"an error behind an answer", WIRE(GET("/hello") "EVIL\r\n\r\n"),
     "200 400 close", 1, false},
    {"an error before a request", WIRE("EVIL / HTTP/1.1\r\n\r\n" GET("/hello")),
     "501 close", 0, false},
    {"a body too large before a request",
     WIRE(POST("Content-Length: 9999999\r\n", "") GET("/hello")), "413 close",
     0, false},
    {"a body that is a request",
     WIRE(POST("Content-Length: 33\r\n", "GET /hello HTTP/1.1\r\nHost: bc\r\n"
                                         "\r\n")),
     "200 keep", 1, false},
    {"half a request behind", WIRE(GET("/hello") "GET /hel"), "200 wait", 1,
     false},
    {"405 and 404 go on",
     WIRE("DELETE /hello HTTP/1.1\r\n" H "\r\n" GET("/x") GET("/")),
     "405 404 200 keep", 1, false},
};

static const wire_row closing[] = {
    {"asked for", WIRE(GET_CLOSE("/hello")), "200 close", 1, false},
    {"asked for in odd case", WIRE(ASKED("connection: CLOSE\r\n")), "200 close",
     1, false},
    {"asked for in a list", WIRE(ASKED("Connection: x, close, y\r\n")),
     "200 close", 1, false},
    {"asked for beside keep-alive",
     WIRE(ASKED("Connection: keep-alive\r\nConnection: close\r\n")),
     "200 close", 1, false},
    {"keep-alive", WIRE(ASKED("Connection: keep-alive\r\n")), "200 keep", 1,
     false},
    {"unknown word", WIRE(ASKED("Connection: closed\r\n")), "200 keep", 1,
     false},
    {"noise behind close", WIRE(GET_CLOSE("/hello") "Invalid!"), "200 close", 1,
     false},
    {"a request behind close",
     WIRE(GET_CLOSE("/hello") POST("Content-Length: 1\r\n", "x")), "200 close",
     1, false},
    {"an empty line behind close", WIRE(GET_CLOSE("/hello") "\r\n"),
     "200 close", 1, false},
    {"close with 404", WIRE(GET_CLOSE("/nope") GET("/hello")), "404 close", 0,
     false},
    {"close with 405",
     WIRE("DELETE /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n"),
     "405 close", 0, false},
    {"1.0", WIRE("GET /hello HTTP/1.0\r\n\r\n" GET("/hello")), "200 close", 1,
     false},
    {"1.0, keep-alive",
     WIRE("GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
          "GET /hello HTTP/1.0\r\n\r\n"),
     "200 200 close", 2, false},
    {"1.0 with a length",
     WIRE("POST /echo HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"), "200 close",
     1, false},
    {"404 to 1.0", WIRE("GET /nope HTTP/1.0\r\n\r\n"), "404 close", 0, false},
};

static const wire_row heads[] = {
    {"HEAD", WIRE(HEAD("/hello") GET("/hello")), "h200 200 keep", 2, false},
    {"HEAD of nothing", WIRE(HEAD("/nope") GET("/hello")), "h404 200 keep", 1,
     false},
    {"HEAD of another method", WIRE(HEAD("/later-post") GET("/hello")),
     "h405 200 keep", 1, false},
    {"HEAD and close",
     WIRE("HEAD /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n"),
     "h200 close", 1, false},
    {"HEAD of a probe", WIRE(HEAD("/health/ready") GET("/hello")),
     "h200 200 keep", 1, false},
    {"HEAD in 1.0", WIRE("HEAD /hello HTTP/1.0\r\n\r\n"), "h200 close", 1,
     false},
    {"HEAD with an unknown expectation",
     WIRE("HEAD /hello HTTP/1.1\r\n" H "Expect: tea\r\n\r\n" GET("/hello")),
     "h417 200 keep", 1, false},
};

static const wire_row expectations[] = {
    {"and the body with it",
     WIRE(POST("Expect: 100-continue\r\nContent-Length: 3\r\n", "abc")),
     "100? 200 keep", 1, false},
    {"and no body yet",
     WIRE(POST("Expect: 100-continue\r\nContent-Length: 3\r\n", "")),
     "100 400 close", 1, true},
    {"in odd case",
     WIRE(POST("expect: 100-Continue\r\nContent-Length: 3\r\n", "abc")),
     "100? 200 keep", 1, false},
    {"of a chunked body",
     WIRE(POST("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n",
               "3\r\nabc\r\n0\r\n\r\n")),
     "100? 200 keep", 1, false},
    {"without a body", WIRE(ASKED("Expect: 100-continue\r\n")), "200 keep", 1,
     false},
    {"of an unknown path",
     WIRE("POST /nope HTTP/1.1\r\n" H "Expect: 100-continue\r\n"
          "Content-Length: 10\r\n\r\n"),
     "404 close", 0, false},
    {"of a path with other methods",
     WIRE("DELETE /hello HTTP/1.1\r\n" H "Expect: 100-continue\r\n"
          "Content-Length: 10\r\n\r\n"),
     "405 close", 0, false},
    {"of a body too large",
     WIRE(POST("Expect: 100-continue\r\nContent-Length: 9999999\r\n", "")),
     "413 close", 0, false},
    {"with blanks behind it",
     WIRE(POST("Expect: 100-continue \r\nContent-Length: 3\r\n", "abc")),
     "100? 200 keep", 1, false},
    {"unknown", WIRE(ASKED("Expect: tea\r\n") GET("/hello")), "417 200 keep", 1,
     false},
    {"unknown, with a body",
     WIRE(POST("Expect: tea\r\nContent-Length: 3\r\n", "abc") GET("/hello")),
     "417 close", 0, false},
    {"unknown beside the known",
     WIRE(ASKED("Expect: 100-continue, tea\r\n") GET("/hello")), "417 200 keep",
     1, false},
    {"unknown in 1.0", WIRE("GET /hello HTTP/1.0\r\nExpect: tea\r\n\r\n"),
     "200 close", 1, false},
    {"known in 1.0",
     WIRE("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\n"
          "Content-Length: 3\r\n\r\nabc"),
     "200 close", 1, false},
};

#define UPGRADE "Connection: upgrade\r\nUpgrade: "

static const wire_row upgrades[] = {
    {"to what nobody serves", WIRE(ASKED(UPGRADE "websocket\r\n") GET("/")),
     "200 200 keep", 2, false},
    {"to HTTP/2",
     WIRE(ASKED("Connection: Upgrade, HTTP2-Settings\r\n"
                "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n") GET("/")),
     "200 200 keep", 2, false},
    {"with a body",
     WIRE(POST(UPGRADE "websocket\r\nContent-Length: 3\r\n", "abc") GET("/")),
     "200 200 keep", 2, false},
    {"with chunks",
     WIRE(POST(UPGRADE "websocket\r\nTransfer-Encoding: chunked\r\n",
               "3\r\nabc\r\n0\r\n\r\n") GET("/")),
     "200 200 keep", 2, false},
    {"without Connection", WIRE(ASKED("Upgrade: websocket\r\n") GET("/")),
     "200 200 keep", 2, false},
    {"in 1.0", WIRE("GET /hello HTTP/1.0\r\n" UPGRADE "websocket\r\n\r\n"),
     "200 close", 1, false},
};

static const wire_row half_closed[] = {
    {"behind a request", WIRE(GET("/hello")), "200 close", 1, true},
    {"behind two", WIRE(GET("/hello") GET("/")), "200 200 close", 2, true},
    {"behind a body", WIRE(POST("Content-Length: 3\r\n", "abc")), "200 close",
     1, true},
    {"behind an error", WIRE("EVIL\r\n\r\n"), "400 close", 0, true},
    {"in a head", WIRE("GET /hello HTTP/1.1\r\nHos"), "close", 0, true},
    {"in the head behind a request", WIRE(GET("/hello") "GET /hello HT"),
     "200 wait", 1, true},
    {"in a body", WIRE(POST("Content-Length: 3\r\n", "ab")), "400 close", 1,
     true},
    {"at once", WIRE(""), "close", 0, true},
};

static const wire_row blank[] = {
    {"none", WIRE(""), "wait", 0, false},
    {"one line", WIRE("\r\n" GET("/hello")), "200 keep", 1, false},
    {"two lines", WIRE("\r\n\r\n" GET("/hello")), "200 keep", 1, false},
    {"three lines", WIRE("\r\n\r\n\r\n" GET("/hello")), "400 close", 0, false},
    {"two between two", WIRE("\r\n\r\n" GET("/hello") "\r\n\r\n" GET("/hello")),
     "200 200 keep", 2, false},
    {"three between two", WIRE(GET("/hello") "\r\n\r\n\r\n" GET("/hello")),
     "200 400 close", 1, false},
    {"a line feed", WIRE("\n" GET("/hello")), "400 close", 0, false},
    {"two line feeds", WIRE("\n\n" GET("/hello")), "400 close", 0, false},
    {"a carriage return", WIRE("\r" GET("/hello")), "400 close", 0, false},
    {"a blank", WIRE(" \r\n" GET("/hello")), "400 close", 0, false},
    {"and silence", WIRE("\r\n"), "wait", 0, false},
    {"half of one, and silence", WIRE("\r"), "wait", 0, false},
    {"behind a body",
     WIRE(POST("Content-Length: 3\r\n", "abc") "\r\n" GET("/hello")),
     "200 200 keep", 2, false},
};

#define TABLE_TEST(name, rows)                                                 \
  static void name(void **state) {                                             \
    (void)state;                                                               \
    WIRE_TABLE(rows);                                                          \
  }

TABLE_TEST(pipelined_requests, pipelines)
TABLE_TEST(close_and_keep_alive, closing)
TABLE_TEST(answers_without_a_body, heads)
TABLE_TEST(expectations_are_met_or_refused, expectations)
TABLE_TEST(upgrades_that_nobody_takes, upgrades)
TABLE_TEST(clients_that_have_said_all, half_closed)
TABLE_TEST(empty_lines, blank)

static int open_more(void **state) {
  int failed = wire_open(state);
  add_route(HTTP_POST, "/later-post", ROUTE_ECHO);
  return failed;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_more, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(pipelined_requests),
      TEST(close_and_keep_alive),
      TEST(answers_without_a_body),
      TEST(expectations_are_met_or_refused),
      TEST(upgrades_that_nobody_takes),
      TEST(clients_that_have_said_all),
      TEST(empty_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
