/* late_math.c: libm, loaded by the first call of one of its functions.
 *
 * Few scripts calculate more than Lua does by itself, and the loader's work for
 * libm is a fortieth of a start. These stand in for it in the binary alone and
 * are not exported: whatever else is loaded has the library's own.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* It belongs to the C library's package, so it is there. */
static void *find(const char *name) {
  static void *library;
  void *found;
  if (library == NULL)
    library = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "moontide: %s\n", dlerror());
    abort();
  }
  return found;
}

/* Threads may both look it up: they find the same. */
#define OF_ONE(name)                                                           \
  double name(double x);                                                       \
  double name(double x) {                                                      \
    static _Atomic(void *) found;                                              \
    double (*function)(double);                                                \
    if (found == NULL)                                                         \
      found = find(#name);                                                     \
    *(void **)&function = found;                                               \
    return function(x);                                                        \
  }

#define OF_TWO(name)                                                           \
  double name(double x, double y);                                             \
  double name(double x, double y) {                                            \
    static _Atomic(void *) found;                                              \
    double (*function)(double, double);                                        \
    if (found == NULL)                                                         \
      found = find(#name);                                                     \
    *(void **)&function = found;                                               \
    return function(x, y);                                                     \
  }

OF_ONE(acos)
OF_ONE(asin)
OF_ONE(cos)
OF_ONE(cosh)
OF_ONE(exp)
OF_ONE(log)
OF_ONE(log10)
OF_ONE(log2)
OF_ONE(sin)
OF_ONE(sinh)
OF_ONE(sqrt)
OF_ONE(tan)
OF_ONE(tanh)
OF_TWO(atan2)
OF_TWO(fmod)
OF_TWO(pow)
