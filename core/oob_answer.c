/* oob_answer.c: the words of the out-of-band line's answers.
 *
 * Each is a JSON object a line: facts for programs, and the same as a text for
 * people. What is told first is what matters most, for the room is bounded.
 */
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log_text.h"
#include "watchdog_inside.h"

/* Kept free: for the end of a line that grew too long, and for `done`. */
#define ENDING 8
#define DONE 512
/* The most that one thing that runs takes, with all of it escaped. */
#define ENTRY 1200

/* ---- JSON ------------------------------------------------------------- */

static tide_text begin_line(tide_oob_client *client, size_t kept) {
  return (tide_text){.data = client->out + client->out_length,
                     .limit = sizeof client->out - client->out_length - kept -
                              ENDING};
}

static void end_line(tide_oob_client *client, tide_text *line) {
  line->limit += ENDING;
  tide__text_put(line, "}\n", 2);
  client->out_length += line->length;
}

static void put(tide_text *line, const char *text) {
  tide__text_put(line, text, strlen(text));
}

static void put_string(tide_text *line, const char *text, size_t length) {
  put(line, "\"");
  line->limit -= 1;
  tide__text_string(line, text, length, TIDE_ESCAPE_QUOTED);
  line->limit += 1;
  line->truncated = false; /* as much as there is room for */
  put(line, "\"");
}

/* A comma where one is needed, and the name. */
static void put_key(tide_text *line, const char *key) {
  if (line->data[line->length - 1] != '{')
    put(line, ",");
  put_string(line, key, strlen(key));
  put(line, ":");
}

static void put_text(tide_text *line, const char *key, const char *text) {
  put_key(line, key);
  put_string(line, text, strlen(text));
}

static void put_integer(tide_text *line, const char *key, uint64_t value) {
  put_key(line, key);
  tide__text_integer(line, (int64_t)value);
}

static void put_flag(tide_text *line, const char *key, bool value) {
  put_key(line, key);
  put(line, value ? "true" : "false");
}

/* A time since then, in ms; null if there is no then. */
static void put_age(tide_text *line, const char *key, uint64_t since,
                    uint64_t now) {
  if (since != 0) {
    put_integer(line, key, since < now ? (now - since) / TIDE_MS : 0);
  } else {
    put_key(line, key);
    put(line, "null");
  }
}

static void open_message(tide_text *line, const tide_oob_client *client,
                         const char *type) {
  put(line, "{");
  if (client->request.id[0] != '\0') {
    put(line, "\"id\":");
    put(line, client->request.id);
  }
  put_text(line, "type", type);
}

/* ---- text ------------------------------------------------------------- */

static void say_duration(tide_text *text, uint64_t since, uint64_t now) {
  uint64_t ms = since < now ? (now - since) / TIDE_MS : 0;
  uint64_t tenths = ms / 100;
  if (ms < 1000) {
    tide__text_integer(text, (int64_t)ms);
    put(text, " ms");
  } else {
    tide__text_number(text, (double)tenths / 10);
    put(text, " s");
  }
}

static void say(tide_text *text, const char *what) {
  tide__text_string(text, what, strlen(what), TIDE_ESCAPE_NONE);
}

static tide_text begin_text(tide_watchdog *watchdog) {
  return (tide_text){.data = watchdog->oob.room->text,
                     .limit = sizeof watchdog->oob.room->text - 1};
}

/* The last member of a message: what has no room is left out. */
static void put_said(tide_text *line, const tide_text *text) {
  put_key(line, "text");
  put_string(line, text->data, text->length);
}

/* ---- what both tell --------------------------------------------------- */

static const char *state_of(const tide_watchdog *watchdog) {
  const tide_lifecycle *lifecycle = watchdog->options.lifecycle;
  return lifecycle != NULL ? tide_state_name(tide_lifecycle_state(lifecycle))
                           : "unknown";
}

static void tell_state(tide_watchdog *watchdog, tide_text *line,
                       tide_text *text, uint64_t now) {
  uint64_t since = atomic_load(&watchdog->state_since);
  tide_entry phase;
  if (tide_watchdog__name(watchdog) != NULL)
    put_text(line, "name", tide_watchdog__name(watchdog));
  put_integer(line, "pid", (uint64_t)getpid());
  put_text(line, "state", state_of(watchdog));
  put_age(line, "state_ms", since, now);
  say(text, state_of(watchdog));
  say(text, " for ");
  say_duration(text, since, now);
  if (tide_place_read(&watchdog->table.phase, &phase)) {
    put_text(line, "phase", phase.what);
    put_age(line, "phase_ms", phase.since, now);
    say(text, ", phase ");
    say(text, phase.what);
    say(text, " for ");
    say_duration(text, phase.since, now);
  }
  say(text, "\n");
}

static void tell_loop(const tide_watchdog *watchdog, tide_text *line,
                      tide_text *text, uint64_t now) {
  const tide_beat *beat = watchdog->options.beat;
  uint64_t turn = beat != NULL ? atomic_load(&beat->turn_ms) * TIDE_MS : 0;
  /* What comes out of the poll is worked on before the turn is noted. */
  bool waits =
      beat != NULL && atomic_load(&beat->waits) && watchdog->seen_id == 0;
  if (turn == 0)
    turn = watchdog->options.started_at;
  put_key(line, "loop");
  put(line, "{");
  put_age(line, "alive_ms", turn, now);
  put_flag(line, "waits", waits);
  put(line, "}");
  say(text, waits ? "the loop waits for events, and last had one "
                  : "the loop has been busy since its last turn, ");
  say_duration(text, turn, now);
  say(text, " ago\n");
}

/* ---- where ------------------------------------------------------------ */

static void tell_line(const tide_noted *slice, tide_text *line,
                      tide_text *text) {
  if (slice->seen && slice->at[0] != '\0') {
    put_text(line, "at", slice->at);
    say(text, " at ");
    say(text, slice->at);
  }
  put_flag(line, "in_c", slice->looking && !slice->seen);
  if (slice->looking && !slice->seen)
    say(text, ", in a call of C (no instruction of Lua's came)");
}

static void tell_slice(const tide_watchdog *watchdog, const tide_noted *slice,
                       tide_text *line, tide_text *text, uint64_t now) {
  uint64_t since = slice != NULL ? slice->since : 0;
  if (since == 0)
    since = tide_watchdog__busy_since(watchdog, now);
  if (slice == NULL || (slice->id == 0 && slice->what[0] != '\0')) {
    put_key(line, "lua");
    put(line, "null");
    say(text, "no Lua runs\n");
    return;
  }
  put_key(line, "lua");
  put(line, "{");
  put_text(line, "what", slice->what);
  put_age(line, "ms", since, now);
  say(text, "Lua runs: ");
  say(text, slice->what[0] != '\0' ? slice->what : "it did not say what");
  if (slice->what[0] != '\0')
    tell_line(slice, line, text);
  if (since != 0) {
    say(text, ", for ");
    say_duration(text, since, now);
  }
  put(line, "}");
  say(text, "\n");
}

static void tell_entry(const tide_entry *entry, tide_text *line,
                       tide_text *text, uint64_t now) {
  if (line->data[line->length - 1] != '[')
    put(line, ",");
  put(line, "{");
  put_text(line, "what", entry->what);
  put_text(line, "site", entry->site);
  put_age(line, "ms", entry->since, now);
  put(line, "}");
  say(text, "  ");
  say(text, entry->what);
  say(text, entry->site[0] != '\0' ? " (" : "");
  say(text, entry->site);
  say(text, entry->site[0] != '\0' ? "), " : ", ");
  say_duration(text, entry->since, now);
  say(text, "\n");
}

static void tell_entries(tide_watchdog *watchdog, tide_text *line,
                         tide_text *text, uint64_t now) {
  uint64_t more = atomic_load(&watchdog->table.overflow);
  tide_entry entry;
  int i;
  put_key(line, "running");
  put(line, "[");
  for (i = 0; i < TIDE_PLACES; i++) {
    if (!tide_place_read(&watchdog->table.places[i], &entry))
      continue;
    if (line->limit - line->length > ENTRY)
      tell_entry(&entry, line, text, now);
    else
      more++;
  }
  put(line, "]");
  put_integer(line, "more", more);
  if (more > 0) {
    say(text, "  and more: ");
    tide__text_integer(text, (int64_t)more);
    say(text, "\n");
  }
}

void tide_oob_tell_where(tide_watchdog *watchdog, tide_oob_client *client,
                         const tide_noted *slice) {
  uint64_t now = tide_clock_mono();
  tide_text line = begin_line(client, DONE), text = begin_text(watchdog);
  open_message(&line, client, "value");
  put_key(&line, "where");
  put(&line, "{");
  tell_state(watchdog, &line, &text, now);
  tell_loop(watchdog, &line, &text, now);
  tell_slice(watchdog, slice, &line, &text, now);
  tell_entries(watchdog, &line, &text, now);
  put(&line, "}");
  put_said(&line, &text);
  end_line(client, &line);
}

/* ---- status ----------------------------------------------------------- */

static void tell_total(const tide_watchdog *watchdog, tide_total which,
                       const char *key, const char *words, tide_text *line,
                       tide_text *text, uint64_t now) {
  uint64_t at = tide_watchdog__total_end(watchdog, which);
  if (at == TIDE_NEVER) {
    put_age(line, key, 0, now);
    return;
  }
  put_age(line, key, now, at);
  say(text, words);
  say_duration(text, now, at);
  say(text, "\n");
}

void tide_oob_tell_status(tide_watchdog *watchdog, tide_oob_client *client) {
  uint64_t now = tide_clock_mono();
  const tide_work *work = watchdog->options.work;
  uint64_t in_flight = work != NULL ? tide_work_active(work) : 0;
  tide_text line = begin_line(client, DONE), text = begin_text(watchdog);
  open_message(&line, client, "value");
  put_key(&line, "status");
  put(&line, "{");
  tell_state(watchdog, &line, &text, now);
  tell_loop(watchdog, &line, &text, now);
  put_age(&line, "lua_busy_ms", tide_watchdog__busy_since(watchdog, now), now);
  tell_total(watchdog, TIDE_TOTAL_STARTUP, "startup_left_ms",
             "the startup must end within ", &line, &text, now);
  tell_total(watchdog, TIDE_TOTAL_SHUTDOWN, "shutdown_left_ms",
             "the shutdown must end within ", &line, &text, now);
  put_integer(&line, "in_flight", in_flight);
  put_integer(&line, "interrupts", tide_interrupt_count(watchdog->interrupt));
  put(&line, "}");
  say(&text, "in flight: ");
  tide__text_integer(&text, (int64_t)in_flight);
  say(&text, "\n");
  put_said(&line, &text);
  end_line(client, &line);
}

/* ---- the rest --------------------------------------------------------- */

void tide_oob_tell(tide_oob_client *client, const char *type,
                   const char *sentence) {
  tide_text line = begin_line(client, DONE);
  open_message(&line, client, type);
  put_text(&line, strcmp(type, "error") == 0 ? "message" : "text", sentence);
  end_line(client, &line);
}

void tide_oob_done(tide_oob_client *client, const char *status) {
  tide_text line = begin_line(client, 0);
  uint64_t took_us = (tide_clock_mono() - client->began) / 1000;
  open_message(&line, client, "done");
  put_text(&line, "status", status);
  put_key(&line, "ms");
  tide__text_number(&line, (double)took_us / 1000);
  end_line(client, &line);
}
