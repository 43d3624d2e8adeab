/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a program and its data use, found in the parsed program: so that a generator that stops
 * making something is noticed. */
#include "random/random.h"

#include <string.h>

const char *const feature_text[F_COUNT] = {
#define FEATURE(name, text) text,
#include "random/feature.def"
#undef FEATURE
};

static void note(bool *has, Feature f, bool yes)
{
    has[f] = has[f] || yes;
}

static void note_coord(bool *has, const Axis *x, const Coord *c)
{
    note(has, F_load_unnamed, c->kind == C_LOAD && c->name == NULL);
    note(has, F_load_named, c->kind == C_LOAD && c->name != NULL);
    note(has, F_load_unbounded, c->kind == C_LOAD && c->bound == NULL);
    note(has, F_table_coord, c->kind == C_TABLE && c->name != NULL);
    note(has, F_table_unnamed, c->kind == C_TABLE && c->name == NULL);
    note(has, F_expr_coord, c->kind == C_EXPR);
    note(has, F_div_mod_coord,
         c->kind == C_EXPR && (c->expr->op == OP_div || c->expr->op == OP_mod));
    note(has, F_ident_named, c->kind == C_IDENT && c->name != NULL);
    note(has, F_coord_over_seg, c->kind == C_EXPR && x->extent == X_SEG);
}

static void note_axis(bool *has, const Axis *x)
{
    int depth = 0;

    for (const Axis *up = x->parent; up != NULL; up = up->parent) {
        note(has, F_under_built, up->extent == X_BUILT && x->extent != X_BUILT);
        depth++;
    }
    note(has, F_deep_chain, depth >= 3);
    note(has, F_dense_const, x->extent == X_EXPR && x->size->op == OP_int);
    note(has, F_dense_param, x->extent == X_EXPR && x->size->op == OP_size);
    note(has, F_dense_expr, x->extent == X_EXPR && x->size->nargs > 0);
    note(has, F_dense_child, x->extent == X_EXPR && x->parent != NULL);
    note(has, F_seg, x->extent == X_SEG);
    note(has, F_ragged, x->extent == X_SEG && ir_is_ident(x));
    note(has, F_table_extent, x->extent == X_TABLE);
    note(has, F_one, x->extent == X_ONE);
    note(has, F_built_root, x->extent == X_BUILT && x->parent == NULL);
    note(has, F_built_child, x->extent == X_BUILT && x->parent != NULL);
    note(has, F_built_tuple, x->extent == X_BUILT && x->ncoord > 1);
    note(has, F_several_coords, x->ncoord > 1);
    note(has, F_sorted, x->flags & AX_SORTED);
    note(has, F_unique, x->flags & AX_UNIQUE);
    note(has, F_unique_unsorted, (x->flags & AX_UNIQUE) && !(x->flags & AX_SORTED));
    note(has, F_padded, x->flags & AX_PADDED);
    for (int k = 0; k < x->ncoord; k++)
        note_coord(has, x, &x->coord[k]);
}

static void note_buf(bool *has, const Buf *b)
{
    static const Feature type[T_COUNT] = { [T_f16] = F_f16, [T_bf16] = F_bf16, [T_f32] = F_f32,
                                           [T_f64] = F_f64, [T_i32] = F_i32,   [T_i64] = F_i64 };
    static const Feature out[T_COUNT] = {
        [T_f16] = F_out_f16, [T_bf16] = F_out_bf16, [T_f32] = F_out_f32,
        [T_f64] = F_out_f64, [T_i32] = F_out_i32,   [T_i64] = F_out_i64
    };

    note(has, type[b->type], true);
    note(has, out[b->type], b->written);
    note(has, F_temp, b->kind == B_TEMP);
    note(has, F_inout, b->kind == B_INOUT);
    note(has, F_const, b->kind == B_CONST && !b->rows);
    note(has, F_rows_value, b->rows);
    note(has, F_fill, b->has_fill && !b->written);
    note(has, F_fill_output, b->has_fill && b->written);
    note(has, F_scalar, b->nslot == 0);
    note(has, F_implied_ancestor, b->nfull > b->nslot);
    for (int s = 0; s < b->nslot; s++) {
        note(has, F_anonymous_slot, b->slot[s]->name == NULL);
        for (int t = 0; t < s; t++) {
            note(has, F_repeated_axis, b->slot[s] == b->slot[t]);
            note(has, F_siblings,
                 b->slot[s]->parent != NULL && b->slot[s]->parent == b->slot[t]->parent);
        }
    }
}

static void note_index(bool *has, const Axis *x, Expr *e)
{
    bool value = e->type == T_i64;

    note(has, F_index_entry, e->op == OP_var);
    note(has, F_index_position, e->op == OP_at);
    note(has, F_index_left_out, e->op == OP_none);
    note(has, F_index_tuple, e->op == OP_tuple);
    note(has, F_index_dense, value && ir_is_ident(x));
    note(has, F_index_search, value && !ir_is_ident(x));
    note(has, F_index_coord, e->op == OP_coord);
    note(has, F_index_load, e->op == OP_load);
}

typedef struct Walk {
    bool *has;
    int64_t *ops;
} Walk;

static void note_expr(Expr *e, void *ctx)
{
    Walk *w = ctx;

    w->ops[e->op]++;
    for (int s = 0; e->op == OP_load && s < e->nargs; s++)
        note_index(w->has, e->buf->slot[s], e->arg[s]);
}

static void note_bind(bool *has, const Var *v)
{
    bool own = v == v->axis->var;

    note(has, F_second_var, !own && v->axis->name != NULL);
    note(has, F_dense_binder, v->axis->name == NULL);
    note(has, F_foreign_position, v->parent != NULL && v->parent->op == OP_at);
    note(has, F_foreign_value,
         v->parent != NULL && v->parent->op != OP_at && v->parent->op != OP_var);
}

static void note_assign(bool *has, const Assign *a)
{
    static const Feature op[] = { F_set, F_add, F_max, F_min, F_insert };

    note(has, op[a->op], true);
    note(has, F_insert_tuple, a->op == A_INSERT && a->value->op == OP_tuple);
    note(has, F_insert_foreign,
         a->op == A_INSERT && a->out->arg[0]->op != OP_var && a->out->arg[0]->op != OP_none);
    note(has, F_guard, a->guard != NULL);
    note(has, F_companion, a->nat > 0);
    note(has, F_companions, a->nat > 1);
    note(has, F_set_inout, a->op == A_SET && a->out->buf->kind == B_INOUT);
}

static void note_stmts(bool *has, int64_t *ops, Prog *p)
{
    Walk w = { has, ops };
    Memo met = { 0 };

    note(has, F_several_stmts, p->nstmt > 1);
    for (int i = 0; i < p->nstmt; i++) {
        const Stmt *s = p->stmt[i];

        note(has, F_no_binder, s->nbind == 0);
        for (int k = 0; k < s->nbind; k++)
            note_bind(has, s->bind[k]);
        for (int k = 0; k < s->nassign; k++) {
            note_assign(has, &s->assign[k]);
            ir_visit_assign(p, &s->assign[k], note_expr, &w, &met);
            for (int v = 0; v < s->nbind; v++)
                note(has, F_scatter, ir_reach(&s->assign[k], s->bind[v]) == REACH_SCATTER);
        }
    }
}

static void note_level(bool *has, const Axis *x, const Level *v)
{
    for (int64_t p = 0; p < v->n; p++) {
        note(has, F_padding, !v->exists[p]);
        for (int64_t q = p + 1; q < v->n && v->parent[q] == v->parent[p]; q++) {
            bool same = true, falls = false;

            for (int k = 0; k < x->ncoord; k++) {
                falls = falls || (same && v->coord[k][q] < v->coord[k][p]);
                same = same && v->coord[k][q] == v->coord[k][p];
            }
            note(has, F_duplicates, same && x->coord[0].kind == C_LOAD);
            note(has, F_unsorted, falls && x->coord[0].kind == C_LOAD);
        }
    }
}

/* Needs a case that has been parsed and whose data fit. */
void feature_find(Arena *a, Case *c, int64_t *ops)
{
    const Prog *p = c->prog;
    Space space;

    for (int i = 0; i < p->naxis; i++)
        note_axis(c->has, p->axis[i]);
    for (int i = 0; i < p->nbuf; i++)
        note_buf(c->has, p->buf[i]);
    note_stmts(c->has, ops, c->prog);
    space_init(&space, a, p, c->env);
    for (int i = 0; i < p->nsize; i++)
        note(c->has, F_size_zero, c->env->size[i] == 0);
    for (int i = 0; i < p->naxis; i++) {
        const Array *start = &c->env->start[i];

        if (space.level[i].known)
            note_level(c->has, p->axis[i], &space.level[i]);
        note(c->has, F_empty_axis, space.level[i].known && space.level[i].n == 0);
        for (int64_t q = 1; start->data != NULL && q < start->n; q++)
            note(c->has, F_empty_row, array_int(start, q) == array_int(start, q - 1));
        note(c->has, F_start_i32, start->data != NULL && start->type == T_i32);
        note(c->has, F_start_i64, start->data != NULL && start->type == T_i64);
    }
}
