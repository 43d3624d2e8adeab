/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions to text, with the parentheses that reading them back needs and no others. */
#include "ir/ir_int.h"
#include "ir/loop.h"
#include "ir/print_int.h"

#include <math.h>
#include <string.h>

/* A negative literal reads as a sign and a number. */
static int precedence(Expr *e)
{
    if ((e->op == OP_int && e->i < 0) || (e->op == OP_real && signbit(e->f)))
        return P_UNARY;
    return ir_precedence((Op)e->op);
}

void print_number(Text *out, double v, bool real)
{
    char text[NUM_TEXT];
    int n = num_print(text, v);

    text_put(out, text, (size_t)n);
    if (real && strpbrk(text, ".en") == NULL)
        text_str(out, ".0");
}

static void print_tight(Printer *o, Expr *e, int least);

static void print_list(Printer *o, Expr *const *e, int n, void (*one)(Printer *, Expr *))
{
    for (int i = 0; i < n; i++) {
        if (i > 0)
            text_str(o->out, ", ");
        one(o, e[i]);
    }
}

static void print_coord(Printer *o, Expr *e)
{
    const char *name = e->var->axis->coord[e->k].name;

    if (name == NULL)
        text_str(o->out, e->var->name);
    else if (e->var->axis == o->in_axis)
        text_str(o->out, name);
    else
        text_f(o->out, "%s(%s)", name, e->var->name);
}

/* Slots that a later one tells are left out together, or marked when only some are. */
static void print_load(Printer *o, Expr *e)
{
    const Buf *b = e->buf;
    Expr *given[IR_MAX_RANK];
    int n = 0, none = 0, ancestors = 0;

    for (int s = 0; s < b->nslot; s++) {
        bool above = false;

        for (int t = s + 1; t < b->nslot; t++)
            above = above || ir_is_ancestor(b->slot[s], b->slot[t]);
        ancestors += above;
        none += e->arg[s]->op == OP_none;
        if (e->arg[s]->op != OP_none)
            given[n++] = e->arg[s];
    }
    text_f(o->out, "%s[", b->name);
    if (none == ancestors)
        print_list(o, given, n, print_index);
    else
        print_list(o, e->arg, e->nargs, print_index);
    text_char(o->out, ']');
}

static void print_binary(Printer *o, Expr *e)
{
    int prec = precedence(e);

    print_tight(o, e->arg[0], prec == P_COMPARE ? P_SUM : prec);
    text_f(o->out, " %s ", ir_op[e->op].text);
    print_tight(o, e->arg[1], prec + 1);
}

static void print_node(Printer *o, Expr *e)
{
    switch (e->op) {
    case OP_int: text_f(o->out, "%lld", (long long)e->i); break;
    case OP_real: print_number(o->out, e->f, true); break;
    case OP_size: text_str(o->out, e->size->name); break;
    case OP_coord: print_coord(o, e); break;
    case OP_loc:
        if (e->var->axis == o->in_axis)
            text_str(o->out, e->var->name);
        else
            text_f(o->out, "loc(%s)", e->var->name);
        break;
    case OP_pos: text_f(o->out, "pos(%s)", e->var->name); break;
    case OP_count: text_f(o->out, "size(%s)", e->axis->name); break;
    case OP_load: print_load(o, e); break;
    case OP_cell:
        text_f(o->out, "%s[", e->buf->name);
        print_list(o, e->arg, e->nargs, print_expr);
        text_char(o->out, ']');
        break;
    case OP_above:
    case OP_find:
        text_f(o->out, "%s(%s, ", e->op == OP_find ? loop_find_word[e->k] : ir_op[e->op].text,
               e->axis->name);
        print_list(o, e->arg, e->nargs, print_expr);
        text_char(o->out, ')');
        break;
    case OP_neg:
        text_char(o->out, '-');
        print_tight(o, e->arg[0], P_UNARY);
        break;
    case OP_not:
        text_str(o->out, "not ");
        print_tight(o, e->arg[0], P_NOT);
        break;
    default:
        if (!(ir_op[e->op].props & CALL) && e->op < OP_local) {
            print_binary(o, e);
            break;
        }
        text_f(o->out, "%s(", ir_op[e->op].text);
        print_list(o, e->arg, e->nargs, e->op == OP_stored ? print_node : print_expr);
        text_char(o->out, ')'); /* stored wants the access itself, not the name of a let */
    }
}

static void print_tight(Printer *o, Expr *e, int least)
{
    bool named = o->let != NULL && o->let[e->id] != NULL;
    bool open = !named && precedence(e) < least;

    if (open)
        text_char(o->out, '(');
    if (named)
        text_str(o->out, o->let[e->id]);
    else
        print_node(o, e);
    if (open)
        text_char(o->out, ')');
}

void print_expr(Printer *o, Expr *e)
{
    print_tight(o, e, 0);
}

void print_index(Printer *o, Expr *e)
{
    switch (e->op) {
    case OP_var: text_str(o->out, e->var->name); break;
    case OP_none: text_char(o->out, '_'); break;
    case OP_at:
        text_char(o->out, '@');
        print_tight(o, e->arg[0], P_PRIMARY);
        break;
    case OP_tuple:
        text_char(o->out, '(');
        print_list(o, e->arg, e->nargs, print_expr);
        text_char(o->out, ')');
        break;
    default: print_expr(o, e);
    }
}

void ir_print_expr(Text *out, Prog *p, Expr *e)
{
    print_index(&(Printer){ .out = out, .p = p }, e);
}
