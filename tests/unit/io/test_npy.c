/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/io/npy.c: NumPy arrays, good and bad. */
#include "fail/inject.h"
#include "unit/io_bed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* An .npy file of the given version, header and data. */
static Text make_npy(Bed *b, int version, const char *dict, const void *data, size_t n)
{
    Text t = { .arena = &b->arena };
    size_t len = strlen(dict);

    text_str(&t, "\x93NUMPY");
    text_char(&t, (char)version);
    text_char(&t, 0);
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        text_char(&t, (char)(len >> 8 * i & 255));
    text_put(&t, dict, len);
    text_put(&t, data, n);
    return t;
}

static double value(const IoArray *a, int64_t p)
{
    switch (a->type) {
    case IO_I32: return ((const int32_t *)a->data)[p];
    case IO_I64: return (double)((const int64_t *)a->data)[p];
    case IO_F16: return (double)num_f16(((const uint16_t *)a->data)[p]);
    case IO_F32: return (double)((const float *)a->data)[p];
    default: return ((const double *)a->data)[p];
    }
}

static void check_same_array(const IoArray *a, const IoArray *b)
{
    CHECK_EQ(a->type, b->type);
    CHECK_EQ(a->ndim, b->ndim);
    CHECK_EQ(a->n, b->n);
    CHECK(memcmp(a->dim, b->dim, sizeof a->dim) == 0);
    CHECK(memcmp(a->data, b->data, (size_t)a->n * io_type_size(a->type)) == 0);
}

TEST(every_dtype_reads_in_both_byte_orders)
{
    static const struct {
        const char *descr;
        IoType type;
        const char *little; /* two elements */
        double v[2];
    } cases[] = {
        { "f2", IO_F16, "\x00\x3c\x00\xc1", { 1, -2.5 } },
        { "f4", IO_F32, "\x00\x00\x80\x3f\x00\x00\x20\xc0", { 1, -2.5 } },
        { "f8", IO_F64, "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x04\xc0", { 1, -2.5 } },
        { "i4", IO_I32, "\x04\x03\x02\x01\xfe\xff\xff\xff", { 0x01020304, -2 } },
        { "i8",
          IO_I64,
          "\x04\x03\x02\x01\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff",
          { 0x01020304, -2 } },
        { "b1", IO_I32, "\x00\x01", { 0, 1 } },
        { "b1", IO_I32, "\x07\x80", { 1, 1 } },
        { "i1", IO_I32, "\x7f\x80", { 127, -128 } },
        { "u1", IO_I32, "\x7f\x80", { 127, 128 } },
        { "i2", IO_I32, "\x02\x01\xfe\xff", { 258, -2 } },
        { "u2", IO_I32, "\x02\x01\xfe\xff", { 258, 65534 } },
        { "u4", IO_I64, "\x04\x03\x02\x01\xfe\xff\xff\xff", { 0x01020304, 4294967294.0 } },
        { "u8",
          IO_I64,
          "\x04\x03\x02\x01\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f",
          { 0x01020304, 9223372036854775807.0 } },
    };
    Bed b;
    IoArray a;

    bed_init(&b);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t size = (size_t)(cases[k].descr[1] - '0');

        for (const char *order = "<>=|!"; *order != 0; order++) {
            char dict[100], data[16];
            Text t;

            snprintf(dict, sizeof dict, "{'descr':'%.*s%s','fortran_order':False,'shape':(2,)}",
                     *order != '!', order, cases[k].descr);
            for (size_t i = 0; i < 2 * size; i++)
                data[i] =
                    cases[k].little[*order == '>' ? i / size * size + size - 1 - i % size : i];
            t = make_npy(&b, 1, dict, data, 2 * size);
            BED_OK(&b, bed_npy(&b, t.s, t.n, &a));
            CHECK_EQ(a.type, cases[k].type);
            CHECK_EQ(a.ndim, 1);
            CHECK_EQ(a.dim[0], 2);
            CHECK_EQ(a.n, 2);
            CHECK_STR(a.name, "");
            CHECK_SAME(value(&a, 0), cases[k].v[0]);
            CHECK_SAME(value(&a, 1), cases[k].v[1]);
        }
    }
    bed_free(&b);
}

TEST(every_version_and_layout_of_a_header_reads)
{
    static const char *const dicts[] = {
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{'descr': '<i4', 'fortran_order': True, 'shape': (6,)}",
        "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<i4\"}",
        " \t\r\n{ 'fortran_order' : False , 'shape' : ( 2 , 3 ) , 'descr' : '<i4' , } ",
    };
    static const int32_t data[] = { 1, 2, 3, 4, 5, 6 };
    Bed b;
    IoArray a;

    bed_init(&b);
    for (int version = 1; version <= 3; version++) {
        for (size_t k = 0; k < sizeof dicts / sizeof *dicts; k++) {
            Text t = make_npy(&b, version, dicts[k], data, sizeof data);

            BED_OK(&b, bed_npy(&b, t.s, t.n, &a));
            CHECK_EQ(a.type, IO_I32);
            CHECK_EQ(a.ndim, k == 1 ? 1 : 2);
            CHECK_EQ(a.dim[0], k == 1 ? 6 : 2);
            CHECK_EQ(a.dim[1], k == 1 ? 0 : 3);
            CHECK(memcmp(a.data, data, sizeof data) == 0);
        }
    }
    bed_free(&b);
}

TEST(fortran_order_becomes_c_order)
{
    static const char *const dicts[] = {
        "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }",
        "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }",
        "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3, 4), }",
    };
    Bed b;
    IoArray a;

    bed_init(&b);
    for (int k = 0; k < 3; k++) {
        uint8_t data[96] = { 0 };
        int size = k == 0 ? 2 : 4;
        Text t;

        for (int p = 0; p < 24; p++)
            data[size * p + (k == 2 ? 3 : 0)] = (uint8_t)p;
        t = make_npy(&b, 1, dicts[k], data, (size_t)(24 * size));
        BED_OK(&b, bed_npy(&b, t.s, t.n, &a));
        for (int i = 0; i < 24; i++)
            CHECK_EQ(((int32_t *)a.data)[i], i / 12 + 2 * (i / 4 % 3) + 6 * (i % 4));
    }
    bed_free(&b);
}

TEST(arrays_of_every_type_and_rank_round_trip)
{
    Bed b;

    bed_init(&b);
    for (int type = IO_I32; type <= IO_F64; type++) {
        for (int ndim = 0; ndim <= IO_RANK; ndim++) {
            for (int empty = 0; empty <= (ndim > 0); empty++) {
                IoArray a = { .name = "", .type = (IoType)type, .ndim = ndim, .n = !empty }, back;
                Text t = { .arena = &b.arena };
                uint8_t *data;

                for (int d = 0; d < ndim; d++) {
                    a.dim[d] = empty && d == ndim / 2 ? 0 : d % 3 == 0 ? 3 : 1;
                    a.n *= a.dim[d];
                }
                data = arena_array(&b.arena, a.n, 8);
                for (int64_t p = 0; p < 8 * a.n; p++)
                    data[p] = (uint8_t)(37 * p + ndim);
                a.data = data;
                io_npy_print(&t, &a);
                BED_OK(&b, bed_npy(&b, t.s, t.n, &back));
                check_same_array(&a, &back);
                CHECK_EQ((t.n - (size_t)a.n * io_type_size(a.type)) % 64, 0);
            }
        }
    }
    bed_free(&b);
}

/* np.save of numpy 2.4: np.arange(6, dtype='f4').reshape(2, 3), and np.array(7) */
TEST(what_is_written_is_what_numpy_writes)
{
    static const float data[] = { 0, 1, 2, 3, 4, 5 };
    static int64_t seven = 7;
    IoArray a = { .type = IO_F32, .ndim = 2, .dim = { 2, 3 }, .n = 6, .data = (void *)data };
    IoArray s = { .type = IO_I64, .n = 1, .data = &seven };
    Bed b;
    Text t, u;

    bed_init(&b);
    t = u = (Text){ .arena = &b.arena };
    io_npy_print(&t, &a);
    CHECK_EQ(t.n, 128 + sizeof data);
    CHECK(memcmp(t.s,
                 "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
                 "(2, 3), }            ",
                 80) == 0);
    CHECK_EQ(t.s[127], '\n');
    io_npy_print(&u, &s);
    CHECK(memcmp(u.s + 10, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 55) == 0);
    bed_free(&b);
}

TEST(extents_of_an_empty_array_may_be_large)
{
    static const char *const dicts[] = {
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (1000000, 0, 1000000), }",
    };
    Bed b;
    IoArray a;

    bed_init(&b);
    for (int k = 0; k < 2; k++) {
        Text t = make_npy(&b, 1, dicts[k], "", 0);

        BED_OK(&b, bed_npy(&b, t.s, t.n, &a));
        CHECK_EQ(a.n, 0);
        CHECK_EQ(a.ndim, 2 + k);
        CHECK_EQ(a.dim[1], k == 0 ? 1000000000000 : 0);
    }
    bed_free(&b);
}

#define REST "'fortran_order': False, 'shape': (1,), }"

TEST(a_bad_npy_header_is_refused_with_the_cause)
{
    static const struct {
        const char *dict;
        size_t n; /* bytes of data */
        Status status;
        const char *part;
    } bad[] = {
        { "", 8, ST_PARSE, "lacks a '{'" },
        { "   \n", 8, ST_PARSE, "lacks a '{'" },
        { "[]", 8, ST_PARSE, "lacks a '{'" },
        { "{", 8, ST_PARSE, "lacks a string" },
        { "{}", 8, ST_PARSE, "lacks 'descr'" },
        { "{,}", 8, ST_PARSE, "lacks a string" },
        { "{'descr", 8, ST_PARSE, "string without end" },
        { "{'descr'", 8, ST_PARSE, "lacks a ':'" },
        { "{'descr' '<f8'}", 8, ST_PARSE, "lacks a ':'" },
        { "{'descr': ", 8, ST_PARSE, "lacks a string" },
        { "{'descr': <f8, " REST, 8, ST_PARSE, "lacks a string" },
        { "{'descr': '<f8\"", 8, ST_PARSE, "string without end" },
        { "{'descr': '<f8'", 8, ST_PARSE, "lacks a '}'" },
        { "{'descr': '<f8' " REST, 8, ST_PARSE, "lacks a '}'" },
        { "{'descr': '<f8',, " REST, 8, ST_PARSE, "lacks a string" },
        { "{'descr': '<f8', }", 8, ST_PARSE, "lacks 'fortran_order'" },
        { "{'descr': '<f8', 'fortran_order': False}", 8, ST_PARSE, "lacks 'shape'" },
        { "{'fortran_order': False, 'shape': (1,)}", 8, ST_PARSE, "lacks 'descr'" },
        { "{'descr': '<f8', 'descr': '<f8', " REST, 8, ST_PARSE, "has 'descr' twice" },
        { "{'descr': '<f8', 'x': 1, " REST, 8, ST_PARSE, "unknown key 'x'" },
        { "{'Descr': '<f8', " REST, 8, ST_PARSE, "unknown key 'Descr'" },
        { "{'': '<f8', " REST, 8, ST_PARSE, "unknown key ''" },
        { "{'descr': '<f8', " REST " x", 8, ST_PARSE, "goes on after its dict" },
        { "{'descr': '<f8', " REST "}", 8, ST_PARSE, "goes on after its dict" },
        /* types */
        { "{'descr': '', " REST, 8, ST_PARSE, "dtype '': this type is not supported" },
        { "{'descr': '<', " REST, 8, ST_PARSE, "dtype '<': this type is not supported" },
        { "{'descr': 'f', " REST, 8, ST_PARSE, "convert it with .astype('f8')" },
        { "{'descr': '<f16', " REST, 16, ST_PARSE, "dtype '<f16': this type" },
        { "{'descr': '<f3', " REST, 3, ST_PARSE, "dtype '<f3': this type" },
        { "{'descr': '<f8 ', " REST, 8, ST_PARSE, "dtype '<f8 ': this type" },
        { "{'descr': '<<f8', " REST, 8, ST_PARSE, "dtype '<<f8': this type" },
        { "{'descr': '<i16', " REST, 16, ST_PARSE, "dtype '<i16': this type" },
        { "{'descr': '|O', " REST, 8, ST_PARSE, "Python objects are not read" },
        { "{'descr': '<c16', " REST, 16, ST_PARSE, "complex numbers are not supported" },
        { "{'descr': '|V2', " REST, 2, ST_PARSE, "bfloat16 is saved like this" },
        { "{'descr': '|S3', " REST, 3, ST_PARSE, "text is not supported" },
        { "{'descr': '<U3', " REST, 12, ST_PARSE, "text is not supported" },
        { "{'descr': '<M8[s]', " REST, 8, ST_PARSE, "dates are not supported" },
        { "{'descr': '<m8[s]', " REST, 8, ST_PARSE, "times are not supported" },
        { "{'descr': [('x', '<f8')], " REST, 8, ST_PARSE, "structured arrays" },
        { "{'descr': 'a\tb\x7f', " REST, 8, ST_PARSE, "dtype 'a?b?'" },
        /* order and shape */
        { "{'descr': '<f8', 'fortran_order': ", 8, ST_PARSE, "neither True nor False" },
        { "{'descr': '<f8', 'fortran_order': Tru", 8, ST_PARSE, "neither True nor False" },
        { "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", 8, ST_PARSE, "neither True" },
        { "{'descr': '<f8', 'fortran_order': false, 'shape': (1,)}", 8, ST_PARSE, "neither True" },
        { "{'descr': '<f8', 'fortran_order': Falsey, 'shape': (1,)}", 8, ST_PARSE, "lacks a '}'" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': 1}", 8, ST_PARSE, "lacks a '('" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': [1]}", 8, ST_PARSE, "lacks a '('" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1)}", 8, ST_PARSE, "lacks a ','" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1 1)}", 8, ST_PARSE, "lacks a ','" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1", 8, ST_PARSE, "lacks a ')'" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1,, 1)}", 8, ST_PARSE,
          "lacks a number" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (", 8, ST_PARSE, "lacks a number" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (,)}", 8, ST_PARSE, "lacks a number" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", 8, ST_PARSE,
          "lacks a number" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (x,)}", 8, ST_PARSE,
          "lacks a number" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,)}", 8, ST_PARSE, "lacks a ','" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,)}", 8, ST_PARSE,
          "exceeds 64 bits" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,)}", 8,
          ST_PARSE, "exceeds 64 bits" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807,)}", 8, ST_PARSE,
          "too many elements to be counted" },
        { "{'descr': '<i1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0,
          ST_PARSE, "too many elements to be counted" },
        { "{'descr': '<i1', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}", 0,
          ST_PARSE, "too many elements to be counted" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
          8, ST_LIMIT, "more than 16 dimensions" },
        /* data */
        { "{'descr': '<f8', " REST, 7, ST_PARSE, "the shape takes 8 bytes, but 7 follow" },
        { "{'descr': '<f8', " REST, 9, ST_PARSE, "the shape takes 8 bytes, but 9 follow" },
        { "{'descr': '<f8', " REST, 0, ST_PARSE, "the shape takes 8 bytes, but 0 follow" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 16, ST_PARSE, "takes 8 bytes" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}", 1, ST_PARSE, "takes 0 bytes" },
        { "{'descr': '<i8', 'fortran_order': False, 'shape': (1099511627776,)}", 16, ST_PARSE,
          "takes 8796093022208 bytes, but 16 follow" },
        { "{'descr': '<u8', " REST, 8, ST_PARSE, "the value 18446744073709551615 does not fit" },
    };
    static const uint8_t data[16] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    Bed b;
    IoArray a;

    CHECK(sizeof bad / sizeof *bad >= 40);
    bed_init(&b);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        for (int version = 1; version <= 3; version++) {
            Text t = make_npy(&b, version, bad[k].dict, data, bad[k].n);
            Status s = bed_npy(&b, t.s, t.n, &a);

            if (s != bad[k].status || strstr(b.err.msg, bad[k].part) == NULL)
                test_fail(__FILE__, __LINE__, "%s: status %d: %s", bad[k].dict, (int)s, b.err.msg);
            CHECK_HAS(b.err.msg, "(at byte ");
            CHECK_STR(b.err.file, "t.npy");
        }
    }
    bed_free(&b);
}

TEST(what_is_no_npy_file_is_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *part;
    } bad[] = {
        { "", 0, "this is no .npy file" },
        { "\x93NUMP", 5, "this is no .npy file" },
        { "\x93NUMPX\1\0\0\0", 10, "this is no .npy file" },
        { "PK\3\4", 4, "write it with numpy.save" },
        { "\x93NUMPY", 6, "ends inside the version" },
        { "\x93NUMPY\1", 7, "ends inside the version" },
        { "\x93NUMPY\0\0\0\0", 10, "version 0.0 of the format is not known" },
        { "\x93NUMPY\4\0\0\0\0\0", 12, "version 4.0 of the format is not known" },
        { "\x93NUMPY\1\1\0\0", 10, "version 1.1 of the format is not known" },
        { "\x93NUMPY\1\0", 8, "ends inside the length of the header" },
        { "\x93NUMPY\1\0\1", 9, "ends inside the length of the header" },
        { "\x93NUMPY\2\0\0\0\0", 11, "ends inside the length of the header" },
        { "\x93NUMPY\1\0\x10\0{}", 12, "ends inside the header" },
        { "\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, "ends inside the header" },
        { "\x93NUMPY\1\0\0\0", 10, "lacks a '{'" },
    };
    Bed b;
    IoArray a;

    bed_init(&b);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        CHECK_EQ(bed_npy(&b, bad[k].bytes, bad[k].n, &a), ST_PARSE);
        CHECK_HAS(b.err.msg, bad[k].part);
    }
    CHECK_EQ(CATCH(&b.err, io_npy_parse(&b.arena, (Bytes){ NULL, 0 }, "t.npy", &a)), ST_PARSE);
    bed_free(&b);
}

TEST(an_npy_file_cut_at_any_byte_is_refused)
{
    static const int32_t data[] = { 1, 2, 3 };
    IoArray a = { .type = IO_I32, .ndim = 1, .dim = { 3 }, .n = 3, .data = (void *)data };
    Bed b;
    Text t;

    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    io_npy_print(&t, &a);
    for (size_t n = 0; n < t.n; n++)
        CHECK_EQ(bed_npy(&b, t.s, n, &a), ST_PARSE);
    BED_OK(&b, bed_npy(&b, t.s, t.n, &a));
    bed_free(&b);
}

TEST(an_npy_reader_reports_every_failed_allocation)
{
    static int32_t data[2000];
    IoArray a = { .type = IO_I32, .ndim = 1, .dim = { 2000 }, .n = 2000, .data = data }, back;
    Inject j;
    Arena arena;
    Bed b;
    Text t;

    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    io_npy_print(&t, &a);
    for (int64_t k = 1;; k++) {
        Status s;

        inject_init(&j, &os_libc);
        inject_at(&j, INJECT_ALLOC, k, false, ENOMEM);
        arena_init(&arena, &j.os, &b.err);
        s = CATCH(&b.err, io_npy_parse(&arena, (Bytes){ (uint8_t *)t.s, t.n }, "t.npy", &back));
        CHECK_EQ(s, j.failed > 0 ? ST_NOMEM : ST_OK);
        arena_free(&arena);
        CHECK(inject_is_clean(&j));
        if (j.failed == 0)
            break;
    }
    bed_free(&b);
}
