/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of the interpreter share. */
#ifndef WEFT_SELF_H
#define WEFT_SELF_H

#include "gpu/sass/sass.h"
#include "unit/test.h"

/* How the kernels are compiled (tests/gpu/sass.sh): FILE-o3.cubin and so on. */
enum { VARIANTS = 3 };
extern const char *const variant_name[VARIANTS];

/* The kernels of a file, loaded once; skips the test when there is no nvcc. */
const Sass *self_code(const char *file, const char *variant);
/* Runs kernel `name` of a file, which has to go well. */
void self_run(SassGpu *, const Sass *, const char *name, SassShape, const SassParams *);

#endif
