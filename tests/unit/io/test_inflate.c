/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/io/inflate.c, which uses zlib, and crc.c, on streams written bit by bit: numbers lowest
 * bit first, codes highest bit first, as RFC 1951 puts them in the stream. */
#include "unit/io_bed.h"
#include "unit/zip.h"

/* Bits as text ("1 01", blanks apart) to bytes, the last filled with 0. */
static size_t pack_bits(const char *bits, uint8_t *out)
{
    size_t n = 0;

    for (; *bits != 0; bits++) {
        if (*bits == ' ')
            continue;
        if (n % 8 == 0)
            out[n / 8] = 0;
        out[n / 8] = (uint8_t)(out[n / 8] | (*bits - '0') << n % 8);
        n++;
    }
    return (n + 7) / 8;
}

static Status inflate(Bed *b, const uint8_t *in, size_t nin, uint8_t *out, size_t nout)
{
    uint8_t *copy = bed_block(in, nin);
    Cursor c = io_cursor(&b->err, "t.npz", (Bytes){ copy, nin });
    Status s = CATCH(&b->err, io_inflate(&os_libc, &c, out, nout));

    free(copy);
    return s;
}

/* A dynamic block of 257 literal codes and 1 distance code, and code lengths 0 and 1 in two bits,
 * 18 (many zeros) in one: 18 is 0, 0 is 10, 1 is 11. */
#define DYNAMIC "1 01 00000 00000 0111 "
#define LENGTHS "000 000 100 010 000 000 000 000 000 000 000 000 000 000 000 000 000 010 "
#define ZEROS_138 "0 1111111 "
#define ZEROS_118 "0 1101011 "
#define BAD "are not what deflate gives (" /* and zlib says why */

TEST(streams_of_every_kind_of_block_expand)
{
    static const struct {
        const char *bits, *text;
    } good[] = {
        { "1 10 0000000", "" },
        { "1 10 01110001 0000000", "A" },
        { "1 10 01110001 0000001 00000 0000000", "AAAA" },
        { "1 10 01110001 01110010 0000001 00001 0000000", "ABABA" },
        /* length 258 at distance 1: symbol 285 is 11000101 */
        { "1 10 01110001 11000101 00000 0000000", NULL },
        { "1 00 00000 0000000000000000 1111111111111111", "" },
        { "1 00 00000 1000000000000000 0111111111111111 10000010", "A" },
        { "0 00 00000 1000000000000000 0111111111111111 10000010 1 10 01110010 0000000", "AB" },
        { "0 10 01110001 0000000 0 10 01110010 0000000 1 10 0000000", "AB" },
        /* nothing but the end of the block, with one distance code and with none */
        { DYNAMIC LENGTHS ZEROS_138 ZEROS_118 "11 11 0", "" },
        { DYNAMIC LENGTHS ZEROS_138 ZEROS_118 "11 10 0", "" },
        /* 'A' and the end, one bit each; then fixed codes again: 11 + 54 zeros, 'A', 138 + 52 */
        { "0 01 00000 00000 0111 " LENGTHS "0 0110110 11 0 1111111 0 1001010 11 10 0 0 1 "
          "1 10 01110010 0000000",
          "AAB" },
    };
    static const char repeated[] = /* 16 is 11 and repeats the length 2, which is 10 */
        "1 01 00000 01010 0011 "
        "010 000 100 000 000 000 000 000 000 000 000 000 000 000 000 010 " ZEROS_138
        "0 0001011 10 11 00 0 0000000 01 10 11";
    uint8_t in[400], out[300];
    Bed b;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        size_t nin = pack_bits(good[k].bits, in);
        size_t nout = good[k].text == NULL ? 259 : strlen(good[k].text);

        BED_OK(&b, inflate(&b, in, nin, out, nout));
        for (size_t i = 0; i < nout; i++)
            CHECK_EQ(out[i], good[k].text == NULL ? 'A' : good[k].text[i]);
    }
    BED_OK(&b, inflate(&b, in, pack_bits(repeated, in), out, 2));
    CHECK_EQ(out[0], 254);
    CHECK_EQ(out[1], 255);
    bed_free(&b);
}

TEST(a_bad_stream_is_refused_with_the_cause)
{
    static const struct {
        const char *bits;
        size_t n;
        const char *part;
    } bad[] = {
        { "", 1, "end too soon" },
        { "1 11", 1, BAD },
        { "0 10 0000000", 0, "end too soon" },
        { "1 10 01110001", 1, "end too soon" },
        { "1 00 00000 10000000", 1, "end too soon" },
        { "1 00 00000 1000000000000000 1111111111111111 10000010", 1, BAD },
        { "1 00 00000 0100000000000000 1011111111111111 10000010", 2, "end too soon" },
        { "1 00 00000 1000000000000000 0111111111111111 10000010", 0, "longer than declared" },
        { "1 10 01110001 0000000", 0, "longer than declared" },
        { "1 10 01110001 0000000", 2, "shorter than declared" },
        { "1 10 01110001 0000000 00000000 1", 1, "go on after their end" },
        { "1 10 01110001 0000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
          "00000000 1",
          1, "go on after their end" },
        { "1 00 00000 0000000000000000 1111111111111111 0", 0, "go on after their end" },
        { "1 10 01110001 0000001 00001 0000000", 4, BAD },
        { "1 10 0000001 00000 0000000", 3, BAD },
        { "1 10 01110001 0000001 00000 0000000", 3, "longer than declared" },
        { "1 10 01110001 11000110 00000 0000000", 3, BAD },
        { "1 10 01110001 11000111 00000 0000000", 3, BAD },
        { "1 10 01110001 0000001 11110 0000000", 4, BAD },
        { "1 10 01110001 0000001 11111 0000000", 4, BAD },
        { "1 10 01110001 0000001 1", 4, "end too soon" },
        { "1 01 01111 00000 0000", 0, BAD },
        { "1 01 00000 01111 0000", 0, BAD },
        { "1 01 00000 00000 0000 000 000 000 000", 0, "end too soon" }, /* a code of no lengths */
        { "1 01 00000 00000 0000 100 000 000 000", 0, BAD },
        { "1 01 00000 00000 0000 100 100 100 000", 0, BAD },
        /* 0 is 0 and 16 is 1 */
        { "1 01 00000 00000 0000 100 000 000 100 1 00", 0, BAD },
        { DYNAMIC LENGTHS ZEROS_138 ZEROS_138 "11", 0, BAD },
        { DYNAMIC LENGTHS ZEROS_138 ZEROS_118 "10 11 0", 0, BAD },
        { DYNAMIC LENGTHS ZEROS_138 "0 0010011", 0, "end too soon" },
        /* three codes of one bit; one of two bits, which leaves codes unused */
        { DYNAMIC LENGTHS "11 11 " ZEROS_138 "0 1001011 11 10", 0, BAD },
        { "1 01 00000 00000 0111 000 000 100 010 000 000 000 000 000 000 000 000 000 000 000 010 "
          "000 000 " ZEROS_138 ZEROS_118 "11 10 00",
          0, BAD },
        { "1 01 00000 11000 0111 " LENGTHS ZEROS_138 ZEROS_118 "11 11 11 11 10", 0,
          BAD },
        { "1 01 00000 00000 0111 000 000 100 010 000 000 000 000 000 000 000 000 000 000 000 010 "
          "000 000 " ZEROS_138 "0 0001011 11 11 11 11 11 00",
          0, BAD },
        /* the second bit of a code that has only one */
        { DYNAMIC LENGTHS ZEROS_138 ZEROS_118 "11 11 1 0000000000000000", 0, BAD },
    };
    uint8_t in[400], out[16];
    Bed b;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        size_t n = pack_bits(bad[k].bits, in);
        Status s = inflate(&b, in, n, out, bad[k].n);

        if (s != ST_PARSE || strstr(b.err.msg, bad[k].part) == NULL)
            test_fail(__FILE__, __LINE__, "%s: status %d: %s", bad[k].bits, (int)s, b.err.msg);
        CHECK_HAS(b.err.msg, "the file is damaged");
    }
    bed_free(&b);
}

TEST(long_codes_are_decoded)
{
    uint8_t out[ZIP_SKEWED];
    Text plain;
    Bed b;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    plain = (Text){ .arena = &b.arena };
    zip_put_skewed(&plain);
    BED_OK(&b, inflate(&b, zip_skewed, sizeof zip_skewed, out, sizeof out));
    CHECK_EQ(plain.n, sizeof out);
    CHECK(memcmp(out, plain.s, sizeof out) == 0);
    for (size_t n = 0; n < sizeof zip_skewed; n++)
        CHECK_EQ(inflate(&b, zip_skewed, n, out, sizeof out), ST_PARSE);
    bed_free(&b);
}

TEST(random_bytes_survive_stored_and_fixed_blocks)
{
    uint64_t seed = 5;
    Bed b;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    for (int k = 0; k < 50; k++) {
        uint8_t text[700], out[700];
        size_t n = (size_t)(test_random(&seed) % sizeof text);
        Text stored = { .arena = &b.arena }, fixed = { .arena = &b.arena };

        for (size_t i = 0; i < n; i++) /* with runs */
            text[i] =
                i > 0 && test_random(&seed) % 2 == 0 ? text[i - 1] : (uint8_t)test_random(&seed);
        zip_deflate_stored(&stored, text, n, 100);
        BED_OK(&b, inflate(&b, (uint8_t *)stored.s, stored.n, out, n));
        CHECK(memcmp(text, out, n) == 0);
        zip_deflate_fixed(&fixed, text, n);
        BED_OK(&b, inflate(&b, (uint8_t *)fixed.s, fixed.n, out, n));
        CHECK(memcmp(text, out, n) == 0);
    }
    bed_free(&b);
}

TEST(the_checksum_is_that_of_zip)
{
    static const char text[] = "123456789 the quick brown fox";

    CHECK_EQ(io_crc32(NULL, 0), 0);
    CHECK_EQ(io_crc32((const uint8_t *)"a", 1), 0xe8b7be43);
    CHECK_EQ(io_crc32((const uint8_t *)text, 9), 0xcbf43926);
    CHECK_EQ(io_crc32((const uint8_t *)text, 29), 0x155102f7);
}
