/* What may be called from any thread, from eight at once, also while the host
 * shuts down: nothing is lost, nothing comes twice. */
#include <sched.h>
#include <stdatomic.h>

#include "embed_helpers.h"

enum { THREADS = 8, EACH = 20000 };

struct team {
  tide_host *host;
  atomic_int go;
  int seen[THREADS]; /* the last number, on the loop thread */
  long called;
  long canceled;
  bool disorder;
};

struct post {
  struct team *team;
  int thread;
  int number;
};

static void on_post(tide_host *host, void *arg, int status) {
  struct post *post = arg;
  struct team *team = post->team;
  (void)host;
  if (post->number != team->seen[post->thread] + 1)
    team->disorder = true;
  team->seen[post->thread] = post->number;
  team->called++;
  if (status == TIDE_ECANCELED)
    team->canceled++;
  free(post);
}

struct member {
  struct team *team;
  int number;
  long accepted;
  pthread_t thread;
};

static void *post_many(void *arg) {
  struct member *member = arg;
  int i;
  while (!atomic_load(&member->team->go))
    sched_yield();
  for (i = 1; i <= EACH; i++) {
    struct post *post = malloc(sizeof *post);
    *post = (struct post){member->team, member->number, i};
    if (tide_post(member->team->host, on_post, post) != 0) {
      free(post); /* stopped: from here on none is taken */
      break;
    }
    member->accepted++;
  }
  return NULL;
}

static void begin(struct member *members, struct team *team,
                  void *(*fn)(void *)) {
  int i;
  for (i = 0; i < THREADS; i++) {
    members[i] = (struct member){.team = team, .number = i};
    assert_int_equal(pthread_create(&members[i].thread, NULL, fn, &members[i]),
                     0);
  }
  atomic_store(&team->go, 1);
}

static long end(struct member *members) {
  long accepted = 0;
  int i;
  for (i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    accepted += members[i].accepted;
  }
  return accepted;
}

static void posts_arrive_once_and_in_order(void **state) {
  struct team team = {.host = started(PLAIN)};
  struct member members[THREADS];
  double limit = now() + 60;
  (void)state;
  step_until(team.host, TIDE_READY);
  begin(members, &team, post_many);
  while (team.called < (long)THREADS * EACH && now() < limit)
    tide_step(team.host, 10);
  assert_int_equal(end(members), THREADS * EACH);
  assert_int_equal(team.called, THREADS * EACH);
  assert_false(team.disorder);
  assert_int_equal(stop(team.host), 0);
  assert_int_equal(team.called, THREADS * EACH);
}

static void a_storm_does_not_hold_up_a_shutdown(void **state) {
  struct team team = {.host = started(PLAIN)};
  struct member members[THREADS];
  long accepted;
  (void)state;
  step_until(team.host, TIDE_READY);
  begin(members, &team, post_many);
  assert_int_equal(tide_drain(team.host, "test"), 0);
  step_until(team.host, TIDE_STOPPED);
  accepted = end(members);
  tide_free(team.host); /* what is queued is called with TIDE_ECANCELED */
  assert_int_equal(team.called, accepted);
  assert_false(team.disorder);
}

static void *ask_all(void *arg) {
  struct member *member = arg;
  tide_host *host = member->team->host;
  int i;
  while (!atomic_load(&member->team->go))
    sched_yield();
  for (i = 0; i < 2000; i++) {
    int rc = tide_work_begin(host, i % 2 ? "match" : "session");
    assert_true(rc == 0 || rc == TIDE_EDRAINING || rc == TIDE_ECANCELED);
    assert_true(tide_host_state(host) >= TIDE_STARTING);
    if (i == 1000 && member->number == 0)
      tide_drain(host, "one of eight");
    if (rc == 0)
      assert_int_equal(tide_work_end(host, i % 2 ? "match" : "session"), 0);
  }
  tide_drain(host, "each of eight");
  return NULL;
}

static void all_of_it_at_once(void **state) {
  struct team team = {.host = started(PLAIN)};
  struct member members[THREADS];
  (void)state;
  step_until(team.host, TIDE_READY);
  begin(members, &team, ask_all);
  step_until(team.host, TIDE_STOPPED);
  end(members);
  assert_int_equal(tide_exit_code(team.host), 0);
  assert_int_equal(tide_drain(team.host, "late"), TIDE_ECANCELED);
  assert_int_equal(tide_kill(team.host, "late"), TIDE_ECANCELED);
  assert_int_equal(tide_work_begin(team.host, "match"), TIDE_ECANCELED);
  assert_int_equal(tide_post(team.host, on_post, NULL), TIDE_ECANCELED);
  tide_free(team.host);
}

/* ---- two hosts, a thread each ----------------------------------------------
 */

static void *run_one(void *arg) {
  int *code = arg, i;
  for (i = 0; i < 20; i++) {
    tide_host *host = started(
        PLAIN "tide.startup:phase('a', function() tide.sleep(0.001) end)\n"
              "tide.spawn(function() tide.sleep(0.002) "
              "tide.shutdown:run() end)");
    *code |= tide_run(host);
    tide_free(host);
  }
  return NULL;
}

static void hosts_run_on_several_threads(void **state) {
  pthread_t threads[4];
  int codes[4] = {0}, i;
  (void)state;
  for (i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_one, &codes[i]), 0);
  for (i = 0; i < 4; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(codes[i], 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(posts_arrive_once_and_in_order),
      cmocka_unit_test(a_storm_does_not_hold_up_a_shutdown),
      cmocka_unit_test(all_of_it_at_once),
      cmocka_unit_test(hosts_run_on_several_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
