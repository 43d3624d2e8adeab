/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of src/ir stand on: an arena, a trap, a program read from text, and tables of
 * texts that must be refused with the right message at the right place. */
#ifndef WEFT_IR_BED_H
#define WEFT_IR_BED_H

#include "ir/ir.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <stdio.h>
#include <string.h>

typedef struct Bed {
    Err err;
    Arena arena;
    Prog *p;
} Bed;

static inline void bed_open(Bed *b)
{
    memset(b, 0, sizeof *b);
    arena_init(&b->arena, &os_libc, &b->err);
}

static inline void bed_close(Bed *b)
{
    arena_free(&b->arena);
}

/* Reads and checks a program into b->p; the status. */
static inline Status bed_try(Bed *b, const char *text)
{
    return CATCH(&b->err, b->p = ir_parse(&b->arena, "t.weft", text, strlen(text)); ir_check(b->p));
}

static inline Prog *bed_read(Bed *b, const char *text)
{
    if (bed_try(b, text) != ST_OK)
        test_fail(__FILE__, __LINE__, "refused at %d:%d: %s\n%s", b->err.line, b->err.col,
                  b->err.msg, text);
    return b->p;
}

static inline const char *bed_print(Bed *b, Prog *p)
{
    Text out = { .arena = &b->arena };

    if (CATCH(&b->err, ir_print(&out, p)) != ST_OK)
        test_fail(__FILE__, __LINE__, "printing fails: %s", b->err.msg);
    return out.s;
}

/* What is printed reads back to the same program and prints the same; the text. */
static inline const char *bed_round(Bed *b, Prog *p)
{
    const char *text = bed_print(b, p), *again;
    Prog *q = bed_read(b, text);

    again = bed_print(b, q);
    CHECK_STR(again, text);
    CHECK(ir_equal(p, q));
    CHECK(ir_hash(p) == ir_hash(q));
    return text;
}

/* Reads, prints and reads back: the printed text. */
static inline const char *bed_canonical(Bed *b, const char *text)
{
    return bed_round(b, bed_read(b, text));
}

/* Both texts are the same program. */
static inline void bed_same(const char *one, const char *other)
{
    Bed b;
    Prog *p;

    bed_open(&b);
    p = bed_read(&b, one);
    if (!ir_equal(p, bed_read(&b, other)))
        test_fail(__FILE__, __LINE__, "not the same program:\n%s\n%s", one, other);
    CHECK(ir_hash(p) == ir_hash(b.p));
    bed_close(&b);
}

typedef struct Refusal {
    const char *text;
    Status code;
    int line, col;
    const char *part; /* of the message */
} Refusal;

/* Each text is refused as its row says; all rows are looked at before the test fails. */
static inline void bed_refuses(const Refusal *row, size_t n)
{
    int bad = 0;

    for (size_t i = 0; i < n; i++, row++) {
        Bed b;
        Status got;

        bed_open(&b);
        got = bed_try(&b, row->text);
        if (got != row->code || b.err.line != row->line || b.err.col != row->col ||
            strstr(b.err.msg, row->part) == NULL) {
            printf("row %d: status %d, %d:%d: %s\n%s\n", (int)i, (int)got, b.err.line, b.err.col,
                   b.err.msg, row->text);
            bad++;
        }
        bed_close(&b);
    }
    CHECK_EQ(bad, 0);
}

typedef struct Canon { /* a text, and how it is printed */
    const char *text, *printed;
} Canon;

static inline void bed_canons(const Canon *row, size_t n)
{
    for (size_t i = 0; i < n; i++, row++) {
        Bed b;

        bed_open(&b);
        CHECK_STR(bed_canonical(&b, row->text), row->printed);
        CHECK_STR(bed_canonical(&b, row->printed), row->printed);
        bed_close(&b);
    }
}

#define CANONS(rows) bed_canons(rows, sizeof(rows) / sizeof *(rows))

#define REFUSES(rows) bed_refuses(rows, sizeof(rows) / sizeof *(rows))

/* unit written n times, each followed by what stands between, except the last. */
static inline void bed_repeat(Text *out, const char *unit, const char *between, int n)
{
    for (int i = 0; i < n; i++) {
        text_str(out, unit);
        if (i + 1 < n)
            text_str(out, between);
    }
}

#endif
