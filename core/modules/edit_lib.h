/* edit_lib: the functions of libedit, found when they are first needed. */
#ifndef TIDE_EDIT_LIB_H
#define TIDE_EDIT_LIB_H

#include <histedit.h>
#include <stddef.h>

#define TIDE_EDIT_FUNCTIONS(X)                                                 \
  X(el_init)                                                                   \
  X(el_end)                                                                    \
  X(el_gets)                                                                   \
  X(el_set)                                                                    \
  X(el_wset)                                                                   \
  X(el_get)                                                                    \
  X(el_source)                                                                 \
  X(el_resize)                                                                 \
  X(el_line)                                                                   \
  X(el_insertstr)                                                              \
  X(el_deletestr)                                                              \
  X(history_init)                                                              \
  X(history_end)                                                               \
  X(history)

typedef struct tide_edit_lib {
#define X(name) __typeof__(name) *name;
  TIDE_EDIT_FUNCTIONS(X)
#undef X
} tide_edit_lib;

/* The functions, or NULL with a message in `error`. */
const tide_edit_lib *tide_edit_load(char *error, size_t size);

#endif
