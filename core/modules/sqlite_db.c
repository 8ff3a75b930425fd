#include "sqlite_db.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Statements of the library, prepared once each; a store has about a dozen. */
enum { STATEMENTS = 32 };

struct tide_sqlite_db {
  const tide_sqlite_lib *lib;
  sqlite3 *handle; /* NULL once it is closed */
  struct {
    char *sql;
    sqlite3_stmt *prepared;
  } statements[STATEMENTS];
  int statement_count;
};

char *tide_sqlite_copy(const void *bytes, size_t length) {
  char *copy = malloc(length + 1);
  if (copy == NULL)
    return NULL;
  if (length > 0)
    memcpy(copy, bytes, length);
  copy[length] = '\0';
  return copy;
}

static void free_values(tide_sqlite_value *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    free(values[i].text);
  free(values);
}

void tide_sqlite_request_free(tide_sqlite_request *request) {
  if (request == NULL)
    return;
  free(request->sql);
  free_values(request->params, (size_t)request->param_count);
  free_values(request->cells, request->cell_count);
  free(request);
}

int tide_sqlite_db_open(tide_sqlite_db **out, const tide_sqlite_lib *lib,
                        const char *path, int busy_ms, char *error,
                        size_t size) {
  tide_sqlite_db *db = calloc(1, sizeof *db);
  int code = SQLITE_NOMEM;
  if (db == NULL) {
    snprintf(error, size, "out of memory");
    return code;
  }
  db->lib = lib;
  code = lib->open_v2(path, &db->handle,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
  if (code != SQLITE_OK) {
    snprintf(error, size, "%s",
             db->handle != NULL ? lib->errmsg(db->handle) : lib->errstr(code));
    tide_sqlite_db_free(db);
    return code;
  }
  lib->busy_timeout(db->handle, busy_ms);
  *out = db;
  return SQLITE_OK;
}

/* Again harmless. */
static void close_handle(tide_sqlite_db *db) {
  for (int i = 0; i < db->statement_count; i++) {
    db->lib->finalize(db->statements[i].prepared);
    free(db->statements[i].sql);
  }
  db->statement_count = 0;
  if (db->handle != NULL)
    db->lib->close(db->handle);
  db->handle = NULL;
}

void tide_sqlite_db_free(tide_sqlite_db *db) {
  if (db == NULL)
    return;
  close_handle(db);
  free(db);
}

/* ---- one statement ---------------------------------------------------------
 */

static void fail(tide_sqlite_request *request, int code, const char *message) {
  request->code = code & 0xff; /* the primary code */
  snprintf(request->message, sizeof request->message, "%s", message);
}

static void fail_here(tide_sqlite_db *db, tide_sqlite_request *request,
                      int code) {
  fail(request, code, db->lib->errmsg(db->handle));
}

/* The prepared statement of a text; one that is not kept is in *loose, too. */
static sqlite3_stmt *statement_of(tide_sqlite_db *db,
                                  tide_sqlite_request *request,
                                  sqlite3_stmt **loose) {
  sqlite3_stmt *made = NULL;
  *loose = NULL;
  for (int i = 0; i < db->statement_count; i++)
    if (strcmp(db->statements[i].sql, request->sql) == 0)
      return db->statements[i].prepared;
  int code = db->lib->prepare_v2(db->handle, request->sql, -1, &made, NULL);
  if (code != SQLITE_OK) {
    fail_here(db, request, code);
    return NULL;
  }
  char *copy = db->statement_count < STATEMENTS
                   ? tide_sqlite_copy(request->sql, strlen(request->sql))
                   : NULL;
  if (copy == NULL) {
    *loose = made;
    return made;
  }
  db->statements[db->statement_count].sql = copy;
  db->statements[db->statement_count++].prepared = made;
  return made;
}

static int bind_one(tide_sqlite_db *db, sqlite3_stmt *statement, int at,
                    const tide_sqlite_value *value) {
  switch (value->kind) {
  case VALUE_INTEGER:
    return db->lib->bind_int64(statement, at, value->integer);
  case VALUE_REAL:
    return db->lib->bind_double(statement, at, value->real);
  case VALUE_TEXT: /* the request outlives the step */
    return db->lib->bind_text(statement, at, value->text, (int)value->length,
                              SQLITE_STATIC);
  default:
    return db->lib->bind_null(statement, at);
  }
}

static int bind_all(tide_sqlite_db *db, sqlite3_stmt *statement,
                    tide_sqlite_request *request) {
  int wanted = db->lib->bind_parameter_count(statement);
  if (wanted != request->param_count) {
    snprintf(request->message, sizeof request->message,
             "the statement has %d parameters, %d were given", wanted,
             request->param_count);
    request->code = SQLITE_RANGE;
    return SQLITE_RANGE;
  }
  for (int i = 0; i < request->param_count; i++) {
    int code = bind_one(db, statement, i + 1, &request->params[i]);
    if (code != SQLITE_OK) {
      fail_here(db, request, code);
      return code;
    }
  }
  return SQLITE_OK;
}

static tide_sqlite_value *new_cell(tide_sqlite_request *request) {
  if (request->cell_count == request->cell_capacity) {
    size_t capacity =
        request->cell_capacity == 0 ? 16 : request->cell_capacity * 2;
    tide_sqlite_value *grown =
        realloc(request->cells, capacity * sizeof *grown);
    if (grown == NULL)
      return NULL;
    request->cells = grown;
    request->cell_capacity = capacity;
  }
  tide_sqlite_value *cell = &request->cells[request->cell_count++];
  memset(cell, 0, sizeof *cell);
  return cell;
}

static int read_cell(tide_sqlite_db *db, sqlite3_stmt *statement, int column,
                     tide_sqlite_value *cell) {
  const tide_sqlite_lib *lib = db->lib;
  switch (lib->column_type(statement, column)) {
  case SQLITE_INTEGER:
    cell->kind = VALUE_INTEGER;
    cell->integer = lib->column_int64(statement, column);
    return SQLITE_OK;
  case SQLITE_FLOAT:
    cell->kind = VALUE_REAL;
    cell->real = lib->column_double(statement, column);
    return SQLITE_OK;
  case SQLITE_NULL:
    return SQLITE_OK;
  default: { /* bytes as they are, text or blob: never cut at a NUL */
    const void *bytes = lib->column_blob(statement, column);
    cell->kind = VALUE_TEXT;
    cell->length = (size_t)lib->column_bytes(statement, column);
    cell->text = tide_sqlite_copy(bytes, cell->length);
    return cell->text != NULL ? SQLITE_OK : SQLITE_NOMEM;
  }
  }
}

static int read_row(tide_sqlite_db *db, sqlite3_stmt *statement,
                    tide_sqlite_request *request) {
  request->columns = db->lib->column_count(statement);
  for (int i = 0; i < request->columns; i++) {
    tide_sqlite_value *cell = new_cell(request);
    if (cell == NULL || read_cell(db, statement, i, cell) != SQLITE_OK) {
      fail(request, SQLITE_NOMEM, "out of memory");
      return SQLITE_NOMEM;
    }
  }
  return SQLITE_OK;
}

static void step_all(tide_sqlite_db *db, sqlite3_stmt *statement,
                     tide_sqlite_request *request) {
  int code;
  while ((code = db->lib->step(statement)) == SQLITE_ROW)
    if (read_row(db, statement, request) != SQLITE_OK)
      return;
  if (code != SQLITE_DONE)
    fail_here(db, request, code);
  else
    request->changes = db->lib->changes(db->handle);
}

void tide_sqlite_db_run(tide_sqlite_db *db, tide_sqlite_request *request) {
  sqlite3_stmt *statement, *loose;
  if (request->sql == NULL) {
    close_handle(db);
    return;
  }
  if (db->handle == NULL) {
    fail(request, SQLITE_MISUSE, "the database is closed");
    return;
  }
  statement = statement_of(db, request, &loose);
  if (statement == NULL)
    return;
  if (bind_all(db, statement, request) == SQLITE_OK)
    step_all(db, statement, request);
  db->lib->reset(statement);
  db->lib->clear_bindings(statement);
  if (loose != NULL)
    db->lib->finalize(loose);
}

/* ---- several ---------------------------------------------------------------
 */

static bool changes_something(tide_sqlite_db *db,
                              tide_sqlite_request *request) {
  sqlite3_stmt *loose;
  sqlite3_stmt *statement = statement_of(db, request, &loose);
  bool changes = statement != NULL && !db->lib->stmt_readonly(statement);
  if (loose != NULL)
    db->lib->finalize(loose);
  request->code = SQLITE_OK; /* said again when it runs */
  return changes;
}

static bool want_transaction(tide_sqlite_db *db, tide_sqlite_request *first) {
  if (first->next == NULL || db->handle == NULL)
    return false;
  for (tide_sqlite_request *r = first; r != NULL; r = r->next)
    if (r->sql != NULL && changes_something(db, r))
      return true;
  return false;
}

/* BEGIN, COMMIT, ROLLBACK; what went wrong stays in *request. */
static bool control(tide_sqlite_db *db, tide_sqlite_request *request,
                    char *sql) {
  memset(request, 0, sizeof *request);
  request->sql = sql;
  tide_sqlite_db_run(db, request);
  return request->code == SQLITE_OK;
}

static void fail_all(tide_sqlite_request *first,
                     const tide_sqlite_request *why) {
  for (tide_sqlite_request *r = first; r != NULL; r = r->next)
    if (r->code == SQLITE_OK)
      fail(r, why->code, why->message);
}

/* No lock to write with: those that read need none. */
static void run_reads(tide_sqlite_db *db, tide_sqlite_request *first,
                      const tide_sqlite_request *why) {
  for (tide_sqlite_request *r = first; r != NULL; r = r->next)
    if (changes_something(db, r))
      fail(r, why->code, why->message);
    else
      tide_sqlite_db_run(db, r);
}

/* Some errors undo the whole transaction, and end it. */
static const tide_sqlite_request *run_inside(tide_sqlite_db *db,
                                             tide_sqlite_request *first) {
  for (tide_sqlite_request *r = first; r != NULL; r = r->next) {
    tide_sqlite_db_run(db, r);
    if (db->lib->get_autocommit(db->handle) != 0)
      return r;
  }
  return NULL;
}

void tide_sqlite_db_run_all(tide_sqlite_db *db, tide_sqlite_request *first) {
  char begin[] = "BEGIN IMMEDIATE", commit[] = "COMMIT", undo[] = "ROLLBACK";
  tide_sqlite_request step, end;
  if (!want_transaction(db, first)) {
    for (tide_sqlite_request *r = first; r != NULL; r = r->next)
      tide_sqlite_db_run(db, r);
    return;
  }
  if (!control(db, &step, begin)) {
    run_reads(db, first, &step);
    return;
  }
  const tide_sqlite_request *broken = run_inside(db, first);
  if (broken != NULL) {
    fail_all(first, broken);
  } else if (!control(db, &step, commit)) {
    fail_all(first, &step);
    if (db->lib->get_autocommit(db->handle) == 0)
      control(db, &end, undo);
  }
}
