/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files of weft bench share. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include "problem.h"

/* Runs the kernel and compares its outputs; how, or NULL after a message.  `flops` is about what a
 * run takes. */
const char *bench_verify(Problem *, double flops);

#endif
