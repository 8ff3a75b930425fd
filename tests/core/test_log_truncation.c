/* A record longer than a line is cut, and what is left is still valid. */
#include "log_helpers.h"

#include "log_text.h"

static bool ends_with(const char *s, const char *end) {
  return strlen(s) >= strlen(end) &&
         strcmp(s + strlen(s) - strlen(end), end) == 0;
}

/* Every quote that opens closes, every escape is whole, all is UTF-8. */
static void assert_well_formed(const char *line) {
  size_t length = strlen(line);
  bool quoted = false;

  for (size_t i = 0; i < length;) {
    size_t n = tide__utf8_length(line + i, length - i);
    assert_int_not_equal(n, 0);
    if (line[i] == '"') {
      quoted = !quoted;
    } else if (quoted && line[i] == '\\') {
      n = line[i + 1] == 'u' ? 6 : 2;
      assert_true(i + n <= length);
    }
    i += n;
  }
  assert_false(quoted);
}

static void check(tide_log_format format, const char *line, bool truncated) {
  const char *mark =
      format == TIDE_LOG_JSON ? ",\"truncated\":true}" : " truncated=true";

  assert_well_formed(line);
  assert_int_equal(ends_with(line, mark), truncated);
  if (format == TIDE_LOG_JSON)
    assert_true(ends_with(line, "}"));
}

static const tide_log_format formats[] = {TIDE_LOG_LOGFMT, TIDE_LOG_JSON};

/* Each length around the limit, with characters of each width. */
static void a_long_message_is_cut_between_characters(void **state) {
  (void)state;
  static const char *const units[] = {
      "x",    "\"",  "\n", "\xC3\xBC", "\xE2\x82\xAC", "\xF0\x9F\x8C\x8A",
      "\xFF", "\x01"};
  static char message[4 * TIDE_LOG_LINE];

  for (size_t f = 0; f < 2; f++) {
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
      size_t unit = strlen(units[u]);
      for (size_t n = 0; n < sizeof message - unit; n += unit)
        memcpy(message + n, units[u], unit);
      for (size_t length = 2700; length < 16420; length++) {
        if (length > 2760 && length < 16200 && length % 677 != 0)
          continue;
        char kept = message[length];
        message[length] = '\0';
        const char *line = formatted(formats[f], message, NULL, 0);
        bool truncated = strstr(line, "truncated") != NULL;
        check(formats[f], line, truncated);
        if (truncated) /* no more than was needed */
          assert_true(strlen(line) > TIDE_LOG_LINE - 48);
        message[length] = kept;
      }
    }
  }
}

static void fields_that_do_not_fit_are_left_out(void **state) {
  (void)state;
  static char big[TIDE_LOG_LINE];
  tide_field fields[] = {
      TIDE_F_INT("first", 1),
      {.key = "text", .type = TIDE_FIELD_STRING},
      TIDE_F_INT("last", 123456789),
      TIDE_F_NUM("beyond", 0.25),
  };

  memset(big, 'a', sizeof big);
  for (size_t f = 0; f < 2; f++) {
    for (size_t length = 16000; length <= sizeof big; length++) {
      fields[1].value.string.data = big;
      fields[1].value.string.length = length;
      const char *line = formatted(formats[f], "m", fields, 4);
      bool truncated = strstr(line, "truncated") != NULL;
      check(formats[f], line, truncated);
      assert_non_null(strstr(line, "first"));
      if (!truncated)
        assert_non_null(strstr(line, "0.25"));
      if (strstr(line, "last") != NULL)
        assert_non_null(strstr(line, "123456789"));
    }
  }
}

static void a_huge_value_costs_no_more_than_a_line(void **state) {
  (void)state;
  size_t size = (size_t)64 << 20;
  char *huge = malloc(size);
  assert_non_null(huge);
  memset(huge, ' ', size);
  tide_field field = {
      .key = "k", .type = TIDE_FIELD_STRING, .value.string = {huge, size}};

  const char *line = formatted(TIDE_LOG_JSON, "m", &field, 1);
  assert_in_range(strlen(line), TIDE_LOG_LINE - 32, TIDE_LOG_LINE);
  check(TIDE_LOG_JSON, line, true);
  free(huge);
}

static void a_huge_key_is_left_out(void **state) {
  (void)state;
  static char key[2 * TIDE_LOG_LINE];
  memset(key, 'k', sizeof key - 1);
  tide_field fields[] = {TIDE_F_INT("before", 1), TIDE_F_INT(key, 2)};

  for (size_t f = 0; f < 2; f++) {
    const char *line = formatted(formats[f], "m", fields, 2);
    check(formats[f], line, true);
    assert_null(strstr(line, "kkk"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_long_message_is_cut_between_characters),
      cmocka_unit_test(fields_that_do_not_fit_are_left_out),
      cmocka_unit_test(a_huge_value_costs_no_more_than_a_line),
      cmocka_unit_test(a_huge_key_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
