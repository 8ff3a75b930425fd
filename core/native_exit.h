/* native_exit: somebody calls exit(3) in a process whose life is the host's.
 *
 * os.exit of a script is a request and goes through the pipeline; a C library,
 * or os.exit in a thread of luv's with a Lua state of its own, is past all
 * that. No shutdown can run from there: the log says so, and the code stays.
 */
#ifndef TIDE_NATIVE_EXIT_H
#define TIDE_NATIVE_EXIT_H

#include "host.h"

/* From now on the process is this host's. [loop] */
void tide_native_exit_watch(tide_host *host);
/* What follows is the host's own end. [loop] */
void tide_native_exit_release(tide_host *host);

#endif
