/* Signals: noted before the loop exists, delivered with their sender, and the
 * dispositions given back as they were found. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "signals.h"

static tide_signal_info seen[8];
static int seen_count;

static void on_signal(void *arg, const tide_signal_info *info) {
  (void)arg;
  if (seen_count < 8)
    seen[seen_count] = *info;
  seen_count++;
}

static uv_loop_t loop;
static tide_signals *signals;
static uv_async_t keep; /* the handles of the room do not hold the loop */

static void open_signals(void) {
  seen_count = 0;
  assert_int_equal(uv_loop_init(&loop), 0);
  uv_async_init(&loop, &keep, NULL);
  assert_int_equal(tide_signals_open(&signals, &loop, on_signal, NULL), 0);
}

static void close_signals(void) {
  tide_signals_close(signals);
  uv_close((uv_handle_t *)&keep, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
}

static void turn(void) {
  int i; /* libuv carries a signal through a pipe: two turns at most */
  for (i = 0; i < 3; i++)
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void early_ones_are_delivered_later(void **state) {
  (void)state;
  assert_int_equal(tide_signals_early(), 0);
  assert_int_equal(tide_signals_early(), UV_EBUSY);
  kill(getpid(), SIGTERM);
  open_signals();
  turn();
  assert_int_equal(seen_count, 1);
  assert_int_equal(seen[0].number, SIGTERM);
  assert_int_equal(seen[0].sender_pid, getpid());
  assert_int_equal(seen[0].sender_uid, (int)getuid());
  assert_int_equal(seen[0].nth, 1);
  kill(getpid(), SIGTERM);
  turn();
  assert_int_equal(seen_count, 2);
  assert_int_equal(seen[1].nth, 2);
  close_signals();
}

static void dispositions_go_back(void **state) {
  static const int all[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1};
  struct sigaction before[5], after;
  size_t i;
  (void)state;
  for (i = 0; i < 5; i++)
    sigaction(all[i], NULL, &before[i]);
  assert_int_equal(tide_signals_early(), 0);
  open_signals();
  close_signals();
  for (i = 0; i < 5; i++) {
    sigaction(all[i], NULL, &after);
    assert_ptr_equal(after.sa_handler, before[i].sa_handler);
  }
  assert_int_equal(tide_signals_early(), 0);
  tide_signals_abandon();
  sigaction(SIGTERM, NULL, &after);
  assert_ptr_equal(after.sa_handler, SIG_DFL);
}

static void on_other(int number) {
  (void)number;
}

static void watch_and_unwatch(void **state) {
  struct sigaction action, after;
  (void)state;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_other;
  sigaction(SIGUSR2, &action, NULL);
  open_signals();
  assert_int_equal(tide_signals_watch(signals, SIGKILL), UV_ENOTSUP);
  assert_int_equal(tide_signals_watch(signals, 0), UV_ENOTSUP);
  assert_int_equal(tide_signals_watch(signals, 99), UV_ENOTSUP);
  assert_int_equal(tide_signals_watch(signals, SIGUSR2), 0);
  assert_int_equal(tide_signals_watch(signals, SIGUSR2), 0);
  kill(getpid(), SIGUSR2);
  turn();
  assert_int_equal(seen_count, 1);
  tide_signals_unwatch(signals, SIGUSR2);
  tide_signals_unwatch(signals, SIGUSR2);
  sigaction(SIGUSR2, NULL, &after);
  assert_ptr_equal(after.sa_handler, on_other);
  assert_int_equal(tide_signals_watch(signals, SIGUSR2), 0);
  kill(getpid(), SIGUSR2);
  turn();
  assert_int_equal(seen_count, 2);
  close_signals();
}

static void on_script(uv_signal_t *handle, int number) {
  (void)number;
  ++*(int *)handle->data;
}

/* A second libuv handle for the same signal, as a script would make with luv:
 * when it goes, the signal is still ours. */
static void survives_a_second_handle(void **state) {
  uv_signal_t other;
  int heard = 0;
  (void)state;
  assert_int_equal(tide_signals_early(), 0);
  open_signals();
  uv_signal_init(&loop, &other);
  other.data = &heard;
  uv_signal_start(&other, on_script, SIGTERM);
  kill(getpid(), SIGTERM);
  turn();
  assert_int_equal(heard, 1);
  assert_int_equal(seen_count, 1);
  uv_close((uv_handle_t *)&other, NULL);
  turn();
  kill(getpid(), SIGTERM);
  turn();
  assert_int_equal(heard, 1);
  assert_int_equal(seen_count, 2);
  assert_int_equal(seen[1].sender_pid, getpid());
  close_signals();
}

static void names_go_both_ways(void **state) {
  (void)state;
  assert_string_equal(tide_signal_name(SIGTERM), "SIGTERM");
  assert_int_equal(tide_signal_number("SIGUSR2"), SIGUSR2);
  assert_int_equal(tide_signal_number("SIGNOPE"), 0);
  assert_null(tide_signal_name(77));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(early_ones_are_delivered_later),
      cmocka_unit_test(dispositions_go_back),
      cmocka_unit_test(watch_and_unwatch),
      cmocka_unit_test(survives_a_second_handle),
      cmocka_unit_test(names_go_both_ways),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
