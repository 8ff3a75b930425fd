/* watchdog_table.c: places behind sequence counters. */
#include "watchdog_table.h"

#include <string.h>

_Static_assert(sizeof(tide_entry) % sizeof(uint64_t) == 0,
               "an entry is copied in words");

/* Copies at most size - 1 bytes; the rest is zero, so no old text shows. */
static void copy_text(char *to, const char *from, size_t size) {
  size_t length = from != NULL ? strnlen(from, size - 1) : 0;
  memset(to, 0, size);
  if (length > 0)
    memcpy(to, from, length);
}

static void place_write(tide_place *place, const tide_entry *entry) {
  uint32_t sequence =
      atomic_load_explicit(&place->sequence, memory_order_relaxed);
  uint64_t words[TIDE_ENTRY_WORDS];
  size_t i;
  memcpy(words, entry, sizeof words);
  atomic_store_explicit(&place->sequence, sequence + 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  for (i = 0; i < TIDE_ENTRY_WORDS; i++)
    atomic_store_explicit(&place->words[i], words[i], memory_order_relaxed);
  atomic_store_explicit(&place->sequence, sequence + 2, memory_order_release);
}

bool tide_place_read(tide_place *place, tide_entry *entry) {
  uint64_t words[TIDE_ENTRY_WORDS];
  uint32_t before, after;
  size_t i;
  int tries;
  for (tries = 0; tries < 100; tries++) {
    before = atomic_load_explicit(&place->sequence, memory_order_acquire);
    for (i = 0; i < TIDE_ENTRY_WORDS; i++)
      words[i] = atomic_load_explicit(&place->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    after = atomic_load_explicit(&place->sequence, memory_order_relaxed);
    if (before == after && (before & 1) == 0) {
      memcpy(entry, words, sizeof *entry);
      return entry->since != 0;
    }
  }
  return false;
}

int tide_table_begin(tide_table *table, const char *what, const char *site,
                     uint64_t now) {
  tide_entry entry = {.since = now};
  int place;
  if (~table->used == 0) {
    atomic_fetch_add(&table->overflow, 1);
    return -1;
  }
  place = __builtin_ctzll(~table->used);
  table->used |= UINT64_C(1) << place;
  copy_text(entry.what, what, sizeof entry.what);
  copy_text(entry.site, site, sizeof entry.site);
  place_write(&table->places[place], &entry);
  return place;
}

void tide_table_end(tide_table *table, int place) {
  static const tide_entry nothing;
  if (place >= 0 && place < TIDE_PLACES) {
    table->used &= ~(UINT64_C(1) << place);
    place_write(&table->places[place], &nothing);
  } else if (place == -1 && atomic_load(&table->overflow) > 0) {
    atomic_fetch_sub(&table->overflow, 1);
  }
}

void tide_table_phase(tide_table *table, const char *phase, uint64_t now) {
  tide_entry entry = {0};
  if (phase != NULL && phase[0] != '\0') {
    entry.since = now;
    copy_text(entry.what, phase, sizeof entry.what);
  }
  place_write(&table->phase, &entry);
}
