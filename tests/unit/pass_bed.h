/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * For the tests of single passes: the text of a program after a pass, and the text that it would be
 * if the pass were skipped.  The machine is that of the golden files: 8 lanes of f32, 4 of f64, and
 * 16 registers.  */
#ifndef WEFT_PASS_BED_H
#define WEFT_PASS_BED_H

#include "api/api_int.h"
#include "unit/ir_bed.h"

enum { PASS_TEXT = 1 << 16 }; /* bytes of a printed program */

static inline void pass_lower(Bed *b, const char *program, const char *schedule, const char *pass,
                              bool skipped, Text *out)
{
    const Target avx2 = { .unit = { VECTOR_LANES(8, 4), 16, VECTOR_CORE } };
    Aim aim = api_aim_at(&b->err, &avx2, schedule);
    Prog *p = ir_parse(&b->arena, "t.weft", program, strlen(program));
    const Pass *row = api_find_pass(p, pass);

    ir_check(p);
    if (skipped)
        aim.skip = (uint64_t)1 << (row - api_pass);
    api_lower_to(p, &aim, row);
    ir_print(out, p);
}

/* The program after the pass, or "error: " and a message.  The last four texts stay valid. */
static inline const char *pass_try(const char *pass, const char *schedule, const char *program,
                                   bool skipped)
{
    static char texts[4][PASS_TEXT];
    static unsigned next;
    char *text = texts[next++ % 4];
    Text out = { 0 };
    Bed b;

    bed_open(&b);
    out.arena = &b.arena;
    if (CATCH(&b.err, pass_lower(&b, program, schedule, pass, skipped, &out)) != ST_OK)
        snprintf(text, PASS_TEXT, "error: %s", b.err.msg);
    else
        snprintf(text, PASS_TEXT, "%s", out.s);
    bed_close(&b);
    return text;
}

static inline const char *pass_print(const char *pass, const char *schedule, const char *program,
                                     bool skipped)
{
    const char *text = pass_try(pass, schedule, program, skipped);

    if (strncmp(text, "error: ", 7) == 0)
        test_fail(__FILE__, __LINE__, "%s\n%s", text, program);
    return text;
}

/* The message with which the program or its schedule is refused. */
static inline const char *pass_error(const char *pass, const char *schedule, const char *program)
{
    const char *text = pass_try(pass, schedule, program, false);

    if (strncmp(text, "error: ", 7) != 0)
        test_fail(__FILE__, __LINE__, "no error:\n%s", text);
    return text + 7;
}

static inline const char *pass_text(const char *pass, const char *schedule, const char *program)
{
    return pass_print(pass, schedule, program, false);
}

/* How often the text has the part. */
static inline int pass_count(const char *text, const char *part)
{
    int n = 0;

    for (const char *s = text; (s = strstr(s, part)) != NULL; s += strlen(part))
        n++;
    return n;
}

/* The pass leaves the program as it would be without the pass. */
#define CHECK_KEPT(pass, schedule, program)                     \
    CHECK_STR(pass_print((pass), (schedule), (program), false), \
              pass_print((pass), (schedule), (program), true))

/* The text with the pass has the part, and the text without the pass does not have it. */
#define CHECK_GIVES(pass, schedule, program, part)                                        \
    do {                                                                                  \
        CHECK_HAS(pass_print((pass), (schedule), (program), false), (part));              \
        CHECK_EQ(pass_count(pass_print((pass), (schedule), (program), true), (part)), 0); \
    } while (0)

#endif
