/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Where the arrays of an iteration lie: local arrays of the phase's function on a CPU; on a device
 * shared memory of the team, as far as it fits, and then scratch memory of the launch. */
#include "emit/emit_int.h"

/* Of an array in scratch memory: every type of elements fits.  Bytes of shared memory of a warp: a
 * block of 4 has what every device gives, and 4 such blocks are on a multiprocessor. */
enum { LIMIT_ALIGN = 64, LIMIT_SHARED = 10 << 10 };

/* Bytes of an array of an iteration, and of the gap after it. */
static int64_t room_of(const Buf *b)
{
    int64_t bytes = ir_const_total(b->full[b->nfull - 1]) * ir_type[b->type].bytes;

    return (bytes + LIMIT_ALIGN - 1) / LIMIT_ALIGN * LIMIT_ALIGN;
}

/* The arrays of the teams of a warp are in shared memory while they fit. */
static bool is_shared(const Emit *o, const Buf *b, const EmitPhase *f)
{
    return o->dialect->shared != NULL && f->lanes &&
           (f->shared + room_of(b)) * emit_teams(f) <= LIMIT_SHARED;
}

/* Declares the shared memory of all warps of a block. */
static void put_shared(Emit *o, EmitPhase *f)
{
    const Places *own = &o->phase_stored.work;

    f->shared = 0;
    for (int i = 0; i < own->n; i++)
        if (is_shared(o, o->work[own->at[i]], f))
            f->shared += room_of(o->work[own->at[i]]);
    if (f->shared > 0)
        text_f(o->out,
               f->width > 0 ? "\n    WEFT_SHARED_ROOM(%lld, %d)"
                            : "\n    WEFT_SHARED_ROOM(%lld, WEFT_LANES)",
               (long long)f->shared, f->width * f->parts_of);
    f->shared = 0;
}

/* An array of an iteration: the function's own, or a piece of the scratch memory of its unit. */
static void put_room(Emit *o, int place, const Buf *b, int number, EmitPhase *f)
{
    text_f(o->out, "\n    weft_own[%d] = ", place);
    if (o->dialect->work == NULL) {
        text_f(o->out, "weft_room_%d;", number);
        return;
    }
    if (is_shared(o, b, f)) {
        text_f(o->out, "%s%lld%s;", o->dialect->shared, (long long)f->shared,
               o->dialect->shared_end);
        f->shared += room_of(b);
        return;
    }
    text_f(o->out, "%s%lld%s;", o->dialect->work, (long long)f->work, o->dialect->work_end);
    f->work += room_of(b);
}

/* Arrays that iterations have stand at the end of the function's list of arrays. */
void emit_work(Emit *o, EmitPhase *f)
{
    const Places *own = &o->phase_stored.work;
    int n = o->k->narray;

    if (own->n == 0)
        return;
    put_shared(o, f);
    text_f(o->out, "\n    %sweft_own[%d];", o->dialect->pointer, n + o->nwork);
    for (int i = 0; i < own->n && o->dialect->work == NULL; i++) {
        const Buf *b = o->work[own->at[i]];

        text_f(o->out, "\n    %s%s weft_room_%d[%lld];", o->dialect->own, emit_ctype(o, b->type),
               own->at[i], (long long)ir_const_total(b->full[b->nfull - 1]));
    }
    if (n > 0)
        text_f(o->out, "\n    for (int i = 0; i < %d; i++)\n        weft_own[i] = weft_array[i];",
               n);
    for (int i = 0; i < own->n; i++)
        put_room(o, n + own->at[i], o->work[own->at[i]], own->at[i], f);
    text_str(o->out, "\n    weft_array = weft_own;");
}
