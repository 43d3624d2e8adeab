/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Problems of weft bench that are tensor products:
 *
 *     tp:mace-large:n=2000:t=1
 *     tp:32x0e+32x1o*0e+1o>0e+1o:uvu:item:f64:backward
 *
 * A name of the table below, or irreps; then a mode, whose weights, a type, a layout, and which
 * derivative, in any order.  n is the number of items. */
#include "problem.h"

#include <stdio.h>
#include <string.h>

#define SIX(m) m "x0o+" m "x0e+" m "x1o+" m "x1e+" m "x2o+" m "x2e"

/* Products of models that people run. */
static const struct {
    const char *name, *irreps, *mode, *weights;
} named[] = {
    { "sevennet0-main", "128x0e+64x1e+32x2e*0e+1e+2e>0e+1e+2e", "uvu", "item" },
    { "l3i5-main", "128x0e+64x1e+32x2e+32x3e*0e+1e+2e+3e>0e+1e+2e+3e", "uvu", "item" },
    { "mace-medium", "128x0e+128x1o*0e+1o+2e+3o>0e+1o+2e", "uvu", "item" },
    { "mace-large", "128x0e+128x1o+128x2e*0e+1o+2e+3o>0e+1o+2e+3o", "uvu", "item" },
    { "nequip-lips", SIX("32") "*0e+1o+2e>0o+0e+1o+1e+2o+2e", "uvu", "item" },
    { "nequip-aspirin", "64x0o+64x0e+64x1o+64x1e*0e+1o>0o+0e+1o+1e", "uvu", "item" },
    { "nequip-toluene", SIX("64") "*0e+1o+2e>0o+0e+1o+1e+2o+2e", "uvu", "item" },
    { "nequip-benzene", SIX("64") "+64x3o+64x3e*0e+1o+2e+3o>0o+0e+1o+1e+2o+2e+3o+3e", "uvu",
      "item" },
    { "nequip-water", "32x0o+32x0e+32x1o+32x1e*0e+1o>0o+0e+1o+1e", "uvu", "item" },
    { "nequix-mp-1", "128x0e+64x1o+32x2e+32x3o*0e+1o+2e+3o>0e+1o+2e+3o", "uvu", "item" },
    { "diffdock-l1", "10x1o+10x1e+48x0e+48x0o*0e+1o>10x1o+10x1e+48x0e+48x0o", "uvw", "item" },
    { "diffdock-l2", "10x1o+10x1e+48x0e+48x0o*0e+1o+2e>10x1o+10x1e+48x0e+48x0o", "uvw", "item" },
    { "e3tools-item", "64x0e+16x1o*0e+1o>80x0e+16x1o", "uvw", "item" },
    { "e3tools-shared", "64x0e+16x1o*0e+1o>64x0e+16x1o", "uvw", "shared" },
    { "tetris-1", "0e+1o+2e+3o*0e+1o+2e+3o>64x0e+24x1e+24x1o+16x2e+16x2o", "uvw", "shared" },
    { "tetris-2", "64x0e+24x1e+24x1o+16x2e+16x2o*0e+1o+2e>0o+6x0e", "uvw", "shared" },
};

/* Words and the setting that they are values of. */
static const struct {
    const char *word, *setting;
} known[] = {
    { "uvw", "mode" },      { "uvu", "mode" },    { "uvv", "mode" },     { "uuw", "mode" },
    { "uuu", "mode" },      { "uvuv", "mode" },   { "uvu<v", "mode" },   { "u<vw", "mode" },
    { "item", "weights" },  { "shared", "weights" }, { "none", "weights" }, { "f16", "type" },
    { "bf16", "type" },     { "f32", "type" },    { "f64", "type" },     { "mul_ir", "layout" },
    { "ir_mul", "layout" }, { "backward", "" },   { "double", "" },
};

static const char *setting_of(const char *word)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].word, word) == 0)
            return known[i].setting;
    return NULL;
}

bool tp_is_word(const char *word)
{
    return setting_of(word) != NULL;
}

typedef struct Spec {
    char *to;
    size_t n, cap;
} Spec;

static void put(Spec *s, const char *setting, const char *value, size_t n)
{
    int wrote = snprintf(s->to + s->n, s->cap - s->n, "; %s=%.*s", setting, (int)n, value);

    s->n = wrote < 0 || s->n + (size_t)wrote >= s->cap ? s->cap - 1 : s->n + (size_t)wrote;
}

/* IN1*IN2>OUT, or IN1*IN2; false when it has no two factors. */
static bool put_irreps(Spec *s, const char *text)
{
    const char *star = strchr(text, '*'), *arrow = strchr(text, '>');

    if (star == NULL || (arrow != NULL && arrow < star))
        return false;
    put(s, "in1", text, (size_t)(star - text));
    put(s, "in2", star + 1, arrow != NULL ? (size_t)(arrow - star - 1) : strlen(star + 1));
    if (arrow != NULL)
        put(s, "out", arrow + 1, strlen(arrow + 1));
    return true;
}

bool tp_spec(const Problem *p, char *to, size_t cap, int *order)
{
    const char *mode = "uvu", *weights = "item", *what = p->source, *irreps = what;
    Spec s = { to, 0, cap };

    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(named[i].name, what) == 0) {
            irreps = named[i].irreps;
            mode = named[i].mode;
            weights = named[i].weights;
        }
    s.n = (size_t)snprintf(to, cap, "%s", p->op);
    if (p->hidden > 0)
        s.n += (size_t)snprintf(to + s.n, cap - s.n, "; hidden=%d", p->hidden);
    *order = 0;
    for (int i = 0; i < p->ntp; i++) {
        const char *word = p->tp[i], *setting = setting_of(word);

        if (setting == NULL) /* which tp_is_word has refused before */
            return false;
        if (strcmp(setting, "mode") == 0)
            mode = word;
        else if (strcmp(setting, "weights") == 0)
            weights = word;
        else if (setting[0] != 0)
            put(&s, setting, word, strlen(word));
        else
            *order = strcmp(word, "double") == 0 ? 2 : 1;
    }
    put(&s, "mode", mode, strlen(mode));
    put(&s, "weights", weights, strlen(weights));
    return put_irreps(&s, irreps) && s.n + 1 < cap;
}
