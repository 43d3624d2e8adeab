/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Named tensor products: which paths they have and what they put out, in e3nn's order, so that
 * weights and outputs are those of its modules. */
#include "o3/o3_int.h"

typedef struct Build { /* paths and output slots that grow */
    Arena *arena;
    O3Path *path;
    O3Slot *slot;
    int npath, nslot, cap_path, cap_slot;
} Build;

static void add_path(Build *b, O3Path p)
{
    if (b->npath >= O3_MAX_PATHS)
        err_throw(b->arena->err, ST_LIMIT, "a tensor product of more than %d paths", O3_MAX_PATHS);
    b->path = arena_grow(b->arena, b->path, b->npath, &b->cap_path, sizeof *b->path);
    b->path[b->npath++] = p;
}

static int add_slot(Build *b, int64_t mul, O3Irrep ir)
{
    b->slot = arena_grow(b->arena, b->slot, b->nslot, &b->cap_slot, sizeof *b->slot);
    b->slot[b->nslot] = (O3Slot){ mul, ir };
    return b->nslot++;
}

/* The slots that were made become the output, sorted or as they are. */
static void finish(Build *b, O3Problem *t, bool sorted)
{
    O3Irreps out = { b->nslot, b->slot };

    if (sorted) {
        O3Sorted s = o3_sort(b->arena, out);

        out = s.irreps;
        for (int k = 0; k < b->npath; k++)
            b->path[k].out = s.to[b->path[k].out];
    }
    t->out = out;
    t->path = b->path;
    t->npath = b->npath;
}

void o3_form_connected(Arena *arena, O3Problem *t, O3Mode mode, bool weighted)
{
    Build b = { .arena = arena };

    for (int i = 0; i < t->in1.n; i++)
        for (int j = 0; j < t->in2.n; j++)
            for (int k = 0; k < t->out.n; k++)
                if (o3_allows(t->in1.at[i].ir, t->in2.at[j].ir, t->out.at[k].ir))
                    add_path(&b, (O3Path){ i, j, k, mode, weighted, 1 });
    t->path = b.path;
    t->npath = b.npath;
}

/* The multiplicity that the output of a mode has. */
static int64_t mul_out(O3Mode mode, int64_t u, int64_t v)
{
    if (mode == O3_UVUV_LESS)
        return u * (u - 1) / 2;
    return mode == O3_UVUV ? u * v : mode == O3_UVV ? v : u;
}

static void order_by_out(Arena *arena, O3Problem *t)
{
    O3Path *path = arena_array(arena, t->npath, sizeof *path);
    int n = 0;

    for (int k = 0; k < t->out.n; k++)
        for (int i = 0; i < t->npath; i++)
            if (t->path[i].out == k)
                path[n++] = t->path[i];
    t->path = path;
}

void o3_form_slots(Arena *arena, O3Problem *t, O3Mode mode, bool weighted, const O3Irreps *keep,
                   bool by_out)
{
    Build b = { .arena = arena };

    for (int i = 0; i < t->in1.n; i++)
        for (int j = 0; j < t->in2.n; j++) {
            O3Slot x = t->in1.at[i], y = t->in2.at[j];
            int low = x.ir.l > y.ir.l ? x.ir.l - y.ir.l : y.ir.l - x.ir.l;

            for (int l = low; l <= x.ir.l + y.ir.l && l <= O3_MAX_L; l++) {
                O3Irrep ir = { l, x.ir.p * y.ir.p };

                if (keep != NULL && !o3_has(*keep, ir))
                    continue;
                add_path(&b, (O3Path){ i, j, add_slot(&b, mul_out(mode, x.mul, y.mul), ir), mode,
                                       weighted, 1 });
            }
        }
    finish(&b, t, true);
    if (by_out)
        order_by_out(arena, t);
}

/* Slots cut so that both inputs have the same multiplicities, one by one. */
static void align(Arena *arena, O3Problem *t)
{
    O3Irreps a = o3_simplify(arena, t->in1), c = o3_simplify(arena, t->in2);
    O3Slot *x = arena_array(arena, a.n + c.n, sizeof *x);
    O3Slot *y = arena_array(arena, a.n + c.n, sizeof *y);
    int64_t left_a = 0, left_c = 0;
    int n = 0, i = -1, j = -1;

    if (o3_num(a) != o3_num(c))
        err_throw(arena->err, ST_ARG,
                  "elementwise: the inputs have %lld and %lld irreps; they need as many",
                  (long long)o3_num(a), (long long)o3_num(c));
    for (;; n++) {
        int64_t mul;

        if (left_a == 0 && ++i < a.n)
            left_a = a.at[i].mul;
        if (left_c == 0 && ++j < c.n)
            left_c = c.at[j].mul;
        if (i >= a.n)
            break;
        mul = left_a < left_c ? left_a : left_c;
        x[n] = (O3Slot){ mul, a.at[i].ir };
        y[n] = (O3Slot){ mul, c.at[j].ir };
        left_a -= mul;
        left_c -= mul;
    }
    t->in1 = (O3Irreps){ n, x };
    t->in2 = (O3Irreps){ n, y };
}

void o3_form_elementwise(Arena *arena, O3Problem *t, const O3Irreps *keep)
{
    Build b = { .arena = arena };

    align(arena, t);
    for (int i = 0; i < t->in1.n; i++)
        for (int l = 0; l <= O3_MAX_L; l++) {
            O3Irrep x = t->in1.at[i].ir, y = t->in2.at[i].ir, ir = { l, x.p * y.p };

            if (o3_allows(x, y, ir) && (keep == NULL || o3_has(*keep, ir)))
                add_path(&b,
                         (O3Path){ i, i, add_slot(&b, t->in1.at[i].mul, ir), O3_UUU, false, 1 });
        }
    finish(&b, t, false);
}

/* The factors of a square, where a product of two channels is one of the paths: of different
 * channels, and of a channel with itself, whose components are not independent. */
static double cross_factor(const O3Problem *t, O3Irrep x, O3Irrep y, O3Irrep z)
{
    return t->norm == O3_COMPONENT ? o3_ir_dim(z)
           : t->norm == O3_NORM    ? o3_ir_dim(x) * o3_ir_dim(y)
                                   : 1;
}

static double self_factor(const O3Problem *t, O3Irrep x, O3Irrep z)
{
    double d = o3_ir_dim(x);

    if (t->norm == O3_COMPONENT)
        return z.l == 0 ? 1 / (d + 2) : o3_ir_dim(z) / 2.0;
    if (t->norm == O3_NORM)
        return z.l == 0 ? d : d * (d + 2) / 2;
    return 1;
}

/* The paths of slots i <= j to irrep z: to slot k of the output, or (k < 0) to new ones. */
static void add_square(Build *b, const O3Problem *t, int i, int j, O3Irrep z, int k)
{
    O3Slot x = t->in1.at[i], y = t->in1.at[j];
    double cross = cross_factor(t, x.ir, y.ir, z);
    bool slots = k < 0;

    if (i < j)
        add_path(b, (O3Path){ i, j, slots ? add_slot(b, x.mul * y.mul, z) : k,
                              slots ? O3_UVUV : O3_UVW, !slots, cross });
    if (i == j && x.mul > 1)
        add_path(b, (O3Path){ i, i, slots ? add_slot(b, x.mul * (x.mul - 1) / 2, z) : k,
                              slots ? O3_UVUV_LESS : O3_UVW_LESS, !slots, cross });
    if (i == j && z.l % 2 == 0)
        add_path(b, (O3Path){ i, i, slots ? add_slot(b, x.mul, z) : k, slots ? O3_UUU : O3_UUW,
                              !slots, self_factor(t, x.ir, z) });
}

void o3_form_square(Arena *arena, O3Problem *t, const O3Irreps *keep, bool connected)
{
    Build b = { .arena = arena };

    t->in1 = t->in2 = o3_simplify(arena, t->in1);
    t->out = o3_simplify(arena, t->out);
    for (int i = 0; i < t->in1.n; i++)
        for (int j = i; j < t->in1.n; j++) {
            O3Irrep x = t->in1.at[i].ir, y = t->in1.at[j].ir;

            for (int k = 0; connected && k < t->out.n; k++)
                if (o3_allows(x, y, t->out.at[k].ir))
                    add_square(&b, t, i, j, t->out.at[k].ir, k);
            for (int l = 0; !connected && l <= O3_MAX_L; l++) {
                O3Irrep z = { l, x.p * y.p };

                if (o3_allows(x, y, z) && (keep == NULL || o3_has(*keep, z)))
                    add_square(&b, t, i, j, z, -1);
            }
        }
    if (connected) {
        t->path = b.path;
        t->npath = b.npath;
    } else {
        finish(&b, t, true);
    }
    t->square = true;
    t->norm = O3_NONE; /* it is in the path weights */
}

void o3_form_norm(Arena *arena, O3Problem *t, bool squared)
{
    Build b = { .arena = arena };

    t->in1 = t->in2 = o3_simplify(arena, t->in1);
    for (int i = 0; i < t->in1.n; i++) {
        O3Slot x = t->in1.at[i];

        add_path(&b, (O3Path){ i, i, add_slot(&b, x.mul, (O3Irrep){ 0, 1 }), O3_UUU, false,
                               o3_ir_dim(x.ir) });
    }
    finish(&b, t, false);
    t->square = true;
    t->root = !squared;
    t->norm = O3_COMPONENT;
}
