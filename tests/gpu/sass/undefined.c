/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Values that nobody wrote.  nvcc loads ahead of a test, also what is not there when the test
 * fails, so a load of such a value is no error; its use is.  A register keeps a note of it until it
 * is written again. A choice or a move hands the note on; any other operation that takes the value
 * is told. */
#include "gpu/sass/ops.h"

#include <string.h>

/* ---- Which operands an instruction writes and reads */
static bool sets_no_register(const Ins *i)
{
    static const char *const names[] = { "ISETP", "FSETP", "DSETP", "FCHK", "PLOP3", "R2P", "RED" };

    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(i->op->name, names[k]) == 0)
            return true;
    return i->op->run == op_store || (i->op->flow != FLOW_NONE && i->op->flow != FLOW_MEMORY);
}

static bool of_doubles(const Ins *i)
{
    return i->op->name[0] == 'D';
}

static bool is_access(const Ins *i)
{
    return i->op->run == op_load || i->op->run == op_store || i->op->run == op_atom;
}

/* Registers that a result has: 1, or more of wide types. */
static int result_words(const Ins *i)
{
    if (is_access(i) || i->op->run == op_ldc)
        return (i->bytes + 3) / 4;
    return 1 + (of_doubles(i) || has(i, M_WIDE) || has(i, M_F64) || has(i, M_S64) ||
                has(i, M_U64) || (i->op->run == op_cs2r && !has(i, M_32)));
}

static int source_words(const Ins *i, int k)
{
    const Arg *a = &i->arg[k];

    if (a->kind == ARG_MEM)
        return a->wide ? 2 : 1;
    if (is_access(i))
        return (i->bytes + 3) / 4;
    return 1 + (of_doubles(i) ||
                ((has(i, M_WIDE) || has(i, M_HI)) && i->op->run == op_imad && k == i->args - 1));
}

void decode_dest(Ins *i)
{
    int k = 0;

    i->dest = -1;
    if (sets_no_register(i))
        return;
    while (k < i->args && k < 2 && is_pred(&i->arg[k]))
        k++;
    if (k < i->args && i->arg[k].kind == ARG_REG) {
        i->dest = (int8_t)k;
        i->dest_words = (uint8_t)result_words(i);
    }
}

/* ---- Notes */
void note_undefined(Warp *w, const Ins *i, const Cells *cells, size_t at, int word, uint32_t lanes)
{
    if (i->dest < 0 || i->arg[i->dest].reg == RZ)
        return;
    Undefined *u = &w->undef[i->arg[i->dest].reg + word];

    if (u->lanes == 0)
        *u = (Undefined){ 0, i, at, cells->place, cells->buffer, (uint32_t)__builtin_ctz(lanes) };
    u->lanes |= lanes;
    w->undefined = true;
}

static void tell_use(Warp *w, const Ins *i, const Undefined *u, uint32_t lanes)
{
    const Run *r = w->run;
    const uint32_t lane = lanes >> u->lane & 1 ? u->lane : (uint32_t)__builtin_ctz(lanes);
    char place[80], name[48];

    if (u->buffer != NULL)
        snprintf(place, sizeof place, "%s+%zu", u->buffer->name, u->at);
    else
        snprintf(place, sizeof place, "%s memory at %zu",
                 u->place == IN_SHARED ? "shared" : "local", u->at);
    report(
        w->run, UINT64_C(1) << 63 | (uint64_t)(u->load - r->ins),
        "nobody wrote %s before thread %s reads it at /*%04llx*/ %s, and uses it at /*%04llx*/ %s",
        place, thread_name(r, w->number * LANES + lane, name), (unsigned long long)u->load->address,
        u->load->text, (unsigned long long)i->address, i->text);
}

/* The lanes of an operand that nobody wrote. */
static uint32_t undefined_lanes(const Warp *w, const Arg *a, int words, const Undefined **which)
{
    uint32_t lanes = 0;

    if ((a->kind != ARG_REG && a->kind != ARG_MEM) || a->reg == RZ)
        return 0;
    for (int k = 0; k < words; k++)
        if (w->undef[a->reg + k].lanes != 0) {
            *which = &w->undef[a->reg + k];
            lanes |= w->undef[a->reg + k].lanes;
        }
    return lanes;
}

/* Before an instruction runs in a warp that has notes. */
void watch_undefined(Warp *w, const Ins *i, uint32_t mask)
{
    const bool choice = i->op->run == op_sel || i->op->run == op_fsel;
    const bool moves = i->op->run == op_mov || (i->op->run == op_imad && has(i, M_MOV));
    Undefined kept = { 0 };

    for (int k = 0; k < i->args; k++) {
        const Undefined *u = NULL;
        uint32_t lanes;

        if (k == i->dest)
            continue;
        lanes = undefined_lanes(w, &i->arg[k], source_words(i, k), &u) & mask;
        if (choice && k < 3) /* the operand that is chosen */
            lanes &= k == 1 ? pred(w, &i->arg[3]) : ~pred(w, &i->arg[3]);
        if (lanes == 0)
            continue;
        if (choice || moves) {
            const uint32_t both = kept.lanes | lanes;

            kept = *u;
            kept.lanes = both;
        } else {
            tell_use(w, i, u, lanes);
        }
    }
    if (i->dest < 0 || i->arg[i->dest].reg == RZ)
        return;
    for (int k = 0; k < i->dest_words; k++)
        w->undef[i->arg[i->dest].reg + k].lanes &= ~mask;
    if (kept.lanes != 0) {
        Undefined *to = &w->undef[i->arg[i->dest].reg];
        const uint32_t all = to->lanes | kept.lanes;

        *to = kept;
        to->lanes = all;
    }
}
