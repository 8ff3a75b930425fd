/* Bytes that are not UTF-8 never reach the log. */
#include "log_helpers.h"

#include "log_text.h"

#define R "\xEF\xBF\xBD"

static void each_invalid_byte_is_replaced(void **state) {
  (void)state;
  static const struct {
    const char *given, *written;
  } cases[] = {
      {"\x80", R},       /* a continuation alone */
      {"\xC3", R},       /* cut off */
      {"\xC3(", R "("},  /* cut off by another */
      {"\xC0\xAF", R R}, /* overlong, two bytes */
      {"\xC1\xBF", R R},
      {"\xE0\x80\xAF", R R R}, /* overlong, three */
      {"\xE0\x9F\xBF", R R R},
      {"\xE0\xA0\x80", "\xE0\xA0\x80"}, /* the least of three */
      {"\xF0\x80\x80\xAF", R R R R},    /* overlong, four */
      {"\xF0\x8F\xBF\xBF", R R R R},
      {"\xF0\x90\x80\x80", "\xF0\x90\x80\x80"},
      {"\xED\xA0\x80", R R R},                  /* the first surrogate */
      {"\xED\xBF\xBF", R R R},                  /* the last one */
      {"\xED\x9F\xBF", "\xED\x9F\xBF"},         /* just before them */
      {"\xEE\x80\x80", "\xEE\x80\x80"},         /* just after */
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"}, /* U+10FFFF */
      {"\xF4\x90\x80\x80", R R R R},            /* one more */
      {"\xF5\x80\x80\x80", R R R R},
      {"\xFE\xFF", R R},
      {"ok\xE2\x82\xAC\xE2\x82", "ok\xE2\x82\xAC" R R},
      {R, R}, /* the replacement itself */
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tide_field field = TIDE_F_STR("k", cases[i].given);
    char expected[64];

    snprintf(expected, sizeof expected, " k=%s", cases[i].written);
    assert_non_null(
        strstr(formatted(TIDE_LOG_LOGFMT, "m", &field, 1), expected));
    snprintf(expected, sizeof expected, "\"k\":\"%s\"}", cases[i].written);
    assert_non_null(strstr(formatted(TIDE_LOG_JSON, "m", &field, 1), expected));
  }
}

/* The same numbers on every machine and run. */
static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static void assert_clean(const char *line) {
  size_t length = strlen(line);

  for (size_t i = 0; i < length;) {
    size_t n = tide__utf8_length(line + i, length - i);
    assert_int_not_equal(n, 0);
    assert_true((unsigned char)line[i] >= ' ');
    i += n;
  }
}

static void random_bytes_give_one_clean_line(void **state) {
  (void)state;
  uint32_t seed = 20260131;
  char bytes[400];

  for (int round = 0; round < 20000; round++) {
    size_t length = next_random(&seed) % sizeof bytes;
    /* Every other round is rich in the bytes that begin characters. */
    unsigned low = round % 2 == 0 ? 0 : 0x78;
    for (size_t i = 0; i < length; i++)
      bytes[i] = (char)(low + next_random(&seed) % (256 - low));
    char *exact = malloc(length + 1); /* ASan guards its end */
    assert_non_null(exact);
    memcpy(exact, bytes, length);
    tide_field field = {
        .key = "k", .type = TIDE_FIELD_STRING, .value.string = {exact, length}};
    assert_clean(formatted(TIDE_LOG_LOGFMT, "m", &field, 1));
    assert_clean(formatted(TIDE_LOG_JSON, "m", &field, 1));
    free(exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_invalid_byte_is_replaced),
      cmocka_unit_test(random_bytes_give_one_clean_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
