#include "sqlite_lib.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tide_sqlite_lib lib;

static bool find_all(void *handle, char *error, size_t size) {
  static const struct {
    const char *name;
    void *slot;
  } functions[] = {
#define X(name) {"sqlite3_" #name, &lib.name},
      TIDE_SQLITE_FUNCTIONS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(handle, functions[i].name);
    if (found == NULL) {
      snprintf(error, size, "libsqlite3 has no %s", functions[i].name);
      return false;
    }
    /* dlsym gives an object pointer; POSIX promises that it holds a
     * function's. */
    memcpy(functions[i].slot, &found, sizeof found);
  }
  if (lib.threadsafe() == 0) {
    snprintf(error, size, "libsqlite3 is built for one thread only");
    return false;
  }
  return true;
}

const tide_sqlite_lib *tide_sqlite_load(char *error, size_t size) {
  static bool loaded;
  const char *name = getenv("MOONTIDE_LIBSQLITE3");
  if (loaded)
    return &lib;
  if (name == NULL)
    name = "libsqlite3.so.0";
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf(error, size, "%s; on Debian: apt-get install libsqlite3-0",
             dlerror());
    return NULL;
  }
  loaded = find_all(handle, error, size);
  if (!loaded)
    dlclose(handle);
  return loaded ? &lib : NULL;
}
