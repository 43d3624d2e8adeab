/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Devices: memory and kernels of a GPU behind one small interface.  A driver is a shared library of
 * the machine, loaded when a kernel for it is first asked for, so one build of Weft serves every
 * machine.  Knows text, bytes and names; never what a kernel computes.  All calls are of one thread
 * at a time. */
#ifndef WEFT_DEV_H
#define WEFT_DEV_H

#include "base/base.h"

typedef struct Dev Dev;             /* an open device with one queue: work runs in order */
typedef struct DevModule DevModule; /* the kernels of one text */

/* opencl.c.  Which device: the one whose name has this part, or, for a number, that of the list;
 * NULL: the first GPU, or, where there is none, the first device.  With a queue of the caller, a
 * cl_command_queue: its own.  Throws ST_IO when there is no driver or such device, with the
 * remedy, and ST_NOMEM. */
typedef struct DevWanted {
    const char *name;
    void *queue;
} DevWanted;
Dev *dev_open_opencl(const Os *, Err *, const DevWanted *);
void dev_close(Dev *); /* after all of its modules and memory; NULL is allowed */
const char *dev_name(const Dev *);
const char *dev_identity(const Dev *); /* all that what it compiles depends on */
/* The names of all devices, a line each; GPUs first.  Throws as dev_open_opencl does. */
void dev_list_opencl(const Os *, Err *, Text *);

/* Throws ST_IO with the compiler's first lines, and ST_NOMEM. */
DevModule *dev_build(Dev *, Err *, const char *source, const char *const *kernel, int nkernel);
void dev_module_free(DevModule *); /* NULL is allowed */
Dev *dev_of(const DevModule *);
/* What the driver has compiled, in `to`, which may throw ST_NOMEM; no bytes: it does not tell. */
Bytes dev_binary(const DevModule *, Arena *to);
/* The module that such bytes are; NULL: the driver does not take them.  Throws ST_NOMEM. */
DevModule *dev_load(Dev *, Err *, Bytes, const char *const *kernel, int nkernel);

/* Memory of a device; NULL: there is none left.  0 bytes are allowed. */
void *dev_alloc(Dev *, int64_t bytes);
void dev_free(Dev *, void *); /* NULL is allowed */
/* False: the driver refused.  Writes wait for nothing that is still to come; reads wait for all
 * work before them. */
bool dev_write(Dev *, void *to, const void *from, int64_t bytes);
bool dev_read(Dev *, const void *from, void *to, int64_t bytes);

typedef struct DevArg { /* memory of the device, or, with bytes, a value */
    void *memory;
    const void *value;
    int64_t bytes;
} DevArg;
/* Groups of so many threads each.  False: the driver refused. */
bool dev_launch(DevModule *, int kernel, const DevArg *, int narg, int64_t groups, int64_t threads);

#endif
