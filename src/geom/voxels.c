/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernel maps of sparse convolutions.  A voxel is found by its key, its number in the box around
 * all voxels, in a table by hashing.  Outputs that are not the inputs are the distinct keys that
 * inputs reach, sorted.  Then each output asks the table for the input of each offset, and the
 * pairs found are written by strips of outputs and, inside a strip, by offset (strips.c). */
#include "geom/near_int.h"

#include <string.h>

enum { RUN_BITS = 3, RUN = 1 << RUN_BITS };

/* Numbers by key, in runs of neighbouring keys: what is near along the last dimension is found by
 * one search.  Runs are numbered in the order in which they came, so voxels in order have theirs
 * side by side. */
typedef struct Slot {
    int64_t run, at; /* which one, -1: none; its number */
} Slot;

typedef struct Table {
    Arena *arena;
    Slot *slot;
    int32_t (*id)[RUN]; /* by number of a run and key in it; -1: none */
    int64_t n, cap;     /* runs; slots, a power of two */
    int shift;          /* from a hash to a slot */
} Table;

typedef struct Box { /* around voxels; dimension 0 is the batch index */
    int64_t low[4], size[4];
} Box;

typedef struct Find {
    const GeomVoxels *v;
    Box in, out;
    Table table;
    int64_t *reach; /* by output: its coordinates, 4 each */
    int32_t *input; /* by output and offset: the input voxel, or -1 */
    int64_t nout, noffset, strip;
} Find;

/* The slot of a run, which may be empty. */
static inline Slot *find_run(const Table *t, int64_t run)
{
    int64_t at = (int64_t)((uint64_t)run * 0x9e3779b97f4a7c15U >> t->shift);

    while (t->slot[at].run != run && t->slot[at].run != -1)
        at = (at + 1) & (t->cap - 1);
    return &t->slot[at];
}

/* At most two thirds of the slots are taken. */
static int64_t most_runs(const Table *t)
{
    return t->cap / 3 * 2;
}

static void open_table(Table *t, int64_t cap)
{
    Table old = *t;

    t->cap = 1024;
    t->shift = 54;
    for (; t->cap < cap; t->cap *= 2)
        t->shift--;
    t->slot = arena_raw(t->arena, t->cap, sizeof *t->slot);
    t->id = arena_raw(t->arena, most_runs(t), sizeof *t->id);
    memset(t->slot, 0xff, (size_t)t->cap * sizeof *t->slot);
    if (old.n > 0)
        memcpy(t->id, old.id, (size_t)old.n * sizeof *t->id);
    for (int64_t i = 0; i < old.cap; i++)
        if (old.slot[i].run >= 0)
            *find_run(t, old.slot[i].run) = old.slot[i];
}

/* Where the number of a key is, or comes to be. */
static int32_t *open_key(Table *t, int64_t key)
{
    Slot *s = find_run(t, key >> RUN_BITS);

    if (s->run == -1) {
        if (t->n == most_runs(t)) {
            open_table(t, 2 * t->cap);
            s = find_run(t, key >> RUN_BITS);
        }
        *s = (Slot){ key >> RUN_BITS, t->n };
        memset(t->id[t->n++], 0xff, sizeof *t->id);
    }
    return &t->id[s->at][key & (RUN - 1)];
}

static int64_t coord_of(const GeomVoxels *v, int64_t i, int c)
{
    int64_t k = 4 * i + c;

    return v->wide ? ((const int64_t *)v->coord)[k] : ((const int32_t *)v->coord)[k];
}

/* The number of a place in a box, or -1 outside. */
static int64_t key_of(const Box *b, const int64_t at[4])
{
    int64_t key = 0;

    for (int c = 0; c < 4; c++) {
        int64_t k = at[c] - b->low[c];

        if (k < 0 || k >= b->size[c])
            return -1;
        key = key * b->size[c] + k;
    }
    return key;
}

static void check_place(Err *err, const GeomVoxels *v, int64_t i, const int64_t at[4])
{
    static const char *const what[] = { "batch index", "first coordinate", "second coordinate",
                                        "third coordinate" };

    for (int c = 0; c < 4; c++) {
        int64_t limit = c == 0 ? v->batch : v->shape[c - 1];

        if (at[c] < 0 && (c == 0 || limit > 0))
            err_throw(err, ST_ARG, "coords: the %s of voxel %lld is %lld; %s", what[c],
                      (long long)i, (long long)at[c],
                      c == 0 ? "give indices from 0 on" : "without a shape it may be negative");
        if (limit > 0 && at[c] >= limit)
            err_throw(err, ST_ARG, "coords: the %s of voxel %lld is %lld, but the %s is %lld; %s",
                      what[c], (long long)i, (long long)at[c],
                      c == 0 ? "number of samples" : "size of the grid there", (long long)limit,
                      c == 0 ? "give a larger batch size" : "give a larger shape, or leave it out");
        if (at[c] < -GEOM_FAR || at[c] > GEOM_FAR)
            err_throw(err, ST_LIMIT, "coords: the %s of voxel %lld is %lld; they are below 2^40",
                      what[c], (long long)i, (long long)at[c]);
    }
}

/* So that keys are numbers. */
static void check_box(Err *err, const Box *b)
{
    int64_t n = 1;

    for (int c = 0; c < 4; c++)
        if (int_mul(n, b->size[c], &n) || n > INT64_MAX / 4)
            err_throw(err, ST_LIMIT,
                      "coords: the box around all voxels has more than 2^61 places; bring the "
                      "coordinates closer together");
}

/* The first voxel that is not where voxels may be is named. */
static void check_places(Err *err, const GeomVoxels *v)
{
    for (int64_t i = 0; i < v->n; i++) {
        int64_t at[4] = { coord_of(v, i, 0), coord_of(v, i, 1), coord_of(v, i, 2),
                          coord_of(v, i, 3) };

        check_place(err, v, i, at);
    }
}

static void find_box(Err *err, const GeomVoxels *v, Box *b)
{
    int64_t low[4] = { 0 }, high[4] = { 0 };
    bool inside = true;

    for (int64_t i = 0; i < v->n; i++)
        for (int c = 0; c < 4; c++) {
            int64_t at = coord_of(v, i, c);

            low[c] = i == 0 || at < low[c] ? at : low[c];
            high[c] = i == 0 || at > high[c] ? at : high[c];
        }
    for (int c = 0; c < 4; c++) {
        int64_t limit = c == 0 ? v->batch : v->shape[c - 1];

        inside = inside && low[c] >= (c == 0 || limit > 0 ? 0 : -GEOM_FAR) &&
                 high[c] <= (limit > 0 ? limit - 1 : GEOM_FAR);
        b->low[c] = low[c];
        b->size[c] = inside ? high[c] - low[c] + 1 : 1;
    }
    if (!inside)
        check_places(err, v);
    check_box(err, b);
}

/* All voxels of the input; each place at most once. */
static void fill_table(Arena *arena, Find *f)
{
    const GeomVoxels *v = f->v;

    f->table = (Table){ .arena = arena };
    open_table(&f->table, v->n);
    for (int64_t i = 0; i < v->n; i++) {
        int64_t at[4] = { coord_of(v, i, 0), coord_of(v, i, 1), coord_of(v, i, 2),
                          coord_of(v, i, 3) };
        int32_t *id = open_key(&f->table, key_of(&f->in, at));

        if (*id >= 0)
            err_throw(arena->err, ST_ARG,
                      "coords: voxels %lld and %lld repeat the place (%lld, %lld, %lld, %lld); "
                      "keep one voxel of each place",
                      (long long)*id, (long long)i, (long long)at[0], (long long)at[1],
                      (long long)at[2], (long long)at[3]);
        *id = (int32_t)i;
    }
}

/* One coordinate of the other end of a pair at place k of the kernel: out * stride + k * dilation
 * - padding = in, or with the two ends exchanged when the convolution is transposed.  False:
 * none. */
static bool other_end(const GeomVoxels *v, int c, bool from_in, int64_t at, int64_t k, int64_t *to)
{
    int64_t shift = k * v->dilation[c] - v->padding[c];

    if (from_in == v->transposed) {
        *to = at * v->stride[c] + shift;
        return true;
    }
    return !int_div(at - shift, v->stride[c], to) && *to * v->stride[c] == at - shift;
}

/* By dimension and place of the kernel: what the other end of the pair adds to its key in the
 * box, or -1 where there is none.  The key is `base` and one of each dimension. */
typedef struct Ends {
    int64_t base, part[3][GEOM_KERNEL];
} Ends;

static void find_ends(const GeomVoxels *v, const Box *b, bool from_in, const int64_t at[4],
                      Ends *to)
{
    int64_t scale = 1;

    for (int c = 2; c >= 0; c--) {
        for (int64_t k = 0; k < v->kernel[c]; k++) {
            int64_t x = 0;
            bool inside = other_end(v, c, from_in, at[1 + c], k, &x) && x >= b->low[1 + c] &&
                          x < b->low[1 + c] + b->size[1 + c];

            to->part[c][k] = inside ? (x - b->low[1 + c]) * scale : -1;
        }
        scale *= b->size[1 + c];
    }
    to->base = (at[0] - b->low[0]) * scale; /* outputs have the batch indices of inputs */
}

/* The size of the output grid, by the formulas of dense convolution. */
static void out_shape(Err *err, const GeomVoxels *v, int64_t shape[3])
{
    for (int c = 0; c < 3; c++) {
        int64_t reach = v->dilation[c] * (v->kernel[c] - 1) + 1;

        shape[c] = 0;
        if (v->shape[c] == 0 || v->subm)
            shape[c] = v->shape[c];
        else if (v->transposed)
            shape[c] = (v->shape[c] - 1) * v->stride[c] - 2 * v->padding[c] + reach + v->extra[c];
        else
            int_div(v->shape[c] + 2 * v->padding[c] - reach, v->stride[c], &shape[c]), shape[c]++;
        if (v->shape[c] > 0 && shape[c] <= 0)
            err_throw(err, ST_ARG,
                      "shape: dimension %d of the output would have %lld places; give a larger "
                      "shape or padding, or a smaller kernel",
                      c, (long long)shape[c]);
    }
}

/* Where outputs can be: in their grid, or wherever the input's box reaches. */
static void out_box(Err *err, Find *f, const int64_t shape[3])
{
    f->out = f->in;
    for (int c = 0; c < 3; c++) {
        int64_t low = f->in.low[1 + c], high = low + f->in.size[1 + c] - 1;
        int64_t far = f->v->padding[c] + f->v->dilation[c] * f->v->kernel[c];

        if (shape[c] > 0) {
            low = 0;
            high = shape[c] - 1;
        } else if (f->v->transposed) {
            low = low * f->v->stride[c] - far;
            high = high * f->v->stride[c] + far;
        } else {
            int_div(low - far, f->v->stride[c], &low);
            int_div(high + far, f->v->stride[c], &high);
        }
        f->out.low[1 + c] = low;
        f->out.size[1 + c] = high - low + 1;
    }
    check_box(err, &f->out);
}

typedef struct Keys { /* each once, in the order in which they were met */
    Table seen;
    int64_t *key, n, cap;
} Keys;

static void add_key(Keys *keys, int64_t key)
{
    int32_t *id = open_key(&keys->seen, key);

    if (*id >= 0)
        return;
    if (keys->n == keys->cap) {
        int64_t *old = keys->key;

        keys->cap = 2 * keys->cap + 1024;
        keys->key = arena_raw(keys->seen.arena, keys->cap, sizeof *keys->key);
        if (keys->n > 0)
            memcpy(keys->key, old, (size_t)keys->n * sizeof *keys->key);
    }
    *id = 0;
    keys->key[keys->n++] = key;
}

/* The places that some input reaches. */
static void collect(const Find *f, Keys *keys)
{
    const int64_t *kernel = f->v->kernel;

    for (int64_t i = 0; i < f->v->n; i++) {
        int64_t at[4] = { coord_of(f->v, i, 0), coord_of(f->v, i, 1), coord_of(f->v, i, 2),
                          coord_of(f->v, i, 3) };
        Ends to;

        find_ends(f->v, &f->out, true, at, &to);
        for (int64_t z = 0; z < kernel[0]; z++)
            for (int64_t y = 0; y < kernel[1] && to.part[0][z] >= 0; y++)
                for (int64_t x = 0; x < kernel[2] && to.part[1][y] >= 0; x++)
                    if (to.part[2][x] >= 0)
                        add_key(keys, to.base + to.part[0][z] + to.part[1][y] + to.part[2][x]);
    }
}

/* By digits of 11 bits, the lowest first. */
static void sort_keys(Arena *arena, int64_t *key, int64_t n)
{
    enum { BITS = 11, MOST = 1 << BITS };
    int64_t *from = key, *to = arena_raw(arena, n, sizeof *to), most = 0;

    for (int64_t i = 0; i < n; i++)
        most = key[i] > most ? key[i] : most;
    for (int shift = 0; shift < 63 && most >> shift != 0; shift += BITS) {
        int64_t start[MOST + 1] = { 0 }, *swap = from;

        for (int64_t i = 0; i < n; i++)
            start[(from[i] >> shift & (MOST - 1)) + 1]++;
        for (int d = 0; d < MOST; d++)
            start[d + 1] += start[d];
        for (int64_t i = 0; i < n; i++)
            to[start[from[i] >> shift & (MOST - 1)]++] = from[i];
        from = to;
        to = swap;
    }
    if (from != key && n > 0)
        memcpy(key, from, (size_t)n * sizeof *key);
}

static void place_of(const Box *b, int64_t key, int64_t at[4])
{
    for (int c = 3; c >= 0; c--) {
        at[c] = b->low[c] + key % b->size[c];
        key /= b->size[c];
    }
}

/* The coordinates of outputs: in order of batch index and coordinates, or those of the inputs. */
static void find_outputs(Arena *keep, Arena *scratch, Find *f, GeomMap *out)
{
    Keys keys = { .seen = { .arena = scratch } };

    out_shape(keep->err, f->v, out->shape);
    if (f->v->subm) {
        f->nout = f->v->n;
        out->coord = arena_raw(keep, 4 * f->nout, sizeof *out->coord);
        for (int64_t i = 0; i < 4 * f->nout; i++)
            out->coord[i] = coord_of(f->v, i / 4, (int)(i % 4));
        return;
    }
    out_box(keep->err, f, out->shape);
    open_table(&keys.seen, f->v->n);
    collect(f, &keys);
    sort_keys(scratch, keys.key, keys.n);
    f->nout = keys.n;
    out->coord = arena_raw(keep, 4 * f->nout, sizeof *out->coord);
    for (int64_t i = 0; i < f->nout; i++)
        place_of(&f->out, keys.key[i], out->coord + 4 * i);
}

enum { LAST = 64 }; /* of so many lines of the kernel the run that was found last is known */

/* The inputs of the first n places on a line of the kernel, from key `line` on. */
static void look_along(const Find *f, const Ends *to, int64_t line, int64_t n, Slot *last,
                       int32_t *input)
{
    for (int64_t x = 0; x < n; x++) {
        int64_t key = line + to->part[2][x];

        input[x] = -1;
        if (to->part[2][x] < 0)
            continue;
        if (last->run != key >> RUN_BITS) {
            *last = *find_run(&f->table, key >> RUN_BITS); /* at is -1 in an empty one */
            last->run = key >> RUN_BITS;
        }
        if (last->at >= 0)
            input[x] = f->table.id[last->at][key & (RUN - 1)];
    }
}

/* The inputs of the outputs of a strip. */
static void look_up(void *arg, int64_t strip)
{
    const Find *f = arg;
    const int64_t *kernel = f->v->kernel;
    int64_t end = (strip + 1) * f->strip < f->nout ? (strip + 1) * f->strip : f->nout;
    Slot last[LAST];

    memset(last, 0xff, sizeof last);
    for (int64_t i = strip * f->strip; i < end; i++) {
        int32_t *input = f->input + i * f->noffset;
        Ends to;

        find_ends(f->v, &f->in, false, f->reach + 4 * i, &to);
        for (int64_t z = 0; z < kernel[0]; z++)
            for (int64_t y = 0; y < kernel[1]; y++, input += kernel[2])
                if (to.part[0][z] >= 0 && to.part[1][y] >= 0)
                    look_along(f, &to, to.base + to.part[0][z] + to.part[1][y], kernel[2],
                               &last[(z * kernel[1] + y) % LAST], input);
                else
                    memset(input, 0xff, (size_t)kernel[2] * sizeof *input);
    }
}

static void clear(void *arg, int64_t strip)
{
    const Find *f = arg;
    int64_t end = (strip + 1) * f->strip < f->nout ? (strip + 1) * f->strip : f->nout;
    int64_t begin = strip * f->strip * f->noffset;

    memset(f->input + begin, 0xff, (size_t)(end * f->noffset - begin) * sizeof *f->input);
}

/* Outputs are the inputs, and the kernel has a middle: who finds j at offset d is found by j at the
 * opposite offset.  So half of the offsets are looked up, and no two outputs write one element. */
static void look_up_half(void *arg, int64_t strip)
{
    const Find *f = arg;
    const int64_t *kernel = f->v->kernel;
    int64_t end = (strip + 1) * f->strip < f->nout ? (strip + 1) * f->strip : f->nout;
    int64_t middle = f->noffset / 2;
    Slot last[LAST];

    memset(last, 0xff, sizeof last);
    for (int64_t i = strip * f->strip; i < end; i++) {
        int32_t *input = f->input + i * f->noffset, found[GEOM_KERNEL];
        int64_t z = 0, y = 0, line = 0;
        Ends to;

        find_ends(f->v, &f->in, false, f->reach + 4 * i, &to);
        input[middle] = (int32_t)i;
        for (int64_t d = 0; d < middle; d += kernel[2], line++) {
            int64_t n = middle - d < kernel[2] ? middle - d : kernel[2];
            int64_t above = to.part[0][z], beside = to.part[1][y];

            z += y + 1 == kernel[1];
            y = y + 1 == kernel[1] ? 0 : y + 1;
            if (above < 0 || beside < 0)
                continue;
            look_along(f, &to, to.base + above + beside, n, &last[line % LAST], found);
            for (int64_t x = 0; x < n; x++)
                if (found[x] >= 0) {
                    input[d + x] = found[x];
                    f->input[(found[x] + 1) * f->noffset - 1 - (d + x)] = (int32_t)i;
                }
        }
    }
}

static bool has_middle(const GeomVoxels *v)
{
    return v->kernel[0] % 2 == 1 && v->kernel[1] % 2 == 1 && v->kernel[2] % 2 == 1;
}

void geom_kernel_map(Arena *keep, Arena *scratch, const GeomPool *pool, const GeomVoxels *v,
                     GeomMap *out)
{
    Find f = { .v = v, .noffset = v->kernel[0] * v->kernel[1] * v->kernel[2], .strip = v->strip };
    int64_t cells;

    if (v->n > INT32_MAX)
        err_throw(keep->err, ST_LIMIT, "coords: %lld voxels; 2^31 are possible", (long long)v->n);
    find_box(keep->err, v, &f.in);
    fill_table(scratch, &f);
    find_outputs(keep, scratch, &f, out);
    if (f.nout > INT32_MAX || int_mul(f.nout, f.noffset, &cells))
        err_throw(keep->err, ST_LIMIT, "coords: %lld output voxels; 2^31 are possible",
                  (long long)f.nout);
    f.reach = out->coord;
    f.input = arena_raw(scratch, cells, sizeof *f.input);
    out->strips = (f.nout + v->strip - 1) / v->strip;
    if (v->subm && has_middle(v)) {
        near_each(pool, out->strips, clear, &f);
        near_each(pool, out->strips, look_up_half, &f);
    } else {
        near_each(pool, out->strips, look_up, &f);
    }
    out->in = v->n;
    out->out = f.nout;
    out->offsets = f.noffset;
    out->strip = v->strip;
    geom_strips_of(keep, scratch, pool, f.input, out);
}
