/* route: which handler a path asks for.
 *
 * A trie of path segments. At each segment a literal is tried before a
 * parameter (":id"), with a step back when the literal leads nowhere. Two
 * routes of the same shape and method are an error: which one would answer must
 * not depend on the order of the script. Pure: no loop, no I/O.
 *
 * Paths are matched as they came, percent escapes and all; a trailing slash is
 * a segment of its own, so "/a" and "/a/" are different.
 */
#ifndef TIDE_HTTP_ROUTE_H
#define TIDE_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIDE_ROUTE_PARAMS_MAX = 16, TIDE_ROUTE_DEPTH_MAX = 64 };

typedef struct tide_route {
  int id;              /* the caller's name for the handler */
  unsigned method;     /* llhttp_method_t, below 64 */
  bool stream;         /* may hold a connection open: refused in a drain */
  int watch;           /* the handler is cancelled when its client leaves: 1
                          always, -1 never, 0 in streams */
  uint64_t body_limit; /* 0: the listener's */
  char *pattern;
  unsigned param_count;
  char *param_names[TIDE_ROUTE_PARAMS_MAX];
} tide_route;

/* A piece of the matched path. */
typedef struct tide_route_span {
  uint16_t at;
  uint16_t length;
} tide_route_span;

typedef struct tide_route_match {
  const tide_route *route; /* NULL: no route for this method */
  uint64_t allow;          /* 1 << method for each method of this path; 0: the
                              path itself is unknown */
  tide_route_span params[TIDE_ROUTE_PARAMS_MAX];
} tide_route_match;

typedef struct tide_router tide_router;

/* NULL when memory is out. */
tide_router *tide_router_new(void);
void tide_router_free(tide_router *router);

/* Adds a route; the trie keeps copies. On failure returns NULL and writes what
 * is wrong into `error`. */
tide_route *tide_router_add(tide_router *router, unsigned method,
                            const char *pattern, char *error,
                            size_t error_size);

/* Finds the route of a path of at most 65,535 bytes. HEAD falls back to GET.
 * Always fills `match`. */
void tide_router_match(const tide_router *router, unsigned method,
                       const char *path, size_t length,
                       tide_route_match *match);

/* 1 << method for each method that some route has. */
uint64_t tide_router_methods(const tide_router *router);

#endif
