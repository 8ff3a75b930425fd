/* fork: noticing that one stands in a child of the host's process. */
#ifndef TIDE_FORK_H
#define TIDE_FORK_H

/* Begins to count; again harmless. 0 or a negative libuv error. [any] */
int tide_fork_watch(void);
/* Grows in each child of fork(2). [any] */
unsigned tide_fork_generation(void);

#endif
