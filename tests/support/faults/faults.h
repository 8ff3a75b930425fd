/* faults: what a program asks of its system fails, once or from then on.
 *
 * For tests that are linked with this file and with the linker's --wrap
 * (tests/CMakeLists.txt): it counts the calls of the library, and fails the one
 * of a number. Nothing is counted before faults_begin. Memory that Lua takes
 * piecemeal comes from the arena and is not counted; its chunks are. libuv's
 * own allocations are not either: it ends the process where some of them fail.
 */
#ifndef TIDE_FAULTS_H
#define TIDE_FAULTS_H

#include <stdbool.h>

typedef enum faults_kind {
  FAULTS_MEMORY, /* malloc, calloc, realloc, strdup, strndup */
  FAULTS_SYSTEM, /* socket, open, eventfd, timer_create, threads, locks */
} faults_kind;

/* From now on calls of this kind count; the one of number `at` fails (0: none),
 * and with `for_good` all behind it. Any thread's. */
void faults_begin(faults_kind kind, long at, bool for_good);
/* No more. Returns how many calls there were. */
long faults_end(void);
/* Whether one has failed since faults_begin. */
bool faults_happened(void);

#endif
