/* log_writer: the thread that carries lines to a file descriptor.
 *
 * It alone blocks in write(2); everybody else only holds the mutex for a copy
 * of at most one line. The descriptor's flags are never touched: a standard
 * stream is shared with other processes. The thread starts with the first line
 * and blocks all signals, so it also never dies of SIGPIPE.
 */
#ifndef TIDE_LOG_WRITER_H
#define TIDE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

typedef struct tide_writer tide_writer;

/* `fd` -1: no target yet. Returns 0 or a negative libuv error. */
int tide__writer_open(tide_writer **out, int fd, size_t ring_size,
                      tide_log_format format);
/* Takes a line with its newline, or drops and counts it. Never blocks. [any] */
void tide__writer_put(tide_writer *writer, const char *line, size_t length,
                      bool important);
/* Until the release, lines that are not important do not start the thread. */
void tide__writer_hold(tide_writer *writer);
void tide__writer_release(tide_writer *writer);
/* Lines put from now on go to `fd`, which the writer closes in the end if it is
 * `owned`. Lines put before still go to the target of their time (or to this
 * one, if the writer had not come round to theirs). */
void tide__writer_redirect(tide_writer *writer, int fd, bool owned);
/* For the line that says how many were lost. [any] */
void tide__writer_set_format(tide_writer *writer, tide_log_format format);
/* Lines dropped since the start. [any] */
uint64_t tide__writer_dropped(tide_writer *writer);
/* Waits until the lines put before have left or were given up. [any] */
bool tide__writer_flush(tide_writer *writer, uint64_t timeout_ns);
/* Flushes, then ends the thread; what has not left by then is lost. A thread
 * stuck in write(2) is left behind and frees the writer when it returns. */
void tide__writer_close(tide_writer *writer, uint64_t timeout_ns);

#endif
