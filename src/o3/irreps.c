/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Irreps: read, printed, sorted and filtered as e3nn does, so that texts and orders carry over. */
#include "o3/o3_int.h"

#include <ctype.h>
#include <string.h>

enum { MAX_MUL = 1 << 30, MAX_SLOTS = 100000 };

typedef struct Reader {
    Arena *arena;
    const char *text, *at, *end;
} Reader;

_Noreturn static void refuse(const Reader *r, const char *why)
{
    err_throw(r->arena->err, ST_PARSE, "irreps \"%.*s\": %s at character %d; as in \"8x0e + 4x1o\"",
              (int)(r->end - r->text < 200 ? r->end - r->text : 200), r->text, why,
              (int)(r->at - r->text) + 1);
}

static void skip_blanks(Reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static int64_t number(Reader *r, int64_t most, const char *what)
{
    const char *from = r->at;
    int64_t v;

    while (r->at < r->end && isdigit((unsigned char)*r->at))
        r->at++;
    if (from == r->at)
        refuse(r, what);
    if (!num_parse_int(from, (size_t)(r->at - from), &v) || v > most) {
        r->at = from;
        refuse(r, "a number that is too large");
    }
    return v;
}

/* "8x1o", "1o", or with y for the parity of the spherical harmonics, "1y". */
static O3Slot slot(Reader *r)
{
    O3Slot s = { .mul = 1 };
    const char *from;
    int64_t v;

    skip_blanks(r);
    from = r->at;
    v = number(r, MAX_MUL, "a multiplicity or a degree is missing");
    skip_blanks(r);
    if (r->at < r->end && *r->at == 'x') {
        r->at++;
        s.mul = v;
        skip_blanks(r);
        from = r->at;
        v = number(r, MAX_MUL, "a degree is missing");
    }
    if (v > O3_MAX_L) {
        r->at = from;
        refuse(r, "a degree that is too large");
    }
    s.ir.l = (int)v;
    if (r->at == r->end || strchr("eoy", *r->at) == NULL)
        refuse(r, "a parity (e or o) is missing");
    s.ir.p = *r->at == 'e' || (*r->at == 'y' && v % 2 == 0) ? 1 : -1;
    r->at++;
    skip_blanks(r);
    return s;
}

O3Irreps o3_irreps_n(Arena *arena, const char *text, size_t n)
{
    Reader r = { arena, text, text, text + n };
    O3Slot *at = NULL;
    int count = 0, cap = 0;

    skip_blanks(&r);
    while (r.at < r.end || count > 0) {
        at = arena_grow(arena, at, count, &cap, sizeof *at);
        at[count++] = slot(&r);
        if (count > MAX_SLOTS)
            err_throw(arena->err, ST_LIMIT, "irreps of more than %d slots", MAX_SLOTS);
        if (r.at == r.end)
            break;
        if (*r.at != '+')
            refuse(&r, "a + is missing");
        r.at++;
    }
    return (O3Irreps){ count, at };
}

O3Irreps o3_irreps(Arena *arena, const char *text)
{
    return o3_irreps_n(arena, text, strlen(text));
}

void o3_irreps_print(Text *out, O3Irreps irreps)
{
    text_str(out, "");
    for (int i = 0; i < irreps.n; i++)
        text_f(out, "%s%lldx%d%c", i > 0 ? "+" : "", (long long)irreps.at[i].mul, irreps.at[i].ir.l,
               irreps.at[i].ir.p > 0 ? 'e' : 'o');
}

O3Irreps o3_irreps_sh(Arena *arena, int lmax, int p)
{
    O3Slot *at = arena_array(arena, lmax + 1, sizeof *at);

    for (int l = 0; l <= lmax; l++)
        at[l] = (O3Slot){ 1, { l, l % 2 == 0 ? 1 : p } };
    return (O3Irreps){ lmax + 1, at };
}

int64_t o3_dim(O3Irreps irreps)
{
    int64_t n = 0;

    for (int i = 0; i < irreps.n; i++)
        n += irreps.at[i].mul * o3_ir_dim(irreps.at[i].ir);
    return n;
}

int64_t o3_num(O3Irreps irreps)
{
    int64_t n = 0;

    for (int i = 0; i < irreps.n; i++)
        n += irreps.at[i].mul;
    return n;
}

/* As e3nn has it, slots of multiplicity 0 do not count. */
int o3_lmax(O3Irreps irreps)
{
    int l = -1;

    for (int i = 0; i < irreps.n; i++)
        if (irreps.at[i].mul > 0 && irreps.at[i].ir.l > l)
            l = irreps.at[i].ir.l;
    return l;
}

int64_t o3_count(O3Irreps irreps, O3Irrep ir)
{
    int64_t n = 0;

    for (int i = 0; i < irreps.n; i++)
        if (o3_ir_same(irreps.at[i].ir, ir))
            n += irreps.at[i].mul;
    return n;
}

bool o3_has(O3Irreps irreps, O3Irrep ir)
{
    for (int i = 0; i < irreps.n; i++)
        if (o3_ir_same(irreps.at[i].ir, ir))
            return true;
    return false;
}

bool o3_irreps_equal(O3Irreps a, O3Irreps b)
{
    for (int i = 0; a.n == b.n && i < a.n; i++)
        if (a.at[i].mul != b.at[i].mul || !o3_ir_same(a.at[i].ir, b.at[i].ir))
            return false;
    return a.n == b.n;
}

bool o3_allows(O3Irrep a, O3Irrep b, O3Irrep c)
{
    int low = a.l > b.l ? a.l - b.l : b.l - a.l;

    return c.p == a.p * b.p && c.l >= low && c.l <= a.l + b.l;
}

O3Sorted o3_sort(Arena *arena, O3Irreps irreps)
{
    O3Slot *at = arena_array(arena, irreps.n, sizeof *at);
    int *to = arena_array(arena, irreps.n, sizeof *to);
    int *from = arena_array(arena, irreps.n, sizeof *from);
    int n = 0;

    for (int p = 0; p <= 2 * O3_MAX_L + 1; p++) /* by irrep: there are few of them */
        for (int i = 0; i < irreps.n; i++)
            if (2 * irreps.at[i].ir.l + (irreps.at[i].ir.p > 0) == p) {
                at[n] = irreps.at[i];
                from[n] = i;
                to[i] = n++;
            }
    return (O3Sorted){ { n, at }, to, from };
}

O3Irreps o3_simplify(Arena *arena, O3Irreps irreps)
{
    O3Slot *at = arena_array(arena, irreps.n, sizeof *at);
    int n = 0;

    for (int i = 0; i < irreps.n; i++)
        if (n > 0 && o3_ir_same(at[n - 1].ir, irreps.at[i].ir))
            at[n - 1].mul += irreps.at[i].mul;
        else if (irreps.at[i].mul > 0)
            at[n++] = irreps.at[i];
    return (O3Irreps){ n, at };
}

O3Irreps o3_regroup(Arena *arena, O3Irreps irreps)
{
    return o3_simplify(arena, o3_sort(arena, irreps).irreps);
}

O3Irreps o3_filter(Arena *arena, O3Irreps irreps, O3Irreps which, bool keep)
{
    O3Slot *at = arena_array(arena, irreps.n, sizeof *at);
    int n = 0;

    for (int i = 0; i < irreps.n; i++)
        if (o3_has(which, irreps.at[i].ir) == keep)
            at[n++] = irreps.at[i];
    return (O3Irreps){ n, at };
}

int64_t *o3_slices(Arena *arena, O3Irreps irreps)
{
    int64_t *start = arena_array(arena, irreps.n + 1, sizeof *start);

    for (int i = 0; i < irreps.n; i++)
        start[i + 1] = start[i] + irreps.at[i].mul * o3_ir_dim(irreps.at[i].ir);
    return start;
}

int64_t *o3_muls(Arena *arena, O3Irreps irreps)
{
    int64_t *mul = arena_array(arena, irreps.n, sizeof *mul);

    for (int i = 0; i < irreps.n; i++)
        mul[i] = irreps.at[i].mul;
    return mul;
}

int64_t *o3_dims(Arena *arena, O3Irreps irreps)
{
    int64_t *dim = arena_array(arena, irreps.n, sizeof *dim);

    for (int i = 0; i < irreps.n; i++)
        dim[i] = o3_ir_dim(irreps.at[i].ir);
    return dim;
}
