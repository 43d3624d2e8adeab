/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The prelude of kernels for GPUs.  It defines the names of simd.h for a machine whose vector is a
 * warp: a variable of a vector type is one lane's value, a load or store is of the lane's element,
 * and a fold is the only operation in which lanes meet.  Scalars have the same value in all lanes.
 * Sections differ by language: address spaces, the number of the lane, barriers, shuffles.  A C
 * compiler gets the integers alone, for what the host of an OpenCL program does. */
#ifndef WEFT_GPU_H
#define WEFT_GPU_H
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define WEFT_OPENCL
/* ---- OpenCL C 1.2.  A warp is a work-group; lanes exchange values through local memory. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define INT64_C(x) x##L
#define INT64_MIN LONG_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define WEFT_USED __attribute__((unused))
#define WEFT_FN __attribute__((overloadable, unused)) static
#define WEFT_TURNS(n) __attribute__((opencl_unroll_hint(n)))
#define WEFT_ROW(p, i, n) ((p) + (int64_t)(i) * (n))
typedef ushort2 uint16_t2;
typedef ushort4 uint16_t4;
#define WEFT_WIDE(n, type) WEFT_PASTE(type, n)
#define WEFT_PASTE(a, b) a##b
#define WEFT_NTH(w, i) w.s##i
#define WEFT_WIDE_LOAD(n, type, p) (*(__global const WEFT_PASTE(type, n) *)(p))
#define WEFT_WIDE_STORE(n, type, p, ...) \
    (*(__global WEFT_PASTE(type, n) *)(p) = (WEFT_PASTE(type, n))(__VA_ARGS__))
#define WEFT_GLOBAL __global
#define WEFT_CONSTANT __constant
#define WEFT_ALONE restrict
#define WEFT_ADDRESS __global void *
#define WEFT_KERNEL(blocks) __kernel void
#define WEFT_POINTERS(n) __global void *const weft_array[n]
#define WEFT_DATA                                                                        \
    __global void *const *weft_array WEFT_USED, const int64_t *weft_size WEFT_USED,      \
        __local double *weft_shared WEFT_USED
#define WEFT_SAME weft_array, weft_size, weft_shared
#define WEFT_PASS weft_array, weft_s.size, weft_shared
#define WEFT_OPEN __local double weft_shared[WEFT_LANES];
#define WEFT_SELF ((int)get_local_id(0))
#define WEFT_TEAM(lanes, parts) const int weft_lane WEFT_USED = WEFT_SELF
#define WEFT_GROUP(team) ((int64_t)get_group_id(0))
#define WEFT_GROUPS(team) ((int64_t)get_num_groups(0))
#define WEFT_THREAD ((int64_t)get_global_id(0))
#define WEFT_THREADS ((int64_t)get_global_size(0))
#define WEFT_BARRIER barrier(CLK_GLOBAL_MEM_FENCE)
#define WEFT_ATOMIC_MIN(p, v) atomic_min(p, v)
#define WEFT_MUL_HI(a, b) mul_hi(a, b)
#define WEFT_AS_FLOAT(x) as_float(x)
#define WEFT_AS_UINT(x) as_uint(x)
#define WEFT_FOLD(name, type, join)                                            \
    WEFT_USED static type weft_fold_##name(type v, __local double *shared)     \
    {                                                                          \
        __local type *s = (__local type *)shared;                              \
        s[WEFT_SELF] = v;                                                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
        const int width = WEFT_LANES;                                          \
        for (int part = width / 2; part > 0; part /= 2) {                      \
            if (WEFT_SELF < part)                                              \
                s[WEFT_SELF] = join(s[WEFT_SELF], s[WEFT_SELF + part]);        \
            barrier(CLK_LOCAL_MEM_FENCE);                                      \
        }                                                                      \
        v = s[0];                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
        return v;                                                              \
    }
#define WEFT_FOLDED(name, v) weft_fold_##name(v, weft_shared)
#define WEFT_INT WEFT_FN
#elif defined(__CUDACC__) || defined(__HIP__)
/* ---- CUDA and HIP.  A block has several warps; lanes exchange values by shuffles. */
#if defined(__HIP__) && __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#elif defined(__HIP__)
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>
#define WEFT_USED __attribute__((unused))
#define WEFT_FN WEFT_USED __attribute__((always_inline)) static __device__ inline
#define WEFT_TURNS(n) WEFT_PRAGMA(unroll n)
#define WEFT_PRAGMA(x) _Pragma(#x)
#define WEFT_GLOBAL
#define WEFT_CONSTANT WEFT_USED static __device__ const
#define WEFT_ALONE __restrict__
struct weft_pointer { /* becomes a pointer of the type that is asked for */
    void *p;
    __device__ weft_pointer(void *q = 0) : p(q) {}
    template <class T> __device__ operator T *() const { return (T *)p; }
};
/* Neighbours that a lane loads or stores at once. */
template <class T, int n> struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) weft_wide {
    T of[n];
};
#define WEFT_WIDE(n, type) weft_wide<type, n>
#define WEFT_NTH(w, i) w.of[i]
#define WEFT_WIDE_LOAD(n, type, p) weft_wide_load<type, n>(p)
#define WEFT_WIDE_STORE(n, type, p, ...) \
    weft_wide_store(p, weft_wide<type, n>{ { __VA_ARGS__ } })
#define WEFT_ADDRESS weft_pointer
#define WEFT_POINTERS(n) const weft_pointer weft_array[n]
#define WEFT_DATA const weft_pointer *weft_array WEFT_USED, const int64_t *weft_size WEFT_USED
#define WEFT_SAME weft_array, weft_size
#define WEFT_PASS weft_array, weft_s.size
#define WEFT_OPEN
#if defined(__HIP__)
#define WEFT_THREADS ((int64_t)__builtin_amdgcn_grid_size_x())
#define WEFT_IN_BLOCK ((unsigned)__builtin_amdgcn_workitem_id_x())
#define WEFT_BLOCK_ID ((int64_t)__builtin_amdgcn_workgroup_id_x())
#define WEFT_ATOMIC_MIN(p, v) \
    __hip_atomic_fetch_min(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define WEFT_AS_FLOAT(x) __builtin_bit_cast(float, x)
#define WEFT_AS_UINT(x) __builtin_bit_cast(uint32_t, x)
#define WEFT_KERNEL(blocks) extern "C" __global__ void __launch_bounds__(WEFT_BLOCK)
#define WEFT_BARRIER \
    (__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup"), __builtin_amdgcn_wave_barrier())
#pragma clang fp contract(off)
WEFT_FN float weft_of_lane(float v, int lane)
{
    return WEFT_AS_FLOAT(__builtin_amdgcn_ds_bpermute(4 * lane, __builtin_bit_cast(int, v)));
}

WEFT_FN double weft_of_lane(double v, int lane)
{
    const uint64_t bits = __builtin_bit_cast(uint64_t, v);
    const uint32_t low = (uint32_t)__builtin_amdgcn_ds_bpermute(4 * lane, (int)(uint32_t)bits);
    const uint32_t high = (uint32_t)__builtin_amdgcn_ds_bpermute(4 * lane, (int)(bits >> 32));

    return __builtin_bit_cast(double, (uint64_t)high << 32 | low);
}
#define WEFT_XOR(v, bit, team) weft_of_lane(v, WEFT_SELF ^ (bit))
#define WEFT_FIRST_OF(v, width, team) weft_of_lane(v, WEFT_SELF & ~((width) - 1))
#define WEFT_ROW(p, i, n) ((p) + (int64_t)(i) * (n))
template <class T, int n, class P> WEFT_FN weft_wide<T, n> weft_wide_load(const P *p)
{
    return *(const weft_wide<T, n> *)p;
}
template <class T, int n, class P> WEFT_FN void weft_wide_store(P *p, const weft_wide<T, n> &w)
{
    *(weft_wide<T, n> *)p = w;
}
#else
#define WEFT_THREADS ((int64_t)gridDim.x * WEFT_BLOCK)
#define WEFT_IN_BLOCK (threadIdx.x)
#define WEFT_BLOCK_ID ((int64_t)blockIdx.x)
#define WEFT_ATOMIC_MIN(p, v) atomicMin(p, v)
#define WEFT_AS_FLOAT(x) __uint_as_float(x)
#define WEFT_AS_UINT(x) __float_as_uint(x)
/* So many blocks have to be resident: as many as there are registers for, WEFT_RESIDENT at most. */
#define WEFT_FIT(registers) (WEFT_REGISTERS / (WEFT_BLOCK * (((registers) + 7) / 8 * 8)))
#define WEFT_BLOCKS(registers)                                \
    (WEFT_FIT(registers) >= WEFT_RESIDENT ? WEFT_RESIDENT      \
     : WEFT_FIT(registers) < 1            ? 1                  \
                                          : WEFT_FIT(registers))
#define WEFT_KERNEL(blocks) extern "C" __global__ void __launch_bounds__(WEFT_BLOCK, blocks)
/* What __syncwarp is, and a memory clobber: nvcc moves loads over __syncwarp in kernels that have
 * `restrict` arrays too. */
#define WEFT_BARRIER asm volatile("bar.warp.sync %0;" ::"r"(weft_team) : "memory")
/* An index that the compiler does not follow: addresses are made from it in each turn, by one
 * instruction, where nvcc would carry a pointer for each array, and add to it by two. */
WEFT_FN void weft_hide(int32_t &i) { asm volatile("" : "+r"(i)); }
WEFT_FN void weft_hide(int64_t &i) { asm volatile("" : "+l"(i)); }
#define WEFT_HIDE(i) weft_hide(i)
#define WEFT_XOR(v, bit, team) __shfl_xor_sync(team, v, bit)
#define WEFT_FIRST_OF(v, width, team) __shfl_sync(team, v, 0, width)
/* p + i * n by one instruction: nvcc would first add what p has of the lane to i * n, and then need
 * three. */
template <class T> struct weft_read_only { /* an address that no thread stores to */
    const T *p;
    __device__ T operator*() const { return __ldg(p); }
    __device__ weft_read_only operator+(int64_t i) const { return weft_read_only{ p + i }; }
};
template <class T> WEFT_FN weft_read_only<T> weft_row(const T *p, int32_t i, int32_t n)
{
    int64_t row;

    asm("mul.wide.s32 %0, %1, %2;" : "=l"(row) : "r"(i), "r"(n * (int32_t)sizeof(T)));
    return weft_read_only<T>{ (const T *)((uint64_t)p + row) };
}
#define WEFT_ROW(p, i, n) weft_row(p, (int32_t)(i), n)
template <int bytes> struct weft_word; /* what is loaded and stored at once */
template <> struct weft_word<4> { typedef uint32_t type; };
template <> struct weft_word<8> { typedef uint2 type; };
template <> struct weft_word<16> { typedef uint4 type; };
template <class T, int n, class P> WEFT_FN weft_wide<T, n> weft_wide_load(const P *p)
{
    typedef typename weft_word<alignof(weft_wide<T, n>)>::type word;
    weft_wide<T, n> w;

    for (size_t i = 0; i < sizeof w / sizeof(word); i++) {
        const word v = ((const word *)p)[i];
        memcpy((char *)&w + i * sizeof(word), &v, sizeof v);
    }
    return w;
}
template <class T, int n, class P> WEFT_FN weft_wide<T, n> weft_wide_load(weft_read_only<P> at)
{
    typedef typename weft_word<alignof(weft_wide<T, n>)>::type word;
    weft_wide<T, n> w;

    for (size_t i = 0; i < sizeof w / sizeof(word); i++) {
        const word v = __ldg((const word *)at.p + i);
        memcpy((char *)&w + i * sizeof(word), &v, sizeof v);
    }
    return w;
}
WEFT_FN void weft_wide_store(void *p, const weft_wide<float, 2> &w)
{
    *(float2 *)p = make_float2(w.of[0], w.of[1]);
}

WEFT_FN void weft_wide_store(void *p, const weft_wide<float, 4> &w)
{
    *(float4 *)p = make_float4(w.of[0], w.of[1], w.of[2], w.of[3]);
}

WEFT_FN void weft_wide_store(void *p, const weft_wide<double, 2> &w)
{
    *(double2 *)p = make_double2(w.of[0], w.of[1]);
}

WEFT_FN void weft_wide_store(void *p, const weft_wide<double, 4> &w)
{
    ((double2 *)p)[0] = make_double2(w.of[0], w.of[1]);
    ((double2 *)p)[1] = make_double2(w.of[2], w.of[3]);
}

WEFT_FN void weft_wide_store(void *p, const weft_wide<uint16_t, 2> &w)
{
    *(ushort2 *)p = make_ushort2(w.of[0], w.of[1]);
}

WEFT_FN void weft_wide_store(void *p, const weft_wide<uint16_t, 4> &w)
{
    *(ushort4 *)p = make_ushort4(w.of[0], w.of[1], w.of[2], w.of[3]);
}
#endif
#define WEFT_BLOCK (WEFT_LANES * WEFT_WARPS) /* threads of a block */
#define WEFT_MUL_HI(a, b) ((int64_t)((__int128)(a) * (b) >> 64))
#define WEFT_SELF ((int)(WEFT_IN_BLOCK % WEFT_LANES))
/* A unit of work is a team's: `parts` times `lanes` neighbours in a warp.  Loops on warp go to
 * the parts; the first part makes all stores outside of such loops. */
#define WEFT_TEAM(lanes, parts)                                                            \
    const int weft_width WEFT_USED = lanes, weft_parts WEFT_USED = parts;                  \
    const int weft_lane WEFT_USED = (int)(WEFT_IN_BLOCK % (lanes));                        \
    const int weft_part WEFT_USED = (int)(WEFT_IN_BLOCK / (lanes) % (parts));              \
    const bool weft_on WEFT_USED = weft_part == 0;                                         \
    const uint32_t weft_team WEFT_USED =                                                   \
        (lanes) * (parts) >= 32 ? 0xffffffffu                                              \
                                : ((1u << (lanes) * (parts) % 32) - 1)                     \
                                      << (WEFT_SELF & ~((lanes) * (parts) - 1))
#define WEFT_ON if (weft_on)
#define WEFT_ON_ONE if (weft_on && weft_lane == 0)
/* Shared memory of each team of the block. */
#define WEFT_SHARED_ROOM(bytes, team)                                   \
    __shared__ __attribute__((aligned(16)))                             \
    double weft_rooms[WEFT_BLOCK / (team)][(bytes) / sizeof(double)];   \
    char *const weft_room = (char *)weft_rooms[WEFT_IN_BLOCK / (team)];
#define WEFT_THREAD (WEFT_BLOCK_ID * WEFT_BLOCK + WEFT_IN_BLOCK)
#define WEFT_GROUP(team) (WEFT_BLOCK_ID * (WEFT_BLOCK / (team)) + WEFT_IN_BLOCK / (team))
#define WEFT_GROUPS(team) (WEFT_THREADS / (team))
/* A sum is the same in all lanes, as each adds the same pairs; of a maximum, the first counts. */
#define WEFT_FOLD(name, type, join)                                            \
    WEFT_FN type weft_fold_##name(type v, int width, uint32_t team WEFT_USED)  \
    {                                                                          \
        for (int part = width / 2; part > 0; part /= 2)                        \
            v = join(v, WEFT_XOR(v, part, team));                              \
        return WEFT_IS_SUM_##name ? v : WEFT_FIRST_OF(v, width, team);         \
    }
#define WEFT_IS_SUM_add_f32 1
#define WEFT_IS_SUM_add_f64 1
#define WEFT_IS_SUM_max_f32 0
#define WEFT_IS_SUM_max_f64 0
#define WEFT_IS_SUM_min_f32 0
#define WEFT_IS_SUM_min_f64 0
#define WEFT_FOLDED(name, v) weft_fold_##name(v, weft_width, weft_team)
#define WEFT_INT WEFT_USED static __host__ __device__ inline
#else
#include <stdint.h>
#define WEFT_PLAIN
#define WEFT_USED __attribute__((unused))
#define WEFT_INT WEFT_USED static inline
#define WEFT_MUL_HI(a, b) ((int64_t)((__int128)(a) * (b) >> 64))
#endif

#if !defined(WEFT_PLAIN)
#if !defined(WEFT_HIDE)
#define WEFT_HIDE(i) (void)0
#endif
/* The arrays of a kernel: that it only reads, or that it stores to. */
#define WEFT_IN(type, i) const type WEFT_GLOBAL *WEFT_ALONE weft_p##i
#define WEFT_OUT(type, i) type WEFT_GLOBAL *WEFT_STORED weft_p##i
/* Not `restrict`: compilers then move loads over barriers, as if no other lane could store. */
#define WEFT_STORED
#define WEFT_AT(i) (WEFT_GLOBAL void *)weft_p##i

/* What the function of a phase gets: arrays and sizes, a range, scratch memory. */
#define WEFT_ARGS \
    WEFT_DATA, int64_t weft_begin WEFT_USED, int64_t weft_end WEFT_USED, \
        WEFT_GLOBAL char *weft_work WEFT_USED
/* Stores of scalars, which all lanes have, are the first lane's. */
#define WEFT_ONE if (weft_lane == 0)

/* A kernel runs the function of its phase for the units that are its warp's or its thread's.  A
 * unit is `step` iterations, or those that weft_unit tells.  The lowest unit with a fault wins. */
#define WEFT_LAUNCH_OF(sizes)                                                             \
    typedef struct weft_launch {                                                        \
        int64_t size[sizes];                                                            \
        int64_t n, units, step, work; /* bytes of scratch memory of a warp or thread */ \
    } weft_launch;
#define WEFT_LAUNCH                                                                     \
    WEFT_GLOBAL const int64_t *weft_unit WEFT_USED, WEFT_GLOBAL char *weft_scratch WEFT_USED, \
        WEFT_GLOBAL uint32_t *weft_fault, const weft_launch weft_s
#define WEFT_UNITS(phase, first, all)                                                   \
    for (int64_t u = first; u < weft_s.units; u += all) {                               \
        const int64_t from = weft_unit != 0 ? weft_unit[u] : u * weft_s.step;           \
        const int64_t to = weft_unit != 0 ? weft_unit[u + 1]                            \
                           : from + weft_s.step < weft_s.n ? from + weft_s.step         \
                                                           : weft_s.n;                  \
        const int64_t fault = phase(WEFT_PASS, from, to, weft_scratch + (first) * weft_s.work); \
        if (fault != 0)                                                                 \
            WEFT_ATOMIC_MIN(weft_fault,                                                 \
                            (uint32_t)(u < 0xffffff ? u : 0xffffff) << 8 | (uint32_t)fault); \
    }
#define WEFT_WARP_LEVEL(phase, team) \
    WEFT_OPEN WEFT_UNITS(phase, WEFT_GROUP(team), WEFT_GROUPS(team))
#define WEFT_THREAD_LEVEL(phase) WEFT_OPEN WEFT_UNITS(phase, WEFT_THREAD, WEFT_THREADS)

/* The same where the launch has a warp or a thread for each unit of `count` iterations. */
#define WEFT_EACH(phase, first, count)                                                           \
    const uint32_t u = (uint32_t)(first);                                                        \
    if (u < (uint32_t)weft_s.units) {                                                            \
        const int64_t from = (int64_t)u * (count);                                               \
        const int64_t to = (count) == 1 || from + (count) < weft_s.n ? from + (count) : weft_s.n; \
        const int64_t fault = phase(WEFT_PASS, from, to, weft_scratch);                          \
        if (fault != 0)                                                                          \
            WEFT_ATOMIC_MIN(weft_fault,                                                          \
                            (uint32_t)(u < 0xffffff ? u : 0xffffff) << 8 | (uint32_t)fault);     \
    }
#define WEFT_WARP_EACH(phase, team, count) WEFT_OPEN WEFT_EACH(phase, WEFT_GROUP(team), count)
#define WEFT_THREAD_EACH(phase, count) WEFT_OPEN WEFT_EACH(phase, WEFT_THREAD, count)

typedef float weft_vf32;
typedef double weft_vf64;
typedef int32_t weft_vi32;
typedef int64_t weft_vi64;
typedef int32_t weft_mf32;
typedef int32_t weft_mf64;

#define WEFT_LOAD_F32(p) ((p)[weft_lane])
#define WEFT_LOAD_F64(p) ((p)[weft_lane])
#define WEFT_LOAD_F16(p) weft_from_f16((p)[weft_lane])
#define WEFT_LOAD_BF16(p) weft_from_bf16((p)[weft_lane])
#define WEFT_STORE_F32(p, v) ((p)[weft_lane] = (v))
#define WEFT_STORE_F64(p, v) ((p)[weft_lane] = (v))
#define WEFT_STORE_F16(p, v) ((p)[weft_lane] = weft_to_f16(v))
#define WEFT_STORE_BF16(p, v) ((p)[weft_lane] = weft_to_bf16(v))
#define WEFT_SPLAT_F32(x) ((float)(x))
#define WEFT_SPLAT_F64(x) ((double)(x))

/* The first n lanes: the others are 0 when loaded, and not stored. */
#define WEFT_MASK_F32(n) (weft_lane < (n))
#define WEFT_MASK_F64(n) (weft_lane < (n))
#define WEFT_LOADM_F32(p, m) ((m) ? (p)[weft_lane] : 0.0f)
#define WEFT_LOADM_F64(p, m) ((m) ? (p)[weft_lane] : 0.0)
#define WEFT_LOADM_F16(p, m) ((m) ? weft_from_f16((p)[weft_lane]) : 0.0f)
#define WEFT_LOADM_BF16(p, m) ((m) ? weft_from_bf16((p)[weft_lane]) : 0.0f)
#define WEFT_STOREM(p, v, m)         \
    do {                             \
        if (m)                       \
            (p)[weft_lane] = (v);    \
    } while (0)
#define WEFT_STOREM_F32(p, v, m) WEFT_STOREM(p, v, m)
#define WEFT_STOREM_F64(p, v, m) WEFT_STOREM(p, v, m)
#define WEFT_STOREM_F16(p, v, m) WEFT_STOREM(p, weft_to_f16(v), m)
#define WEFT_STOREM_BF16(p, v, m) WEFT_STOREM(p, weft_to_bf16(v), m)
#define WEFT_PICK_F32(m, a, b) ((m) ? (a) : (b))
#define WEFT_PICK_F64(m, a, b) ((m) ? (a) : (b))
/* Elements that are several apart: the first n lanes. */
#define weft_gather_f32(p, stride, n) (weft_lane < (n) ? (p)[weft_lane * (stride)] : 0.0f)
#define weft_gather_f64(p, stride, n) (weft_lane < (n) ? (p)[weft_lane * (stride)] : 0.0)
#define weft_gather_f16(p, stride, n) \
    (weft_lane < (n) ? weft_from_f16((p)[weft_lane * (stride)]) : 0.0f)
#define weft_gather_bf16(p, stride, n) \
    (weft_lane < (n) ? weft_from_bf16((p)[weft_lane * (stride)]) : 0.0f)
#define WEFT_SCATTER(p, stride, n, v)             \
    do {                                          \
        if (weft_lane < (n))                      \
            (p)[weft_lane * (stride)] = (v);      \
    } while (0)
#define weft_scatter_f32(p, stride, n, v) WEFT_SCATTER(p, stride, n, v)
#define weft_scatter_f64(p, stride, n, v) WEFT_SCATTER(p, stride, n, v)
#define weft_scatter_f16(p, stride, n, v) WEFT_SCATTER(p, stride, n, weft_to_f16(v))
#define weft_scatter_bf16(p, stride, n, v) WEFT_SCATTER(p, stride, n, weft_to_bf16(v))

WEFT_FN float weft_int_f32(int64_t i) { return (float)i; }
WEFT_FN double weft_int_f64(int64_t i) { return (double)i; }
#define weft_fma_f32(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define weft_fma_f64(a, b, c) fma((double)(a), (double)(b), (double)(c))
#define weft_fma_vf32 weft_fma_f32
#define weft_fma_vf64 weft_fma_f64
WEFT_FN float weft_add_f32(float a, float b) { return a + b; }
WEFT_FN double weft_add_f64(double a, double b) { return a + b; }
#define weft_add_vf32 weft_add_f32
#define weft_add_vf64 weft_add_f64

/* NaN wins, then the first of a tie. */
#define WEFT_CHOICE(name, type, cmp)                  \
    WEFT_FN type weft_##name(type a, type b)          \
    {                                                 \
        return a cmp b || a != a ? a : b;             \
    }
WEFT_CHOICE(max_f32, float, >=)
WEFT_CHOICE(min_f32, float, <=)
WEFT_CHOICE(max_f64, double, >=)
WEFT_CHOICE(min_f64, double, <=)
#define weft_max_vf32 weft_max_f32
#define weft_min_vf32 weft_min_f32
#define weft_max_vf64 weft_max_f64
#define weft_min_vf64 weft_min_f64
#define weft_select_vf32(yes, a, b) ((yes) ? (float)(a) : (float)(b))
#define weft_select_vf64(yes, a, b) ((yes) ? (double)(a) : (double)(b))

/* All lanes together: the upper part to the lower, until one is left.  Every lane gets it. */
WEFT_FOLD(add_f32, float, weft_add_f32)
WEFT_FOLD(max_f32, float, weft_max_f32)
WEFT_FOLD(min_f32, float, weft_min_f32)
WEFT_FOLD(add_f64, double, weft_add_f64)
WEFT_FOLD(max_f64, double, weft_max_f64)
WEFT_FOLD(min_f64, double, weft_min_f64)
#define weft_fold_add_vf32(v) WEFT_FOLDED(add_f32, v)
#define weft_fold_max_vf32(v) WEFT_FOLDED(max_f32, v)
#define weft_fold_min_vf32(v) WEFT_FOLDED(min_f32, v)
#define weft_fold_add_vf64(v) WEFT_FOLDED(add_f64, v)
#define weft_fold_max_vf64(v) WEFT_FOLDED(max_f64, v)
#define weft_fold_min_vf64(v) WEFT_FOLDED(min_f64, v)
#define WEFT_FOLD4(fold, a, b, c, d, sum) \
    (sum)[0] = fold(a), (sum)[1] = fold(b), (sum)[2] = fold(c), (sum)[3] = fold(d)
#define weft_fold4_add_vf32(a, b, c, d, sum) WEFT_FOLD4(weft_fold_add_vf32, a, b, c, d, sum)
#define weft_fold4_add_vf64(a, b, c, d, sum) WEFT_FOLD4(weft_fold_add_vf64, a, b, c, d, sum)

/* Functions of floats: those of the language's library. */
#define WEFT_FUNCTION(name, expr32, expr64)                  \
    WEFT_FN float weft_##name##_f32(float x) { return expr32; } \
    WEFT_FN double weft_##name##_f64(double x) { return expr64; }
WEFT_FUNCTION(exp, exp(x), exp(x))
WEFT_FUNCTION(log, log(x), log(x))
WEFT_FUNCTION(sqrt, sqrt(x), sqrt(x))
WEFT_FUNCTION(rsqrt, 1.0f / sqrt(x), 1.0 / sqrt(x))
WEFT_FUNCTION(sin, sin(x), sin(x))
WEFT_FUNCTION(cos, cos(x), cos(x))
WEFT_FUNCTION(tanh, tanh(x), tanh(x))
WEFT_FUNCTION(sigmoid, x < 0 ? exp(x) / (1.0f + exp(x)) : 1.0f / (1.0f + exp(-x)),
              1.0 / (1.0 + exp(-x)))
WEFT_FUNCTION(silu, x * weft_sigmoid_f32(x), x * weft_sigmoid_f64(x))
WEFT_FUNCTION(abs, fabs(x), fabs(x))
WEFT_FUNCTION(relu, weft_max_f32(x, 0), weft_max_f64(x, 0))
WEFT_FUNCTION(step, x > 0, x > 0)
WEFT_FUNCTION(sign, (float)((x > 0) - (x < 0)), (double)((x > 0) - (x < 0)))
#define weft_exp_vf32 weft_exp_f32
#define weft_exp_vf64 weft_exp_f64
#define weft_log_vf32 weft_log_f32
#define weft_log_vf64 weft_log_f64
#define weft_sqrt_vf32 weft_sqrt_f32
#define weft_sqrt_vf64 weft_sqrt_f64
#define weft_rsqrt_vf32 weft_rsqrt_f32
#define weft_rsqrt_vf64 weft_rsqrt_f64
#define weft_sin_vf32 weft_sin_f32
#define weft_sin_vf64 weft_sin_f64
#define weft_cos_vf32 weft_cos_f32
#define weft_cos_vf64 weft_cos_f64
#define weft_tanh_vf32 weft_tanh_f32
#define weft_tanh_vf64 weft_tanh_f64
#define weft_sigmoid_vf32 weft_sigmoid_f32
#define weft_sigmoid_vf64 weft_sigmoid_f64
#define weft_silu_vf32 weft_silu_f32
#define weft_silu_vf64 weft_silu_f64
#define weft_abs_vf32 weft_abs_f32
#define weft_abs_vf64 weft_abs_f64
#define weft_relu_vf32 weft_relu_f32
#define weft_relu_vf64 weft_relu_f64
#define weft_step_vf32 weft_step_f32
#define weft_step_vf64 weft_step_f64
#define weft_sign_vf32 weft_sign_f32
#define weft_sign_vf64 weft_sign_f64

/* Winners of max= and min=: the first stays, NaN wins. */
#define WEFT_WINS(name, type, cmp)                              \
    WEFT_FN int weft_##name(type v, type best)                  \
    {                                                           \
        return v cmp best || (v != v && best == best);          \
    }
WEFT_WINS(over_f32, float, >)
WEFT_WINS(over_f64, double, >)
WEFT_WINS(over_i64, int64_t, >)
WEFT_WINS(under_f32, float, <)
WEFT_WINS(under_f64, double, <)
WEFT_WINS(under_i64, int64_t, <)

#endif

/* Checked integers: what does not fit ends the run with fault 3. */
WEFT_INT int64_t weft_add_ck(int64_t a, int64_t b, int64_t *fault)
{
    const int64_t r = (int64_t)((uint64_t)a + (uint64_t)b);

    if (((a ^ r) & (b ^ r)) < 0)
        *fault = 3;
    return r;
}

WEFT_INT int64_t weft_sub_ck(int64_t a, int64_t b, int64_t *fault)
{
    const int64_t r = (int64_t)((uint64_t)a - (uint64_t)b);

    if (((a ^ b) & (a ^ r)) < 0)
        *fault = 3;
    return r;
}

WEFT_INT int64_t weft_mul_ck(int64_t a, int64_t b, int64_t *fault)
{
    const int64_t r = (int64_t)((uint64_t)a * (uint64_t)b);

    if (WEFT_MUL_HI(a, b) != r >> 63) /* the upper half is the sign */
        *fault = 3;
    return r;
}

/* Rounded down; the rest has the sign of the divisor. */
WEFT_INT int64_t weft_div_i64(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

WEFT_INT int64_t weft_mod_i64(int64_t a, int64_t b)
{
    const int64_t r = b == -1 ? 0 : a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

WEFT_INT int64_t weft_div_ck(int64_t a, int64_t b, int64_t *fault)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *fault = 3;
        return 0;
    }
    return weft_div_i64(a, b);
}

WEFT_INT int64_t weft_mod_ck(int64_t a, int64_t b, int64_t *fault)
{
    if (b == 0)
        *fault = 3;
    return b == 0 ? 0 : weft_mod_i64(a, b);
}

WEFT_INT int weft_inside(int64_t a, int64_t n) { return a >= 0 && a < n; }
WEFT_INT int64_t weft_neg_ck(int64_t a, int64_t *fault) { return weft_sub_ck(0, a, fault); }
WEFT_INT int64_t weft_abs_ck(int64_t a, int64_t *f) { return a < 0 ? weft_neg_ck(a, f) : a; }
WEFT_INT int64_t weft_abs_i64(int64_t a) { return a < 0 ? -a : a; }
WEFT_INT int64_t weft_relu_i64(int64_t a) { return a > 0 ? a : 0; }
WEFT_INT int64_t weft_step_i64(int64_t a) { return a > 0; }
WEFT_INT int64_t weft_sign_i64(int64_t a) { return (a > 0) - (a < 0); }
WEFT_INT int64_t weft_min_i64(int64_t a, int64_t b) { return a <= b ? a : b; }
WEFT_INT int64_t weft_max_i64(int64_t a, int64_t b) { return a >= b ? a : b; }

/* For tables that a search asks: as their maker fills them. */
WEFT_INT uint64_t weft_mix(uint64_t h) { return (h ^ h >> 32) * 0xd6e8feb86659fd93u; }

WEFT_INT uint64_t weft_hash(uint64_t seed, uint64_t v)
{
    const uint64_t h = weft_mix(weft_mix((seed ^ v) * 0x9e3779b97f4a7c15u + 1));

    return h ^ h >> 32;
}

WEFT_INT uint64_t weft_place(uint64_t h, uint64_t n)
{
    return (h >> 32) * (n >> 32) + ((h >> 32) * (n & UINT32_MAX) >> 32);
}

#if !defined(WEFT_PLAIN)
/* The last of n rows that begins at p or before: p's own. */
#define WEFT_ABOVE(name, type)                                                        \
    WEFT_FN int64_t weft_above_##name(type const *start, int64_t n, int64_t p)        \
    {                                                                                 \
        int64_t lo = 0, hi = n;                                                       \
        while (hi - lo > 1) {                                                         \
            const int64_t mid = lo + (hi - lo) / 2;                                   \
            if (start[mid] <= p)                                                      \
                lo = mid;                                                             \
            else                                                                      \
                hi = mid;                                                             \
        }                                                                             \
        return lo;                                                                    \
    }
WEFT_ABOVE(i32, WEFT_GLOBAL int32_t)
WEFT_ABOVE(i64, WEFT_GLOBAL int64_t)
#if defined(WEFT_OPENCL) /* constant tables have an address space */
WEFT_ABOVE(i64, __constant int64_t)
#endif

WEFT_FN int32_t weft_to_i32(int64_t v, int64_t *fault)
{
    if (v != (int32_t)v)
        *fault = 3;
    return (int32_t)v;
}

WEFT_FN float weft_from_bf16(uint16_t h) { return WEFT_AS_FLOAT((uint32_t)h << 16); }

WEFT_FN float weft_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
    const float v = (float)m * 5.9604644775390625e-08f; /* 2^-24 */

    if (e == 0)
        return sign ? -v : v;
    return WEFT_AS_FLOAT(sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13 |
                         (e == 31 && m != 0 ? 0x400000u : 0u));
}

/* To nearest even: the float's bits, rounded at the place where the short format ends. */
WEFT_FN uint16_t weft_to_bf16(float v)
{
    const uint32_t bits = WEFT_AS_UINT(v);

    if (v != v)
        return (uint16_t)((bits >> 16 & 0x8000) | 0x7fc0);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

WEFT_FN uint16_t weft_to_f16(float v)
{
    const uint32_t bits = WEFT_AS_UINT(v), sign = bits >> 16 & 0x8000;
    const int e = (int)(bits >> 23 & 255) - 112;
    uint32_t m = bits & 0x7fffff;

    if (v != v)
        return (uint16_t)(sign | 0x7e00);
    if (e >= 31)
        return (uint16_t)(sign | 0x7c00);
    if (e <= 0) { /* exact: a power of two, and the sum rounds to even */
        const float a = fabs(v) * 16777216.0f;

        return (uint16_t)(sign | (uint32_t)((a + 8388608.0f) - 8388608.0f));
    }
    m += 0xfff + (m >> 13 & 1);
    return (uint16_t)(sign | (((uint32_t)e << 10) + (m >> 13)));
}
#endif

#endif
