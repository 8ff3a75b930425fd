/* alarm.c: a semaphore with a monotonic timeout. */
#include "alarm.h"

#include <errno.h>
#include <time.h>
#include <uv.h>

#include "clock.h"

int tide_alarm_init(tide_alarm *alarm) {
  atomic_init(&alarm->wake_at, TIDE_NEVER);
  return sem_init(&alarm->rings, 0, 0) == 0 ? 0 : uv_translate_sys_error(errno);
}

void tide_alarm_destroy(tide_alarm *alarm) {
  sem_destroy(&alarm->rings);
}

void tide_alarm_ring(tide_alarm *alarm) {
  int saved = errno; /* a signal handler may be ringing */
  sem_post(&alarm->rings);
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

bool tide_alarm_wait(tide_alarm *alarm, uint64_t at) {
  int rc;
  do
    rc = wait_until(&alarm->rings, at);
  while (rc != 0 && errno == EINTR);
  if (rc != 0)
    return false;
  while (sem_trywait(&alarm->rings) == 0)
    continue; /* several rings are one */
  return true;
}
