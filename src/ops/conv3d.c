/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Sparse convolution over a kernel map: submanifold, strided, transposed and inverse ones differ
 * in the map alone.  Pairs are by strips of outputs and, in a strip, by offset (geom/strips.c
 * makes them so), which keeps the outputs of a strip and one matrix of weights in the caches.
 * Weights are given an output channel a row; lower/positions/relayout.c copies them for lanes over
 * output channels, while the gradient by X reads them as they are. */
#include "ops/ops_int.h"

enum Bit { BIAS = OPS_FIRST << 0 };

static const OpsOption options[] = {
    { "bias", BIAS, BIAS, "of conv3d: B[O] is added to every output" },
    { NULL, 0, 0, NULL },
};

static const OpsRow rows[] = {
    { "conv3d", BIAS, "Y: sparse convolution of the rows of X by a kernel map",
      "axis S = ${strips}, G(S) = seg : d < ${k}, E(G) = seg : r < ${strip}, v < ${vin}\n"
      "axis C = ${ci}, O = ${co}\n"
      "$t X[${vin}, C], W[O, ${k}, C], $BY[S, ${strip}, O]\n"
      "$b"
      "y: for s, g, e, c, o: Y[s, r(e), o] += X[v(e), c] * W[o, d(g), c]\n" },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = {
    { 'B', BIAS, "B[O], ", "", 0 },
    { 'b', BIAS, "b: for s, r in ${strip}, o: Y[s, r, o] += B[o]\n", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = {
    { "strips", 0, NULL },
    { "vin", 0, NULL },
    { "k", 0, NULL },
    { "ci", 0, NULL },
    { "co", 0, NULL },
    { "strip=512", 0, "of conv3d: outputs of a strip of the kernel map" },
    { NULL, 0, NULL },
};

const OpsFamily ops_conv3d = { rows, options, signs, sizes, 0, NULL, NULL };
