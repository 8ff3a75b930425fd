/* Bodies: lengths, transfer codings, chunks and trailers, byte by byte. Where a
 * body is broken, the handler has begun or has not, depending on the cuts. */
#include "http_wire.h"

#define H "Host: a\r\n"
#define POST_1 "POST /echo HTTP/1.1\r\n" H
#define CHUNKED POST_1 "Transfer-Encoding: chunked\r\n\r\n"
#define LENGTH(value, body) WIRE(POST_1 "Content-Length:" value "\r\n\r\n" body)
#define CODING(value, body)                                                    \
  WIRE(POST_1 "Transfer-Encoding:" value "\r\n\r\n" body)
#define CHUNKS(body) WIRE(CHUNKED body)
#define NEXT "GET /hello HTTP/1.1\r\n" H "\r\n"

static const wire_row lengths[] = {
    {"three bytes", LENGTH(" 3", "abc"), "200 keep", 1, false},
    {"none", WIRE(POST_1 "\r\n"), "200 keep", 1, false},
    {"zero", LENGTH(" 0", ""), "200 keep", 1, false},
    {"many zeros", LENGTH(" 0000000000003", "abc"), "200 keep", 1, false},
    {"blanks around", LENGTH("   3 ", "abc"), "200 keep", 1, false},
    {"of a GET",
     WIRE("GET /read HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab" NEXT),
     "200 200 keep", 2, false},
    {"too few bytes", LENGTH(" 3", "ab"), "400 close", 1, true},
    {"too many bytes", LENGTH(" 3", "abcGET / HTTP/1.1\r\n" H "\r\n"),
     "200 200 keep", 2, false},
    {"negative", LENGTH(" -48", ""), "400 close", 0, false},
    {"negative and large", LENGTH(" -123456789123456789123456789", ""),
     "400 close", 0, false},
    {"with a plus", LENGTH(" +2", "ab"), "400 close", 0, false},
    {"empty", LENGTH("", ""), "400 close", 0, false},
    {"blank", LENGTH("  ", ""), "400 close", 0, false},
    {"words", LENGTH(" abc", ""), "400 close", 0, false},
    {"hexadecimal", LENGTH(" 0x2", "ab"), "400 close", 0, false},
    {"with a point", LENGTH(" 2.0", "ab"), "400 close", 0, false},
    {"two numbers", LENGTH(" 2 2", "ab"), "400 close", 0, false},
    {"a list", LENGTH(" 2, 2", "ab"), "400 close", 0, false},
    {"a comma", LENGTH(" ,2", "ab"), "400 close", 0, false},
    {"twice", LENGTH(" 2\r\nContent-Length: 2", "ab"), "400 close", 0, false},
    {"twice, and different", LENGTH(" 2\r\nContent-Length: 7", "abEVIL!"),
     "400 close", 0, false},
    {"more than 64 bits", LENGTH(" 99999999999999999999", ""), "400 close", 0,
     false},
    {"all of 64 bits", LENGTH(" 18446744073709551615", ""), "413 close", 0,
     false},
    {"over the limit", LENGTH(" 1048577", ""), "413 close", 0, false},
    {"over the limit, no 100", LENGTH(" 1048577\r\nExpect: 100-continue", ""),
     "413 close", 0, false},
    {"and a coding", LENGTH(" 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
     "400 close", 0, false},
    {"behind a coding", CODING(" chunked\r\nContent-Length: 2", "0\r\n\r\n"),
     "400 close", 0, false},
    {"and a coding in 1.0",
     WIRE("POST /echo HTTP/1.0\r\nContent-Length: 2\r\n"
          "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     "400 close", 0, false},
};

static const wire_row codings[] = {
    {"chunked", CODING(" chunked", "0\r\n\r\n"), "200 keep", 1, false},
    {"in odd case", CODING(" ChUnKeD", "0\r\n\r\n"), "200 keep", 1, false},
    {"blanks around", CODING("   chunked ", "0\r\n\r\n"), "200 keep", 1, false},
    {"of a GET",
     WIRE("GET /read HTTP/1.1\r\n" H
          "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" NEXT),
     "200 200 keep", -1, false},
    {"in 1.0",
     WIRE("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
          "0\r\n\r\n"),
     "400 close", 0, false},
    {"gzip, chunked", CODING(" gzip, chunked", "0\r\n\r\n"), "501 close", 0,
     false},
    {"gzip", CODING(" gzip", ""), "501 close", 0, false},
    {"identity", CODING(" identity", "0\r\n\r\n"), "501 close", 0, false},
    {"xchunked", CODING(" xchunked", "0\r\n\r\n"), "501 close", 0, false},
    {"chunkedx", CODING(" chunkedx", "0\r\n\r\n"), "501 close", 0, false},
    {"unknown, and what looks like a body",
     CODING(" blegh", "1d\r\n0\r\n\r\n" NEXT), "501 close", 0, false},
    {"empty", CODING("", "0\r\n\r\n"), "501 close", 0, false},
    {"in quotes", CODING(" \"chunked\"", "0\r\n\r\n"), "400 close", 0, false},
    {"chunked, gzip", CODING(" chunked, gzip", "0\r\n\r\n"), "400 close", 0,
     false},
    {"chunked, identity", CODING(" chunked, identity", "0\r\n\r\n"),
     "400 close", 0, false},
    {"chunked;q=1", CODING(" chunked;q=1", "0\r\n\r\n"), "400 close", 0, false},
    {"twice in a list", CODING(" chunked, chunked", "0\r\n\r\n"), "400 close",
     0, false},
    {"in two fields",
     CODING(" chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), "400 close",
     0, false},
    {"in two fields, gzip first",
     CODING(" gzip\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), "400 close", 0,
     false},
    {"in two fields, identity first",
     CODING(" identity\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
     "400 close", 0, false},
    {"folded", CODING("\r\n chunked", "0\r\n\r\n"), "400 close", 0, false},
    {"with a vertical tab", CODING(" \vchunked", "0\r\n\r\n"), "400 close", 0,
     false},
};

static const wire_row chunks[] = {
    {"two", CHUNKS("3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"), "200 keep", 1, false},
    {"size in capitals", CHUNKS("A\r\n0123456789\r\n0\r\n\r\n"), "200 keep", 1,
     false},
    {"zeros before the size", CHUNKS("0003\r\nabc\r\n000\r\n\r\n"), "200 keep",
     1, false},
    {"extension", CHUNKS("3;a=\"b c\"\r\nabc\r\n0;e\r\n\r\n"), "200 keep", 1,
     false},
    {"trailers", CHUNKS("3\r\nabc\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n"),
     "200 keep", 1, false},
    {"and the next request", CHUNKS("3\r\nabc\r\n0\r\n\r\n" NEXT),
     "200 200 keep", 2, false},
    {"cut off in a chunk", CHUNKS("3\r\nab"), "400 close", 1, true},
    {"cut off in a size", CHUNKS("3"), "400 close", 1, true},
    {"cut off before the last", CHUNKS("3\r\nabc\r\n"), "400 close", 1, true},
    {"cut off in the last", CHUNKS("3\r\nabc\r\n0\r\n"), "400 close", 1, true},
    {"bare LF behind a size", CHUNKS("3\nabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"bare LF behind a chunk", CHUNKS("3\r\nabc\n0\r\n\r\n"), "400 close", -1,
     false},
    {"bare CR behind a size", CHUNKS("3\rabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"bare LF as the end", CHUNKS("0\r\n\n"), "400 close", -1, false},
    {"bare LF behind the last", CHUNKS("0\n\r\n"), "400 close", -1, false},
    {"0x", CHUNKS("0x3\r\nabc\r\n0\r\n\r\n"), "400 close", -1, false},
    {"underscore", CHUNKS("0_2e\r\nabc\r\n0\r\n\r\n"), "400 close", -1, false},
    {"minus", CHUNKS("-3\r\nabc\r\n0\r\n\r\n"), "400 close", -1, false},
    {"plus", CHUNKS("+3\r\nabc\r\n0\r\n\r\n"), "400 close", -1, false},
    {"no size", CHUNKS("\r\nabc\r\n0\r\n\r\n"), "400 close", -1, false},
    {"extension alone", CHUNKS(";a=b\r\nabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"more than 64 bits", CHUNKS("fffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
     "400 close", -1, false},
    {"all of 64 bits", CHUNKS("ffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
     "413 close", -1, false},
    {"larger than the limit", CHUNKS("100001\r\nab"), "413 close", -1, false},
    {"blank before a size", CHUNKS(" 3\r\nabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"blank behind a size", CHUNKS("3 \r\nabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"blank before an extension", CHUNKS("3 ;a\r\nabc\r\n0\r\n\r\n"),
     "400 close", -1, false},
    {"bare semicolon", CHUNKS("3;\r\nabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"LF in an extension", CHUNKS("3;a\nb\r\nabc\r\n0\r\n\r\n"), "400 close",
     -1, false},
    {"CR in an extension", CHUNKS("3;a\rb\r\nabc\r\n0\r\n\r\n"), "400 close",
     -1, false},
    {"NUL in an extension", CHUNKS("3;a\0\r\nabc\r\n0\r\n\r\n"), "400 close",
     -1, false},
    {"more data than said", CHUNKS("3\r\nabcd\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"less data than said", CHUNKS("5\r\nabc\r\n0\r\n\r\n"), "400 close", -1,
     false},
    {"no end of data", CHUNKS("3\r\nabc0\r\n\r\n"), "400 close", -1, false},
};

#define TRAILER(field) CHUNKS("3\r\nabc\r\n0\r\n" field "\r\n\r\n")

static const wire_row trailers[] = {
    {"Host", TRAILER("Host: b"), "400 close", -1, false},
    {"Content-Length", TRAILER("Content-Length: 3"), "400 close", -1, false},
    {"Transfer-Encoding", TRAILER("Transfer-Encoding: chunked"), "400 close",
     -1, false},
    {"Authorization", TRAILER("Authorization: x"), "400 close", -1, false},
    {"in odd case", TRAILER("aUTHORIZATION: x"), "400 close", -1, false},
    {"Connection", TRAILER("Connection: close"), "400 close", -1, false},
    {"Content-Type", TRAILER("Content-Type: x"), "400 close", -1, false},
    {"Cookie", TRAILER("Cookie: x"), "400 close", -1, false},
    {"Proxy-Authorization", TRAILER("Proxy-Authorization: x"), "400 close", -1,
     false},
    {"Forwarded", TRAILER("Forwarded: for=b"), "400 close", -1, false},
    {"X-Forwarded-For", TRAILER("X-Forwarded-For: b"), "400 close", -1, false},
    {"any other", TRAILER("X-Sum: b"), "200 keep", 1, false},
    {"empty value", TRAILER("X-Sum:"), "200 keep", 1, false},
    {"no name", TRAILER(": x"), "400 close", -1, false},
    {"no colon", TRAILER("EVIL"), "400 close", -1, false},
    {"blank before the colon", TRAILER("X : a"), "400 close", -1, false},
    {"folded", TRAILER("X: a\r\n b"), "400 close", -1, false},
    {"folded at once", TRAILER("X:\r\n b"), "400 close", -1, false},
    {"folded with a tab", TRAILER("X: a\r\n\tb"), "400 close", -1, false},
    {"bare LF", TRAILER("X: a\nY: b"), "400 close", -1, false},
    {"bare LF behind it", CHUNKS("0\r\nX: a\n\r\n"), "400 close", -1, false},
    {"bare LF as the end", CHUNKS("0\r\nX: a\r\n\n"), "400 close", -1, false},
    {"bare CR", TRAILER("X: a\rY: b"), "400 close", -1, false},
    {"NUL", TRAILER("X: a\0b"), "400 close", -1, false},
};

static void lengths_are_single_whole_numbers(void **state) {
  (void)state;
  WIRE_TABLE(lengths);
}

static void chunked_is_the_one_coding(void **state) {
  (void)state;
  WIRE_TABLE(codings);
}

static void chunks_are_exact(void **state) {
  (void)state;
  WIRE_TABLE(chunks);
}

static void trailers_change_nothing(void **state) {
  (void)state;
  WIRE_TABLE(trailers);
}

static void framing_is_bounded(void **state) {
  int wrong = 0;
  (void)state;
  wrong += wire_long("extension that fits", CHUNKED "2;", "e", 4000,
                     "\r\nab\r\n0\r\n\r\n", "200 keep", 1);
  wrong += wire_long("extension too long", CHUNKED "2;", "e", 4200,
                     "\r\nab\r\n0\r\n\r\n", "400 close", -1);
  wrong += wire_long("extension that never ends", CHUNKED "2;", "e", 60000, "",
                     "400 close", -1);
  wrong += wire_long("many extensions", CHUNKED, "1;ee\r\nx\r\n", 2200,
                     "0\r\n\r\n", "400 close", -1);
  wrong += wire_long("size that never ends", CHUNKED, "0", 20000, "",
                     "400 close", -1);
  wrong += wire_long("tiny chunks", CHUNKED, "1\r\nx\r\n", 1000, "0\r\n\r\n",
                     "200 keep", 1);
  wrong += wire_long("too many tiny chunks", CHUNKED, "1\r\nx\r\n", 3000,
                     "8000\r\n", "400 close", -1);
  wrong += wire_long("trailer too long", CHUNKED "0\r\nX: ", "e", 4200,
                     "\r\n\r\n", "431 close", -1);
  wrong += wire_long("16 trailers", CHUNKED "0\r\n", "X: e\r\n", 16, "\r\n",
                     "200 keep", 1);
  wrong += wire_long("17 trailers", CHUNKED "0\r\n", "X: e\r\n", 17, "\r\n",
                     "431 close", -1);
  assert_int_equal(wrong, 0);
}

/* What is refused for its size must not depend on how it is announced. */
static void bodies_are_bounded(void **state) {
  int wrong = 0;
  (void)state;
  tide_listener_configure(f.listener)->limits.body = 4096;
  wrong += wire_long("length that fits", POST_1 "Content-Length: 4096\r\n\r\n",
                     "b", 4096, "", "200 keep", 1);
  wrong += wire_long("length too large", POST_1 "Content-Length: 4097\r\n\r\n",
                     "b", 4097, "", "413 close", 0);
  wrong += wire_long("chunk that fits", CHUNKED "1000\r\n", "b", 4096,
                     "\r\n0\r\n\r\n", "200 keep", 1);
  wrong += wire_long("chunk too large", CHUNKED "1001\r\n", "b", 4097,
                     "\r\n0\r\n\r\n", "413 close", -1);
  wrong +=
      wire_long("chunks that are too much", CHUNKED,
                "80\r\n"
                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
                "abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123"
                "456789abcdef\r\n",
                33, "0\r\n\r\n", "413 close", -1);
  assert_int_equal(wrong, 0);
}

static void a_route_has_a_limit_of_its_own(void **state) {
  char error[256];
  int wrong = 0;
  (void)state;
  tide_route *route = tide_router_add(tide_listener_router(f.listener),
                                      HTTP_POST, "/large", error, sizeof error);
  assert_non_null(route);
  route->id = ROUTE_ECHO;
  route->body_limit = 8192;
  tide_listener_configure(f.listener)->limits.body = 64;
  wrong += wire_long("more than others",
                     "POST /large HTTP/1.1\r\n" H "Content-Length: 8192\r\n"
                     "\r\n",
                     "b", 8192, "", "200 keep", 1);
  wrong += wire_long("too much",
                     "POST /large HTTP/1.1\r\n" H "Content-Length: 8193\r\n"
                     "\r\n",
                     "b", 8193, "", "413 close", 0);
  wrong += wire_long("too much in a chunk",
                     "POST /large HTTP/1.1\r\n" H
                     "Transfer-Encoding: chunked\r\n\r\n2001\r\n",
                     "b", 8193, "\r\n0\r\n\r\n", "413 close", -1);
  wrong += wire_long("the others", POST_1 "Content-Length: 65\r\n\r\n", "b", 65,
                     "", "413 close", 0);
  assert_int_equal(wrong, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_open, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(lengths_are_single_whole_numbers),
      TEST(chunked_is_the_one_coding),
      TEST(chunks_are_exact),
      TEST(trailers_change_nothing),
      TEST(framing_is_bounded),
      TEST(bodies_are_bounded),
      TEST(a_route_has_a_limit_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
