#include "edit_lib.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tide_edit_lib lib;

static bool find_all(void *handle, char *error, size_t size) {
  static const struct {
    const char *name;
    void *slot;
  } functions[] = {
#define X(name) {#name, &lib.name},
      TIDE_EDIT_FUNCTIONS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(handle, functions[i].name);
    if (found == NULL) {
      snprintf(error, size, "libedit has no %s", functions[i].name);
      return false;
    }
    /* dlsym gives an object pointer; POSIX promises that it holds a
     * function's. */
    memcpy(functions[i].slot, &found, sizeof found);
  }
  return true;
}

const tide_edit_lib *tide_edit_load(char *error, size_t size) {
  static bool loaded;
  const char *name = getenv("MOONTIDE_LIBEDIT");
  if (loaded)
    return &lib;
  if (name == NULL)
    name = "libedit.so.2";
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf(error, size, "%s; on Debian: apt-get install libedit2", dlerror());
    return NULL;
  }
  loaded = find_all(handle, error, size);
  if (!loaded)
    dlclose(handle);
  return loaded ? &lib : NULL;
}
