#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft tp, linear, sh, irreps, wigner: programs over irreps, and what other commands make of them.
. "$(dirname "$0")/lib.bash"

try "a tensor product" 0 weft tp '2x0e' '0e + 1o' --mode uvu --weights item
same - <<'END'
program tp(n)
axis B = n
axis SX = 1, UX(SX) = {2}
axis SY = 2, MY(SY) = {1, 3}
axis SZ = 2, MZ(SZ) = {1, 3}, UZ(SZ) = {2, 2}
axis P = rows sx sy sz { 0 0 0, 0 1 1 }, U(P) = {2, 2}
axis Q(P) = rows m1 m2 m3 -> c { 0 0 0 -> 1; 0 0 0 -> 1, 0 1 1 -> 1, 0 2 2 -> 1 }
f32 X[B, SX, UX], Y[B, SY, MY], Z[B, SZ, UZ, MZ], Wt[B, P, U]
z: Z[b, sz(p), u, m3(q)] += c[q] * Y[b, sy(p), m2(q)] * X[b, sx(p), u] * Wt[b, p, u]
END
none stderr
try "only some outputs" 0 weft tp 2x1o 1o 0e --mode uvu --weights none
out "axis SZ = 1, UZ(SZ) = {2}"
try "two modes" 0 weft tp 2x0e+3x1o 2x0e 4x0e+3x1o+2x0e \
    --paths '0 0 0 uvw, 1 0 1 uvu yes 2, 0 0 2 uuu no' --weight-type f64 --layout ir_mul
same - <<'END'
program tp(n)
axis B = n
axis SX = 2, MX(SX) = {1, 3}, UX(SX) = {2, 3}
axis SY = 1, UY(SY) = {2}
axis SZ = 3, MZ(SZ) = {1, 3, 1}, UZ(SZ) = {4, 3, 2}
axis P1 = rows sx sy sz k { 0 0 0 0 }, U1(P1) = {2}, V1(P1) = {2}, W1(P1) = {4}
axis Q1(P1) = rows m1 m2 m3 -> c1 { 0 0 0 -> 0.5 }
axis P2 = rows sx sy sz k { 1 0 1 1 }, U2(P2) = {3}, V2(P2) = {2}
axis Q2(P2) = rows m1 m2 m3 -> c2 { 0 0 0 -> 1, 1 0 1 -> 1, 2 0 2 -> 1 }
axis P3 = rows sx sy sz { 0 0 2 }, U3(P3) = {2}, Q3(P3) = rows m1 m2 m3 -> c3 { 0 0 0 -> 1 }
axis K = 2, UK(K) = {2, 3}, VK(K) = {2, 2}, WK(K) = {4, 1}
f32 X[B, SX, MX, UX], Y[B, SY, UY], Z[B, SZ, MZ, UZ]
f64 Wt[K, UK, VK, WK]
z1: Z[b, sz(p1), m3(q1), w1] += c1[q1] * Y[b, sy(p1), v1] * X[b, sx(p1), m1(q1), u1] * Wt[k(p1), u1, v1, w1]
z2: Z[b, sz(p2), m3(q2), u2] += c2[q2] * Y[b, sy(p2), v2] * X[b, sx(p2), m1(q2), u2] * Wt[k(p2), u2, v2, 0]
z3: Z[b, sz(p3), m3(q3), u3] += c3[q3] * Y[b, sy(p3), u3] * X[b, sx(p3), m1(q3), u3]
END

# Every form is a program with a gradient.
for form in connected full elementwise square norm; do
    both="2x0e+1o"
    [ $form = connected ] && both="2x0e+1o --out 3x0e+1e"
    [ $form != square ] && [ $form != norm ] && both="--in2 2x0e+1o --in1 $both"
    # shellcheck disable=SC2086
    made() { weft tp --form $form $both | weft grad; }
    try "$form" 0 made
    out "d_X"
done
try "contraction" 0 weft tp --form contraction --in1 2x0e+2x1o --out 2x0e --correlation 2
out "z2: Z[b, sz(p2), u] += c2[q2]"

# Sums over channels are in registers and lanes, however large the program is: added up in memory, one by one,
# they are slow and lose digits.
summed_in_memory() {
    weft tp 128x0e+128x1o+128x2e 0e+1o+2e+3o 0e+1o+2e+3o --mode uvu | weft grad | weft grad | weft grad |
        weft print --after accumulate | awk '/^    (.*: )?for u in/ { inside = 1; next } /^    [^ ]/ { inside = 0 }
            inside && /^        d3_Y\[/ { n++ } /d3_Y\[.*\+=/ { all++ } END { print n + 0, (all > 0) }'
}
try "a third derivative" 0 summed_in_memory
same - <<'END'
0 1
END

try "a linear layer" 0 weft linear 2x0e+1o 3x0e+1o --bias yes --type f64
same - <<'END'
program linear(n)
axis B = n
axis SX = 2, MX(SX) = {1, 3}, UX(SX) = {2, 1}
axis SZ = 2, MZ(SZ) = {1, 3}, UZ(SZ) = {3, 1}
axis P = rows sx sz -> a { 0 0 -> 0.7071067811865476, 1 1 -> 1 }, M(P) = {1, 3}, U(P) = {2, 1}
axis W(P) = {3, 1}
axis O = 1 : sz = {0}, V(O) = {3}
f64 X[B, SX, UX, MX], Z[B, SZ, UZ, MZ], Wt[P, U, W], Bias[O, V]
z: Z[b, sz(p), w, m] += a[p] * Wt[p, u, w] * X[b, sx(p), u, m]
bias: Z[b, sz(o), v, 0] += Bias[o, v]
END
try "spherical harmonics" 0 weft sh 1
same - <<'END'
program sh(n)
axis B = n
f32 X[B, 3], Y[B, 4]
for b:
    y0: Y[b, 0] = 1
    y1: Y[b, 1] = 1.7320508075688772 * X[b, 0]
    y2: Y[b, 2] = 1.7320508075688772 * X[b, 1]
    y3: Y[b, 3] = 1.7320508075688772 * X[b, 2]
END
try "degrees one by one" 0 weft sh --l '2 0' --norm norm --normalize yes
out "Y[B, 6]"

try "irreps" 0 weft irreps '1o + 2x0e +1o'
same - <<<'1x1o+2x0e+1x1o'
try "sorted" 0 weft irreps '1o + 2x0e +1o' sort
same - <<'END'
2x0e+1x1o+1x1o
to 1 0 2
from 1 0 2
END
try "their size" 0 weft irreps 128x0e+64x1o dim
same - <<<320
try "some of them" 0 weft irreps 2x0e+1o+2e filter --drop 0e+2e
same - <<<'1x1o'
try "a symbol" 0 weft wigner 1 1 1 --signs e3nn-0.4
same - <<'END'
0 1 2 0.408248290463863
0 2 1 -0.408248290463863
1 0 2 -0.408248290463863
1 2 0 0.408248290463863
2 0 1 0.408248290463863
2 1 0 -0.408248290463863
END

# What an entry has for all its channels is on a stack: many values make shorter tiles.
many='8x0e+8x1o+8x2e+8x3o+8x4e+8x5o' all=0e+1o+2e+3o+4e+5o
weft tp --form conv $many $all $all --mode uvu --type f64 >many.weft
try "values of an entry" 0 weft print --after factor many.weft
out "(count + 3) / 4"

try "no irreps" 1 weft irreps 2x0
err "irreps \"2x0\": a parity (e or o) is missing at character 4"
try "too many arguments" 2 weft tp 0e 0e 0e 0e
err "0e is one argument too many"
try "an option without a value" 2 weft tp 0e 0e 0e --mode
err "--mode needs a value"
try "an unknown option" 1 weft tp 0e 0e 0e --speed 9
err "tp has no setting \"speed\""
try "a separator in an argument" 2 weft tp 0e '0e; name=x' 0e
try "two degrees" 2 weft wigner 1 1
err "three degrees"
try "no symbol" 1 weft wigner 1 1 3
err "no 3j symbol of 1 1 3"
finish
