/* init: being PID 1 without leaving zombies.
 *
 * The first process of a container has to reap whatever orphans are handed to
 * it, and the kernel drops signals that it has no handler for. So the program
 * forks before anything else exists: the parent stays a small init that reaps
 * and forwards, the child is the program.
 */
#ifndef TIDE_INIT_H
#define TIDE_INIT_H

/* The value of --init in a command line: "auto" when it is not given. Reads
 * only what stands before the script's path; checks nothing. */
const char *tide_init_mode(int argc, char **argv);

/* Forks when `mode` is "on", or when it is "auto" (or anything but "off") and
 * this is PID 1. Returns 0 in the process that goes on as the program, with the
 * signal mask it came with, or a negative errno when there could be no fork.
 * The init never returns: it ends with the program's exit code, or 128 + the
 * signal that ended it. Call it first, with one thread. */
int tide_init_maybe(const char *mode);

#endif
