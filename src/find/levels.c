/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Who runs what on a GPU.  A warp issues an instruction for 32 lanes whether they are of use or
 * not, so lanes are fitted to rows: a lane has as many neighbours as one load takes, and as many
 * lanes as a row needs then have an iteration.  Where an iteration sums over lanes for each of its
 * entries, several entries share the warp: sums over few lanes take few shuffles. */
#include "find/find.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDEST = 16,     /* bytes that a lane loads at once */
    FEW_LANES = 4,   /* of a part of a warp: below, rows shorter than the parts waste the rest */
    MOST_OWN = 32,   /* elements of a row that a lane keeps while entries pass */
    MOST_LOADED = 64 /* registers of elements that are loaded ahead */
};

typedef struct Finder {
    Prog *p; /* a copy: what was tried and taken is done here */
    const FindTarget *target;
    Text text;
    const char **line; /* that were taken */
    int n, cap;
} Finder;

typedef struct Facts { /* of a phase */
    const Node *phase;
    const Node *vector, *entry; /* the first vector loop, and the loop of entries that is
                                 * around vector loops with sums over lanes, or in one */
    int64_t length;             /* iterations of each vector loop; -1: not known, or they differ */
    int bytes;                  /* of an element */
    bool folds, sums, named;
} Facts;

static bool has_name(const Node *n)
{
    return n->label != NULL && n->local != NULL && n->local->name != NULL;
}

static int bytes_of(const Node *n)
{
    int bytes = n->kind == N_STORE && ir_is_float(n->out) ? ir_type[n->out->type].bytes : 0;

    for (int i = 0; i < n->nbody && bytes == 0; i++)
        bytes = bytes_of(n->body[i]);
    return bytes;
}

static bool has_fold(const Node *vector)
{
    bool has = false;

    for (int i = 0; i < vector->nbody && !has; i++)
        has = vector->body[i]->kind == N_STORE && vector->body[i]->out->op == OP_local &&
              vector->body[i]->out->local->lanes == 1;
    return has;
}

static const Node *first_loop(const Node *n)
{
    const Node *found = NULL;

    for (int i = 0; i < n->nbody && found == NULL; i++)
        found = n->body[i]->kind == N_FOR ? n->body[i] : first_loop(n->body[i]);
    return found;
}

static int64_t length_of(const Node *n)
{
    bool size = n->hi->op == OP_size && n->hi->size->is > 0;

    return n->lo->op != OP_int || n->lo->i != 0 ? -1 : size ? n->hi->size->is : step_trips(n);
}

static void see(Facts *f, const Node *n, const Node *entry)
{
    if (n->kind == N_FOR && n->lanes > 1) {
        int64_t length = length_of(n);

        f->length = f->vector == NULL || f->length == length ? length : -1;
        f->bytes = f->bytes > 0 ? f->bytes : bytes_of(n);
        f->vector = f->vector != NULL ? f->vector : n;
        if (entry != NULL && has_fold(n)) {
            f->folds = true;
            f->entry = entry;
        } else if (first_loop(n) != NULL) {
            f->sums = true;
            f->entry = f->entry != NULL ? f->entry : first_loop(n);
        }
        return;
    }
    if (n->kind == N_FOR && n != f->phase && entry == NULL)
        entry = n;
    for (int i = 0; i < n->nbody; i++)
        see(f, n->body[i], entry);
}

static bool named_so(const Node *n, const char *name)
{
    bool is = step_is_named(n, name);

    for (int i = 0; i < n->nbody && !is; i++)
        is = named_so(n->body[i], name);
    return is;
}

/* A name that a phase of the user's has, too, is not the finder's. */
static bool is_free(const Finder *f, const char *name, const bool *users)
{
    for (int i = 0; i < f->p->nphase; i++)
        if (users[i] && named_so(f->p->phase[i], name))
            return false;
    return true;
}

static bool try(Finder *f, const char *text)
{
    Err *err = f->p->arena->err;
    jmp_buf trap, *outer = err->trap;
    StepLine *line;
    volatile bool good = false;

    err->trap = &trap;
    if (setjmp(trap) == 0) {
        if (step_lines(f->p, text, &line) == 1)
            step_apply(f->p, &line[0], f->target->step);
        good = true;
    }
    err->trap = outer;
    if (!good && err->code != ST_ARG)
        err_jump(err);
    if (!good)
        err_clear(err);
    return good;
}

/* Takes the line if it is legal: "NAME LOOP REST" of a loop that has a name. */
static bool take(Finder *f, const bool *users, const char *step, const Node *loop, const char *rest,
                 const char *why)
{
    Text t = { .arena = f->p->arena }, name = { .arena = f->p->arena };

    if (loop == NULL || !has_name(loop))
        return false;
    text_f(&name, "%s.%s", loop->label, loop_path(loop));
    text_f(&t, "%s %s%s", step, name.s, rest);
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->line[i], t.s) == 0)
            return true;
    if (!is_free(f, name.s, users) || !try(f, t.s))
        return false;
    f->line = arena_grow(f->p->arena, f->line, f->n, &f->cap, sizeof *f->line);
    f->line[f->n++] = t.s;
    text_f(&f->text, "%-28s # %s\n", t.s, why);
    return true;
}

static int power_below(int64_t n)
{
    int p = 1;

    while (2 * (int64_t)p <= n && p < 64)
        p *= 2;
    return p;
}

/* Neighbours of a lane: as many as a load takes, or as there are. */
static int neighbours(const Facts *f, int lanes)
{
    int most = WIDEST / (f->bytes > 0 ? f->bytes : 4);

    while (most > 1 && (f->length < 0 || f->length % ((int64_t)most * lanes) != 0))
        most /= 2;
    return most;
}

/* Parts of a team, if they can take the entries in turns: else each would run all of them. */
static bool take_parts(Finder *f, const bool *users, const Facts *a, const char *rest,
                       const char *why)
{
    Finder before = *f;

    f->p = ir_copy(f->p->arena, f->p);
    if (take(f, users, "team", a->phase, rest, why) &&
        take(f, users, "deal", a->entry, "", "the parts of the team take entries in turns"))
        return true;
    *f = before;
    f->text.s[f->text.n] = 0;
    return false;
}

static void find_team(Finder *f, const bool *users, const Facts *a)
{
    int all = f->target->step->lanes, lanes = all, pack = WIDEST / (a->bytes > 0 ? a->bytes : 4);
    char rest[40], why[200];

    if (a->length > 0 && f->target->step->parts && a->folds && a->entry != NULL) {
        lanes = power_below(a->length / MOST_OWN);
        lanes = lanes < FEW_LANES ? FEW_LANES : lanes;
        snprintf(rest, sizeof rest, " %d by %d", lanes, all / lanes);
        snprintf(why, sizeof why,
                 "a sum over %d lanes takes %d shuffles for %d entries; over a warp 5 for one",
                 lanes, (int)(lanes > 1) + (lanes > 2) + (lanes > 4) + (lanes > 8), all / lanes);
        if (lanes < all && a->length % lanes == 0 && take_parts(f, users, a, rest, why))
            return;
        lanes = all;
    }
    if (a->length > 0 && f->target->step->parts && a->length < (int64_t)pack * all &&
        a->length % pack == 0) {
        lanes = power_below(a->length / pack);
        lanes = lanes < 2 ? all : lanes;
    }
    snprintf(rest, sizeof rest, " %d", lanes);
    if (lanes < all)
        snprintf(why, sizeof why, "%lld elements are %d lanes of %d: %d iterations share a warp",
                 (long long)a->length, lanes, pack, all / lanes);
    else
        snprintf(why, sizeof why, "a warp for each iteration");
    take(f, users, "team", a->phase, rest, why);
}

static int count_values(const Node *n)
{
    int values = n->kind == N_STORE || (n->kind == N_LET && n->local->lanes > 1);

    for (int i = 0; i < n->nbody; i++)
        values += count_values(n->body[i]);
    return values;
}

/* Values in lanes that the vector loops of this name compute, and the fewest registers that the
 * passes gave each value of one of them. */
static int values_of(const Node *in, const Node *like, int *regs)
{
    bool is = in->kind == N_FOR && in->lanes > 1 && has_name(in) &&
              strcmp(in->label, like->label) == 0 && strcmp(loop_path(in), loop_path(like)) == 0;
    int values = is ? count_values(in) : 0;

    if (is && in->regs < *regs)
        *regs = in->regs > 1 ? in->regs : 1;
    for (int i = 0; i < in->nbody && !is; i++)
        values += values_of(in->body[i], like, regs);
    return values;
}

/* Neighbours of a lane for which registers suffice.  A line is for all loops of its name, and a
 * compiler may have all their values at once; where these are many, the loops keep the registers
 * that the passes chose. */
static int neighbours_that_fit(const Finder *f, const Node *phase, const Node *like, int pack)
{
    int regs = pack, values = values_of(phase, like, &regs);

    while (pack > regs && values * pack > f->target->unit->registers)
        pack /= 2;
    return pack;
}

static void find_wide(Finder *f, const bool *users, const Facts *a, const Node *n)
{
    if (n->kind == N_FOR && n->lanes > 1 && !n->packed) {
        Facts own = { .length = length_of(n), .bytes = bytes_of(n) };
        int pack = neighbours(&own, n->lanes);
        char rest[40], why[200];

        if (pack > 1 && own.bytes > 0) {
            /* two loads a lane, rather than passing all entries twice */
            if (first_loop(n) != NULL && pack * own.bytes == WIDEST && pack < 8 &&
                own.length % ((int64_t)2 * pack * n->lanes) == 0)
                pack *= 2;
            pack = has_name(n) ? neighbours_that_fit(f, a->phase, n, pack) : 1;
            snprintf(rest, sizeof rest, " %d", pack);
            snprintf(why, sizeof why, "%d neighbours a lane: loads of %d bytes", pack,
                     pack * own.bytes < WIDEST ? pack * own.bytes : WIDEST);
            take(f, users, "wide", n, rest, why);
        }
        return;
    }
    for (int i = 0; i < n->nbody; i++)
        find_wide(f, users, a, n->body[i]);
}

/* regs: loads of an iteration; lanes: that have it.  Rows that share a warp wait for each other in
 * each part of the code, so they take fewer at a time. */
static void find_turns(Finder *f, const bool *users, const Node *n, int regs, int lanes)
{
    char rest[40], why[200];

    if (n->kind == N_FOR && n->lanes > 1) {
        regs = n->regs > 1 ? n->regs : 1;
        lanes = n->lanes;
    } else if (n->kind == N_FOR && regs > 0 && n->regs <= 1 && first_loop(n) == NULL &&
               step_trips(n) < 0) {
        int turns = MOST_LOADED / regs;

        turns = turns > lanes / 2 ? lanes / 2 : turns;
        turns = turns > 16 ? 16 : turns;
        snprintf(rest, sizeof rest, " %d", turns);
        snprintf(why, sizeof why, "addresses and tests once for %d entries; %d loads in flight",
                 turns, turns);
        if (turns > 1)
            take(f, users, "turns", n, rest, why);
        return;
    }
    for (int i = 0; i < n->nbody; i++)
        find_turns(f, users, n->body[i], regs, lanes);
}

static Facts facts_of(const Node *phase)
{
    Facts a = { .phase = phase, .length = -1 };

    see(&a, phase, NULL);
    return a;
}

static bool is_found(const Finder *f, const bool *users, int i)
{
    const Node *n = f->p->phase[i];

    return !users[i] && n->kind == N_FOR && n->how == FOR_PARALLEL && n->lanes <= 1 &&
           loop_has_vector(n);
}

static void comment(Finder *f, const Node *n)
{
    const char *label = n->label != NULL ? n->label : "a phase";

    if (n->kind != N_FOR || n->how != FOR_PARALLEL)
        text_f(&f->text, "# %s: one %s, as its iterations run in order%s%s\n", label,
               loop_has_vector(n) ? "warp" : "thread", n->why != NULL ? ": " : "",
               n->why != NULL ? n->why : "");
    else if (n->lanes > 1)
        text_f(&f->text, "# %s: lanes have neighbouring iterations\n", label);
    else
        text_f(&f->text, "# %s: a thread for each iteration, as nothing in it runs in lanes\n",
               label);
}

const char *find_levels(Prog *p, const FindTarget *target)
{
    Finder f = { .p = ir_copy(p->arena, p), .target = target, .text = { .arena = p->arena } };
    bool *users = arena_array(p->arena, p->nphase, sizeof *users);

    text_put(&f.text, "", 0);
    for (int i = 0; i < p->nphase; i++)
        users[i] = p->phase[i]->scheduled;
    for (int i = 0; i < f.p->nphase; i++) {
        Facts a = facts_of(f.p->phase[i]);

        if (is_found(&f, users, i))
            find_team(&f, users, &a);
        else if (!users[i])
            comment(&f, f.p->phase[i]);
    }
    for (int i = 0; i < f.p->nphase; i++)
        if (is_found(&f, users, i)) {
            Facts a = facts_of(f.p->phase[i]);

            find_wide(&f, users, &a, f.p->phase[i]);
        }
    for (int i = 0; i < f.p->nphase; i++)
        if (is_found(&f, users, i))
            find_turns(&f, users, f.p->phase[i], 0, 0);
    return f.text.s;
}
