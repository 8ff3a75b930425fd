/* A host leaves a loop of the program's that goes on: nothing of it stays
 * there, and nothing is turned but by its owner. */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <uv.h>

#include "embed_helpers.h"

/* A loop with a timer of the program's own, and a host on it. */
struct room {
  uv_loop_t loop;
  uv_timer_t timer;
  int ticks;
  tide_host *host;
  int closed;       /* how often tide_close has called back */
  bool frees;       /* ... and then frees the host */
  double called_at; /* when */
};

static void on_tick(uv_timer_t *timer) {
  ++((struct room *)timer->data)->ticks;
}

static void open_room(struct room *room) {
  memset(room, 0, sizeof *room);
  assert_int_equal(uv_loop_init(&room->loop), 0);
  uv_timer_init(&room->loop, &room->timer);
  room->timer.data = room;
  uv_timer_start(&room->timer, on_tick, 1, 1);
  uv_unref((uv_handle_t *)&room->timer);
}

static void add_host(struct room *room, const char *script) {
  tide_options options;
  tide_options_init(&options);
  options.loop = &room->loop;
  room->host = new_host_with(&options);
  if (script == NULL)
    return;
  load(room->host, script);
  assert_int_equal(tide_start(room->host), 0);
}

static void turn_until(struct room *room, tide_state state) {
  double end = now() + 10;
  while (tide_host_state(room->host) < state && now() < end)
    uv_run(&room->loop, UV_RUN_ONCE);
  assert_int_equal(tide_host_state(room->host), state);
}

static void on_closed(tide_host *host, void *arg) {
  struct room *room = arg;
  assert_ptr_equal(host, room->host);
  room->closed++;
  room->called_at = now();
  if (room->frees) {
    tide_free(host);
    room->host = NULL;
  }
}

static void turn_until_closed(struct room *room) {
  double end = now() + 10;
  while (room->closed == 0 && now() < end)
    uv_run(&room->loop, UV_RUN_ONCE);
  assert_int_equal(room->closed, 1);
}

/* The timer still comes, and when it is closed nothing is left. */
static void close_room(struct room *room) {
  int before = room->ticks;
  uv_ref((uv_handle_t *)&room->timer);
  while (room->ticks < before + 3)
    assert_int_not_equal(uv_run(&room->loop, UV_RUN_ONCE), 0);
  uv_close((uv_handle_t *)&room->timer, NULL);
  assert_int_equal(uv_run(&room->loop, UV_RUN_NOWAIT), 0);
  assert_int_equal(uv_loop_close(&room->loop), 0);
}

/* Of everything that can be on a loop, one. */
#define FULL                                                                   \
  PLAIN "local uv = require 'luv'\n"                                           \
        "tide.http.listen { port = 0 }\n"                                      \
        "tide.check('c', function() return true end)\n"                        \
        "uv.new_timer():start(60000, 0, function() end)\n"                     \
        "uv.new_fs_poll():start('/', 1000, function() end)\n"                  \
        "uv.new_fs_event():start('/', {}, function() end)\n"                   \
        "uv.new_signal():start('sigwinch')\n"                                  \
        "local s = uv.new_tcp() s:bind('127.0.0.1', 0) s:listen(1, "           \
        "function() end)\n"                                                    \
        "uv.new_tcp():connect('127.0.0.1', s:getsockname().port, function() "  \
        "end)\n"                                                               \
        "uv.fs_scandir('/')\n"                                                 \
        "tide.spawn(function() tide.event('never'):wait() end)\n"

static void it_leaves_the_loop_as_it_was(void **state) {
  struct room room;
  (void)state;
  open_room(&room);
  add_host(&room, FULL);
  turn_until(&room, TIDE_READY);
  assert_int_equal(tide_drain(room.host, "test"), 0);
  turn_until(&room, TIDE_STOPPED);
  assert_int_equal(tide_close(room.host, on_closed, &room), 0);
  assert_int_equal(room.closed, 0); /* never from inside the call */
  turn_until_closed(&room);
  /* The timer is not counted: nothing else is there. */
  assert_int_equal(uv_loop_alive(&room.loop), 0);
  tide_free(room.host);
  close_room(&room);
}

static void it_may_be_freed_from_the_callback(void **state) {
  struct room room;
  (void)state;
  open_room(&room);
  add_host(&room, FULL);
  turn_until(&room, TIDE_READY);
  tide_drain(room.host, "test");
  turn_until(&room, TIDE_STOPPED);
  room.frees = true;
  assert_int_equal(tide_close(room.host, on_closed, &room), 0);
  turn_until_closed(&room);
  assert_null(room.host);
  close_room(&room);
}

static void close_when_stopped(tide_host *host, const tide_event *event,
                               void *arg) {
  if (event->kind == TIDE_EVENT_STATE && event->to == TIDE_STOPPED)
    assert_int_equal(tide_close(host, on_closed, arg), 0);
}

/* The program says uv_run once, and the loop ends by itself. */
static void the_event_of_the_stop_is_a_good_moment(void **state) {
  struct room room;
  (void)state;
  open_room(&room);
  add_host(&room, FULL);
  room.frees = true;
  assert_true(tide_on_event(room.host, close_when_stopped, &room) > 0);
  assert_int_equal(tide_drain(room.host, "test"), 0);
  assert_int_equal(uv_run(&room.loop, UV_RUN_DEFAULT), 0);
  assert_int_equal(room.closed, 1);
  close_room(&room);
}

static void close_from_prepare(uv_prepare_t *prepare) {
  struct room *room = prepare->data;
  assert_int_equal(tide_close(room->host, on_closed, room), 0);
  uv_close((uv_handle_t *)prepare, NULL);
}

/* From a prepare callback, after which the poll comes at once. */
static void it_does_not_wait_for_something_to_happen(void **state) {
  struct room room;
  uv_prepare_t prepare;
  double began;
  (void)state;
  open_room(&room);
  add_host(&room, PLAIN);
  turn_until(&room, TIDE_READY);
  uv_timer_stop(&room.timer);
  tide_drain(room.host, "test");
  turn_until(&room, TIDE_STOPPED);
  uv_prepare_init(&room.loop, &prepare);
  prepare.data = &room;
  uv_prepare_start(&prepare, close_from_prepare);
  began = now();
  turn_until_closed(&room);
  assert_true(now() - began < 5); /* and not for ever */
  tide_free(room.host);
  uv_timer_start(&room.timer, on_tick, 1, 1);
  close_room(&room);
}

static void one_that_never_ran_can_be_closed(void **state) {
  struct room room;
  (void)state;
  for (int loaded = 0; loaded < 2; loaded++) {
    open_room(&room);
    add_host(&room, NULL);
    if (loaded)
      load(room.host, PLAIN);
    assert_int_equal(tide_close(room.host, on_closed, &room), 0);
    assert_int_equal(tide_host_state(room.host), TIDE_STOPPED);
    turn_until_closed(&room);
    tide_free(room.host);
    close_room(&room);
  }
}

/* ---- when it cannot be, and what comes after ---- */

static void *close_it(void *arg) {
  assert_int_equal(tide_close(arg, on_closed, NULL), TIDE_ETHREAD);
  return NULL;
}

static void it_is_refused_where_it_cannot_be(void **state) {
  struct room room;
  (void)state;
  open_room(&room);
  add_host(&room, PLAIN);
  assert_int_equal(tide_close(room.host, on_closed, &room), TIDE_ESTATE);
  turn_until(&room, TIDE_READY);
  assert_int_equal(tide_close(room.host, on_closed, &room), TIDE_ESTATE);
  tide_drain(room.host, "test");
  turn_until(&room, TIDE_STOPPED);
  assert_int_equal(tide_close(room.host, NULL, &room), TIDE_EINVAL);
  on_thread(close_it, room.host);
  assert_int_equal(tide_close(room.host, on_closed, &room), 0);
  assert_int_equal(tide_close(room.host, on_closed, &room), UV_EALREADY);
  turn_until_closed(&room);
  assert_int_equal(tide_close(room.host, on_closed, &room), UV_EALREADY);
  tide_free(room.host);
  close_room(&room);
}

static void on_post(tide_host *host, void *arg, int status) {
  int *result = arg;
  assert_int_equal(tide_close(host, on_closed, NULL), UV_EALREADY);
  tide_free(host); /* inside of a callback: ignored */
  *result = status;
}

static void assert_shut(tide_host *host) {
  tide_phase_spec phase;
  tide_task_spec task;
  tide_check_spec check;
  tide_info info = {.size = sizeof info};
  tide_phase_spec_init(&phase);
  tide_task_spec_init(&task);
  tide_check_spec_init(&check);
  assert_int_equal(tide_load(host, "x"), TIDE_ESTATE);
  assert_int_equal(tide_load_buffer(host, "x", "", 0), TIDE_ESTATE);
  assert_int_equal(tide_start(host), TIDE_ESTATE);
  assert_int_equal(tide_run(host), TIDE_ESTATE);
  assert_int_equal(tide_phase_add(host, &phase), TIDE_ESTATE);
  assert_int_equal(tide_task_add(host, &task), TIDE_ESTATE);
  assert_int_equal(tide_check_add(host, &check), TIDE_ESTATE);
  assert_int_equal(tide_on_event(host, close_when_stopped, NULL), TIDE_ESTATE);
  assert_int_equal(tide_get_info(host, &info), TIDE_ESTATE);
  assert_int_equal(tide_call(host, 0, 0), TIDE_ESTATE);
  assert_int_equal(tide_exit_code(host), TIDE_ESTATE);
  assert_int_equal(tide_post(host, on_post, NULL), TIDE_ECANCELED);
  assert_int_equal(tide_drain(host, "late"), TIDE_ECANCELED);
  assert_int_equal(tide_kill(host, "late"), TIDE_ECANCELED);
  assert_int_equal(tide_work_begin(host, "late"), TIDE_ECANCELED);
}

static void a_closed_host_refuses_and_calls_off(void **state) {
  struct room room;
  int status = 0;
  (void)state;
  open_room(&room);
  add_host(&room, NULL);
  assert_int_equal(tide_work_begin(room.host, "match"), 0);
  assert_int_equal(tide_post(room.host, on_post, &status), 0);
  assert_int_equal(tide_close(room.host, on_closed, &room), 0);
  assert_shut(room.host);
  turn_until_closed(&room);
  assert_int_equal(status, TIDE_ECANCELED);
  assert_shut(room.host);
  assert_int_equal(tide_work_end(room.host, "match"), 0);
  tide_free(room.host);
  close_room(&room);
}

static void a_free_that_comes_first_calls_nobody(void **state) {
  struct room room;
  (void)state;
  for (int turns = 0; turns < 3; turns++) {
    open_room(&room);
    add_host(&room, FULL);
    turn_until(&room, TIDE_READY);
    tide_drain(room.host, "test");
    turn_until(&room, TIDE_STOPPED);
    assert_int_equal(tide_close(room.host, on_closed, &room), 0);
    for (int i = 0; i < turns; i++)
      uv_run(&room.loop, UV_RUN_NOWAIT);
    assert_int_equal(room.closed, 0);
    tide_free(room.host);
    assert_int_equal(room.closed, 0);
    close_room(&room);
  }
}

/* ---- without tide_close ---- */

static void freeing_takes_all_of_it_off_the_loop(void **state) {
  struct room room;
  (void)state;
  open_room(&room);
  add_host(&room, FULL);
  turn_until(&room, TIDE_READY);
  tide_free(room.host); /* in the middle of it */
  close_room(&room);
}

static void two_hosts_share_a_loop(void **state) {
  struct room room, other;
  (void)state;
  open_room(&room);
  add_host(&room, FULL);
  other = room;
  add_host(&room, FULL);
  turn_until(&room, TIDE_READY);
  tide_drain(room.host, "test");
  turn_until(&room, TIDE_STOPPED);
  assert_int_equal(tide_close(room.host, on_closed, &room), 0);
  turn_until_closed(&room);
  tide_free(room.host);
  room.host = other.host; /* which has not noticed */
  turn_until(&room, TIDE_READY);
  tide_drain(room.host, "test");
  turn_until(&room, TIDE_STOPPED);
  tide_free(room.host);
  close_room(&room);
}

/* ---- a loop of the host's own, and loops inside of others ---- */

static void an_own_loop_is_turned_to_the_end(void **state) {
  struct room room = {0};
  int turns = 0, rc;
  (void)state;
  room.host = started(FULL);
  step_until(room.host, TIDE_READY);
  tide_drain(room.host, "test");
  step_until(room.host, TIDE_STOPPED);
  assert_int_equal(tide_step(room.host, -1), TIDE_IS_STOPPED);
  assert_int_equal(tide_close(room.host, on_closed, &room), 0);
  while ((rc = tide_step(room.host, 1000)) != TIDE_IS_STOPPED && turns++ < 100)
    assert_true(rc >= 0);
  assert_int_equal(rc, TIDE_IS_STOPPED);
  assert_int_equal(room.closed, 1);
  assert_int_equal(tide_exit_code(room.host), 0);
  assert_int_equal(tide_tick(room.host, 1), TIDE_IS_STOPPED);
  assert_int_equal(tide_dispatch(room.host), TIDE_IS_STOPPED);
  tide_free(room.host);
}

struct nest {
  uv_poll_t poll;
  uv_timer_t timer;
  struct room *room;
};

static void drive(struct nest *nest);

static void on_inner(uv_poll_t *poll, int status, int events) {
  (void)events;
  assert_int_equal(status, 0);
  drive(poll->data);
}

static void on_inner_timer(uv_timer_t *timer) {
  drive(timer->data);
}

/* One look at the host from the outer loop. */
static void drive(struct nest *nest) {
  tide_host *host = nest->room->host;
  int rc = tide_dispatch(host), timeout;
  assert_true(rc >= 0);
  if (rc == TIDE_IS_STOPPED && nest->room->closed == 0)
    assert_int_equal(tide_close(host, on_closed, nest->room), 0);
  if (nest->room->closed > 0) {
    uv_close((uv_handle_t *)&nest->poll, NULL);
    uv_close((uv_handle_t *)&nest->timer, NULL);
    return;
  }
  timeout = tide_timeout(host);
  if (timeout >= 0)
    uv_timer_start(&nest->timer, on_inner_timer, (uint64_t)timeout, 0);
  else
    uv_timer_stop(&nest->timer);
}

/* uv_run on the outer loop is all that turns either. */
static void run_inside(struct room *room) {
  uv_loop_t outer;
  struct nest nest = {.room = room};
  assert_int_equal(uv_loop_init(&outer), 0);
  assert_int_equal(uv_poll_init(&outer, &nest.poll, tide_fd(room->host)), 0);
  uv_timer_init(&outer, &nest.timer);
  nest.poll.data = nest.timer.data = &nest;
  uv_poll_start(&nest.poll, UV_READABLE, on_inner);
  drive(&nest);
  assert_int_equal(uv_run(&outer, UV_RUN_DEFAULT), 0);
  assert_int_equal(uv_loop_close(&outer), 0);
  assert_int_equal(room->closed, 1);
  assert_int_equal(tide_exit_code(room->host), 0);
  tide_free(room->host);
}

#define ENDS_ITSELF                                                            \
  FULL "tide.spawn(function() for _ = 1, 5 do tide.sleep(0.01) end "           \
       "tide.shutdown:run() end)\n"

static void a_loop_inside_of_another_libuv_loop(void **state) {
  struct room room = {0};
  (void)state;
  room.host = started(ENDS_ITSELF);
  run_inside(&room); /* one of the host's own */
  open_room(&room);
  add_host(&room, ENDS_ITSELF);
  uv_timer_stop(&room.timer);
  run_inside(&room); /* one of the program's */
  uv_timer_start(&room.timer, on_tick, 1, 1);
  close_room(&room);
}

static void a_loop_of_the_programs_inside_of_an_epoll(void **state) {
  struct room room;
  struct epoll_event event = {.events = EPOLLIN}, got;
  int outer = epoll_create1(EPOLL_CLOEXEC), rc, turns = 0;
  (void)state;
  open_room(&room);
  add_host(&room, ENDS_ITSELF);
  uv_timer_stop(&room.timer);
  event.data.fd = tide_fd(room.host);
  assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, event.data.fd, &event), 0);
  while (room.closed == 0 && turns++ < 1000) {
    rc = tide_dispatch(room.host);
    assert_true(rc >= 0);
    if (rc == TIDE_IS_STOPPED && room.closed == 0)
      assert_int_equal(tide_close(room.host, on_closed, &room), 0);
    epoll_wait(outer, &got, 1, tide_timeout(room.host));
  }
  assert_int_equal(room.closed, 1);
  close(outer);
  tide_free(room.host);
  uv_timer_start(&room.timer, on_tick, 1, 1);
  close_room(&room);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_leaves_the_loop_as_it_was),
      cmocka_unit_test(it_may_be_freed_from_the_callback),
      cmocka_unit_test(the_event_of_the_stop_is_a_good_moment),
      cmocka_unit_test(it_does_not_wait_for_something_to_happen),
      cmocka_unit_test(one_that_never_ran_can_be_closed),
      cmocka_unit_test(it_is_refused_where_it_cannot_be),
      cmocka_unit_test(a_closed_host_refuses_and_calls_off),
      cmocka_unit_test(a_free_that_comes_first_calls_nobody),
      cmocka_unit_test(freeing_takes_all_of_it_off_the_loop),
      cmocka_unit_test(two_hosts_share_a_loop),
      cmocka_unit_test(an_own_loop_is_turned_to_the_end),
      cmocka_unit_test(a_loop_inside_of_another_libuv_loop),
      cmocka_unit_test(a_loop_of_the_programs_inside_of_an_epoll),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
