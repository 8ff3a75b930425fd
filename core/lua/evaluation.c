/* evaluation.c: the count hook of evaluations. */
#include "evaluation.h"

#include <time.h>

#include "tracked.h"

/* Instructions between two looks: some 0.1 ms, but those that allocate or call
 * into C may take much longer: then the look comes after this time. */
#define PERIOD 10000
#define LONG_SLICE (TIDE_MS / 4)
/* Who turns the loop by ticks has a budget for each, of which little may be
 * left; looks that are learned are this far apart. */
#define LEAST_SLICE (TIDE_MS / 50)
#define SHORT_SLICE (TIDE_MS / 20)
/* Where there is no timer for that, without TIDE_INTERRUPT, looks come by a
 * number of instructions that is learned. */
#define LEAST 50
#define FIRST 1000
/* In code of the application's: the next instruction that was typed may come
 * soon. Odd, for a loop may call it in the same rhythm. */
#define SHORT 101
/* Where the library runs, the next look comes sooner. A prime: a loop may call
 * the library in the same rhythm. */
#define SOON 997
/* How many instructions the library's own code has to finish what it does. */
#define SPARED 20000

/* How long code of the application's, which was never written to be paused
 * between any two instructions, runs on without that: in time of its own, for
 * another program's turn must not make a pause here. */
#define PATIENCE (20 * TIDE_MS)
/* How long the loop may be held where nothing can be paused: as long as by a
 * callback. */
#define HOLD 2.0
/* From the first raise to the killing, as task/alarm.lua has it. */
#define GRACE 1.0
/* The interrupt is the second line: it comes so long after the deadline. */
#define SECOND_LINE 1.0
/* How many levels of a stack are looked at for the application's code. */
#define LEVELS 32

static void hook(lua_State *L, lua_Debug *ar);

/* Setting it costs a step for each level of the stack, of which there may be
 * 200,000: not for nothing. */
static void set_hook(lua_State *L, int period) {
  if (lua_gethook(L) == hook && lua_gethookmask(L) == LUA_MASKCOUNT &&
      lua_gethookcount(L) == period)
    return;
  lua_sethook(L, hook, LUA_MASKCOUNT, period);
}

/* At each instruction, and at calls: C functions that call C functions. */
static void set_raising_hook(lua_State *L) {
  lua_sethook(L, hook, LUA_MASKCOUNT | LUA_MASKCALL, 1);
}

/* The look after `count` instructions: whether the next one comes after half or
 * twice as many. */
static void adapt(tide_sched *s, int count, double now) {
  double took = now - s->evaluating.looked;
  const uint64_t slice = SHORT_SLICE;
  const double wanted = (double)slice / (double)TIDE_SEC;
  int period = s->evaluating.period;
  s->evaluating.looked = now;
  if (s->host->interrupt != NULL)
    return;
  if (took > wanted * 2)
    s->evaluating.period = period / 2 > LEAST ? period / 2 : LEAST;
  else if (took < wanted / 2 && count >= period)
    s->evaluating.period = period * 2 < PERIOD ? period * 2 : PERIOD;
}

/* ---- asking the library ----------------------------------------------- */

static void push_task(lua_State *L, const tide_sched *s, const tide_task *t) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->live_ref);
  lua_rawgeti(L, -1, t->place);
  lua_remove(L, -2);
}

static bool is_shielded(lua_State *L, const tide_sched *s, const tide_task *t) {
  bool shielded;
  push_task(L, s, t);
  lua_getfield(L, -1, "is_shielded");
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  shielded = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return shielded;
}

/* Its time is over, or it has held the loop too long: the library cancels it.
 */
static void tell_late(lua_State *L, const tide_sched *s, const tide_task *t,
                      double held) {
  if (lua_rawgeti(L, LUA_REGISTRYINDEX, s->evaluating.late_fn) !=
      LUA_TFUNCTION) {
    lua_pop(L, 1);
    return;
  }
  push_task(L, s, t);
  if (held > 0)
    lua_pushnumber(L, held);
  else
    lua_pushnil(L);
  lua_call(L, 2, 0);
}

/* ---- raising ---------------------------------------------------------- */

static void raise_end(lua_State *L, const tide_sched *s, const tide_task *t) {
  push_task(L, s, t);
  lua_getfield(L, -1, "cancelled");
  lua_error(L);
}

/* From now on each instruction of the chain raises, so that whoever catches it
 * does not get far. */
static void kill_chain(lua_State *L, tide_sched *s, tide_task *t) {
  struct tide_relay *relay;
  t->killed = true;
  for (relay = s->evaluating.relay; relay != NULL; relay = relay->outer)
    set_raising_hook(relay->from);
  set_raising_hook(L);
  set_raising_hook(t->co);
  raise_end(L, s, t);
}

/* The task is cancelled, and no shield is over it: raises once, and after the
 * grace for good. In between it may clean up. */
static void end_it(lua_State *L, tide_sched *s, tide_task *t, double now) {
  double doomed_at;
  push_task(L, s, t);
  lua_getfield(L, -1, "doomed_at");
  doomed_at = lua_tonumber(L, -1);
  lua_pop(L, 1);
  if (doomed_at == 0) {
    lua_pushnumber(L, now + GRACE);
    lua_setfield(L, -2, "doomed_at");
  }
  lua_pop(L, 1);
  if (!t->told) {
    t->told = true;
    raise_end(L, s, t);
  }
  if (doomed_at != 0 && now >= doomed_at)
    kill_chain(L, s, t);
}

/* ---- pausing ---------------------------------------------------------- */

/* Whether only coroutines that can be paused stand between L and the pump. */
static bool can_pause(const tide_sched *s, lua_State *L, const tide_task *t) {
  const struct tide_relay *relay = s->evaluating.relay;
  for (; relay != NULL && relay->co == L; relay = relay->outer) {
    if (!lua_isyieldable(L))
      return false;
    L = relay->from;
  }
  return L == t->co && lua_isyieldable(L);
}

/* Whether all that runs, as far as one can see, was typed or loaded from a
 * text, and nothing of the application's, which comes from files. Where the
 * library calls what was typed (in a shield, with a timeout) that may await, so
 * a pause is nothing new there. */
static bool is_typed(lua_State *L) {
  lua_Debug ar;
  bool typed = false;
  int level;
  for (level = 0; level < LEVELS && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "S", &ar);
    if (*ar.what == 'C')
      continue;
    if (typed && tide_interrupt_is_library(&ar))
      continue;
    if (*ar.source == '@')
      return false;
    if (*ar.what == 'm')
      return true; /* below is only what has called it */
    typed = true;
  }
  return true;
}

static uint64_t cpu_time(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return (uint64_t)at.tv_sec * TIDE_SEC + (uint64_t)at.tv_nsec;
}

/* Whether a pause disturbs nobody, or no longer can be put off. */
static bool may_pause(tide_sched *s, lua_State *L) {
  uint64_t now;
  if (is_typed(L))
    return true;
  now = cpu_time();
  if (s->evaluating.patient_from == 0)
    s->evaluating.patient_from = now;
  return now - s->evaluating.patient_from >= PATIENCE;
}

/* The whole task yields, to be queued again behind the others, and the pump's
 * turn is over. */
static void pause_it(lua_State *L, tide_sched *s, tide_task *t) {
  set_hook(L, s->evaluating.period);
  t->paused = L;
  t->state = TASK_TURN;
  s->evaluating.pausing = true;
  s->left = 1;
  lua_yield(L, 0);
}

/* It cannot be paused here, inside of some function of C. The moment when that
 * returns may be short, as in a loop that sorts, so it is waited for. */
static void wait_for_return(lua_State *L, const tide_sched *s) {
  lua_sethook(L, hook, LUA_MASKCOUNT | LUA_MASKRET, s->evaluating.period);
}

/* A return hook must not yield: the next instruction's does. */
static void on_return(lua_State *L, const tide_sched *s, const tide_task *t) {
  if (can_pause(s, L, t))
    set_hook(L, 1);
}

/* ---- the hook --------------------------------------------------------- */

/* The library keeps books that other tasks must not see half written, so
 * neither a pause nor a raise comes there. Not for long: it may have been given
 * something endless to do. */
static bool is_spared(tide_sched *s, const tide_task *t, lua_State *L,
                      lua_Debug *ar) {
  if (s->evaluating.spared >= SPARED || !tide_interrupt_in_library(L, ar)) {
    s->evaluating.spared = 0;
    if (lua_gethookcount(L) == SOON)
      set_hook(L, s->evaluating.period);
    return false;
  }
  s->evaluating.spared += lua_gethookcount(L);
  if (!t->killed)
    set_hook(L, SOON);
  return true;
}

/* Not even a shield lasts beyond the grace of a late task. */
static bool is_overdue(const tide_task *t, double now) {
  return t->deadline != 0 && now >= t->deadline + GRACE;
}

/* Only a count hook may yield. A call hook has the next instruction do so. */
static void look(lua_State *L, tide_sched *s, tide_task *t, bool may_yield) {
  double now = tide_sched_time(s);
  double held = now - s->evaluating.began;
  bool pausable = can_pause(s, L, t);
  bool resumed = s->evaluating.resumed;
  s->evaluating.resumed = false;
  adapt(s, lua_gethookcount(L), now);
  if (!t->cancelled && t->deadline != 0 && t->deadline <= now)
    tell_late(L, s, t, 0);
  else if (!t->cancelled && !pausable && held >= HOLD)
    tell_late(L, s, t, held);
  if (t->cancelled && (!is_shielded(L, s, t) || is_overdue(t, now)))
    end_it(L, s, t, now);
  if (!pausable)
    wait_for_return(L, s);
  else if (resumed) /* it has had its pause */
    set_hook(L, s->evaluating.period);
  else if (!may_yield)
    set_hook(L, 1);
  else if (may_pause(s, L))
    pause_it(L, s, t);
  else
    set_hook(L, SHORT);
}

/* A coroutine may leave the evaluation that it had the hook of: there the hook
 * takes itself off. */
static void hook(lua_State *L, lua_Debug *ar) {
  const tide_host *host = tide_host__of(L);
  tide_sched *s = tide_evaluating(host);
  tide_task *t = s != NULL ? s->current : NULL;
  if (t == NULL || !t->evaluation) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (host->interrupt != NULL)
    tide_interrupt_note_line(host->interrupt, L);
  if (is_spared(s, t, L, ar))
    return;
  if (t->killed)
    kill_chain(L, s, t);
  else if (ar->event == LUA_HOOKRET)
    on_return(L, s, t);
  else
    look(L, s, t, ar->event == LUA_HOOKCOUNT);
}

/* ---- for the pump ----------------------------------------------------- */

void tide_evaluation_begin(tide_sched *s, tide_task *t) {
  t->evaluation = true;
  if (s->evaluating.live++ == 0)
    s->evaluating.period = s->host->interrupt != NULL ? PERIOD : FIRST;
  set_hook(t->co, s->evaluating.period);
}

void tide_evaluation_end(tide_sched *s, tide_task *t) {
  t->evaluation = false;
  s->evaluating.live--;
  lua_sethook(t->co, NULL, 0, 0);
}

static uint64_t longest_slice(const tide_sched *s) {
  uint64_t budget = (uint64_t)(s->budget * (double)TIDE_SEC);
  if (budget > LONG_SLICE)
    return LONG_SLICE;
  return budget > LEAST_SLICE ? budget : LEAST_SLICE;
}

/* It goes on. What has met its end in a pause must not get as far as a call
 * into C that takes long: the hook comes with its first instruction. */
static bool look_at_once(tide_task *t, double now) {
  lua_State *paused = t->paused;
  t->paused = NULL;
  if (paused == NULL || (t->cancelled ? t->told && !t->killed
                                      : t->deadline == 0 || t->deadline > now))
    return false;
  set_hook(paused, 1);
  return true;
}

double tide_evaluation_slice(tide_sched *s, tide_task *t) {
  double now = tide_sched_time(s);
  uint64_t mono = tide_clock_mono();
  s->evaluating.began = s->evaluating.looked = now;
  s->evaluating.patient_from = 0;
  s->evaluating.spared = 0;
  s->evaluating.relay = NULL;
  s->evaluating.resumed = look_at_once(t, now);
  tide_interrupt_hasten(s->host->interrupt, hook, mono,
                        mono + longest_slice(s));
  if (t->cancelled)
    return now + HOLD;
  return t->deadline != 0 ? t->deadline + SECOND_LINE : 0;
}

/* ---- for the tracked functions ---------------------------------------- */

bool tide_evaluation_is_paused(lua_State *co) {
  lua_Debug ar;
  bool paused;
  if (lua_gethook(co) != hook || lua_status(co) != LUA_YIELD ||
      !lua_getstack(co, 0, &ar))
    return false;
  lua_getinfo(co, "Sf", &ar);
  paused = *ar.what != 'C' || tide_tracked_relays(lua_tocfunction(co, -1));
  lua_pop(co, 1);
  return paused;
}

void tide_evaluation_enter(const tide_sched *s, lua_State *co) {
  if (s->current != NULL && s->current->evaluation && lua_gethook(co) == NULL)
    set_hook(co, s->evaluating.period); /* made before, or elsewhere */
}

int tide_evaluation_run(tide_sched *s, lua_State *L, lua_State *co, int nargs,
                        bool again) {
  struct tide_relay relay = {s->evaluating.relay, L, co};
  int results;
  if (!again && tide_evaluation_is_paused(co)) {
    lua_pop(L, nargs);
    lua_pushliteral(L, "cannot resume non-suspended coroutine");
    return -1;
  }
  if (s->current == NULL || !s->current->evaluation)
    return tide_tracked_run(s->host->interrupt, L, co, nargs);
  tide_evaluation_enter(s, co);
  s->evaluating.relay = &relay;
  results = tide_tracked_run(s->host->interrupt, L, co, nargs);
  s->evaluating.relay = relay.outer;
  return s->evaluating.pausing ? TIDE_PAUSED : results;
}

bool tide_evaluation_guards(const tide_sched *s, lua_State *target) {
  return lua_gethook(target) == hook ||
         (s->current != NULL && s->current->evaluation);
}

bool tide_evaluation_is_end(lua_State *L, int index) {
  const tide_sched *s = tide_evaluating(tide_host__of(L));
  const tide_task *t = s != NULL ? s->current : NULL;
  bool is_end;
  if (t == NULL || !t->evaluation || !t->cancelled)
    return false;
  index = lua_absindex(L, index);
  push_task(L, s, t);
  lua_getfield(L, -1, "cancelled");
  is_end = lua_rawequal(L, index, -1);
  lua_pop(L, 2);
  return is_end;
}

/* ---- the room --------------------------------------------------------- */

static tide_sched *sched_of(lua_State *L) {
  return tide_lua_host(L)->sched;
}

/* evaluates(scope): the tasks of the scope are evaluations. */
static int evaluates(lua_State *L) {
  tide_scope *scope = lua_touserdata(L, 1);
  luaL_argexpected(L, scope != NULL, 1, "scope");
  scope->evaluation = true;
  return 0;
}

/* kill(t): the evaluation, which is cancelled, does not outlive its next
 * instruction. */
static int kill_task(lua_State *L) {
  tide_task *t = lua_touserdata(L, 1);
  luaL_argexpected(L, t != NULL, 1, "task");
  if (!t->evaluation || t->co == NULL)
    return 0;
  t->killed = true;
  set_raising_hook(t->co);
  return 0;
}

/* on_late(fn): fn(task, held) cancels an evaluation whose deadline has passed,
 * or that has held the loop for so many seconds. */
static int on_late(lua_State *L) {
  tide_lua_keep(L, &sched_of(L)->evaluating.late_fn, 1);
  return 0;
}

/* answers(): what the evaluation that runs does from here on is the library's,
 * which gives way by itself: its task is one like others. */
static int answers(lua_State *L) {
  tide_sched *s = sched_of(L);
  if (s->current != NULL && s->current->evaluation)
    tide_evaluation_end(s, s->current);
  return 0;
}

/* live() -> how many tasks of evaluations have begun and not ended */
static int live(lua_State *L) {
  lua_pushinteger(L, sched_of(L)->evaluating.live);
  return 1;
}

int tide_lua_open_evaluation(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"evaluates", evaluates}, {"kill", kill_task},  {"on_late", on_late},
      {"live", live},           {"answers", answers}, {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
