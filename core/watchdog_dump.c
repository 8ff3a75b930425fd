/* watchdog_dump.c: what is said of a process that is about to be ended. */
#include "watchdog_dump.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "append.h"
#include "clock.h"
#include "watchdog_words.h"

#define PATIENCE (100 * TIDE_MS)
#define TERMINATION_LOG "/dev/termination-log"

static void record(const tide_words *words, const char *message,
                   const tide_field *fields, size_t count) {
  tide_words_record(words, TIDE_LOG_ERROR, message, fields, count);
}

static int64_t age_ms(const tide_dump *dump, uint64_t since) {
  return since < dump->now ? (int64_t)((dump->now - since) / TIDE_MS) : 0;
}

static void put_head(const tide_dump *dump, const tide_words *words) {
  char message[160];
  tide_field fields[4];
  tide_entry phase;
  size_t count = 0;
  size_t at = tide_append(message, sizeof message, 0, dump->why);
  tide_append(message, sizeof message, at, "; ending the process");
  if (dump->name != NULL)
    fields[count++] = TIDE_F_STR("name", dump->name);
  if (tide_place_read(&dump->table->phase, &phase)) {
    fields[count++] = TIDE_F_STR("phase", phase.what);
    fields[count++] = TIDE_F_INT("phase_ms", age_ms(dump, phase.since));
  }
  if (dump->slice_since != 0)
    fields[count++] =
        TIDE_F_INT("lua_busy_ms", age_ms(dump, dump->slice_since));
  record(words, message, fields, count);
}

/* What Lua was at: a task, a callback; and the line if it still ran. */
static void put_slice(const tide_dump *dump, const tide_words *words) {
  tide_field fields[2];
  size_t count = 0;
  if (dump->slice == NULL)
    return;
  fields[count++] = TIDE_F_STR("what", dump->slice->what);
  if (dump->slice->at[0] != '\0')
    fields[count++] = TIDE_F_STR("at", dump->slice->at);
  record(words, "Lua was running", fields, count);
}

static void put_entry(const tide_dump *dump, const tide_words *words,
                      const tide_entry *entry) {
  tide_field fields[3];
  size_t count = 0;
  fields[count++] = TIDE_F_STR("what", entry->what);
  if (entry->site[0] != '\0')
    fields[count++] = TIDE_F_STR("site", entry->site);
  fields[count++] = TIDE_F_INT("age_ms", age_ms(dump, entry->since));
  record(words, "still running", fields, count);
}

static void put_overflow(const tide_dump *dump, const tide_words *words) {
  uint32_t more = atomic_load(&dump->table->overflow);
  tide_field field = TIDE_F_INT("count", more);
  if (more > 0)
    record(words, "more were still running", &field, 1);
}

void tide_dump_write(const tide_dump *dump, int fd) {
  tide_words words = {.fd = fd,
                      .give_up_at = tide_clock_mono() + PATIENCE,
                      .format = dump->format};
  tide_entry entry;
  int i;
  put_head(dump, &words);
  put_slice(dump, &words);
  for (i = 0; i < TIDE_PLACES; i++)
    if (tide_place_read(&dump->table->places[i], &entry))
      put_entry(dump, &words, &entry);
  put_overflow(dump, &words);
}

/* ---- the termination log ---------------------------------------------- */

static size_t put_words(const tide_dump *dump, char *out, size_t size) {
  tide_entry entry;
  size_t at = tide_append(out, size, 0, "exit 1: ");
  at = tide_append(out, size, at, dump->why);
  if (tide_place_read(&dump->table->phase, &entry)) {
    at = tide_append(out, size, at, " in phase ");
    at = tide_append(out, size, at, entry.what);
  }
  if (dump->slice != NULL) {
    at = tide_append(out, size, at, "; Lua was running: ");
    at = tide_append(out, size, at, dump->slice->what);
    at = tide_append(out, size, at, dump->slice->at[0] != '\0' ? " at " : "");
    at = tide_append(out, size, at, dump->slice->at);
  }
  return tide_append(out, size, at, "\n");
}

/* A regular file alone: anything else could keep the last act waiting. */
void tide_dump_last_words(const tide_dump *dump, const char *path) {
  char text[1024];
  struct stat st;
  int fd = open(path != NULL ? path : TERMINATION_LOG,
                O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    size_t length = put_words(dump, text, sizeof text);
    if (write(fd, text, length) < 0)
      text[0] = '\0'; /* nowhere else to say it */
  }
  close(fd);
}
