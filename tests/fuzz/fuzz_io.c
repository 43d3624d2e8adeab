/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The readers of src/io under the fuzzing driver: what they accept must read back the same after it
 * was printed.  Good inputs are made here; fuzz_npz_mend keeps archives whole while they change. */
#include "fuzz/fuzz.h"
#include "io/io_int.h"
#include "unit/trap.h"
#include "unit/zip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Bench {
    Err err;
    Arena arena;
} Bench;

static void bench_init(Bench *b)
{
    b->err = (Err){ 0 };
    arena_init(&b->arena, &os_libc, &b->err);
}

/* Ends a run; what was refused must say why. */
static int bench_end(Bench *b, Status s)
{
    FUZZ_CHECK(b->arena.total <= FUZZ_MEMORY);
    FUZZ_CHECK(s == ST_OK || (b->err.msg[0] != 0 && s != ST_NOMEM && s != ST_ARG));
    arena_free(&b->arena);
    return s == ST_OK;
}

static Bytes printed(const Text *t)
{
    return (Bytes){ (const uint8_t *)t->s, t->n };
}

static bool same_reals(const double *a, const double *b, int64_t n)
{
    for (int64_t p = 0; p < n; p++)
        if (memcmp(&a[p], &b[p], sizeof *a) != 0 && !(isnan(a[p]) && isnan(b[p])))
            return false;
    return true;
}

static void check_matrix(const IoMatrix *a)
{
    FUZZ_CHECK(a->m >= 0 && a->n >= 0 && a->nnz >= 0);
    for (int64_t p = 0; p < a->nnz && !a->dense; p++) {
        FUZZ_CHECK(a->row[p] >= 0 && a->row[p] < a->m && a->col[p] >= 0 && a->col[p] < a->n);
        FUZZ_CHECK(p == 0 || a->row[p - 1] < a->row[p] ||
                   (a->row[p - 1] == a->row[p] && a->col[p - 1] < a->col[p]));
    }
}

static void check_same_matrix(const IoMatrix *a, const IoMatrix *b)
{
    size_t bytes = (size_t)a->nnz * sizeof *a->row;

    FUZZ_CHECK(a->m == b->m && a->n == b->n && a->nnz == b->nnz);
    FUZZ_CHECK(a->dense == b->dense && a->pattern == b->pattern && a->integer == b->integer);
    FUZZ_CHECK(a->dense || memcmp(a->row, b->row, bytes) == 0);
    FUZZ_CHECK(a->dense || memcmp(a->col, b->col, bytes) == 0);
    if (a->integer)
        FUZZ_CHECK(memcmp(a->ival, b->ival, bytes) == 0);
    else
        FUZZ_CHECK(same_reals(a->val, b->val, a->nnz));
}

int fuzz_mtx(const uint8_t *p, size_t n)
{
    Bench b;
    IoMatrix a, again;
    Text t;
    Status s;

    bench_init(&b);
    s = CATCH(&b.err, io_mtx_parse(&b.arena, (Bytes){ p, n }, "fuzz", &a));
    if (s == ST_OK) {
        t = (Text){ .arena = &b.arena };
        check_matrix(&a);
        s = CATCH(&b.err, io_mtx_print(&t, &a);
                  io_mtx_parse(&b.arena, printed(&t), "again", &again));
        FUZZ_CHECK(s == ST_OK);
        check_same_matrix(&a, &again);
    } else {
        FUZZ_CHECK(b.err.line > 0 || strstr(b.err.msg, "sum outside") != NULL);
    }
    return bench_end(&b, s);
}

static void check_same_array(const IoArray *a, const IoArray *b)
{
    FUZZ_CHECK(strcmp(a->name, b->name) == 0 && a->type == b->type);
    FUZZ_CHECK(a->ndim == b->ndim && a->n == b->n);
    FUZZ_CHECK(memcmp(a->dim, b->dim, sizeof a->dim) == 0);
    FUZZ_CHECK(memcmp(a->data, b->data, (size_t)a->n * io_type_size(a->type)) == 0);
}

int fuzz_npy(const uint8_t *p, size_t n)
{
    Bench b;
    IoArray a, again;
    Text t;
    Status s;

    bench_init(&b);
    s = CATCH(&b.err, io_npy_parse(&b.arena, (Bytes){ p, n }, "fuzz", &a));
    if (s == ST_OK) {
        t = (Text){ .arena = &b.arena };
        s = CATCH(&b.err, io_npy_print(&t, &a);
                  io_npy_parse(&b.arena, printed(&t), "again", &again));
        FUZZ_CHECK(s == ST_OK);
        check_same_array(&a, &again);
    }
    return bench_end(&b, s);
}

/* Each member read alone is the same as among the others. */
static void check_members(Bench *b, Bytes bytes, const IoNpz *npz)
{
    for (int k = 0; k < npz->n; k++) {
        IoNpz one;
        Status s = CATCH(&b->err, io_npz_parse(&b->arena, bytes, "one", npz->array[k].name, &one));

        FUZZ_CHECK(s == ST_OK && one.n == 1);
        check_same_array(&npz->array[k], &one.array[0]);
    }
}

int fuzz_npz(const uint8_t *p, size_t n)
{
    Bench b;
    IoNpz a, again;
    Text t;
    Status s;

    bench_init(&b);
    s = CATCH(&b.err, io_npz_parse(&b.arena, (Bytes){ p, n }, "fuzz", NULL, &a));
    if (s == ST_OK) {
        t = (Text){ .arena = &b.arena };
        s = CATCH(&b.err, io_npz_print(&t, &a);
                  io_npz_parse(&b.arena, printed(&t), "again", NULL, &again));
        FUZZ_CHECK(s == ST_OK && a.n == again.n);
        for (int k = 0; k < a.n; k++)
            check_same_array(&a.array[k], &again.array[k]);
        check_members(&b, (Bytes){ p, n }, &a);
    }
    return bench_end(&b, s);
}

/* The first two bytes are the size to expand to. */
int fuzz_inflate(const uint8_t *p, size_t n)
{
    Bench b;
    size_t size = n < 2 ? 0 : (size_t)(p[0] | p[1] << 8);
    uint8_t *out, *again;
    Cursor c;
    Text t;
    Status s;

    bench_init(&b);
    out = malloc(size + 1);
    again = malloc(size + 1);
    FUZZ_CHECK(out != NULL && again != NULL);
    c = io_cursor(&b.err, "fuzz", (Bytes){ p + (n < 2 ? n : 2), n - (n < 2 ? n : 2) });
    s = CATCH(&b.err, io_inflate(&os_libc, &c, out, size));
    if (s == ST_OK) {
        t = (Text){ .arena = &b.arena };
        zip_deflate_fixed(&t, out, size);
        c = io_cursor(&b.err, "again", printed(&t));
        s = CATCH(&b.err, io_inflate(&os_libc, &c, again, size));
        FUZZ_CHECK(s == ST_OK && memcmp(out, again, size) == 0);
    }
    free(out);
    free(again);
    return bench_end(&b, s);
}

#define MTX(format, field, symmetry) "%%MatrixMarket matrix " format " " field " " symmetry "\n"

int fuzz_mtx_seed(int k, uint8_t *out)
{
    static const char *const seeds[] = {
        MTX("coordinate", "real", "general") "3 4 4\n1 1 1.5\n3 4 -2e10\n2 2 .25\n1 4 3\n",
        MTX("coordinate", "real", "symmetric") "3 3 3\n1 1 1\n3 1 2.5\n3 2 4\n",
        MTX("coordinate", "real", "skew-symmetric") "3 3 2\n2 1 1.5\n3 2 -4\n",
        MTX("coordinate", "integer", "general") "2 2 3\n2 1 -7\n1 2 9\n2 1 7\n",
        MTX("coordinate", "integer", "symmetric") "2 2 2\n2 1 5\n2 2 6\n",
        MTX("coordinate", "integer", "skew-symmetric") "4 4 2\n2 1 5\n4 1 9223372036854775807\n",
        MTX("coordinate", "pattern", "general") "2 3 3\n2 2\n1 1\n2 2\n",
        MTX("coordinate", "pattern", "symmetric") "3 3 2\n2 1\n3 3\n",
        MTX("array", "real", "general") "2 3\n1\n2\n3\n4\n5\n6.5\n",
        MTX("array", "real", "symmetric") "3 3\n1\n2\n3\n4\n5\n6\n",
        MTX("array", "real", "skew-symmetric") "3 3\n1\n2\n3\n",
        MTX("array", "integer", "general") "1 2\n-3\n4\n",
        MTX("array", "integer", "symmetric") "2 2\n1\n2\n3\n",
        MTX("array", "integer", "skew-symmetric") "2 2\n1\n",
        MTX("coordinate", "real", "general") "0 0 0\n",
        MTX("array", "real", "general") "0 7\n",
        "%%matrixmarket MATRIX Coordinate REAL General\r\n% hello\r\n\r\n2 2 1\r\n1 2 3\r\n",
        MTX("coordinate", "real", "general") "%\n \t\n 2\t2  1 \n\n% x\n  1   2\t inf \n\n%end",
        MTX("coordinate", "real", "general") "9223372036854775807 9 3\n9223372036854775807 9 1\n"
                                             "5 1 0.12345678901234567\n4294967296 2 nan\n",
        MTX("coordinate", "real", "general") "1 1 3\n1 1 1e16\n1 1 1\n1 1 -1e16",
    };

    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return -1;
    memcpy(out, seeds[k], strlen(seeds[k]));
    return (int)strlen(seeds[k]);
}

static int give(Bench *b, const Text *t, uint8_t *out)
{
    int n = (int)t->n;

    FUZZ_CHECK(t->n <= FUZZ_MAX);
    memcpy(out, t->s, t->n);
    arena_free(&b->arena);
    return n;
}

int fuzz_npy_seed(int k, uint8_t *out)
{
    static const struct {
        int version;
        const char *dict;
        size_t n;
    } seeds[] = {
        { 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", 24 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24 },
        { 1, "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3), }", 12 },
        { 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (), }", 4 },
        { 1, "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 2, 2), }", 64 },
        { 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }", 5 },
        { 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (3, 1), }", 3 },
        { 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2), }", 6 },
        { 1, "{'descr': '<i2', 'fortran_order': False, 'shape': (4,), }", 8 },
        { 1, "{'descr': '>u2', 'fortran_order': False, 'shape': (4,), }", 8 },
        { 1, "{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }", 8 },
        { 1, "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }", 16 },
        { 1, "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 2), }", 32 },
        { 1, "{'descr': '=f4', 'fortran_order': False, 'shape': (1,), }", 4 },
        { 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }  \n", 16 },
        { 3, "{\"shape\":(1,1,),\"fortran_order\":False,\"descr\":\"<i4\"}", 4 },
        { 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }", 0 },
        { 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (0,), }", 0 },
        { 1, "{'descr':'<i4','fortran_order':True,'shape':(1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,1)}", 8 },
        { 1, "{'shape': (2, 3, 4), 'descr': '<i2', 'fortran_order': True}", 48 },
    };
    Bench b;
    Text t;
    size_t len;

    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return -1;
    bench_init(&b);
    t = (Text){ .arena = &b.arena };
    len = strlen(seeds[k].dict);
    text_put(&t, "\x93NUMPY", 6);
    zip_put(&t, 2, (uint64_t)seeds[k].version);
    zip_put(&t, seeds[k].version == 1 ? 2 : 4, len);
    text_put(&t, seeds[k].dict, len);
    for (size_t i = 0; i < seeds[k].n; i++)
        zip_put(&t, 1, i % 8 == 7 ? 0x3f : 17 * i);
    return give(&b, &t, out);
}

/* The header's length, from where the header ends. */
void fuzz_npy_mend(uint8_t *p, size_t n)
{
    const uint8_t *end = n < 12 ? NULL : memchr(p, '}', n);
    size_t start = end == NULL || p[6] == 1 ? 10 : 12, len;

    if (end == NULL || end < p + start)
        return;
    len = (size_t)(end + 1 - (p + start));
    for (size_t i = 8; i < start; i++)
        p[i] = (uint8_t)(len >> 8 * (i - 8));
}

static ZipMember make_member(Arena *arena, const char *name, int packing, const IoArray *a)
{
    Text plain = { .arena = arena }, packed = { .arena = arena };
    ZipMember m = { .name = name, .method = packing == 0 ? 0 : 8 };

    io_npy_print(&plain, a);
    if (packing == 0)
        packed = plain;
    else if (packing == 1)
        zip_deflate_stored(&packed, (const uint8_t *)plain.s, plain.n, 50);
    else
        zip_deflate_fixed(&packed, (const uint8_t *)plain.s, plain.n);
    m.packed = packed.s;
    m.npacked = packed.n;
    m.size = plain.n;
    m.crc = io_crc32((const uint8_t *)plain.s, plain.n);
    return m;
}

/* Forms by packings, with one to three members; then NumPy's own file, dynamic codes, and none. */
int fuzz_npz_seed(int k, uint8_t *out)
{
    static double data[6] = { 1, 2, 3, 3, 3, 0.1 };
    const IoArray arrays[] = { { "", IO_F64, 1, { 6 }, 6, data },
                               { "", IO_I32, 2, { 2, 3 }, 6, data },
                               { "", IO_F16, 0, { 0 }, 1, data } };
    static const char *const names[] = { "a.npy", "bcd.npy", "x y.npy" };
    const int last = 5 * ZIP_FORMS + 2;
    ZipMember m[3];
    Bench b;
    Text t;

    if (k > last)
        return -1;
    bench_init(&b);
    t = (Text){ .arena = &b.arena };
    for (int i = 0; i < 3; i++)
        m[i] = make_member(&b.arena, names[i], k < 3 * ZIP_FORMS ? k % 3 : i, &arrays[(i + k) % 3]);
    if (k == last - 1)
        m[0] = zip_skewed_member(&b.arena, "s.npy");
    if (k == last - 2)
        text_put(&t, (const char *)zip_numpy, sizeof zip_numpy);
    else
        zip_make(&t, m, k == last ? 0 : 1 + k % 3, (ZipForm)(k % ZIP_FORMS));
    return give(&b, &t, out);
}

int fuzz_inflate_seed(int k, uint8_t *out)
{
    static const char *const texts[] = { "", "a", "abcabcabcabc",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    const uint8_t *text = (const uint8_t *)texts[k / 2 % 4];
    size_t n = strlen(texts[k / 2 % 4]);
    Bench b;
    Text t;

    if (k > 10)
        return -1;
    bench_init(&b);
    t = (Text){ .arena = &b.arena };
    zip_put(&t, 2, k < 8 ? n : ZIP_SKEWED);
    if (k >= 8)
        text_put(&t, (const char *)zip_skewed, sizeof zip_skewed);
    else if (k % 2 == 0)
        zip_deflate_fixed(&t, text, n);
    else
        zip_deflate_stored(&t, text, n, 5);
    return give(&b, &t, out);
}

static uint8_t *find(uint8_t *from, const uint8_t *end, const char *sign)
{
    return from < end ? memmem(from, (size_t)(end - from), sign, 4) : NULL;
}

static uint64_t get(const uint8_t *p, int size)
{
    uint64_t v = 0;

    for (int i = size; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static void set(uint8_t *p, int size, uint64_t v)
{
    for (int i = 0; i < size; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* The checksum of a member's data; deflated ones must expand to the size that is declared. */
static uint32_t checksum(const uint8_t *p, size_t n, bool deflated, size_t size)
{
    static uint8_t out[1 << 16];
    jmp_buf trap;
    Err err = { .trap = &trap };
    Cursor c = io_cursor(&err, "mend", (Bytes){ p, n });

    if (!deflated)
        return io_crc32(p, n);
    if (size > sizeof out || setjmp(trap) != 0)
        return 0;
    io_inflate(&os_libc, &c, out, size);
    return io_crc32(out, size);
}

/* The sizes, checksum and place of the member at `local`, whose data end at `stop`. */
static void mend_member(uint8_t *file, uint8_t *local, uint8_t *stop, uint8_t *entry)
{
    uint8_t *data = local + 30 + get(local + 26, 2) + get(local + 28, 2);
    bool late = (get(local + 6, 2) & 8) != 0, deflated = get(entry + 10, 2) == 8;
    size_t n;

    if (data > stop || (late && stop - data < 16))
        return;
    n = (size_t)(stop - data) - (late ? 16 : 0);
    set(entry + 16, 4, checksum(data, n, deflated, get(entry + 24, 4)));
    if (get(entry + 42, 4) != 0xffffffff)
        set(entry + 42, 4, (uint64_t)(local - file));
    for (int field = 0; field < (deflated ? 1 : 2); field++) {
        if (get(entry + 20 + 4 * field, 4) != 0xffffffff)
            set(entry + 20 + 4 * field, 4, n);
        if (!late && get(local + 18 + 4 * field, 4) != 0xffffffff)
            set(local + 18 + 4 * field, 4, n);
    }
}

void fuzz_npz_mend(uint8_t *p, size_t n)
{
    uint8_t *dir = find(p, p + n, "PK\1\2"), *local = find(p, p + n, "PK\3\4"), *wide, *end;

    end = find(p, p + n, "PK\5\6");
    if (dir == NULL || end == NULL || end < dir || p + n - end < 22)
        return;
    wide = find(dir, end, "PK\6\6");
    for (uint8_t *entry = dir; entry != NULL && local != NULL && local + 30 < dir;) {
        uint8_t *next = find(local + 4, dir, "PK\3\4");

        if (end - entry < 46)
            break;
        mend_member(p, local, next == NULL ? dir : next, entry);
        local = next;
        entry = find(entry + 4, end, "PK\1\2");
    }
    if (wide != NULL && end - wide >= 76) {
        set(wide + 40, 8, (uint64_t)(wide - dir));
        set(wide + 48, 8, (uint64_t)(dir - p));
        set(end - 12, 8, (uint64_t)(wide - p));
    } else {
        set(end + 12, 4, (uint64_t)(end - dir));
        set(end + 16, 4, (uint64_t)(dir - p));
    }
    set(end + 20, 2, (uint64_t)(p + n - end - 22));
}
