/* How many clients of a listening socket are not accepted yet. */
#include "http_helpers.h"

#include "http/internal.h"

typedef union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} address;

static socklen_t loopback(bool is_v6, address *out) {
  memset(out, 0, sizeof *out);
  if (is_v6) {
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_addr = in6addr_loopback;
    return sizeof out->v6;
  }
  out->v4.sin_family = AF_INET;
  out->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return sizeof out->v4;
}

/* -1: there is no such protocol here. */
static int listening(bool is_v6, address *out) {
  socklen_t length = loopback(is_v6, out);
  int fd = socket(out->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  if (bind(fd, &out->any, length) != 0) {
    close(fd);
    return -1;
  }
  assert_int_equal(listen(fd, 64), 0);
  getsockname(fd, &out->any, &length);
  return fd;
}

static void counts(bool is_v6) {
  enum { CLIENTS = 10 };
  address to;
  int clients[CLIENTS], accepted[CLIENTS];
  int fd = listening(is_v6, &to);
  if (fd < 0)
    skip();
  assert_int_equal(tide_pending__count(fd, is_v6), 0);
  for (int i = 0; i < CLIENTS; i++) {
    clients[i] = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(clients[i], &to.any, sizeof to), 0);
    assert_int_equal(tide_pending__count(fd, is_v6), i + 1);
  }
  for (int i = 0; i < CLIENTS; i++) {
    accepted[i] = accept(fd, NULL, NULL);
    assert_int_equal(tide_pending__count(fd, is_v6), CLIENTS - 1 - i);
  }
  for (int i = 0; i < CLIENTS; i++) {
    close(clients[i]);
    close(accepted[i]);
  }
  close(fd);
}

static void clients_over_ipv4_are_counted(void **state) {
  (void)state;
  counts(false);
}

static void clients_over_ipv6_are_counted(void **state) {
  (void)state;
  counts(true);
}

/* Lines of others are not taken for ours, wherever ours stands among them. */
static void one_of_many_listeners_is_found(void **state) {
  enum { LISTENERS = 50 };
  address to[LISTENERS];
  int fds[LISTENERS], clients[LISTENERS];
  (void)state;
  for (int i = 0; i < LISTENERS; i++)
    fds[i] = listening(false, &to[i]);
  for (int i = 0; i < LISTENERS; i += 2) {
    clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(clients[i], &to[i].any, sizeof to[i].v4), 0);
  }
  for (int i = 0; i < LISTENERS; i++)
    assert_int_equal(tide_pending__count(fds[i], false), i % 2 == 0);
  for (int i = 0; i < LISTENERS; i++) {
    if (i % 2 == 0)
      close(clients[i]);
    close(fds[i]);
  }
}

static void what_does_not_listen_is_unknown(void **state) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  (void)state;
  assert_int_equal(tide_pending__count(fd, false), -1);
  assert_int_equal(tide_pending__count(-1, false), -1);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clients_over_ipv4_are_counted),
      cmocka_unit_test(clients_over_ipv6_are_counted),
      cmocka_unit_test(one_of_many_listeners_is_found),
      cmocka_unit_test(what_does_not_listen_is_unknown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
