/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Accesses: an index for each slot, from what is in scope.  The entry itself, a position, a value
 * of a dense slot that stays inside, or a search that may miss. */
#include "random/gen.h"

#include <string.h>

typedef struct Told { /* what is known of a place of buf->full so far */
    bool known, by_position;
    const GVar *var;  /* the variable that stands there */
    const char *text; /* or the index */
} Told;

typedef struct Indexing {
    Gen *g;
    Scope *sc;
    const GBuf *buf;
    Told told[G_FULL];
    bool omit; /* ancestors of listed slots are left out */
    bool may_miss;
    const char *index[G_SLOTS]; /* NULL: left out */
} Indexing;

static int parent_place(const GBuf *b, int place)
{
    int up = place - 1;

    while (up >= 0 && (b->full[place]->parent == NULL || b->full[up] != b->full[place]->parent))
        up--;
    return up;
}

static bool is_leaf(const GBuf *b, int slot)
{
    for (int t = slot + 1; t < b->nslot; t++)
        if (gen_is_above(b->slot[slot], b->slot[t]))
            return false;
    return true;
}

/* Whether `@` may stand at a place: nothing else hangs on what it leaves out. */
static bool takes_position(const Indexing *x, int place)
{
    const GBuf *b = x->buf;

    for (int up = parent_place(b, place); up >= 0; up = parent_place(b, up)) {
        if (x->told[up].known)
            return false;
        for (int s = 0; s < b->nslot; s++)
            if (b->place[s] != place && gen_is_above(b->full[up], b->slot[s]) &&
                !gen_is_above(b->slot[s], b->full[place]))
                return false;
    }
    return true;
}

/* Whether v hangs on what stands at the places above, as far as they are told. */
static bool hangs_here(const Indexing *x, int place, const GVar *v)
{
    if (v->axis != x->buf->full[place])
        return false;
    for (int up = parent_place(x->buf, place); up >= 0; up = parent_place(x->buf, up)) {
        const Told *t = &x->told[up];

        if (t->by_position || (t->known && v->under == NULL))
            return !t->by_position && t->var == v->up;
        if (t->known)
            return t->text != NULL && strcmp(t->text, v->under) == 0;
        if (v->under != NULL)
            return v->under[0] != '@' || takes_position(x, up);
        v = v->up;
    }
    return true;
}

/* A position stands at a place: nothing more can be said of those above. */
static void tell_position(Indexing *x, int place)
{
    for (; place >= 0; place = parent_place(x->buf, place))
        x->told[place] = (Told){ .known = true, .by_position = true };
}

/* v stands at a place: so its ancestors' places are told too. */
static void tell(Indexing *x, int place, const GVar *v)
{
    for (; place >= 0 && !x->told[place].known; place = parent_place(x->buf, place)) {
        if (v == NULL)
            return;
        x->told[place] = (Told){ .known = true, .var = v };
        if (v->under != NULL) {
            int up = parent_place(x->buf, place);

            if (up >= 0 && !x->told[up].known && v->under[0] == '@')
                tell_position(x, up);
            else if (up >= 0 && !x->told[up].known)
                x->told[up] = (Told){ .known = true, .text = v->under };
            return;
        }
        v = v->up;
    }
}

static bool entry_index(Indexing *x, int place, const GVar *want, const char **out)
{
    Scope *sc = x->sc;
    int n = sc->nvar, first = n == 0 ? 0 : gen_pick(x->g, n);

    for (int i = 0; i < n; i++) {
        const GVar *v = sc->var[(first + i) % n];

        if ((want != NULL && v != want) || !hangs_here(x, place, v))
            continue;
        tell(x, place, v);
        *out = v->name;
        return true;
    }
    return false;
}

static bool position_index(Indexing *x, int place, const char **out)
{
    Val v;

    if (!takes_position(x, place) || !gen_position(x->g, x->sc, x->buf->full[place], &v))
        return false;
    tell_position(x, place);
    *out = gen_f(x->g, "@%s", gen_at(x->g, v, P_PRIMARY));
    return true;
}

/* A value that is a coordinate of axis a: often one that may be there. */
static Val coordinate(Indexing *x, const GCoord *c)
{
    Val v = gen_int(x->g, x->sc, gen_p(x->g, 70) ? 0 : 2);

    if (c->range.lo <= c->range.hi && gen_p(x->g, 40))
        gen_fit(x->g, x->sc, &v, c->range.lo, c->range.hi);
    return v;
}

/* The checker tries indices of constants by itself, guards or not: those must fit as they are. */
bool gen_fit_slot(Gen *g, Scope *sc, Val *v, const GAxis *x)
{
    Scope alive = *sc;

    alive.no_guard = true;
    alive.dead = alive.risky = false;
    return gen_fit(g, x->constant ? &alive : sc, v, 0,
                   (double)(x->parent == NULL ? x->n : x->least) - 1);
}

static bool dense_index(Indexing *x, int place, const char **out)
{
    Val v = gen_int(x->g, x->sc, gen_p(x->g, 70) ? 0 : 2);
    bool fits = gen_fit_slot(x->g, x->sc, &v, x->buf->full[place]);

    *out = v.s;
    x->told[place] = (Told){ .known = true, .text = v.s };
    return fits;
}

static bool value_index(Indexing *x, int place, const char **out)
{
    const GAxis *a = x->buf->full[place];
    Gen *g = x->g;
    const char *s = "";

    if (gen_is_ident(a))
        return !(a->flags & AX_PADDED) && dense_index(x, place, out);
    if (!(a->flags & AX_UNIQUE))
        return false;
    for (int k = 0; k < a->ncoord; k++)
        s = gen_f(g, "%s%s%s", s, k > 0 ? ", " : "", coordinate(x, &a->coord[k]).s);
    *out = a->ncoord > 1 ? gen_f(g, "(%s)", s) : s;
    x->told[place] = (Told){ .known = true, .text = *out };
    x->may_miss = true;
    return true;
}

static bool choose_index(Indexing *x, int place, const GVar *want, const char **out)
{
    int up = parent_place(x->buf, place);
    bool root = x->buf->full[place]->parent == NULL;
    bool under = root || (up >= 0 && x->told[up].known && !x->told[up].by_position);

    if (want != NULL)
        return entry_index(x, place, want, out);
    if (gen_p(x->g, 60) && entry_index(x, place, NULL, out))
        return true;
    if (gen_p(x->g, 25) && position_index(x, place, out))
        return true;
    if (under && value_index(x, place, out))
        return true;
    return entry_index(x, place, NULL, out) || position_index(x, place, out);
}

/* Where an index is wanted further down, an ancestor's is sometimes `_`. */
static bool choose_all(Indexing *x, GVar *const *want)
{
    const GBuf *b = x->buf;

    for (int s = 0; s < b->nslot; s++) {
        bool leaf = is_leaf(b, s);

        x->index[s] = NULL;
        if (!leaf && x->omit)
            continue;
        if (!leaf && (want == NULL || want[s] == NULL) && gen_p(x->g, 15))
            x->index[s] = "_";
        else if (!choose_index(x, b->place[s], want == NULL ? NULL : want[s], &x->index[s]))
            return false;
    }
    for (int s = 0; s < b->nslot; s++) /* what was left out must be told, and told right */
        if (!x->told[b->place[s]].known ||
            (want != NULL && want[s] != NULL && x->told[b->place[s]].var != want[s]))
            return false;
    return true;
}

static const char *access_text(Indexing *x)
{
    const GBuf *b = x->buf;
    const char *s = gen_f(x->g, "%s[", b->name), *sep = "";

    for (int i = 0; i < b->nslot; i++)
        if (x->index[i] != NULL) {
            s = gen_f(x->g, "%s%s%s", s, sep, x->index[i]);
            sep = ", ";
        }
    return gen_f(x->g, "%s]", s);
}

static bool all_leaves(const GBuf *b)
{
    for (int s = 0; s < b->nslot; s++)
        if (!is_leaf(b, s))
            return false;
    return true;
}

bool gen_is_long(const char *s)
{
    return strlen(s) > 300;
}

static bool try_access(Gen *g, Scope *sc, const GBuf *b, GVar *const *want, Access *out)
{
    for (int tries = 0; tries < 4; tries++) {
        Indexing x = { .g = g, .sc = sc, .buf = b };
        int nguard = sc->nguard;

        x.omit = !all_leaves(b) && gen_p(g, 35);
        if (choose_all(&x, want) && !gen_is_long(access_text(&x))) {
            *out = (Access){ access_text(&x), x.may_miss };
            if (x.omit)
                gen_has(g, F_omitted_ancestor);
            return true;
        }
        sc->nguard = nguard;
    }
    return false;
}

bool gen_access(Gen *g, Scope *sc, const GBuf *b, GVar *const *want, Access *out)
{
    bool good;

    if (g->nest == 2)
        return false;
    g->nest++;
    good = try_access(g, sc, b, want, out);
    g->nest--;
    return good;
}

/* A saved argument of max= or min=, where there is one. */
static bool companion_position(Gen *g, Scope *sc, GAxis *x, Val *out)
{
    for (int i = 0; i < g->nbuf; i++) {
        GBuf *b = g->buf[i];
        Access a;

        if (!b->companion || b->positions != x || !gen_is_readable(sc, b, false) || gen_p(g, 30) ||
            !gen_access(g, sc, b, NULL, &a) || a.may_miss)
            continue;
        if (!gen_guard(sc, gen_f(g, "%s >= 0", a.s)))
            return false;
        b->read = true;
        gen_has(g, F_companion_read);
        *out = gen_position_val(a.s, x);
        return true;
    }
    return false;
}

/* Through an array of positions: one that is there, or a new one over a variable's axis. */
static bool map_position(Gen *g, Scope *sc, GAxis *x, Val *out)
{
    GAxis *slot = sc->nvar == 0 ? NULL : sc->var[gen_pick(g, sc->nvar)]->axis;
    bool one = slot != NULL && slot->known && slot->n <= 64 && slot->live > 0;
    GBuf *map = NULL;
    Access a;

    for (int i = 0; i < g->nbuf && map == NULL; i++)
        if (g->buf[i]->positions == x && !g->buf[i]->written && gen_p(g, 60))
            map = g->buf[i];
    if (map == NULL && g->nbuf < G_BUFS - 8)
        map = gen_position_map(g, x, &slot, one ? 1 : 0);
    if (map == NULL || !gen_access(g, sc, map, NULL, &a) || a.may_miss)
        return false;
    gen_has(g, F_position_map);
    map->read = true;
    *out = gen_position_val(a.s, x);
    return true;
}

static bool own_position(Gen *g, const Scope *sc, GAxis *x, Val *out)
{
    for (int i = 0; i < sc->nvar; i++)
        if (sc->var[i]->axis == x && gen_p(g, 60)) {
            *out = gen_position_val(gen_f(g, "pos(%s)", sc->var[i]->name), x);
            return true;
        }
    return false;
}

bool gen_position(Gen *g, Scope *sc, GAxis *x, Val *out)
{
    Val v;

    if (own_position(g, sc, x, out) || companion_position(g, sc, x, out))
        return true;
    if (!x->known || (x->live > 0 && gen_p(g, 50) && map_position(g, sc, x, out)))
        return x->known;
    v = gen_int(g, sc, 1);
    if (v.positions != x && (x->live != x->n || !gen_fit(g, sc, &v, 0, (double)x->n - 1)))
        return false;
    *out = v;
    return true;
}
