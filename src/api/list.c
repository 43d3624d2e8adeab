/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The library's tables, row by row, for `weft list` and for completion in shells. */
#include "api/api_int.h"
#include "ops/ops.h"
#include "sched/step.h"

#include <string.h>

typedef struct Item {
    const char *name, *note;
} Item;

/* Axes are rules put together, so this one table stands here: docs/ir.md has the grammar. */
static const Item axes[] = {
    { "dense(n)", "n positions; the coordinate is the position" },
    { "compressed(I, n)", "stored columns below n under each I: seg : load < n" },
    { "ragged(I)", "a run of positions under each I: seg" },
    { "ell(I, w, n)", "w stored columns below n under each I, padded: w : load < n padded" },
    { "E(I) = seg", "extent: E.start[i] .. E.start[i + 1]" },
    { "E(I) = one", "extent: exactly one under each I" },
    { "E(I) = built", "extent: filled by the program with |=" },
    { "E(I) = {1, 3}", "extent: a constant for each position of I" },
    { "E(I) = rows a b -> c {...}", "a constant relation a, b with values c" },
    { ": load < n", "coordinate: an index array, E.coord, below n" },
    { ": i < m, j < n", "coordinates: index arrays E.i and E.j" },
    { ": j = i + e - 2 < n", "coordinate: an expression of positions and coordinates" },
    { ": table {0, 2, 4}", "coordinate: constants" },
    { ": k < n once", "coordinate: no value twice in the whole axis" },
    { "sorted", "flag: coordinates ascend under each parent" },
    { "unique", "flag: no coordinate twice under a parent" },
    { "padded", "flag: positions with a coordinate outside its bound do not exist" },
};

static Item axis_item(int i)
{
    const int n = sizeof axes / sizeof *axes;

    return i < n ? axes[i] : (Item){ NULL, NULL };
}

static Item keyword_item(int i)
{
    const char *const *word = ir_keywords();

    while (i > 0 && *word != NULL) {
        word++;
        i--;
    }
    return (Item){ *word, "" };
}

static Item type_item(int i)
{
    for (int t = 0; t < T_COUNT; t++)
        if (ir_type[t].element && i-- == 0)
            return (Item){ ir_type[t].name, ir_type[t].floats ? "floating point" : "integer" };
    return (Item){ NULL, NULL };
}

static Item function_item(int i)
{
    static const char *const note[] = { "of a variable", "one argument", "two arguments",
                                        "three arguments" };

    for (int op = 0; op < OP_COUNT; op++)
        if ((ir_op[op].props & (CALL | VARCALL)) && i-- == 0)
            return (Item){ ir_op[op].text, note[ir_op[op].nargs] };
    return (Item){ NULL, NULL };
}

static Item pass_item(int i)
{
    const Pass *s = api_pass;

    while (i > 0 && s->name != NULL) {
        s++;
        i--;
    }
    return (Item){ s->name, s->note };
}

static Item step_item(int i)
{
    const Step *s = step_table;

    if (i < POLICY_NWORD)
        return (Item){ policy_field[i].name, policy_field[i].note };
    for (i -= POLICY_NWORD; i > 0 && s->name != NULL; i--)
        s++;
    return (Item){ s->name, s->note };
}

static Item policy_item(int i)
{
    if (i >= POLICY_NFIELD)
        return (Item){ NULL, NULL };
    return (Item){ policy_field[i].name, policy_field[i].note };
}

static Item target_item(int i)
{
    Item item;

    item.name = api_target_row(i, &item.note);
    return item;
}

static Item op_item(int i)
{
    Item item;

    item.name = ops_name(i, &item.note);
    return item;
}

static Item format_item(int i)
{
    Item item = { NULL, NULL };

    item.name = fmt_list(i, &item.note);
    return item;
}

static Item option_item(int i)
{
    Item item;

    item.name = ops_option(i, &item.note);
    return item;
}

static const struct {
    const char *name;
    Item (*item)(int i);
} tables[] = {
    { "types", type_item },     { "functions", function_item },
    { "axes", axis_item },      { "keywords", keyword_item },
    { "passes", pass_item },    { "steps", step_item },
    { "targets", target_item }, { "ops", op_item },
    { "options", option_item }, { "formats", format_item },
    { "policy", policy_item },
};

const char *weft_list(const char *what, int i, const char **note)
{
    const int ntable = sizeof tables / sizeof *tables;
    Item item = { NULL, NULL };

    if (what == NULL && i >= 0 && i < ntable)
        item = (Item){ tables[i].name, "" };
    for (int k = 0; what != NULL && i >= 0 && k < ntable; k++)
        if (strcmp(tables[k].name, what) == 0)
            item = tables[k].item(i);
    if (note != NULL)
        *note = item.note;
    return item.name;
}

weft_status weft_policy(weft_ctx *context, const char *target, int i, int *value)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    Policy policy;

    API_ENTER(ctx);
    if (target == NULL || value == NULL || i < 0 || i >= POLICY_NFIELD)
        err_throw(&ctx->err, ST_ARG, "the policy has rows 0 to %d, of a target", POLICY_NFIELD - 1);
    policy = policy_for(&api_find_target(ctx, target)->unit);
    *value = *policy_at(&policy, i);
    return api_leave(ctx);
}
