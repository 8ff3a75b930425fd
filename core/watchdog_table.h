/* watchdog_table: what runs now, readable at any moment by another thread.
 *
 * Each place is a sequence counter and a few words: odd while the loop writes
 * it. The reader copies the words and takes them only if the counter was even
 * and did not move. No locks, no data race, no allocation.
 */
#ifndef TIDE_WATCHDOG_TABLE_H
#define TIDE_WATCHDOG_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TIDE_PLACES 64
#define TIDE_WHAT_SIZE 64
#define TIDE_SITE_SIZE 96

/* What a place holds: since 0 means that it is free. */
typedef struct tide_entry {
  uint64_t since; /* tide_clock_mono ns */
  char what[TIDE_WHAT_SIZE];
  char site[TIDE_SITE_SIZE];
} tide_entry;

#define TIDE_ENTRY_WORDS (sizeof(tide_entry) / sizeof(uint64_t))

typedef struct tide_place {
  _Atomic uint32_t sequence;
  _Atomic uint64_t words[TIDE_ENTRY_WORDS];
} tide_place;

typedef struct tide_table {
  tide_place places[TIDE_PLACES];
  tide_place phase;          /* `what` is the phase's name */
  _Atomic uint32_t overflow; /* running, but without a place */
  uint64_t used;             /* a bit for each place [loop] */
} tide_table;

/* Returns the place, or -1 when all are taken (then it is counted). [loop] */
int tide_table_begin(tide_table *table, const char *what, const char *site,
                     uint64_t now);
/* Frees it; -1 is what begin returned when it only counted. [loop] */
void tide_table_end(tide_table *table, int place);
/* NULL or "": no phase. [loop] */
void tide_table_phase(tide_table *table, const char *phase, uint64_t now);

/* Copies a place; false when it is free or changes all the time. [any] */
bool tide_place_read(tide_place *place, tide_entry *entry);

#endif
