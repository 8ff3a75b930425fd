#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <uv.h>

static atomic_bool on;
static atomic_long count;
static faults_kind counted;
static long fails_at;
static bool fails_on;

void faults_begin(faults_kind kind, long at, bool for_good) {
  counted = kind;
  fails_at = at;
  fails_on = for_good;
  atomic_store(&count, 0);
  atomic_store(&on, true);
}

long faults_end(void) {
  atomic_store(&on, false);
  return atomic_load(&count);
}

bool faults_happened(void) {
  return fails_at > 0 && atomic_load(&count) >= fails_at;
}

static bool fails(faults_kind kind) {
  long number;
  if (!atomic_load(&on) || kind != counted)
    return false;
  number = atomic_fetch_add(&count, 1) + 1;
  return fails_at > 0 &&
         (number == fails_at || (fails_on && number > fails_at));
}

/* A function of the library's calls, and what it returns when it fails. */
#define WRAP(kind, type, failed, name, parameters, arguments)                  \
  type __real_##name parameters;                                               \
  type __wrap_##name parameters;                                               \
  type __wrap_##name parameters {                                              \
    return fails(kind) ? (failed) : __real_##name arguments;                   \
  }

#define MEMORY(type, name, parameters, arguments)                              \
  WRAP(FAULTS_MEMORY, type, (errno = ENOMEM, NULL), name, parameters, arguments)
MEMORY(void *, malloc, (size_t size), (size))
MEMORY(void *, calloc, (size_t n, size_t size), (n, size))
MEMORY(void *, realloc, (void *block, size_t size), (block, size))
MEMORY(char *, strdup, (const char *text), (text))
MEMORY(char *, strndup, (const char *text, size_t length), (text, length))

#define SYSTEM(failed, name, parameters, arguments)                            \
  WRAP(FAULTS_SYSTEM, int, failed, name, parameters, arguments)
SYSTEM((errno = EMFILE, -1), socket, (int domain, int type, int protocol),
       (domain, type, protocol))
SYSTEM((errno = EMFILE, -1), eventfd, (unsigned value, int flags),
       (value, flags))
SYSTEM((errno = EAGAIN, -1), timer_create,
       (clockid_t clock, struct sigevent *event, timer_t *timer),
       (clock, event, timer))
SYSTEM(EAGAIN, pthread_create,
       (pthread_t * thread, const pthread_attr_t *attributes,
        void *(*fn)(void *), void *arg),
       (thread, attributes, fn, arg))
SYSTEM(UV_EAGAIN, uv_thread_create_ex,
       (uv_thread_t * thread, const uv_thread_options_t *options,
        uv_thread_cb fn, void *arg),
       (thread, options, fn, arg))
SYSTEM(UV_ENOMEM, uv_mutex_init, (uv_mutex_t * mutex), (mutex))
SYSTEM(UV_ENOMEM, uv_cond_init, (uv_cond_t * cond), (cond))
SYSTEM(UV_EMFILE, uv_async_init,
       (uv_loop_t * loop, uv_async_t *handle, uv_async_cb fn),
       (loop, handle, fn))
SYSTEM(UV_EMFILE, uv_loop_init, (uv_loop_t * loop), (loop))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  mode_t mode = 0;
  va_list arguments;
  if (fails(FAULTS_SYSTEM)) {
    errno = EMFILE;
    return -1;
  }
  va_start(arguments, flags);
  if ((flags & O_CREAT) != 0)
    mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return __real_open(path, flags, mode);
}
