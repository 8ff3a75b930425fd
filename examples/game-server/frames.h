/* frames: how long something took in each frame, as a histogram.
 *
 * Sixteen steps for each doubling, so that a percentile is right to 1/16,
 * however many frames there were; adding and asking take no time to speak of.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdint.h>

enum { FRAMES_STEPS = 16, FRAMES_BUCKETS = 61 * FRAMES_STEPS };

typedef struct frames {
  uint64_t count;
  uint64_t max; /* ns */
  uint64_t buckets[FRAMES_BUCKETS];
} frames;

/* All zero is an empty one. */
void frames_add(frames *frames, uint64_t ns);
/* What `percent` of all stay within, in ns; 0 of none. */
uint64_t frames_percentile(const frames *frames, double percent);

#endif
