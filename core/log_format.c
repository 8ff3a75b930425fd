#include "log_format.h"

#include <math.h>
#include <string.h>

#include "date.h"
#include "log_text.h"

/* Kept free at the end of a line: the longest ending. */
#define ENDING ",\"truncated\":true}\n"
#define KEPT_FREE (sizeof ENDING)

#define TIME_LENGTH 24 /* 2026-01-31T09:00:00.123Z */

/* `width` decimal digits, zeros in front. (printf would take most of the time
 * that a record takes.) */
static char *put_digits(char *out, int width, int number, char after) {
  for (int i = width - 1; i >= 0; i--) {
    out[i] = (char)('0' + number % 10);
    number /= 10;
  }
  out[width] = after;
  return out + width + 1;
}

static void format_time(char out[TIME_LENGTH], struct timespec time) {
  /* A clock that was never set, or one far off, still gives four digits. */
  int64_t seconds = time.tv_sec < 0 ? 0 : (int64_t)time.tv_sec;
  if (seconds > 253402300799) /* the end of 9999 */
    seconds = 253402300799;
  int of_day = (int)(seconds % 86400);
  int year, month, day;

  tide_date_of(seconds / 86400, &year, &month, &day);
  out = put_digits(out, 4, year, '-');
  out = put_digits(out, 2, month, '-');
  out = put_digits(out, 2, day, 'T');
  out = put_digits(out, 2, of_day / 3600, ':');
  out = put_digits(out, 2, of_day / 60 % 60, ':');
  out = put_digits(out, 2, of_day % 60, '.');
  put_digits(out, 3, (int)(time.tv_nsec / 1000000), 'Z');
}

static const char *level_name(tide_log_level level) {
  switch (level) {
  case TIDE_LOG_DEBUG:
    return "debug";
  case TIDE_LOG_INFO:
    return "info";
  case TIDE_LOG_WARN:
    return "warn";
  case TIDE_LOG_ERROR:
    break;
  }
  return "error";
}

/* A key that both formats can carry as it is. */
static bool key_char(char c) {
  return c > ' ' && c < 0x7F && c != '=' && c != '"' && c != '\\';
}

/* Keys that are ours: a field of that name gets a '_' behind it, for a key that
 * comes twice makes JSON that readers take apart differently. */
static bool reserved(const char *key) {
  static const char *const names[] = {"time", "level", "component", "msg",
                                      "truncated"};

  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(key, names[i]) == 0)
      return true;
  }
  return false;
}

static void put_key(tide_text *text, const char *key) {
  if (key == NULL || *key == '\0')
    key = "_";
  for (const char *p = key; *p != '\0' && !text->truncated; p++) {
    char c = key_char(*p) ? *p : '_';
    tide__text_put(text, &c, 1);
  }
  if (reserved(key))
    tide__text_put(text, "_", 1);
}

static void put_string(tide_text *text, tide_log_format format, const char *s,
                       size_t length) {
  /* What lies beyond the line's end needs not be looked at. */
  if (length > TIDE_LOG_LINE)
    length = TIDE_LOG_LINE;
  if (format == TIDE_LOG_LOGFMT && !tide__text_needs_quotes(s, length)) {
    tide__text_string(text, s, length, TIDE_ESCAPE_NONE);
    return;
  }
  text->limit--; /* the closing quote's room */
  bool opened = tide__text_put(text, "\"", 1);
  if (opened)
    tide__text_string(text, s, length, TIDE_ESCAPE_QUOTED);
  text->limit++;
  if (opened)
    text->data[text->length++] = '"';
}

static void put_value(tide_text *text, tide_log_format format,
                      const tide_field *field) {
  double number = field->value.number;

  switch (field->type) {
  case TIDE_FIELD_STRING:
    put_string(text, format, field->value.string.data,
               field->value.string.length);
    return;
  case TIDE_FIELD_INTEGER:
    tide__text_integer(text, field->value.integer);
    return;
  case TIDE_FIELD_BOOLEAN:
    if (field->value.boolean)
      tide__text_put(text, "true", 4);
    else
      tide__text_put(text, "false", 5);
    return;
  case TIDE_FIELD_NUMBER:
    if (isfinite(number))
      tide__text_number(text, number);
    else if (format == TIDE_LOG_JSON)
      tide__text_put(text, "null", 4);
    else if (isnan(number))
      tide__text_put(text, "NaN", 3);
    else
      tide__text_put(text, number > 0 ? "+Inf" : "-Inf", 4);
    return;
  }
}

/* A field goes in whole, or, if it is a string, with a shortened value; a field
 * without room for its key and an empty value is left out. */
static void put_field(tide_text *text, tide_log_format format,
                      const tide_field *field) {
  size_t before = text->length;

  if (format == TIDE_LOG_JSON) {
    tide__text_put(text, ",\"", 2);
    put_key(text, field->key);
    tide__text_put(text, "\":", 2);
  } else {
    tide__text_put(text, " ", 1);
    put_key(text, field->key);
    tide__text_put(text, "=", 1);
  }
  size_t value = text->length;
  if (!text->truncated)
    put_value(text, format, field);
  if (text->truncated &&
      (field->type != TIDE_FIELD_STRING || text->length == value))
    text->length = before;
}

static void put_literal(tide_text *text, const char *s) {
  tide__text_put(text, s, strlen(s));
}

/* The part that every line has; it always fits (but for the message). */
static void put_head(tide_text *text, tide_log_format format,
                     const tide_record *record) {
  const char *component = record->component ? record->component : "host";
  const char *message = record->message ? record->message : "";
  bool json = format == TIDE_LOG_JSON;
  char time[TIME_LENGTH];

  format_time(time, record->time);
  put_literal(text, json ? "{\"time\":\"" : "time=");
  tide__text_put(text, time, sizeof time);
  put_literal(text, json ? "\",\"level\":\"" : " level=");
  put_literal(text, level_name(record->level));
  put_literal(text, json ? "\",\"component\":" : " component=");
  put_string(text, format, component, strnlen(component, 256));
  put_literal(text, json ? ",\"msg\":" : " msg=");
  put_string(text, format, message, strnlen(message, TIDE_LOG_LINE));
}

size_t tide__log_format(char *buffer, tide_log_format format,
                        const tide_record *record) {
  tide_text text = {.data = buffer, .limit = TIDE_LOG_LINE - KEPT_FREE};
  const char *ending = format == TIDE_LOG_JSON ? "}\n" : "\n";

  put_head(&text, format, record);
  for (size_t i = 0; i < record->count && !text.truncated; i++)
    put_field(&text, format, &record->fields[i]);
  if (text.truncated)
    ending = format == TIDE_LOG_JSON ? ENDING : " truncated=true\n";
  memcpy(buffer + text.length, ending, strlen(ending));
  return text.length + strlen(ending);
}
