/* embed_watch.c: what a C program hears of its host, and the numbers it asks
 * for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../http/http.h"
#include "embed.h"

struct tide_event_listener {
  struct tide_event_listener *next;
  int id;
  bool gone; /* taken out while events are being told */
  tide_event_fn fn;
  void *arg;
};

static int observe(lua_State *L) {
  tide_embed__push(L, "observe");
  lua_call(L, 0, 0);
  return 0;
}

int tide_on_event(tide_host *host, tide_event_fn fn, void *arg) {
  tide_embed_call call = {.host = host};
  struct tide_event_listener *listener, **last = &host->event_listeners;
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  if (fn == NULL)
    return tide_embed__refuse(host, TIDE_EINVAL, "a function is wanted");
  if ((rc = tide_embed__protected(&call, observe)) != 0)
    return rc;
  listener = calloc(1, sizeof *listener);
  if (listener == NULL)
    return UV_ENOMEM;
  listener->id = ++host->last_event_id;
  listener->fn = fn;
  listener->arg = arg;
  while (*last != NULL)
    last = &(*last)->next;
  *last = listener;
  return listener->id;
}

/* Frees those that are gone. */
static void sweep(tide_host *host) {
  struct tide_event_listener **link = &host->event_listeners, *at;
  while ((at = *link) != NULL) {
    if (at->gone) {
      *link = at->next;
      free(at);
    } else {
      link = &at->next;
    }
  }
}

int tide_off_event(tide_host *host, int id) {
  struct tide_event_listener *at = host->event_listeners;
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  while (at != NULL && (at->id != id || at->gone))
    at = at->next;
  if (at == NULL)
    return TIDE_EINVAL;
  at->gone = true;
  if (!host->telling)
    sweep(host);
  return 0;
}

static void tell(tide_host *host, const tide_event *event) {
  struct tide_event_listener *at;
  bool inside = host->telling;
  host->telling = true;
  for (at = host->event_listeners; at != NULL; at = at->next)
    if (!at->gone)
      at->fn(host, event, at->arg);
  host->telling = inside;
  if (!inside)
    sweep(host);
}

void tide_lua_free_listeners(tide_host *host) {
  struct tide_event_listener *at;
  for (at = host->event_listeners; at != NULL; at = at->next)
    at->gone = true;
  sweep(host);
}

static const char *const state_names[] = {"starting", "ready", "draining",
                                          "stopped", NULL};
static const char *const pipeline_names[] = {"startup", "shutdown", NULL};

/* moved(from, to, reason) */
static int moved(lua_State *L) {
  tide_event event = {.size = sizeof event, .kind = TIDE_EVENT_STATE};
  event.from = (tide_state)luaL_checkoption(L, 1, NULL, state_names);
  event.to = (tide_state)luaL_checkoption(L, 2, NULL, state_names);
  event.reason = lua_tostring(L, 3);
  tell(tide_lua_host(L), &event);
  return 0;
}

/* event("phase_began"|"phase_ended"|"task_ended", pipeline, phase, task,
 * outcome, ms) */
static int event(lua_State *L) {
  static const char *const kinds[] = {"phase_began", "phase_ended",
                                      "task_ended", NULL};
  tide_event event = {.size = sizeof event};
  event.kind = (tide_event_kind)(TIDE_EVENT_PHASE_BEGAN +
                                 luaL_checkoption(L, 1, NULL, kinds));
  event.pipeline = (tide_pipeline)luaL_checkoption(L, 2, NULL, pipeline_names);
  event.phase = lua_tostring(L, 3);
  event.task = lua_tostring(L, 4);
  event.outcome = lua_tostring(L, 5);
  event.ms = lua_tointeger(L, 6);
  event.from = event.to = tide_host_state(tide_lua_host(L));
  tell(tide_lua_host(L), &event);
  return 0;
}

/* What only Lua knows: embed.info() -> phase, slack in ms, tasks. */
static int read_info(lua_State *L) {
  const tide_embed_call *call = lua_touserdata(L, 1);
  tide_info *info = (tide_info *)(uintptr_t)call->spec;
  tide_embed__push(L, "info");
  lua_call(L, 0, 3);
  snprintf(call->host->info_phase, sizeof call->host->info_phase, "%s",
           luaL_optstring(L, -3, ""));
  info->slack_ms = luaL_optinteger(L, -2, -1);
  info->tasks = (uint64_t)luaL_optinteger(L, -1, 0);
  return 0;
}

static void fill_info(tide_host *host, tide_info *info) {
  tide_http_stats stats;
  tide_http_get_stats(host->http, &stats);
  info->state = tide_host_state(host);
  info->exit_code = host->stopped ? host->exit_code : -1;
  info->work = tide_work_gate_active(&host->gate);
  info->requests = stats.in_flight;
  info->connections = stats.connections;
  info->lua_bytes = (size_t)lua_gc(host->L, LUA_GCCOUNT) * 1024 +
                    (size_t)lua_gc(host->L, LUA_GCCOUNTB);
  info->lag_us = host->clock.late / 1000;
  info->uptime_ms = (int64_t)((tide_clock_mono() - host->started_at) / TIDE_MS);
  info->phase = host->info_phase;
  info->slack_ms = -1;
  info->log_dropped = tide_log_dropped(host->log);
}

int tide_get_info(tide_host *host, tide_info *out) {
  tide_info info = {.size = sizeof info};
  tide_embed_call call = {.host = host, .spec = &info};
  size_t size = out->size;
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  if (size < sizeof size)
    return tide_embed__refuse(host, TIDE_EINVAL, "tide_info.size is not set");
  fill_info(host, &info);
  rc = tide_embed__protected(&call, read_info);
  memcpy(out, &info, size < sizeof info ? size : sizeof info);
  out->size = size;
  return rc;
}

void tide_lua_add_events(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"moved", moved}, {"event", event}, {NULL, NULL}};
  tide_lua_push_host(L);
  luaL_setfuncs(L, functions, 1);
}
