/* The Lua library as bytecode, made by scripts/embed.lua; sorted by name. */
#ifndef TIDE_EMBEDDED_H
#define TIDE_EMBEDDED_H

#include <stddef.h>

typedef struct tide_embedded {
  const char *name; /* "moontide.task" */
  const unsigned char *code;
  size_t size;
} tide_embedded;

extern const tide_embedded tide__embedded[];
extern const size_t tide__embedded_count;

#endif
