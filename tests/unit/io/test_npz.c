/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/io/npz.c: archives of arrays, good and bad. */
#include "fail/inject.h"
#include "unit/io_bed.h"
#include "unit/zip.h"

#include <errno.h>
#include <stdio.h>

enum { STORED = 0, DEFLATED = 8 };

static int32_t numbers[] = { 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 };
static const IoArray array_a = { "a", IO_I32, 2, { 2, 8 }, 16, numbers };

/* In a build without zlib, what is to be read is stored, and what is deflated is refused. */
static unsigned packing(void)
{
    return io_can_inflate() ? DEFLATED : STORED;
}

/* A member with array_a in it. */
static ZipMember make_member(Bed *b, const char *name, unsigned method)
{
    Text plain = { .arena = &b->arena }, packed = { .arena = &b->arena };
    ZipMember m = { .name = name, .method = method };

    io_npy_print(&plain, &array_a);
    if (method == DEFLATED)
        zip_deflate_fixed(&packed, (const uint8_t *)plain.s, plain.n);
    else
        packed = plain;
    m.packed = packed.s;
    m.npacked = packed.n;
    m.size = plain.n;
    m.crc = io_crc32((const uint8_t *)plain.s, plain.n);
    return m;
}

static void check_array_a(const IoArray *a, const char *name)
{
    CHECK_STR(a->name, name);
    CHECK_EQ(a->type, IO_I32);
    CHECK_EQ(a->ndim, 2);
    CHECK_EQ(a->dim[0], 2);
    CHECK_EQ(a->dim[1], 8);
    CHECK_EQ(a->n, 16);
    CHECK(memcmp(a->data, numbers, sizeof numbers) == 0);
}

TEST(archives_of_every_form_read)
{
    Bed b;
    IoNpz npz;

    bed_init(&b);
    for (int form = ZIP_PLAIN; form < ZIP_FORMS; form++) {
        ZipMember m[3] = { make_member(&b, "a.npy", STORED), make_member(&b, "b.npy", packing()),
                           make_member(&b, "a.npy.npy", STORED) };
        Text t = { .arena = &b.arena };

        zip_make(&t, m, 3, (ZipForm)form);
        BED_OK(&b, bed_npz(&b, t.s, t.n, NULL, &npz));
        CHECK_EQ(npz.n, 3);
        check_array_a(&npz.array[0], "a");
        check_array_a(&npz.array[1], "b");
        check_array_a(&npz.array[2], "a.npy");
        BED_OK(&b, bed_npz(&b, t.s, t.n, "b", &npz));
        CHECK_EQ(npz.n, 1);
        check_array_a(&npz.array[0], "b");
        CHECK_EQ(bed_npz(&b, t.s, t.n, "c", &npz), ST_ARG);
        CHECK_STR(b.err.msg, "there is no member c.npy; the file has a.npy b.npy a.npy.npy");
    }
    bed_free(&b);
}

TEST(what_numpy_deflates_reads_or_is_refused_without_zlib)
{
    Bed b;
    IoNpz npz;

    bed_init(&b);
    if (!io_can_inflate()) {
        CHECK_EQ(bed_npz(&b, zip_numpy, sizeof zip_numpy, NULL, &npz), ST_LIMIT);
        CHECK_HAS(b.err.msg, "x.npy: it is compressed, and this build of Weft has no zlib");
        CHECK_HAS(b.err.msg, "write the file with numpy.savez");
        bed_free(&b);
        return;
    }
    BED_OK(&b, bed_npz(&b, zip_numpy, sizeof zip_numpy, NULL, &npz));
    CHECK_EQ(npz.n, 2);
    CHECK_STR(npz.array[0].name, "x");
    CHECK_EQ(npz.array[0].type, IO_F64);
    CHECK_EQ(npz.array[0].dim[0], 3);
    CHECK_EQ(npz.array[0].dim[1], 4);
    for (int k = 0; k < 12; k++)
        CHECK_SAME(((double *)npz.array[0].data)[k], k);
    CHECK_STR(npz.array[1].name, "i");
    CHECK_EQ(npz.array[1].type, IO_I32);
    CHECK_EQ(npz.array[1].n, 9);
    for (int k = 0; k < 9; k++)
        CHECK_EQ(((int32_t *)npz.array[1].data)[k], k < 8 ? 7 : -1);
    bed_free(&b);
}

TEST(a_member_with_dynamic_codes_reads)
{
    ZipMember m;
    Bed b;
    Text t, plain;
    IoNpz npz;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    t = plain = (Text){ .arena = &b.arena };
    m = zip_skewed_member(&b.arena, "s.npy");
    zip_make(&t, &m, 1, ZIP_NUMPY);
    zip_put_skewed(&plain);
    BED_OK(&b, bed_npz(&b, t.s, t.n, NULL, &npz));
    CHECK_EQ(npz.array[0].n, ZIP_SKEWED);
    for (int k = 0; k < ZIP_SKEWED; k++)
        CHECK_EQ(((int32_t *)npz.array[0].data)[k], plain.s[k]);
    bed_free(&b);
}

TEST(an_archive_cut_or_changed_at_any_byte_never_passes_unseen)
{
    Bed b;
    IoNpz npz;
    int changed = 0;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    for (size_t n = 0; n < sizeof zip_numpy; n++)
        CHECK_EQ(bed_npz(&b, zip_numpy, n, NULL, &npz), ST_PARSE);
    for (size_t k = 0; k < sizeof zip_numpy; k++) {
        uint8_t bytes[sizeof zip_numpy];

        memcpy(bytes, zip_numpy, sizeof bytes);
        bytes[k] ^= 0x10;
        if (bed_npz(&b, bytes, sizeof bytes, NULL, &npz) == ST_OK) {
            /* versions, dates, attributes, the local checksum and extra field: none of the data */
            CHECK_EQ(npz.n, 2);
            CHECK_SAME(((double *)npz.array[0].data)[11], 11);
            CHECK_EQ(((int32_t *)npz.array[1].data)[8], -1);
            changed++;
        }
    }
    CHECK(changed < 150);
    bed_free(&b);
}

TEST(archives_round_trip)
{
    static double x[] = { 1.5, -2, 0 };
    static uint16_t h[] = { 0x3c00 };
    IoArray arrays[] = { array_a,
                         { "x", IO_F64, 1, { 3 }, 3, x },
                         { "scalar", IO_F16, 0, { 0 }, 1, h },
                         { "empty", IO_I64, 2, { 3, 0 }, 0, NULL },
                         { "a/\xc3\xa9 b", IO_F32, 1, { 16 }, 16, numbers } };
    Bed b;

    bed_init(&b);
    for (int n = 0; n <= 5; n++) {
        IoNpz npz = { n, arrays }, back;
        Text t = { .arena = &b.arena };

        text_str(&t, "before"); /* offsets count from where the archive begins */
        io_npz_print(&t, &npz);
        BED_OK(&b, bed_npz(&b, t.s + 6, t.n - 6, NULL, &back));
        CHECK_EQ(back.n, n);
        for (int k = 0; k < n; k++) {
            CHECK_STR(back.array[k].name, arrays[k].name);
            CHECK_EQ(back.array[k].type, arrays[k].type);
            CHECK_EQ(back.array[k].ndim, arrays[k].ndim);
            CHECK(memcmp(back.array[k].dim, arrays[k].dim, sizeof arrays[k].dim) == 0);
            CHECK_EQ(back.array[k].n, arrays[k].n);
            CHECK(back.array[k].n == 0 ||
                  memcmp(back.array[k].data, arrays[k].data,
                         (size_t)back.array[k].n * io_type_size(back.array[k].type)) == 0);
        }
        if (n == 0) {
            CHECK_EQ(bed_npz(&b, t.s + 6, t.n - 6, "a", &back), ST_ARG);
            CHECK_STR(b.err.msg, "there is no member a.npy; the file has none");
        }
    }
    bed_free(&b);
}

/* One field of a good archive with the one member "a.npy", changed. */
typedef struct Patch {
    int form;
    unsigned method;
    char base; /* L local header, C directory, E end record, W ZIP64 end record, K its locator */
    int at, size;
    uint64_t v;
    const char *part;
} Patch;

static void apply(const Patch *p, Text *t)
{
    char *end = t->s + t->n - 22;
    char *dir = memmem(t->s, t->n, "PK\1\2", 4);
    char *at = p->base == 'L'   ? t->s
               : p->base == 'C' ? dir
               : p->base == 'E' ? end
               : p->base == 'W' ? end - 76
                                : end - 20;

    for (int i = 0; i < p->size; i++)
        at[p->at + i] = (char)(p->v >> 8 * i & 255);
}

static const Patch patches[] = {
    /* the end record */
    { ZIP_PLAIN, STORED, 'E', 0, 1, 'Q', "this is no .npz file" },
    { ZIP_PLAIN, STORED, 'E', 20, 2, 1, "does not end as a ZIP archive does" },
    { ZIP_PLAIN, STORED, 'E', 4, 2, 1, "in several parts" },
    { ZIP_PLAIN, STORED, 'E', 6, 2, 1, "in several parts" },
    { ZIP_PLAIN, STORED, 'E', 8, 2, 2, "in several parts" },
    { ZIP_PLAIN, STORED, 'E', 10, 2, 2, "in several parts" },
    { ZIP_PLAIN, STORED, 'E', 8, 4, 0x00020002, "too small for the 2 members" },
    { ZIP_PLAIN, STORED, 'E', 8, 4, 0xffffffff, "too small for the 65535 members" },
    { ZIP_PLAIN, STORED, 'E', 8, 4, 0, "goes on after its last member" },
    { ZIP_PLAIN, STORED, 'E', 12, 4, 50, "the directory is not where" },
    { ZIP_PLAIN, STORED, 'E', 12, 4, 0xffffffff, "the directory is not where" },
    { ZIP_PLAIN, STORED, 'E', 16, 4, 0, "the directory is not where" },
    { ZIP_PLAIN, STORED, 'E', 16, 4, 0x7fffffff, "the directory is not where" },
    { ZIP_PLAIN, STORED, 'E', 16, 4, 0xffffffff, "the directory is not where" },
    /* ZIP64 */
    { ZIP_64, STORED, 'K', 0, 1, 'Q', "the directory is not where" },
    { ZIP_64, STORED, 'K', 8, 8, 0, "the ZIP64 record is not where" },
    { ZIP_64, STORED, 'K', 8, 8, UINT64_MAX, "the ZIP64 record is not where" },
    { ZIP_64, STORED, 'K', 8, 8, 340, "the ZIP64 record is not where" },
    { ZIP_64, STORED, 'W', 0, 1, 'Q', "the ZIP64 record is not where" },
    { ZIP_64, STORED, 'W', 24, 8, 2, "in several parts" },
    { ZIP_64, STORED, 'W', 40, 8, 1, "the directory is not where" },
    { ZIP_64, STORED, 'W', 48, 8, UINT64_MAX, "the directory is not where" },
    { ZIP_64, STORED, 'W', 48, 8, 1, "the directory is not where" },
    { ZIP_64, STORED, 'C', 53, 2, 200, "ends inside a member's extra field" },
    { ZIP_64, STORED, 'C', 57, 2, 7, "inside another member or the directory" },
    { ZIP_64, STORED, 'C', 59, 2, 16, "ends inside the archive's directory" },
    { ZIP_64, STORED, 'C', 20, 4, 192, "it is not where the directory says" },
    { ZIP_64, STORED, 'C', 24, 4, 192, "it is not where the directory says" },
    { ZIP_64, STORED, 'C', 61, 8, UINT64_MAX, "its two sizes differ" },
    { ZIP_64, STORED, 'C', 69, 8, UINT64_MAX, "reach into the directory" },
    { ZIP_64, STORED, 'C', 77, 8, UINT64_MAX, "inside another member or the directory" },
    { ZIP_64, DEFLATED, 'C', 61, 8, (uint64_t)1 << 40, "more than deflate can" },
    /* the directory */
    { ZIP_PLAIN, STORED, 'C', 3, 1, 'Q', "lacks a member here" },
    { ZIP_PLAIN, STORED, 'C', 8, 2, 1, "it is encrypted" },
    { ZIP_PLAIN, STORED, 'C', 8, 2, 0x40, "it is encrypted" },
    { ZIP_PLAIN, STORED, 'C', 8, 2, 0x2000, "write it without a password" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 1, "packed with shrink (method 1)" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 6, "packed with implode" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 9, "packed with deflate64" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 12, "packed with bzip2" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 14, "packed with LZMA" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 93, "packed with Zstandard" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 95, "packed with xz" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 99, "packed with AES" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 7, "an unknown method (method 7)" },
    { ZIP_PLAIN, STORED, 'C', 10, 2, 8, "do not agree" },
    { ZIP_PLAIN, STORED, 'C', 16, 4, 0x12345678, "not 12345678; the file is damaged" },
    { ZIP_PLAIN, DEFLATED, 'C', 16, 4, 0, "its checksum is" },
    { ZIP_PLAIN, STORED, 'C', 20, 4, 1, "do not agree" },
    { ZIP_PLAIN, STORED, 'C', 24, 4, 1, "do not agree" },
    { ZIP_STREAMED, STORED, 'C', 20, 4, 191, "its two sizes differ" },
    { ZIP_STREAMED, STORED, 'C', 20, 4, 0x7fffffff, "reach into the directory" },
    { ZIP_STREAMED, STORED, 'C', 24, 4, 1, "its two sizes differ" },
    { ZIP_STREAMED, DEFLATED, 'C', 20, 4, 0, "more than deflate can" },
    { ZIP_STREAMED, DEFLATED, 'C', 20, 4, 20, "end too soon" },
    { ZIP_STREAMED, DEFLATED, 'C', 24, 4, 1, "longer than declared" },
    { ZIP_STREAMED, DEFLATED, 'C', 24, 4, 193, "shorter than declared" },
    { ZIP_STREAMED, DEFLATED, 'C', 24, 4, 0x7fffffff, "more than deflate can" },
    { ZIP_PLAIN, STORED, 'C', 28, 2, 0, "0 characters, not 1 to 255" },
    { ZIP_PLAIN, STORED, 'C', 28, 2, 4, "do not agree" },
    { ZIP_PLAIN, STORED, 'C', 28, 2, 6, "ends inside a member's name" },
    { ZIP_PLAIN, STORED, 'C', 30, 2, 1, "ends inside a member's extra field" },
    { ZIP_PLAIN, STORED, 'C', 32, 2, 1, "ends inside a member's comment" },
    { ZIP_PLAIN, STORED, 'C', 42, 4, 1, "it is not where the directory says" },
    { ZIP_PLAIN, STORED, 'C', 42, 4, 227, "it is not where the directory says" },
    { ZIP_PLAIN, STORED, 'C', 42, 4, 228, "inside another member or the directory" },
    { ZIP_PLAIN, STORED, 'C', 42, 4, 0xffffffff, "inside another member or the directory" },
    { ZIP_PLAIN, STORED, 'C', 46, 1, 0, "the name '?.npy' holds a control character" },
    { ZIP_PLAIN, STORED, 'C', 46, 1, 127, "holds a control character" },
    { ZIP_PLAIN, STORED, 'C', 46, 1, 'b', "do not agree" },
    /* the member's own header, and what is in it */
    { ZIP_PLAIN, STORED, 'L', 0, 1, 'Q', "a.npy: it is not where the directory says" },
    { ZIP_PLAIN, STORED, 'L', 8, 2, 8, "do not agree" },
    { ZIP_PLAIN, STORED, 'L', 18, 4, 1, "do not agree" },
    { ZIP_PLAIN, STORED, 'L', 22, 4, 1, "do not agree" },
    { ZIP_PLAIN, STORED, 'L', 26, 2, 4, "do not agree" },
    { ZIP_PLAIN, STORED, 'L', 28, 2, 0xffff, "ends inside a member's header" },
    { ZIP_PLAIN, STORED, 'L', 28, 2, 1, "reach into the directory" },
    { ZIP_PLAIN, STORED, 'L', 35, 1, 0, "its checksum is" },
    { ZIP_PLAIN, DEFLATED, 'L', 35, 1, 7, "a.npy: its compressed data are not what deflate gives" },
};

TEST(a_bad_archive_is_refused_with_the_cause)
{
    Bed b;
    IoNpz npz;

    CHECK(sizeof patches / sizeof *patches >= 40);
    bed_init(&b);
    for (size_t k = 0; k < sizeof patches / sizeof *patches; k++) {
        const Patch *p = &patches[k];
        bool expands = p->method == STORED || io_can_inflate();
        ZipMember m = make_member(&b, "a.npy", p->method);
        Text t = { .arena = &b.arena };
        Status s;

        zip_make(&t, &m, 1, (ZipForm)p->form);
        apply(p, &t);
        s = bed_npz(&b, t.s, t.n, NULL, &npz);
        if (s != (expands ? ST_PARSE : ST_LIMIT) ||
            strstr(b.err.msg, expands ? p->part : "no zlib") == NULL)
            test_fail(__FILE__, __LINE__, "form %d %c+%d = %llx: status %d: %s", p->form, p->base,
                      p->at, (unsigned long long)p->v, (int)s, b.err.msg);
        CHECK_STR(b.err.file, "t.npz");
    }
    bed_free(&b);
}

static void check_refused(Bed *b, const Text *t, Status status, const char *part)
{
    IoNpz npz;

    CHECK_EQ(bed_npz(b, t->s, t->n, NULL, &npz), status);
    CHECK_HAS(b->err.msg, part);
}

TEST(members_that_do_not_belong_are_refused)
{
    static char long_name[301];
    Bed b;
    ZipMember m[2];
    Text t, u, v, w, x;
    IoNpz npz;

    bed_init(&b);
    t = u = v = w = x = (Text){ .arena = &b.arena };
    m[0] = make_member(&b, "a.npy", STORED);
    m[1] = make_member(&b, "a.npy", DEFLATED);
    zip_make(&t, m, 2, ZIP_PLAIN);
    check_refused(&b, &t, ST_PARSE, "two members have the name 'a.npy'");

    m[1].name = "readme.txt";
    zip_make(&u, m, 2, ZIP_PLAIN);
    check_refused(&b, &u, ST_PARSE, "readme.txt: it is no .npy file");
    BED_OK(&b, bed_npz(&b, u.s, u.n, "a", &npz));
    check_array_a(&npz.array[0], "a");

    m[1].name = ".npy";
    zip_make(&v, m, 2, ZIP_PLAIN);
    check_refused(&b, &v, ST_PARSE, ".npy: it is no .npy file");

    memset(long_name, 'n', 300);
    m[1].name = long_name;
    zip_make(&w, m, 2, ZIP_PLAIN);
    check_refused(&b, &w, ST_PARSE, "has 300 characters");

    m[1].name = "text.npy";
    m[1].method = STORED;
    m[1].packed = "hello";
    m[1].npacked = m[1].size = 5;
    m[1].crc = io_crc32((const uint8_t *)"hello", 5);
    zip_make(&x, m, 2, ZIP_PLAIN);
    check_refused(&b, &x, ST_PARSE, "text.npy: this is no .npy file");
    bed_free(&b);
}

TEST(a_member_is_found_by_its_whole_name)
{
    static char names[60][24];
    ZipMember m[60];
    Bed b;
    Text t;
    IoNpz npz;

    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    for (int k = 0; k < 60; k++) {
        snprintf(names[k], sizeof names[k], "long%d.npy", k);
        m[k] = make_member(&b, names[k], STORED);
    }
    zip_make(&t, m, 60, ZIP_PLAIN);
    BED_OK(&b, bed_npz(&b, t.s, t.n, "long5", &npz));
    CHECK_EQ(npz.n, 1);
    check_array_a(&npz.array[0], "long5");
    CHECK_EQ(bed_npz(&b, t.s, t.n, "long", &npz), ST_ARG);
    CHECK_HAS(b.err.msg, "there is no member long.npy; the file has long0.npy long1.npy");
    CHECK(strlen(b.err.msg) < 300);
    bed_free(&b);
}

TEST(fields_that_fit_may_stand_beside_zip64_ones)
{
    ZipMember m;
    Bed b;
    Text t;
    IoNpz npz;

    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    m = make_member(&b, "a.npy", STORED);
    zip_make(&t, &m, 1, ZIP_64);
    apply(&(Patch){ .base = 'C', .at = 42, .size = 4, .v = 0 }, &t);
    BED_OK(&b, bed_npz(&b, t.s, t.n, NULL, &npz));
    check_array_a(&npz.array[0], "a");
    bed_free(&b);
}

/* An array is used where it was expanded to, unless a header of odd length leaves it misaligned. */
TEST(a_misaligned_array_in_a_deflated_member_reads)
{
    static const char dict[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 8)}  ";
    ZipMember m = { .name = "a.npy", .method = DEFLATED };
    Bed b;
    Text t, npy, packed;
    IoNpz npz;

    if (!io_can_inflate())
        return;
    bed_init(&b);
    t = npy = packed = (Text){ .arena = &b.arena };
    text_put(&npy, "\x93NUMPY\1", 8);
    zip_put(&npy, 2, strlen(dict));
    text_str(&npy, dict);
    text_put(&npy, (const char *)numbers, sizeof numbers);
    zip_deflate_stored(&packed, (const uint8_t *)npy.s, npy.n, 50);
    m.packed = packed.s;
    m.npacked = packed.n;
    m.size = npy.n;
    m.crc = io_crc32((const uint8_t *)npy.s, npy.n);
    zip_make(&t, &m, 1, ZIP_PLAIN);
    CHECK((npy.n - sizeof numbers) % 4 != 0);
    BED_OK(&b, bed_npz(&b, t.s, t.n, NULL, &npz));
    check_array_a(&npz.array[0], "a");
    bed_free(&b);
}

TEST(members_that_overlap_are_refused)
{
    Bed b;
    ZipMember m[2];
    Text t;
    char *second;

    bed_init(&b);
    m[0] = make_member(&b, "a.npy", STORED);
    m[1] = make_member(&b, "b.npy", STORED);
    t = (Text){ .arena = &b.arena };
    zip_make(&t, m, 2, ZIP_PLAIN);
    /* the second begins where the first does */
    second = t.s + t.n - 22 - 51;
    CHECK(memcmp(second, "PK\1\2", 4) == 0);
    memset(second + 42, 0, 4);
    check_refused(&b, &t, ST_PARSE, "b.npy: it begins at byte 0, inside another member");
    bed_free(&b);
}

TEST(an_archive_that_expands_beyond_the_limit_is_refused_before_it_is_expanded)
{
    size_t n = 4300000;
    uint8_t *zeros = calloc(n, 1);
    ZipMember m = { "a.npy", zeros, n, ((uint64_t)1 << 32) + 1, 0, DEFLATED };
    Bed b;
    Text t;

    CHECK(zeros != NULL);
    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    zip_make(&t, &m, 1, ZIP_64);
    free(zeros);
    check_refused(&b, &t, ST_LIMIT, io_can_inflate() ? "expands to more than 4 GiB" : "no zlib");
    bed_free(&b);
}

TEST(an_archive_of_too_many_members_is_refused)
{
    size_t n = 100001 * 46;
    Bed b;
    Text t;

    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    text_put(&t, arena_alloc(&b.arena, n), n);
    zip_put_end(&t, ZIP_64, 100001, 0, n);
    check_refused(&b, &t, ST_LIMIT, "more than 100000 members");
    bed_free(&b);
}

TEST(an_end_record_is_found_behind_a_comment)
{
    ZipMember m;
    Bed b;
    Text t, empty;
    IoNpz npz;

    bed_init(&b);
    m = make_member(&b, "a.npy", STORED);
    t = empty = (Text){ .arena = &b.arena };
    zip_make(&t, &m, 1, ZIP_PLAIN);
    t.s[t.n - 2] = 30;
    text_put(&t, "PK\5\6 is no record at this place", 30);
    BED_OK(&b, bed_npz(&b, t.s, t.n, NULL, &npz));
    check_array_a(&npz.array[0], "a");
    text_put(&t, arena_alloc(&b.arena, 70000), 70000);
    check_refused(&b, &t, ST_PARSE, "this is no .npz file");
    text_str(&empty, "");
    check_refused(&b, &empty, ST_PARSE, "this is no .npz file");
    /* a lone end record whose numbers say that a ZIP64 record should stand before it */
    zip_put_end(&empty, ZIP_PLAIN, 0xffff, 0, 0);
    check_refused(&b, &empty, ST_PARSE, "too small for the 65535 members");
    bed_free(&b);
}

TEST(an_archive_too_large_for_its_fields_is_not_written)
{
    IoArray many = { "a", IO_F64, 1, { (int64_t)1 << 29 }, (int64_t)1 << 29, NULL };
    IoArray huge = { "a", IO_F64, 1, { INT64_MAX }, INT64_MAX, NULL };
    IoArray large = { "a", IO_F64, 1, { INT64_MAX / 8 }, INT64_MAX / 8, NULL };
    IoArray some[] = { array_a, large };
    IoNpz npz[] = { { 1, &many }, { 1, &huge }, { 1, &large }, { 2, some }, { 65535, some } };
    Bed b;

    bed_init(&b);
    for (int k = 0; k < 5; k++) {
        Text t = { .arena = &b.arena };

        CHECK_EQ(CATCH(&b.err, io_npz_print(&t, &npz[k])), ST_LIMIT);
        CHECK_HAS(b.err.msg, "write .npy files");
    }
    bed_free(&b);
}

TEST(an_npz_reader_reports_every_failed_allocation)
{
    ZipMember m[2];
    Inject j;
    Arena arena;
    IoNpz npz;
    Bed b;
    Text t;

    bed_init(&b);
    m[0] = make_member(&b, "a.npy", STORED);
    m[1] = make_member(&b, "b.npy", packing());
    t = (Text){ .arena = &b.arena };
    zip_make(&t, m, 2, ZIP_NUMPY);
    for (int64_t k = 1;; k++) {
        Status s;

        inject_init(&j, &os_libc);
        inject_at(&j, INJECT_ALLOC, k, false, ENOMEM);
        arena_init(&arena, &j.os, &b.err);
        s = CATCH(&b.err,
                  io_npz_parse(&arena, (Bytes){ (uint8_t *)t.s, t.n }, "t.npz", NULL, &npz));
        CHECK_EQ(s, j.failed > 0 ? ST_NOMEM : ST_OK);
        arena_free(&arena);
        CHECK(inject_is_clean(&j));
        if (j.failed == 0)
            break;
    }
    bed_free(&b);
}
