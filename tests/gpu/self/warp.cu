// SPDX-License-Identifier: BSD-3-Clause
// Copyright The Weft authors
//
// Kernels of the self-test in which lanes, warps or blocks meet, or which use memory in a way of
// its own.  warp.c has the same computations on the host, by name.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#define KERNEL extern "C" __global__ void
#define ALL 0xffffffffu

// ---- lanes: shuffles, votes, sums
KERNEL shuffles(const float *a, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x & 31;
    float v = a[i];
    float s = __shfl_xor_sync(ALL, v, 5) + 2 * __shfl_up_sync(ALL, v, 3);
    s += 4 * __shfl_down_sync(ALL, v, 7);
    s += 8 * __shfl_sync(ALL, v, (l * 7 + 3) & 31) + 16 * __shfl_xor_sync(ALL, v, 3, 8);
    s += 32 * __shfl_sync(ALL, v, 2, 16) + 64 * __shfl_down_sync(ALL, v, 2, 4);
    s += 128 * __shfl_up_sync(ALL, v, 9, 16);
    s += 256 * __shfl_xor_sync(ALL, v, 12, 8); /* of an earlier segment, not of a later one */
    out[i] = s;
}
KERNEL votes(const float *a, uint32_t *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool p = a[i] > 0;
    uint32_t s = __ballot_sync(ALL, p) + __popc(__match_any_sync(ALL, (int)a[i] & 3));
    int same;
    s += __match_all_sync(ALL, (int)a[i] > 1000, &same) + same;
    s += __match_all_sync(ALL, (int)a[i], &same) + same;
    s = s * 4 + __any_sync(ALL, a[i] > 90) * 2 + __all_sync(ALL, a[i] > -1000);
    s += __reduce_add_sync(ALL, (uint32_t)i) + __reduce_max_sync(ALL, i * 37 % 101);
    s += __reduce_or_sync(ALL, 1u << (i & 7));
    out[i] = s + __activemask();
}
KERNEL half_shuffle(const float *a, float *out, int n)
{
    int l = threadIdx.x & 31;
    float v = a[threadIdx.x];
    if (l < n)
        v += __shfl_xor_sync(0xffffu, v, 3);
    else
        v -= __shfl_xor_sync(0xffff0000u, v, 5);
    out[threadIdx.x] = v;
}
KERNEL fold_warp(const float *a, float *out, int n)
{
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    float s = 0;
    for (int k = lane; k < n; k += 32)
        s += a[warp * n + k];
    for (int d = 16; d > 0; d /= 2)
        s += __shfl_xor_sync(ALL, s, d);
    if (lane == 0)
        out[warp] = s;
}

// ---- shared memory
KERNEL turn_tile(const float *a, float *out, int n)
{
    __shared__ float t[32][33];
    for (int r = threadIdx.y; r < 32; r += blockDim.y)
        t[r][threadIdx.x] = a[(blockIdx.y * 32 + r) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += blockDim.y)
        out[(blockIdx.x * 32 + r) * n + blockIdx.y * 32 + threadIdx.x] = t[threadIdx.x][r];
}
KERNEL sum_block(const float *a, float *out)
{
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * blockDim.x + t];
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        __syncthreads();
        if (t < d)
            s[t] += s[t + d];
    }
    if (t == 0)
        out[blockIdx.x] = s[0];
}
KERNEL warp_exchange(const float *a, float *out, int n)
{
    __shared__ float s[128];
    int l = threadIdx.x & 31;
    float *p = s + (threadIdx.x & ~31), t = 0;
    for (int i = 0; i < n + threadIdx.x / 32; i++) {
        p[l] = a[(threadIdx.x + i * 13) & 127];
        __syncwarp();
        t += p[l ^ 1] * (i + 1);
        __syncwarp();
    }
    out[threadIdx.x] = t;
}
KERNEL half_exchange(const float *a, float *out)
{
    __shared__ float s[64];
    int l = threadIdx.x & 31;
    unsigned mask = 0xffffu << (l & 16);
    float t = 0;
    for (int i = 0; i < 2 + (l >> 4) * 3; i++) {
        s[threadIdx.x] = a[threadIdx.x] + i;
        __syncwarp(mask);
        t += s[threadIdx.x ^ 5];
        __syncwarp(mask);
    }
    out[threadIdx.x] = t;
}
KERNEL narrow_shared(const uint8_t *a, uint16_t *out, int8_t *signs)
{
    __shared__ uint8_t b[256];
    __shared__ uint16_t h[256];
    int t = threadIdx.x;
    b[t] = a[t] * 3;
    __syncthreads();
    h[t] = b[255 - t] * 257u + t;
    __syncthreads();
    out[t] = h[t ^ 33];
    signs[t] = (int8_t)b[t] >> 1;
}
KERNEL wide_shared(const float4 *a, float4 *out, double2 *pairs)
{
    __shared__ float4 s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    float4 v = s[63 - t];
    float2 w = ((float2 *)s)[t];
    out[t] = make_float4(v.x + w.x, v.y - w.y, v.z * 2, v.w);
    pairs[t] = make_double2((double)v.x, (double)w.y);
}
KERNEL count_block(const int *a, int *out)
{
    int n = __syncthreads_count(a[threadIdx.x] & 1);
    int any = __syncthreads_or(a[threadIdx.x] > 1000000);
    int all = __syncthreads_and(a[threadIdx.x] < 1000000);
    out[threadIdx.x] = n * 4 + any * 2 + all;
}

// ---- control flow
KERNEL nested(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = a[i], s = 0;
    for (int k = 0; k < (v & 7); k++) {
        for (int m = 0; m < ((v >> 3) & 7); m++) {
            if (((k ^ m ^ v) & 3) == 0)
                continue;
            s = s * 5 + k - m;
            if (s > 100000)
                break;
            if (s < -100000)
                goto out_of_both;
        }
        if ((s & 15) == 9)
            return;
    }
out_of_both:
    out[i] = s;
}
__device__ __noinline__ int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL recursion(const int *a, int *out)
{
    out[threadIdx.x] = ackermann(a[threadIdx.x] & 1, a[threadIdx.x] >> 4 & 3);
}
KERNEL big_switch(const int *a, int *out)
{
    int v = a[threadIdx.x], s = threadIdx.x;
    switch (v & 15) {
    case 0: s *= 3; break;
    case 1: s += out[threadIdx.x]; break;
    case 2: s ^= 0x55; break;
    case 3: s -= v; break;
    case 4: s = s * s; break;
    case 5: s = s / 3; break;
    case 6: s = v % 11; break;
    case 7: s = ~s; break;
    case 8: s = s << 3; break;
    case 9: s = __popc(v); break;
    case 10: s = v & s; break;
    case 11: s = v | s; break;
    default: s = -1;
    }
    out[threadIdx.x] = s;
}

KERNEL jump(const int *a, const float *f, int *out, float *real)
{
    int v = a[threadIdx.x], s = threadIdx.x;
    float x = f[s];
    switch (v) {
    case 0: s *= 3, x = sqrtf(x * x); break;
    case 1: s += a[s ^ 1], x += 1; break;
    case 2: s ^= 0x55, x += f[s & 31]; break;
    case 3: s -= v, x *= x + 1; break;
    case 4: s = s * s, x = x / 3; break;
    case 5: s /= 3, x = x * s; break;
    case 6: s = a[s] % 11, x = -x; break;
    case 7: s = ~s, x += f[s & 31]; break;
    case 8: s <<= 3, x -= f[(s + 1) & 31]; break;
    case 9: s = __popc(s), x *= f[(s * 5) & 31]; break;
    case 10: s &= 7, x = 1 / (x + 0.5f); break;
    case 11: s |= 8, x = fabsf(x) + f[7]; break;
    case 12: s += a[12], x = 3; break;
    case 13: s -= 13, x += f[13]; break;
    case 14: s = s * s * s, x = x * x; break;
    case 15: s = 77, x = x / (f[3] + 0.5f); break;
    }
    out[threadIdx.x] = s;
    real[threadIdx.x] = x;
}

// ---- memory: stacks, constants, generic pointers, narrow types, atomics
KERNEL stack_array(const int *a, int *out)
{
    int v[16];
    for (int i = 0; i < 16; i++)
        v[i] = a[threadIdx.x] * i;
    for (int i = 0; i < 16; i++)
        v[(a[threadIdx.x] + i * 3) & 15] += i;
    int s = 0;
    for (int i = 0; i < 16; i++)
        s = s * 3 + v[(i * 5 + threadIdx.x) & 15];
    out[threadIdx.x] = s;
}
__constant__ float table[8] = { 1.5f, -2, 3, 4.25f, 5, 6, 7, 8.5f };
__device__ const int global_table[5] = { 10, 20, 30, 40, 50 };
KERNEL tables(const int *a, float *out)
{
    int v = a[threadIdx.x];
    out[threadIdx.x] = table[v & 7] + table[2] + global_table[(v & 0xff) % 5];
}
__device__ __noinline__ float through(const float *p, int i)
{
    return p[i] * 2;
}
KERNEL generic(const float *a, float *out)
{
    __shared__ float s[64];
    float mine[8];
    for (int i = 0; i < 8; i++)
        mine[i] = a[i] + threadIdx.x;
    s[threadIdx.x] = a[threadIdx.x] * 3;
    __syncthreads();
    int n = threadIdx.x % 3;
    out[threadIdx.x] = through(n == 0 ? s : n == 1 ? mine : a, threadIdx.x & 7);
}
KERNEL narrow_types(const int8_t *a, const uint16_t *b, int16_t *out, uint8_t *bytes)
{
    int t = threadIdx.x;
    out[t] = (int16_t)(a[t] * 3 + b[t]);
    bytes[t] = (uint8_t)(a[t] + (b[t] >> 8));
}
KERNEL halves(const __half *a, const __nv_bfloat16 *b, __half *out, __nv_bfloat16 *brain)
{
    int t = threadIdx.x;
    out[t] = __float2half(__half2float(a[t]) * 1.5f + __bfloat162float(b[t]));
    brain[t] = __float2bfloat16(__bfloat162float(b[t]) * 0.7f + 1.0f);
}
KERNEL half_arith(const __half2 *a, const __half2 *b, __half2 *out)
{
    int t = threadIdx.x;
    out[t] = __hfma2(a[t], b[t], __hadd2(__hmul2(a[t], a[t]), b[t]));
}
KERNEL atomics(const int *a, int *sum, float *fsum, uint32_t *mins, int *old)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, v = a[t];
    atomicAdd(&sum[v & 3], v);
    atomicAdd(&fsum[v & 1], (float)(v & 255));
    atomicMin(&mins[0], (uint32_t)v);
    atomicMax(&mins[1], (uint32_t)v);
    atomicOr(&mins[2], 1u << (v & 31));
    int seen = atomicAdd(&old[0], 1), last = atomicCAS(&old[1], v, t), put = atomicExch(&old[2], 7);
    if (seen < 0 || last == -7 || put == -7)
        old[3] = 1;
    __shared__ int s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    atomicAdd(&s, v & 15);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&sum[4], s);
}
KERNEL shared_atomics(const float *a, float *out)
{
    __shared__ float s[4];
    if (threadIdx.x < 4)
        s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&s[threadIdx.x % 3], a[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x & 3];
}
KERNEL double_atomics(const double *a, double *sum, unsigned long long *count)
{
    atomicAdd(&sum[threadIdx.x & 1], a[threadIdx.x]);
    atomicAdd(count, 3ull);
    atomicMax(count + 1, (unsigned long long)threadIdx.x * 5000000000ull);
}

// ---- accesses that are counted
KERNEL strided(const float *a, float *out, int n)
{
    __shared__ float s[512];
    s[threadIdx.x * n] = a[threadIdx.x * n];
    __syncthreads();
    out[threadIdx.x] = s[(threadIdx.x >> 5) * n];
}
KERNEL wide_copy(const float4 *a, float4 *out)
{
    __shared__ float4 s[32];
    s[threadIdx.x] = a[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
KERNEL arithmetic(const float *a, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = a[i], s = v;
    for (int k = 0; k < 5; k++)
        s = fmaf(s, v, 1.5f);
    s = s * v + v;
    out[i] = s + __shfl_xor_sync(ALL, s, 1);
}

// ---- a sparse matrix by a dense one of 128 columns: a warp a row, entries staged in shared memory
KERNEL sparse_rows(int rows, const int *start, const int *coord, const float *value,
                   const float4 *b, float4 *c)
{
    __shared__ int2 stage[4][32];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, row = blockIdx.x * 4 + warp;
    if (row >= rows)
        return;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int first = start[row], last = start[row + 1]; first < last; first += 32) {
        int n = min(32, last - first);
        if (lane < n)
            stage[warp][lane] =
                make_int2(coord[first + lane] * 32, __float_as_int(value[first + lane]));
        __syncwarp();
        for (int e = 0; e < n; e++) {
            int2 entry = stage[warp][e];
            float4 x = b[entry.x + lane];
            float v = __int_as_float(entry.y);
            sum.x = fmaf(v, x.x, sum.x), sum.y = fmaf(v, x.y, sum.y);
            sum.z = fmaf(v, x.z, sum.z), sum.w = fmaf(v, x.w, sum.w);
        }
        __syncwarp();
    }
    c[row * 32 + lane] = sum;
}
