/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prints the code by which an emitted program cuts long rows, sums and scatters into parts.
 * api/parts.c does the same for kernels; here sizes and starts are C expressions. */
#include "api/export_int.h"
#include "lower/lower.h"
#include "run/run.h"

static void put_sum(const Export *x, const Node *n, const Axis *e, const Buf *balance);

static bool is_known(const Expr *e)
{
    bool known = e->op == OP_int || e->op == OP_size || (e->op >= OP_neg && e->op <= OP_mod);

    for (int i = 0; i < e->nargs && known; i++)
        known = is_known(e->arg[i]);
    return known;
}

/* Whether the starts of an axis are there when the parts of e are made. */
static bool is_there(const Export *x, const Axis *a, const Axis *e)
{
    for (int i = e->id; i < x->prog->naxis; i++)
        if (x->prog->axis[i]->from != NULL &&
            (x->prog->axis[i] == a || ir_is_ancestor(a, x->prog->axis[i])))
            return false;
    return true;
}

/* Iterations of a loop, on the average, as lower/facts/weight.c counts them. */
static void put_trips(const Export *x, const Node *n, const Axis *e, const Buf *balance)
{
    const Buf *b = loop_start_in(n->lo, NULL);

    if (is_known(n->lo) && is_known(n->hi)) {
        text_str(x->out, "weft_trips(");
        export_put_computed(x, NULL, NULL, n->lo);
        text_str(x->out, ", ");
        export_put_computed(x, NULL, NULL, n->hi);
        text_char(x->out, ')');
    } else if (b == NULL || b == balance || b->of->extent != X_SEG || !is_there(x, b->of, e)) {
        text_str(x->out, "1.0");
    } else {
        text_str(x->out, "weft_average(");
        export_put_total(x, b->of);
        text_str(x->out, ", ");
        if (b->of->parent == NULL)
            text_char(x->out, '1');
        else
            export_put_total(x, b->of->parent);
        text_char(x->out, ')');
    }
}

/* The longest of the loops in n. */
static void put_longest(const Export *x, const Node *n, const Axis *e, const Buf *balance)
{
    int loops = 0;

    for (int i = 0; i < n->nbody; i++)
        loops += n->body[i]->kind == N_FOR;
    for (int i = 0; i < loops; i++)
        text_str(x->out, "weft_most(");
    text_str(x->out, "0.0");
    for (int i = 0; i < n->nbody; i++) {
        if (n->body[i]->kind != N_FOR)
            continue;
        text_str(x->out, ", ");
        put_sum(x, n->body[i], e, balance);
        text_str(x->out, " * ");
        put_trips(x, n->body[i], e, balance);
        text_char(x->out, ')');
    }
}

static bool has_loop(const Node *n)
{
    bool loop = false;

    for (int i = 0; i < n->nbody; i++)
        loop = loop || n->body[i]->kind == N_FOR || has_loop(n->body[i]);
    return loop;
}

static int count_stores(const Node *n)
{
    int stores = n->kind == N_STORE || n->kind == N_INSERT;

    for (int i = 0; i < n->nbody; i++)
        stores += count_stores(n->body[i]);
    return stores;
}

/* Stores in an iteration: those outside loops, and the longest loop. */
static void put_sum(const Export *x, const Node *n, const Axis *e, const Buf *balance)
{
    int stores = n->kind == N_STORE || n->kind == N_INSERT;

    text_char(x->out, '(');
    for (int i = 0; i < n->nbody; i++)
        if (n->body[i]->kind != N_FOR && !has_loop(n->body[i]))
            stores += count_stores(n->body[i]);
    text_f(x->out, "%d.0", stores);
    for (int i = 0; i < n->nbody; i++)
        if (n->body[i]->kind != N_FOR && has_loop(n->body[i])) {
            text_str(x->out, " + ");
            put_sum(x, n->body[i], e, balance);
        }
    text_str(x->out, " + ");
    put_longest(x, n, e, balance);
    text_char(x->out, ')');
}

/* The weight of an iteration of the last phase over the pieces of e. */
static void put_weight(const Export *x, const Axis *e)
{
    const Node *phase = NULL;

    for (int i = 0; i < x->prog->nphase; i++) {
        const Node *n = x->prog->phase[i];
        const Buf *b = n->kind == N_FOR ? loop_balance(n) : NULL;

        phase = b != NULL && b->of == e ? n : phase;
    }
    text_str(x->out, "    const double weight = ");
    if (phase == NULL) {
        text_str(x->out, "1.0;\n");
        return;
    }
    text_str(x->out, "weft_most(1.0, ");
    put_sum(x, phase, e, loop_balance(phase));
    text_str(x->out, ");\n");
}

/* The elements that a part has of an array: those of the places after that of the parts. */
static void put_elements(const Export *x, const Buf *b, const Axis *parts)
{
    bool has = false;
    int n = 0;

    for (int k = 0; k < b->nfull; k++)
        has = has || b->full[k] == parts;
    if (!has)
        return;
    text_str(x->out, "    each = weft_max_i64(each, ");
    for (int k = b->nfull - 1; b->full[k] != parts; k--, n++)
        text_f(x->out, "weft_elements(%d, ", RUN_FINE_ROOM);
    text_char(x->out, '1');
    for (int k = b->nfull - n; k < b->nfull; k++) {
        text_str(x->out, ", ");
        if (b->full[k]->extent == X_EXPR)
            export_put_extent(x, b->full[k]->size);
        else
            text_f(x->out, "%lld", (long long)api_most_extent(b->full[k]));
        text_char(x->out, ')');
    }
    text_str(x->out, ");\n");
}

static void put_rows(const Export *x, const Axis *of)
{
    export_put_total(x, of->parent);
    text_f(x->out, ", %s", export_array_name(x, of, -1));
}

static void put_long(const Export *x, const Axis *e)
{
    const Axis *parts = e->parent, *rows = parts->parent, *one = rows->parent;

    text_str(x->out, "    weft_long r;\n\n    weft_long_rows(h, ");
    put_rows(x, e->from);
    text_f(x->out, ", %d, %d, &r);\n", RUN_PART, RUN_MAX_PARTS);
    text_f(x->out, "    %s = r.limit;\n", export_array_name(x, one, 0));
    text_f(x->out, "    %s = r.rows;\n", export_array_name(x, rows, -1));
    text_f(x->out, "    %s = r.row;\n", export_array_name(x, rows, 0));
    text_f(x->out, "    %s = r.first;\n", export_array_name(x, parts, -1));
    text_f(x->out, "    %s = r.part_row;\n", export_array_name(x, parts, 0));
    text_f(x->out, "    %s = r.shift;\n", export_array_name(x, parts, 1));
    text_f(x->out, "    %s = r.start;\n", export_array_name(x, e, -1));
}

static void put_cut(const Export *x, const Axis *e)
{
    const Axis *parts = e->parent, *of = e->from;

    put_weight(x, e);
    text_f(x->out, "    const int64_t least = (int64_t)(%d.0 / weight) + 1, n = ", RUN_PART);
    if (of->extent == X_SEG)
        export_put_total(x, of);
    else
        export_put_extent(x, of->size);
    text_str(x->out, ";\n    int64_t each = 1;\n    weft_cut c;\n\n");
    for (int i = 0; i < x->info->narray; i++) /* those over parts are stored to */
        put_elements(x, x->info->array[i], parts);
    text_f(x->out,
           "    const weft_pieces_rule rule = { %d, %d, %d, %d, %d, %d };\n"
           "    int64_t k = weft_pieces(n, least, each, &rule);\n\n"
           "    k = weft_min_i64(k, weft_max_i64(1, (int64_t)((double)n * weight) / each));\n"
           "    weft_cut_range(h, n, k, ",
           RUN_ROOM, RUN_LEAST_PIECES, RUN_MAX_PARTS, RUN_FINE_ROOM, RUN_MAX_PIECES, RUN_CHAIN);
    if (of->extent == X_SEG)
        put_rows(x, of);
    else
        text_str(x->out, "0, 0");
    text_str(x->out, ", &c);\n");
    text_f(x->out, "    %s = c.pieces;\n", export_array_name(x, parts, -1));
    text_f(x->out, "    %s = c.row;\n", export_array_name(x, parts, 0));
    text_f(x->out, "    %s = c.end;\n", export_array_name(x, parts, 1));
    text_f(x->out, "    %s = c.start;\n", export_array_name(x, e, -1));
}

/* Where the entries below each row at the top begin: an array that is there, or a new one. */
static void put_starts(const Export *x, const Axis *a, const Axis *top)
{
    if (a->parent == top) {
        text_str(x->out, export_array_name(x, a, -1));
        return;
    }
    text_str(x->out, "weft_starts_below(h, ");
    export_put_total(x, top);
    text_str(x->out, ", ");
    put_starts(x, a->parent, top);
    text_f(x->out, ", %s)", export_array_name(x, a, -1));
}

static void put_scatter(const Export *x, const Axis *r)
{
    const Axis *top = r->from, *parts = r->parent;

    while (top->parent != NULL)
        top = top->parent;
    text_str(x->out, "    weft_rows r;\n\n    r.rows = ");
    export_put_total(x, top);
    text_str(x->out, ";\n    r.start = ");
    put_starts(x, r->from, top);
    text_f(x->out, ";\n    r.name = %s;\n    r.named = ",
           export_array_name(x, r->from, r->part));
    export_put_extent(x, r->from->coord[r->part].bound);
    text_f(x->out, ";\n    weft_cut_rows(h, %d, %d, %d, &r);\n", RUN_ROW_ENTRIES, 2 * RUN_PART,
           RUN_ROW_PARTS);
    text_f(x->out, "    %s = r.parts;\n", export_array_name(x, parts, -1));
    text_f(x->out, "    %s = r.first;\n", export_array_name(x, parts, 0));
    text_f(x->out, "    %s = r.end;\n", export_array_name(x, parts, 1));
    text_f(x->out, "    %s = r.first_row;\n", export_array_name(x, r, -1));
    text_f(x->out, "    %s = r.part;\n", export_array_name(x, r, 0));
}

void export_put_parts(const Export *x, const Axis *e)
{
    if (e->from_k == FROM_LONG)
        put_long(x, e);
    else if (e->from_k == FROM_ROWS)
        put_scatter(x, e);
    else
        put_cut(x, e);
}
