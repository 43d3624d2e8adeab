/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Insertions into built axes; and numeric phases, which write where the same domain has inserted. */
#include "random/gen.h"

/* The parent position under which entries are inserted. */
static const char *insert_parent(Gen *g, Scope *sc, GAxis *up)
{
    GVar *v;
    Val val;

    if (up->parent == NULL && gen_is_ident(up) && up->n > 0 && gen_p(g, 30)) {
        val = gen_int(g, sc, 1);
        if (!(up->flags & AX_PADDED) && gen_fit_slot(g, sc, &val, up))
            return val.s;
    }
    if (gen_p(g, 15) && gen_position(g, sc, up, &val))
        return gen_f(g, "@%s", gen_at(g, val, P_PRIMARY));
    v = gen_own_var(g, sc, up);
    return v == NULL ? NULL : v->name;
}

static bool insert(Gen *g, GAxis *u, bool simple)
{
    Scope sc = { .count = 1 };
    Insert *ins = &g->insert[g->ninsert];
    const char *parent = "", *index = "";

    if (g->ninsert == 4 || (!simple && !gen_scope(g, &sc)))
        return false;
    if (u->parent != NULL &&
        ((parent = insert_parent(g, &sc, u->parent)) == NULL || gen_is_long(parent)))
        return false;
    for (int k = 0; k < u->ncoord; k++) {
        Val v = gen_int(g, &sc, simple ? 0 : 2);

        if (!gen_fit(g, &sc, &v, 0, (double)u->coord[k].most - 1))
            return false;
        index = gen_f(g, "%s%s%s", index, k > 0 ? ", " : "", v.s);
    }
    if (u->ncoord > 1)
        index = gen_f(g, "(%s)", index);
    if (sc.count > 3000 || gen_is_long(index))
        return false;
    gen_random_guard(g, &sc, A_INSERT);
    *ins = (Insert){ .axis = u, .scope = sc, .parent = parent, .index = index };
    text_f(&g->body, u->parent == NULL ? "%s%s%s%.0s |= %s%s\n" : "%s%s%s(%s) |= %s%s\n",
           gen_label(g), gen_binds(g, &sc, false), u->name, parent, index, gen_guards_text(g, &sc));
    g->ninsert++;
    u->inserts++;
    return true;
}

/* The numeric phase after a symbolic one: writes where the same domain has inserted. */
static bool numeric(Gen *g)
{
    Insert *ins = &g->insert[gen_pick(g, g->ninsert)];
    GAxis *u = ins->axis, *slot[2] = { u->parent, u };
    Scope sc = ins->scope;
    Val v = gen_float(g, &sc, 2);
    Type type;
    GBuf *b;

    if (u->built != FROZEN || g->nbuf >= G_BUFS - 8 ||
        !gen_choose_type(g, &sc, A_ADD, v, true, &type))
        return false;
    b = gen_buf(g, gen_p(g, 60) ? B_ARG : B_TEMP, type, u->parent == NULL ? slot + 1 : slot,
                u->parent == NULL ? 1 : 2);
    text_f(&g->body, "%s%s%s[%s%s%s] += %s%s\n", gen_label(g), gen_binds(g, &sc, true), b->name,
           ins->parent, u->parent == NULL ? "" : ", ", ins->index, v.s, gen_guards_text(g, &sc));
    gen_note_write(&sc, b, A_ADD, v);
    gen_has(g, F_numeric_phase);
    return true;
}

static void freeze_some(Gen *g, int percent)
{
    for (int i = 0; i < g->naxis; i++)
        if (g->axis[i]->built == OPEN && g->axis[i]->inserts > 0 && gen_p(g, percent))
            g->axis[i]->built = FROZEN;
}

static GAxis *open_axis(Gen *g)
{
    for (int i = 0; i < g->naxis; i++)
        if (g->axis[i]->built == OPEN &&
            (g->axis[i]->parent == NULL || gen_usable(g->axis[i]->parent)))
            return g->axis[i];
    return NULL;
}

/* An insertion while the axis is open, or a write to where one was made. */
bool gen_built_stmt(Gen *g)
{
    GAxis *u = open_axis(g);

    freeze_some(g, 40);
    if (u != NULL && u->built == OPEN && gen_p(g, 55) && insert(g, u, false))
        return true;
    return g->ninsert > 0 && gen_p(g, 35) && numeric(g);
}

void gen_flush_inserts(Gen *g)
{
    for (int i = 0; i < g->naxis; i++) {
        GAxis *u = g->axis[i];

        if (u->built != OPEN)
            continue;
        g->ninsert = g->ninsert == 4 ? 3 : g->ninsert;
        while (u->inserts == 0)
            insert(g, u, true);
        u->built = FROZEN;
    }
}
