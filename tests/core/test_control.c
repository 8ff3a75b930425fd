/* The control socket: who can reach it, lines and descriptors both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"

static struct {
  uv_loop_t loop;
  uv_async_t keep; /* the room's handles do not keep a loop turning */
  char directory[64];
  char path[96];
  char error[512];
  tide_control *server;
  tide_control *client;
  uint32_t accepted; /* the last one */
  uid_t uid;
  pid_t pid;
  int accepts, closes, lines;
  char line[256];
  size_t length;
  uint32_t end_at_line; /* a handler that ends the connection */
} f;

static void on_accepted(void *arg, uint32_t id, uid_t uid, pid_t pid) {
  (void)arg;
  f.accepted = id;
  f.uid = uid;
  f.pid = pid;
  f.accepts++;
}

static void on_line(void *arg, uint32_t id, const char *text, size_t length) {
  f.lines++;
  f.length = length;
  snprintf(f.line, sizeof f.line, "%.*s", (int)(length < 200 ? length : 200),
           text);
  if (f.end_at_line != 0)
    tide_control_end(*(tide_control **)arg, id);
}

static void on_closed(void *arg, uint32_t id) {
  (void)arg;
  (void)id;
  f.closes++;
}

static int open_rooms(void **state) {
  tide_control_handlers handlers = {.arg = &f.server,
                                    .accepted = on_accepted,
                                    .line = on_line,
                                    .closed = on_closed};
  (void)state;
  memset(&f, 0, sizeof f);
  uv_loop_init(&f.loop);
  uv_async_init(&f.loop, &f.keep, NULL);
  strcpy(f.directory, "/tmp/moontide-test-XXXXXX");
  if (mkdtemp(f.directory) == NULL)
    return -1;
  snprintf(f.path, sizeof f.path, "%s/app-1.sock", f.directory);
  handlers.arg = &f.server;
  if (tide_control_open(&f.server, &f.loop, &handlers) != 0)
    return -1;
  handlers.arg = &f.client;
  return tide_control_open(&f.client, &f.loop, &handlers);
}

static int close_rooms(void **state) {
  char command[96];
  (void)state;
  tide_control_close(f.server);
  tide_control_close(f.client);
  uv_close((uv_handle_t *)&f.keep, NULL);
  uv_run(&f.loop, UV_RUN_DEFAULT);
  snprintf(command, sizeof command, "rm -rf %s", f.directory);
  assert_int_equal(system(command), 0);
  return uv_loop_close(&f.loop);
}

static void turn(void) {
  for (int i = 0; i < 5; i++)
    uv_run(&f.loop, UV_RUN_NOWAIT);
}

static int listen_there(void) {
  return tide_control_listen(f.server, f.directory, "app-1.sock",
                             TIDE_CONTROL_PRIVATE, f.error, sizeof f.error);
}

static uint32_t connected(void) {
  uint32_t id;
  assert_int_equal(listen_there(), 0);
  assert_int_equal(tide_control_connect(f.client, f.path, &id), 0);
  turn();
  assert_int_equal(f.accepts, 1);
  return id;
}

static void send_text(uint32_t id, const char *text) {
  assert_int_equal(tide_control_send(f.client, id, text, strlen(text), NULL, 0),
                   0);
  turn();
}

static void both_know_who_the_other_one_is(void **state) {
  uid_t uid;
  pid_t pid;
  (void)state;
  uint32_t id = connected();
  assert_int_equal(f.uid, geteuid());
  assert_int_equal(f.pid, getpid());
  assert_true(tide_control_peer(f.client, id, &uid, &pid));
  assert_int_equal(uid, geteuid());
  assert_int_equal(pid, getpid());
  assert_false(tide_control_peer(f.client, id + 1, &uid, &pid));
}

static void lines_come_whole(void **state) {
  (void)state;
  uint32_t id = connected();
  send_text(id, "hel");
  assert_int_equal(f.lines, 0);
  send_text(id, "lo\nand\nmo");
  assert_int_equal(f.lines, 2);
  assert_string_equal(f.line, "and");
  send_text(id, "re\n");
  assert_string_equal(f.line, "more");
  assert_int_equal(f.length, 4);
}

static void a_handler_may_end_the_connection(void **state) {
  (void)state;
  uint32_t id = connected();
  f.end_at_line = 1;
  send_text(id, "one\ntwo\n");
  assert_int_equal(f.lines, 1);
  assert_int_equal(f.closes, 1); /* at the client, not where it was ended */
  assert_int_equal(tide_control_send(f.client, id, "x\n", 2, NULL, 0),
                   UV_ENOTCONN);
}

/* More than a socket takes at once, in both directions. */
static void a_long_line_comes_whole(void **state) {
  size_t length = TIDE_CONTROL_LINE - 1;
  char *text = malloc(length + 1);
  (void)state;
  uint32_t id = connected();
  memset(text, 'a', length);
  text[length] = '\n';
  assert_int_equal(tide_control_send(f.client, id, text, length + 1, NULL, 0),
                   0);
  for (int i = 0; i < 2000 && f.lines == 0; i++)
    uv_run(&f.loop, UV_RUN_NOWAIT);
  assert_int_equal(f.lines, 1);
  assert_int_equal(f.length, length);
  free(text);
}

static void a_line_without_end_closes_the_connection(void **state) {
  size_t length = TIDE_CONTROL_LINE + 1;
  char *text = malloc(length);
  (void)state;
  uint32_t id = connected();
  memset(text, 'a', length);
  assert_int_equal(tide_control_send(f.client, id, text, length, NULL, 0), 0);
  for (int i = 0; i < 2000 && f.closes < 2; i++)
    uv_run(&f.loop, UV_RUN_NOWAIT);
  assert_int_equal(f.closes, 2); /* both sides heard of it */
  assert_int_equal(f.lines, 0);
  free(text);
}

static void descriptors_come_with_their_line(void **state) {
  int ends[2], got[4];
  char byte = 0;
  (void)state;
  uint32_t id = connected();
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(tide_control_send(f.client, id, "take\n", 5, ends, 2), 0);
  turn();
  assert_string_equal(f.line, "take");
  assert_int_equal(tide_control_take(f.server, f.accepted, got, 4), 2);
  assert_int_equal(tide_control_take(f.server, f.accepted, got + 2, 2), 0);
  assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
  assert_int_equal(write(got[1], "!", 1), 1);
  assert_int_equal(read(ends[0], &byte, 1), 1);
  assert_int_equal(byte, '!');
  for (int i = 0; i < 2; i++) {
    close(ends[i]);
    close(got[i]);
  }
}

static void descriptors_nobody_takes_are_closed(void **state) {
  int ends[2];
  char byte;
  (void)state;
  uint32_t id = connected();
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(tide_control_send(f.client, id, "x\n", 2, &ends[1], 1), 0);
  close(ends[1]);
  turn();
  tide_control_end(f.server, f.accepted);
  turn();
  assert_int_equal(read(ends[0], &byte, 1), 0); /* no writer is left */
  close(ends[0]);
}

static void too_many_descriptors_are_refused(void **state) {
  int fds[TIDE_CONTROL_FDS + 1] = {0};
  (void)state;
  uint32_t id = connected();
  assert_int_equal(
      tide_control_send(f.client, id, "x\n", 2, fds, TIDE_CONTROL_FDS + 1),
      UV_E2BIG);
}

static void too_many_clients_are_closed(void **state) {
  uint32_t id;
  (void)state;
  assert_int_equal(listen_there(), 0);
  for (int i = 0; i < TIDE_CONTROL_CONNS; i++)
    assert_int_equal(tide_control_connect(f.client, f.path, &id), 0);
  for (int i = 0; i < 3; i++) /* a few at a time */
    turn();
  assert_int_equal(f.accepts, TIDE_CONTROL_CONNS);
  assert_int_equal(tide_control_connect(f.client, f.path, &id), 0);
  turn();
  assert_int_equal(f.accepts, TIDE_CONTROL_CONNS);
  assert_int_equal(f.closes, 1);
}

static void the_file_is_its_owners_alone(void **state) {
  struct stat st;
  (void)state;
  mode_t before = umask(0);
  assert_int_equal(listen_there(), 0);
  umask(before);
  assert_int_equal(stat(f.path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  tide_control_unlisten(f.server);
  assert_int_not_equal(stat(f.path, &st), 0);
}

static void a_directory_is_made_for_its_owner_alone(void **state) {
  struct stat st;
  char path[96];
  (void)state;
  snprintf(path, sizeof path, "%s/new", f.directory);
  assert_int_equal(
      tide_control_directory(path, TIDE_CONTROL_PRIVATE, false, f.error, 512),
      UV_ENOENT);
  assert_int_equal(
      tide_control_directory(path, TIDE_CONTROL_PRIVATE, true, f.error, 512),
      0);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
}

static void a_directory_of_others_is_refused(void **state) {
  char path[96];
  (void)state;
  chmod(f.directory, 0710);
  assert_int_equal(listen_there(), UV_EPERM);
  assert_non_null(strstr(f.error, "its mode is 0710"));
  chmod(f.directory, 0700);
  snprintf(path, sizeof path, "%s/link", f.directory);
  assert_int_equal(symlink("/tmp", path), 0);
  assert_int_equal(
      tide_control_directory(path, TIDE_CONTROL_PRIVATE, true, f.error, 512),
      UV_ENOTDIR);
  if (geteuid() == 0) {
    assert_int_equal(chown(f.directory, 65534, 65534), 0);
    assert_int_equal(listen_there(), UV_EPERM);
    assert_non_null(strstr(f.error, "belongs to user 65534"));
  }
}

static void one_that_lives_is_not_replaced(void **state) {
  (void)state;
  assert_int_equal(listen_there(), 0);
  assert_int_equal(tide_control_listen(f.client, f.directory, "app-1.sock",
                                       TIDE_CONTROL_PRIVATE, f.error,
                                       sizeof f.error),
                   UV_EADDRINUSE);
  assert_non_null(strstr(f.error, "listens on it"));
}

/* What a dead process leaves: a file that nobody answers on. */
static void one_left_behind_is_replaced(void **state) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  uint32_t id;
  (void)state;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  strcpy(address.sun_path, f.path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  close(fd);
  assert_int_equal(tide_control_connect(f.client, f.path, &id),
                   UV_ECONNREFUSED);
  assert_int_equal(listen_there(), 0);
  assert_int_equal(tide_control_connect(f.client, f.path, &id), 0);
}

static void anothers_file_is_not_removed(void **state) {
  struct stat st;
  (void)state;
  assert_int_equal(listen_there(), 0);
  unlink(f.path);
  assert_int_equal(tide_control_listen(f.client, f.directory, "app-1.sock",
                                       TIDE_CONTROL_PRIVATE, f.error,
                                       sizeof f.error),
                   0);
  tide_control_unlisten(f.server);
  assert_int_equal(stat(f.path, &st), 0);
}

/* The handle of the former socket is the loop's until it has turned. */
static void it_listens_again_once_the_loop_has_turned(void **state) {
  uint32_t id;
  (void)state;
  assert_int_equal(listen_there(), 0);
  assert_int_equal(listen_there(), UV_EALREADY);
  tide_control_unlisten(f.server);
  assert_int_equal(listen_there(), UV_EALREADY);
  turn();
  assert_int_equal(listen_there(), 0);
  assert_int_equal(tide_control_connect(f.client, f.path, &id), 0);
  turn();
  assert_int_equal(f.accepts, 1);
}

/* Who is about to connect when it closes is refused by right: then nobody
 * connects. */
static atomic_bool closing, connecting;

/* Connects again and again; returns how often the file was there, but nobody
 * behind it. */
static void *seek(void *arg) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  intptr_t refused = 0;
  strcpy(address.sun_path, f.path);
  while (!atomic_load((atomic_bool *)arg)) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    atomic_store(&connecting, true);
    if (!atomic_load(&closing) &&
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
      refused += errno == ECONNREFUSED;
    atomic_store(&connecting, false);
    close(fd);
  }
  return (void *)refused;
}

/* A refusal says that a process has died: its file would be removed. */
static void who_finds_the_file_is_not_refused(void **state) {
  atomic_bool over = false;
  pthread_t thread;
  void *refused;
  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, seek, &over), 0);
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(listen_there(), 0);
    turn();
    atomic_store(&closing, true);
    while (atomic_load(&connecting))
      sched_yield();
    tide_control_unlisten(f.server);
    turn();
    atomic_store(&closing, false);
  }
  atomic_store(&over, true);
  pthread_join(thread, &refused);
  assert_null(refused);
}

static void a_path_too_long_is_refused(void **state) {
  char file[128];
  (void)state;
  memset(file, 'x', sizeof file);
  file[sizeof file - 1] = '\0';
  assert_int_equal(tide_control_listen(f.server, f.directory, file,
                                       TIDE_CONTROL_PRIVATE, f.error,
                                       sizeof f.error),
                   UV_ENAMETOOLONG);
  assert_non_null(strstr(f.error, "at most 107 bytes"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_rooms, close_rooms)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(both_know_who_the_other_one_is),
      T(lines_come_whole),
      T(a_handler_may_end_the_connection),
      T(a_long_line_comes_whole),
      T(a_line_without_end_closes_the_connection),
      T(descriptors_come_with_their_line),
      T(descriptors_nobody_takes_are_closed),
      T(too_many_descriptors_are_refused),
      T(too_many_clients_are_closed),
      T(the_file_is_its_owners_alone),
      T(a_directory_is_made_for_its_owner_alone),
      T(a_directory_of_others_is_refused),
      T(one_that_lives_is_not_replaced),
      T(one_left_behind_is_replaced),
      T(anothers_file_is_not_removed),
      T(it_listens_again_once_the_loop_has_turned),
      T(who_finds_the_file_is_not_refused),
      T(a_path_too_long_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
