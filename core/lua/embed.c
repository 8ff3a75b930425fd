/* embed.c: `moontide.core.embed`: what a C program puts into the pipelines, and
 * hears of them. The Lua half is moontide/embed.lua.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mailbox.h"
#include "../versioned.h"
#include "embed.h"

#define METATABLE "moontide.embed.task"
#define HOLDER "moontide.embed.holder"

/* A task that runs. Two hold it: the host, until the task has ended, and the
 * program, until it has said that it is done, which may be after the host. */
struct tide_token {
  atomic_uint holders;
  tide_mailbox *mailbox;
  tide_letter letter; /* that it is done */
  int status;
  char *message; /* NULL: that of the status */
};

/* ---- tokens ----------------------------------------------------------------
 */

static void let_go(tide_token *token) {
  if (atomic_fetch_sub(&token->holders, 1) != 1)
    return;
  tide_mailbox_unref(token->mailbox);
  free(token->message);
  free(token);
}

static tide_token *new_token(tide_host *host) {
  tide_token *token = calloc(1, sizeof *token);
  if (token == NULL)
    return NULL;
  atomic_init(&token->holders, 2);
  token->mailbox = tide_mailbox_ref(host->mailbox);
  return token;
}

void tide_embed__push(lua_State *L, const char *function) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "moontide.embed");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
}

int tide_embed__protected(tide_embed_call *call, lua_CFunction body) {
  tide_host *host = call->host;
  lua_State *L = host->L;
  int rc = 0;
  if (L == NULL || !lua_checkstack(L, LUA_MINSTACK))
    return UV_ENOMEM;
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, call);
  if (!tide_host__enter(host, 1, 1, TIDE_ENTER_UNBOUNDED))
    rc = TIDE_ELUA;
  else if (lua_type(L, -1) == LUA_TSTRING)
    rc = TIDE_ESTATE;
  if (rc != 0)
    tide_host__set_error(host, lua_type(L, -1) == LUA_TSTRING
                                   ? lua_tostring(L, -1)
                                   : "an error that is no text");
  lua_pop(L, 1);
  return rc;
}

static int done(lua_State *L) {
  const tide_embed_call *call = lua_touserdata(L, 1);
  const tide_token *token = call->spec;
  tide_embed__push(L, "done");
  lua_pushlightuserdata(L, (void *)(uintptr_t)token);
  lua_pushinteger(L, token->status);
  lua_pushstring(L, token->message != NULL ? token->message
                                           : tide_strerror(token->status));
  lua_call(L, 3, 0);
  return 0;
}

static void on_done(tide_host *host, void *arg, int status) {
  tide_token *token = arg;
  tide_embed_call call = {.host = host, .spec = token};
  if (status == 0 && tide_embed__protected(&call, done) != 0)
    tide_log_write(host->log, TIDE_LOG_ERROR, "host", tide_last_error(host),
                   NULL, 0);
  let_go(token);
}

void tide_task_done(tide_token *token, int status, const char *message) {
  token->status = status <= 0 ? status : TIDE_EINVAL;
  token->message = message != NULL ? strdup(message) : NULL;
  token->letter = (tide_letter){.fn = on_done, .arg = token};
  if (tide_mailbox_send(token->mailbox, &token->letter) != 0)
    let_go(token); /* nobody is left who waits for it */
}

/* ---- tasks -----------------------------------------------------------------
 */

static const tide_task_spec *spec_of(lua_State *L) {
  return luaL_checkudata(L, 1, METATABLE);
}

static int drop_holder(lua_State *L) {
  tide_token **holder = lua_touserdata(L, 1);
  if (*holder != NULL)
    let_go(*holder);
  *holder = NULL;
  return 0;
}

/* What holds a token for the host: as long as Lua knows it. */
static tide_token **push_holder(lua_State *L) {
  tide_token **holder = lua_newuserdatauv(L, sizeof *holder, 0);
  *holder = NULL;
  if (luaL_newmetatable(L, HOLDER)) {
    lua_pushcfunction(L, drop_holder);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return holder;
}

/* run(spec) -> holder, token | nil, status, message */
static int run(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  const tide_task_spec *spec = spec_of(L);
  tide_token **holder = push_holder(L);
  int rc;
  if ((*holder = new_token(host)) == NULL)
    return luaL_error(L, "not enough memory");
  rc = spec->run(host, *holder, spec->arg);
  if (rc == TIDE_PENDING) {
    lua_pushlightuserdata(L, *holder);
    return 2;
  }
  let_go(*holder); /* the program's share */
  lua_pushnil(L);
  lua_pushinteger(L, rc);
  lua_pushstring(L, rc <= 0 ? tide_strerror(rc)
                            : "run returned neither 0, TIDE_PENDING nor a "
                              "negative error");
  return 3;
}

/* cancel(spec, token): the program is told that it is not wanted any more. */
static int cancel(lua_State *L) {
  const tide_task_spec *spec = spec_of(L);
  if (spec->cancel != NULL)
    spec->cancel(tide_lua_host(L), lua_touserdata(L, 2), spec->arg);
  return 0;
}

/* ---- what the program adds -------------------------------------------------
 */

int tide_embed__refuse(tide_host *host, int error, const char *why) {
  tide_host__set_error(host, why);
  return error;
}

/* "startup", "shutdown", or NULL with tide_last_error. */
static const char *pipeline_name(tide_host *host, tide_pipeline pipeline) {
  if (pipeline == TIDE_STARTUP_PIPELINE)
    return "startup";
  if (pipeline == TIDE_SHUTDOWN_PIPELINE)
    return "shutdown";
  tide_embed__refuse(host, TIDE_EINVAL,
                     "pipeline is neither TIDE_STARTUP_PIPELINE nor "
                     "TIDE_SHUTDOWN_PIPELINE");
  return NULL;
}

/* Milliseconds as seconds; nil for the default. */
static void set_seconds(lua_State *L, const char *key, int64_t ms) {
  if (ms < 0)
    return;
  lua_pushnumber(L, (lua_Number)ms / 1000);
  lua_setfield(L, -2, key);
}

static void set_names(lua_State *L, const char *key, const char *const *names) {
  lua_Integer i;
  if (names == NULL)
    return;
  lua_newtable(L);
  for (i = 0; names[i] != NULL; i++) {
    lua_pushstring(L, names[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, key);
}

void tide_phase_spec_init(tide_phase_spec *phase) {
  memset(phase, 0, sizeof *phase);
  phase->size = sizeof *phase;
  phase->timeout_ms = -1;
  phase->parallel = 1;
}

static int add_phase(lua_State *L) {
  const tide_embed_call *call = lua_touserdata(L, 1);
  const tide_phase_spec *phase = call->spec;
  tide_embed__push(L, "phase");
  lua_pushstring(L, call->pipeline);
  lua_pushstring(L, phase->name);
  lua_newtable(L);
  set_names(L, "after", phase->after);
  set_names(L, "before", phase->before);
  set_seconds(L, "timeout", phase->timeout_ms);
  lua_pushstring(L, phase->parallel ? "parallel" : "fifo");
  lua_setfield(L, -2, "mode");
  lua_call(L, 3, 0);
  return 0;
}

int tide_phase_add(tide_host *host, const tide_phase_spec *given) {
  tide_phase_spec phase;
  tide_embed_call call = {.host = host, .spec = &phase};
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  tide_phase_spec_init(&phase);
  if (!tide_struct_take(&phase, sizeof phase, given) || phase.name == NULL)
    return tide_embed__refuse(host, TIDE_EINVAL,
                              "a phase has a size and a name");
  call.pipeline = pipeline_name(host, phase.pipeline);
  return call.pipeline != NULL ? tide_embed__protected(&call, add_phase)
                               : TIDE_EINVAL;
}

void tide_task_spec_init(tide_task_spec *task) {
  memset(task, 0, sizeof *task);
  task->size = sizeof *task;
  task->timeout_ms = -1;
}

/* The spec as a userdata that run and cancel know again. */
static void push_spec(lua_State *L, const tide_task_spec *task) {
  tide_task_spec *own = lua_newuserdatauv(L, sizeof *own, 0);
  *own = *task;
  own->phase = own->name = NULL; /* the caller's; Lua has them */
  luaL_setmetatable(L, METATABLE);
}

static int add_task(lua_State *L) {
  const tide_embed_call *call = lua_touserdata(L, 1);
  const tide_task_spec *task = call->spec;
  luaL_newmetatable(L, METATABLE);
  lua_pop(L, 1);
  tide_embed__push(L, "task");
  lua_pushstring(L, call->pipeline);
  lua_pushstring(L, task->phase);
  lua_pushstring(L, task->name);
  lua_newtable(L);
  set_seconds(L, "timeout", task->timeout_ms);
  push_spec(L, task);
  lua_call(L, 5, 1);
  return 1;
}

int tide_task_add(tide_host *host, const tide_task_spec *given) {
  tide_task_spec task;
  tide_embed_call call = {.host = host, .spec = &task};
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  tide_task_spec_init(&task);
  if (!tide_struct_take(&task, sizeof task, given) || task.phase == NULL ||
      task.name == NULL || task.run == NULL)
    return tide_embed__refuse(
        host, TIDE_EINVAL,
        "a task has a size, a phase, a name and a function run");
  call.pipeline = pipeline_name(host, task.pipeline);
  return call.pipeline != NULL ? tide_embed__protected(&call, add_task)
                               : TIDE_EINVAL;
}

/* ---- checks ----------------------------------------------------------------
 */

void tide_check_spec_init(tide_check_spec *check) {
  memset(check, 0, sizeof *check);
  check->size = sizeof *check;
  check->every_ms = -1;
  check->critical = 1;
}

static int run_check(lua_State *L) {
  const tide_check_spec *check = lua_touserdata(L, lua_upvalueindex(2));
  int rc = check->run(tide_lua_host(L), check->arg);
  lua_pushboolean(L, rc == 0);
  lua_pushstring(L, rc == 0 ? NULL : tide_strerror(rc));
  return 2;
}

static void set_count(lua_State *L, const char *key, int count) {
  if (count == 0)
    return;
  lua_pushinteger(L, count);
  lua_setfield(L, -2, key);
}

static int add_check(lua_State *L) {
  const tide_embed_call *call = lua_touserdata(L, 1);
  const tide_check_spec *check = call->spec;
  tide_embed__push(L, "check");
  lua_pushstring(L, check->name);
  lua_newtable(L);
  set_seconds(L, "every", check->every_ms);
  lua_pushboolean(L, check->critical);
  lua_setfield(L, -2, "critical");
  set_count(L, "failures", check->failures);
  set_count(L, "successes", check->successes);
  tide_lua_push_host(L);
  *(tide_check_spec *)lua_newuserdatauv(L, sizeof *check, 0) = *check;
  lua_pushcclosure(L, run_check, 2);
  lua_call(L, 3, 0);
  return 0;
}

int tide_check_add(tide_host *host, const tide_check_spec *given) {
  tide_check_spec check;
  tide_embed_call call = {.host = host, .spec = &check};
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  tide_check_spec_init(&check);
  if (!tide_struct_take(&check, sizeof check, given) || check.name == NULL ||
      check.run == NULL)
    return tide_embed__refuse(host, TIDE_EINVAL,
                              "a check has a size, a name and a function run");
  return tide_embed__protected(&call, add_check);
}

/* ---- the program's own work ------------------------------------------------
 */

static int close_work(lua_State *L) {
  tide_work_gate_close(&tide_lua_host(L)->gate);
  return 0;
}

/* wait_work(fn) -> how much there is; fn is called once when nothing is. */
static int wait_work(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  uint64_t active = tide_work_gate_wait(&host->gate);
  lua_settop(L, active > 0 ? 1 : 0);
  tide_lua_keep(L, &host->work_fn, 1);
  lua_pushinteger(L, (lua_Integer)active);
  return 1;
}

static int describe_work(lua_State *L) {
  char text[256];
  tide_work_gate_describe(&tide_lua_host(L)->gate, text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

int tide_lua_open_embed(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"run", run},
      {"cancel", cancel},
      {"close_work", close_work},
      {"wait_work", wait_work},
      {"describe_work", describe_work},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  tide_lua_add_events(L);
  return 1;
}
