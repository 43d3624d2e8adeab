/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The plan of a program as C: a struct with the arrays that a kernel reads and no caller has, a
 * function that makes them from the program's sizes and structure, one function for each axis or
 * table, and one that frees them.  The library makes the same arrays in api/plan.c. */
#include "api/export_int.h"
#include "lower/lower.h"

#include <string.h>

static bool has_name(const Export *x, const char *name)
{
    for (int i = 0; i < x->nmember; i++)
        if (strcmp(x->member[i].name, name) == 0)
            return true;
    return false;
}

static void add(Export *x, const char *name, Member m)
{
    Text c = export_c_name(x->arena, m.size != NULL ? "n_" : "", name), use = { .arena = x->arena };

    while (has_name(x, c.s))
        text_char(&c, '_');
    text_f(&use, "plan->%s", c.s);
    m.name = c.s;
    m.use = use.s;
    x->member = arena_grow(x->arena, x->member, x->nmember, &x->cap, sizeof *x->member);
    x->member[x->nmember++] = m;
}

static bool reads(const Export *x, const Axis *a, int k)
{
    for (int i = 0; i < x->info->narray; i++)
        if (x->info->array[i]->of == a && x->info->array[i]->of_k == k)
            return true;
    return false;
}

/* A pass may want a transpose and then do without. */
static bool is_used(const Export *x, const Axis *a)
{
    bool used = false;

    for (int i = 0; i < x->info->narray; i++)
        used = used || x->info->array[i]->of == a;
    for (int i = 0; i < x->info->ncount; i++)
        used = used || x->info->count[i] == a;
    for (int i = 0; i < x->prog->naxis; i++)
        used = used || x->prog->axis[i]->from == a;
    return used;
}

/* Whether the plan fills this axis and those above it. */
static bool is_planned(const Export *x, const Axis *a)
{
    return a->from != NULL && (a->from_k < 0 || is_used(x, a));
}

static void add_size(Export *x, const Size *s)
{
    bool there = false;

    for (int i = 0; i < x->nmember; i++)
        there = there || x->member[i].size == s;
    if (!there)
        add(x, s->name, (Member){ .size = s });
}

/* Of what a transpose carries along, only what the kernel reads. */
static void add_axis(Export *x, Axis *a)
{
    bool sorted = a->from != NULL && a->from_k >= 0;
    const Axis *of;

    if (a->extent == X_SEG)
        add(x, loop_start(x->prog, a)->name, (Member){ .axis = a, .k = -1 });
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD &&
            !(sorted && lower_carried(a, k, &of) >= 0 && !reads(x, a, k)))
            add(x, loop_coord(x->prog, a, k)->name, (Member){ .axis = a, .k = k });
}

static void add_family(Export *x, Axis *last, Axis *a)
{
    if (a->parent != NULL)
        add_family(x, last, a->parent);
    add_axis(x, a);
    if (fmt_fitted(last, a) != NULL)
        add_size(x, fmt_fitted(last, a));
}

void export_list_members(Export *x)
{
    for (int i = 0; i < x->prog->naxis; i++)
        if (is_planned(x, x->prog->axis[i])) {
            x->formats = x->formats || x->prog->axis[i]->from_k == FROM_FORMAT;
            add_family(x, x->prog->axis[i], x->prog->axis[i]);
        }
    for (int i = 0; i < x->info->narray; i++) {
        const Buf *b = x->info->array[i];

        if (b->of != NULL && b->nfull > 0)
            add(x, b->name, (Member){ .base = b });
        else if (b->of != NULL && b->of_k == LOOP_MAP)
            add(x, b->name, (Member){ .axis = b->of, .k = LOOP_MAP });
    }
}

void export_put_struct(const Export *x)
{
    text_f(x->out,
           "\n/* What a run needs of a structure besides its arrays: made once by %s_make,\n"
           " * good as long as the sizes and the structure stay the same. */\nstruct %s {\n",
           x->plan, x->plan);
    for (int i = 0; i < x->nmember; i++)
        text_f(x->out, "    int64_t %s%s;\n", x->member[i].size != NULL ? "" : "*",
               x->member[i].name);
    text_str(x->out, "    void *weft_memory;\n};\n");
}

static void put_make_head(const Export *x)
{
    int n;

    text_f(x->out, "int64_t %s_make(", x->plan);
    n = export_put_arguments(x, true, "");
    text_f(x->out, "%sstruct %s *plan)", n > 0 ? ",\n    " : "", x->plan);
}

void export_put_plan_prototypes(const Export *x)
{
    put_make_head(x);
    text_f(x->out, ";\nvoid %s_free(struct %s *plan);\n", x->plan, x->plan);
}

/* The name of the function that makes the arrays of an axis, or a table. */
static const char *maker_of(const Export *x, const Axis *a, const Member *table)
{
    Text t = { .arena = x->arena };

    if (table != NULL)
        text_f(&t, "%s_table_%s", x->plan, table->name);
    else
        text_f(&t, "%s_axis_%s", x->plan, a->name);
    return t.s;
}

typedef void Maker(const Export *, const Axis *, const Member *table);

/* Calls fn for each thing that is made, in an order in which what one needs comes before it. */
static void each_maker(const Export *x, Maker *fn)
{
    for (int i = 0; i < x->prog->naxis; i++) {
        const Axis *a = x->prog->axis[i];

        if (is_planned(x, a) && !(a->from_k == FROM_FORMAT && a->part > 0))
            fn(x, a, NULL);
    }
    for (int i = 0; i < x->nmember; i++)
        if (x->member[i].base != NULL || x->member[i].k == LOOP_MAP)
            fn(x, x->member[i].axis, &x->member[i]);
}

static void put_maker(const Export *x, const Axis *a, const Member *table)
{
    int n;

    text_f(x->out, "\nstatic void %s(", maker_of(x, a, table));
    n = export_put_arguments(x, true, " WEFT_USED");
    text_f(x->out, "%sstruct %s *plan, weft_heap *h, weft_heap *tmp WEFT_USED)\n{\n",
           n > 0 ? ",\n    " : "", x->plan);
    text_str(x->out, "    int64_t fault = 0;\n\n    if (h->fault != 0)\n        return;\n");
    if (table != NULL && table->base != NULL)
        export_put_base(x, table);
    else if (table != NULL)
        export_put_map(x, table);
    else if (a->from_k >= 0)
        export_put_transpose(x, a);
    else if (a->from_k == FROM_FORMAT)
        export_put_format(x, a);
    else
        export_put_parts(x, a);
    text_str(x->out, "    if (h->fault == 0)\n"
                     "        h->fault = tmp->fault != 0 ? tmp->fault : fault;\n}\n");
}

static void put_call(const Export *x, const Axis *a, const Member *table)
{
    text_f(x->out, "    %s(", maker_of(x, a, table));
    for (int i = 0; i < x->body->narg; i++)
        if (x->body->arg[i].kind != ARG_BUF)
            text_f(x->out, "%s, ", x->name[i]);
    text_str(x->out, "plan, &h, &tmp);\n");
}

void export_put_plan(const Export *x)
{
    text_char(x->out, '\n');
    export_put_plan_prototypes(x);
    export_put_conversions(x);
    each_maker(x, put_maker);
    text_f(x->out,
           "\nvoid %s_free(struct %s *plan)\n{\n    weft_heap h = { %splan->weft_memory, 0 };\n\n"
           "    weft_release(&h);\n    plan->weft_memory = 0;\n}\n\n",
           x->plan, x->plan, x->target->dialect->blocks);
    put_make_head(x);
    text_f(x->out,
           "\n{\n    weft_heap h = { 0, 0 }, tmp = { 0, 0 };\n\n"
           "    *plan = (struct %s){ 0 };\n",
           x->plan);
    each_maker(x, put_call);
    text_f(x->out,
           "    weft_release(&tmp);\n    plan->weft_memory = (void *)h.last;\n"
           "    if (h.fault != 0)\n        %s_free(plan);\n    return h.fault;\n}\n",
           x->plan);
}
