/* frames.c: a histogram with sixteen steps for each doubling. */
#include "frames.h"

/* Below 16 each value has its own; above, the four bits behind the first one
 * say which step it is. */
static unsigned bucket_of(uint64_t ns) {
  unsigned log2;
  if (ns < FRAMES_STEPS)
    return (unsigned)ns;
  log2 = 63 - (unsigned)__builtin_clzll(ns);
  return (log2 - 3) * FRAMES_STEPS +
         (unsigned)((ns >> (log2 - 4)) & (FRAMES_STEPS - 1));
}

/* The largest value of a bucket. */
static uint64_t end_of(unsigned bucket) {
  unsigned shift;
  if (bucket < FRAMES_STEPS)
    return bucket;
  shift = bucket / FRAMES_STEPS - 1;
  return ((uint64_t)(FRAMES_STEPS + bucket % FRAMES_STEPS + 1) << shift) - 1;
}

void frames_add(frames *frames, uint64_t ns) {
  frames->count++;
  frames->buckets[bucket_of(ns)]++;
  if (ns > frames->max)
    frames->max = ns;
}

uint64_t frames_percentile(const frames *frames, double percent) {
  double wanted = (double)frames->count * percent / 100;
  uint64_t seen = 0;
  for (unsigned i = 0; i < FRAMES_BUCKETS; i++) {
    seen += frames->buckets[i];
    if (seen > 0 && (double)seen >= wanted)
      return end_of(i) < frames->max ? end_of(i) : frames->max;
  }
  return frames->max;
}
