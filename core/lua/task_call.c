/* task_call.c: tasks that callbacks of the loop start and run at once.
 *
 * Most handlers of requests end without awaiting. Then nobody has seen a task,
 * none is listed, and its userdata and its coroutine serve the next.
 */
#include "task.h"

/* Whether it has ended well and nobody has or heard of it. */
static bool is_unseen(const tide_task *t, int status, int results) {
  return status == LUA_OK && results <= 1 && !t->failed && !t->seen &&
         !t->cancelled && !t->has_more && !t->has_joiners && t->own == NULL;
}

bool tide_task_put_back(tide_sched *s, tide_task *t, int status, int results) {
  if (!is_unseen(t, status, results))
    return false;
  s->current = NULL;
  lua_settop(t->co, 0);
  tide_thread_give_back(s, t);
  t->state = TASK_NEW;
  s->spare = t;
  return true;
}

/* It is known from now on, as the task at `index`; how its first slice ended is
 * seen to. */
static void list_late(lua_State *L, tide_sched *s, int index, tide_task *t) {
  lua_getiuservalue(L, index, TASK_OPTS);
  t->timed = lua_getfield(L, -1, "kind") != LUA_TNIL;
  lua_pop(L, 2);
  tide_task_list(s, t);
  s->now = t->started_at = tide_sched_time(s);
}

tide_task *tide_task_borrow(tide_sched *s) {
  tide_task *t = s->spare;
  int number;
  if (t == NULL || s->current != NULL || s->thread_free == 0 ||
      t->scope->cancelled)
    return NULL;
  number = s->free_threads[s->thread_free - 1];
  if (s->threads[number - 1] == NULL)
    return NULL;
  s->thread_free--;
  s->spare = NULL;
  t->thread = number;
  t->co = s->threads[number - 1];
  t->deadline = t->scope->deadline;
  return t;
}

void tide_task_lend_back(tide_sched *s, tide_task *t) {
  tide_thread_give_back(s, t);
  s->spare = t;
}

/* ready(scope): has a task ready to be borrowed, with a coroutine. */
int tide_task_ready(lua_State *L) {
  tide_sched *s = tide_sched_of(L);
  if (s->spare == NULL) {
    tide_check_scope(L, 1);
    s->spare = tide_task_new(L, s, 1);
  }
  tide_thread_take(L, s, s->spare);
  tide_thread_give_back(s, s->spare);
  return 0;
}

/* outlived(began, kept, x, slot, status, results): goes on with the task whose
 * first slice is over: began(t, x, slot) comes before what the end of the slice
 * means, kept(t, x) behind it if the task lives. */
int tide_task_outlived(lua_State *L) {
  tide_sched *s = tide_sched_of(L);
  tide_task *t = s->current;
  int status = (int)lua_tointeger(L, 5);
  int results = (int)lua_tointeger(L, 6);
  s->current = NULL;
  lua_settop(L, 4);
  lua_rawgeti(L, lua_upvalueindex(UP_LIVE), t->place);
  list_late(L, s, 5, t);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 5);
  lua_pushvalue(L, 3);
  lua_pushvalue(L, 4);
  lua_call(L, 3, 0);
  tide_task_after(L, s, 5, t, status, results);
  if (t->state == TASK_DONE)
    return 0;
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 5);
  lua_pushvalue(L, 3);
  lua_call(L, 2, 0);
  return 0;
}
