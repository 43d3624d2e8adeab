/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random statements: an output that the operator may write, a value, companions, guards; groups
 * with let. */
#include "random/gen.h"

#include <math.h>
#include <string.h>

static const char *const op_text[] = { "=", "+=", "max=", "min=" };

typedef struct Target { /* the output of an assign that is being made */
    GBuf *buf;
    const char *access;
    AssignOp op;
    const char *at; /* its companions, as text */
} Target;

const char *gen_label(Gen *g)
{
    int n = g->nlabel++;

    switch (gen_pick(g, 6)) {
    case 0: gen_has(g, F_no_label); return "";
    case 1: return gen_f(g, "lb%d.init: ", n);
    case 2: return gen_f(g, "lb%d.%d.b: ", n, gen_pick(g, 3));
    case 3: return gen_f(g, "d(lb%d,X): ", n);
    case 4: return gen_f(g, "d2(d(lb%d.1, X), Y): ", n);
    default: return gen_f(g, "lb%d: ", n);
    }
}

static AssignOp draw_op(Gen *g)
{
    int what = gen_pick(g, 100);

    if (what < 30)
        return A_SET;
    if (what < 70 || g->knobs.poly || g->knobs.no_max)
        return A_ADD;
    return what < 85 ? A_MAX : A_MIN;
}

/* A variable that no other hangs on: an element of the output for each makes = write once. */
static bool is_leaf(const Scope *sc, const GVar *v)
{
    for (int i = 0; i < sc->nvar; i++)
        if (sc->var[i]->up == v)
            return false;
    return true;
}

typedef struct Slots {
    GAxis *axis[G_SLOTS];
    GVar *want[G_SLOTS];
    int n;
    bool full; /* one more was wanted */
} Slots;

static void add_slot(Slots *s, GAxis *x, GVar *want)
{
    s->full = s->full || s->n == G_SLOTS;
    if (s->full)
        return;
    s->axis[s->n] = x;
    s->want[s->n++] = want;
}

static bool has_axis(const Slots *s, const GAxis *x)
{
    for (int i = 0; i < s->n; i++)
        if (s->axis[i] == x)
            return true;
    return false;
}

/* The slot of a variable; its ancestors are sometimes listed before it. */
static void add_var_slots(Gen *g, Slots *s, GVar *v)
{
    if (v->up != NULL && gen_p(g, 40) && !has_axis(s, v->up->axis))
        add_var_slots(g, s, v->up);
    add_slot(s, v->axis, v);
}

static GAxis *scatter_axis(Gen *g)
{
    const char *size;
    int64_t value;

    if (gen_p(g, 50))
        return g->axis[gen_pick(g, g->naxis)];
    gen_extent(g, 1, 6, false, &size, &value);
    return gen_axis_dense(g, size, value, false);
}

static void swap_slots(Slots *s, int a, int b)
{
    GAxis *x = s->axis[a];
    GVar *v = s->want[a];

    s->axis[a] = s->axis[b];
    s->want[a] = s->want[b];
    s->axis[b] = x;
    s->want[b] = v;
}

static bool draw_slots(Gen *g, const Scope *sc, AssignOp op, Slots *s)
{
    *s = (Slots){ .n = 0 };
    for (int i = 0; i < sc->nvar; i++) {
        GVar *v = sc->var[i];
        bool needed = op == A_SET && is_leaf(sc, v) && !(sc->risky && gen_p(g, 20));

        if (needed || (op != A_SET && gen_p(g, 45) && !has_axis(s, v->axis)))
            add_var_slots(g, s, v);
        else if (op == A_SET && is_leaf(sc, v) && gen_p(g, 50))
            add_slot(s, scatter_axis(g), NULL); /* = where a value says: perhaps twice */
    }
    if (gen_p(g, op == A_SET ? 10 : 30))
        add_slot(s, scatter_axis(g), NULL);
    for (int i = 0; i < s->n; i++)
        if (!gen_usable(s->axis[i]))
            return false;
    if (s->n > 1 && gen_p(g, 40))
        swap_slots(s, gen_pick(g, s->n), gen_pick(g, s->n));
    return !s->full && gen_slots_agree(s->axis, s->n) && gen_count_elements(s->axis, s->n) < 3000;
}

static bool is_known(const Slots *s)
{
    for (int i = 0; i < s->n; i++)
        if (!s->axis[i]->known)
            return false;
    return true;
}

/* What an element can come to. */
static double total_mag(const Scope *sc, AssignOp op, Val v)
{
    return op == A_ADD ? v.mag * sc->count : v.mag;
}

bool gen_choose_type(Gen *g, const Scope *sc, AssignOp op, Val v, bool floats, Type *t)
{
    double mag = total_mag(sc, op, v) + 8;

    if (!floats) {
        *t = (mag < 0x1p31 || sc->risky) && gen_p(g, 50) ? T_i32 : T_i64;
        return mag < 0x1p50 || sc->risky;
    }
    *t = gen_float_type(g);
    if (mag >= gen_limit(g, *t))
        *t = mag >= gen_limit(g, T_f32) ? T_f64 : T_f32;
    return mag < gen_limit(g, *t) || isinf(gen_limit(g, *t));
}

static void widen(Ival *r, double v)
{
    r->lo = fmin(v, r->lo);
    r->hi = fmax(v, r->hi);
}

void gen_note_write(const Scope *sc, GBuf *b, AssignOp op, Val v)
{
    double lo = v.r.lo, hi = v.r.hi, n = op == A_ADD ? sc->count : 1;
    bool first = !b->written && b->kind != B_INOUT;

    b->mag = op == A_ADD ? b->mag + v.mag * n : fmax(b->mag, v.mag);
    if (first)
        b->range = v.r;
    if (op == A_ADD) {
        widen(&b->range, b->range.lo + fmin(0, lo * n));
        widen(&b->range, b->range.hi + fmax(0, hi * n));
    }
    widen(&b->range, v.r.lo);
    widen(&b->range, v.r.hi);
    widen(&b->range, b->fill != NULL ? b->fill_value : 0);
    b->written = true;
    b->op = op;
}

static void draw_fill(Gen *g, GBuf *b, AssignOp op)
{
    bool extreme = op == A_MAX || op == A_MIN;

    if (gen_p(g, extreme ? 75 : 15)) {
        b->fill_value = gen_pick(g, 9) - 4;
        b->fill = gen_f(g, "%g", b->fill_value);
        b->mag = 4;
    } else {
        b->wild = extreme && (g->knobs.exact || !ir_type[b->type].floats);
    }
}

/* A write that may miss runs only where the entry is stored; an input over the same axes tells. */
static bool guard_miss(Gen *g, Scope *sc, const GBuf *b, const Access *a)
{
    GBuf *mask;

    if (!a->may_miss || (sc->risky && gen_p(g, 10)))
        return true;
    for (int k = 0; k < b->nfull; k++)
        if (!b->full[k]->known)
            return false;
    if (g->nbuf >= G_BUFS - 8)
        return false;
    mask = gen_input(g, gen_p(g, 50) ? T_i32 : gen_float_type(g), b->slot, b->nslot);
    mask->read = true;
    gen_has(g, F_masked_write);
    return gen_guard(sc, gen_f(g, "stored(%s%s)", mask->name, a->s + strlen(b->name)));
}

static void forget(Gen *g, const GBuf *b)
{
    int at = 0;

    while (g->buf[at] != b)
        at++;
    memmove(&g->buf[at], &g->buf[at + 1], (size_t)(--g->nbuf - at) * sizeof *g->buf);
}

static bool new_target(Gen *g, Scope *sc, bool floats, Val v, Target *t)
{
    Slots s;
    Access a;
    Type type;
    GBuf *b;
    BufKind kind = gen_p(g, 55) ? B_ARG : gen_p(g, 65) ? B_TEMP : B_INOUT;

    if (g->nbuf >= G_BUFS - 8 || !draw_slots(g, sc, t->op, &s) ||
        !gen_choose_type(g, sc, t->op, v, floats, &type))
        return false;
    if (kind == B_INOUT && !is_known(&s))
        kind = B_ARG;
    b = gen_buf(g, kind, type, s.axis, s.n);
    b->wild = true; /* its own indices must not read it */
    if (!gen_access(g, sc, b, s.want, &a) || !guard_miss(g, sc, b, &a)) {
        forget(g, b);
        return false;
    }
    b->wild = false;
    if (kind == B_INOUT)
        gen_inout_data(g, b);
    draw_fill(g, b, t->op);
    t->buf = b;
    t->access = a.s;
    return true;
}

/* One more statement of a group: another writer of a buffer that nobody has read yet. */
static bool old_target(Gen *g, Scope *sc, bool floats, Val v, Target *t)
{
    for (int i = 0; i < g->nbuf; i++) {
        GBuf *b = g->buf[i];
        Access a;
        bool good;

        if (!b->written || b->wild || b->read || b->companion || b->nat > 0 || b->op != t->op ||
            ir_type[b->type].floats != floats || !gen_p(g, 50))
            continue;
        if (b->op == A_SET && !(sc->risky && b->guarded)) /* the checker would see it */
            continue;
        if (b->mag + total_mag(sc, t->op, v) >= (floats             ? gen_limit(g, b->type)
                                                 : b->type == T_i32 ? 0x1p31
                                                                    : 0x1p50))
            continue;
        b->wild = true;
        good = gen_access(g, sc, b, NULL, &a) && guard_miss(g, sc, b, &a);
        b->wild = false;
        if (!good)
            continue;
        gen_has(g, b->op == A_SET ? F_second_set : F_second_writer);
        t->buf = b;
        t->access = a.s;
        return true;
    }
    return false;
}

/* A companion of the output, and the value that it records: often where the winner was. */
static GBuf *new_companion(Gen *g, Scope *sc, const GBuf *b, Val *v)
{
    GBuf *w =
        gen_buf(g, gen_p(g, 60) ? B_ARG : B_TEMP, gen_p(g, 40) ? T_i32 : T_i64, b->slot, b->nslot);

    w->wild = true; /* not to be read by its own value */
    *v = gen_int(g, sc, gen_p(g, 60) ? 0 : 1);
    if (sc->nvar > 0 && gen_p(g, 60)) {
        const GVar *var = sc->var[gen_pick(g, sc->nvar)];

        w->positions = var->axis;
        *v = gen_position_val(gen_f(g, "pos(%s)", var->name), var->axis);
    }
    w->companion = w->written = true;
    w->range = v->r;
    widen(&w->range, -1);
    w->mag = fmax(fabs(w->range.lo), w->range.hi);
    w->wild = w->mag > GEN_MOST_INT;
    if (w->wild)
        w->type = T_i64;
    return w;
}

static void add_companions(Gen *g, Scope *sc, Target *t)
{
    bool extreme = t->op == A_MAX || t->op == A_MIN;
    int n = extreme && !t->buf->written && gen_p(g, 45) ? 1 + gen_p(g, 25) : 0;

    t->at = "";
    for (int k = 0; k < n && g->nbuf < G_BUFS; k++) {
        Val v;
        GBuf *w = new_companion(g, sc, t->buf, &v);

        sc->busy[sc->nbusy++] = w;
        t->buf->nat++;
        t->at = gen_f(g, "%s%s%s%s = %s", t->at, k == 0 ? " at " : ", ", w->name,
                      t->access + strlen(t->buf->name), v.s);
    }
}

const char *gen_guards_text(Gen *g, const Scope *sc)
{
    const char *s = "";

    for (int i = 0; i < sc->nguard; i++)
        s = gen_f(g, "%s%s%s", s, i > 0 ? " and " : " if ", sc->guard[i]);
    return s;
}

static bool draw_target(Gen *g, Scope *sc, bool floats, Val v, Target *t)
{
    if (gen_p(g, sc->risky && t->op == A_SET ? 75 : 25) && old_target(g, sc, floats, v, t))
        return true;
    for (int tries = 0; tries < 3; tries++)
        if (new_target(g, sc, floats, v, t))
            return true;
    return false;
}

/* Without a guard the checker itself sees that a risky = writes twice. */
void gen_random_guard(Gen *g, Scope *sc, AssignOp op)
{
    if (gen_p(g, 30) || (op == A_SET && sc->risky && sc->nguard == 0))
        gen_guard(sc, gen_at(g, gen_cond(g, sc, 2), P_NOT));
}

/* One assign in a scope, without label and `for`; NULL when nothing fitting was found. */
static const char *assign(Gen *g, Scope *sc, Target *t)
{
    bool floats = g->knobs.no_ints || g->knobs.poly || gen_p(g, 75);
    Val v;

    sc->nguard = 0;
    t->op = draw_op(g);
    v = floats ? gen_float(g, sc, 2 + gen_pick(g, 3)) : gen_int(g, sc, 3);
    if (!draw_target(g, sc, floats, v, t))
        return NULL;
    if (sc->nbusy < 6)
        sc->busy[sc->nbusy++] = t->buf;
    add_companions(g, sc, t);
    gen_random_guard(g, sc, t->op);
    t->buf->guarded = sc->nguard > 0;
    gen_note_write(sc, t->buf, t->op, v);
    return gen_f(g, "%s %s %s%s%s", t->access, op_text[t->op], v.s, t->at, gen_guards_text(g, sc));
}

static void draw_let(Gen *g, Scope *sc)
{
    struct GLet *l = &sc->let[sc->nlet];

    sc->no_guard = true;
    do /* a literal would stand in integer divisions by literals */
        l->val = gen_p(g, 75) ? gen_float(g, sc, 2) : gen_int(g, sc, 2);
    while (strpbrk(l->val.s, "[abcdefghijklmnopqrstuvwxyz") == NULL || gen_is_long(l->val.s));
    sc->no_guard = false;
    l->name = gen_name(g, (const char *const[]){ "t", "g1", "s_", "tmp", NULL });
    sc->nlet++;
    gen_has(g, F_let);
    text_f(&g->body, "    let %s = %s\n", l->name, l->val.s);
}

static void group(Gen *g)
{
    Scope sc;
    Target t;
    int n = 2 + gen_pick(g, 2), done = 0;
    size_t start = g->body.n;
    const char *s;

    if (!gen_scope(g, &sc))
        return;
    s = gen_binds(g, &sc, true);
    text_f(&g->body, "%.*s\n", (int)strlen(s) - 1, s);
    for (int i = gen_pick(g, G_LETS + 1); i > 0; i--)
        draw_let(g, &sc);
    for (int i = 0; i < n && sc.nbusy < 5; i++)
        if ((s = assign(g, &sc, &t)) != NULL) {
            text_f(&g->body, "    %s%s\n", gen_label(g), s);
            done++;
        }
    if (done == 0 && start < g->body.n) { /* nothing came of it */
        g->body.n = start;
        g->body.s[start] = 0;
    }
    if (done > 1)
        gen_has(g, F_group);
}

/* Two statements that fill one output, each where the other does not. */
static void complement(Gen *g, Scope *sc, const Target *t, const char *first)
{
    Val cond = gen_cond(g, sc, 1), v;
    bool floats = ir_type[t->buf->type].floats;
    const char *binds = gen_binds(g, sc, false);

    v = floats ? gen_float(g, sc, 2) : gen_int(g, sc, 2);
    if (v.mag > t->buf->mag || t->buf->nat > 0)
        v = (Val){ .s = "1", .r = { 1, 1 }, .mag = 1 };
    text_f(&g->body, "%s%s%s%s%s\n", gen_label(g), binds, first,
           strstr(first, " if ") != NULL ? " and " : " if ", gen_at(g, cond, P_NOT));
    if (!gen_guard(sc, gen_f(g, "not %s", gen_at(g, cond, P_PRIMARY))))
        return; /* no room: then not every element is written, which is allowed */
    text_f(&g->body, "%s%s%s = %s%s\n", gen_label(g), gen_binds(g, sc, false), t->access, v.s,
           gen_guards_text(g, sc));
    gen_note_write(sc, t->buf, A_SET, v);
    gen_has(g, F_complement);
}

static void single(Gen *g)
{
    Scope sc;
    Target t;
    const char *s;

    if (!gen_scope(g, &sc) || (s = assign(g, &sc, &t)) == NULL)
        return;
    if (t.op == A_SET && t.buf->kind != B_INOUT && gen_p(g, 20))
        complement(g, &sc, &t, s);
    else
        text_f(&g->body, "%s%s%s\n", gen_label(g), gen_binds(g, &sc, false), s);
}

void gen_stmt(Gen *g)
{
    if (gen_built_stmt(g))
        return;
    if (!g->knobs.no_groups && gen_p(g, 18))
        group(g);
    else
        single(g);
}
