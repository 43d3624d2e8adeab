/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Weft on devices: which one, on which queue, with arrays in whose memory.  Kernels are compiled
 * for a device after weft_ctx_target(ctx, "opencl"); docs/gpu.md says what they do there.
 *
 *     if (weft_ctx_target(ctx, "opencl") || weft_ctx_queue(ctx, queue) ||
 *         weft_kernel_compile(prog, &kernel) || weft_args_device(args, "B", &b) ||
 *         weft_args_device(args, "C", &c) || weft_kernel_run(kernel, args))
 *         fprintf(stderr, "%s\n", weft_message(ctx)); */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The names of the devices that OpenCL has, a line each, GPUs first.  The context owns the text,
 * until the next call of this function.  WEFT_E_IO: there is no driver. */
WEFT_API WEFT_MUST weft_status weft_devices(weft_ctx *ctx, const char **out);

/* The device of kernels that are compiled from now on: the first whose name has this text in it,
 * or, for a number, that line of weft_devices, from 0.  NULL, the default: the first of them.
 * Kernels stay on the device that they were compiled for.  WEFT_E_IO: there is no such device, or
 * it has no 64-bit floats. */
WEFT_API WEFT_MUST weft_status weft_ctx_device(weft_ctx *ctx, const char *name);

/* A cl_command_queue of the caller, in order, whose device and context kernels use that are
 * compiled from now on.  The library keeps it until the context is freed.  NULL: a queue of its
 * own, on the device of weft_ctx_device. */
WEFT_API WEFT_MUST weft_status weft_ctx_queue(weft_ctx *ctx, void *queue);

/* Binds a buffer of the program to an array in the memory of the device: tensor->data is its
 * cl_mem, of the context that the kernel's queue has, and the array begins there, in C order and
 * without gaps.  Kernels on that device then work in place, and nothing is copied: what was
 * enqueued before is seen, and a run ends when its results are there.  Structure is bound by
 * weft_args_bind, in the memory of the host.  weft_run and kernels of a CPU refuse such arrays
 * (WEFT_E_ARG), and weft_args_get gives the cl_mem.  NULL removes the binding. */
WEFT_API WEFT_MUST weft_status weft_args_device(weft_args *args, const char *name,
                                                const weft_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
