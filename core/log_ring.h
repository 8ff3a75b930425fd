/* log_ring: lines on their way to the writer thread.
 *
 * A ring of bytes with a slice at its end that only important lines may use.
 * Not locked: log.c holds its mutex around every call. Lines that were taken
 * out for writing stay in place until they are released, so the writer may read
 * them without the lock.
 */
#ifndef TIDE_LOG_RING_H
#define TIDE_LOG_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct tide_ring {
  char *data;
  size_t size;
  size_t reserve; /* bytes that only important lines may take */
  size_t start;   /* where the oldest byte is */
  size_t used;
  uint64_t put;      /* bytes that ever came in */
  uint64_t released; /* bytes that ever went out */
} tide_ring;

/* Returns 0 or a negative libuv error. */
int tide__ring_init(tide_ring *ring, size_t size, size_t reserve);
void tide__ring_free(tide_ring *ring);

/* Copies a line in; false when there is no room for it. */
bool tide__ring_put(tide_ring *ring, const char *line, size_t length,
                    bool important);
/* The oldest whole lines, at most about `limit` bytes and not beyond the
 * position `until` (on the scale of `put`); in two parts where the ring wraps.
 * Returns the number of parts, 0 when there is nothing. */
int tide__ring_peek(const tide_ring *ring, size_t limit, uint64_t until,
                    struct iovec parts[2]);
/* Gives up the oldest bytes. */
void tide__ring_release(tide_ring *ring, size_t length);

#endif
