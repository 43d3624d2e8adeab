/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Masks of attention: from the keys that each query sees, by a generator or as CSR, to the blocks
 * of keys that tiles of queries see, with a pattern of bits for each block.  Equal patterns are
 * kept once, so that a band has a handful of them however many tokens there are. */
#include "geom/geom_int.h"

#include <math.h>
#include <string.h>

typedef struct Cell { /* a block that a tile sees */
    int64_t block, pattern;
} Cell;

typedef struct Mask {
    Arena *arena;
    const GeomMaskIn *in;
    Spec spec;
    int64_t lq, lk;         /* tokens of this copy */
    int64_t tiles, blocks;  /* of a copy */
    uint64_t *bits;         /* of the tile at work: bi words for each block */
    int64_t *seen, nseen;   /* blocks with a bit */
    Cell *cell;             /* of all tiles, by `start` */
    int ncell, capcell;
    int64_t *start;
    uint64_t *word;         /* bi words for each pattern */
    int npattern, capword;
    int *slot;              /* hash table of patterns: number + 1 */
    int nslot;
    int64_t nnz;
} Mask;

/* Query r of the tile at work sees keys a to b - 1. */
static void see(Mask *m, int64_t tile, int64_t r, int64_t a, int64_t b)
{
    int64_t bj = m->in->bj, i = tile * m->in->bi + r;

    a = a < 0 ? 0 : a;
    b = b > m->lk ? m->lk : b;
    if (m->in->causal && b > i + 1)
        b = i + 1;
    while (a < b) {
        int64_t block = a / bj, end = (block + 1) * bj < b ? (block + 1) * bj : b;
        uint64_t *w = m->bits + block * m->in->bi, ones = ~UINT64_C(0) >> (64 - (end - a));
        bool any = false;

        for (int64_t k = 0; k < m->in->bi && !any; k++)
            any = w[k] != 0;
        if (!any)
            m->seen[m->nseen++] = block;
        w[r] |= ones << (a - block * bj);
        a = end;
    }
}

static void see_full(Mask *m, int64_t tile, int64_t r)
{
    see(m, tile, r, 0, m->lk);
}

static void see_band(Mask *m, int64_t tile, int64_t r)
{
    int64_t i = tile * m->in->bi + r, w = geom_whole(&m->spec, "w");

    see(m, tile, r, i - w, i + w + 1);
}

static void see_longformer(Mask *m, int64_t tile, int64_t r)
{
    int64_t global = geom_whole(&m->spec, "global");

    if (tile * m->in->bi + r < global)
        see(m, tile, r, 0, m->lk);
    see(m, tile, r, 0, global);
    see_band(m, tile, r);
}

/* A block of `block` tokens sees itself and those whose number differs in one bit. */
static void see_butterfly(Mask *m, int64_t tile, int64_t r)
{
    int64_t size = geom_whole(&m->spec, "block"), b = (tile * m->in->bi + r) / size;

    see(m, tile, r, b * size, (b + 1) * size);
    for (int64_t bit = 1; bit * size < m->in->m; bit *= 2)
        see(m, tile, r, (b ^ bit) * size, ((b ^ bit) + 1) * size);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Blocks: those beside it, the first ones both ways, and some by chance, the same for all rows. */
static void see_bigbird(Mask *m, int64_t tile, int64_t r)
{
    int64_t size = geom_whole(&m->spec, "block"), b = (tile * m->in->bi + r) / size;
    int64_t count = (m->in->m + size - 1) / size, most = m->lk / size + b + 1; /* blocks: all */
    int64_t w = least(geom_whole(&m->spec, "w"), most);
    int64_t global = least(geom_whole(&m->spec, "global"), most);
    Random random = { m->spec.random.state ^ hash_int(7, (uint64_t)b) };

    if (b < global)
        see(m, tile, r, 0, m->lk);
    see(m, tile, r, 0, global * size);
    see(m, tile, r, (b - w) * size, (b + w + 1) * size);
    for (int64_t k = geom_whole(&m->spec, "random"); k > 0; k--) {
        int64_t at = geom_below(&random, count);

        see(m, tile, r, at * size, (at + 1) * size);
    }
}

/* The entries of a matrix whose entries are blocks of tokens, or tokens. */
static void see_entries(Mask *m, int64_t tile, int64_t r)
{
    int64_t size = m->in->block, row = (tile * m->in->bi + r) / size;

    for (int64_t p = m->in->start[row]; p < m->in->start[row + 1];) {
        int64_t a = m->in->col[p], b = a + 1;

        while (++p < m->in->start[row + 1] && m->in->col[p] == b)
            b++;
        see(m, tile, r, a * size, b * size);
    }
}

#define COUNT(name, most, value) { name, 0, most, value, true }
#define SEED COUNT("seed", 9e15, 0)
#define TOKENS 1e15

static const struct Kind {
    const char *name;
    Param param[SPEC_PARAMS];
    void (*see)(Mask *, int64_t tile, int64_t r);
} kinds[] = {
    { "full", { SEED }, see_full },
    { "band", { COUNT("w", TOKENS, NAN), SEED }, see_band },
    { "longformer", { COUNT("w", TOKENS, NAN), COUNT("global", TOKENS, NAN), SEED },
      see_longformer },
    { "butterfly", { { "block", 1, TOKENS, 64, true }, SEED }, see_butterfly },
    { "bigbird",
      { { "block", 1, TOKENS, 64, true }, COUNT("w", TOKENS, 1), COUNT("global", TOKENS, 1),
        COUNT("random", 4096, 3), SEED },
      see_bigbird },
    { NULL, { SEED }, see_entries },
};

static const struct Kind *kind_of(Mask *m)
{
    const char *text = m->in->spec;
    size_t n = text == NULL ? 0 : strcspn(text, ":");
    const struct Kind *k = kinds;

    while (k->name != NULL &&
           (text == NULL || strlen(k->name) != n || memcmp(k->name, text, n) != 0))
        k++;
    if (k->name == NULL && text != NULL)
        err_throw(m->arena->err, ST_ARG,
                  "%s: this mask is unknown; masks are full, band, longformer, butterfly, bigbird",
                  text);
    if (k->name != NULL)
        geom_spec(&m->spec, m->arena, text, strchr(text, ':'), k->param);
    return k;
}

static int *find_slot(const Mask *m, const uint64_t *word)
{
    size_t size = (size_t)m->in->bi * sizeof *word;
    int at = (int)(hash_bytes(1, word, size) % (uint64_t)m->nslot);

    while (m->slot[at] != 0 && memcmp(m->word + (m->slot[at] - 1) * m->in->bi, word, size) != 0)
        at = at + 1 == m->nslot ? 0 : at + 1;
    return &m->slot[at];
}

static void grow_slots(Mask *m)
{
    m->nslot = m->nslot == 0 ? 64 : 2 * m->nslot;
    m->slot = arena_array(m->arena, m->nslot, sizeof *m->slot);
    for (int k = 0; k < m->npattern; k++)
        *find_slot(m, m->word + k * m->in->bi) = k + 1;
}

/* The number of a pattern, which is new or was met before. */
static int64_t number(Mask *m, const uint64_t *word)
{
    int *slot;

    if (2 * m->npattern >= m->nslot)
        grow_slots(m);
    slot = find_slot(m, word);
    if (*slot == 0) {
        m->word = arena_grow(m->arena, m->word, m->npattern, &m->capword,
                             (size_t)m->in->bi * sizeof *word);
        memcpy(m->word + m->npattern * m->in->bi, word, (size_t)m->in->bi * sizeof *word);
        *slot = ++m->npattern;
    }
    return *slot - 1;
}

static void sort_seen(int64_t *a, int64_t n) /* nearly in order: blocks come by rows */
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0 && a[k - 1] > a[k]; k--) {
            int64_t t = a[k];

            a[k] = a[k - 1];
            a[k - 1] = t;
        }
}

static int64_t ones_of(const uint64_t *word, int64_t n)
{
    int64_t count = 0;

    for (int64_t k = 0; k < n; k++)
        for (uint64_t w = word[k]; w != 0; w &= w - 1)
            count++;
    return count;
}

static void take_tile(Mask *m, const struct Kind *kind, int64_t tile)
{
    int64_t bi = m->in->bi;

    m->nseen = 0;
    for (int64_t r = 0; r < bi && tile * bi + r < m->lq; r++)
        kind->see(m, tile, r);
    sort_seen(m->seen, m->nseen);
    for (int64_t k = 0; k < m->nseen; k++) {
        uint64_t *word = m->bits + m->seen[k] * bi;

        if (m->ncell == INT32_MAX)
            err_throw(m->arena->err, ST_LIMIT, "a mask of more than 2^31 blocks");
        m->cell = arena_grow(m->arena, m->cell, m->ncell, &m->capcell, sizeof *m->cell);
        m->cell[m->ncell++] = (Cell){ m->seen[k], number(m, word) };
        m->nnz += ones_of(word, bi);
        memset(word, 0, (size_t)bi * sizeof *word);
    }
}

/* The tiles of copy c, made or those of the copy before, which had as many tokens. */
static void take_copy(Mask *m, const struct Kind *kind, int64_t c)
{
    const GeomMaskIn *in = m->in;
    int64_t lq = in->lq == NULL ? in->n : in->lq[c], lk = in->lk == NULL ? in->m : in->lk[c];
    bool same = c > 0 && lq == m->lq && lk == m->lk;

    m->lq = lq;
    m->lk = lk;
    for (int64_t t = 0; t < m->tiles; t++) {
        int64_t at = c * m->tiles + t;

        if (!same) {
            take_tile(m, kind, t);
        } else
            for (int64_t p = m->start[at - m->tiles]; p < m->start[at - m->tiles + 1]; p++) {
                m->cell = arena_grow(m->arena, m->cell, m->ncell, &m->capcell, sizeof *m->cell);
                m->cell[m->ncell++] = m->cell[p];
                m->nnz += ones_of(m->word + m->cell[p].pattern * in->bi, in->bi);
            }
        m->start[at + 1] = m->ncell;
    }
}

/* Cells go to pieces of w places. */
static void lay_out(const Mask *m, GeomMask *out)
{
    int64_t rows = m->tiles * m->in->copies, piece = 0;

    out->start = arena_array(m->arena, rows + 1, sizeof *out->start);
    for (int64_t t = 0; t < rows; t++) {
        int64_t n = m->start[t + 1] - m->start[t];

        out->most = n > out->most ? n : out->most;
    }
    out->w = m->in->w == 0 ? (out->most > 0 ? out->most : 1) : m->in->w;
    out->split = out->most > out->w;
    for (int64_t t = 0; t < rows; t++)
        out->start[t + 1] = out->start[t] +
            (out->split ? (m->start[t + 1] - m->start[t] + out->w - 1) / out->w : 1);
    out->pieces = out->start[rows];
    out->row = arena_raw(m->arena, out->pieces, sizeof *out->row);
    out->j = arena_raw(m->arena, out->pieces * out->w, sizeof *out->j);
    out->pat = arena_raw(m->arena, out->pieces * out->w, sizeof *out->pat);
    for (int64_t t = 0; t < rows; t++)
        for (int64_t p = m->start[t]; piece < out->start[t + 1]; piece++) {
            out->row[piece] = t;
            for (int64_t k = 0; k < out->w; k++, p += p < m->start[t + 1]) {
                bool is = p < m->start[t + 1];

                out->j[piece * out->w + k] = is ? m->cell[p].block : -1;
                out->pat[piece * out->w + k] = is ? m->cell[p].pattern : 0;
            }
        }
}

/* Patterns as numbers to add to scores. */
static void write_patterns(const Mask *m, GeomMask *out)
{
    int64_t bi = m->in->bi, bj = m->in->bj, n = m->npattern * bi;

    out->patterns = m->npattern;
    out->x = arena_raw(m->arena, n * bj, m->in->wide ? sizeof(double) : sizeof(float));
    for (int64_t k = 0; k < n; k++)
        for (int64_t b = 0; b < bj; b++) {
            bool is = m->word[k] >> b & 1;

            if (m->in->wide)
                ((double *)out->x)[k * bj + b] = is ? 0 : -(double)INFINITY;
            else
                ((float *)out->x)[k * bj + b] = is ? 0 : -INFINITY;
        }
}

void geom_mask(Arena *arena, const GeomMaskIn *in, GeomMask *out)
{
    Mask m = { .arena = arena, .in = in };
    const struct Kind *kind = kind_of(&m);
    uint64_t ones[GEOM_MASK_TILE];

    *out = (GeomMask){ 0 };
    m.tiles = (in->n + in->bi - 1) / in->bi;
    m.blocks = (in->m + in->bj - 1) / in->bj;
    m.bits = arena_array(arena, m.blocks * in->bi, sizeof *m.bits);
    m.seen = arena_array(arena, m.blocks, sizeof *m.seen);
    m.start = arena_array(arena, m.tiles * in->copies + 1, sizeof *m.start);
    for (int k = 0; k < in->bi; k++)
        ones[k] = ~UINT64_C(0) >> (64 - in->bj);
    number(&m, ones); /* pattern 0: all */
    for (int64_t c = 0; c < in->copies; c++)
        take_copy(&m, kind, c);
    out->nnz = m.nnz;
    out->tiles = m.tiles;
    out->blocks = m.blocks;
    lay_out(&m, out);
    write_patterns(&m, out);
}

void geom_random(uint64_t seed, int64_t n, int64_t *out)
{
    Random random = { hash_int(11, seed) };

    for (int64_t i = 0; i < n; i++)
        out[i] = (int64_t)(geom_next(&random) >> 33);
}
