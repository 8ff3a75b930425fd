#include "log_tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "owner.h"

enum { ROOM = 1 << 18 };

/* Before each line. */
typedef struct head {
  uint32_t length;
  uint32_t level;
} head;

typedef struct buffer {
  char *data; /* ROOM bytes */
  size_t used;
} buffer;

struct tide_log_tap {
  tide_owner owner; /* first: the handle points here */
  uv_async_t async;
  uv_mutex_t lock;
  tide_log_tap_fn fn;
  void *arg;
  buffer filling; /* by whoever writes */
  buffer taking;  /* by the loop */
  uint64_t lost;
  bool open; /* the handle may be sent to */
};

static void free_memory(tide_log_tap *tap) {
  free(tap->filling.data);
  free(tap->taking.data);
  free(tap);
}

static void on_wake(uv_async_t *handle) {
  tide_log_tap *tap = handle->data;
  tap->fn(tap->arg);
}

int tide_log_tap_open(tide_log_tap **out, uv_loop_t *loop, tide_log_tap_fn fn,
                      void *arg) {
  tide_log_tap *tap = calloc(1, sizeof *tap);
  int code = UV_ENOMEM;
  *out = NULL;
  if (tap == NULL)
    return code;
  tap->owner = (tide_owner){TIDE_OWNER_MAGIC, "log tail"};
  tap->fn = fn;
  tap->arg = arg;
  tap->filling.data = malloc(ROOM);
  tap->taking.data = malloc(ROOM);
  if (tap->filling.data == NULL || tap->taking.data == NULL)
    goto fail;
  code = uv_mutex_init(&tap->lock);
  if (code != 0)
    goto fail;
  code = uv_async_init(loop, &tap->async, on_wake);
  if (code != 0) {
    uv_mutex_destroy(&tap->lock);
    goto fail;
  }
  tap->async.data = tap;
  uv_unref((uv_handle_t *)&tap->async);
  tap->open = true;
  *out = tap;
  return 0;

fail:
  free_memory(tap);
  return code;
}

void tide_log_tap_put(tide_log_tap *tap, tide_log_level level, const char *line,
                      size_t length) {
  head h = {(uint32_t)length, (uint32_t)level};
  uv_mutex_lock(&tap->lock);
  buffer *to = &tap->filling;
  if (ROOM - to->used < sizeof h + length) {
    tap->lost++;
  } else {
    /* Under the lock, or the handle could be closed meanwhile. */
    if (to->used == 0 && tap->open)
      uv_async_send(&tap->async);
    memcpy(to->data + to->used, &h, sizeof h);
    memcpy(to->data + to->used + sizeof h, line, length);
    to->used += sizeof h + length;
  }
  uv_mutex_unlock(&tap->lock);
}

uint64_t tide_log_tap_take(tide_log_tap *tap, tide_log_tap_each fn, void *arg) {
  uv_mutex_lock(&tap->lock);
  buffer full = tap->filling;
  uint64_t lost = tap->lost;
  tap->filling = tap->taking;
  tap->filling.used = 0;
  tap->taking = full;
  tap->lost = 0;
  uv_mutex_unlock(&tap->lock);
  for (size_t at = 0; at < full.used;) {
    head h;
    memcpy(&h, full.data + at, sizeof h);
    at += sizeof h;
    fn(arg, (tide_log_level)h.level, full.data + at, h.length);
    at += h.length;
  }
  return lost;
}

void tide_log_tap_close(tide_log_tap *tap) {
  if (tap == NULL)
    return;
  uv_mutex_lock(&tap->lock);
  tap->open = false;
  uv_mutex_unlock(&tap->lock);
  uv_close((uv_handle_t *)&tap->async, NULL);
}

void tide_log_tap_free(tide_log_tap *tap) {
  if (tap == NULL)
    return;
  uv_mutex_destroy(&tap->lock);
  free_memory(tap);
}
