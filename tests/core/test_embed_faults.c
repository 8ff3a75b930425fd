/* What the library asks of its system fails: memory, descriptors, threads. At
 * each place in turn, a call ends with an error that says so, or something less
 * is done; the host can be drained and freed, and nothing is left of it. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "embed_helpers.h"
#include "faults.h"

/* ---- what a run does -------------------------------------------------------
 */

struct run {
  tide_host *host;
  int port;
  int client;
  int posted, called; /* posts: each that was taken is called once */
  int tasks, done;    /* likewise */
  bool started;
  bool for_good; /* what is refused stays so: there is no end to wait for */
};

static int fine(tide_host *host, void *arg) {
  (void)host;
  (void)arg;
  return 0;
}

static int pend(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  ((struct run *)arg)->done++;
  tide_task_done(token, 0, "a message of its own");
  return TIDE_PENDING;
}

static void on_event(tide_host *host, const tide_event *event, void *arg) {
  (void)host;
  (void)event;
  (void)arg;
}

static void on_post(tide_host *host, void *arg, int status) {
  (void)host;
  (void)status;
  ((struct run *)arg)->called++;
}

/* An error of memory or of the system, and no other; true when there is none.
 */
static bool worked(int rc) {
  if (rc >= 0)
    return true;
  if (rc != UV_ENOMEM && rc != TIDE_ELUA && rc != UV_EMFILE && rc != UV_EAGAIN)
    fail_msg("%s: %s", tide_err_name(rc), tide_strerror(rc));
  assert_true(faults_happened());
  return false;
}

static void add_parts(struct run *run) {
  tide_phase_spec phase;
  tide_task_spec task;
  tide_check_spec check;
  tide_phase_spec_init(&phase);
  phase.name = "c";
  worked(tide_phase_add(run->host, &phase));
  tide_task_spec_init(&task);
  task.pipeline = TIDE_SHUTDOWN_PIPELINE;
  task.phase = "service-stop";
  task.name = "task";
  task.run = pend;
  task.arg = run;
  run->tasks += worked(tide_task_add(run->host, &task));
  tide_check_spec_init(&check);
  check.name = "c";
  check.run = fine;
  worked(tide_check_add(run->host, &check));
  worked(tide_on_event(run->host, on_event, NULL));
}

/* Loads and starts it; again, if that has failed once for want of memory. */
static bool start(struct run *run) {
  char script[512];
  int rc;
  snprintf(script, sizeof script,
           PLAIN "tide.http.listen { port = %d }:get('/', function(req, res)\n"
                 "  return { text = ('x'):rep(2000) }\n"
                 "end)\n"
                 "tide.startup:phase('world', function() tide.sleep(0) end)\n"
                 "tide.spawn(function() tide.sleep(0.001) end)\n",
           run->port);
  for (int tries = 0; tries < 2; tries++) {
    rc = tide_load_buffer(run->host, "test", script, strlen(script));
    if (rc == 0)
      break;
    assert_true(rc == TIDE_ESCRIPT || !worked(rc));
  }
  if (rc != 0)
    return false;
  add_parts(run);
  run->started = worked(tide_start(run->host));
  return run->started;
}

static void turn_to(struct run *run, tide_state state) {
  double end = now() + (run->for_good ? 0.05 : 10);
  while (tide_host_state(run->host) < state && now() < end)
    worked(tide_step(run->host, 1));
}

/* One request of a client that is not the library's; whatever it is answered,
 * 200, 500, 503 or nothing, it is the end of it. */
static void ask(struct run *run) {
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)run->port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n"
                                "Connection: close\r\n\r\n";
  struct pollfd ready = {.fd = run->client, .events = POLLIN};
  char text[4096];
  double end = now() + 5;
  if (connect(run->client, (struct sockaddr *)&to, sizeof to) != 0)
    return; /* there was nothing to listen with */
  assert_int_equal(send(run->client, request, sizeof request - 1, MSG_NOSIGNAL),
                   sizeof request - 1);
  while (now() < end) {
    worked(tide_step(run->host, 1));
    if (poll(&ready, 1, 0) == 1 && recv(run->client, text, sizeof text, 0) <= 0)
      return;
  }
  fail_msg("the request was not answered, nor its connection closed");
}

/* A host that is ready: a client, a post, a piece of work. */
static void serve(struct run *run) {
  ask(run);
  if (tide_host_state(run->host) != TIDE_READY)
    return; /* an uncaught error, for want of what was refused */
  run->posted += worked(tide_post(run->host, on_post, run));
  if (worked(tide_work_begin(run->host, "match")))
    assert_int_equal(tide_work_end(run->host, "match"), 0);
}

static void use(struct run *run) {
  int code;
  if (!start(run))
    return;
  turn_to(run, TIDE_READY);
  if (tide_host_state(run->host) == TIDE_READY)
    serve(run);
  code = tide_drain(run->host, "test");
  assert_true(code == 0 || tide_host_state(run->host) == TIDE_STOPPED);
  turn_to(run, TIDE_STOPPED);
  code = tide_exit_code(run->host);
  assert_true(code >= 0 || code == TIDE_ESTATE);
}

/* With sanitizers the arena gives each of Lua's blocks a malloc of its own: too
 * many, and test_embed_out_of_memory's matter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void *__real_realloc(void *block, size_t size);

static void *uncounted(void *arg, void *block, size_t old_size, size_t size) {
  (void)arg;
  (void)old_size;
  if (size > 0)
    return __real_realloc(block, size);
  free(block);
  return NULL;
}
#else
#define uncounted NULL
#endif

/* Returns how many calls there were. */
static long one(faults_kind kind, long at, bool for_good) {
  struct run run = {.client = -1, .for_good = for_good};
  tide_options options;
  int files = entries_of("/proc/self/fd");
  struct sockaddr_in any = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof any;
  bool stopped = false;
  long count;
  int rc;
  /* The client's address is a port that is free for the listener, too. */
  int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(probe, (struct sockaddr *)&any, sizeof any), 0);
  assert_int_equal(getsockname(probe, (struct sockaddr *)&any, &size), 0);
  run.port = ntohs(any.sin_port);
  close(probe);
  run.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  tide_options_init(&options);
  options.name = "faults";
  options.flags = TIDE_INTERRUPT;
  options.alloc = uncounted;
  if (getenv("TIDE_FAULT_AT") != NULL)
    options.flags |= TIDE_LOG_STDERR;
  faults_begin(kind, at, for_good);
  rc = tide_new(&run.host, &options);
  if (worked(rc)) {
    use(&run);
    stopped = tide_host_state(run.host) == TIDE_STOPPED;
    tide_free(run.host);
  } else {
    assert_null(run.host);
  }
  count = faults_end();
  close(run.client);
  assert_int_equal(run.called, run.posted);
  assert_int_equal(entries_of("/proc/self/fd"), files);
  if (run.started && !for_good) { /* one fault holds up no shutdown */
    if (!stopped)
      print_message("the host did not stop: call %ld has failed\n", at);
  }
  return count;
}

/* ---- the tests ---- */

/* TIDE_FAULT_AT=59 has that one alone, with the log. */
static void nothing_breaks(faults_kind kind, bool for_good) {
  const char *alone = getenv("TIDE_FAULT_AT");
  long all = alone != NULL ? 0 : one(kind, 0, false);
  assert_true(all > 3 || alone != NULL);
  for (long at = 1; at <= all; at++)
    one(kind, at, for_good);
  if (alone != NULL)
    one(kind, atol(alone), for_good);
}

static void memory_that_is_refused_once(void **state) {
  (void)state;
  nothing_breaks(FAULTS_MEMORY, false);
}

static void memory_that_is_refused_from_then_on(void **state) {
  (void)state;
  nothing_breaks(FAULTS_MEMORY, true);
}

static void a_system_that_refuses_once(void **state) {
  (void)state;
  nothing_breaks(FAULTS_SYSTEM, false);
}

static void a_system_that_refuses_from_then_on(void **state) {
  (void)state;
  nothing_breaks(FAULTS_SYSTEM, true);
}

/* Runs it as far as it goes. */
static void run_short_of_descriptors(tide_host *host) {
  static const char script[] = PLAIN "tide.http.listen { port = 0 }";
  int rc = tide_load_buffer(host, "t", script, sizeof script - 1), i;
  assert_true(rc == 0 || rc == TIDE_ELUA || rc == TIDE_ESCRIPT);
  if (rc != 0)
    return;
  assert_int_equal(tide_start(host), 0);
  for (i = 0; i < 1000 && tide_host_state(host) == TIDE_STARTING; i++)
    assert_true(tide_step(host, 1) >= 0);
  rc = tide_drain(host, "test");
  assert_true(rc == 0 || tide_host_state(host) == TIDE_STOPPED);
  for (i = 0; i < 1000 && tide_host_state(host) != TIDE_STOPPED; i++)
    assert_true(tide_step(host, 1) >= 0);
  assert_int_equal(tide_host_state(host), TIDE_STOPPED);
}

/* Whoever asks for one, libuv and luv too: there are so many descriptors, and
 * no more. (uv_loop_init of libuv 1.44 leaves its epoll behind when it fails
 * for the next one.) */
static void descriptors_run_out_wherever_they_do(void **state) {
  enum { MOST = 24 };
  struct rlimit before, limit;
  int made = 0, files, rc;
  (void)state;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  limit = before;
  for (int more = 0; more < MOST; more++) {
    tide_host *host;
    int next = dup(0); /* the lowest that is free */
    close(next);
    files = entries_of("/proc/self/fd");
    limit.rlim_cur = (rlim_t)(next + more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rc = tide_new(&host, NULL);
    if (rc == 0) {
      made++;
      run_short_of_descriptors(host);
      tide_free(host);
    } else {
      assert_true(rc == UV_EMFILE || rc == TIDE_ELUA);
      assert_null(host);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(entries_of("/proc/self/fd") <= files + (rc == UV_EMFILE));
  }
  assert_true(made > 0 && made < MOST);
  assert_int_equal(rc, 0);
  assert_int_equal(entries_of("/proc/self/fd"), files);
}

/* What a process asks for once, it has asked for then. */
static int warm_up(void **state) {
  (void)state;
  tide_free(started(PLAIN "tide.http.listen { port = 0 }"));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_refused_once),
      cmocka_unit_test(memory_that_is_refused_from_then_on),
      cmocka_unit_test(a_system_that_refuses_once),
      cmocka_unit_test(a_system_that_refuses_from_then_on),
      cmocka_unit_test(descriptors_run_out_wherever_they_do),
  };
  return cmocka_run_group_tests(tests, warm_up, NULL);
}
