/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program that links libweft_torch has its operators without a call.  Where torch is not in the
 * process, or does not fit, nothing happens; who calls weft_torch_load is told why. */
#include "shim.h"

const char *weft_torch_load(void); /* shim.c */

/* An extension of the compiler: C has no other way to run when a library is loaded. */
__attribute__((constructor)) static void start(void)
{
    (void)weft_torch_load();
}
