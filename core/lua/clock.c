/* clock.c: `moontide.core.clock`: time in seconds, and timers by number.
 *
 * A timer of Lua's is a small integer. Its deadline lives in a slab, whose
 * places are reused after they fired or were withdrawn; what the number stands
 * for is the task library's business.
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "../horizon.h"
#include "lua.h"

#define CHUNK 256

typedef struct slab slab;

typedef struct timer {
  tide_deadline deadline; /* first: a deadline is its timer */
  slab *slab;
  int id;
  int next_free; /* id of the next free place, 0: none */
} timer;

struct slab {
  tide_host *host;
  timer **chunks;
  int chunk_count;
  int free; /* id of the first free place, 0: none */
  int on_due;
};

static slab *check_slab(lua_State *L) {
  tide_lua_host(L); /* there is one */
  return lua_touserdata(L, lua_upvalueindex(2));
}

static timer *timer_at(const slab *s, int id) {
  return &s->chunks[(id - 1) / CHUNK][(id - 1) % CHUNK];
}

static void put_free(slab *s, timer *t) {
  t->next_free = s->free;
  s->free = t->id;
}

static void on_due(tide_deadline *deadline) {
  timer *t = (timer *)deadline;
  slab *s = t->slab;
  lua_State *L = s->host->L;
  put_free(s, t); /* before the call, which may want a place */
  if (s->on_due == LUA_NOREF || s->host->closing)
    return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->on_due);
  lua_pushinteger(L, t->id);
  if (!tide_host__enter(s->host, 1, 0, TIDE_ENTER_CALLBACK))
    tide_host__uncaught(s->host, "timer");
}

static bool grow(slab *s) {
  timer **chunks =
      realloc(s->chunks, (size_t)(s->chunk_count + 1) * sizeof *chunks);
  timer *chunk;
  int i;
  if (chunks == NULL)
    return false;
  s->chunks = chunks;
  chunk = calloc(CHUNK, sizeof *chunk);
  if (chunk == NULL)
    return false;
  s->chunks[s->chunk_count++] = chunk;
  for (i = CHUNK - 1; i >= 0; i--) {
    chunk[i].deadline.fn = on_due;
    chunk[i].slab = s;
    chunk[i].id = (s->chunk_count - 1) * CHUNK + i + 1;
    put_free(s, &chunk[i]);
  }
  return true;
}

uint64_t tide_lua_to_ns(lua_Number seconds) {
  uint64_t ns;
  if (!(seconds > 0))
    return 0;
  if (seconds >= (lua_Number)(UINT64_MAX / TIDE_SEC / 2))
    return UINT64_MAX / 2;
  ns = (uint64_t)(seconds * (lua_Number)TIDE_SEC);
  while ((lua_Number)ns / (lua_Number)TIDE_SEC < seconds)
    ns++;
  return ns;
}

static void push_seconds(lua_State *L, uint64_t ns) {
  lua_pushnumber(L, (lua_Number)ns / (lua_Number)TIDE_SEC);
}

static int now(lua_State *L) {
  push_seconds(L, tide_clock_now(&tide_lua_host(L)->clock));
  return 1;
}

static int boot(lua_State *L) {
  push_seconds(L, tide_clock_boot());
  return 1;
}

static int wall(lua_State *L) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  lua_pushnumber(L, (lua_Number)ts.tv_sec + (lua_Number)ts.tv_nsec / 1e9);
  return 1;
}

static int set_on_due(lua_State *L) {
  tide_lua_keep(L, &check_slab(L)->on_due, 1);
  return 0;
}

static int add(lua_State *L) {
  slab *s = check_slab(L);
  uint64_t at = tide_lua_to_ns(luaL_checknumber(L, 1));
  timer *t;
  if (s->free == 0 && !grow(s))
    return luaL_error(L, "not enough memory for a timer");
  t = timer_at(s, s->free);
  if (tide_deadline_set(&s->host->clock, &t->deadline, at) != 0)
    return luaL_error(L, "not enough memory for a timer");
  s->free = t->next_free;
  lua_pushinteger(L, t->id);
  return 1;
}

static int cancel(lua_State *L) {
  slab *s = check_slab(L);
  lua_Integer id = luaL_checkinteger(L, 1);
  timer *t;
  if (id < 1 || id > (lua_Integer)s->chunk_count * CHUNK)
    return luaL_argerror(L, 1, "no such timer");
  t = timer_at(s, (int)id);
  if (tide_deadline_pending(&t->deadline)) {
    tide_deadline_clear(&s->host->clock, &t->deadline);
    put_free(s, t);
  }
  return 0;
}

static int pending(lua_State *L) {
  const tide_host *host = tide_lua_host(L);
  lua_pushinteger(L, (lua_Integer)tide_horizon_pending(host->horizon));
  return 1;
}

static int make_virtual(lua_State *L) {
  tide_clock_make_virtual(&tide_lua_host(L)->clock);
  return 0;
}

static void run_dry(lua_State *L, tide_host *host) {
  if (!tide_host__pump_dry(host))
    luaL_error(L, "the clock cannot advance: a task is always ready "
                  "(a loop around tide.sleep(0)?)");
}

/* Deadline by deadline, with all that they set off run in between, as time
 * itself would. */
static int advance(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  tide_clock *clock = &host->clock;
  uint64_t end;
  if (!clock->is_virtual)
    return luaL_error(L, "the clock is not virtual");
  end = clock->virtual_now + tide_lua_to_ns(luaL_checknumber(L, 1));
  run_dry(L, host);
  while (clock->count > 0 && clock->heap[0]->at <= end) {
    uint64_t at = clock->heap[0]->at;
    tide_clock_advance(clock,
                       at > clock->virtual_now ? at - clock->virtual_now : 0);
    run_dry(L, host);
  }
  tide_clock_advance(clock, end - clock->virtual_now);
  return 0;
}

static int free_slab(lua_State *L) {
  slab *s = lua_touserdata(L, 1);
  int i, id;
  for (id = 1; id <= s->chunk_count * CHUNK; id++)
    tide_deadline_clear(&s->host->clock, &timer_at(s, id)->deadline);
  for (i = 0; i < s->chunk_count; i++)
    free(s->chunks[i]);
  free(s->chunks);
  s->chunks = NULL;
  s->chunk_count = 0;
  return 0;
}

static void push_slab(lua_State *L, tide_host *host) {
  slab *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (slab){.host = host, .on_due = LUA_NOREF};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, free_slab);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
}

int tide_lua_open_clock(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  static const luaL_Reg functions[] = {
      {"now", now},         {"boot", boot},
      {"wall", wall},       {"on_due", set_on_due},
      {"add", add},         {"cancel", cancel},
      {"pending", pending}, {"make_virtual", make_virtual},
      {"advance", advance}, {NULL, NULL},
  };
  lua_newtable(L);
  tide_lua_push_host(L);
  push_slab(L, host);
  luaL_setfuncs(L, functions, 2);
  return 1;
}
