/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Defects in trees, for the test of the test. */
#include "ir/loop.h"
#include "stage/stage_test.h"

#include <string.h>

const char *const plant_text[PLANT_COUNT] = {
    "nothing",
    "a digit of the printed text is another",
    "a loop ends one iteration earlier",
    "a sum only keeps its last term",
    "an element is taken from one further",
    "iterations that share elements run in parallel",
    "a local is used outside its block",
    "an index is left out",
};

static bool is_element(Expr *e)
{
    return e->op == OP_cell && e->buf->kind == B_ARG && e->buf->of == NULL && e->nargs > 0;
}

/* Finds the first element in e and changes it. */
static Expr *change(Prog *p, Plant plant, Expr *e, bool *done)
{
    Expr *arg[IR_MAX_FULL + 2];

    if (*done || e->nargs == 0)
        return e;
    for (int i = 0; i < e->nargs; i++)
        arg[i] = e->arg[i];
    if (is_element(e)) {
        *done = true;
        if (plant == PLANT_INDEX)
            arg[0] = ir_op2(p, OP_add, arg[0], ir_int(p, 1));
        if (plant == PLANT_SCOPE)
            arg[0] = ir_op2(p, OP_add, arg[0], loop_use(p, loop_local(p, "stray", T_i64, 1)));
        return loop_cell(p, e->buf, arg, e->nargs - (plant == PLANT_RANK), 1);
    }
    for (int i = 0; i < e->nargs; i++)
        arg[i] = change(p, plant, e->arg[i], done);
    return ir_with_args(p, e, arg);
}

static bool changes(Prog *p, Plant plant, Node *n)
{
    int64_t trips =
        n->kind == N_FOR && n->lo->op == OP_int && n->hi->op == OP_int ? n->hi->i - n->lo->i : 2;
    bool done = false;

    if (plant == PLANT_BOUND && n->kind == N_FOR && trips > 0 && n->nbody > 0) {
        n->hi = ir_op2(p, OP_sub, n->hi, ir_int(p, 1));
        return true;
    }
    if (n->kind != N_STORE)
        return false;
    if (plant == PLANT_ORDER && n->op == A_ADD) {
        n->op = A_SET;
        return true;
    }
    if (plant == PLANT_INDEX || plant == PLANT_SCOPE || plant == PLANT_RANK)
        n->value = change(p, plant, n->value, &done);
    return done;
}

static Node *damage(Prog *p, Plant plant, const Node *from, bool *done)
{
    Node *n = loop_node(p, from);
    Node **body = (Node **)n->body;

    *done = *done || changes(p, plant, n);
    for (int i = 0; i < n->nbody && !*done; i++)
        body[i] = damage(p, plant, body[i], done);
    return n;
}

/* From the last phase on: it computes what is compared. */
bool plant_tree(Plant plant, Prog *p)
{
    Node **phase = arena_copy(p->arena, p->phase, (size_t)p->nphase * sizeof *phase);
    bool done = false;

    if (plant == PLANT_NONE || plant == PLANT_TEXT)
        return false;
    for (int i = p->nphase - 1; i >= 0 && !done; i--) {
        if (plant == PLANT_RACE && phase[i]->kind == N_FOR && phase[i]->how == FOR_SERIAL) {
            phase[i] = loop_node(p, phase[i]);
            phase[i]->how = FOR_PARALLEL;
            done = true;
        }
        if (plant != PLANT_RACE)
            phase[i] = damage(p, plant, phase[i], &done);
    }
    p->phase = phase;
    return done;
}

/* A digit after the last phase began. */
bool plant_print(Plant plant, char *text)
{
    char *at = text, *next;

    if (plant != PLANT_TEXT)
        return false;
    while ((next = strstr(at + 1, "\nphase ")) != NULL)
        at = next;
    at += strcspn(at, "0123456789");
    if (*at == 0)
        return false;
    *at = *at == '9' ? '8' : (char)(*at + 1);
    return true;
}
