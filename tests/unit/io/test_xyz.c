/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * io/xyz.c: plain and extended XYZ files, good and bad. */
#include "unit/io_bed.h"

#include "fail/inject.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static Status bed_xyz(Bed *b, const void *p, size_t n, IoAtoms *out)
{
    uint8_t *copy = bed_block(p, n);
    Status s = CATCH(&b->err, io_xyz_parse(&b->arena, (Bytes){ copy, n }, "t.xyz", out));

    free(copy);
    return s;
}

static void read(Bed *b, const char *text, IoAtoms *out)
{
    BED_OK(b, bed_xyz(b, text, strlen(text), out));
}

TEST(a_plain_xyz_file_is_read)
{
    IoAtoms a;
    Bed b;

    bed_init(&b);
    read(&b, "3\nwater, made by hand = \nO 0 0 0\n\tH  0.5 -1e0 .25 and more\r\nH 1 2 3", &a);
    CHECK_EQ(a.n, 3);
    CHECK_EQ(a.kinds, 2);
    CHECK_STR(a.name[0], "O");
    CHECK_STR(a.name[1], "H");
    CHECK_EQ(a.kind[0], 0);
    CHECK_EQ(a.kind[1], 1);
    CHECK_EQ(a.kind[2], 1);
    CHECK_SAME(a.pos[4], -1.0);
    CHECK_SAME(a.pos[8], 3.0);
    CHECK(!a.pbc[0] && !a.pbc[1] && !a.pbc[2] && a.cell[0] == 0);
    read(&b, "0\n", &a);
    CHECK_EQ(a.n, 0);
    read(&b, " 1 \r\n\r\nAr 1 1 1\n1\n\nXe 2 2 2\n", &a); /* the first of two */
    CHECK_EQ(a.n, 1);
    CHECK_STR(a.name[0], "Ar");
    bed_free(&b);
}

TEST(an_extended_xyz_file_is_read)
{
    static const char text[] =
        "2\n"
        "energy=-1.5 Properties=id:I:1:pos:R:3:species:S:1:ok:L:1 note=\"a \\\" Lattice=\\\"1\" "
        "Lattice=\"1 0 0  0.5 2 0 0 0 3\" list={1 2} flag pbc='T false 1' last=\n"
        "7 0 1 2 Si T\n8 3 4 5 O F\n";
    IoAtoms a;
    Bed b;

    bed_init(&b);
    read(&b, text, &a);
    CHECK_EQ(a.n, 2);
    CHECK_STR(a.name[a.kind[1]], "O");
    CHECK_SAME(a.pos[5], 5.0);
    CHECK_SAME(a.cell[3], 0.5);
    CHECK_SAME(a.cell[8], 3.0);
    CHECK(a.pbc[0] && !a.pbc[1] && a.pbc[2]);
    read(&b, "1\nlattice=\"1 0 0 0 1 0 0 0 1\"\nH 0 0 0\n", &a);
    CHECK(a.pbc[0] && a.pbc[1] && a.pbc[2]);
    read(&b, "1\npbc=\"F F 0\"\nH 0 0 0\n", &a);
    CHECK(!a.pbc[0]);
    bed_free(&b);
}

TEST(a_bad_xyz_file_is_refused_with_place_and_remedy)
{
    static const struct {
        const char *text;
        int line, col;
        const char *part;
    } bad[] = {
        { "", 1, 1, "expected the number of atoms" },
        { "x\n", 1, 1, "expected the number of atoms, found 'x'" },
        { "-1\n\n", 1, 1, "found '-1'" },
        { "1 2\n\n", 1, 3, "expected the end of the line, found '2'" },
        { "1", 1, 2, "the file ends before its second line" },
        { "2\n\nH 0 0 0", 1, 1, "no room for so many atoms" },
        { "9223372036854775807\n\n", 1, 1, "no room" },
        { "1\n          \nH 0 0\n", 3, 6, "expected a coordinate, a finite number, but there is" },
        { "1\n          \nH 0 0 x\n", 3, 7, "found 'x'" },
        { "1\n          \nH 0 0 inf\n", 3, 7, "found 'inf'" },
        { "1\n                    ", 2, 21, "the file ends before its last atom" },
        { "1\n          \n   \n", 3, 4, "expected the name of an atom" },
        { "1\n      \nH\x01 0 0 0\n", 3, 1, "can be printed" },
        { "1\n      \nH\x7f 0 0 0\n", 3, 1, "can be printed" },
        { "1\n\nabcdefghijabcdefghijabcdefghijabcdefghijk 0 0 0\n", 3, 1, "at most 40 characters" },
        { "1\nLattice=\"1 2 3\"\nH 0 0 0\n", 2, 15, "a Lattice of nine numbers, but" },
        { "1\nLattice=\"1 0 0 0 1 0 0 0 1 2\"\nH 0 0 0\n", 2, 28, "nine numbers, found '2'" },
        { "1\nLattice=\"1 0 0 0 1 0 0 0 nan\"\nH 0 0 0\n", 2, 26, "found 'nan'" },
        { "1\nLattice=\"1 0 0\nH 0 0 0\n", 2, 9, "this value has no end; close it with \"" },
        { "1\nnote={1 0 0  H 0 0 0", 2, 6, "close it with }" },
        { "1\nnote=\"   H 0 0 0\\", 2, 6, "close it with \"" },
        { "1\npbc=\"T T\"\nH 0 0 0\n", 2, 9, "a pbc of three T or F, but" },
        { "1\npbc=\"T T x\"\nH 0 0 0\n", 2, 10, "found 'x'" },
        { "1\npbc=\"T T F T\"\nH 0 0 0\n", 2, 12, "found 'T'" },
        { "1\npbc=\"T T T\"\nH 0 0 0\n", 1, 1, "there is no Lattice" },
        { "1\nProperties=species:S:1\nH 0 0 0\n", 2, 12, "must have species:S:1 and pos:R:3" },
        { "1\nProperties=pos:R:3\nH 0 0 0\n", 2, 12, "must have" },
        { "1\nProperties=\nH 0 0 0\n", 2, 12, "must have" },
        { "1\nProperties=species:R:1:pos:R:3\nH 0 0 0\n", 2, 12, "must have" },
        { "1\nProperties=species:S:2:pos:R:3\nH 0 0 0\n", 2, 12, "must have" },
        { "1\nProperties=species:S:1:pos:R:2\nH 0 0 0\n", 2, 12, "must have" },
        { "1\nProperties=species:S:1:pos:I:3\nH 0 0 0\n", 2, 12, "must have" },
        { "1\nProperties=species:Q:1:pos:R:3\nH 0 0 0\n", 2, 20, "S, R, I or L, found 'Q'" },
        { "1\nProperties=species:SS:1:pos:R:3\nH 0 0 0\n", 2, 20, "found 'SS'" },
        { "1\nProperties=species\nH 0 0 0\n", 2, 19, "S, R, I or L, but" },
        { "1\nProperties=species:S:x:pos:R:3\nH 0 0 0\n", 2, 22, "1 to 1000, found 'x'" },
        { "1\nProperties=species:S:0:pos:R:3\nH 0 0 0\n", 2, 22, "found '0'" },
        { "1\nProperties=species:S:1001\nH 0 0 0\n", 2, 22, "1 to 1000" },
        { "1\nProperties=a:S:900:b:R:101\nH 0 0 0\n", 2, 24, "at most 1000 columns" },
        { "1\nProperties=species:S:1:pos:R:3:f:R:1\nH 0 0 0\n", 3, 8, "as Properties say" },
        { "1\nProperties=species:S:1:pos:R:3\nH 0 0 0 1\n", 3, 9, "the end of the line" },
        { "2\nProperties=species:S:1:pos:R:3\nH 0 0 0 1\nH 0 0 0\n", 3, 9, "the end of the line" },
    };
    IoAtoms a;
    Bed b;

    bed_init(&b);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        Status s = bed_xyz(&b, bad[k].text, strlen(bad[k].text), &a);

        if (s != ST_PARSE || b.err.line != bad[k].line || b.err.col != bad[k].col ||
            strstr(b.err.msg, bad[k].part) == NULL)
            test_fail(__FILE__, __LINE__, "case %zu: status %d, %d:%d: %s\n%s", k, (int)s,
                      b.err.line, b.err.col, b.err.msg, bad[k].text);
        CHECK_STR(b.err.file, "t.xyz");
    }
    bed_free(&b);
}

TEST(atoms_of_many_kinds_are_read_up_to_a_limit)
{
    for (int more = 0; more < 2; more++) {
        Text t;
        IoAtoms a;
        Bed b;

        bed_init(&b);
        t = (Text){ .arena = &b.arena };
        text_f(&t, "%d\n\n", 2 * (IO_KINDS + more));
        for (int k = 0; k < 2 * (IO_KINDS + more); k++)
            text_f(&t, "K%d 0 0 0\n", k % (IO_KINDS + more));
        if (more > 0) {
            CHECK_EQ(bed_xyz(&b, t.s, t.n, &a), ST_LIMIT);
            CHECK_HAS(b.err.msg, "more than 1024 kinds");
        } else {
            BED_OK(&b, bed_xyz(&b, t.s, t.n, &a));
            CHECK_EQ(a.kinds, IO_KINDS);
            CHECK_EQ(a.kind[2 * IO_KINDS - 1], IO_KINDS - 1);
        }
        bed_free(&b);
    }
}

TEST(atoms_that_are_printed_read_back_the_same)
{
    static const char *const name[] = { "Si", "O" };
    double pos[] = { 0.1, -1e-300, 5.431, 1.0 / 3, 2e20, -0.0 };
    int32_t kind[] = { 1, 0 };

    for (int k = 0; k < 16; k++) {
        IoAtoms a = { .n = k == 15 ? 0 : 2, .pos = pos, .kind = kind, .kinds = 2, .name = name };
        IoAtoms back;
        Text t;
        Bed b;

        for (int c = 0; c < 3; c++)
            a.pbc[c] = k >> c & 1;
        a.cell[k % 9] = k < 8 && k > 0 ? 1.0 / 7 : k == 8 ? 2 : 0;
        for (int c = 0; k >= 8 && c < 3; c++)
            a.pbc[c] = false;
        bed_init(&b);
        t = (Text){ .arena = &b.arena };
        io_xyz_print(&t, &a);
        BED_OK(&b, bed_xyz(&b, t.s, t.n, &back));
        CHECK_EQ(back.n, a.n);
        CHECK(memcmp(back.cell, a.cell, sizeof a.cell) == 0);
        CHECK(memcmp(back.pbc, a.pbc, sizeof a.pbc) == 0);
        CHECK(memcmp(back.pos, pos, (size_t)a.n * 24) == 0);
        for (int64_t i = 0; i < a.n; i++)
            CHECK_STR(back.name[back.kind[i]], name[kind[i]]);
        bed_free(&b);
    }
}

TEST(an_xyz_file_cut_at_any_byte_is_read_or_refused)
{
    static const char text[] = "2\nLattice=\"1 0 0 0 1 0 0 0 1\" Properties=species:S:1:pos:R:3\n"
                               "H 0 0 0\nO 1.5 1 1.25\n";
    size_t accepted = 0;
    IoAtoms a;
    Bed b;

    bed_init(&b);
    for (size_t n = 0; n < sizeof text; n++)
        accepted += bed_xyz(&b, text, n, &a) == ST_OK;
    CHECK_EQ(accepted, 5); /* with fewer digits of the last number too */
    bed_free(&b);
}

TEST(an_xyz_reader_reports_every_failed_allocation)
{
    static const char text[] = "2\n\nH 0 0 0\nO 1 1 1\n";
    Err err = { 0 };
    Arena arena;
    IoAtoms a;
    Inject j;

    for (int64_t k = 1;; k++) {
        Status s;

        inject_init(&j, &os_libc);
        inject_at(&j, INJECT_ALLOC, k, false, ENOMEM);
        arena_init(&arena, &j.os, &err);
        s = CATCH(&err, io_xyz_parse(&arena, (Bytes){ (const uint8_t *)text, sizeof text - 1 },
                                     "t.xyz", &a));
        CHECK_EQ(s, j.failed > 0 ? ST_NOMEM : ST_OK);
        arena_free(&arena);
        CHECK(inject_is_clean(&j));
        if (j.failed == 0)
            break;
    }
}
