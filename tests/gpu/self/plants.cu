// SPDX-License-Identifier: BSD-3-Clause
// Copyright The Weft authors
//
// Kernels with a defect each, which the interpreter has to find, and what a right one looks like.
#include <stdint.h>
#define KERNEL extern "C" __global__ void

KERNEL no_syncthreads(const float *a, float *out)
{
    __shared__ float s[128];
    s[threadIdx.x] = a[threadIdx.x];
#ifdef RIGHT
    __syncthreads();
#endif
    out[threadIdx.x] = s[127 - threadIdx.x];
}
KERNEL no_second_syncthreads(const float *a, float *out, int n)
{
    __shared__ float s[64];
    float t = 0;
    for (int i = 0; i < n; i++) {
        s[threadIdx.x] = a[i * 64 + threadIdx.x];
        __syncthreads();
        t += s[63 - threadIdx.x];
#ifdef RIGHT
        __syncthreads();
#endif
    }
    out[threadIdx.x] = t;
}
KERNEL no_syncwarp(const float *a, float *out)
{
    __shared__ float s[64];
    s[threadIdx.x] = a[threadIdx.x];
#ifdef RIGHT
    __syncwarp();
#endif
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
KERNEL syncwarp_of_halves(const float *a, float *out, int other)
{
    __shared__ float s[64];
    unsigned mask = 0xffffu << (threadIdx.x & 16);
    s[threadIdx.x] = a[threadIdx.x];
#ifdef RIGHT
    __syncwarp(mask);
    out[threadIdx.x] = s[threadIdx.x ^ (other & 15)];
#else
    __syncwarp(mask);
    out[threadIdx.x] = s[threadIdx.x ^ other];
#endif
}
KERNEL barrier_of_a_branch(const float *a, float *out)
{
    __shared__ float s[64];
    s[threadIdx.x] = a[threadIdx.x];
#ifdef RIGHT
    __syncthreads();
#else
    if (threadIdx.x < 40)
        __syncthreads();
    else
        out[threadIdx.x] = 1, __syncthreads();
#endif
    out[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL blocks_race(const float *a, float *out)
{
#ifdef RIGHT
    atomicAdd(&out[threadIdx.x], a[blockIdx.x * blockDim.x + threadIdx.x]);
#else
    out[threadIdx.x] += a[blockIdx.x * blockDim.x + threadIdx.x];
#endif
}
KERNEL blocks_read(float *a, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    a[i] = i;
#ifdef RIGHT
    out[i] = a[i] + n;
#else
    out[i] = a[(i + blockDim.x) % n];
#endif
}
KERNEL reader_of_another_block(float *a, float *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = a[0];
    __syncthreads();
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
#ifdef RIGHT
        a[1] = 5;
#else
        a[0] = 5;
#endif
}
KERNEL one_byte(const uint8_t *a, uint8_t *out)
{
#ifdef RIGHT
    out[threadIdx.x] = a[threadIdx.x];
#else
    out[threadIdx.x - (threadIdx.x == 33)] = a[threadIdx.x];
#endif
}
KERNEL syncwarp_of_some_readers(const float *a, float *out)
{
    __shared__ float s;
    if (threadIdx.x == 0)
        s = a[0];
    __syncwarp();
    float v = s;
#ifdef RIGHT
    __syncwarp();
#else
    __syncwarp(0xffffu << (threadIdx.x & 16));
#endif
    if (threadIdx.x == 0)
        s = v + a[1];
    __syncwarp();
    out[threadIdx.x] = s + v;
}
KERNEL readers_in_branches(const float *a, float *out)
{
    __shared__ volatile float s;
    if (threadIdx.x == 0)
        s = a[0];
    __syncwarp();
    float v = 0;
    if (threadIdx.x == 3)
        v = s * 2;
    if (threadIdx.x == 5)
        v = s + 1;
#ifdef RIGHT
    __syncwarp();
#endif
    if (threadIdx.x == 5)
        s = v;
    out[threadIdx.x] = v;
}
KERNEL atomics_of_blocks(int *sum, int *out)
{
    atomicAdd(sum, 1);
    __syncthreads();
#ifdef RIGHT
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
#else
    out[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile int *)sum;
#endif
}
KERNEL half_without_second_syncwarp(const float *a, float *out)
{
    __shared__ float s[32];
    unsigned mask = 0xffffu << (threadIdx.x & 16);
    float t = 0;
    for (int i = 0; i < 3; i++) {
        s[threadIdx.x] = a[threadIdx.x] + i;
        __syncwarp(mask);
        t += s[threadIdx.x ^ 1];
#ifdef RIGHT
        __syncwarp(mask);
#endif
    }
    out[threadIdx.x] = t;
}
KERNEL global_race(float *a)
{
    a[threadIdx.x] = threadIdx.x;
#ifdef RIGHT
    __syncthreads();
#endif
    a[64 + threadIdx.x] = a[threadIdx.x ^ 32];
}
KERNEL one_cell(const float *a, float *out)
{
#ifdef RIGHT
    if (threadIdx.x == 0)
#endif
        out[0] = a[0];
}
KERNEL atomic_and_plain(int *sum, int *out)
{
    atomicAdd(sum, 1);
#ifdef RIGHT
    __syncthreads();
#endif
    out[threadIdx.x] = *(volatile int *)sum;
}
KERNEL out_of_bounds(const float *a, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RIGHT
    if (i < n)
#endif
        out[i] = a[i];
}
KERNEL shared_out_of_bounds(const float *a, float *out, int n)
{
    __shared__ float s[64];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
#ifdef RIGHT
    n = 0;
#endif
    out[threadIdx.x] = s[threadIdx.x + n];
}
KERNEL writes_input(float *a, float *out)
{
#ifdef RIGHT
    out[threadIdx.x] = a[threadIdx.x];
#else
    a[threadIdx.x] = out[threadIdx.x];
#endif
}
KERNEL misaligned(const float *a, float4 *out, int n)
{
#ifdef RIGHT
    n = 4;
#endif
    out[threadIdx.x] = *(const float4 *)(a + threadIdx.x * 4 + n);
}
KERNEL uninitialised_shared(const float *a, float *out, int n)
{
    __shared__ float s[64];
    if (threadIdx.x != n)
        s[threadIdx.x] = a[threadIdx.x];
#ifdef RIGHT
    else
        s[threadIdx.x] = 0;
#endif
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL uninitialised_local(const int *a, int *out)
{
    int v[16];
#ifdef RIGHT
    for (int i = 0; i < 16; i++)
        v[i] = i;
#endif
    v[a[threadIdx.x] & 15] = 7;
    out[threadIdx.x] = v[a[threadIdx.x + 1] & 15];
}
KERNEL uninitialised_output(const float *a, float *out)
{
#ifdef RIGHT
    out[threadIdx.x] = a[threadIdx.x];
#else
    out[threadIdx.x] += a[threadIdx.x];
#endif
}
KERNEL deadlock(const float *a, float *out)
{
    __shared__ volatile int flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
#ifndef RIGHT
    while (flag == 0)
        ;
#endif
    out[threadIdx.x] = a[threadIdx.x];
}
