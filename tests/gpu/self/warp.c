/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The kernels of warp.cu against the same computations on the host.  Data are small integers, so
 * that sums are exact in any order.  Each runs with lanes and warps in order, and in an order that
 * is drawn. */
#include "gpu/self/self.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, ROOM = 1 << 14 };

/* Buffers of one run: inputs are drawn, outputs compared with what the host wrote. */
typedef struct Bed {
    const char *variant;
    uint64_t seed;
    SassGpu *gpu;
    SassParams params;
} Bed;

static float in_f[ROOM], out_f[ROOM], want_f[ROOM];
static int32_t in_i[ROOM], out_i[ROOM], want_i[ROOM];

static uint64_t input(Bed *b, const void *p, size_t bytes)
{
    const uint64_t at = sass_buffer(b->gpu, "input", (void *)(uintptr_t)p, bytes, SASS_INPUT);

    sass_param64(&b->params, at);
    return at;
}

static void output(Bed *b, void *p, size_t bytes, enum SassBuffer kind)
{
    sass_param64(&b->params, sass_buffer(b->gpu, "output", p, bytes, kind));
}

static void start(Bed *b)
{
    uint64_t state = 11;

    b->gpu = sass_gpu();
    b->params = (SassParams){ .size = 0 };
    sass_seed(b->gpu, b->seed);
    for (int k = 0; k < ROOM; k++) {
        in_f[k] = (float)(int)(test_random(&state) % 201) - 100;
        in_i[k] = (int32_t)(test_random(&state) % 100000);
    }
    memset(out_f, 0, sizeof out_f);
    memset(out_i, 0, sizeof out_i);
}

static void run(Bed *b, const char *name, unsigned blocks, unsigned threads)
{
    self_run(b->gpu, self_code("warp", b->variant), name, (SassShape){ { blocks }, { threads }, 0 },
             &b->params);
}

static void finish(Bed *b)
{
    sass_gpu_free(b->gpu);
}

static void same(const Bed *b, const char *name, const void *got, const void *want, size_t bytes)
{
    for (size_t k = 0; k < bytes / 4; k++)
        if (memcmp((const char *)got + 4 * k, (const char *)want + 4 * k, 4) != 0)
            test_fail(__FILE__, __LINE__, "%s, %s, seed %d: word %zu is %#x, not %#x", name,
                      b->variant, (int)b->seed, k, ((const uint32_t *)got)[k],
                      ((const uint32_t *)want)[k]);
}

/* Every variant, in order and with three drawn orders. */
static void each(void (*test)(Bed *))
{
    for (int v = 0; v < VARIANTS; v++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            Bed b = { .variant = variant_name[v], .seed = seed };

            start(&b);
            test(&b);
            finish(&b);
        }
}

/* ---- Lanes */
static float lane_of(const float *a, int base, int l, int from, int width)
{
    const int first = l / width * width;

    return a[base + (from >= first && from < first + width ? from : l)];
}

static void shuffles(Bed *b)
{
    input(b, in_f, 2 * N * 4);
    output(b, out_f, 2 * N * 4, SASS_FRESH);
    run(b, "shuffles", 2, N);
    for (int i = 0; i < 2 * N; i++) {
        const int l = i & 31, w = i & ~31;

        want_f[i] = lane_of(in_f, w, l, l ^ 5, 32) + 2 * lane_of(in_f, w, l, l - 3, 32) +
                    4 * lane_of(in_f, w, l, l + 7, 32) + 8 * in_f[w + ((l * 7 + 3) & 31)] +
                    16 * lane_of(in_f, w, l, l ^ 3, 8) + 32 * in_f[w + (l & 16) + 2] +
                    64 * lane_of(in_f, w, l, l + 2, 4) + 128 * lane_of(in_f, w, l, l - 9, 16) +
                    256 * in_f[w + ((l ^ 12) < l / 8 * 8 + 8 ? l ^ 12 : l)];
    }
    same(b, "shuffles", out_f, want_f, 2 * N * 4);
}

static void votes(Bed *b)
{
    input(b, in_f, 2 * N * 4);
    output(b, out_i, 2 * N * 4, SASS_FRESH);
    run(b, "votes", 2, N);
    for (int i = 0; i < 2 * N; i++) {
        const int w = i & ~31;
        uint32_t ballot = 0, equal = 0, any = 0, all = 1, sum = 0, or = 0;
        int most = 0;

        for (int k = w; k < w + 32; k++) {
            ballot |= (uint32_t)(in_f[k] > 0) << (k - w);
            equal += ((int)in_f[k] & 3) == ((int)in_f[i] & 3);
            any |= in_f[k] > 90;
            all &= in_f[k] > -1000;
            sum += (uint32_t)k;
            most = k * 37 % 101 > most ? k * 37 % 101 : most;
            or |= 1u << (k & 7);
        }
        want_i[i] = (int32_t)((ballot + equal + 0xffffffffu + 1) * 4 + any * 2 + all + sum +
                                  (uint32_t)most +
                              or +0xffffffffu);
    }
    same(b, "votes", out_i, want_i, 2 * N * 4);
}

static void half_shuffle(Bed *b)
{
    input(b, in_f, 32 * 4);
    output(b, out_f, 32 * 4, SASS_FRESH);
    sass_param32(&b->params, 16);
    run(b, "half_shuffle", 1, 32);
    for (int l = 0; l < 32; l++)
        want_f[l] = l < 16 ? in_f[l] + in_f[l ^ 3] : in_f[l] - in_f[l ^ 5];
    same(b, "half_shuffle", out_f, want_f, 32 * 4);
}

static void fold_warp(Bed *b)
{
    const int n = 77;

    input(b, in_f, (size_t)(8 * n) * 4);
    output(b, out_f, 8 * 4, SASS_FRESH);
    sass_param32(&b->params, (uint32_t)n);
    run(b, "fold_warp", 2, N);
    for (int w = 0; w < 8; w++) {
        want_f[w] = 0;
        for (int k = 0; k < n; k++)
            want_f[w] += in_f[w * n + k];
    }
    same(b, "fold_warp", out_f, want_f, 8 * 4);
}

TEST(shuffles_read_other_lanes)
{
    each(shuffles);
}
TEST(votes_and_reductions_see_all_lanes)
{
    each(votes);
}
TEST(two_halves_of_a_warp_shuffle_apart)
{
    each(half_shuffle);
}
TEST(a_warp_folds_a_sum)
{
    each(fold_warp);
}

/* ---- Shared memory */
static void turn_tile(Bed *b)
{
    const int n = 64;

    input(b, in_f, (size_t)(n * n) * 4);
    output(b, out_f, (size_t)(n * n) * 4, SASS_FRESH);
    sass_param32(&b->params, (uint32_t)n);
    self_run(b->gpu, self_code("warp", b->variant), "turn_tile",
             (SassShape){ { 2, 2 }, { 32, 4 }, 0 }, &b->params);
    for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++)
            want_f[c * n + r] = in_f[r * n + c];
    same(b, "turn_tile", out_f, want_f, (size_t)(n * n) * 4);
}

static void sum_block(Bed *b)
{
    input(b, in_f, 4 * N * 4);
    output(b, out_f, 4 * 4, SASS_FRESH);
    self_run(b->gpu, self_code("warp", b->variant), "sum_block", (SassShape){ { 4 }, { N }, N * 4 },
             &b->params);
    for (int k = 0; k < 4; k++) {
        want_f[k] = 0;
        for (int i = 0; i < N; i++)
            want_f[k] += in_f[k * N + i];
    }
    same(b, "sum_block", out_f, want_f, 4 * 4);
}

static void warp_exchange(Bed *b)
{
    const int n = 5;

    input(b, in_f, N * 4);
    output(b, out_f, N * 4, SASS_FRESH);
    sass_param32(&b->params, (uint32_t)n);
    run(b, "warp_exchange", 1, N);
    for (int t = 0; t < N; t++) {
        want_f[t] = 0;
        for (int i = 0; i < n + t / 32; i++)
            want_f[t] += in_f[((t ^ 1) + i * 13) & 127] * (float)(i + 1);
    }
    same(b, "warp_exchange", out_f, want_f, N * 4);
}

static void half_exchange(Bed *b)
{
    input(b, in_f, 64 * 4);
    output(b, out_f, 64 * 4, SASS_FRESH);
    run(b, "half_exchange", 1, 64);
    for (int t = 0; t < 64; t++) {
        want_f[t] = 0;
        for (int i = 0; i < 2 + (t >> 4 & 1) * 3; i++)
            want_f[t] += in_f[t ^ 5] + (float)i;
    }
    same(b, "half_exchange", out_f, want_f, 64 * 4);
}

static void narrow_shared(Bed *b)
{
    const uint8_t *a = (const uint8_t *)in_i;
    uint8_t bytes[256];
    uint16_t halves[256], want[256], got[256];
    int8_t signs[256], want_signs[256];

    input(b, a, 256);
    output(b, got, sizeof got, SASS_FRESH);
    output(b, signs, sizeof signs, SASS_FRESH);
    run(b, "narrow_shared", 1, 256);
    for (int t = 0; t < 256; t++)
        bytes[t] = (uint8_t)(a[t] * 3);
    for (int t = 0; t < 256; t++)
        halves[t] = (uint16_t)(bytes[255 - t] * 257u + (unsigned)t);
    for (int t = 0; t < 256; t++) {
        want[t] = halves[t ^ 33];
        want_signs[t] = (int8_t)((int8_t)bytes[t] >> 1);
    }
    same(b, "narrow_shared", got, want, sizeof got);
    same(b, "narrow_shared", signs, want_signs, sizeof signs);
}

static void wide_shared(Bed *b)
{
    static double pairs[128], want[128];

    input(b, in_f, 64 * 16);
    output(b, out_f, 64 * 16, SASS_FRESH);
    output(b, pairs, sizeof pairs, SASS_FRESH);
    run(b, "wide_shared", 1, 64);
    for (int t = 0; t < 64; t++) {
        const float *v = in_f + 4 * (63 - t), *w = in_f + 2 * t;

        want_f[4 * t] = v[0] + w[0];
        want_f[4 * t + 1] = v[1] - w[1];
        want_f[4 * t + 2] = v[2] * 2;
        want_f[4 * t + 3] = v[3];
        want[2 * t] = v[0];
        want[2 * t + 1] = w[1];
    }
    same(b, "wide_shared", out_f, want_f, 64 * 16);
    same(b, "wide_shared", pairs, want, sizeof want);
}

static void count_block(Bed *b)
{
    int n = 0;

    input(b, in_i, N * 4);
    output(b, out_i, N * 4, SASS_FRESH);
    run(b, "count_block", 1, N);
    for (int t = 0; t < N; t++)
        n += in_i[t] & 1;
    for (int t = 0; t < N; t++)
        want_i[t] = n * 4 + 1;
    same(b, "count_block", out_i, want_i, N * 4);
}

TEST(a_tile_is_turned_through_shared_memory)
{
    each(turn_tile);
}
TEST(a_block_sums_in_dynamic_shared_memory)
{
    each(sum_block);
}
TEST(warps_exchange_values_as_often_as_they_like)
{
    each(warp_exchange);
}
TEST(halves_of_a_warp_synchronise_apart)
{
    each(half_exchange);
}
TEST(bytes_and_halves_of_shared_memory)
{
    each(narrow_shared);
}
TEST(wide_accesses_of_shared_memory)
{
    each(wide_shared);
}
TEST(barriers_count_predicates)
{
    each(count_block);
}

/* ---- Control flow */
static int nest(int v, int *s)
{
    *s = 0;
    for (int k = 0; k < (v & 7); k++) {
        for (int m = 0; m < ((v >> 3) & 7); m++) {
            if (((k ^ m ^ v) & 3) == 0)
                continue;
            *s = *s * 5 + k - m;
            if (*s > 100000)
                break;
            if (*s < -100000)
                return 1;
        }
        if ((*s & 15) == 9)
            return 0;
    }
    return 1;
}

static void nested(Bed *b)
{
    const int n = 2 * N - 9;

    for (int i = 0; i < n; i++)
        out_i[i] = want_i[i] = -5;
    input(b, in_i, (size_t)n * 4);
    output(b, out_i, (size_t)n * 4, SASS_INOUT);
    sass_param32(&b->params, (uint32_t)n);
    run(b, "nested", 2, N);
    for (int i = 0; i < n; i++) {
        int s;

        if (nest(in_i[i], &s))
            want_i[i] = s;
    }
    same(b, "nested", out_i, want_i, (size_t)n * 4);
}

static int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static void recursion(Bed *b)
{
    input(b, in_i, 64 * 4);
    output(b, out_i, 64 * 4, SASS_FRESH);
    run(b, "recursion", 1, 64);
    for (int t = 0; t < 64; t++)
        want_i[t] = ackermann(in_i[t] & 1, in_i[t] >> 4 & 3);
    same(b, "recursion", out_i, want_i, 64 * 4);
}

static int switched(int v, int s, int old)
{
    switch (v & 15) {
    case 0: return s * 3;
    case 1: return s + old;
    case 2: return s ^ 0x55;
    case 3: return s - v;
    case 4: return s * s;
    case 5: return s / 3;
    case 6: return v % 11;
    case 7: return ~s;
    case 8: return s << 3;
    case 9: return __builtin_popcount((unsigned)v);
    case 10: return v & s;
    case 11: return v | s;
    default: return -1;
    }
}

static void big_switch(Bed *b)
{
    for (int t = 0; t < N; t++)
        out_i[t] = 1000 + t;
    input(b, in_i, N * 4);
    output(b, out_i, N * 4, SASS_INOUT);
    run(b, "big_switch", 1, N);
    for (int t = 0; t < N; t++)
        want_i[t] = switched(in_i[t], t, 1000 + t);
    same(b, "big_switch", out_i, want_i, N * 4);
}

static void jumped(int v, int t, int *to, float *real)
{
    const int32_t *a = in_i;
    const float *f = in_f;
    int s = t;
    float x = f[t];

    switch (v) {
    case 0: s *= 3, x = sqrtf(x * x); break;
    case 1: s += a[s ^ 1], x += 1; break;
    case 2: s ^= 0x55, x += f[s & 31]; break;
    case 3: s -= v, x *= x + 1; break;
    case 4: s = s * s, x = x / 3; break;
    case 5: s /= 3, x = x * (float)s; break;
    case 6: s = a[s] % 11, x = -x; break;
    case 7: s = ~s, x += f[s & 31]; break;
    case 8: s <<= 3, x -= f[(s + 1) & 31]; break;
    case 9: s = __builtin_popcount((unsigned)s), x *= f[(s * 5) & 31]; break;
    case 10: s &= 7, x = 1 / (x + 0.5f); break;
    case 11: s |= 8, x = fabsf(x) + f[7]; break;
    case 12: s += a[12], x = 3; break;
    case 13: s -= 13, x += f[13]; break;
    case 14: s = s * s * s, x = x * x; break;
    case 15: s = 77, x = x / (f[3] + 0.5f); break;
    default: break;
    }
    *to = s;
    *real = x;
}

static void jump(Bed *b)
{
    for (int t = 0; t < N; t++)
        in_i[t] %= 20;
    input(b, in_i, N * 4);
    input(b, in_f, N * 4);
    output(b, out_i, N * 4, SASS_FRESH);
    output(b, out_f, N * 4, SASS_FRESH);
    run(b, "jump", 1, N);
    for (int t = 0; t < N; t++)
        jumped(in_i[t], t, &want_i[t], &want_f[t]);
    same(b, "jump", out_i, want_i, N * 4);
    same(b, "jump", out_f, want_f, N * 4);
}

TEST(lanes_leave_nested_loops_in_every_way)
{
    each(nested);
}
TEST(functions_call_themselves)
{
    each(recursion);
}
TEST(lanes_jump_by_a_table)
{
    each(jump);
}

TEST(lanes_take_all_ways_of_a_switch)
{
    each(big_switch);
}

/* ---- Memory */
static void stack_array(Bed *b)
{
    input(b, in_i, N * 4);
    output(b, out_i, N * 4, SASS_FRESH);
    run(b, "stack_array", 1, N);
    for (int t = 0; t < N; t++) {
        int v[16], s = 0;

        for (int i = 0; i < 16; i++)
            v[i] = in_i[t] * i;
        for (int i = 0; i < 16; i++)
            v[(in_i[t] + i * 3) & 15] += i;
        for (int i = 0; i < 16; i++)
            s = (int)((unsigned)s * 3 + (unsigned)v[(i * 5 + t) & 15]);
        want_i[t] = s;
    }
    same(b, "stack_array", out_i, want_i, N * 4);
}

static void tables(Bed *b)
{
    static const float table[8] = { 1.5f, -2, 3, 4.25f, 5, 6, 7, 8.5f };

    input(b, in_i, N * 4);
    output(b, out_f, N * 4, SASS_FRESH);
    run(b, "tables", 1, N);
    for (int t = 0; t < N; t++)
        want_f[t] = table[in_i[t] & 7] + table[2] + (float)(10 * ((in_i[t] & 0xff) % 5 + 1));
    same(b, "tables", out_f, want_f, N * 4);
}

static void generic(Bed *b)
{
    input(b, in_f, 64 * 4);
    output(b, out_f, 64 * 4, SASS_FRESH);
    run(b, "generic", 1, 64);
    for (int t = 0; t < 64; t++)
        want_f[t] = 2 * (t % 3 == 0   ? in_f[t & 7] * 3
                         : t % 3 == 1 ? in_f[t & 7] + (float)t
                                      : in_f[t & 7]);
    same(b, "generic", out_f, want_f, 64 * 4);
}

static void narrow_types(Bed *b)
{
    const int8_t *a = (const int8_t *)in_i;
    const uint16_t *h = (const uint16_t *)in_f;
    int16_t got[N], want[N];
    uint8_t bytes[N], want_bytes[N];

    input(b, a, N);
    input(b, h, 2 * N);
    output(b, got, sizeof got, SASS_FRESH);
    output(b, bytes, sizeof bytes, SASS_FRESH);
    run(b, "narrow_types", 1, N);
    for (int t = 0; t < N; t++) {
        want[t] = (int16_t)(a[t] * 3 + h[t]);
        want_bytes[t] = (uint8_t)(a[t] + (h[t] >> 8));
    }
    same(b, "narrow_types", got, want, sizeof got);
    same(b, "narrow_types", bytes, want_bytes, sizeof bytes);
}

static float brain(uint16_t x)
{
    const uint32_t b = (uint32_t)x << 16;
    float f;

    memcpy(&f, &b, 4);
    return f;
}

static uint16_t to_brain(float f)
{
    uint32_t b;

    memcpy(&b, &f, 4);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static void halves(Bed *b)
{
    _Float16 a[N], got[N], want[N];
    uint16_t h[N], got_h[N], want_h[N];

    for (int t = 0; t < N; t++) {
        a[t] = (_Float16)(in_f[t] * (t % 7 == 0 ? 1e-6f : 0.37f));
        h[t] = to_brain(in_f[t + N] * 1.7f);
        want[t] = (_Float16)((float)a[t] * 1.5f + brain(h[t]));
        want_h[t] = to_brain(brain(h[t]) * 0.7f + 1.0f);
    }
    input(b, a, sizeof a);
    input(b, h, sizeof h);
    output(b, got, sizeof got, SASS_FRESH);
    output(b, got_h, sizeof got_h, SASS_FRESH);
    run(b, "halves", 1, N);
    same(b, "halves", got, want, sizeof got);
    same(b, "halves", got_h, want_h, sizeof got_h);
}

static void half_arith(Bed *b)
{
    _Float16 x[N], y[N], got[N], want[N];

    for (int t = 0; t < N; t++) {
        x[t] = (_Float16)(in_f[t] * 0.037f);
        y[t] = (_Float16)(in_f[t + N] * 0.11f);
        const _Float16 squared = (_Float16)((double)x[t] * (double)x[t]),
                       sum = (_Float16)((double)squared + (double)y[t]);

        want[t] = (_Float16)((double)x[t] * (double)y[t] + (double)sum);
    }
    input(b, x, sizeof x);
    input(b, y, sizeof y);
    output(b, got, sizeof got, SASS_FRESH);
    run(b, "half_arith", 1, N / 2);
    same(b, "half_arith", got, want, sizeof got);
}

static void atomics(Bed *b)
{
    int32_t sum[5] = { 0 }, want_sum[5] = { 0 }, old[4] = { 0, -1, 5, 0 };
    float fsum[2] = { 0 }, want_fsum[2] = { 0 };
    uint32_t mins[3] = { 0xffffffff, 0, 0 }, want_mins[3] = { 0xffffffff, 0, 0 };

    for (int t = 0; t < 2 * N; t++) {
        const uint32_t v = (uint32_t)in_i[t];

        want_sum[v & 3] += (int32_t)v;
        want_sum[4] += (int32_t)(v & 15);
        want_fsum[v & 1] += (float)(v & 255);
        want_mins[0] = v < want_mins[0] ? v : want_mins[0];
        want_mins[1] = v > want_mins[1] ? v : want_mins[1];
        want_mins[2] |= 1u << (v & 31);
    }
    input(b, in_i, 2 * N * 4);
    output(b, sum, sizeof sum, SASS_INOUT);
    output(b, fsum, sizeof fsum, SASS_INOUT);
    output(b, mins, sizeof mins, SASS_INOUT);
    output(b, old, sizeof old, SASS_INOUT);
    run(b, "atomics", 2, N);
    same(b, "atomics", sum, want_sum, sizeof sum);
    same(b, "atomics", fsum, want_fsum, sizeof fsum);
    same(b, "atomics", mins, want_mins, sizeof mins);
    CHECK_EQ(old[0], 2 * N);
    CHECK_EQ(old[1], -1);
    CHECK_EQ(old[2], 7);
}

static void shared_atomics(Bed *b)
{
    float sum[4] = { 0 };

    for (int t = 0; t < N; t++)
        sum[t % 3] += in_f[t];
    for (int t = 0; t < N; t++)
        want_f[t] = sum[t & 3];
    input(b, in_f, N * 4);
    output(b, out_f, N * 4, SASS_FRESH);
    run(b, "shared_atomics", 1, N);
    same(b, "shared_atomics", out_f, want_f, N * 4);
}

static void double_atomics(Bed *b)
{
    double in[64], sum[2] = { 0 }, want[2] = { 0 };
    uint64_t count[2] = { 0, 0 };

    for (int t = 0; t < 64; t++) {
        in[t] = in_f[t];
        want[t & 1] += in[t];
    }
    input(b, in, sizeof in);
    output(b, sum, sizeof sum, SASS_INOUT);
    output(b, count, sizeof count, SASS_INOUT);
    run(b, "double_atomics", 1, 64);
    same(b, "double_atomics", sum, want, sizeof sum);
    CHECK_EQ(count[0], 3 * 64);
    CHECK_EQ(count[1], 63 * INT64_C(5000000000));
}

TEST(arrays_of_a_thread_lie_on_its_stack)
{
    each(stack_array);
}
TEST(constants_and_data_of_the_module)
{
    each(tables);
}
TEST(generic_pointers_reach_every_memory)
{
    each(generic);
}
TEST(bytes_and_halves_of_global_memory)
{
    each(narrow_types);
}
TEST(f16_and_bf16_are_rounded_to_nearest)
{
    each(halves);
}
TEST(pairs_of_f16_compute)
{
    each(half_arith);
}
TEST(atomics_lose_no_update)
{
    each(atomics);
}
TEST(atomics_of_shared_floats_are_loops)
{
    each(shared_atomics);
}

TEST(atomics_of_64_bits)
{
    each(double_atomics);
}
