/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pruned weights: from a mask of the elements that stay to the structure of a format, and to the
 * element of the dense weight that each stored one is.  Elements of a block are stored with its
 * rows innermost, as the operator sparse_linear reads them. */
#include "geom/geom.h"

#include <string.h>

typedef struct Formats {
    const char *name;
    const char *size[2]; /* what its numbers are; NULL: it has none */
    int64_t usual[2];
    void (*make)(Arena *, const GeomPlacesIn *, const int64_t *size, GeomPlaces *out);
} Formats;

static int64_t *new_array(Arena *arena, int64_t n)
{
    return arena_array(arena, n, sizeof(int64_t));
}

/* Whether an element of a block of rows x columns, whose first is given, is in the mask. */
static bool has_any(const GeomPlacesIn *in, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
    for (int64_t r = row; r < row + rows; r++)
        for (int64_t c = col; c < col + cols; c++)
            if (in->mask[r * in->columns + c])
                return true;
    return false;
}

/* Blocks of rows x cols with an element in the mask, as CSR; returns their number. */
static int64_t find_blocks(Arena *arena, const GeomPlacesIn *in, int64_t rows, int64_t cols,
                           GeomPlaces *out)
{
    int64_t up = in->rows / rows, across = in->columns / cols, n = 0;
    bool *has = arena_array(arena, up * across, sizeof *has);
    int64_t *start = new_array(arena, up + 1), *index;

    for (int64_t b = 0; b < up * across; b++)
        n += has[b] = has_any(in, b / across * rows, b % across * cols, rows, cols);
    index = new_array(arena, n);
    n = 0;
    for (int64_t b = 0; b < up * across; b++) {
        if (has[b])
            index[n++] = b % across;
        start[b / across + 1] = n;
    }
    out->start = start;
    out->starts = up + 1;
    out->index = index;
    out->indices = n;
    return n;
}

static void make_csr(Arena *arena, const GeomPlacesIn *in, const int64_t *size, GeomPlaces *out)
{
    (void)size;
    out->n = find_blocks(arena, in, 1, 1, out);
    out->at = new_array(arena, out->n);
    for (int64_t i = 0; i < in->rows; i++)
        for (int64_t e = out->start[i]; e < out->start[i + 1]; e++)
            out->at[e] = i * in->columns + out->index[e];
}

static void make_bsr(Arena *arena, const GeomPlacesIn *in, const int64_t *size, GeomPlaces *out)
{
    int64_t b = size[0], c = size[1], n = find_blocks(arena, in, b, c, out), *at;

    out->n = n * b * c;
    at = out->at = new_array(arena, out->n);
    for (int64_t i = 0; i < in->rows / b; i++)
        for (int64_t e = out->start[i]; e < out->start[i + 1]; e++)
            for (int64_t col = out->index[e] * c; col < (out->index[e] + 1) * c; col++)
                for (int64_t row = i * b; row < (i + 1) * b; row++)
                    *at++ = row * in->columns + col;
}

/* As bsr, without the rows of blocks that are empty. */
static void make_dbsr(Arena *arena, const GeomPlacesIn *in, const int64_t *size, GeomPlaces *out)
{
    int64_t *start, *row, n = 0;

    make_bsr(arena, in, size, out);
    start = new_array(arena, out->starts);
    row = new_array(arena, out->starts - 1);
    for (int64_t i = 0; i + 1 < out->starts; i++)
        if (out->start[i + 1] > out->start[i]) {
            row[n++] = i;
            start[n] = out->start[i + 1];
        }
    out->start = start;
    out->starts = n + 1;
    out->row = row;
    out->stored = n;
}

/* Of each strip of b rows the columns that it needs, in groups of g. */
static void make_sr_bcrs(Arena *arena, const GeomPlacesIn *in, const int64_t *size, GeomPlaces *out)
{
    int64_t b = size[0], g = size[1], *start, *index, *at, groups = 0;
    GeomPlaces columns = { 0 };

    find_blocks(arena, in, b, 1, &columns);
    start = new_array(arena, columns.starts);
    for (int64_t s = 0; s + 1 < columns.starts; s++) {
        groups += (columns.start[s + 1] - columns.start[s] + g - 1) / g;
        start[s + 1] = groups;
    }
    index = new_array(arena, groups * g);
    at = new_array(arena, groups * g * b);
    for (int64_t s = 0; s + 1 < columns.starts; s++)
        for (int64_t e = start[s] * g; e < start[s + 1] * g; e++) {
            int64_t k = columns.start[s] + e - start[s] * g;

            index[e] = k < columns.start[s + 1] ? columns.index[k] : -1;
            for (int64_t r = 0; r < b; r++)
                at[e * b + r] = index[e] < 0 ? -1 : (s * b + r) * in->columns + index[e];
        }
    *out = (GeomPlaces){ .n = groups * g * b, .at = at, .start = start, .starts = columns.starts,
                         .index = index, .indices = groups * g };
}

/* The places of a group: those of its entries and, up to k, the first ones without. */
static void choose(Arena *arena, const GeomPlacesIn *in, int64_t row, int64_t group,
                   const int64_t *size, int64_t *to)
{
    int64_t k = size[0], g = size[1], n = 0, rest;
    const unsigned char *m = in->mask + row * in->columns + group * g;

    for (int64_t o = 0; o < g; o++)
        n += m[o] != 0;
    if (n > k)
        err_throw(arena->err, ST_ARG,
                  "mask: expected at most %lld entries in each group of %lld columns, as the "
                  "format n_m(%lld, %lld) stores, got %lld in row %lld, columns %lld to %lld; "
                  "prune more, or take csr",
                  (long long)k, (long long)g, (long long)k, (long long)g, (long long)n,
                  (long long)row, (long long)(group * g), (long long)(group * g + g - 1));
    rest = k - n;
    for (int64_t o = 0; o < g; o++)
        if (m[o] || rest-- > 0)
            *to++ = o;
}

static void make_n_m(Arena *arena, const GeomPlacesIn *in, const int64_t *size, GeomPlaces *out)
{
    int64_t k = size[0], g = size[1], groups = in->columns / g, *index;

    out->n = out->indices = in->rows * groups * k;
    index = new_array(arena, out->n);
    out->at = new_array(arena, out->n);
    for (int64_t q = 0; q < in->rows * groups; q++) {
        choose(arena, in, q / groups, q % groups, size, index + q * k);
        for (int64_t e = q * k; e < (q + 1) * k; e++)
            out->at[e] = q / groups * in->columns + q % groups * g + index[e];
    }
    out->index = index;
}

static const Formats formats[] = {
    { "csr", { NULL, NULL }, { 1, 1 }, make_csr },
    { "bsr", { "b", "c" }, { 16, 16 }, make_bsr },
    { "dbsr", { "b", "c" }, { 16, 16 }, make_dbsr },
    { "sr_bcrs", { "b", "g" }, { 16, 4 }, make_sr_bcrs },
    { "n_m", { "k", "g" }, { 2, 4 }, make_n_m },
};

static _Noreturn void bad_format(Err *err, const char *text)
{
    err_throw(err, ST_ARG,
              "format: expected csr, bsr(b, c), dbsr(b, c), sr_bcrs(b, g) or n_m(k, g) with "
              "numbers from 1 to 65536, got '%.40s'",
              text);
}

static const char *skip(const char *s)
{
    return s + strspn(s, " ");
}

/* "(b, c)", or nothing; NULL: neither. */
static const char *read_sizes(const char *s, const Formats *f, int64_t *size)
{
    memcpy(size, f->usual, sizeof f->usual);
    s = skip(s);
    if (*s != '(' || f->size[0] == NULL)
        return s;
    for (int k = 0; k < 2; k++) {
        int64_t n = 0;

        s = skip(s + 1);
        if (*s < '0' || *s > '9')
            return NULL;
        for (; *s >= '0' && *s <= '9' && n <= 65536; s++)
            n = 10 * n + *s - '0';
        s = skip(s);
        if (n < 1 || n > 65536 || *s != (k == 0 ? ',' : ')'))
            return NULL;
        size[k] = n;
    }
    return skip(s + 1);
}

static const Formats *read_format(Err *err, const char *text, int64_t *size)
{
    const char *s = skip(text);

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t n = strlen(formats[i].name);
        const char *end = strncmp(s, formats[i].name, n) == 0 ? read_sizes(s + n, &formats[i], size)
                                                              : NULL;

        if (end != NULL && *end == '\0')
            return &formats[i];
    }
    bad_format(err, text);
}

void geom_places(Arena *arena, const GeomPlacesIn *in, GeomPlaces *out)
{
    int64_t size[2], rows, columns;
    const Formats *f = read_format(arena->err, in->format, size);
    bool groups = f->make == make_n_m;

    if (groups && size[0] > size[1])
        err_throw(arena->err, ST_ARG, "format: expected n_m(k, g) with k at most g, got '%.40s'",
                  in->format);
    rows = groups ? 1 : size[0];
    columns = f->make == make_sr_bcrs ? 1 : size[1];
    if (in->rows % rows != 0 || in->columns % columns != 0)
        err_throw(arena->err, ST_ARG,
                  "weight: expected multiples of %lld rows and %lld columns, as %.40s stores, or "
                  "the format csr, got shape (%lld, %lld)",
                  (long long)rows, (long long)columns, in->format, (long long)in->rows,
                  (long long)in->columns);
    *out = (GeomPlaces){ 0 };
    f->make(arena, in, size, out);
}
