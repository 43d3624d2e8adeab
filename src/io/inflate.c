/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Decompression of a deflated archive member (RFC 1951), between npz.c and npy.c.  The output has
 * a size known beforehand, and neither a bit before the input's end nor a byte past that size is
 * ever touched. */
#include "io/io_int.h"

#include <string.h>

enum { FAST = 10, MAX_BITS = 15, LITERALS = 288, DISTANCES = 30 };

/* A canonical code: symbols in order of their codes, and a table that decodes the short ones. */
typedef struct Huff {
    uint16_t count[MAX_BITS + 1];
    uint16_t symbol[LITERALS];
    uint16_t fast[1 << FAST]; /* symbol << 4 | length; 0 when longer than FAST bits */
} Huff;

typedef struct Inflate {
    Cursor *in;
    uint64_t buf; /* the next bits, lowest first; those past nbuf are 0 */
    int nbuf;
    uint8_t *out;
    size_t n, size; /* bytes written, bytes to write */
    Huff literal, distance;
    bool fixed; /* literal and distance hold the fixed codes */
} Inflate;

static _Noreturn void fail(const Inflate *s, const char *why)
{
    io_fail(s->in, s->in->p, ST_PARSE, "its compressed data %s; the file is damaged", why);
}

static void refill(Inflate *s)
{
    Cursor *in = s->in;

    while (s->nbuf <= 56 && in->p < in->end) {
        s->buf |= (uint64_t)*in->p++ << s->nbuf;
        s->nbuf += 8;
    }
}

static void drop(Inflate *s, int n)
{
    if (n > s->nbuf)
        fail(s, "end too soon");
    s->buf >>= n;
    s->nbuf -= n;
}

static unsigned take_bits(Inflate *s, int n)
{
    unsigned v;

    if (s->nbuf < n)
        refill(s);
    v = (unsigned)(s->buf & ((1u << n) - 1));
    drop(s, n);
    return v;
}

/* The table's entries for one symbol: every index whose low bits are its code, first bit lowest. */
static void fill_fast(Huff *h, unsigned code, unsigned len, unsigned symbol)
{
    unsigned turned = 0;

    for (unsigned i = 0; i < len; i++)
        turned |= (code >> i & 1) << (len - 1 - i);
    for (; turned < 1 << FAST; turned += 1u << len)
        h->fast[turned] = (uint16_t)(symbol << 4 | len);
}

/* Codes of the given lengths (0: not used).  Returns how many codes of 15 bits are left over:
 * 0 for a complete code, < 0 for one that cannot be, which is not built. */
static int build(Huff *h, const uint8_t *len, unsigned n)
{
    unsigned next[MAX_BITS + 2] = { 0 }, at[MAX_BITS + 2] = { 0 };
    int left = 1;

    memset(h, 0, sizeof *h);
    for (unsigned i = 0; i < n; i++)
        h->count[len[i]] = (uint16_t)(h->count[len[i]] + 1);
    h->count[0] = 0;
    for (unsigned b = 1; b <= MAX_BITS; b++) {
        left = 2 * left - h->count[b];
        if (left < 0)
            return left;
        next[b + 1] = (next[b] + h->count[b]) << 1;
        at[b + 1] = at[b] + h->count[b];
    }
    for (unsigned i = 0; i < n; i++) {
        if (len[i] == 0)
            continue;
        h->symbol[at[len[i]]++] = (uint16_t)i;
        if (len[i] <= FAST)
            fill_fast(h, next[len[i]]++, len[i], i);
    }
    return left;
}

/* Codes longer than FAST bits, one bit at a time: among the codes of each length, which are
 * consecutive, the code read so far is the (code - first)-th. */
static unsigned decode_long(Inflate *s, const Huff *h)
{
    int code = 0, first = 0, at = 0;

    for (int len = 1; len <= MAX_BITS; len++) {
        int count = h->count[len];

        code |= (int)(s->buf >> (len - 1) & 1);
        if (code - first < count) {
            drop(s, len);
            return h->symbol[at + code - first];
        }
        at += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    fail(s, "hold a code that stands for nothing");
}

static unsigned decode(Inflate *s, const Huff *h)
{
    unsigned e;

    if (s->nbuf < MAX_BITS)
        refill(s);
    e = h->fast[s->buf & ((1u << FAST) - 1)];
    if (e == 0)
        return decode_long(s, h);
    drop(s, (int)(e & 15));
    return e >> 4;
}

static void copy_match(Inflate *s, size_t len, size_t back)
{
    uint8_t *to = s->out + s->n;

    if (back > s->n)
        fail(s, "refer to bytes before their beginning");
    if (len > s->size - s->n)
        fail(s, "are longer than declared");
    s->n += len;
    if (back >= len)
        memcpy(to, to - back, len);
    else
        for (; len > 0; len--, to++)
            *to = *(to - back);
}

static void read_match(Inflate *s, unsigned symbol)
{
    static const uint16_t len_base[29] = { 3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                           15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                           67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const uint8_t len_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
    static const uint16_t back_base[DISTANCES] = { 1,    2,    3,    4,     5,     7,    9,    13,
                                                   17,   25,   33,   49,    65,    97,   129,  193,
                                                   257,  385,  513,  769,   1025,  1537, 2049, 3073,
                                                   4097, 6145, 8193, 12289, 16385, 24577 };
    size_t len, back;

    if (symbol >= 29)
        fail(s, "use a reserved length");
    len = len_base[symbol] + take_bits(s, len_bits[symbol]);
    symbol = decode(s, &s->distance);
    if (symbol >= DISTANCES)
        fail(s, "use a reserved distance");
    back = back_base[symbol] + take_bits(s, symbol < 2 ? 0 : (int)symbol / 2 - 1);
    copy_match(s, len, back);
}

static void coded_block(Inflate *s)
{
    for (;;) {
        unsigned symbol = decode(s, &s->literal);

        if (symbol == 256)
            return;
        if (symbol > 256) {
            read_match(s, symbol - 257);
        } else {
            if (s->n == s->size)
                fail(s, "are longer than declared");
            s->out[s->n++] = (uint8_t)symbol;
        }
    }
}

static void stored_block(Inflate *s)
{
    unsigned n;

    drop(s, s->nbuf % 8);
    n = take_bits(s, 16);
    if (take_bits(s, 16) != (n ^ 0xffff))
        fail(s, "hold a stored block with a wrong length");
    s->in->p -= s->nbuf / 8; /* whole bytes that were read ahead */
    s->buf = 0;
    s->nbuf = 0;
    if (n > io_left(s->in))
        fail(s, "end too soon");
    if (n > s->size - s->n)
        fail(s, "are longer than declared");
    if (n > 0)
        memcpy(s->out + s->n, s->in->p, n);
    s->in->p += n;
    s->n += n;
}

static void fixed_codes(Inflate *s)
{
    uint8_t len[LITERALS];

    if (s->fixed)
        return;
    for (int i = 0; i < LITERALS; i++)
        len[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    build(&s->literal, len, LITERALS);
    memset(len, 5, 32);
    build(&s->distance, len, 32);
    s->fixed = true;
}

/* The lengths of both codes, themselves coded: 16 repeats the last length, 17 and 18 repeat 0. */
static void read_lengths(Inflate *s, uint8_t *len, unsigned n)
{
    static const uint8_t repeat_base[3] = { 3, 3, 11 }, repeat_bits[3] = { 2, 3, 7 };

    for (unsigned i = 0; i < n;) {
        unsigned symbol = decode(s, &s->literal), times = 1;
        uint8_t v = (uint8_t)symbol;

        if (symbol >= 16) {
            if (symbol == 16 && i == 0)
                fail(s, "repeat a code length before the first");
            v = symbol == 16 ? len[i - 1] : 0;
            times = repeat_base[symbol - 16] + take_bits(s, repeat_bits[symbol - 16]);
        }
        if (times > n - i)
            fail(s, "hold too many code lengths");
        memset(len + i, v, times);
        i += times;
    }
}

/* As zlib does, allows an incomplete code only when it is a single code of one bit or none. */
static bool is_usable(const Huff *h, int left)
{
    int others = 0;

    for (int b = 2; b <= MAX_BITS; b++)
        others += h->count[b];
    return left == 0 || (left > 0 && others == 0);
}

static void dynamic_codes(Inflate *s)
{
    static const uint8_t order[19] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                       11, 4,  12, 3, 13, 2, 14, 1, 15 };
    uint8_t len[LITERALS + 32] = { 0 };
    unsigned nlit = take_bits(s, 5) + 257, ndist = take_bits(s, 5) + 1, n = take_bits(s, 4) + 4;

    if (nlit > 286 || ndist > DISTANCES)
        fail(s, "declare too many codes");
    for (unsigned i = 0; i < n; i++)
        len[order[i]] = (uint8_t)take_bits(s, 3);
    if (build(&s->literal, len, 19) != 0)
        fail(s, "hold an impossible set of code lengths");
    read_lengths(s, len, nlit + ndist);
    if (len[256] == 0)
        fail(s, "hold a block that cannot end");
    if (!is_usable(&s->literal, build(&s->literal, len, nlit)))
        fail(s, "hold an impossible set of literal codes");
    if (!is_usable(&s->distance, build(&s->distance, len + nlit, ndist)))
        fail(s, "hold an impossible set of distance codes");
    s->fixed = false;
}

void io_inflate(Cursor *in, uint8_t *out, size_t n)
{
    Inflate s = { .in = in, .out = out, .size = n };
    bool last;

    do {
        unsigned kind;

        last = take_bits(&s, 1) != 0;
        kind = take_bits(&s, 2);
        if (kind == 3)
            fail(&s, "hold a block of an unknown kind");
        if (kind == 0) {
            stored_block(&s);
            continue;
        }
        if (kind == 1)
            fixed_codes(&s);
        else
            dynamic_codes(&s);
        coded_block(&s);
    } while (!last);
    if (s.n < n)
        fail(&s, "are shorter than declared");
    if (s.nbuf >= 8 || in->p < in->end)
        fail(&s, "go on after their end");
}
