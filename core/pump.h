/* pump: turning Lua's run queue from the loop.
 *
 * The queue itself is Lua's (moontide.task). Whatever entered Lua may have put
 * something there; the pump runs it before the loop blocks again, in budgets,
 * so that a long queue does not starve sockets. Also the place where C enters
 * Lua: protected, watched, with a traceback.
 */
#ifndef TIDE_PUMP_H
#define TIDE_PUMP_H

#include "host.h"

/* Opens prepare, check, idle and async handles. 0 or a libuv error. */
int tide_pump_open(tide_host *host);
/* Closes those that were opened. */
void tide_pump_close(tide_host *host);
/* One budget of the run queue, without a turn of the loop. */
void tide_pump_queue(tide_host *host);

#endif
