/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/phase/phase.c: names and scratch beside an array, whose index a local owns, and which loops
 * visit each entry once. */
#include "unit/ir_bed.h"

#include "lower/phase/phase_int.h"

static const char text[] =
    "program p(m, n) stage loops\naxis I = m, E(I) = seg : j < n, k < n once\n"
    "f32 X[E], Y[m]\ntemp f32 Y.work1[m]\n"
    "phase y for i in I balance E.start\n"
    "    Y[i] = 0.0\n    for e in E[i]\n        Y[i] += X[e]\n"
    "    for e1 in E.start[i]..E.start[i + 1] - 1\n        Y[i] += X[e1]\n";

static void ask(Bed *b, Prog **out)
{
    *out = ir_parse(&b->arena, "t.weft", text, strlen(text));
}

static Prog *read_text(Bed *b)
{
    Prog *p = NULL;

    bed_open(b);
    CHECK_EQ(CATCH(&b->err, ask(b, &p)), ST_OK);
    return p;
}

static const Node *loop_at(const Node *phase, int i)
{
    for (int k = 0; k < phase->nbody; k++)
        if (phase->body[k]->kind == N_FOR && i-- == 0)
            return phase->body[k];
    return NULL;
}

TEST(arrays_beside_another_have_names_of_their_own)
{
    Bed b;
    Prog *p = read_text(&b);
    const Buf *y = ir_find_symbol(p, "Y", 1)->buf;
    Buf *w = lower_scratch(p, y, T_f32, 12);

    CHECK_STR(lower_beside(p, y, "copy"), "Y.copy1");
    CHECK_STR(w->name, "Y.work2"); /* as there is a Y.work1 */
    CHECK(w->kind == B_WORK && w->nslot == 1 && w->slot[0]->size->i == 12);
    CHECK_STR(lower_beside(p, w, "work"), "Y.work3");
    bed_close(&b);
}

TEST(a_once_coordinate_belongs_to_its_entry)
{
    Bed b;
    Prog *p = read_text(&b);
    const Node *phase = p->phase[0], *loop = loop_at(phase, 0);
    Axis *e = ir_find_symbol(p, "E", 1)->axis;
    Expr *at = loop_use(p, loop->local);

    CHECK(lower_index_owner(at) == loop->local);
    CHECK(lower_index_owner(tree_cell(p, loop_coord(p, e, 1), at)) == loop->local);
    CHECK(lower_index_owner(tree_cell(p, loop_coord(p, e, 0), at)) == NULL); /* others may have it */
    CHECK(lower_index_owner(tree_add(p, at, ir_int(p, 1))) == NULL);
    bed_close(&b);
}

TEST(a_loop_over_all_entries_of_each_row_visits_each_once)
{
    Bed b;
    Prog *p = read_text(&b);
    const Node *phase = p->phase[0];
    Axis *e = ir_find_symbol(p, "E", 1)->axis;

    CHECK(lower_entries(p, phase, loop_at(phase, 0)) == loop_positions(p, e));
    CHECK(lower_entries(p, phase, loop_at(phase, 1)) == NULL); /* without the last one */
    CHECK(lower_entries(p, phase, phase) == NULL);
    CHECK(tree_simple(p, lower_batch_count(p, ir_int(p, 17), 8)) == ir_int(p, 3));
    bed_close(&b);
}

TEST(nodes_that_nobody_reads_make_no_phase)
{
    Bed b;
    Prog *p = read_text(&b);
    NodeList l = { 0 };
    Node *let = loop_node(p, &(Node){ .kind = N_LET,
                                      .local = loop_local(p, "a", T_i64, 1),
                                      .value = ir_int(p, 1) });
    Node *both;

    CHECK(lower_phase(p, &l) == NULL);
    tree_append(p, &l, let);
    CHECK(lower_phase(p, &l) == NULL);
    l.n = 0;
    tree_append(p, &l, p->phase[0]);
    tree_append(p, &l, let);
    CHECK(lower_phase(p, &l) == p->phase[0]);
    tree_append(p, &l, p->phase[0]);
    both = lower_phase(p, &l);
    CHECK(both != NULL && both->kind == N_FOR && both->hi == ir_int(p, 1) && both->nbody == 3);
    CHECK(!lower_has_registers(p->phase[0]));
    bed_close(&b);
}
