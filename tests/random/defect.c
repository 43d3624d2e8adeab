/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Planted defects: each damages a result, a program or a text, and says whether it found something
 * to damage. */
#include "random/random.h"

#include <math.h>
#include <string.h>

const DefectInfo defect_info[DEFECT_COUNT] = {
    { "none", false },
#define DEFECT(name, always, text) { text, always },
#include "random/defect.def"
#undef DEFECT
};

/* The first output element that `fits`, counted over all outputs; NULL when there is none. */
typedef bool Fits(const Array *, int64_t i);

static Array *find_element(const Prog *p, Env *env, Fits *fits, int64_t *at)
{
    for (int i = 0; i < p->nbuf; i++) {
        Array *a = &env->buf[i];

        if (!p->buf[i]->written || p->buf[i]->kind == B_TEMP)
            continue;
        for (*at = 0; *at < a->n; ++*at)
            if (fits(a, *at))
                return a;
    }
    return NULL;
}

static bool is_any(const Array *a, int64_t i)
{
    return !ir_type[a->type].floats || !isnan(array_float(a, i));
}

static bool is_float(const Array *a, int64_t i)
{
    return ir_type[a->type].floats && isfinite(array_float(a, i));
}

static bool is_nonzero(const Array *a, int64_t i)
{
    return ir_type[a->type].floats ? !(array_float(a, i) == 0) : array_int(a, i) != 0;
}

static bool is_signed(const Array *a, int64_t i)
{
    return is_nonzero(a, i) && is_any(a, i) && (ir_type[a->type].floats || array_int(a, i) > 0);
}

static bool lose_entry(const Prog *p, Env *env)
{
    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->extent == X_BUILT && env->coord[i][0].n > 0) {
            for (int k = 0; k < p->axis[i]->ncoord; k++)
                env->coord[i][k].n--;
            return true;
        }
    return false;
}

static bool zero_all(const Prog *p, Env *env)
{
    int64_t at;

    if (find_element(p, env, is_nonzero, &at) == NULL)
        return false;
    for (int i = 0; i < p->nbuf; i++)
        if (p->buf[i]->written && p->buf[i]->kind != B_TEMP && env->buf[i].n > 0)
            memset(env->buf[i].data, 0, (size_t)env->buf[i].n * ir_type[env->buf[i].type].bytes);
    return true;
}

bool defect_output(Defect d, const Prog *p, Env *env)
{
    int64_t at;
    Fits *fits = d == DEFECT_nan || d == DEFECT_inf ? is_float
                 : d == DEFECT_sign                 ? is_signed
                                                    : is_any;
    Array *a;

    if (d == DEFECT_entry)
        return lose_entry(p, env);
    if (d == DEFECT_zeros)
        return zero_all(p, env);
    if (d < DEFECT_one_bit || d > DEFECT_missing || (a = find_element(p, env, fits, &at)) == NULL)
        return false;
    switch (d) {
    case DEFECT_one_bit: ((uint8_t *)a->data)[at * ir_type[a->type].bytes] ^= 1; break;
    case DEFECT_sign:
        array_set(a, at, ir_type[a->type].floats ? 0 : -array_int(a, at),
                  ir_type[a->type].floats ? -array_float(a, at) : 0);
        break;
    case DEFECT_nan: array_set(a, at, 0, NAN); break;
    case DEFECT_inf: array_set(a, at, 0, INFINITY); break;
    case DEFECT_shorter: a->n--; break;
    case DEFECT_type: a->type = a->type == T_f32 ? T_i32 : T_f32; break;
    default: a->data = NULL; break;
    }
    return true;
}

static Expr *minus_for_plus(Prog *p, Expr *e, void *found)
{
    if (e->op != OP_add)
        return e;
    *(bool *)found = true;
    return ir_op2(p, OP_sub, e->arg[0], e->arg[1]);
}

static bool damage_operator(Prog *p)
{
    Memo memo = { 0 };
    bool found = false;

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++) {
            Assign *a = &p->stmt[i]->assign[k];

            if (a->op != A_INSERT)
                a->value = ir_rewrite(p, a->value, minus_for_plus, &found, &memo);
        }
    return found;
}

static bool damage_assign(Prog *p, Defect d, Assign *a)
{
    bool found = false;

    switch (d) {
    case DEFECT_value:
        found = a->op != A_INSERT;
        if (found)
            a->value = ir_op2(p, OP_add, a->value, ir_int(p, 1));
        break;
    case DEFECT_guard:
        found = a->guard != NULL;
        a->guard = NULL;
        break;
    case DEFECT_reduction:
        found = a->op == A_MAX;
        a->op = found ? A_MIN : a->op;
        break;
    default:
        for (int k = 0; d == DEFECT_companion && k < a->nat; k++) {
            a->at[k].value = ir_op2(p, OP_add, a->at[k].value, ir_int(p, 1));
            found = true;
        }
    }
    return found;
}

static bool hangs_on(Prog *p, const Var *v, const Var *up)
{
    Var *need[IR_MAX_BINDS];
    int n = v->parent == NULL ? 0 : ir_vars(p, v->parent, need, 0);

    while (n > 0)
        if (need[--n] == up)
            return true;
    return false;
}

/* The binders in another order, as far as they may be. */
static bool damage_order(Prog *p, Stmt *s)
{
    bool found = false;

    for (int k = 0; k + 1 < s->nbind; k++)
        if (!hangs_on(p, s->bind[k + 1], s->bind[k])) {
            Var *v = s->bind[k];

            s->bind[k] = s->bind[k + 1];
            s->bind[k + 1] = v;
            found = true;
        }
    return found;
}

static bool damage_stmt(Prog *p, Defect d, Stmt *s)
{
    bool found = d == DEFECT_order && damage_order(p, s);

    for (int k = 0; k < s->nassign; k++)
        found = damage_assign(p, d, &s->assign[k]) || found;
    return found;
}

static bool damage_fill(Prog *p)
{
    for (int i = 0; i < p->nbuf; i++) {
        p->buf[i]->has_fill = !p->buf[i]->written || p->buf[i]->has_fill;
        p->buf[i]->fill += 1;
    }
    return p->nbuf > 0;
}

bool defect_program(Defect d, Prog *p)
{
    bool found = false;
    Stmt *last = p->nstmt > 0 ? p->stmt[p->nstmt - 1] : NULL;

    if (d == DEFECT_operator)
        return damage_operator(p);
    if (d == DEFECT_fill)
        return damage_fill(p);
    for (int i = 0; i < p->nstmt; i++)
        found = damage_stmt(p, d, p->stmt[i]) || found;
    if (d != DEFECT_last || last == NULL || last->nbind == 0)
        return found;
    for (int k = 0; k < last->nassign; k++)
        last->assign[k].guard = ir_op2(p, OP_lt, ir_int(p, 1), ir_int(p, 0));
    return true;
}

bool defect_text(char *text)
{
    char *s = strpbrk(text, "+123456789");

    while (s != NULL && (*s == '+' || s[-1] != ' ')) /* a number by itself, in any place */
        s = strpbrk(s + 1, "+123456789");
    if (s == NULL)
        return false;
    *s = *s == '9' ? '8' : (char)(*s + 1);
    return true;
}

bool defect_copy(Prog *copy)
{
    if (copy->nstmt == 0)
        return false;
    copy->stmt[0]->assign[0].label = "planted";
    return true;
}
