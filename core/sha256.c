#include "sha256.h"

#include <string.h>

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned by) {
  return x >> by | x << (32 - by);
}

static uint32_t read_word(const unsigned char *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
         p[3];
}

static void expand(uint32_t w[64], const unsigned char *block) {
  for (int i = 0; i < 16; i++, block += 4)
    w[i] = read_word(block);
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
}

static void compress(uint32_t state[8], const unsigned char *block) {
  uint32_t w[64], s[8];
  expand(w, block);
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t e = s[4], a = s[0];
    uint32_t t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                  ((e & s[5]) ^ (~e & s[6])) + rounds[i] + w[i];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                  ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++)
    state[i] += s[i];
}

void tide_sha256_init(tide_sha256 *sha) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  memcpy(sha->state, start, sizeof start);
  sha->length = 0;
}

void tide_sha256_add(tide_sha256 *sha, const void *data, size_t length) {
  const unsigned char *p = data;
  while (length > 0) {
    size_t used = sha->length % 64;
    size_t take = length < 64 - used ? length : 64 - used;
    memcpy(sha->block + used, p, take);
    sha->length += take;
    p += take;
    length -= take;
    if (sha->length % 64 == 0)
      compress(sha->state, sha->block);
  }
}

void tide_sha256_end(tide_sha256 *sha, unsigned char out[TIDE_SHA256_BYTES]) {
  static const unsigned char padding[64] = {0x80};
  unsigned char bits[8];
  uint64_t length = sha->length * 8;
  for (int i = 0; i < 8; i++)
    bits[i] = (unsigned char)(length >> (56 - 8 * i));
  /* Up to eight bytes short of a block's end: those are the length. */
  tide_sha256_add(sha, padding, 1 + (119 - sha->length % 64) % 64);
  tide_sha256_add(sha, bits, sizeof bits);
  for (int i = 0; i < 32; i++)
    out[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}
