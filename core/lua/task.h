/* task: the inside of `moontide.core.task`, the mechanism of the task runtime.
 *
 * A task is one userdata: what every slice reads and writes stands in its
 * struct, what it refers to in its user values, and what only few tasks have in
 * a table that is made with the first such field. To Lua it looks like a table
 * (task_fields.c). What a failure or a cancellation means is decided by the
 * library's Lua, which gives its functions as the policy below; a task that
 * just runs and ends never calls any.
 *
 * While a task lives it stands in the table `live`, at its place, so that the C
 * side may hold plain pointers to it; so does a coroutine in `threads`.
 */
#ifndef TIDE_LUA_TASK_H
#define TIDE_LUA_TASK_H

#include "../horizon.h"
#include "lua.h"

typedef enum tide_task_state {
  TASK_NEW,      /* queued, not started */
  TASK_READY,    /* queued, to go on */
  TASK_RAISE,    /* queued, to go on with its cancellation */
  TASK_RUNNING,  /* its code runs, or it is being closed */
  TASK_FINISHED, /* its function has returned */
  TASK_DONE,     /* it has ended */
  TASK_TURN,     /* yields, to be queued again */
  TASK_LEAVES,   /* yields, to end where it stands */
  TASK_SLEEPS,   /* suspended until `wake_at` */
  TASK_WAITS,    /* suspended for what lies on top of its coroutine's stack */
  TASK_JOINS,    /* its function is over, the tasks of its own scope are not */
} tide_task_state;

typedef enum tide_outcome {
  OUTCOME_NONE,
  OUTCOME_OK,
  OUTCOME_FAILED,
  OUTCOME_TIMED_OUT,
  OUTCOME_CANCELLED,
  OUTCOME_INTERRUPTED,
  OUTCOME_ABANDONED,
} tide_outcome;

typedef struct tide_scope tide_scope;

/* Copies of names for who may not ask Lua (task_note.c), by a task's place:
 * only those that were started with a name have one, in the first places. */
enum { TIDE_NAME_SIZE = 40, TIDE_NAMES = 64, TIDE_NAME_BLOCKS = 64 };
typedef char tide_task_names[TIDE_NAMES][TIDE_NAME_SIZE];

typedef struct tide_task {
  tide_far far; /* first: its entry in the clock */
  struct tide_sched *sched;
  tide_scope *scope;
  tide_scope *own;          /* that its spawns join; NULL: none yet */
  struct tide_task *behind; /* in the run queue */
  struct tide_task *older;  /* in the scope */
  struct tide_task *newer;
  lua_State *co;      /* NULL but from its first slice to its last */
  lua_State *paused;  /* where the hook of evaluation.h has; NULL: not */
  const void *source; /* TASK_WAITS: what it waits for, to compare */
  double deadline;    /* seconds of the clock; 0: none */
  double allowed;     /* the seconds it was given; 0: see deadline */
  double wake_at;
  double started_at; /* 0: not started */
  double ended_at;
  int place;  /* in `live`; 0: none */
  int thread; /* its coroutine's in `threads` */
  int args;
  int route; /* of the request it last served at once; 0: its options are
                another's */
  unsigned char state;
  unsigned char outcome;
  bool queued;
  bool listed; /* in its scope, and counted */
  bool timed;  /* of a kind: its times are reported, so they are exact */
  bool cancelled;
  bool failed;
  bool raise;     /* it goes on with its cancellation */
  bool told;      /* its cancellation was raised in it */
  bool claimed;   /* somebody awaits it */
  bool seen;      /* its own code has it */
  bool many;      /* its value is a table of several */
  bool has_value; /* a value may have been handed over */
  bool has_joiners;
  bool has_more;
  bool evaluation; /* its coroutine has the hook of evaluation.h */
  bool killed;     /* ... which raises at each instruction */
} tide_task;

/* User values of a task. */
enum {
  TASK_OPTS = 1,
  TASK_FN,
  TASK_VALUE, /* the arguments, then what a channel hands over, then results */
  TASK_SCOPE,
  TASK_JOINERS,
  TASK_MORE, /* the table of its other fields */
  TASK_VALUES = TASK_MORE,
};

struct tide_scope {
  tide_task *youngest;
  lua_Integer n;
  tide_task *owner; /* kept alive by the user value */
  double deadline;  /* that its tasks inherit; 0: none */
  bool cancelled;
  bool evaluation; /* its tasks are evaluations (evaluation.h) */
};

/* User values of a scope. */
enum { SCOPE_MORE = 1, SCOPE_OWNER, SCOPE_VALUES = SCOPE_OWNER };

/* What the library decides. */
enum {
  POLICY_EXPIRE = 1,   /* (t): its deadline has passed */
  POLICY_DROP,         /* (t): it was cancelled before it began */
  POLICY_END_BODY,     /* (t): its function is over, and it was cancelled */
  POLICY_END_LATER,    /* (t): the last of its own tasks has ended, likewise */
  POLICY_BREAK,        /* (t, how, error): it ended in another way */
  POLICY_SLICE_END,    /* (t, now) -> when a cancelled task is interrupted */
  POLICY_NEXT_AT,      /* (t) -> when to look at a cancelled task again, nil */
  POLICY_DUE,          /* (t, now): its clock entry is due */
  POLICY_PASS_ON,      /* (t, scope): it has not ended well */
  POLICY_OWN_ENDED,    /* (scope): of a task that ends */
  POLICY_WAKE_ALL,     /* (joiners) */
  POLICY_ON_END_ERROR, /* (t, error with traceback) */
  POLICY_DURATION,     /* (value, what, level) -> seconds, or raises */
  POLICY_ENDED,        /* (t): it has ended well; only while somebody asks */
  POLICY_COUNT = POLICY_ENDED
};

typedef struct tide_sched {
  tide_host *host;
  tide_horizon horizon;
  tide_task *current;       /* whose code runs right now */
  tide_task *first, **last; /* the run queue */
  tide_task *starting;      /* taken from it, and not resumed yet */
  int starting_place;       /* in `live` */
  int queued;
  int left;         /* slices in this turn of the pump */
  double budget;    /* of a turn, in seconds */
  double stop_at;   /* when this turn is over */
  lua_Integer live; /* tasks started and not ended */
  double now;       /* as the pump last read it: to a few slices */
  tide_task *spare; /* a task that ended unseen, to be used again */
  bool tells_ends;  /* there is a policy for tasks that have ended well */
  int due_fn;       /* in the registry: what is called for a clock entry */
  int live_ref;     /* and the table `live` */
  int ready_fn;     /* and what has a task ready for C to start */
  int outlived_fn;  /* and what goes on with a task that C has started */

  tide_task_names *names[TIDE_NAME_BLOCKS]; /* NULL: none there yet */

  int *free_places; /* a stack of the places in `live` that are free */
  int free_count, place_count, place_room;

  lua_State **threads; /* by number, as in the table; NULL: none there */
  int *free_threads;   /* a stack: first those with a coroutine are taken */
  int thread_free, thread_count, thread_room;

  struct {
    int live;              /* tasks of evaluations that have a coroutine */
    int late_fn;           /* in the registry: who cancels one that is late */
    int spared;            /* instructions of the library's in a row */
    bool pausing;          /* the running one is on its way to the pump */
    bool resumed;          /* it goes on behind a pause, not looked at yet */
    double began;          /* its slice */
    double looked;         /* the hook, or that */
    int period;            /* instructions until its next look */
    uint64_t patient_from; /* when code of the application's was first seen */
    struct tide_relay *relay;
  } evaluating; /* evaluation.h */
} tide_sched;

/* Seconds of Lua in a turn of the loop, unless who turns it has less. */
#define TIDE_PUMP_BUDGET 0.001

/* Upvalues of every function of the room. */
enum { UP_SCHED = 1, UP_LIVE, UP_THREADS, UP_POLICY, UP_TASK, UP_SCOPE };

static inline tide_sched *tide_sched_of(lua_State *L) {
  tide_sched *s = lua_touserdata(L, lua_upvalueindex(UP_SCHED));
  if (s->host == NULL)
    luaL_error(L, "the host has ended");
  return s;
}

static inline double tide_sched_time(const tide_sched *s) {
  return (double)tide_clock_now(&s->host->clock) / (double)TIDE_SEC;
}

static inline void tide_push_policy(lua_State *L, int which) {
  lua_rawgeti(L, lua_upvalueindex(UP_POLICY), which);
}

/* task.c: tasks and scopes */

tide_task *tide_check_task(lua_State *L, int index);
tide_scope *tide_check_scope(lua_State *L, int index);
/* Pushes a new task of the scope at `scope`, with a place, in no list. */
tide_task *tide_task_new(lua_State *L, tide_sched *s, int scope);
void tide_task_list(tide_sched *s, tide_task *t);
/* Frees its place, so that it lives on by its handles only. */
void tide_task_release(lua_State *L, tide_sched *s, tide_task *t);
void tide_task_append(tide_sched *s, tide_task *t);
extern const luaL_Reg tide_task_spawn_functions[];

/* task_fields.c: what Lua sees of both */
void tide_task_open_fields(lua_State *L, int up);
const char *tide_outcome_name(const tide_task *t);

/* task_wait.c: suspending, waking, the clock */
void tide_task_arm(lua_State *L, tide_sched *s, int index, tide_task *t);
void tide_task_arm_parked(lua_State *L, tide_sched *s);
int tide_task_due(lua_State *L);
void tide_task_on_due(tide_deadline *deadline);
extern const luaL_Reg tide_task_wait_functions[];

/* task_end.c */

/* Ends the task at `index`: nothing of it is left in any list. */
void tide_task_settle(lua_State *L, tide_sched *s, int index, tide_task *t,
                      tide_outcome outcome);
extern const luaL_Reg tide_task_end_functions[];

/* task_run.c: slices and the pump */
void tide_thread_take(lua_State *L, tide_sched *s, tide_task *t);
void tide_thread_give_back(tide_sched *s, tide_task *t);
/* The message handler at the base of each task. */
int tide_task_on_error(lua_State *L);
/* Resumes its coroutine with what is on its stack; `deadline` is when it is
 * interrupted. */
int tide_task_slice(lua_State *L, tide_sched *s, tide_task *t, int nargs,
                    double deadline, int *results);
/* What the end of a slice means. */
void tide_task_after(lua_State *L, tide_sched *s, int index, tide_task *t,
                     int status, int results);
extern const luaL_Reg tide_task_run_functions[];

/* task_look.c: for one who looks in */
extern const luaL_Reg tide_task_look_functions[];

/* task_note.c: has the slices of tasks named; see interrupt.h. */
void tide_task_name_slices(tide_host *host);
/* The kind of a slice that is a task's. */
extern const char tide_slice_of_task[];
/* Keeps a copy of its name, which is the string on the top of the stack. */
void tide_task_name(lua_State *L, tide_sched *s, const tide_task *t);
/* The place is another's now. */
static inline void tide_task_unname(tide_sched *s, int place) {
  unsigned block = (unsigned)place / TIDE_NAMES;
  if (block < TIDE_NAME_BLOCKS && s->names[block] != NULL)
    (*s->names[block])[place % TIDE_NAMES][0] = '\0';
}

/* task_call.c */

/* Starting a task from C, outside of Lua and without a call that may raise: for
 * what comes with each request. Borrows the task that ended unseen before, of
 * the scope it had, with a coroutine; NULL: there is none, or this is no time
 * to run one. `ready_fn` makes one. */
tide_task *tide_task_borrow(tide_sched *s);
int tide_task_ready(lua_State *L);
/* It was not needed. */
void tide_task_lend_back(tide_sched *s, tide_task *t);
/* Takes it back if it has ended well and nobody knows of it. Otherwise the
 * function `outlived_fn` is to be called, before anything else. */
bool tide_task_put_back(tide_sched *s, tide_task *t, int status, int results);
int tide_task_outlived(lua_State *L);

#endif
