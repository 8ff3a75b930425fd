#include "log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "log_format.h"
#include "log_ring.h"

#define LEAST_RING (4 * TIDE_LOG_LINE)
#define CHUNK ((size_t)65536) /* what one write(2) is given: a pipe's size */
#define STACK ((size_t)256 * 1024)
/* How long the thread lets lines gather after the first, so that a busy loop
 * wakes it once and not for each line; ns. */
#define GATHER ((uint64_t)1000000)

typedef struct target {
  int fd; /* -1: none */
  bool owned;
} target;

struct tide_writer {
  uv_mutex_t lock;
  uv_cond_t work;     /* for the thread: something to do */
  uv_cond_t progress; /* for flush and close: something was done */
  uv_thread_t thread;
  tide_ring ring;
  target now;
  target next;        /* takes over at next_from, when has_next */
  uint64_t next_from; /* on the scale of ring.put */
  tide_log_format format;
  uint64_t dropped;
  uint64_t reported; /* of the dropped */
  bool has_next;
  bool held;    /* no thread for lines that are not important */
  bool started; /* the thread is there */
  bool idle;    /* ... and waits for work */
  bool hurry;   /* ... and is not to let lines gather */
  bool writing; /* ... and may be blocked in write(2) */
  bool broken;  /* nobody reads the present target any more */
  bool failing; /* its last write failed: no use in reporting losses yet */
  bool halfway; /* what it has of the oldest line is only the beginning */
  bool torn;    /* ... and the rest was given up */
  bool closing;
  bool done;      /* the thread touches nothing from here on */
  bool abandoned; /* ... unless this: then it frees the writer */
};

int tide__writer_open(tide_writer **out, int fd, size_t ring_size,
                      tide_log_format format) {
  tide_writer *writer = calloc(1, sizeof *writer);
  int err = UV_ENOMEM;

  *out = NULL;
  if (writer == NULL)
    return err;
  if (ring_size < LEAST_RING)
    ring_size = LEAST_RING;
  err = tide__ring_init(&writer->ring, ring_size, ring_size / 8);
  if (err != 0)
    goto no_ring;
  err = uv_mutex_init(&writer->lock);
  if (err != 0)
    goto no_lock;
  err = uv_cond_init(&writer->work);
  if (err != 0)
    goto no_work;
  err = uv_cond_init(&writer->progress);
  if (err != 0)
    goto no_progress;
  writer->now.fd = fd;
  writer->format = format;
  *out = writer;
  return 0;

no_progress:
  uv_cond_destroy(&writer->work);
no_work:
  uv_mutex_destroy(&writer->lock);
no_lock:
  tide__ring_free(&writer->ring);
no_ring:
  free(writer);
  return err;
}

static void close_target(target *t) {
  if (t->owned && t->fd >= 0)
    close(t->fd);
  t->fd = -1;
  t->owned = false;
}

static void free_writer(tide_writer *writer) {
  close_target(&writer->now);
  if (writer->has_next)
    close_target(&writer->next);
  uv_cond_destroy(&writer->progress);
  uv_cond_destroy(&writer->work);
  uv_mutex_destroy(&writer->lock);
  tide__ring_free(&writer->ring);
  free(writer);
}

/* ---- the thread -----------------------------------------------------------
 */

/* One write. Returns what went out, or a negative errno. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count) {
  for (;;) {
    ssize_t n = writev(fd, parts, count);
    if (n >= 0)
      return n;
    if (errno == EAGAIN) {
      /* Somebody else made the shared description non-blocking. */
      struct pollfd ready = {.fd = fd, .events = POLLOUT};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return -errno;
    }
  }
}

/* As write_parts, without the lock meanwhile. */
static ssize_t write_unlocked(tide_writer *writer, const struct iovec *parts,
                              int count) {
  int fd = writer->now.fd;

  writer->writing = true;
  uv_mutex_unlock(&writer->lock);
  ssize_t n = write_parts(fd, parts, count);
  uv_mutex_lock(&writer->lock);
  writer->writing = false;
  writer->failing = n < 0;
  if (n == -EPIPE || n == -EBADF)
    writer->broken = true;
  return n;
}

/* Where the lines for the present target end. */
static uint64_t target_end(const tide_writer *writer) {
  return writer->has_next ? writer->next_from : writer->ring.put;
}

/* Gives up the lines in these parts, which lie at the ring's start. */
static void drop_parts(tide_writer *writer, const struct iovec *parts,
                       int count) {
  for (int i = 0; i < count; i++) {
    const char *p = parts[i].iov_base;
    const char *end = p + parts[i].iov_len;
    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
      writer->dropped++;
      p++;
    }
    tide__ring_release(&writer->ring, parts[i].iov_len);
  }
}

static char byte_at(const struct iovec *parts, size_t index) {
  if (index < parts[0].iov_len)
    return ((const char *)parts[0].iov_base)[index];
  return ((const char *)parts[1].iov_base)[index - parts[0].iov_len];
}

/* Carries one chunk. Returns false when there was nothing to carry. */
static bool carry(tide_writer *writer) {
  struct iovec parts[2];
  int count = tide__ring_peek(&writer->ring, CHUNK, target_end(writer), parts);

  if (count == 0)
    return false;
  if (writer->broken || writer->now.fd < 0) {
    drop_parts(writer, parts, count);
    return true;
  }
  if (writer->torn) {
    struct iovec newline = {.iov_base = "\n", .iov_len = 1};
    if (write_unlocked(writer, &newline, 1) == 1)
      writer->torn = writer->halfway = false;
    else
      drop_parts(writer, parts, count);
    return true;
  }
  ssize_t n = write_unlocked(writer, parts, count);
  if (n > 0) {
    writer->halfway = byte_at(parts, (size_t)n - 1) != '\n';
    tide__ring_release(&writer->ring, (size_t)n);
  } else if (n < 0) {
    /* A full disk, most likely: this chunk is lost, the next one is tried. */
    writer->torn = writer->halfway;
    drop_parts(writer, parts, count);
  }
  return true;
}

/* Says once how many lines were lost. Returns false when there is nothing to
 * say or no use in it. */
static bool report_losses(tide_writer *writer) {
  uint64_t dropped = writer->dropped;
  tide_field lost = TIDE_F_INT("dropped", dropped - writer->reported);
  tide_record record = {.level = TIDE_LOG_WARN,
                        .component = "log",
                        .message = "log records were dropped",
                        .fields = &lost,
                        .count = 1};
  char line[TIDE_LOG_LINE];
  struct iovec part = {.iov_base = line};

  if (dropped == writer->reported || writer->broken || writer->failing ||
      writer->now.fd < 0)
    return false;
  clock_gettime(CLOCK_REALTIME, &record.time);
  part.iov_len = tide__log_format(line, writer->format, &record);
  if (write_unlocked(writer, &part, 1) >= 0)
    writer->reported = dropped;
  return true;
}

static void switch_target(tide_writer *writer) {
  if (!writer->has_next || writer->ring.released < writer->next_from)
    return;
  close_target(&writer->now);
  writer->now = writer->next;
  writer->has_next = false;
  writer->broken = false;
  writer->failing = false;
  writer->halfway = false;
  writer->torn = false;
}

/* Lets more lines come, unless it is urgent. */
static void gather(tide_writer *writer) {
  if (!writer->hurry)
    uv_cond_timedwait(&writer->work, &writer->lock, GATHER);
}

static void wait_for_work(tide_writer *writer) {
  writer->hurry = false;
  writer->idle = true;
  uv_cond_wait(&writer->work, &writer->lock);
  writer->idle = false;
  gather(writer);
}

static void run(void *arg) {
  tide_writer *writer = arg;

  uv_mutex_lock(&writer->lock);
  gather(writer); /* the first line has made this thread */
  while (!writer->closing) {
    switch_target(writer);
    if (carry(writer) || report_losses(writer)) {
      uv_cond_broadcast(&writer->progress);
      continue;
    }
    wait_for_work(writer);
  }
  writer->done = true;
  bool abandoned = writer->abandoned;
  uv_cond_broadcast(&writer->progress);
  uv_mutex_unlock(&writer->lock);
  if (abandoned)
    free_writer(writer);
}

/* ---- the others ------------------------------------------------------------
 */

/* With the lock held. When no thread can be had now, the next line tries
 * again; until then the ring keeps what it can. */
static void start_thread(tide_writer *writer) {
  uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                 .stack_size = STACK};
  sigset_t all, before;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  writer->started =
      uv_thread_create_ex(&writer->thread, &options, run, writer) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wake_thread(tide_writer *writer, bool urgent) {
  if (!writer->started && writer->held && !urgent)
    return;
  if (!writer->started)
    start_thread(writer);
  if (writer->idle || (urgent && !writer->hurry))
    uv_cond_signal(&writer->work);
  writer->idle = false;
  if (urgent)
    writer->hurry = true;
}

void tide__writer_put(tide_writer *writer, const char *line, size_t length,
                      bool important) {
  uv_mutex_lock(&writer->lock);
  const target *to = writer->has_next ? &writer->next : &writer->now;
  bool broken = writer->broken && !writer->has_next;
  if (to->fd >= 0) {
    if (broken || !tide__ring_put(&writer->ring, line, length, important))
      writer->dropped++;
    else
      wake_thread(writer,
                  important || writer->ring.used > writer->ring.size / 2);
  }
  uv_mutex_unlock(&writer->lock);
}

void tide__writer_hold(tide_writer *writer) {
  uv_mutex_lock(&writer->lock);
  writer->held = true;
  uv_mutex_unlock(&writer->lock);
}

void tide__writer_release(tide_writer *writer) {
  uv_mutex_lock(&writer->lock);
  writer->held = false;
  if (writer->ring.used > 0)
    wake_thread(writer, false);
  uv_mutex_unlock(&writer->lock);
}

void tide__writer_redirect(tide_writer *writer, int fd, bool owned) {
  uv_mutex_lock(&writer->lock);
  if (writer->has_next)
    close_target(&writer->next); /* its lines go to the newer one */
  else
    writer->next_from = writer->ring.put;
  writer->has_next = true;
  writer->next.fd = fd;
  writer->next.owned = owned;
  if (writer->started)
    wake_thread(writer, true);
  else
    switch_target(writer);
  uv_mutex_unlock(&writer->lock);
}

void tide__writer_set_format(tide_writer *writer, tide_log_format format) {
  uv_mutex_lock(&writer->lock);
  writer->format = format;
  uv_mutex_unlock(&writer->lock);
}

uint64_t tide__writer_dropped(tide_writer *writer) {
  uv_mutex_lock(&writer->lock);
  uint64_t dropped = writer->dropped;
  uv_mutex_unlock(&writer->lock);
  return dropped;
}

static bool wait_progress(tide_writer *writer, uint64_t until) {
  uint64_t now = uv_hrtime();

  return now < until &&
         uv_cond_timedwait(&writer->progress, &writer->lock, until - now) == 0;
}

/* Everything up to `position` has left, and so has the word about the losses
 * up to then, unless it cannot. */
static bool settled(const tide_writer *writer, uint64_t position,
                    uint64_t dropped) {
  return writer->ring.released >= position &&
         (writer->reported >= dropped || writer->broken || writer->failing ||
          !writer->started);
}

static bool flush_until(tide_writer *writer, uint64_t until) {
  uint64_t position = writer->ring.put;
  uint64_t dropped = writer->dropped;

  if (writer->ring.used > 0)
    wake_thread(writer, true);
  while (!settled(writer, position, dropped)) {
    if (!wait_progress(writer, until))
      return settled(writer, position, dropped);
  }
  return true;
}

/* A point of uv_hrtime, which saturates. */
static uint64_t point_after(uint64_t timeout_ns) {
  uint64_t now = uv_hrtime();

  return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

bool tide__writer_flush(tide_writer *writer, uint64_t timeout_ns) {
  uint64_t until = point_after(timeout_ns);

  uv_mutex_lock(&writer->lock);
  bool flushed = flush_until(writer, until);
  uv_mutex_unlock(&writer->lock);
  return flushed;
}

void tide__writer_close(tide_writer *writer, uint64_t timeout_ns) {
  uint64_t until = point_after(timeout_ns);

  uv_mutex_lock(&writer->lock);
  flush_until(writer, until);
  writer->closing = true;
  uv_thread_t thread = writer->thread;
  bool started = writer->started;
  if (started)
    wake_thread(writer, true);
  /* Out of write(2) the thread is done at once, whatever time is left. */
  while (started && !writer->done) {
    if (!writer->writing)
      uv_cond_wait(&writer->progress, &writer->lock);
    else if (!wait_progress(writer, until) && writer->writing)
      break;
  }
  writer->abandoned = started && !writer->done;
  bool abandoned = writer->abandoned;
  uv_mutex_unlock(&writer->lock);
  if (abandoned) {
    pthread_detach(thread);
    return;
  }
  if (started)
    uv_thread_join(&thread);
  free_writer(writer);
}
