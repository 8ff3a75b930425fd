/* fuzz_route: the trie of routes beside a list that is searched in the plainest
 * way.
 *
 * An input is lines. Up to an empty one, each is a route to add: a letter for
 * its method, a space, a pattern. Each line after it is a request: a letter, a
 * space, a path.
 */
#include <stdlib.h>
#include <string.h>

#include <llhttp.h>

#include "check.h"
#include "http/route.h"

enum { ROUTES_MAX = 32, METHODS = 4 };

static const unsigned methods[METHODS] = {HTTP_GET, HTTP_HEAD, HTTP_POST,
                                          HTTP_DELETE};

typedef struct text {
  const char *at;
  size_t length;
} text;

/* The routes that were accepted, as a list. */
typedef struct known {
  const tide_route *route;
  text pattern;
  unsigned method;
} known;

static known list[ROUTES_MAX];
static size_t count;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cuts the next segment off what is behind a slash; false: none is left. */
static bool segment(text *rest, text *out) {
  if (rest->length == 0)
    return false;
  const char *slash = memchr(rest->at + 1, '/', rest->length - 1);
  const char *end = slash != NULL ? slash : rest->at + rest->length;
  *out = (text){rest->at + 1, (size_t)(end - rest->at) - 1};
  *rest = (text){end, rest->length - (size_t)(end - rest->at)};
  return true;
}

static bool is_param(const text *t) {
  return t->length > 0 && t->at[0] == ':';
}

static bool equal(const text *a, const text *b) {
  return a->length == b->length && memcmp(a->at, b->at, a->length) == 0;
}

/* ---- what may be a route --------------------------------------------------
 */

static bool same_shape(text a, text b) {
  text x, y;
  while (segment(&a, &x)) {
    if (!segment(&b, &y) || is_param(&x) != is_param(&y))
      return false;
    if (!is_param(&x) && !equal(&x, &y))
      return false;
  }
  return b.length == 0;
}

static bool params_are_sound(text pattern) {
  text names[TIDE_ROUTE_PARAMS_MAX];
  size_t found = 0, depth = 0;
  text s;
  while (segment(&pattern, &s)) {
    if (++depth > TIDE_ROUTE_DEPTH_MAX)
      return false;
    if (!is_param(&s))
      continue;
    if (s.length < 2 || found == TIDE_ROUTE_PARAMS_MAX)
      return false;
    for (size_t i = 0; i < found; i++)
      if (equal(&names[i], &s))
        return false;
    names[found++] = s;
  }
  return true;
}

static bool acceptable(const text *pattern, unsigned method) {
  if (pattern->length == 0 || pattern->at[0] != '/')
    return false;
  for (size_t i = 0; i < pattern->length; i++)
    if (strchr("?# \r\n\t", pattern->at[i]) != NULL)
      return false;
  if (!params_are_sound(*pattern))
    return false;
  for (size_t i = 0; i < count; i++)
    if (list[i].method == method && same_shape(list[i].pattern, *pattern))
      return false;
  return true;
}

static void add(tide_router *router, const text *pattern, unsigned method) {
  char error[64]; /* too small for a long pattern: must not matter */
  char *copy = strndup(pattern->at, pattern->length);
  CHECK(copy != NULL);
  bool expected = acceptable(pattern, method);
  const tide_route *route =
      tide_router_add(router, method, copy, error, sizeof error);
  CHECK((route != NULL) == expected);
  CHECK(route != NULL || strlen(error) < sizeof error);
  free(copy);
  if (route != NULL)
    list[count++] = (known){route, *pattern, method};
}

/* ---- what a path matches --------------------------------------------------
 */

/* Whether it matches, and which of its segments are parameters, in bits from
 * the top: the smaller, the earlier a literal. */
static bool matches(text pattern, text path, uint64_t *params) {
  text p, s;
  uint64_t bit = (uint64_t)1 << 63;
  *params = 0;
  while (segment(&pattern, &p)) {
    if (!segment(&path, &s))
      return false;
    if (is_param(&p) ? s.length == 0 : !equal(&p, &s))
      return false;
    if (is_param(&p))
      *params |= bit;
    bit >>= 1;
  }
  return path.length == 0;
}

/* The one that answers: the earliest literals, then the method itself before
 * the GET that a HEAD may fall back to. */
static const tide_route *search(const text *path, unsigned method,
                                uint64_t *allow) {
  const tide_route *best = NULL;
  uint64_t best_rank = UINT64_MAX;
  bool best_exact = false;
  *allow = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t rank;
    if (!matches(list[i].pattern, *path, &rank))
      continue;
    *allow |= (uint64_t)1 << list[i].method;
    bool exact = list[i].method == method;
    if (!exact && (method != HTTP_HEAD || list[i].method != HTTP_GET))
      continue;
    if (best != NULL && (rank > best_rank || (rank == best_rank && best_exact)))
      continue;
    best = list[i].route;
    best_rank = rank;
    best_exact = exact;
  }
  return best;
}

static void check_params(const tide_route *route, text path,
                         const tide_route_match *m) {
  text pattern = {route->pattern, strlen(route->pattern)};
  const char *start = path.at;
  text p, s;
  unsigned next = 0;
  while (segment(&pattern, &p) && segment(&path, &s)) {
    if (!is_param(&p))
      continue;
    CHECK(next < route->param_count);
    CHECK(m->params[next].at == (size_t)(s.at - start));
    CHECK(m->params[next].length == s.length);
    CHECK(strncmp(route->param_names[next], p.at + 1, p.length - 1) == 0);
    next++;
  }
  CHECK(next == route->param_count);
}

static void ask(const tide_router *router, const text *path, unsigned method) {
  tide_route_match m;
  uint64_t allow = 0;
  const tide_route *expected = NULL;
  if (path->length > 0 && path->at[0] == '/')
    expected = search(path, method, &allow);
  /* Of the exact size, so that a read beyond is seen. */
  char *copy = malloc(path->length + (path->length == 0));
  CHECK(copy != NULL);
  memcpy(copy, path->at, path->length);
  memset(&m, 0xff, sizeof m);
  tide_router_match(router, method, copy, path->length, &m);
  free(copy);
  CHECK(m.route == expected);
  if (expected != NULL)
    check_params(expected, *path, &m);
  else
    CHECK(m.allow == allow);
}

/* ---- the target -----------------------------------------------------------
 */

static bool next_line(text *rest, text *out) {
  if (rest->length == 0)
    return false;
  const char *end = memchr(rest->at, '\n', rest->length);
  out->at = rest->at;
  out->length = end != NULL ? (size_t)(end - rest->at) : rest->length;
  size_t step = out->length + (end != NULL);
  *rest = (text){rest->at + step, rest->length - step};
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  text rest = {(const char *)data, size};
  text line;
  bool adding = true;
  if (memchr(data, '\0', size) != NULL) /* a pattern is a string of C */
    return -1;
  tide_router *router = tide_router_new();
  CHECK(router != NULL);
  count = 0;
  while (next_line(&rest, &line)) {
    if (line.length < 2) {
      adding = false;
      continue;
    }
    unsigned method = methods[(unsigned char)line.at[0] % METHODS];
    text path = {line.at + 2, line.length - 2};
    if (!adding)
      ask(router, &path, method);
    else if (count < ROUTES_MAX)
      add(router, &path, method);
  }
  tide_router_free(router);
  return 0;
}
