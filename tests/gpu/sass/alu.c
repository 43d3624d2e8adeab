/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operations on integers and predicates.  Those of the uniform datapath are the same functions: a
 * uniform register has its value in all 32 places. */
#include "gpu/sass/numbers.h"
#include "gpu/sass/ops.h"

/* Where the sources begin: after the result come predicates that an operation sets too. */
static int sources(const Ins *i)
{
    int k = 1;

    while (k < i->args && is_pred(&i->arg[k]))
        k++;
    return k;
}

void op_mov(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes t;

    if (has(i, M_64)) { /* ULDC.64 */
        uint32_t *to = dest(w, &i->arg[0]);
        const uint32_t *v = raw(w, &i->arg[1]);

        put_to(to, v, mask);
        put_to(to + LANES, v + LANES, mask);
        return;
    }
    put(w, &i->arg[0], ints(w, &i->arg[1], t), mask);
}

/* ---- Multiply and add */
static uint64_t product(const Ins *i, uint32_t a, uint32_t b)
{
    return has(i, M_U32) ? (uint64_t)a * b : (uint64_t)((int64_t)(int32_t)a * (int32_t)b);
}

/* IMAD.WIDE adds 64 bits and keeps them; IMAD.HI keeps the upper half. */
static void imad_wide(Warp *w, const Ins *i, uint32_t mask)
{
    const int k = sources(i);
    Lanes ta, tb;
    const uint32_t *a = ints(w, &i->arg[k], ta), *b = ints(w, &i->arg[k + 1], tb),
                   *c = raw(w, &i->arg[k + 2]);
    const uint32_t carry = has(i, M_X) ? pred(w, &i->arg[k + 3]) : 0;
    uint64_t v[LANES];
    uint32_t out = 0;

    for (EACH(l, mask)) {
        const uint64_t p = product(i, a[l], b[l]);
        uint64_t add =
            i->arg[k + 2].kind == ARG_VALUE ? (uint64_t)i->arg[k + 2].value : pair_at(c, l);

        add = i->arg[k + 2].neg ? 0 - add : i->arg[k + 2].inv ? ~add : add;
        const unsigned __int128 sum = (unsigned __int128)p + add + (carry >> l & 1);

        v[l] = (uint64_t)sum;
        out |= (uint32_t)(sum >> 64 & 1) << l;
    }
    if (has(i, M_WIDE)) {
        put_pair(w, &i->arg[0], v, mask);
    } else {
        Lanes t;

        for (EACH(l, mask))
            t[l] = (uint32_t)(v[l] >> 32);
        put(w, &i->arg[0], t, mask);
    }
    if (k > 1)
        put_pred(w, &i->arg[1], out, mask);
}

void op_imad(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, tc, v;

    if (has(i, M_MOV)) {
        put(w, &i->arg[0], ints(w, &i->arg[3], tc), mask);
        return;
    }
    if (has(i, M_WIDE) || has(i, M_HI)) {
        imad_wide(w, i, mask);
        return;
    }
    const int k = sources(i);
    const uint32_t *a = ints(w, &i->arg[k], ta), *b = ints(w, &i->arg[k + 1], tb),
                   *c = ints(w, &i->arg[k + 2], tc);

    for (int l = 0; l < LANES; l++)
        v[l] = a[l] * b[l] + c[l];
    if (has(i, M_X)) {
        const uint32_t carry = pred(w, &i->arg[k + 3]);

        for (int l = 0; l < LANES; l++)
            v[l] += carry >> l & 1;
    }
    put(w, &i->arg[0], v, mask);
}

/* A sum of up to three terms, with carries in and out.  -x is ~x + 1, so that a - b carries when a
 * >= b. */
void op_iadd3(Warp *w, const Ins *i, uint32_t mask)
{
    const int k = sources(i);
    uint64_t sum[LANES] = { 0 };
    Lanes v;

    for (int n = k; n < k + 3; n++) {
        const Arg *a = &i->arg[n];
        const uint32_t *x = raw(w, a), flip = a->neg || a->inv ? ~0u : 0;

        for (int l = 0; l < LANES; l++)
            sum[l] += (x[l] ^ flip) + (uint64_t)a->neg;
    }
    for (int n = k + 3; n < i->args; n++) {
        const uint32_t carry = pred(w, &i->arg[n]);

        for (int l = 0; l < LANES; l++)
            sum[l] += carry >> l & 1;
    }
    for (int l = 0; l < LANES; l++)
        v[l] = (uint32_t)sum[l];
    put(w, &i->arg[0], v, mask);
    for (int n = 1; n < k; n++) {
        uint32_t out = 0;

        for (int l = 0; l < LANES; l++)
            out |= (uint32_t)(sum[l] >> 32 >= (uint64_t)n) << l;
        put_pred(w, &i->arg[n], out, mask);
    }
}

/* LEA: (a << n) + b; LEA.HI: the upper half of (c:a) << n, or of a extended, and b. */
void op_lea(Warp *w, const Ins *i, uint32_t mask)
{
    const int k = sources(i), last = i->args - 1 - has(i, M_X);
    const Arg *bb = &i->arg[k + 1];
    const int n = (int)i->arg[last].value & 31;
    const uint32_t carry = has(i, M_X) ? pred(w, &i->arg[i->args - 1]) : 0,
                   flip = bb->neg || bb->inv ? ~0u : 0;
    const bool less = i->arg[k].neg && !has(i, M_HI); /* -(a << n) is ~(a << n) + 1, as of IADD3 */
    Lanes ta, tc, v;
    const uint32_t *a = less ? raw(w, &i->arg[k]) : ints(w, &i->arg[k], ta), *b = raw(w, bb);
    const uint32_t *c = has(i, M_HI) && !has(i, M_SX32) ? ints(w, &i->arg[k + 2], tc) : NULL;
    uint32_t out = 0;

    for (int l = 0; l < LANES; l++) {
        const uint64_t whole =
            c != NULL ? (uint64_t)c[l] << 32 | a[l] : (uint64_t)(int64_t)(int32_t)a[l];
        const uint32_t shifted = has(i, M_HI) ? (uint32_t)(whole << n >> 32) : a[l] << n;
        const uint32_t x = less ? ~shifted : shifted;
        const uint64_t sum =
            (uint64_t)x + (b[l] ^ flip) + bb->neg + less + (carry >> l & 1);

        v[l] = (uint32_t)sum;
        out |= (uint32_t)(sum >> 32) << l;
    }
    put(w, &i->arg[0], v, mask);
    if (k > 1)
        put_pred(w, &i->arg[1], out, mask);
}

/* ---- Logic */
static uint32_t table_of(uint32_t lut, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r = 0;

    for (int n = 0; n < 8; n++)
        if (lut >> n & 1)
            r |= (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
    return r;
}

void op_lop3(Warp *w, const Ins *i, uint32_t mask)
{
    const int k = is_pred(&i->arg[0]), s = k + 1; /* a predicate comes before the result */
    const uint32_t lut = (uint32_t)i->arg[s + 3].value;
    Lanes ta, tb, tc, v;
    const uint32_t *a = ints(w, &i->arg[s], ta), *b = ints(w, &i->arg[s + 1], tb),
                   *c = ints(w, &i->arg[s + 2], tc);
    uint32_t any = 0;

    switch (lut) {
    case 0xc0:
        for (int l = 0; l < LANES; l++)
            v[l] = a[l] & b[l];
        break;
    case 0x3c:
        for (int l = 0; l < LANES; l++)
            v[l] = a[l] ^ b[l];
        break;
    case 0xfc:
        for (int l = 0; l < LANES; l++)
            v[l] = a[l] | b[l];
        break;
    default:
        for (int l = 0; l < LANES; l++)
            v[l] = table_of(lut, a[l], b[l], c[l]);
    }
    put(w, &i->arg[k], v, mask);
    if (k == 0)
        return;
    for (int l = 0; l < LANES; l++)
        any |= (uint32_t)(v[l] != 0) << l;
    /* the last operand is or-ed: !PT as a rule */
    put_pred(w, &i->arg[0], i->args > s + 4 ? any | pred(w, &i->arg[s + 4]) : any, mask);
}

void op_plop3(Warp *w, const Ins *i, uint32_t mask)
{
    const uint32_t a = pred(w, &i->arg[2]), b = pred(w, &i->arg[3]), c = pred(w, &i->arg[4]);
    const uint32_t first = table_of((uint32_t)i->arg[5].value, a, b, c),
                   second = table_of((uint32_t)i->arg[6].value, a, b, c);

    put_pred(w, &i->arg[0], first, mask);
    put_pred(w, &i->arg[1], second, mask);
}

/* A shift of (c:a), of which one half is kept.  Counts over the width shift everything out, with .W
 * they are taken modulo the width. */
void op_shf(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, tc, v;
    const uint32_t *a = ints(w, &i->arg[1], ta), *n = ints(w, &i->arg[2], tb),
                   *c = ints(w, &i->arg[3], tc);
    const bool left = has(i, M_L), hi = has(i, M_HI), sign = has(i, M_S32) || has(i, M_S64);
    const uint32_t width = has(i, M_U64) || has(i, M_S64) ? 64 : 32;

    for (int l = 0; l < LANES; l++) {
        const uint32_t by = has(i, M_W) ? n[l] & (width - 1) : n[l] < width ? n[l] : width;
        const uint64_t whole = (uint64_t)c[l] << 32 | a[l];
        const uint32_t by63 = by < 64 ? by : 63;
        const uint64_t shifted = left      ? (by < 64 ? whole << by : 0)
                                 : sign    ? (uint64_t)((int64_t)whole >> by63)
                                 : by < 64 ? whole >> by
                                           : 0;

        v[l] = (uint32_t)(hi ? shifted >> 32 : shifted);
    }
    put(w, &i->arg[0], v, mask);
}

/* ---- Comparison and choice */
static bool compares(int mode, int64_t a, int64_t b)
{
    switch (mode) {
    case M_EQ: return a == b;
    case M_NE: return a != b;
    case M_LT: return a < b;
    case M_LE: return a <= b;
    case M_GT: return a > b;
    case M_GE: return a >= b;
    case M_T: return true;
    default: return false;
    }
}

static uint32_t joined(const Ins *i, uint32_t a, uint32_t b)
{
    return has(i, M_OR) ? a | b : has(i, M_XOR) ? a ^ b : a & b;
}

/* .EX goes on with the comparison of the lower halves, its last operand. */
void op_isetp(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb;
    const uint32_t *a = ints(w, &i->arg[2], ta), *b = ints(w, &i->arg[3], tb),
                   with = pred(w, &i->arg[4]);
    const uint32_t low = has(i, M_EX) ? pred(w, &i->arg[5]) : 0;
    const bool strict = i->mode == M_LE || i->mode == M_GE, sign = !has(i, M_U32);
    const int mode = !has(i, M_EX) || !strict ? i->mode : i->mode == M_LE ? M_LT : M_GT;
    uint32_t r = 0;

    for (int l = 0; l < LANES; l++) {
        const int64_t x = sign ? (int32_t)a[l] : (int64_t)a[l],
                      y = sign ? (int32_t)b[l] : (int64_t)b[l];
        bool is = compares(mode, x, y);

        if (has(i, M_EX))
            is = i->mode == M_NE   ? is || (low >> l & 1)
                 : i->mode == M_EQ ? is && (low >> l & 1)
                                   : is || (x == y && (low >> l & 1));
        r |= (uint32_t)is << l;
    }
    put_pred(w, &i->arg[0], joined(i, r, with), mask);
    put_pred(w, &i->arg[1], joined(i, ~r, with), mask);
}

static void choose(Warp *w, const Ins *i, uint32_t mask, const uint32_t *a, const uint32_t *b)
{
    const uint32_t p = pred(w, &i->arg[3]);
    Lanes v;

    for (int l = 0; l < LANES; l++)
        v[l] = p >> l & 1 ? a[l] : b[l];
    put(w, &i->arg[0], v, mask);
}

void op_sel(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb;

    choose(w, i, mask, ints(w, &i->arg[1], ta), ints(w, &i->arg[2], tb));
}

void op_fsel(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb;

    choose(w, i, mask, bits(w, &i->arg[1], ta), bits(w, &i->arg[2], tb));
}

void op_imnmx(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, v;
    const uint32_t *a = ints(w, &i->arg[1], ta), *b = ints(w, &i->arg[2], tb),
                   least = pred(w, &i->arg[3]);
    const uint32_t flip = has(i, M_U32) ? 0 : 0x80000000u;

    for (int l = 0; l < LANES; l++) {
        const bool below = (a[l] ^ flip) < (b[l] ^ flip);

        v[l] = below == (least >> l & 1) ? a[l] : b[l];
    }
    put(w, &i->arg[0], v, mask);
}

/* ---- One operand */
void op_iabs(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = ints(w, &i->arg[1], ta);

    for (int l = 0; l < LANES; l++)
        v[l] = (int32_t)a[l] < 0 ? 0 - a[l] : a[l];
    put(w, &i->arg[0], v, mask);
}

void op_popc(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = ints(w, &i->arg[1], ta);

    for (int l = 0; l < LANES; l++)
        v[l] = (uint32_t)__builtin_popcount(a[l]);
    put(w, &i->arg[0], v, mask);
}

/* The place of the highest bit that is set (signed: that differs from the sign), -1: there is none;
 * with .SH its distance from bit 31. */
void op_flo(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = ints(w, &i->arg[1], ta);

    for (int l = 0; l < LANES; l++) {
        const uint32_t x = !has(i, M_U32) && (int32_t)a[l] < 0 ? ~a[l] : a[l];
        const uint32_t place = x == 0 ? ~0u : 31 - (uint32_t)__builtin_clz(x);

        v[l] = has(i, M_SH) && x != 0 ? 31 - place : place;
    }
    put(w, &i->arg[0], v, mask);
}

void op_brev(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = ints(w, &i->arg[1], ta);

    for (int l = 0; l < LANES; l++) {
        uint32_t r = 0;

        for (int n = 0; n < 32; n++)
            r |= (a[l] >> n & 1) << (31 - n);
        v[l] = r;
    }
    put(w, &i->arg[0], v, mask);
}

/* Each digit of the selector takes a byte of (c:a), or with bit 3 copies of its sign. */
void op_prmt(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, tc, v;
    const uint32_t *a = ints(w, &i->arg[1], ta), *s = ints(w, &i->arg[2], tb),
                   *c = ints(w, &i->arg[3], tc);

    for (int l = 0; l < LANES; l++) {
        const uint64_t whole = (uint64_t)c[l] << 32 | a[l];
        uint32_t r = 0;

        for (int n = 0; n < 4; n++) {
            const uint32_t digit = s[l] >> 4 * n & 15;
            uint32_t byte = (uint32_t)(whole >> 8 * (digit & 7)) & 0xff;

            if (digit & 8)
                byte = byte & 0x80 ? 0xff : 0;
            r |= byte << 8 * n;
        }
        v[l] = r;
    }
    put(w, &i->arg[0], v, mask);
}

void op_sgxt(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, v;
    const uint32_t *a = ints(w, &i->arg[1], ta), *b = ints(w, &i->arg[2], tb);

    for (int l = 0; l < LANES; l++) {
        const uint32_t n = has(i, M_W) ? b[l] & 31 : b[l] < 32 ? b[l] : 32;

        v[l] = n == 0          ? 0
               : has(i, M_U32) ? a[l] << (32 - n) >> (32 - n)
                               : (uint32_t)((int32_t)(a[l] << (32 - n)) >> (32 - n));
    }
    put(w, &i->arg[0], v, mask);
}

void op_bmsk(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, v;
    const uint32_t *a = ints(w, &i->arg[1], ta), *b = ints(w, &i->arg[2], tb);

    for (int l = 0; l < LANES; l++) {
        const uint32_t from = a[l] < 32 ? a[l] : 32, n = b[l] < 32 ? b[l] : 32;

        v[l] = (uint32_t)(((UINT64_C(1) << n) - 1) << from);
    }
    put(w, &i->arg[0], v, mask);
}

/* ---- Predicates and registers */
void op_p2r(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, v;
    const uint32_t *a = ints(w, &i->arg[2], ta), *keep = ints(w, &i->arg[3], tb);

    for (int l = 0; l < LANES; l++) {
        uint32_t x = 0;

        for (int k = 0; k < 7; k++)
            x |= (w->p[k] >> l & 1) << k;
        v[l] = (a[l] & ~keep[l]) | (x & keep[l]);
    }
    put(w, &i->arg[0], v, mask);
}

void op_r2p(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb;
    const uint32_t *a = ints(w, &i->arg[1], ta), *keep = ints(w, &i->arg[2], tb);

    for (int k = 0; k < 7; k++) {
        uint32_t set = 0, in = 0;

        for (int l = 0; l < LANES; l++) {
            set |= (a[l] >> k & 1) << l;
            in |= (keep[l] >> k & 1) << l;
        }
        in &= mask;
        w->p[k] = (w->p[k] & ~in) | (set & in);
    }
}

void op_r2ur(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = ints(w, &i->arg[i->args - 1], ta), x = a[__builtin_ctz(mask)];

    for (int l = 0; l < LANES; l++)
        v[l] = x;
    put(w, &i->arg[0], v, ALL_LANES);
}

static uint32_t special(Warp *w, const Ins *i, const char *name, uint32_t l)
{
    static const char *const names[] = { "SR_TID.X",   "SR_TID.Y",   "SR_TID.Z",
                                         "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z" };

    for (int k = 0; k < 6; k++)
        if (strcmp(name, names[k]) == 0)
            return k < 3 ? w->tid[k][l] : w->run->at[k - 3];
    if (strcmp(name, "SR_LANEID") == 0)
        return l;
    if (strcmp(name, "SR_EQMASK") == 0)
        return 1u << l;
    if (strcmp(name, "SR_LTMASK") == 0)
        return (1u << l) - 1;
    if (strcmp(name, "SR_LEMASK") == 0)
        return (1u << l) | ((1u << l) - 1);
    if (strcmp(name, "SR_GTMASK") == 0)
        return ~((1u << l) | ((1u << l) - 1));
    if (strcmp(name, "SR_GEMASK") == 0)
        return ~((1u << l) - 1);
    if (strcmp(name, "SR_LMEMHIOFF") == 0 || strcmp(name, "SRZ") == 0)
        return 0;
    if (strncmp(name, "SR_CLOCK", 8) == 0)
        return (uint32_t)w->run->budget;
    fail(w, i, l, "the register %s is not known", name);
    return 0;
}

void op_s2r(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes v = { 0 };

    for (EACH(l, mask))
        v[l] = special(w, i, i->arg[1].name, l);
    if (i->arg[0].kind == ARG_UREG) { /* S2UR: the same for all */
        for (uint32_t l = 0; l < LANES; l++)
            v[l] = v[__builtin_ctz(mask)];
        mask = ALL_LANES;
    }
    put(w, &i->arg[0], v, mask);
}

void op_cs2r(Warp *w, const Ins *i, uint32_t mask)
{
    uint64_t v[LANES] = { 0 };
    Lanes low;

    for (EACH(l, mask)) {
        low[l] = special(w, i, i->arg[1].name, l);
        v[l] = low[l];
    }
    if (has(i, M_32))
        put(w, &i->arg[0], low, mask);
    else
        put_pair(w, &i->arg[0], v, mask);
}

/* LDC: a constant at an address that a register tells. */
void op_ldc(Warp *w, const Ins *i, uint32_t mask)
{
    const Arg *a = &i->arg[1];
    size_t bytes;
    const unsigned char *bank = constant_bank(w->run, i->function, a->bank, &bytes);
    const bool sign = has(i, M_S8) || has(i, M_S16);
    uint64_t v[LANES] = { 0 };
    Lanes low = { 0 };

    for (EACH(l, mask)) {
        const uint64_t at =
            (uint64_t)((int64_t)(int32_t)(w->r[a->reg][l] + w->ur[a->ureg][l]) + a->value);

        if (at > bytes || i->bytes > bytes - at) {
            fail(w, i, l, "constant bank %d has no %d bytes at %#llx", a->bank, i->bytes,
                 (unsigned long long)at);
            return;
        }
        memcpy(&v[l], bank + at, i->bytes);
        if (sign)
            v[l] =
                i->bytes == 1 ? (uint64_t)(int64_t)(int8_t)v[l] : (uint64_t)(int64_t)(int16_t)v[l];
        low[l] = (uint32_t)v[l];
    }
    if (i->bytes == 8)
        put_pair(w, &i->arg[0], v, mask);
    else
        put(w, &i->arg[0], low, mask);
}

/* ---- Lanes meet */
void op_vote(Warp *w, const Ins *i, uint32_t mask)
{
    const uint32_t active = i->uniform ? w->act : mask, p = pred(w, &i->arg[i->args - 1]) & active;
    const bool all = p == active, yes = has(i, M_ANY)   ? p != 0
                                        : has(i, M_ALL) ? all
                                                        : all || p == 0;
    const int k = is_pred(&i->arg[0]) ? 0 : 1;
    Lanes v;

    w->pending = 0;
    if (k == 1) {
        for (int l = 0; l < LANES; l++)
            v[l] = p;
        put(w, &i->arg[0], v, i->arg[0].kind == ARG_UREG ? ALL_LANES : mask);
    }
    put_pred(w, &i->arg[k], yes ? ALL_LANES : 0, i->arg[k].kind == ARG_UPRED ? ALL_LANES : mask);
}

void op_match(Warp *w, const Ins *i, uint32_t mask)
{
    const Arg *a = &i->arg[i->args - 1];
    const uint32_t *x = raw(w, a);
    const int k = is_pred(&i->arg[0]);
    uint32_t equal = 0;
    Lanes v = { 0 };

    w->pending = 0;
    for (EACH(l, mask)) {
        for (uint32_t m = 0; m < LANES; m++)
            if (mask >> m & 1 && (has(i, M_U64) ? pair_at(x, m) == pair_at(x, l) : x[m] == x[l]))
                v[l] |= 1u << m;
        equal |= (uint32_t)(v[l] == mask) << l;
    }
    if (has(i, M_ALL))
        for (EACH(l, mask))
            v[l] = equal == mask ? mask : 0;
    put(w, &i->arg[k], v, mask);
    if (k == 1)
        put_pred(w, &i->arg[0], equal == mask ? ALL_LANES : 0, mask);
}

void op_redux(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = ints(w, &i->arg[1], ta), flip = has(i, M_S32) ? 0x80000000u : 0;
    uint32_t r = a[__builtin_ctz(mask)];

    w->pending = 0;
    for (EACH(l, mask & (mask - 1))) {
        const uint32_t x = a[l];

        r = has(i, M_SUM)                                ? r + x
            : has(i, M_OR)                               ? r | x
            : has(i, M_AND)                              ? r & x
            : has(i, M_XOR)                              ? r ^ x
            : ((x ^ flip) < (r ^ flip)) == has(i, M_MIN) ? x
                                                         : r;
    }
    for (int l = 0; l < LANES; l++)
        v[l] = r;
    put(w, &i->arg[0], v, ALL_LANES);
}

/* The lane that lane l reads, and whether it is in range: c has the last lane of a segment in its
 * lower five bits and the segment's bits above. */
static bool shuffled(const Ins *i, uint32_t l, uint32_t b, uint32_t c, uint32_t *from)
{
    const uint32_t segment = c >> 8 & 31, clamp = c & 31, least = l & segment,
                   most = least | (clamp & ~segment);
    bool in;

    b &= 31;
    if (has(i, M_IDX)) {
        *from = least | (b & ~segment);
        in = *from <= most;
    } else if (has(i, M_BFLY)) {
        *from = l ^ b;
        in = *from <= most;
    } else if (has(i, M_DOWN)) {
        *from = l + b;
        in = *from <= most;
    } else {
        *from = l - b;
        in = (int32_t)*from >= (int32_t)most;
    }
    if (!in)
        *from = l;
    return in;
}

void op_shfl(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, tc, v;
    const uint32_t *a = ints(w, &i->arg[2], ta), *b = ints(w, &i->arg[3], tb),
                   *c = ints(w, &i->arg[4], tc);
    uint32_t in = 0;

    w->pending = 0;
    for (EACH(l, mask)) {
        uint32_t from;

        in |= (uint32_t)shuffled(i, l, b[l], c[l], &from) << l;
        if (!(mask >> from & 1)) {
            fail(w, i, l, "the lane reads lane %u, which takes no part in the shuffle", from);
            return;
        }
        v[l] = a[from];
    }
    put(w, &i->arg[1], v, mask);
    put_pred(w, &i->arg[0], in, mask);
}

/* What the last reducing barrier gave. */
void op_b2r(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes v;

    for (int l = 0; l < LANES; l++)
        v[l] = (uint32_t)w->voted;
    put(w, &i->arg[0], v, mask);
    if (i->args > 1)
        put_pred(w, &i->arg[1], w->voted != 0 ? ALL_LANES : 0, mask);
}

/* Between registers and those of barriers of convergence. */
void op_bmov(Warp *w, const Ins *i, uint32_t mask)
{
    const bool to = i->arg[0].kind == ARG_NAME;
    const int n = i->arg[to ? 0 : 1].name[1] - '0';

    if (i->arg[to ? 0 : 1].name[0] != 'B' || n < 0 || n > 9) {
        fail(w, i, (uint32_t)__builtin_ctz(mask), "the barrier %s is not known",
             i->arg[to ? 0 : 1].name);
        return;
    }
    if (to) {
        put_to(w->b[n], raw(w, &i->arg[1]), mask);
        return;
    }
    put(w, &i->arg[0], w->b[n], mask);
    if (has(i, M_CLEAR))
        for (EACH(l, mask))
            w->b[n][l] = 0;
}

void op_nothing(Warp *w, const Ins *i, uint32_t mask)
{
    (void)w, (void)i, (void)mask;
}

void op_trap(Warp *w, const Ins *i, uint32_t mask)
{
    fail(w, i, (uint32_t)__builtin_ctz(mask), "the kernel traps");
}
