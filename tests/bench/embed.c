/* embed ROUNDS: what the host costs a program that turns it, beside bare libuv.
 *
 * Interleaved, so that a noisy machine is noisy for both: an idle tide_tick and
 * uv_run(NOWAIT) on a loop with as many handles; a tide_post and a uv_async
 * from another thread, there and back. Medians, in ns. The first number of a
 * line is the host's, the second libuv's.
 */
#include <moontide.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

enum { TICKS = 20000, TRIPS = 3000, MOST = 200, POSTS = 1000000 };

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_size);
  return values[count / 2];
}

static void check(int rc, const char *what) {
  if (rc >= 0)
    return;
  fprintf(stderr, "embed: %s: %s\n", what, tide_strerror(rc));
  exit(1);
}

/* ---- the two loops ---- */

static const char script[] =
    "local tide = require 'moontide'\n"
    "tide.config { manage = false, shutdown = { linger = 0 } }\n"
    "tide.spawn(function() tide.sleep(1000) end)\n";

static tide_host *make_host(void) {
  tide_host *host;
  check(tide_new(&host, NULL), "tide_new");
  check(tide_load_buffer(host, "bench", script, sizeof script - 1), "load");
  check(tide_start(host), "start");
  while (tide_host_state(host) != TIDE_READY)
    check(tide_step(host, 10), "step");
  return host;
}

struct bare {
  uv_loop_t loop;
  uv_async_t async;
  uv_timer_t timer;
  atomic_int back;
};

static void on_timer(uv_timer_t *timer) {
  (void)timer;
}

static void on_async(uv_async_t *async) {
  struct bare *bare = async->data;
  atomic_store(&bare->back, 1);
}

static void make_bare(struct bare *bare) {
  uv_loop_init(&bare->loop);
  uv_async_init(&bare->loop, &bare->async, on_async);
  bare->async.data = bare;
  uv_timer_init(&bare->loop, &bare->timer);
  uv_timer_start(&bare->timer, on_timer, 1000000, 0);
  atomic_init(&bare->back, 0);
}

/* ---- ticks ---- */

static double tick_host(tide_host *host) {
  uint64_t began = now();
  for (int i = 0; i < TICKS; i++)
    tide_tick(host, 100);
  return (double)(now() - began) / TICKS;
}

static double tick_bare(struct bare *bare) {
  uint64_t began = now();
  for (int i = 0; i < TICKS; i++)
    uv_run(&bare->loop, UV_RUN_NOWAIT);
  return (double)(now() - began) / TICKS;
}

/* ---- there and back ---- */

struct trip {
  tide_host *host;
  struct bare *bare;
  atomic_int back;
  atomic_int over;
  double ns;
};

static void on_post(tide_host *host, void *arg, int status) {
  struct trip *trip = arg;
  (void)host;
  (void)status;
  atomic_store(&trip->back, 1);
}

static void post_trips(void *arg) {
  struct trip *trip = arg;
  uint64_t began = now();
  for (int i = 0; i < TRIPS; i++) {
    atomic_store(&trip->back, 0);
    check(tide_post(trip->host, on_post, trip), "post");
    while (!atomic_load(&trip->back))
      ;
  }
  trip->ns = (double)(now() - began) / TRIPS;
  atomic_store(&trip->over, 1);
  tide_post(trip->host, on_post, trip);
}

static void async_trips(void *arg) {
  struct trip *trip = arg;
  struct bare *bare = trip->bare;
  uint64_t began = now();
  for (int i = 0; i < TRIPS; i++) {
    atomic_store(&bare->back, 0);
    uv_async_send(&bare->async);
    while (!atomic_load(&bare->back))
      ;
  }
  trip->ns = (double)(now() - began) / TRIPS;
  atomic_store(&trip->over, 1);
  uv_async_send(&bare->async);
}

static double trip_host(tide_host *host) {
  struct trip trip = {.host = host};
  uv_thread_t thread;
  uv_thread_create(&thread, post_trips, &trip);
  while (!atomic_load(&trip.over))
    tide_step(host, -1);
  uv_thread_join(&thread);
  while (tide_tick(host, 0) == TIDE_HAS_MORE)
    ;
  return trip.ns;
}

static double trip_bare(struct bare *bare) {
  struct trip trip = {.bare = bare};
  uv_thread_t thread;
  uv_thread_create(&thread, async_trips, &trip);
  while (!atomic_load(&trip.over))
    uv_run(&bare->loop, UV_RUN_ONCE);
  uv_thread_join(&thread);
  uv_run(&bare->loop, UV_RUN_NOWAIT);
  return trip.ns;
}

/* ---- a million ---- */

static long counted;

static void count(tide_host *host, void *arg, int status) {
  (void)host;
  (void)arg;
  counted += status == 0;
}

static void post_million(void *arg) {
  for (int i = 0; i < POSTS; i++)
    check(tide_post(arg, count, NULL), "post");
}

static void million(tide_host *host) {
  uv_thread_t thread;
  uint64_t began = now();
  uv_thread_create(&thread, post_million, host);
  while (counted < POSTS)
    tide_step(host, 100);
  uv_thread_join(&thread);
  printf("%d posts, called %ld: %.0f ns each\n", POSTS, counted,
         (double)(now() - began) / POSTS);
}

static void compare(const char *what, double *host, double *bare, int rounds) {
  double ratios[MOST];
  for (int i = 0; i < rounds; i++)
    ratios[i] = host[i] / bare[i];
  printf("%-34s %8.0f ns %8.0f ns %6.2fx\n", what, median(host, rounds),
         median(bare, rounds), median(ratios, rounds));
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20;
  double ticks[2][MOST], trips[2][MOST];
  tide_host *host = make_host();
  struct bare bare;
  if (rounds < 1 || rounds > MOST) {
    fprintf(stderr, "embed ROUNDS: 1 to %d\n", MOST);
    return 64;
  }
  make_bare(&bare);
  for (int i = 0; i < rounds; i++) {
    ticks[0][i] = tick_host(host);
    ticks[1][i] = tick_bare(&bare);
    trips[0][i] = trip_host(host);
    trips[1][i] = trip_bare(&bare);
  }
  printf("%-34s %11s %11s %7s\n", "embedding", "moontide", "bare libuv", "");
  compare("an idle tick", ticks[0], ticks[1], rounds);
  compare("a post from a thread, and back", trips[0], trips[1], rounds);
  million(host);
  return 0;
}
