/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/base/sha.c against the examples of FIPS 180-4 and around the ends of blocks. */
#include "base/base.h"
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

static void hex(char out[2 * SHA_SIZE + 1], Sha *s)
{
    uint8_t sum[SHA_SIZE];

    sha_end(s, sum);
    for (int i = 0; i < SHA_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

static void check_digest(const char *text, const char *want)
{
    char got[2 * SHA_SIZE + 1];
    Sha s;

    sha_init(&s);
    sha_add(&s, text, strlen(text));
    hex(got, &s);
    CHECK_STR(got, want);
}

TEST(sha_of_the_standards_examples)
{
    check_digest("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_digest("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(sha_of_a_million_times_a)
{
    char row[1000], got[2 * SHA_SIZE + 1];
    Sha s;

    memset(row, 'a', sizeof row);
    sha_init(&s);
    for (int i = 0; i < 1000; i++)
        sha_add(&s, row, sizeof row);
    hex(got, &s);
    CHECK_STR(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The digest of the digests of 0, 1, ... 299 times a, as another implementation has it. */
TEST(sha_of_every_length_around_the_blocks)
{
    char row[300], got[2 * SHA_SIZE + 1];
    Sha all, s;

    memset(row, 'a', sizeof row);
    sha_init(&all);
    for (size_t n = 0; n < sizeof row; n++) {
        uint8_t sum[SHA_SIZE];

        sha_init(&s);
        sha_add(&s, row, n);
        sha_end(&s, sum);
        sha_add(&all, sum, sizeof sum);
    }
    hex(got, &all);
    CHECK_STR(got, "80e953e3b006c4bab43fd5d792f8bd29c122f6cf1497318365fe66bf2d61398d");
}

TEST(sha_does_not_depend_on_the_pieces)
{
    char text[500], whole[2 * SHA_SIZE + 1], parts[2 * SHA_SIZE + 1];
    uint64_t seed = 1;
    Sha s;

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)test_random(&seed);
    sha_init(&s);
    sha_add(&s, text, sizeof text);
    hex(whole, &s);
    for (int round = 0; round < 200; round++) {
        sha_init(&s);
        for (size_t at = 0, n; at < sizeof text; at += n) {
            n = 1 + (size_t)test_random(&seed) % 150;
            if (n > sizeof text - at)
                n = sizeof text - at;
            sha_add(&s, text + at, n);
        }
        hex(parts, &s);
        CHECK_STR(parts, whole);
    }
}
