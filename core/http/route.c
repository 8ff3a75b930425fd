#include "route.h"

#include <llhttp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Children of a node are a list: a real API has few names at each level, and a
 * length and a memcmp tell them apart faster than a hash would. */
typedef struct node {
  struct node *next; /* sibling */
  struct node *literals;
  struct node *param;
  tide_route **routes; /* one for each method, in order of declaration */
  size_t route_count;
  uint64_t allow;
  size_t length;
  char text[];
} node;

struct tide_router {
  node *root;
  uint64_t methods; /* 1 << method for each that some route has */
};

static node *node_new(const char *text, size_t length) {
  node *made = calloc(1, sizeof *made + length + 1);
  if (made != NULL) {
    memcpy(made->text, text, length);
    made->length = length;
  }
  return made;
}

static void route_free(tide_route *route) {
  for (unsigned i = 0; i < route->param_count; i++)
    free(route->param_names[i]);
  free(route->pattern);
  free(route);
}

static void node_free(node *tree) {
  while (tree != NULL) {
    node *next = tree->next;
    node_free(tree->literals);
    node_free(tree->param);
    for (size_t i = 0; i < tree->route_count; i++)
      route_free(tree->routes[i]);
    free(tree->routes);
    free(tree);
    tree = next;
  }
}

tide_router *tide_router_new(void) {
  tide_router *router = calloc(1, sizeof *router);
  if (router == NULL)
    return NULL;
  router->root = node_new("", 0);
  if (router->root == NULL) {
    free(router);
    return NULL;
  }
  return router;
}

void tide_router_free(tide_router *router) {
  if (router == NULL)
    return;
  node_free(router->root);
  free(router);
}

static node *literal_of(const node *parent, const char *text, size_t length) {
  for (node *child = parent->literals; child != NULL; child = child->next)
    if (child->length == length && memcmp(child->text, text, length) == 0)
      return child;
  return NULL;
}

/* The child for one segment of a pattern, made if it is not there. */
static node *child_for(node *parent, const char *text, size_t length) {
  if (length > 0 && text[0] == ':') {
    if (parent->param == NULL)
      parent->param = node_new("", 0);
    return parent->param;
  }
  node *child = literal_of(parent, text, length);
  if (child != NULL)
    return child;
  child = node_new(text, length);
  if (child != NULL) {
    child->next = parent->literals;
    parent->literals = child;
  }
  return child;
}

static bool name_is_taken(const tide_route *route, const char *name) {
  for (unsigned i = 0; i < route->param_count; i++)
    if (strcmp(route->param_names[i], name) == 0)
      return true;
  return false;
}

/* Notes the name of a parameter. Returns NULL, or what is wrong with it. */
static const char *add_param(tide_route *route, const char *text,
                             size_t length) {
  if (length < 2)
    return "has a parameter without a name";
  if (route->param_count == TIDE_ROUTE_PARAMS_MAX)
    return "has more than 16 parameters";
  char *name = strndup(text + 1, length - 1);
  if (name == NULL)
    return "does not fit into memory";
  if (name_is_taken(route, name)) {
    free(name);
    return "names a parameter twice";
  }
  route->param_names[route->param_count++] = name;
  return NULL;
}

/* Walks the pattern, making nodes. Returns NULL, or what is wrong. */
static const char *walk(node **place, tide_route *route, const char *pattern) {
  if (pattern[0] != '/')
    return "must begin with a slash";
  if (strpbrk(pattern, "?# \r\n\t") != NULL)
    return "must be a path alone, without a query, a fragment or spaces";
  const char *at = pattern + 1;
  for (int depth = 0;; depth++) {
    if (depth == TIDE_ROUTE_DEPTH_MAX)
      return "has more than 64 segments";
    size_t length = strcspn(at, "/");
    if (length > 0 && at[0] == ':') {
      const char *wrong = add_param(route, at, length);
      if (wrong != NULL)
        return wrong;
    }
    *place = child_for(*place, at, length);
    if (*place == NULL)
      return "does not fit into memory";
    if (at[length] == '\0')
      return NULL;
    at += length + 1;
  }
}

static tide_route *route_at(const node *place, unsigned method) {
  if ((place->allow & (uint64_t)1 << method) == 0)
    return NULL;
  for (size_t i = 0; i < place->route_count; i++)
    if (place->routes[i]->method == method)
      return place->routes[i];
  return NULL;
}

static bool attach(node *place, tide_route *route) {
  tide_route **grown =
      realloc(place->routes, (place->route_count + 1) * sizeof *place->routes);
  if (grown == NULL)
    return false;
  place->routes = grown;
  place->routes[place->route_count++] = route;
  place->allow |= (uint64_t)1 << route->method;
  return true;
}

tide_route *tide_router_add(tide_router *router, unsigned method,
                            const char *pattern, char *error,
                            size_t error_size) {
  tide_route *route = calloc(1, sizeof *route);
  node *place = router->root;
  const char *wrong = "does not fit into memory";
  if (route == NULL)
    goto fail;
  route->method = method;
  route->pattern = strdup(pattern);
  if (route->pattern == NULL)
    goto fail;
  wrong = walk(&place, route, pattern);
  if (wrong != NULL)
    goto fail;
  const tide_route *other = route_at(place, method);
  if (other != NULL) {
    snprintf(error, error_size,
             "route \"%s\" has the same shape as \"%s\", which is declared "
             "already",
             pattern, other->pattern);
    route_free(route);
    return NULL;
  }
  if (!attach(place, route)) {
    wrong = "does not fit into memory";
    goto fail;
  }
  router->methods |= (uint64_t)1 << method;
  return route;
fail:
  snprintf(error, error_size, "route \"%s\" %s", pattern, wrong);
  if (route != NULL)
    route_free(route);
  return NULL;
}

typedef struct search {
  unsigned method;
  const char *path;
  size_t length;
  tide_route_match *match;
} search;

static tide_route *pick(const node *place, unsigned method) {
  tide_route *route = route_at(place, method);
  if (route == NULL && method == HTTP_HEAD)
    route = route_at(place, HTTP_GET);
  return route;
}

/* Tries the segment that begins at `at` below `place`. A path that exists with
 * other methods only is remembered for the 405, and the search goes on. */
static bool descend(const node *place, search *s, size_t at, unsigned params) {
  const char *end = memchr(s->path + at, '/', s->length - at);
  size_t length = (end != NULL ? (size_t)(end - s->path) : s->length) - at;
  const node *child = literal_of(place, s->path + at, length);
  for (int turn = 0; turn < 2; turn++) {
    if (turn == 1) {
      child = length > 0 ? place->param : NULL;
      if (child != NULL)
        s->match->params[params++] =
            (tide_route_span){(uint16_t)at, (uint16_t)length};
    }
    if (child == NULL)
      continue;
    if (end != NULL) {
      if (descend(child, s, at + length + 1, params))
        return true;
      continue;
    }
    s->match->allow |= child->allow;
    s->match->route = pick(child, s->method);
    if (s->match->route != NULL)
      return true;
  }
  return false;
}

void tide_router_match(const tide_router *router, unsigned method,
                       const char *path, size_t length,
                       tide_route_match *match) {
  match->route = NULL;
  match->allow = 0;
  if (length == 0 || path[0] != '/' || length > UINT16_MAX)
    return;
  search s = {method, path, length, match};
  descend(router->root, &s, 1, 0);
}

uint64_t tide_router_methods(const tide_router *router) {
  return router->methods;
}
