/* Whether the file of a Unix socket is in the way, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "unix_path.h"

static char directory[64];
static struct sockaddr_un address;
static char why[256];

static int make_directory(void **state) {
  char path[96];
  (void)state;
  strcpy(directory, "/tmp/moontide-test-XXXXXX");
  if (mkdtemp(directory) == NULL)
    return -1;
  snprintf(path, sizeof path, "%s/s", directory);
  why[0] = '\0';
  return tide_unix_address(path, &address, why, sizeof why);
}

static int remove_directory(void **state) {
  (void)state;
  unlink(address.sun_path);
  return rmdir(directory);
}

static int bound(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

static int make_way(void) {
  return tide_unix_make_way(&address, why, sizeof why);
}

static bool exists(void) {
  struct stat st;
  return lstat(address.sun_path, &st) == 0;
}

static void a_free_path_is_free(void **state) {
  (void)state;
  assert_int_equal(make_way(), 0);
}

static void a_socket_left_behind_is_removed(void **state) {
  (void)state;
  close(bound());
  assert_true(exists());
  assert_int_equal(make_way(), 0);
  assert_false(exists());
}

static void one_that_listens_stays_and_is_named(void **state) {
  char pid[32];
  (void)state;
  int fd = bound();
  assert_int_equal(listen(fd, 4), 0);
  assert_int_equal(make_way(), UV_EADDRINUSE);
  snprintf(pid, sizeof pid, "process %d (", (int)getpid());
  assert_non_null(strstr(why, pid));
  assert_true(exists());
  close(fd);
}

static void one_with_a_full_queue_stays(void **state) {
  int clients[16];
  int count = 0;
  (void)state;
  int fd = bound();
  assert_int_equal(listen(fd, 0), 0);
  for (; count < 16; count++) {
    clients[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(clients[count], (struct sockaddr *)&address, sizeof address) !=
        0)
      break;
  }
  assert_true(count < 16);
  assert_int_equal(make_way(), UV_EADDRINUSE);
  assert_non_null(strstr(why, "its queue is full"));
  for (int i = 0; i <= count; i++)
    close(clients[i]);
  close(fd);
}

static void one_that_does_not_listen_yet_stays(void **state) {
  (void)state;
  int fd = bound();
  assert_int_equal(make_way(), UV_EADDRINUSE);
  assert_non_null(strstr(why, "does not listen yet"));
  assert_true(exists());
  close(fd);
}

static void another_file_stays(void **state) {
  (void)state;
  close(open(address.sun_path, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(make_way(), UV_EADDRINUSE);
  assert_non_null(strstr(why, "is no socket"));
  assert_true(exists());
}

static void a_later_file_of_the_name_is_another(void **state) {
  uint64_t inode, device;
  (void)state;
  tide_unix_note(address.sun_path, &inode, &device);
  assert_int_equal(inode, 0);
  assert_false(tide_unix_is_still(address.sun_path, inode, device));
  int first = bound();
  tide_unix_note(address.sun_path, &inode, &device);
  assert_true(tide_unix_is_still(address.sun_path, inode, device));
  assert_false(tide_unix_is_still(address.sun_path, inode, device + 1));
  unlink(address.sun_path);
  assert_false(tide_unix_is_still(address.sun_path, inode, device));
  int second = bound(); /* the first is open, and keeps its number */
  assert_false(tide_unix_is_still(address.sun_path, inode, device));
  close(first);
  close(second);
}

static void a_path_is_never_cut_off(void **state) {
  struct sockaddr_un other;
  char path[sizeof other.sun_path + 1];
  (void)state;
  memset(path, 'x', sizeof path);
  path[sizeof path - 2] = '\0'; /* 107 bytes */
  assert_int_equal(tide_unix_address(path, &other, why, sizeof why), 0);
  assert_string_equal(other.sun_path, path);
  path[sizeof path - 2] = 'x';
  path[sizeof path - 1] = '\0';
  assert_int_equal(tide_unix_address(path, &other, why, sizeof why),
                   UV_ENAMETOOLONG);
  assert_non_null(strstr(why, "at most 107 bytes, this one 108"));
}

#define T(name)                                                                \
  cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(a_free_path_is_free),
      T(a_socket_left_behind_is_removed),
      T(one_that_listens_stays_and_is_named),
      T(one_with_a_full_queue_stays),
      T(one_that_does_not_listen_yet_stays),
      T(another_file_stays),
      T(a_later_file_of_the_name_is_another),
      T(a_path_is_never_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
