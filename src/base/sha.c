/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * SHA-256 (FIPS 180-4): names and checks the entries of the kernel cache. */
#include "base/base.h"

#include <string.h>

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static uint32_t load_word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_word(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* The 16 words of a block and the 48 that follow from them. */
static void expand(uint32_t w[64], const uint8_t *p)
{
    for (int i = 0; i < 16; i++)
        w[i] = load_word(p + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

/* One round; that the eight variables change places is left to the order of the arguments. */
static inline void mix(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                       uint32_t g, uint32_t *h, uint32_t kw)
{
    uint32_t t = *h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (g ^ (e & (f ^ g))) + kw;

    *d += t;
    *h = t + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) | (c & (a | b)));
}

static void add_block(Sha *s, const uint8_t *p)
{
    uint32_t w[64] = { 0 }; /* expand fills it, which -fanalyzer does not see */
    uint32_t a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3];
    uint32_t e = s->h[4], f = s->h[5], g = s->h[6], h = s->h[7];

    expand(w, p);
    for (int i = 0; i < 64; i += 8) {
        const uint32_t *k = round_constant + i, *x = w + i;

        mix(a, b, c, &d, e, f, g, &h, k[0] + x[0]);
        mix(h, a, b, &c, d, e, f, &g, k[1] + x[1]);
        mix(g, h, a, &b, c, d, e, &f, k[2] + x[2]);
        mix(f, g, h, &a, b, c, d, &e, k[3] + x[3]);
        mix(e, f, g, &h, a, b, c, &d, k[4] + x[4]);
        mix(d, e, f, &g, h, a, b, &c, k[5] + x[5]);
        mix(c, d, e, &f, g, h, a, &b, k[6] + x[6]);
        mix(b, c, d, &e, f, g, h, &a, k[7] + x[7]);
    }
    s->h[0] += a, s->h[1] += b, s->h[2] += c, s->h[3] += d;
    s->h[4] += e, s->h[5] += f, s->h[6] += g, s->h[7] += h;
}

void sha_init(Sha *s)
{
    *s = (Sha){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                       0x1f83d9ab, 0x5be0cd19 } };
}

void sha_add(Sha *s, const void *from, size_t n)
{
    const uint8_t *p = from;

    while (n > 0) {
        size_t at = s->n % sizeof s->block, k = sizeof s->block - at;

        if (k > n)
            k = n;
        if (k == sizeof s->block) {
            add_block(s, p);
        } else {
            memcpy(s->block + at, p, k);
            if (at + k == sizeof s->block)
                add_block(s, s->block);
        }
        s->n += k;
        p += k;
        n -= k;
    }
}

void sha_end(Sha *s, uint8_t out[SHA_SIZE])
{
    static const uint8_t pad[64] = { 0x80 };
    uint64_t bits = s->n * 8;
    uint8_t length[8];

    sha_add(s, pad, 1 + (119 - s->n % 64) % 64); /* up to 56 bytes of the last block */
    store_word(length, (uint32_t)(bits >> 32));
    store_word(length + 4, (uint32_t)bits);
    sha_add(s, length, sizeof length);
    for (int i = 0; i < 8; i++)
        store_word(out + 4 * i, s->h[i]);
}
