/* sqlite_db: a database, statement by statement. No loop, no Lua: one thread at
 * a time may use it, any thread. */
#ifndef TIDE_SQLITE_DB_H
#define TIDE_SQLITE_DB_H

#include <stddef.h>
#include <stdint.h>

#include "sqlite_lib.h"

typedef enum { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT } value_kind;

typedef struct tide_sqlite_value {
  value_kind kind;
  int64_t integer;
  double real;
  char *text; /* owned */
  size_t length;
} tide_sqlite_value;

/* A statement to run, and what came of it; none of BEGIN, COMMIT and their like
 * where others may be in the same list. Closes the database when it has no
 * text. Zeroed by who makes it. */
typedef struct tide_sqlite_request {
  struct tide_sqlite_request *next;
  char *sql;
  tide_sqlite_value *params;
  int param_count;
  /* ---- set by tide_sqlite_db_run ---- */
  int code; /* SQLITE_OK, or what went wrong */
  char message[256];
  tide_sqlite_value *cells; /* row by row */
  size_t cell_count, cell_capacity;
  int columns;
  int changes;
  /* ---- the caller's ---- */
  int callback;
} tide_sqlite_request;

typedef struct tide_sqlite_db tide_sqlite_db;

/* Opens a file, making it when it is not there. Returns SQLITE_OK or a code,
 * with a message. */
int tide_sqlite_db_open(tide_sqlite_db **out, const tide_sqlite_lib *lib,
                        const char *path, int busy_ms, char *error,
                        size_t size);
void tide_sqlite_db_run(tide_sqlite_db *db, tide_sqlite_request *request);
/* Runs a list of them in order. Those that change something become durable
 * together, so that many at once cost one wait for the disk; each still fails
 * or succeeds by itself, unless the whole cannot be written. */
void tide_sqlite_db_run_all(tide_sqlite_db *db, tide_sqlite_request *first);
void tide_sqlite_db_free(tide_sqlite_db *db);

/* Frees it with all it holds. */
void tide_sqlite_request_free(tide_sqlite_request *request);
/* A copy of the bytes; NULL without memory. */
char *tide_sqlite_copy(const void *bytes, size_t length);

#endif
