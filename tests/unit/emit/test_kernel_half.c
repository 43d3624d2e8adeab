/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/simd.h: 16-bit floats in lanes, for every vector width, against the functions of base/. */
#include "unit/kernel_bed.h"

#include <math.h>

enum { ALL = 1 << 16, REST = 13, WIDE = ALL + REST, NARROW = 4 * ALL + REST };

static const char widen[] = "program widen(n)\nf16 H[n]; bf16 B[n]; f32 X[n], Y[n]\n"
                            "x: for i in n: X[i] = H[i]\ny: for i in n: Y[i] = B[i]\n";
static const char narrow[] = "program narrow(n)\nf32 X[n]; f16 H[n]; bf16 B[n]\n"
                             "h: for i in n: H[i] = X[i]\nb: for i in n: B[i] = X[i]\n";

static uint16_t shorts[WIDE];
static float floats[NARROW];

static float float_of(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* A NaN keeps its sign; what else it says is nobody's business. */
static bool is_same(float a, float b)
{
    return isnan(a) ? isnan(b) && signbit(a) == signbit(b) : bits_of(a) == bits_of(b);
}

TEST(lanes_widen_every_short_float_as_one_by_one)
{
    Inject j;
    weft_tensor x, y;

    for (int i = 0; i < WIDE; i++)
        shorts[i] = (uint16_t)(i < ALL ? i : 0x7bf8 + i);
    for (int w = 0; w < 3; w++) {
        if (!open_width(&j, bed_widths[w], widen))
            test_skip("not an x86-64 machine");
        check_source("WEFT_LOADM_BF16(");
        bind("H", shorts, WEFT_F16, 1, SHAPE(WIDE));
        bind("B", shorts, WEFT_BF16, 1, SHAPE(WIDE));
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "X", &x));
        OK(weft_args_get(args, "Y", &y));
        for (int i = 0; i < WIDE; i++) {
            CHECK(is_same(num_f16(shorts[i]), ((const float *)x.data)[i]));
            CHECK(is_same(num_bf16(shorts[i]), ((const float *)y.data)[i]));
        }
        close_inject(&j);
    }
}

/* Floats all over the range; and of each short one those in the middle of it and the next, and just
 * beside that. */
static void make_floats(void)
{
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t middle = bits_of(num_f16((uint16_t)i)) + 0x1000;

        floats[4 * i] = float_of(i * 65537u + i % 7);
        floats[4 * i + 1] = i % 4 < 2 ? float_of(middle) : float_of(i << 16 | 0x8000);
        floats[4 * i + 2] = i % 4 < 2 ? float_of(middle - 1) : float_of(i << 16 | 0x7fff);
        floats[4 * i + 3] = i % 4 < 2 ? float_of(middle + 1) : float_of(i << 16 | 0x8001);
    }
    for (int i = 0; i < REST; i++) /* subnormal, and to the largest that does not round to inf */
        floats[4 * ALL + i] = i < 6 ? ldexpf(3, -26 + i) : float_of(0x477fefffu + (uint32_t)i - 8);
}

TEST(lanes_round_every_float_as_one_by_one)
{
    Inject j;
    weft_tensor h, b;

    make_floats();
    for (int w = 0; w < 3; w++) {
        if (!open_width(&j, bed_widths[w], narrow))
            test_skip("not an x86-64 machine");
        check_source("WEFT_STOREM_F16(");
        bind("X", floats, WEFT_F32, 1, SHAPE(NARROW));
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "H", &h));
        OK(weft_args_get(args, "B", &b));
        for (int i = 0; i < NARROW; i++) {
            CHECK_EQ(((const uint16_t *)h.data)[i], num_to_f16((double)floats[i]));
            CHECK_EQ(((const uint16_t *)b.data)[i], num_to_bf16((double)floats[i]));
        }
        close_inject(&j);
    }
}
