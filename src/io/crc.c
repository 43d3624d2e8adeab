/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The checksum of a ZIP member: CRC-32 of polynomial 0xedb88320, eight bytes a step.  Tables are
 * made at each call, which is cheaper than to keep state. */
#include "io/io_int.h"

enum { SLICES = 8 };

/* table[s][b]: what byte b does to the sum when s more bytes follow it. */
static void make_table(uint32_t table[SLICES][256])
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t v = b;

        for (int k = 0; k < 8; k++)
            v = (v & 1) != 0 ? v >> 1 ^ 0xedb88320 : v >> 1;
        table[0][b] = v;
    }
    for (int s = 1; s < SLICES; s++)
        for (int b = 0; b < 256; b++)
            table[s][b] = table[s - 1][b] >> 8 ^ table[0][table[s - 1][b] & 255];
}

uint32_t io_crc32(const uint8_t *p, size_t n)
{
    uint32_t table[SLICES][256], crc = 0xffffffff;

    make_table(table);
    for (; n >= SLICES; n -= SLICES, p += SLICES) {
        crc ^= p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = table[7][crc & 255] ^ table[6][crc >> 8 & 255] ^ table[5][crc >> 16 & 255] ^
              table[4][crc >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
              table[0][p[7]];
    }
    for (; n > 0; n--)
        crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}
