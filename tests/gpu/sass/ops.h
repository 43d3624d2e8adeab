/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of operations, which the table in ops.c names. */
#ifndef WEFT_SASS_OPS_H
#define WEFT_SASS_OPS_H

#include "gpu/sass/sass_int.h"

#define OPS(X)                                                                                 \
    X(mov)                                                                                     \
    X(imad)                                                                                    \
    X(iadd3)                                                                                   \
    X(lea)                                                                                     \
    X(lop3) X(plop3) X(shf) X(isetp) X(sel) X(imnmx) X(iabs) X(popc) X(flo) X(brev) X(prmt)    \
        X(sgxt) X(bmsk) X(p2r) X(r2p) X(r2ur) X(s2r) X(cs2r) X(vote) X(match) X(redux) X(shfl) \
            X(b2r) X(bmov) X(ldc) X(nothing) X(fadd) X(fmul) X(ffma) X(fsetp) X(fset) X(fsel) X(fmnmx) \
                X(fchk) X(mufu) X(dadd) X(dmul) X(dfma) X(dsetp) X(f2f) X(f2fp) X(f2i) X(i2f)  \
                    X(frnd) X(hadd2) X(hmul2) X(hfma2) X(load) X(store) X(atom) X(qspc) X(trap)
#define DECLARE(name) void op_##name(Warp *, const Ins *, uint32_t mask);
OPS(DECLARE)
#undef DECLARE

#endif
