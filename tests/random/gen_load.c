/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reads: a buffer that is there or a new input, and an access to it. */
#include "random/gen.h"

#include <math.h>

static bool is_busy(const Scope *sc, const GBuf *b)
{
    for (int i = 0; i < sc->nbusy; i++)
        if (sc->busy[i] == b)
            return true;
    return false;
}

bool gen_is_readable(const Scope *sc, const GBuf *b, bool floats)
{
    for (int k = 0; k < b->nfull; k++)
        if (!gen_usable(b->full[k]))
            return false;
    return ir_type[b->type].floats == floats && !b->wild && !is_busy(sc, b);
}

double gen_count_elements(GAxis *const *slot, int n)
{
    double total = 1;

    for (int s = 0; s < n; s++)
        total *= (double)slot[s]->n + 1;
    return total;
}

/* Parents before children; an axis twice only when it is a root that nothing listed hangs on. */
bool gen_slots_agree(GAxis *const *slot, int n)
{
    for (int s = 0; s < n; s++)
        for (int t = 0; t < s; t++) {
            bool twice = slot[s] == slot[t];

            if ((twice && slot[s]->parent != NULL) || gen_is_above(slot[s], slot[t]))
                return false;
            for (int r = 0; twice && r < n; r++)
                if (gen_is_above(slot[s], slot[r]))
                    return false;
        }
    return true;
}

/* Slots for a new input: axes of variables in scope, dense ones for coordinates, any other. */
static int draw_slots(Gen *g, const Scope *sc, GAxis **slot)
{
    int n = gen_pick(g, 4), used = 0;
    const char *size;
    int64_t value;

    for (int i = 0; i < n; i++) {
        if (sc->nvar > 0 && gen_p(g, 60)) {
            slot[used] = sc->var[gen_pick(g, sc->nvar)]->axis;
        } else if (gen_p(g, 60)) {
            slot[used] = g->axis[gen_pick(g, g->naxis)];
        } else {
            gen_extent(g, 1, 6, false, &size, &value);
            slot[used] = gen_axis_dense(g, size, value, false);
        }
        used += slot[used]->known && gen_slots_agree(slot, used + 1) &&
                gen_count_elements(slot, used + 1) < 600;
    }
    return used;
}

GBuf *gen_pick_buf(Gen *g, Scope *sc, bool floats)
{
    GAxis *slot[G_SLOTS];
    int n;

    for (int tries = 0; tries < 4 && g->nbuf > 0 && gen_p(g, 65); tries++) {
        GBuf *b = g->buf[gen_pick(g, g->nbuf)];

        if (gen_is_readable(sc, b, floats))
            return b;
    }
    if (g->nbuf >= G_BUFS - 8)
        return NULL;
    n = draw_slots(g, sc, slot);
    return gen_input(g, floats ? gen_float_type(g) : gen_p(g, 50) ? T_i32 : T_i64, slot, n);
}

static Type load_type(const GBuf *b)
{
    if (b->rows)
        return T_real;
    return !ir_type[b->type].floats ? T_i64 : b->type == T_f64 ? T_f64 : T_f32;
}

bool gen_load(Gen *g, Scope *sc, bool floats, Val *out)
{
    GBuf *b = gen_pick_buf(g, sc, floats);
    Access a;

    if (b == NULL || !gen_access(g, sc, b, NULL, &a))
        return false;
    b->read = true;
    *out = (Val){ .s = a.s, .prec = P_PRIMARY, .type = load_type(b), .r = b->range, .mag = b->mag };
    if (b->companion && b->written)
        gen_has(g, F_companion_read);
    if (b->fill != NULL && fabs(b->fill_value) > out->mag)
        out->mag = fabs(b->fill_value);
    if (a.may_miss && !floats) {
        double fill = b->fill != NULL ? b->fill_value : 0;

        out->r = (Ival){ fmin(fill, out->r.lo), fmax(fill, out->r.hi) };
    } else if (!a.may_miss && b->positions != NULL && b->range.lo >= 0) {
        out->positions = b->positions;
    }
    return true;
}

bool gen_let(Gen *g, Scope *sc, bool floats, Val *out)
{
    int n = sc->nlet == 0 ? 0 : gen_pick(g, sc->nlet);

    if (sc->nlet == 0 || ir_type[sc->let[n].val.type].floats != floats)
        return false;
    *out = sc->let[n].val;
    out->s = sc->let[n].name;
    out->prec = P_PRIMARY;
    return true;
}
