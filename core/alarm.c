/* alarm.c: a semaphore with a monotonic timeout, and an eventfd beside it where
 * the sleeper has sockets as well. */
#include "alarm.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "clock.h"
#include "fork.h"

int tide_alarm_init(tide_alarm *alarm) {
  atomic_init(&alarm->wake_at, TIDE_NEVER);
  atomic_init(&alarm->fd, -1);
  return sem_init(&alarm->rings, 0, 0) == 0 ? 0 : uv_translate_sys_error(errno);
}

void tide_alarm_destroy(tide_alarm *alarm) {
  int fd = atomic_exchange(&alarm->fd, -1);
  if (fd >= 0)
    close(fd);
  sem_destroy(&alarm->rings);
}

int tide_alarm_by_fd(tide_alarm *alarm) {
  int fd, rc = 0;
  bool held;
  if (atomic_load(&alarm->fd) >= 0)
    return 0;
  held = tide_fork_hold_off();
  fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0)
    rc = uv_translate_sys_error(errno);
  else
    atomic_store(&alarm->fd, fd);
  tide_fork_go_ahead(held);
  return rc;
}

void tide_alarm_ring(tide_alarm *alarm) {
  int saved = errno; /* a signal handler may be ringing */
  int fd;
  sem_post(&alarm->rings);
  fd = atomic_load(&alarm->fd);
  if (fd >= 0 && eventfd_write(fd, 1) != 0)
    errno = EAGAIN; /* it is full of rings: enough to wake anybody */
  errno = saved;
}

static int wait_until(sem_t *rings, uint64_t at) {
  struct timespec ts;
  if (at == TIDE_NEVER)
    return sem_wait(rings);
  ts.tv_sec = (time_t)(at / TIDE_SEC);
  ts.tv_nsec = (long)(at % TIDE_SEC);
  return sem_clockwait(rings, CLOCK_MONOTONIC, &ts);
}

/* Several rings are one. */
static bool take_rings(tide_alarm *alarm) {
  bool any = false;
  while (sem_trywait(&alarm->rings) == 0)
    any = true;
  return any;
}

bool tide_alarm_wait(tide_alarm *alarm, uint64_t at) {
  int rc;
  do
    rc = wait_until(&alarm->rings, at);
  while (rc != 0 && errno == EINTR);
  if (rc != 0)
    return false;
  take_rings(alarm);
  return true;
}

static void poll_until(struct pollfd *fds, nfds_t count, uint64_t at) {
  uint64_t now = tide_clock_mono();
  uint64_t left = now < at ? at - now : 0;
  struct timespec ts = {.tv_sec = (time_t)(left / TIDE_SEC),
                        .tv_nsec = (long)(left % TIDE_SEC)};
  if (ppoll(fds, count, at == TIDE_NEVER ? NULL : &ts, NULL) < 0)
    for (nfds_t i = 0; i < count; i++)
      fds[i].revents = 0;
}

/* The semaphore is looked at first: a ring may have come before the descriptor
 * was there. The descriptor is emptied before the semaphore, so that a ring in
 * between is seen now or wakes the next wait. */
bool tide_alarm_poll(tide_alarm *alarm, uint64_t at, struct pollfd *fds,
                     nfds_t count) {
  bool rung = take_rings(alarm);
  eventfd_t rings;
  fds[0] = (struct pollfd){.fd = atomic_load(&alarm->fd), .events = POLLIN};
  poll_until(fds, count, rung ? 0 : at);
  if (fds[0].revents != 0 && eventfd_read(fds[0].fd, &rings) != 0)
    fds[0].revents = 0; /* nothing in it after all */
  return take_rings(alarm) || rung;
}
