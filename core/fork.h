/* fork: noticing that one stands in a child of the host's process, and that the
 * child finds every descriptor that is the host's. */
#ifndef TIDE_FORK_H
#define TIDE_FORK_H

#include <stdbool.h>

/* Begins to count; again harmless. 0 or a negative libuv error. [any] */
int tide_fork_watch(void);
/* Grows in each child of fork(2). [any] */
unsigned tide_fork_generation(void);

/* Between the two, no child is made. A thread that is not the loop's opens or
 * closes a descriptor there, and notes it for tide_after_fork. Neither it nor a
 * fork waits longer than some milliseconds for the other: to leave a child a
 * descriptor is less than to miss a deadline. [other threads] */
bool tide_fork_hold_off(void);
void tide_fork_go_ahead(bool held);
/* close(2) and -1, as one. [other threads] */
void tide_fork_close(int *fd);

#endif
