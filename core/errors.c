/* errors.c: names and sentences of errors, and the version. */
#include <uv.h>

#include "moontide.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *tide_err_name(int error) {
  switch (error) {
#define X(name, value, text)                                                   \
  case value:                                                                  \
    return #name;
    TIDE_ERRNO_MAP(X)
#undef X
  default:
    return error == 0 ? "OK" : uv_err_name(error);
  }
}

const char *tide_strerror(int error) {
  switch (error) {
#define X(name, value, text)                                                   \
  case value:                                                                  \
    return text;
    TIDE_ERRNO_MAP(X)
#undef X
  default:
    return error == 0 ? "no error" : uv_strerror(error);
  }
}

unsigned tide_version(void) {
  return TIDE_VERSION_MAJOR << 16 | TIDE_VERSION_MINOR << 8 |
         TIDE_VERSION_PATCH;
}

const char *tide_version_string(void) {
  return TEXT(TIDE_VERSION_MAJOR) "." TEXT(TIDE_VERSION_MINOR) "." TEXT(
      TIDE_VERSION_PATCH);
}
