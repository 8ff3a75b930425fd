/* Request lines and header fields, byte by byte: what is served, what is
 * refused, and with which status. */
#include "http_wire.h"

#define H "Host: a\r\n"
#define GET_1 "GET / HTTP/1.1\r\n"
#define LINE(line) WIRE(line "\r\n" H "\r\n")
#define FIELD(field) WIRE(GET_1 H field "\r\n\r\n")

static const wire_row lines[] = {
    {"plain", LINE("GET / HTTP/1.1"), "200 keep", 1, false},
    {"query", LINE("GET /?a=b&c=%20 HTTP/1.1"), "200 keep", 1, false},
    {"1.0", WIRE("GET / HTTP/1.0\r\n\r\n"), "200 close", 1, false},
    {"HTTP/0.9", WIRE("GET /\r\n"), "505 close", 0, false},
    {"HTTP/0.9 with more", WIRE("GET /\r\n\r\n"), "505 close", 0, false},
    {"no version", WIRE("GET / \r\n\r\n"), "400 close", 0, false},
    {"HTTP/2.0", LINE("GET / HTTP/2.0"), "505 close", 0, false},
    {"HTTP/1.2", LINE("GET / HTTP/1.2"), "505 close", 0, false},
    {"HTTP/9.9", LINE("GET / HTTP/9.9"), "505 close", 0, false},
    {"HTTP/0.9 written out", LINE("GET / HTTP/0.9"), "505 close", 0, false},
    {"version too long", LINE("GET / HTTP/4294967295.255"), "400 close", 0,
     false},
    {"version without dot", LINE("GET / HTTP/11"), "400 close", 0, false},
    {"version in lower case", LINE("GET / http/1.1"), "400 close", 0, false},
    {"version with words", LINE("GET / HTTP/x.y"), "400 close", 0, false},
    {"version with a blank", LINE("GET / HTTP/1.1 "), "400 close", 0, false},
    {"RTSP", LINE("DESCRIBE / RTSP/1.0"), "505 close", 0, false},
    {"RTSP with GET", LINE("GET / RTSP/1.0"), "505 close", 0, false},
    {"ICE", LINE("SOURCE / ICE/1.0"), "505 close", 0, false},
    {"preface of HTTP/2", WIRE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "505 close",
     0, false},
    {"unknown method", LINE("EVIL / HTTP/1.1"), "501 close", 0, false},
    {"method in lower case", LINE("get / HTTP/1.1"), "501 close", 0, false},
    {"method that begins like one", LINE("GETX / HTTP/1.1"), "501 close", 0,
     false},
    {"bad byte in a method", LINE("G@T / HTTP/1.1"), "400 close", 0, false},
    {"method in quotes", LINE("\"GET\" / HTTP/1.1"), "400 close", 0, false},
    {"CONNECT", LINE("CONNECT a:80 HTTP/1.1"), "501 close", 0, false},
    {"CONNECT with a path", LINE("CONNECT / HTTP/1.1"), "501 close", 0, false},
    {"TRACE", LINE("TRACE / HTTP/1.1"), "405 keep", 0, false},
    {"TLS hello", WIRE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
     "400 close", 0, false},
    {"SSH hello", WIRE("SSH-2.0-OpenSSH_9.6\r\n"), "400 close", 0, false},
    {"two spaces before the target", LINE("GET  / HTTP/1.1"), "400 close", 0,
     false},
    {"two spaces behind the target", LINE("GET /  HTTP/1.1"), "400 close", 0,
     false},
    {"tab before the target", LINE("GET\t/ HTTP/1.1"), "400 close", 0, false},
    {"space before the method", LINE(" GET / HTTP/1.1"), "400 close", 0, false},
    {"words before the method", LINE("EVIL lineGET / HTTP/1.1"), "501 close", 0,
     false},
    {"path of another case", LINE("GET /HELLO HTTP/1.1"), "404 keep", 0, false},
    {"unknown path", LINE("GET /EVIL HTTP/1.1"), "404 keep", 0, false},
    {"unknown method of a path", LINE("DELETE /hello HTTP/1.1"), "405 keep", 0,
     false},
    {"star", LINE("GET * HTTP/1.1"), "400 close", 0, false},
    {"star for OPTIONS", LINE("OPTIONS * HTTP/1.1"), "204 keep", 0, false},
    {"star and more", LINE("OPTIONS *x HTTP/1.1"), "400 close", 0, false},
    {"fragment", LINE("GET /hello#EVIL HTTP/1.1"), "400 close", 0, false},
    {"absolute", LINE("GET http://a/hello HTTP/1.1"), "200 keep", 1, false},
    {"absolute in upper case", LINE("GET HTTP://A/hello HTTP/1.1"), "200 keep",
     1, false},
    {"absolute without a path", LINE("GET http://a HTTP/1.1"), "200 keep", 1,
     false},
    {"absolute with the port of the scheme",
     LINE("GET http://a:80/hello HTTP/1.1"), "200 keep", 1, false},
    {"absolute with another Host", LINE("GET http://b/hello HTTP/1.1"),
     "400 close", 0, false},
    {"absolute with another port", LINE("GET http://a:81/hello HTTP/1.1"),
     "400 close", 0, false},
    {"absolute with a user", LINE("GET http://u@a/hello HTTP/1.1"), "400 close",
     0, false},
    {"absolute without a host", LINE("GET http:///hello HTTP/1.1"), "400 close",
     0, false},
    {"absolute of another scheme", LINE("GET ftp://a/hello HTTP/1.1"),
     "400 close", 0, false},
    {"no slash", LINE("GET hello HTTP/1.1"), "400 close", 0, false},
    {"high byte in the target", LINE("GET /\x80 HTTP/1.1"), "400 close", 0,
     false},
    {"control in the target", LINE("GET /\x01 HTTP/1.1"), "400 close", 0,
     false},
    {"DEL in the target", LINE("GET /\x7f HTTP/1.1"), "400 close", 0, false},
    {"NUL in the target", LINE("GET /\0 HTTP/1.1"), "400 close", 0, false},
    {"NUL at once", WIRE("\0\0\0\0"), "400 close", 0, false},
    {"bare LF", WIRE("GET / HTTP/1.1\nHost: a\n\n"), "400 close", 0, false},
    {"bare CR", WIRE("GET / HTTP/1.1\rHost: a\r\r"), "400 close", 0, false},
    {"LF CR", WIRE("GET / HTTP/1.1\n\rHost: a\n\r\n\r"), "400 close", 0, false},
};

static const wire_row hosts[] = {
    {"no Host", WIRE(GET_1 "\r\n"), "400 close", 0, false},
    {"no Host in 1.0, kept",
     WIRE("GET / HTTP/1.0\r\nConnection: keep-alive"
          "\r\n\r\n"),
     "200 keep", 1, false},
    {"two Hosts", WIRE(GET_1 H H "\r\n"), "400 close", 0, false},
    {"two Hosts that differ", WIRE(GET_1 H "Host: EVIL\r\n\r\n"), "400 close",
     0, false},
    {"two Hosts in 1.0", WIRE("GET / HTTP/1.0\r\n" H H "\r\n"), "400 close", 0,
     false},
    {"empty Host", WIRE(GET_1 "Host: \r\n\r\n"), "200 keep", 1, false},
    {"empty Host, no blank", WIRE(GET_1 "Host:\r\n\r\n"), "200 keep", 1, false},
    {"Host in odd case", WIRE(GET_1 "hOSt:\ta\r\n\r\n"), "200 keep", 1, false},
    {"Host with blanks behind it", WIRE(GET_1 "Host: a \t \r\n\r\n"),
     "200 keep", 1, false},
    {"Host with a port", WIRE(GET_1 "Host: a:80\r\n\r\n"), "200 keep", 1,
     false},
    {"Host as IPv6", WIRE(GET_1 "Host: [::1]:80\r\n\r\n"), "200 keep", 1,
     false},
    {"Host with an empty port", WIRE(GET_1 "Host: a:\r\n\r\n"), "200 keep", 1,
     false},
    {"Host with an escape", WIRE(GET_1 "Host: a%20b\r\n\r\n"), "200 keep", 1,
     false},
    {"Host with half an escape", WIRE(GET_1 "Host: a%2\r\n\r\n"), "400 close",
     0, false},
    {"Host with two ports", WIRE(GET_1 "Host: a:80:81\r\n\r\n"), "400 close", 0,
     false},
    {"Host with a named port", WIRE(GET_1 "Host: a:http\r\n\r\n"), "400 close",
     0, false},
    {"Host with a negative port", WIRE(GET_1 "Host: a:-1\r\n\r\n"), "400 close",
     0, false},
    {"Host with the highest port", WIRE(GET_1 "Host: a:65535\r\n\r\n"),
     "200 keep", 1, false},
    {"Host with a higher port", WIRE(GET_1 "Host: a:65536\r\n\r\n"),
     "400 close", 0, false},
    {"Host with an endless port",
     WIRE(GET_1 "Host: a:00000000000000000000000000000080\r\n\r\n"), "200 keep",
     1, false},
    {"Host that is a port", WIRE(GET_1 "Host: :80\r\n\r\n"), "400 close", 0,
     false},
    {"Host as half an IPv6", WIRE(GET_1 "Host: [::1\r\n\r\n"), "400 close", 0,
     false},
    {"Host as IPv6 and more", WIRE(GET_1 "Host: [::1]a\r\n\r\n"), "400 close",
     0, false},
    {"Host as an empty IPv6", WIRE(GET_1 "Host: []\r\n\r\n"), "400 close", 0,
     false},
    {"Host as IPv6 without brackets", WIRE(GET_1 "Host: ::1\r\n\r\n"),
     "400 close", 0, false},
    {"Host with brackets behind", WIRE(GET_1 "Host: a[1]\r\n\r\n"), "400 close",
     0, false},
    {"absolute with a port alone", LINE("GET http://:80/ HTTP/1.1"),
     "400 close", 0, false},
    {"Host with a user", WIRE(GET_1 "Host: EVIL@a\r\n\r\n"), "400 close", 0,
     false},
    {"Host with a path", WIRE(GET_1 "Host: a/EVIL\r\n\r\n"), "400 close", 0,
     false},
    {"Host with a query", WIRE(GET_1 "Host: a?b\r\n\r\n"), "400 close", 0,
     false},
    {"Host with a blank", WIRE(GET_1 "Host: a b\r\n\r\n"), "400 close", 0,
     false},
    {"Host with a high byte", WIRE(GET_1 "Host: \xc3\xa9\r\n\r\n"), "400 close",
     0, false},
    {"Hosts as a list", WIRE(GET_1 "Host: a, b\r\n\r\n"), "400 close", 0,
     false},
};

static const wire_row fields[] = {
    {"empty value", FIELD("X:"), "200 keep", 1, false},
    {"blank value", FIELD("X:   \t"), "200 keep", 1, false},
    {"blanks around", FIELD("X: \t a  b \t"), "200 keep", 1, false},
    {"high bytes in a value", FIELD("X: \xc3\xa9\xff"), "200 keep", 1, false},
    {"every sign a name may have", FIELD("!#$%&'*+-.^_`|~0aZ: x"), "200 keep",
     1, false},
    {"the same field often", FIELD("X: a\r\nX: b\r\nX: c"), "200 keep", 1,
     false},
    {"folded", FIELD("X: a\r\n EVIL"), "400 close", 0, false},
    {"folded with a tab", FIELD("X: a\r\n\tEVIL"), "400 close", 0, false},
    {"folded at once", FIELD("X:\r\n EVIL"), "400 close", 0, false},
    {"folded to nothing", FIELD("X: a\r\n "), "400 close", 0, false},
    {"first field folded", WIRE(GET_1 " X: a\r\n" H "\r\n"), "400 close", 0,
     false},
    {"blank before the colon", FIELD("X : a"), "400 close", 0, false},
    {"tab before the colon", FIELD("X\t: a"), "400 close", 0, false},
    {"blank in a name", FIELD("X Y: a"), "400 close", 0, false},
    {"no name", FIELD(": a"), "400 close", 0, false},
    {"no colon", FIELD("EVIL"), "400 close", 0, false},
    {"brackets in a name", FIELD("X[]: a"), "400 close", 0, false},
    {"high byte in a name", FIELD("X\xe9: a"), "400 close", 0, false},
    {"NUL in a name", FIELD("X\0Y: a"), "400 close", 0, false},
    {"NUL in a value", FIELD("X: a\0b"), "400 close", 0, false},
    {"control in a value", FIELD("X: a\x07"), "400 close", 0, false},
    {"DEL in a value", FIELD("X: a\x7f"), "400 close", 0, false},
    {"bare CR in a value", FIELD("X: :/\rEVIL: x"), "400 close", 0, false},
    {"bare LF in a value", FIELD("X: a\nEVIL: x"), "400 close", 0, false},
    {"bare LF behind a value", WIRE(GET_1 H "X: a\n\r\n"), "400 close", 0,
     false},
    {"CR CR LF", WIRE(GET_1 H "\r\r\n"), "400 close", 0, false},
    {"CR and a byte instead of the end", WIRE(GET_1 H "\r\n\rX"),
     "200 400 "
     "close",
     1, false},
    {"LF instead of the end", WIRE(GET_1 H "\n"), "400 close", 0, false},
};

static void request_lines(void **state) {
  (void)state;
  WIRE_TABLE(lines);
}

static void hosts_and_authorities(void **state) {
  (void)state;
  WIRE_TABLE(hosts);
}

static void header_fields(void **state) {
  (void)state;
  WIRE_TABLE(fields);
}

static void what_is_too_long(void **state) {
  int wrong = 0;
  (void)state;
  wrong += wire_long("target that fits", "GET /?", "a", 8100,
                     " HTTP/1.1\r\n" H "\r\n", "200 keep", 1);
  wrong += wire_long("target too long", "GET /", "a", 8200,
                     " HTTP/1.1\r\n" H "\r\n", "414 close", 0);
  wrong += wire_long("target that never ends", "GET /", "a", 12000, "",
                     "414 close", 0);
  wrong +=
      wire_long("method that never ends", "", "A", 9000, "", "400 close", 0);
  wrong += wire_long("field that fits", GET_1 H "X: ", "a", 8100, "\r\n\r\n",
                     "200 keep", 1);
  wrong += wire_long("value too long", GET_1 H "X: ", "a", 8200, "\r\n\r\n",
                     "431 close", 0);
  wrong += wire_long("name too long", GET_1 H, "X", 8200, ": a\r\n\r\n",
                     "431 close", 0);
  wrong += wire_long("value that never ends", GET_1 H "X: ", "a", 40000, "",
                     "431 close", 0);
  wrong += wire_long("blanks that never end", GET_1 H "X:", " ", 40000, "",
                     "431 close", 0);
  wrong += wire_long("99 more fields", GET_1 H, "X: a\r\n", 99, "\r\n",
                     "200 keep", 1);
  wrong += wire_long("100 more fields", GET_1 H, "X: a\r\n", 100, "\r\n",
                     "431 close", 0);
  wrong += wire_long("fields that never end", GET_1 H, "X: a\r\n", 3000, "",
                     "431 close", 0);
  char value[1024];
  memset(value, 'v', sizeof value);
  memcpy(value, "X: ", 3);
  memcpy(value + sizeof value - 3, "\r\n", 3);
  wrong +=
      wire_long("30 KiB of fields", GET_1 H, value, 30, "\r\n", "200 keep", 1);
  wrong +=
      wire_long("33 KiB of fields", GET_1 H, value, 33, "\r\n", "431 close", 0);
  assert_int_equal(wrong, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_open, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(request_lines),
      TEST(hosts_and_authorities),
      TEST(header_fields),
      TEST(what_is_too_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
