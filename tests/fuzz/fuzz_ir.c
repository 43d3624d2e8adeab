/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The reader of program text under the fuzzing driver: what it accepts must print to a text that
 * reads back to the same program and prints the same, and copy, simplify and prune without harm.
 * fuzz_ir_change changes tokens and lines, so that many inputs get past the grammar. */
#include "fuzz/fuzz.h"
#include "ir/ir.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <string.h>

static const char *const seeds[] = {
    "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n"
    "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n",
    "program coo(nnz, m, n)\naxis E = nnz : i < m, j < n\nf64 A[E], X[n], Y[m]\n"
    "y: Y[i(e)] += A[e] * X[j(e)]\n",
    "program coo2(nnz, m, n)\naxis I = nnz : load < m\naxis J(I) = one : load < n\n"
    "f64 A[J], X[n], Y[m]\ny: Y[i] += A[j] * X[j]\n",
    "program band(m, n)\naxis I = m, B(I) = 5 : j = i + b - 2 < n padded\nf64 A[B], X[n], Y[I]\n"
    "y: Y[i] += A[b] * X[j(b)]\n",
    "program dia(nd, m, n)\naxis D = nd : off, R(D) = m : i = r < m, j = r + off(d) < n padded\n"
    "f64 A[R], X[n], Y[m]\ny: Y[i(r)] += A[r] * X[j(r)]\n",
    "program nm(m, ng, f)\naxis I = m, G(I) = ng, L(G) = 2 : o < 4, j = 4*g + o < 4*ng unique\n"
    "axis K = f\nf64 A[L], B[4*ng, K], C[I, K]\nc: C[i, k] += A[l] * B[j(l), k]\n",
    "program bsr(mb, nb)\naxis IB = mb, JB(IB) = seg : load < nb sorted unique, BI = 2, BJ = 2\n"
    "axis I = 2*mb : ib = i / 2 < mb, bi = i % 2 < 2\nf64 A[IB, JB, BI, BJ], X[2*nb], Y[I]\n"
    "y: for i, jb in JB(ib(i)), bj: Y[i] += A[ib(i), jb, bi(i), bj] * X[2*jb + bj]\n",
    "program sell(ns, n, m)\naxis S = ns, W(S) = seg, L(W) = 2 : j < n padded\ni64 row[S, 2]\n"
    "f64 A[L], X[n], Y[m]\ny: Y[row[s, loc(l)]] += A[l] * X[j(l)]\n",
    "program csf(a, b, c, f)\naxis I = dense(a), J = compressed(I, b), K = compressed(J, c)\n"
    "axis R = dense(f)\nf64 T[I, J, K], B[b, R], C[c, R], Y[I, R]\n"
    "y: Y[i, r] += T[i, j, k] * B[j, r] * C[k, r]\n",
    "program segmax(ng, f)\naxis G = ng, E(G) = seg, K = f\nf64 X[E, K], M[G, K] fill 0\n"
    "i64 W[G, K]\nm: M[g, k] max= X[e, k] at W[g, k] = pos(e)\n",
    "program attn(nodes, h0)\naxis I = nodes, E(I) = seg : j < nodes, H = h0\n"
    "f64 L[nodes, H], R[nodes, H], O[I, H]\ntemp f64 S[E, H], M[I, H], T[E, H], Z[I, H]\n"
    "s: S[e, h] = relu(L[i, h] + R[j(e), h]) - 0.2 * relu(-L[i, h] - R[j(e), h])\n"
    "m: M[i, h] max= S[e, h]\nt: T[e, h] = exp(S[e, h] - stop(M[i, h]))\n"
    "z: Z[i, h] += T[e, h]\no: O[i, h] += T[e, h] / Z[i, h] * R[j(e), h]\n",
    "program inter(m, n)\naxis I = m, J = compressed(I, n) sorted unique\n"
    "axis L(I) = seg : load < n sorted unique, U(I) = built : load < n\n"
    "f64 A[I, J], B[I, L], C[I, U]\nu: U(i) |= j if stored(B[i, j])\nc: C[i, u] = A[i, u] * B[i, u]\n",
    "program spgemm(m, l, n)\naxis I = m, E(I) = seg : j < l, J = l, F(J) = seg : k < n\n"
    "axis U(I) = built : load < n\nf64 A[E], B[F], C[I, U]\nsym: for i, e, f in F(j(e)): U(i) |= k(f)\n"
    "num: for i, e, f in F(j(e)): C[i, k(f)] += A[e] * B[f]\n",
    "program tp(n)\naxis B = n, S = 2, M(S) = {1, 3}, U(S) = {2, 2}\n"
    "axis P = rows s1 s2 { 0 1, 1 0 }, V(P) = {2, 1}\n"
    "axis Q(P) = rows m1 m2 -> c { 0 1 -> 0.5, 0 2 -> -1; 2 0 -> 1e-3 }\n"
    "f32 X[B, S, M, U], Z[B, S, M, U], W[P, V]\n"
    "z: Z[b, s2(p), m2(q), v] += c[q] * X[b, s1(p), m1(q), v] * W[p, v]\n",
    "program group(m, n)\naxis I = m, J = n\nf64 A[I, J], B[J], C[I], D[I, J], S[]\nfor i, j:\n"
    "    let t = A[i, j] * B[j]\n    let c = t < 0.5\n    C[i] += t\n"
    "    d(d, A.1): D[i, j] = t + 2 * t if i < j and not (j == 3 or c)\n"
    "s: for i, a in I, t in 4: S[] += C[i] * C[a] * select((i < a), 1.5e300, -inf)\n",
    "program kinds(n)\naxis P = 2, T(P) = {1, 2}, C(T) = one : table {7, 8, 9}\n"
    "const f64 G[2] = {0.1, -nan}; const i64 H[T] = {1, 2, 3}\ntemp f32 V[n] fill -0\n"
    "inout f16 Y[n] fill inf\nbf16 Z[n]; i32 W[n]\nv: for i in n: V[i] = f32(G[0]) / 3\ny: for i in n: Y[i] += V[i]\n",
    "program pos1(n, nnz)\naxis R = n : i < n, L(R) = 2 : j < n padded, E = nnz\ni64 P[L]\n"
    "f64 A[E], B[R, L], C[n]\nb: B[l] = A[@P[l]]\nc: C[i(r)] += B[_, l] * max(j(l), size(E))\n",
    "program p1(m, n, f) stage positions\naxis I = m, J = compressed(I, n), K = f\n"
    "f32 A[I, J], B[n, K], C[I, K]\nphase C.init for x in 0..m\n    for y in 0..f\n"
    "        C[x, y] = 0.0\nphase c for i in 0..m balance J.start\n"
    "    for j in J.start[i]..J.start[i + 1]\n        check J.coord[j] < n else index\n"
    "        for k in 0..f\n            C[i, k] += A[j] * B[J.coord[j], k]\n",
    "program p2(m, n) stage positions\naxis I = m, E(I) = seg : j < n unique, S = 2\n"
    "axis MS(S) = {1, 3}, U(S) = {4, 2}, Q = rows a b -> c { 0 1 -> 2.5, 1 0 -> 1 }\n"
    "f64 X[n, S, MS, U], Y[I]\ni64 W[I]\ntemp i32 Y.hit[I]\nphase y for i in 0..m\n"
    "    Y[i] = -inf\n    Y.hit[i] = 0\n    W[i] = -1\nphase z for i in 0..m\n"
    "    for e in E.start[i]..E.start[i + 1]\n        if E.j[e] < 3 and not e == 2\n"
    "            let v: i64 = find(E, E.start[i], E.start[i + 1], i)\n"
    "            check fits(v * i) else overflow\n            other.1: Y[i] max= c[Q.a[0]] * "
    "X[i, X.S.base[1] + MS.size[1]] at W[i] = above(E, e), Y.hit[i] = 1\n",
    "program p3(m, n) stage loops\ninout f32 A[m]\nf32 B[n], C[m, n]\nphase c vector for i in 0..m step 8\n"
    "    let v: f32x8 = A[i]\n    A[i] = v * v\nphase d(c,A.1) for i in 0..m\n"
    "    reg s: f32 = 0.0\n    let t = i * n\n    for k in 0..n\n"
    "        s += fma(A[i], B[k], 1.5)\n    C[t] = s\n    vector for k in 1..n step 4\n"
    "        C[t + k] = select(t < k, 1, 2)\nphase e\n    if m < 3\n        C[0] = 1\n",
};

int fuzz_ir_seed(int k, uint8_t *out)
{
    size_t n;

    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return -1;
    n = strlen(seeds[k]);
    memcpy(out, seeds[k], n);
    return (int)n;
}

/* What a token may become, with ~ between. */
static const char words[] =
    "axis~temp~inout~const~for~in~let~if~and~or~not~at~fill~rows~seg~one~built~load~table~ident~"
    "sorted~unique~padded~dense(~compressed(I, ~ragged(I)~ell(I, 2, ~inf~nan~size(~pos(~loc(~stored(~"
    "select(~exp(~max(~abs(~f32(~f64~i32~f16~i~j~e~I~E~A~X~n~t0~0~1~-1~2~0.5~1e400~"
    "9223372036854775807~-9223372036854775808~+~-~*~/~%~<~<=~>~>=~==~!=~=~+=~max=~min=~|=~->~@~_~"
    "(~)~[~]~{~}~,~:~;~\n~\n    ~ ~#~for:~(1, 2)~A[i]~d(z,X)~in 3~ at W[] = 1~ if i < 1~, i~{1, 2}~"
    "rows a -> c {~i + 1~not (i < 1)~@(i + 1)~[_, ~stage positions~stage loops~\nphase c for i in 0..~"
    "\n        ~vector for k in 0..n step 4~..~step~balance J.start~check ~ else index~reg s: f32 = ~"
    "let a: i64 = ~J.start[~X.S.base[~C.hit[~temp i32 ~fma(~fits(~find(E, ~above(E, ~f32x4~x1~k~"
    "near(J, ~lookup(E, ";

static size_t below(uint64_t *rng, size_t n)
{
    return n == 0 ? 0 : (size_t)(test_random(rng) % n);
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

typedef struct Piece {
    size_t at, n;
} Piece;

/* The token at, or the one after, a random place. */
static Piece token(uint64_t *rng, const uint8_t *p, size_t n)
{
    Piece s = { .at = below(rng, n) };

    while (s.at > 0 && is_word(p[s.at]) && is_word(p[s.at - 1]))
        s.at--;
    while (s.at < n && p[s.at] == ' ')
        s.at++;
    while (s.at + s.n < n && is_word(p[s.at + s.n]))
        s.n++;
    if (s.n == 0 && s.at < n)
        s.n = 1;
    return s;
}

/* A random word; its length. */
static size_t word(uint64_t *rng, const char **out)
{
    size_t at = below(rng, sizeof words - 1);

    while (at > 0 && words[at - 1] != '~')
        at--;
    *out = words + at;
    return strcspn(words + at, "~");
}

static Piece line(uint64_t *rng, const uint8_t *p, size_t n)
{
    Piece s = { .at = below(rng, n) };

    while (s.at > 0 && p[s.at - 1] != '\n')
        s.at--;
    while (s.at + s.n < n && p[s.at + s.n] != '\n')
        s.n++;
    s.n += s.at + s.n < n;
    return s;
}

/* Replaces a span by m bytes of q, if they fit; the new size. */
static size_t replace(uint8_t *p, size_t n, Piece s, const void *q, size_t m)
{
    if (n - s.n + m > FUZZ_MAX)
        return n;
    memmove(p + s.at + m, p + s.at + s.n, n - s.at - s.n);
    if (m > 0)
        memcpy(p + s.at, q, m);
    return n - s.n + m;
}

/* Tokens that may often stand for one another. */
static int kind(uint8_t c)
{
    if (is_word(c))
        return c >= 'a' ? 1 : c >= 'A' ? 2 : 3;
    return strchr("+-*/%", c) != NULL ? 4 : strchr("<>=!", c) != NULL ? 5 : 6;
}

/* A token of the same kind, if one is met soon. */
static Piece another(uint64_t *rng, const uint8_t *p, size_t n, Piece like)
{
    Piece t = token(rng, p, n);

    for (int i = 0; i < 16 && like.n > 0 && t.n > 0 && kind(p[t.at]) != kind(p[like.at]); i++)
        t = token(rng, p, n);
    return t;
}

size_t fuzz_ir_change(uint64_t *rng, uint8_t *p, size_t n)
{
    size_t what = below(rng, 20), m;
    bool lines = what >= 17;
    Piece a = lines ? line(rng, p, n) : token(rng, p, n);
    Piece b = lines ? line(rng, p, n) : another(rng, p, n, a);
    uint8_t copy[FUZZ_MAX];
    const char *other;

    m = word(rng, &other);
    memcpy(copy, p + b.at, b.n);
    switch (what) {
    case 0:
    case 1: return replace(p, n, a, other, m);
    case 2:
    case 3: return replace(p, n, (Piece){ .at = a.at }, other, m);
    case 4:
    case 17: return replace(p, n, a, NULL, 0);
    case 5:
    case 18: return replace(p, n, (Piece){ .at = a.at }, copy, b.n);
    default: return replace(p, n, a, copy, b.n);
    }
}

typedef struct Bench {
    Err err;
    Arena arena;
    Prog *p;
} Bench;

static bool is_same_text(const Text *a, const Text *b)
{
    return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* Printed, read and printed again it is the same. */
static void check_round(Bench *b)
{
    Text one = { .arena = &b->arena }, two = { .arena = &b->arena };
    Prog *again;

    FUZZ_CHECK(CATCH(&b->err, ir_print(&one, b->p);
                     again = ir_parse(&b->arena, "again", one.s, one.n); ir_check(again);
                     ir_print(&two, again)) == ST_OK);
    FUZZ_CHECK(is_same_text(&one, &two));
    FUZZ_CHECK(ir_equal(b->p, again) && ir_hash(b->p) == ir_hash(again));
}

/* Passes that every program goes through leave it a program. */
static void check_passes(Bench *b)
{
    Text one = { .arena = &b->arena }, two = { .arena = &b->arena };
    Memo memo = { 0 };

    FUZZ_CHECK(CATCH(&b->err, Prog *copy = ir_copy(&b->arena, b->p); ir_check(copy);
                     FUZZ_CHECK(ir_equal(copy, b->p)); ir_print(&one, copy); ir_print(&two, b->p);
                     FUZZ_CHECK(is_same_text(&one, &two)); ir_check(ir_prune(&b->arena, copy));
                     for (int i = 0; i < b->p->nstmt; i++)
                         ir_simplify(b->p, b->p->stmt[i]->assign[0].value, &memo)) == ST_OK);
}

/* The text after its first line, added to a program of that line: the reader itself copies nothing
 * here, so that a read past the end of the block is seen. */
static void check_more(const uint8_t *p, size_t n, Status want)
{
    const uint8_t *end = memchr(p, '\n', n);
    Bench b = { .p = NULL };
    Status got;

    if (end == NULL)
        return;
    arena_init(&b.arena, &os_libc, &b.err);
    got = CATCH(&b.err, b.p = ir_parse(&b.arena, "head", (const char *)p, (size_t)(end - p)));
    if (got == ST_OK)
        got = CATCH(&b.err, ir_parse_more(b.p, "rest", (const char *)end, (size_t)(p + n - end));
                    ir_check(b.p));
    FUZZ_CHECK(got == want || got == ST_PARSE); /* the header may go over several lines */
    arena_free(&b.arena);
}

int fuzz_ir(const uint8_t *p, size_t n)
{
    Bench b = { .p = NULL };
    Status s;

    arena_init(&b.arena, &os_libc, &b.err);
    s = CATCH(&b.err, b.p = ir_parse(&b.arena, "fuzz", (const char *)p, n); ir_check(b.p));
    FUZZ_CHECK(s == ST_OK || (b.err.msg[0] != 0 && b.err.line > 0));
    FUZZ_CHECK(s == ST_OK || s == ST_PARSE || s == ST_CHECK || s == ST_LIMIT);
    if (s == ST_OK) {
        check_round(&b);
        check_passes(&b);
    }
    if (p[n / 2] % 8 == 0)
        check_more(p, n, s);
    FUZZ_CHECK(b.arena.total <= FUZZ_MEMORY);
    arena_free(&b.arena);
    return s == ST_OK;
}
