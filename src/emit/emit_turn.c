/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions that transpose rows into lanes.  As many rows as a register has lanes, of as many
 * neighbours each, are a square.  Registers of rows become registers of columns in steps that mix
 * two registers; each step swaps one binary digit of the number of a register with one of the
 * number of a lane. */
#include "emit/emit_int.h"

#include <stdio.h>

typedef struct Square {
    const Emit *o;
    Text *out;
    Type type;
    int lanes;
} Square;

/* Lane t of what registers a and b become, counted on from a to b. */
typedef int Lane(const Square *, int step, bool second, int t);

static int swap(const Square *s, int step, bool second, int t)
{
    int from = second ? step : 0;

    return (t & step) == 0 ? t + from : s->lanes + t - step + from;
}

/* As machines interleave the halves of 16 bytes: two digits of the lane change places too. */
static int zip(const Square *s, int step, bool second, int t)
{
    (void)step;
    return t % 2 * s->lanes + t / 4 * 4 + t % 4 / 2 + (second ? 2 : 0);
}

static void put_mix(const Square *s, const char *to, int a, int step, bool second, Lane *lane)
{
    text_f(s->out, "\n    %s = WEFT_MIX(weft_vi%d, r%d, r%d", to, ir_type[s->type].bytes * 8, a,
           a + step);
    for (int t = 0; t < s->lanes; t++)
        text_f(s->out, ", %d", lane(s, step, second, t));
    text_str(s->out, ");");
}

static void put_step(const Square *s, int step, Lane *lane)
{
    char to[16];

    for (int a = 0; a < s->lanes; a++) {
        if (a & step)
            continue;
        put_mix(s, "x", a, step, false, lane);
        snprintf(to, sizeof to, "r%d", a + step);
        put_mix(s, to, a, step, true, lane);
        text_f(s->out, "\n    r%d = x;", a);
    }
}

/* Where zips have left column k: with their two digits the other way round. */
static int place_of(const Square *s, int k)
{
    return s->type == T_f32 ? k / 4 * 4 + k % 2 * 2 + k % 4 / 2 : k;
}

static void put_steps(const Square *s)
{
    for (int step = 1; step < s->lanes; step *= 2)
        put_step(s, step, s->type == T_f32 && step == 1 ? zip : swap);
}

static void put_head(const Square *s, const char *what, const char *constant, const char *pointer)
{
    const char *name = ir_type[s->type].name;

    for (int i = 0; i < 2; i++)
        text_f(s->out, "\n#%s WEFT_%s_%s", i == 0 ? "ifndef" : "define", what, name);
    text_f(s->out, "\nWEFT_ALWAYS void weft_%s_%s(%s%s *p, int64_t stride", what, name, constant,
           emit_ctype(s->o, s->type));
    for (int k = 0; k < s->lanes; k++)
        text_f(s->out, ", weft_v%s %sc%d", name, pointer, k);
    text_str(s->out, ")\n{");
}

static void put_registers(const Square *s, bool load)
{
    text_f(s->out, "\n    weft_v%s x", ir_type[s->type].name);
    for (int k = 0; k < s->lanes; k++)
        if (load)
            text_f(s->out, ", r%d = WEFT_LOAD_%s(p + %d * stride)", k, emit_lanes(s->type), k);
        else
            text_f(s->out, ", r%d = c%d", k, k);
    text_char(s->out, ';');
}

void emit_turn_functions(Emit *o, Type type, int lanes)
{
    Text *out = o->out;
    Square s = { o, out, type, lanes };

    put_head(&s, "columns", "const ", "*");
    put_registers(&s, true);
    put_steps(&s);
    for (int k = 0; k < lanes; k++)
        text_f(out, "\n    *c%d = r%d;", k, place_of(&s, k));
    text_str(out, "\n}\n#endif\n");
    put_head(&s, "rows", "", "");
    put_registers(&s, false);
    put_steps(&s);
    for (int k = 0; k < lanes; k++)
        text_f(out, "\n    WEFT_STORE_%s(p + %d * stride, r%d);", emit_lanes(type), k,
               place_of(&s, k));
    text_str(out, "\n}\n#endif\n");
}
