/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a statement runs over: axes' own variables, second variables, axes under another parent,
 * dense axes without a name; and the `for` that says so. */
#include "random/gen.h"

#include <string.h>

enum { MOST_INSTANCES = 2500 };

static const char *const var_names[] = { "a", "b1", "other", "q2", "f_", NULL };

static bool add_var(Scope *sc, GVar *v)
{
    if (sc->nvar == G_VARS)
        return false;
    v->needs |= v->up == NULL ? 0 : v->up->needs;
    for (int i = 0; i < sc->nvar; i++)
        if (sc->var[i] == v->up)
            v->needs |= 1u << i;
    sc->var[sc->nvar++] = v;
    sc->count *= (double)v->count;
    sc->dead = sc->dead || v->axis->live == 0 || v->count == 0;
    return true;
}

static GVar *new_var(Gen *g, const char *name, GAxis *x)
{
    GVar *v = arena_alloc(g->arena, sizeof *v);

    *v = (GVar){ .name = name, .axis = x, .count = x->parent == NULL ? x->live : x->most };
    return v;
}

/* Whether the name of the axis' own variable is in use, by itself or by f in F(...). */
static bool own_is_there(const Scope *sc, const GAxis *x)
{
    for (int i = 0; i < sc->nvar; i++)
        if (strcmp(sc->var[i]->name, x->var) == 0)
            return true;
    return false;
}

GVar *gen_own_var(Gen *g, Scope *sc, GAxis *x)
{
    GVar *up = NULL, *v;

    for (int i = 0; i < sc->nvar; i++)
        if (sc->var[i]->axis == x && sc->var[i]->own)
            return sc->var[i];
    if (own_is_there(sc, x) || (x->parent != NULL && (up = gen_own_var(g, sc, x->parent)) == NULL))
        return NULL;
    v = new_var(g, x->var, x);
    v->own = true;
    v->up = up;
    return add_var(sc, v) ? v : NULL;
}

static GAxis *pick_axis(Gen *g)
{
    for (int tries = 0; tries < 10; tries++) {
        GAxis *x = g->axis[gen_pick(g, g->naxis)];

        if (gen_usable(x) && (x->live > 0 || gen_p(g, 15)))
            return x;
    }
    return NULL;
}

/* Another variable of an axis: of a root, or below a variable that is there. */
static bool second_var(Gen *g, Scope *sc)
{
    GAxis *x = pick_axis(g);
    GVar *v;

    if (x == NULL)
        return false;
    v = new_var(g, gen_name(g, var_names), x);
    if (x->parent != NULL) {
        for (int i = 0; i < sc->nvar && v->up == NULL; i++)
            if (sc->var[i]->axis == x->parent)
                v->up = sc->var[i];
        if (v->up == NULL)
            return false;
    }
    return add_var(sc, v);
}

/* f in F(index): the parent by its position or, when it is a root, by its coordinate. */
static bool foreign_var(Gen *g, Scope *sc)
{
    GAxis *x = pick_axis(g), *up = x == NULL ? NULL : x->parent;
    GVar *v;
    Val val;
    const char *index;

    if (up == NULL || sc->nvar == 0)
        return false;
    sc->no_guard = true;
    if (up->parent == NULL && up->ncoord == 1 && gen_p(g, 75)) {
        val = gen_int(g, sc, 1);
        if (gen_is_ident(up) ? up->flags & AX_PADDED || !gen_fit_slot(g, sc, &val, up)
                             : !(up->flags & AX_UNIQUE))
            return false;
        index = val.s;
    } else {
        if (!gen_position(g, sc, up, &val))
            return false;
        index = gen_f(g, "@%s", gen_at(g, val, P_PRIMARY));
    }
    sc->no_guard = false;
    if (gen_is_long(index))
        return false;
    v = new_var(g, !own_is_there(sc, x) && gen_p(g, 60) ? x->var : gen_name(g, var_names), x);
    v->under = index;
    v->needs = (1u << sc->nvar) - 1; /* more than it needs, and simple */
    return add_var(sc, v);
}

static bool dense_var(Gen *g, Scope *sc)
{
    const char *size;
    int64_t value;

    gen_extent(g, 0, 4, false, &size, &value);
    return add_var(sc, new_var(g, gen_name(g, var_names), gen_axis_dense(g, size, value, false)));
}

bool gen_scope(Gen *g, Scope *sc)
{
    int n = gen_p(g, 6) ? 0 : 1 + gen_pick(g, 3);

    *sc = (Scope){ .count = 1, .risky = g->out->risky };
    for (int i = 0; i < n; i++) {
        GAxis *x = pick_axis(g);

        if (x != NULL && gen_own_var(g, sc, x) == NULL)
            return false;
    }
    if (gen_p(g, 12))
        second_var(g, sc);
    if (gen_p(g, 18))
        foreign_var(g, sc);
    if (gen_p(g, 7))
        dense_var(g, sc);
    sc->no_guard = false;
    return sc->count <= MOST_INSTANCES && (!sc->dead || gen_p(g, 40));
}

static const char *bind_text(Gen *g, const GVar *v)
{
    const char *in;

    if (v->own)
        return gen_p(g, 95) ? v->name : gen_f(g, "%s in %s", v->name, v->axis->name);
    in = v->axis->name != NULL ? v->axis->name : v->axis->size;
    if (v->under != NULL)
        return gen_f(g, "%s in %s(%s)", v->name, in, v->under);
    if (v->up != NULL && !(v->up->own && gen_p(g, 50)))
        return gen_f(g, "%s in %s(%s)", v->name, in, v->up->name);
    return gen_f(g, "%s in %s", v->name, in);
}

/* The variables in an order that keeps each after what it needs. */
static void shuffle(Gen *g, const Scope *sc, int *order)
{
    uint32_t done = 0;

    for (int n = 0; n < sc->nvar;) {
        int i = gen_p(g, 70) ? n : gen_pick(g, sc->nvar);

        for (; done & (1u << i) || (sc->var[i]->needs & ~done) != 0; i = (i + 1) % sc->nvar)
            ;
        done |= 1u << i;
        order[n++] = i;
    }
}

/* An ancestor's own variable may be left out of the `for`: the child after it brings it back. */
static bool is_implied(const GVar *v, const GVar *next)
{
    return v->own && next->own && next->up == v;
}

const char *gen_binds(Gen *g, const Scope *sc, bool all)
{
    int order[G_VARS];
    bool plain = !all && !sc->dead;
    const char *s = "";

    for (int i = 0; i < sc->nvar; i++)
        plain = plain && sc->var[i]->own;
    if (plain && gen_p(g, 65)) {
        gen_has(g, F_default_for);
        return "";
    }
    if (sc->nvar == 0) {
        gen_has(g, F_empty_for);
        return "for: ";
    }
    shuffle(g, sc, order);
    for (int n = 0; n < sc->nvar; n++) {
        const GVar *v = sc->var[order[n]];

        if (n + 1 < sc->nvar && is_implied(v, sc->var[order[n + 1]]) && gen_p(g, 25)) {
            gen_has(g, F_implied_binder);
            continue;
        }
        s = gen_f(g, "%s%s%s", s, *s != 0 ? ", " : "", bind_text(g, v));
    }
    return gen_f(g, "for %s: ", s);
}
