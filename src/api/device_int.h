/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels on a device: the functions of device.c that plans and kernels call. */
#ifndef WEFT_DEVICE_INT_H
#define WEFT_DEVICE_INT_H

#include "api/api_int.h"
#include "emit/emit.h"

typedef struct OnDevice OnDevice; /* of a plan: its arrays in the memory of the device */
struct DevModule;
struct RunPhase;

static inline bool is_on_device(const Target *t)
{
    return t->dialect->one != NULL;
}

/* The kernels of a text, from the cache or by the driver's compiler.  Throws ST_LIMIT for what no
 * device does, ST_IO when there is none. */
struct DevModule *device_build(weft_ctx *, const Lowered *, const char *source, JitReport *);
struct Dev *api_device(weft_ctx *); /* opened when first needed */

typedef enum DeviceArray {
    DEVICE_OWN,    /* a temporary: it never leaves the device */
    DEVICE_ONCE,   /* structure: written when the plan runs first */
    DEVICE_HELD,   /* stays as the last run had it */
    DEVICE_INPUT,  /* written before each run, and read back if a phase writes it */
    DEVICE_OUTPUT  /* read back after it */
} DeviceArray;
typedef struct DevicePlan { /* what a plan knows */
    const int64_t *bytes; /* by array */
    const bool *outside;  /* by array: it is the caller's, in the memory of the device */
    const struct RunPhase *phase;
} DevicePlan;
OnDevice *device_plan(weft_ctx *, Arena *, const Variant *, const DevicePlan *);
/* 0 or the fault of the lowest unit; phases that are kept do not run again. */
int64_t device_run(weft_ctx *, OnDevice *, const DeviceArray *, void *const *array,
                   const int64_t *size, const struct RunPhase *, const bool *kept);
void device_free(OnDevice *); /* NULL is allowed */

#endif
