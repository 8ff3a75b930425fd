/* native_exit.c: the last words of a process that was ended behind our back. */
#include "native_exit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic(tide_host *) watched;

/* On whatever thread called exit. It ends here: the destructor of libuv, still
 * to come, joins the threads of its pool and aborts when it runs on one. */
static void on_exit_called(int status, void *arg) {
  tide_host *host = atomic_exchange(&watched, NULL);
  tide_field fields[2];
  (void)arg;
  if (host == NULL)
    return;
  fields[0] = TIDE_F_INT("exit_code", status & 0xff);
  fields[1] = TIDE_F_STR("state", tide_state_name(tide_host_state(host)));
  tide_log_write(host->log, TIDE_LOG_ERROR, "host",
                 "exit() was called past the host: no shutdown has run", fields,
                 2);
  fflush(NULL);
  tide_log_flush(host->log, host->log_close_timeout);
  _exit(status);
}

void tide_native_exit_watch(tide_host *host) {
  static bool registered; /* exit handlers cannot be taken back */
  atomic_store(&watched, host);
  if (!registered)
    registered = on_exit(on_exit_called, NULL) == 0;
}

void tide_native_exit_release(tide_host *host) {
  tide_host *expected = host;
  atomic_compare_exchange_strong(&watched, &expected, NULL);
}
