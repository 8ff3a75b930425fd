/* sqlite_lib: the functions of libsqlite3, found when they are first needed. */
#ifndef TIDE_SQLITE_LIB_H
#define TIDE_SQLITE_LIB_H

#include <sqlite3.h>
#include <stddef.h>

#define TIDE_SQLITE_FUNCTIONS(X)                                               \
  X(open_v2)                                                                   \
  X(close)                                                                     \
  X(prepare_v2)                                                                \
  X(step)                                                                      \
  X(reset)                                                                     \
  X(clear_bindings)                                                            \
  X(finalize)                                                                  \
  X(bind_null)                                                                 \
  X(bind_int64)                                                                \
  X(bind_double)                                                               \
  X(bind_text)                                                                 \
  X(bind_parameter_count)                                                      \
  X(column_count)                                                              \
  X(column_type)                                                               \
  X(column_int64)                                                              \
  X(column_double)                                                             \
  X(column_blob)                                                               \
  X(column_bytes)                                                              \
  X(stmt_readonly)                                                             \
  X(get_autocommit)                                                            \
  X(changes)                                                                   \
  X(errmsg)                                                                    \
  X(errstr)                                                                    \
  X(busy_timeout)                                                              \
  X(threadsafe)

typedef struct tide_sqlite_lib {
#define X(name) __typeof__(sqlite3_##name) *name;
  TIDE_SQLITE_FUNCTIONS(X)
#undef X
} tide_sqlite_lib;

/* The functions, or NULL with a message in `error`. On the loop thread. */
const tide_sqlite_lib *tide_sqlite_load(char *error, size_t size);

#endif
