/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Functions of ops.def that are no expression, for the kernels and for the host. */
#ifndef WEFT_SELF_BOTH_H
#define WEFT_SELF_BOTH_H

/* As many turns as the number says: lanes leave the loop one after another. */
FN uint32_t LOOP(uint32_t a, uint32_t b)
{
    uint32_t sum = b;

    for (uint32_t i = 0; i < (a & 15); i++) {
        if (sum & 1)
            sum = sum * 3 + i;
        else
            sum = sum / 2 + a;
        if (sum == 77)
            break;
    }
    return sum;
}

FN uint32_t SWITCH(uint32_t a, uint32_t b, uint32_t c)
{
    switch (a & 7) {
    case 0: return b + c;
    case 1: return b * c;
    case 2: return b ^ c << 3;
    case 3: return b / (c | 1);
    case 4: return LOOP(b, c);
    case 5: return b - 2 * c;
    case 6: return b & ~c;
    default: return a;
    }
}

#endif
