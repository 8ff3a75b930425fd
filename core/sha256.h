/* sha256: the digest of FIPS 180-4.
 *
 * Ours, because a library for one function would cost every start the time to
 * map it. Pure: no allocation, no state beside the caller's.
 */
#ifndef TIDE_SHA256_H
#define TIDE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define TIDE_SHA256_BYTES 32

typedef struct tide_sha256 {
  uint32_t state[8];
  uint64_t length; /* bytes so far */
  unsigned char block[64];
} tide_sha256;

void tide_sha256_init(tide_sha256 *sha);
void tide_sha256_add(tide_sha256 *sha, const void *data, size_t length);
/* The context is used up afterwards. */
void tide_sha256_end(tide_sha256 *sha, unsigned char out[TIDE_SHA256_BYTES]);

#endif
