/* The digest is that of FIPS 180-4, whatever the pieces it is fed in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sha256.h"

static void hex_of(const char *text, size_t length, size_t piece, char *out) {
  unsigned char bytes[TIDE_SHA256_BYTES];
  tide_sha256 sha;
  tide_sha256_init(&sha);
  for (size_t at = 0; at < length; at += piece)
    tide_sha256_add(&sha, text + at, length - at < piece ? length - at : piece);
  tide_sha256_end(&sha, bytes);
  for (int i = 0; i < TIDE_SHA256_BYTES; i++)
    sprintf(out + i * 2, "%02x", bytes[i]);
}

static void expect(const char *text, const char *wanted) {
  char hex[65];
  hex_of(text, strlen(text), 64, hex);
  assert_string_equal(hex, wanted);
}

/* The examples that NIST publishes with the standard. */
static void has_the_published_values(void **state) {
  (void)state;
  expect("",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect("abc",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void has_the_value_of_a_million(void **state) {
  static char text[1000000];
  char hex[65];
  (void)state;
  memset(text, 'a', sizeof text);
  hex_of(text, sizeof text, 4099, hex);
  assert_string_equal(
      hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Around the places where the padding needs a block of its own. */
static void pieces_do_not_matter(void **state) {
  char text[200], whole[65], pieces[65];
  (void)state;
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = (char)(i * 7);
  for (size_t length = 0; length <= sizeof text; length++) {
    hex_of(text, length, sizeof text, whole);
    for (size_t piece = 1; piece < 70; piece += 3) {
      hex_of(text, length, piece, pieces);
      assert_string_equal(whole, pieces);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_the_published_values),
      cmocka_unit_test(has_the_value_of_a_million),
      cmocka_unit_test(pieces_do_not_matter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
