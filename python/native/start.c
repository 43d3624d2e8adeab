/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program that links libweft_torch has its operators without a call, as it has those of other libraries of
 * operators.  Where torch is not in the process, or does not fit, this does nothing; who calls
 * weft_torch_load is told why. */
#include "shim.h"

const char *weft_torch_load(void); /* shim.c */

/* An extension of the compiler: C has no other way to run at load. */
__attribute__((constructor)) static void start(void)
{
    (void)weft_torch_load();
}
