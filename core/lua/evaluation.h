/* evaluation: tasks that run what somebody types at the console.
 *
 * Such code must not hold the loop, whatever it is, and can be stopped at any
 * instruction. So its coroutines carry a count hook, which
 *   - gives the loop its turn, by a yield of the whole task, where nothing but
 *     coroutines of the evaluation stands between the code and the scheduler;
 *   - raises the task's cancellation at the place where it runs, and after a
 *     grace does so at each instruction, which no pcall outlives;
 *   - watches the deadline and how long the loop is held where it cannot yield
 *     (table.sort, string.gsub, a coroutine that foreign C code resumes).
 * A coroutine that an evaluation resumes is linked as a relay: when the hook
 * yields inside of it, whoever resumed it yields as well, down to the task, and
 * they are all resumed again in the same order.
 *
 * Tasks are evaluations by their scope, and so are those that they spawn. A
 * count hook makes Lua about twice as slow: nothing else carries one.
 */
#ifndef TIDE_LUA_EVALUATION_H
#define TIDE_LUA_EVALUATION_H

#include "task.h"

/* A coroutine that an evaluation has resumed, on the C stack of the resume. */
struct tide_relay {
  struct tide_relay *outer;
  lua_State *from;
  lua_State *co;
};

/* ---- for the pump ---- */

/* The task has its coroutine; and is about to lose it. [task->evaluation] */
void tide_evaluation_begin(tide_sched *s, tide_task *t);
void tide_evaluation_end(tide_sched *s, tide_task *t);
/* A slice begins: until when it may last before the interrupt breaks it off. */
double tide_evaluation_slice(tide_sched *s, tide_task *t);

/* ---- for the tracked functions ---- */

/* The scheduler while evaluations live; NULL: nothing here matters. */
static inline tide_sched *tide_evaluating(const tide_host *host) {
  tide_sched *s = host != NULL ? host->sched : NULL;
  return s != NULL && s->evaluating.live > 0 ? s : NULL;
}

/* A coroutine is about to run: where an evaluation runs it, it has the hook. */
void tide_evaluation_enter(const tide_sched *s, lua_State *co);

#define TIDE_PAUSED (-2)

/* As tide_tracked_run, which it calls; TIDE_PAUSED: the coroutine has yielded
 * for the loop's sake, and so must L, to come back with `again`. */
int tide_evaluation_run(tide_sched *s, lua_State *L, lua_State *co, int nargs,
                        bool again);
/* Whether the coroutine stands where the hook has yielded: to others it runs.
 */
bool tide_evaluation_is_paused(lua_State *co);
/* Whether the hook of `target` is not for Lua to replace. */
bool tide_evaluation_guards(const tide_sched *s, lua_State *target);
/* Whether the value at `index` is what ends the running evaluation: then it may
 * come out of the hook, where a message handler could not be stopped. */
bool tide_evaluation_is_end(lua_State *L, int index);

/* ---- the room ---- */

/* `moontide.core.evaluation`, a module of its own: for the console. */
int tide_lua_open_evaluation(lua_State *L);

#endif
