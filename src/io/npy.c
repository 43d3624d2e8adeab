/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * NumPy's .npy to array and back; npz.c calls it for each member.  The header is a Python dict,
 * read here as what it is: three known keys, nothing evaluated. */
#include "io/io_int.h"

#include <string.h>

typedef struct Npy {
    Cursor c;  /* over the header, then over the data */
    char kind; /* as NumPy names it: f, i, u or b */
    int size;  /* bytes of an element in the file */
    bool big;
    bool fortran;
    IoArray *out;
} Npy;

/* What a file may hold, and what it becomes; a type is written as its first row says. */
static const struct {
    const char *descr;
    IoType type;
} types[] = {
    { "f2", IO_F16 }, { "f4", IO_F32 }, { "f8", IO_F64 }, { "i4", IO_I32 },
    { "i8", IO_I64 }, { "b1", IO_I32 }, { "i1", IO_I32 }, { "u1", IO_I32 },
    { "i2", IO_I32 }, { "u2", IO_I32 }, { "u4", IO_I64 }, { "u8", IO_I64 },
};
enum { TYPES = sizeof types / sizeof *types };

size_t io_type_size(IoType type)
{
    static const size_t size[] = {
        [IO_I32] = 4, [IO_I64] = 8, [IO_F16] = 2, [IO_F32] = 4, [IO_F64] = 8
    };

    return size[type];
}

static bool host_is_big(void)
{
    const uint16_t one = 1;
    uint8_t first;

    memcpy(&first, &one, 1);
    return first == 0;
}

static bool is_text(Bytes b, const char *s)
{
    return b.n == strlen(s) && memcmp(b.p, s, b.n) == 0;
}

static void skip_space(Cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

static bool accept(Cursor *c, char sign)
{
    skip_space(c);
    if (c->p == c->end || *c->p != (uint8_t)sign)
        return false;
    c->p++;
    return true;
}

static void expect(Cursor *c, char sign)
{
    if (!accept(c, sign))
        io_fail(c, c->p, ST_PARSE, "the header lacks a '%c' here; the file is damaged", sign);
}

static Bytes take_string(Cursor *c)
{
    const uint8_t *p, *stop;
    uint8_t quote;

    skip_space(c);
    quote = c->p < c->end ? *c->p : 0;
    if (quote != '\'' && quote != '"')
        io_fail(c, c->p, ST_PARSE, "the header lacks a string here; the file is damaged");
    p = ++c->p;
    stop = memchr(p, quote, io_left(c));
    if (stop == NULL)
        io_fail(c, p, ST_PARSE, "the header has a string without end; the file is damaged");
    c->p = stop + 1;
    return (Bytes){ p, (size_t)(stop - p) };
}

static _Noreturn void refuse_descr(const Cursor *c, Bytes whole, uint8_t kind)
{
    static const struct {
        char kind;
        const char *why;
    } refused[] = {
        { 'O', "Python objects are not read, as that could run code; save numbers" },
        { 'c', "complex numbers are not supported; save the real and the imaginary part as two "
               "arrays" },
        { 'V', "raw bytes are not supported; bfloat16 is saved like this: save it as float32" },
        { 'S', "text is not supported; save numbers" },
        { 'U', "text is not supported; save numbers" },
        { 'M', "dates are not supported; save them as int64" },
        { 'm', "times are not supported; save them as int64" },
    };
    const char *why = "this type is not supported; convert it with .astype('f8')";
    char quote[IO_QUOTE];

    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
        if (refused[k].kind == kind)
            why = refused[k].why;
    io_fail(c, whole.p, ST_PARSE, "dtype '%s': %s", io_quote(quote, whole.p, whole.n), why);
}

static void read_descr(Npy *t)
{
    Bytes whole, b;

    skip_space(&t->c);
    if (t->c.p < t->c.end && *t->c.p == '[')
        io_fail(&t->c, t->c.p, ST_PARSE,
                "structured arrays are not supported; save each field as an array of its own");
    whole = b = take_string(&t->c);
    t->big = host_is_big();
    if (b.n > 0 && memchr("<>=|", b.p[0], 4) != NULL) {
        if (b.p[0] == '<' || b.p[0] == '>')
            t->big = b.p[0] == '>';
        b = (Bytes){ b.p + 1, b.n - 1 };
    }
    for (int k = 0; k < TYPES; k++) {
        if (is_text(b, types[k].descr)) {
            t->kind = types[k].descr[0];
            t->size = types[k].descr[1] - '0';
            t->out->type = types[k].type;
            return;
        }
    }
    refuse_descr(&t->c, whole, b.n > 0 ? b.p[0] : 0);
}

static void read_order(Npy *t)
{
    Cursor *c = &t->c;
    size_t left;

    skip_space(c);
    left = io_left(c);
    t->fortran = left >= 4 && memcmp(c->p, "True", 4) == 0;
    if (!t->fortran && (left < 5 || memcmp(c->p, "False", 5) != 0))
        io_fail(c, c->p, ST_PARSE,
                "'fortran_order' is neither True nor False; the file is damaged");
    c->p += t->fortran ? 4 : 5;
}

static int64_t take_extent(Cursor *c)
{
    const uint8_t *start;
    int64_t v = 0;

    skip_space(c);
    start = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (int_mul(v, 10, &v) || int_add(v, *c->p - '0', &v))
            io_fail(c, start, ST_PARSE, "an extent exceeds 64 bits; the file is damaged");
    if (c->p == start)
        io_fail(c, start, ST_PARSE, "'shape' lacks a number here; the file is damaged");
    return v;
}

static void read_shape(Npy *t)
{
    Cursor *c = &t->c;
    IoArray *a = t->out;

    expect(c, '(');
    while (!accept(c, ')')) {
        if (a->ndim == IO_RANK)
            io_fail(c, c->p, ST_LIMIT,
                    "the array has more than %d dimensions, which is the limit; reshape it",
                    IO_RANK);
        a->dim[a->ndim++] = take_extent(c);
        if (accept(c, ','))
            continue;
        if (a->ndim == 1)
            expect(c, ','); /* in Python, (3) is no tuple */
        expect(c, ')');
        break;
    }
}

static const struct {
    const char *name;
    void (*read)(Npy *);
} keys[] = { { "descr", read_descr }, { "fortran_order", read_order }, { "shape", read_shape } };
enum { KEYS = sizeof keys / sizeof *keys };

static int take_key(Cursor *c)
{
    Bytes b = take_string(c);
    char quote[IO_QUOTE];

    for (int k = 0; k < KEYS; k++)
        if (is_text(b, keys[k].name))
            return k;
    io_fail(c, b.p, ST_PARSE, "the header has the unknown key '%s'; the file is damaged",
            io_quote(quote, b.p, b.n));
}

static void read_dict(Npy *t)
{
    Cursor *c = &t->c;
    bool seen[KEYS] = { false };

    expect(c, '{');
    while (!accept(c, '}')) {
        int k = take_key(c);

        if (seen[k])
            io_fail(c, c->p, ST_PARSE, "the header has '%s' twice; the file is damaged",
                    keys[k].name);
        seen[k] = true;
        expect(c, ':');
        keys[k].read(t);
        if (accept(c, ','))
            continue;
        expect(c, '}');
        break;
    }
    for (int k = 0; k < KEYS; k++)
        if (!seen[k])
            io_fail(c, c->p, ST_PARSE, "the header lacks '%s'; the file is damaged", keys[k].name);
    skip_space(c);
    if (c->p < c->end)
        io_fail(c, c->p, ST_PARSE, "the header goes on after its dict; the file is damaged");
}

static void read_header(Npy *t)
{
    Cursor *c = &t->c;
    const uint8_t *end = c->end;
    unsigned major, minor;
    uint64_t n;

    if (io_left(c) < 6 || memcmp(c->p, "\x93NUMPY", 6) != 0)
        io_fail(c, NULL, ST_PARSE,
                "this is no .npy file, which begins with \\x93NUMPY; write it with numpy.save");
    c->p += 6;
    major = (unsigned)io_take_le(c, 1, "the version");
    minor = (unsigned)io_take_le(c, 1, "the version");
    if (major < 1 || major > 3 || minor != 0)
        io_fail(c, c->p, ST_PARSE,
                "version %u.%u of the format is not known; versions 1.0, 2.0 and 3.0 are", major,
                minor);
    n = io_take_le(c, major == 1 ? 2 : 4, "the length of the header");
    c->end = io_take(c, n, "the header") + n;
    c->p = c->end - n;
    read_dict(t);
    c->end = end;
}

/* The rest of the file must be the array, neither more nor less. */
static void check_size(Npy *t)
{
    IoArray *a = t->out;
    int64_t bytes = t->size;
    bool empty = false;

    for (int d = 0; d < a->ndim; d++) {
        if (a->dim[d] == 0)
            empty = true;
        else if (int_mul(bytes, a->dim[d], &bytes))
            io_fail(&t->c, t->c.p, ST_PARSE,
                    "the shape has too many elements to be counted; the file is damaged");
    }
    bytes = empty ? 0 : bytes;
    if ((uint64_t)bytes != io_left(&t->c))
        io_fail(&t->c, t->c.p, ST_PARSE,
                "the shape takes %lld bytes, but %zu follow the header; the file is damaged or "
                "incomplete",
                (long long)bytes, io_left(&t->c));
    a->n = bytes / t->size;
}

static uint64_t load(const Npy *t, const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 0; i < t->size; i++)
        v = v << 8 | p[t->big ? i : t->size - 1 - i];
    return v;
}

/* The bits of an element in its own width, made those of a wider one. */
static uint64_t widen(const Npy *t, const uint8_t *p, uint64_t v)
{
    uint64_t sign = (uint64_t)1 << (8 * t->size - 1);

    if (t->kind == 'i')
        return (v ^ sign) - sign;
    if (t->kind == 'b')
        return v != 0;
    if (t->kind == 'u' && v > INT64_MAX)
        io_fail(&t->c, p, ST_PARSE,
                "the value %llu does not fit a signed integer of 64 bits; save the array as "
                "float64",
                (unsigned long long)v);
    return v;
}

static void store(const Npy *t, int64_t p, uint64_t v)
{
    switch (io_type_size(t->out->type)) {
    case 2: ((uint16_t *)t->out->data)[p] = (uint16_t)v; break;
    case 4: ((uint32_t *)t->out->data)[p] = (uint32_t)v; break;
    default: ((uint64_t *)t->out->data)[p] = v;
    }
}

/* Element by element in C order; `at` follows in the order of the file. */
static void convert(const Npy *t)
{
    const IoArray *a = t->out;
    int64_t stride[IO_RANK], i[IO_RANK] = { 0 }, at = 0, step = 1;

    for (int d = 0; d < a->ndim; d++) {
        int e = t->fortran ? d : a->ndim - 1 - d;

        stride[e] = step;
        step *= a->dim[e];
    }
    for (int64_t p = 0; p < a->n; p++) {
        const uint8_t *from = t->c.p + at * t->size;

        store(t, p, widen(t, from, load(t, from)));
        for (int d = a->ndim; d-- > 0;) {
            at += stride[d];
            if (++i[d] < a->dim[d])
                break;
            at -= stride[d] * a->dim[d];
            i[d] = 0;
        }
    }
}

void io_npy_read(Arena *arena, Cursor c, bool own, IoArray *out)
{
    Npy t = { .c = c, .out = out };
    size_t size;

    *out = (IoArray){ .name = "" };
    read_header(&t);
    check_size(&t);
    size = io_type_size(out->type);
    if ((size_t)t.size != size || t.kind == 'u' || t.big != host_is_big() ||
        (t.fortran && out->ndim > 1)) {
        out->data = arena_array(arena, out->n, size);
        convert(&t);
    } else if (own && (uintptr_t)t.c.p % size == 0) {
        out->data = (void *)(uintptr_t)t.c.p;
    } else {
        out->data = arena_copy(arena, t.c.p, io_left(&t.c));
    }
}

void io_npy_parse(Arena *arena, Bytes b, const char *file, IoArray *out)
{
    io_npy_read(arena, io_cursor(arena->err, file, b), false, out);
}

static void print_dict(Text *out, const IoArray *a)
{
    int k = 0;

    while (types[k].type != a->type)
        k++;
    text_f(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", host_is_big() ? '>' : '<',
           types[k].descr);
    for (int d = 0; d < a->ndim; d++)
        text_f(out, "%s%lld", d == 0 ? "" : ", ", (long long)a->dim[d]);
    text_str(out, a->ndim == 1 ? ",), }" : "), }");
}

void io_npy_print(Text *out, const IoArray *a)
{
    Text dict = { .arena = out->arena };

    print_dict(&dict, a);
    while ((10 + dict.n + 1) % 64 != 0) /* so that the data are aligned in a mapped file */
        text_char(&dict, ' ');
    text_char(&dict, '\n');
    text_put(out, "\x93NUMPY\x01", 8);
    text_char(out, (char)(dict.n & 255));
    text_char(out, (char)(dict.n >> 8));
    text_put(out, dict.s, dict.n);
    text_put(out, a->data, (size_t)a->n * io_type_size(a->type));
}
