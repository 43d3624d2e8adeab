// SPDX-License-Identifier: BSD-3-Clause
// Copyright The Weft authors
//
// The elementwise functions of ops.def as kernels: out[i] = f(a[i], b[i], c[i]).
#include <math.h>
#include <stdint.h>
#define POPC(x) ((uint32_t)__popc(x))
#define CLZ(x) ((uint32_t)__clz(x))
#define CTZ(x) ((uint32_t)__ffs(x) - 1)
#define BREV(x) __brev(x)
#define HIGH64(a, b) __umul64hi(a, b)
#define FMIN(a, b) fminf(a, b)
#define FMAX(a, b) fmaxf(a, b)
#define DMIN(a, b) fmin(a, b)
#define DMAX(a, b) fmax(a, b)
#define RSQRT(x) rsqrtf(x)
#define BITS(x) __float_as_uint(x)
#define BITS64(x) ((uint64_t)__double_as_longlong(x))
#define INT_UP(x) __int2float_ru((int)(x))
#define INT_DOWN(x) __int2float_rd((int)(x))
#define TO_INT(x) __float2int_rz(x)
#define TO_LONG(x) __double2ll_rz(x)
#define USE(x) (void)(x)
#define FN static __device__
#include "both.h"
#define KERNEL(name, type, expr)                                                              \
    extern "C" __global__ void op_##name(const type *va, const type *vb, const type *vc,      \
                                         type *out, int n)                                    \
    {                                                                                         \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                        \
        if (i < n) {                                                                          \
            type a = va[i], b = vb[i], c = vc[i];                                             \
            USE(a), USE(b), USE(c); \
            out[i] = (type)(expr);                                                            \
        }                                                                                     \
    }
#define INT(name, expr) KERNEL(name, uint32_t, expr)
#define LONG(name, expr) KERNEL(name, uint64_t, expr)
#define FLOAT(name, expr) KERNEL(name, float, expr)
#define DOUBLE(name, expr) KERNEL(name, double, expr)
#define NEAR(name, expr, ulps) KERNEL(name, float, expr)
#define NEAR64(name, expr, ulps) KERNEL(name, double, expr)
#include "ops.def"
