// A C++17 program: callbacks of every kind that meet an error of Lua's, and
// objects on the stack between it and them, whose destructors run all the same.
#include <moontide.h>

#include <cstdio>
#include <cstring>
#include <string>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
}

namespace {

int destroyed = 0;

struct Guard {
  ~Guard() { ++destroyed; }
};

int failures = 0;

void expect(bool what, const char *text) {
  if (what)
    return;
  std::fprintf(stderr, "not so: %s\n", text);
  ++failures;
}

int fail_in_lua(tide_host *host) {
  Guard guard;
  lua_State *L = tide_lua(host);
  luaL_loadstring(L, "error 'from Lua'");
  return tide_call(host, 0, 0); // returns; nothing jumps over the guard
}

void on_post(tide_host *host, void *arg, int status) {
  Guard guard;
  expect(status == 0, "a post is called");
  *static_cast<int *>(arg) = fail_in_lua(host);
}

int on_task(tide_host *host, tide_token *token, void *arg) {
  Guard guard;
  (void)token;
  *static_cast<int *>(arg) = fail_in_lua(host);
  return 0;
}

int on_check(tide_host *host, void *arg) {
  Guard guard;
  *static_cast<int *>(arg) = fail_in_lua(host);
  return 0;
}

void on_event(tide_host *host, const tide_event *event, void *arg) {
  Guard guard;
  (void)event;
  *static_cast<int *>(arg) = fail_in_lua(host);
}

void on_close(tide_host *host, void *arg) {
  Guard guard;
  *static_cast<int *>(arg) = tide_call(host, 0, 0); // Lua is not for it
}

} // namespace

int main() {
  tide_host *host = nullptr;
  int post = 0, task = 0, check = 0, event = 0;
  const std::string script =
      "local tide = require 'moontide'\n"
      "tide.config { manage = false, shutdown = { linger = 0 } }\n";
  expect(tide_new(&host, nullptr) == 0, "tide_new");
  tide_task_spec spec;
  tide_task_spec_init(&spec);
  spec.pipeline = TIDE_SHUTDOWN_PIPELINE;
  spec.phase = "service-stop";
  spec.name = "in C++";
  spec.run = on_task;
  spec.arg = &task;
  expect(tide_task_add(host, &spec) == 0, "tide_task_add");
  tide_check_spec checked;
  tide_check_spec_init(&checked);
  checked.name = "in C++";
  checked.every_ms = 5;
  checked.run = on_check;
  checked.arg = &check;
  expect(tide_check_add(host, &checked) == 0, "tide_check_add");
  expect(tide_on_event(host, on_event, &event) > 0, "tide_on_event");
  expect(tide_load_buffer(host, "s", script.data(), script.size()) == 0,
         "tide_load_buffer");
  expect(tide_start(host) == 0, "tide_start");
  expect(tide_post(host, on_post, &post) == 0, "tide_post");
  while (post == 0 || check == 0)
    if (tide_step(host, 100) < 0)
      break;
  tide_drain(host, "test");
  expect(tide_run(host) == 0, "tide_run");
  expect(post == TIDE_ELUA, "an error in a post is returned");
  expect(check == TIDE_ELUA, "an error in a check is returned");
  expect(task == TIDE_ELUA, "an error in a task is returned");
  expect(event == TIDE_ELUA, "an error in an event is returned");
  expect(destroyed >= 8, "destructors ran");
  expect(std::strstr(tide_last_error(host), "from Lua") != nullptr,
         "tide_last_error has the message");
  int closed = 0;
  expect(tide_close(host, on_close, &closed) == 0, "tide_close");
  for (int i = 0; i < 100 && closed == 0; i++)
    tide_step(host, 100);
  expect(closed == TIDE_ESTATE, "tide_close calls back");
  tide_free(host);
  std::printf("%s %d\n", tide_version_string(), failures);
  return failures;
}
