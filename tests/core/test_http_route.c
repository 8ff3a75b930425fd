/* Which route a path finds, and which declarations are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <llhttp.h>
#include <stdio.h>
#include <string.h>

#include "http/route.h"

static tide_router *router;
static char error[256];

static int set_up(void **state) {
  (void)state;
  router = tide_router_new();
  error[0] = '\0';
  return router == NULL;
}

static int tear_down(void **state) {
  (void)state;
  tide_router_free(router);
  return 0;
}

static void add(unsigned method, const char *pattern, int id) {
  tide_route *route =
      tide_router_add(router, method, pattern, error, sizeof error);
  if (route == NULL)
    fail_msg("%s", error);
  route->id = id;
}

static tide_route_match find(unsigned method, const char *path) {
  tide_route_match match;
  tide_router_match(router, method, path, strlen(path), &match);
  return match;
}

static int id_of(unsigned method, const char *path) {
  tide_route_match match = find(method, path);
  return match.route != NULL ? match.route->id : -1;
}

static void refused(const char *pattern, const char *why) {
  assert_null(tide_router_add(router, HTTP_GET, pattern, error, sizeof error));
  assert_non_null(strstr(error, pattern));
  assert_non_null(strstr(error, why));
}

static void a_literal_comes_before_a_parameter(void **state) {
  (void)state;
  add(HTTP_GET, "/orders/:id", 1);
  add(HTTP_GET, "/orders/new", 2);
  assert_int_equal(id_of(HTTP_GET, "/orders/new"), 2);
  assert_int_equal(id_of(HTTP_GET, "/orders/7"), 1);
  assert_int_equal(id_of(HTTP_GET, "/orders/newer"), 1);
}

static void a_literal_that_leads_nowhere_is_left_again(void **state) {
  (void)state;
  add(HTTP_GET, "/a/b/c", 1);
  add(HTTP_GET, "/a/:x/d", 2);
  tide_route_match match = find(HTTP_GET, "/a/b/d");
  assert_non_null(match.route);
  assert_int_equal(match.route->id, 2);
  assert_int_equal(match.params[0].at, 3);
  assert_int_equal(match.params[0].length, 1);
}

static void parameters_are_pieces_of_the_path(void **state) {
  (void)state;
  add(HTTP_GET, "/u/:user/o/:order", 1);
  tide_route_match match = find(HTTP_GET, "/u/ann%20b/o/42");
  assert_non_null(match.route);
  assert_string_equal(match.route->param_names[0], "user");
  assert_string_equal(match.route->param_names[1], "order");
  assert_int_equal(match.params[0].length, 7);
  assert_int_equal(match.params[1].at, 13);
}

static void a_parameter_is_never_empty(void **state) {
  (void)state;
  add(HTTP_GET, "/orders/:id", 1);
  assert_int_equal(id_of(HTTP_GET, "/orders/"), -1);
  assert_int_equal(id_of(HTTP_GET, "/orders"), -1);
  assert_int_equal(id_of(HTTP_GET, "/orders/1/"), -1);
}

static void head_follows_get_unless_it_has_its_own(void **state) {
  (void)state;
  add(HTTP_GET, "/x", 1);
  assert_int_equal(id_of(HTTP_HEAD, "/x"), 1);
  add(HTTP_HEAD, "/x", 2);
  assert_int_equal(id_of(HTTP_HEAD, "/x"), 2);
}

static void the_methods_of_a_path_are_known(void **state) {
  (void)state;
  add(HTTP_GET, "/x", 1);
  add(HTTP_POST, "/x", 2);
  tide_route_match match = find(HTTP_DELETE, "/x");
  assert_null(match.route);
  assert_int_equal(match.allow, 1u << HTTP_GET | 1u << HTTP_POST);
  assert_int_equal(find(HTTP_GET, "/y").allow, 0);
}

static void two_routes_of_one_shape_are_refused(void **state) {
  (void)state;
  add(HTTP_GET, "/orders/:id", 1);
  refused("/orders/:name", "same shape as \"/orders/:id\"");
  assert_non_null(
      tide_router_add(router, HTTP_PUT, "/orders/:name", error, sizeof error));
}

static void odd_patterns_are_refused(void **state) {
  (void)state;
  refused("orders", "must begin with a slash");
  refused("/a?b", "a path alone");
  refused("/a/:", "without a name");
  refused("/:a/:a", "twice");
}

static void odd_paths_find_nothing(void **state) {
  (void)state;
  add(HTTP_GET, "/", 1);
  add(HTTP_GET, "/a", 2);
  assert_int_equal(id_of(HTTP_GET, "/"), 1);
  assert_int_equal(id_of(HTTP_GET, ""), -1);
  assert_int_equal(id_of(HTTP_GET, "*"), -1);
  assert_int_equal(id_of(HTTP_GET, "//"), -1);
  assert_int_equal(id_of(HTTP_GET, "/a/"), -1);
  assert_int_equal(id_of(HTTP_GET, "/a//"), -1);
}

static void many_routes_are_told_apart(void **state) {
  char pattern[64];
  (void)state;
  for (int i = 0; i < 500; i++) {
    snprintf(pattern, sizeof pattern, "/v%d/:id/item%d", i % 50, i);
    add(HTTP_GET, pattern, i);
  }
  for (int i = 0; i < 500; i++) {
    snprintf(pattern, sizeof pattern, "/v%d/77/item%d", i % 50, i);
    assert_int_equal(id_of(HTTP_GET, pattern), i);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_literal_comes_before_a_parameter),
      TEST(a_literal_that_leads_nowhere_is_left_again),
      TEST(parameters_are_pieces_of_the_path),
      TEST(a_parameter_is_never_empty),
      TEST(head_follows_get_unless_it_has_its_own),
      TEST(the_methods_of_a_path_are_known),
      TEST(two_routes_of_one_shape_are_refused),
      TEST(odd_patterns_are_refused),
      TEST(odd_paths_find_nothing),
      TEST(many_routes_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
