/* close: leaving a loop, and who must be told of it first. */
#ifndef TIDE_CLOSE_H
#define TIDE_CLOSE_H

#include "host.h"

/* What holds a pointer to the host and may outlive it: a module's object that
 * a Lua state of the caller's still knows. */
struct tide_guest {
  tide_guest *next;
  /* The host goes: forget it, and ask it for nothing more. What is under way on
   * the pool of threads, and counted in host->requests, comes back first. */
  void (*on_leave)(tide_guest *guest);
};

void tide_guest_join(tide_host *host, tide_guest *guest);
/* Again harmless. */
void tide_guest_leave(tide_host *host, tide_guest *guest);

#endif
