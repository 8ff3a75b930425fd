#include "log_ring.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

int tide__ring_init(tide_ring *ring, size_t size, size_t reserve) {
  memset(ring, 0, sizeof *ring);
  ring->data = malloc(size); /* the kernel gives pages as they are used */
  if (ring->data == NULL)
    return UV_ENOMEM;
  ring->size = size;
  ring->reserve = reserve;
  return 0;
}

void tide__ring_free(tide_ring *ring) {
  free(ring->data);
  ring->data = NULL;
}

bool tide__ring_put(tide_ring *ring, const char *line, size_t length,
                    bool important) {
  size_t kept = important ? 0 : ring->reserve;

  if (ring->used + length + kept > ring->size)
    return false;
  /* An empty ring starts over, so that a quiet log touches few pages. */
  if (ring->used == 0)
    ring->start = 0;
  size_t at = (ring->start + ring->used) % ring->size;
  size_t first = ring->size - at < length ? ring->size - at : length;
  memcpy(ring->data + at, line, first);
  memcpy(ring->data, line + first, length - first);
  ring->used += length;
  ring->put += length;
  return true;
}

/* How many of the first `length` bytes make whole lines; all of them when the
 * oldest line is longer than that. */
static size_t whole_lines(const tide_ring *ring, size_t length) {
  for (size_t n = length; n > 0; n--) {
    if (ring->data[(ring->start + n - 1) % ring->size] == '\n')
      return n;
  }
  return length;
}

int tide__ring_peek(const tide_ring *ring, size_t limit, uint64_t until,
                    struct iovec parts[2]) {
  size_t length = ring->used;

  if (until - ring->released < length)
    length = (size_t)(until - ring->released);
  if (length == 0)
    return 0;
  if (length > limit)
    length = whole_lines(ring, limit);
  size_t to_end = ring->size - ring->start;
  parts[0].iov_base = ring->data + ring->start;
  parts[0].iov_len = length < to_end ? length : to_end;
  if (length <= to_end)
    return 1;
  parts[1].iov_base = ring->data;
  parts[1].iov_len = length - to_end;
  return 2;
}

void tide__ring_release(tide_ring *ring, size_t length) {
  ring->start = (ring->start + length) % ring->size;
  ring->used -= length;
  ring->released += length;
}
