/* What a record looks like as a line. */
#include "log_helpers.h"

#include <locale.h>
#include <math.h>

#define LOGFMT_HEAD "time=2026-01-31T09:00:00.123Z level=info component=app "
#define JSON_HEAD                                                              \
  "{\"time\":\"2026-01-31T09:00:00.123Z\",\"level\":\"info\","                 \
  "\"component\":\"app\","

static const char *value_of(tide_log_format format, tide_field field) {
  const char *line = formatted(format, "m", &field, 1);
  static char value[TIDE_LOG_LINE];

  const char *found = strstr(line, format == TIDE_LOG_JSON ? "\"k\":" : " k=");
  assert_non_null(found);
  snprintf(value, sizeof value, "%s",
           found + (format == TIDE_LOG_JSON ? 4 : 3));
  if (format == TIDE_LOG_JSON) {
    assert_int_equal(value[strlen(value) - 1], '}');
    value[strlen(value) - 1] = '\0';
  }
  return value;
}

static tide_field text(const char *s, size_t length) {
  return (tide_field){
      .key = "k", .type = TIDE_FIELD_STRING, .value.string = {s, length}};
}

static void fields_follow_time_level_component_and_message(void **state) {
  (void)state;
  tide_field fields[] = {TIDE_F_STR("phase", "db"), TIDE_F_INT("attempts", 3)};

  assert_string_equal(formatted(TIDE_LOG_LOGFMT, "up", fields, 2),
                      LOGFMT_HEAD "msg=up phase=db attempts=3");
  assert_string_equal(formatted(TIDE_LOG_JSON, "up", fields, 2), JSON_HEAD
                      "\"msg\":\"up\",\"phase\":\"db\",\"attempts\":3}");
}

static void dates_are_right(void **state) {
  (void)state;
  static const struct {
    time_t at;
    const char *date;
  } cases[] = {
      {0, "1970-01-01T00:00:00.000Z"},
      {-5, "1970-01-01T00:00:00.000Z"},
      {951782399, "2000-02-28T23:59:59.000Z"},
      {951782400, "2000-02-29T00:00:00.000Z"},
      {951868800, "2000-03-01T00:00:00.000Z"},
      {1709164800, "2024-02-29T00:00:00.000Z"},
      {1798761599, "2026-12-31T23:59:59.000Z"},
      {1798761600, "2027-01-01T00:00:00.000Z"},
      {4107542400, "2100-03-01T00:00:00.000Z"},
      {253402300800, "9999-12-31T23:59:59.000Z"},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[TIDE_LOG_LINE];
    tide_record record = {.time.tv_sec = cases[i].at};
    tide__log_format(line, TIDE_LOG_LOGFMT, &record);
    assert_memory_equal(line + 5, cases[i].date, 24);
  }
}

static void logfmt_quotes_what_would_be_misread(void **state) {
  (void)state;
  static const struct {
    const char *value;
    size_t length;
    const char *written;
  } cases[] = {
      {"plain", 5, "plain"},
      {"", 0, "\"\""},
      {NULL, 0, "\"\""},
      {"a b", 3, "\"a b\""},
      {"a=b", 3, "\"a=b\""},
      {"say \"x\"", 7, "\"say \\\"x\\\"\""},
      {"back\\slash", 10, "back\\slash"},
      {"back\\ slash", 11, "\"back\\\\ slash\""},
      {"a\nb", 3, "\"a\\nb\""},
      {"\r\t\b\f", 4, "\"\\r\\t\\b\\f\""},
      {"nul\0in", 6, "\"nul\\u0000in\""},
      {"\x1b[31m", 5, "\"\\u001b[31m\""},
      {"\x7f", 1, "\"\\u007f\""},
      {"\xC2\x85", 2, "\"\\u0085\""},
      {"\xE2\x80\xA8", 3, "\"\\u2028\""},
      {"\xE2\x80\xA9", 3, "\"\\u2029\""},
      {"gr\xC3\xBC\xC3\x9F", 6, "gr\xC3\xBC\xC3\x9F"},
      {"/path/to.x,y:z", 14, "/path/to.x,y:z"},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(
        value_of(TIDE_LOG_LOGFMT, text(cases[i].value, cases[i].length)),
        cases[i].written);
}

static void json_strings_are_escaped(void **state) {
  (void)state;

  assert_string_equal(value_of(TIDE_LOG_JSON, text("", 0)), "\"\"");
  assert_string_equal(value_of(TIDE_LOG_JSON, text("a=b c/d", 7)),
                      "\"a=b c/d\"");
  assert_string_equal(value_of(TIDE_LOG_JSON, text("\"\\\n\0\x01\x7f", 6)),
                      "\"\\\"\\\\\\n\\u0000\\u0001\\u007f\"");
}

static tide_field number(double n) {
  return (tide_field){.key = "k", .type = TIDE_FIELD_NUMBER, .value.number = n};
}

static void numbers_are_shortest_and_exact(void **state) {
  (void)state;
  tide_field least = TIDE_F_INT("k", INT64_MIN);
  tide_field yes = {
      .key = "k", .type = TIDE_FIELD_BOOLEAN, .value.boolean = true};

  assert_string_equal(value_of(TIDE_LOG_JSON, number(0.1)), "0.1");
  assert_string_equal(value_of(TIDE_LOG_JSON, number(1.0 / 3)),
                      "0.3333333333333333");
  assert_string_equal(value_of(TIDE_LOG_JSON, number(3)), "3");
  assert_string_equal(value_of(TIDE_LOG_JSON, number(1e300)), "1e+300");
  assert_string_equal(value_of(TIDE_LOG_JSON, least), "-9223372036854775808");
  assert_string_equal(value_of(TIDE_LOG_JSON, yes), "true");
  assert_string_equal(value_of(TIDE_LOG_JSON, number(NAN)), "null");
  assert_string_equal(value_of(TIDE_LOG_JSON, number(INFINITY)), "null");
  assert_string_equal(value_of(TIDE_LOG_LOGFMT, number(-NAN)), "NaN");
  assert_string_equal(value_of(TIDE_LOG_LOGFMT, number(INFINITY)), "+Inf");
  assert_string_equal(value_of(TIDE_LOG_LOGFMT, number(-INFINITY)), "-Inf");
}

static void a_locale_changes_nothing(void **state) {
  (void)state;
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
    skip(); /* the machine has no locale with a decimal comma */
  assert_string_equal(value_of(TIDE_LOG_JSON, number(0.5)), "0.5");
  setlocale(LC_ALL, "C");
}

static void keys_are_made_harmless(void **state) {
  (void)state;
  tide_field fields[] = {
      TIDE_F_INT("a b=c\"d\n", 1),   TIDE_F_INT("", 2),
      TIDE_F_INT("msg", 3),          TIDE_F_INT("time", 4),
      TIDE_F_INT("sch\xC3\xB6n", 5),
  };

  assert_string_equal(formatted(TIDE_LOG_LOGFMT, "m", fields, 5), LOGFMT_HEAD
                      "msg=m a_b_c_d_=1 _=2 msg_=3 time_=4 sch__n=5");
  assert_string_equal(formatted(TIDE_LOG_JSON, "m", fields, 5),
                      JSON_HEAD "\"msg\":\"m\",\"a_b_c_d_\":1,\"_\":2,"
                                "\"msg_\":3,\"time_\":4,\"sch__n\":5}");
}

static void missing_parts_have_a_stand_in(void **state) {
  (void)state;
  char line[TIDE_LOG_LINE];
  tide_record record = {.level = TIDE_LOG_ERROR};
  size_t length = tide__log_format(line, TIDE_LOG_LOGFMT, &record);

  line[length] = '\0';
  assert_string_equal(
      line,
      "time=1970-01-01T00:00:00.000Z level=error component=host msg=\"\"\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_follow_time_level_component_and_message),
      cmocka_unit_test(dates_are_right),
      cmocka_unit_test(logfmt_quotes_what_would_be_misread),
      cmocka_unit_test(json_strings_are_escaped),
      cmocka_unit_test(numbers_are_shortest_and_exact),
      cmocka_unit_test(a_locale_changes_nothing),
      cmocka_unit_test(keys_are_made_harmless),
      cmocka_unit_test(missing_parts_have_a_stand_in),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
