/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Converts the entries of a structure, part by part, to the axes of a format.  Level by level from
 * the root, each entry gets a position: the place under its parent that the map says, or the number
 * of the stored value among all values under that parent.  The result depends on the entries alone,
 * and not on the threads that compute it. */
#include "format/format_int.h"

#include <stdatomic.h>

_Noreturn void fmt_refuse(const FmtBuild *b, Status code, const char *what)
{
    err_throw(b->arena->err, code, "format %s%s%s: %s", b->use->rule->name,
              b->shape->name[0] != '\0' ? ", part " : "", b->shape->name, what);
}

void fmt_print_entry(Text *t, const FmtBuild *b, int64_t at)
{
    int64_t e = fmt_entry(&b->eval, at);

    text_f(t, "entry %lld at", (long long)e);
    for (int k = 0; k < b->use->rule->ncoord; k++)
        text_f(t, "%s %s = %lld", k > 0 ? "," : "", b->use->rule->coord[k],
               (long long)fmt_int(&b->eval.from->coord[k], e));
}

static void build_part(FmtBuild *b)
{
    FmtPart *part = b->part;

    b->blocks = fmt_blocks(b->eval.n);
    b->pos = (FmtCol){ 0 };
    *part = (FmtPart){ .name = b->shape->name, .nlevel = b->shape->nlevel };
    part->level = arena_array(b->arena, part->nlevel, sizeof *part->level);
    for (int l = 0; l < part->nlevel; l++)
        fmt_level(b, l);
    fmt_forget(&b->eval);
    part->stored = part->level[part->nlevel - 1].total;
}

typedef struct Once { /* what the parts hold */
    const Array *entry; /* of one part */
    _Atomic uint8_t *seen;
    int64_t n, blocks, count[FMT_MOST_BLOCKS];
} Once;

static inline int64_t see(const Array *entry, _Atomic uint8_t *seen, int64_t p, int64_t end,
                          bool wide)
{
    int64_t n = 0;

    for (; p < end; p++) {
        int64_t e = fmt_get(entry->data, wide, p);

        if (e >= 0) {
            atomic_store_explicit(&seen[e], 1, memory_order_relaxed);
            n++;
        }
    }
    return n;
}

static void see_block(void *arg, int64_t b)
{
    Once *o = arg;
    int64_t p = fmt_cut(o->n, o->blocks, b), end = fmt_cut(o->n, o->blocks, b + 1);

    o->count[b] = o->entry->type == T_i64 ? see(o->entry, o->seen, p, end, true)
                                          : see(o->entry, o->seen, p, end, false);
}

static void count_block(void *arg, int64_t b)
{
    Once *o = arg;
    int64_t end = fmt_cut(o->n, o->blocks, b + 1), n = 0;

    for (int64_t e = fmt_cut(o->n, o->blocks, b); e < end; e++)
        n += atomic_load_explicit(&o->seen[e], memory_order_relaxed);
    o->count[b] = n;
}

static int64_t count_all(const FmtBuild *b, Once *o, FmtTask *task)
{
    int64_t n = 0;

    o->seen = b->seen;
    o->blocks = fmt_blocks(o->n);
    fmt_each(b->run, o->blocks, task, o);
    for (int64_t k = 0; k < o->blocks; k++)
        n += o->count[k];
    return n;
}

int64_t fmt_see(FmtBuild *b)
{
    Once o = { .entry = &b->part->entry, .n = b->part->entry.n };

    b->part->held = count_all(b, &o, see_block);
    return b->part->held;
}

/* That the parts hold each entry once, whatever rules and levels have made of them: as many
 * positions have an entry as there are entries, and as many different ones. */
static void check_once(const FmtBuild *b, const FmtParts *parts, int64_t there)
{
    Once o = { .n = b->eval.from->n };
    int64_t held = 0;

    for (int i = 0; i < parts->n; i++)
        held += parts->part[i].held;
    if (held != there || count_all(b, &o, count_block) != there)
        fmt_refuse(b, ST_BIND, "the parts do not hold each entry once");
}

FmtParts *fmt_convert(Arena *arena, Arena *scratch, const FmtPool *pool, const FmtUse *u,
                      const FmtEntries *from)
{
    FmtSpare spare = { .cap = from->n };
    FmtRun run = { scratch, pool, &spare, u->rule->name };
    FmtParts *out = arena_alloc(arena, sizeof *out);
    FmtBuild b = { .arena = arena, .run = &run, .use = u, .shape = &u->shape[0] };
    int64_t *count = arena_array(scratch, u->nshape, sizeof *count), there, first = 0;
    FmtCol list;

    if (from->ncoord != u->rule->ncoord)
        err_throw(arena->err, ST_BIND, "format %s is for entries with %d coordinates, but these "
                  "have %d", u->rule->name, u->rule->ncoord, from->ncoord);
    b.eval = (FmtEval){ .run = &run, .use = u, .from = from };
    b.seen = arena_array(scratch, from->n, sizeof *b.seen);
    fmt_list_existing(&b);
    there = b.eval.n;
    list = fmt_split(&b, count);
    out->n = u->nshape;
    out->part = arena_array(arena, u->nshape, sizeof *out->part);
    for (int i = 0; i < u->nshape; i++) {
        b.shape = &u->shape[i];
        b.part = &out->part[i];
        b.eval.n = count[i];
        b.eval.list = list;
        if (list.data != NULL)
            b.eval.list.data = (char *)list.data + first * (list.wide ? 8 : 4);
        build_part(&b);
        first += count[i];
    }
    check_once(&b, out, there);
    return out;
}
