/* health.c: `moontide.core.health`: what probes are told about checks. */
#include "http.h"

/* health.set(name, ok, critical, extra_json | nil, expires_at | nil) */
static int set(lua_State *L) {
  double expires_at = luaL_optnumber(L, 5, 0);
  tide_health_result result = {
      .ok = lua_toboolean(L, 2),
      .critical = lua_toboolean(L, 3),
      .extra = luaL_optstring(L, 4, NULL),
      .expires_at = expires_at > 0 && expires_at < 1e10
                        ? (uint64_t)(expires_at * (double)TIDE_SEC)
                        : 0,
  };
  if (tide_health_set(tide_http_health(tide_lua_room(L)),
                      luaL_checkstring(L, 1), &result) != 0)
    return luaL_error(L, "out of memory");
  return 0;
}

/* health.remove(name) */
static int remove_check(lua_State *L) {
  tide_health_remove(tide_http_health(tide_lua_room(L)),
                     luaL_checkstring(L, 1));
  return 0;
}

/* health.ready() -> boolean, "ready" | "degraded" | "not_ready" */
static int ready(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  tide_health_status status = tide_health_judge(
      tide_http_health(tide_lua_room(L)),
      tide_lifecycle_state(&host->lifecycle), tide_clock_now(&host->clock));
  lua_pushboolean(L, status != TIDE_HEALTH_NOT_READY);
  lua_pushstring(L, tide_health_status_name(status));
  return 2;
}

/* health.body() -> the JSON of /health/ready */
static int body(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  const tide_health *health = tide_http_health(tide_lua_room(L));
  tide_health_facts facts = {
      .state = tide_lifecycle_state(&host->lifecycle),
      .phase = tide_http_drain_phase(tide_lua_room(L)),
      .now = tide_clock_now(&host->clock),
      .uptime = tide_clock_mono() - host->started_at,
  };
  size_t size = tide_health_body(health, &facts, NULL, 0) + 1;
  luaL_Buffer b;
  char *out = luaL_buffinitsize(L, &b, size);
  tide_health_body(health, &facts, out, size);
  luaL_pushresultsize(&b, size - 1);
  return 1;
}

int tide_lua_open_health(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"set", set}, {"remove", remove_check}, {"ready", ready}, {"body", body},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
