#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft grad: a filter for derivatives, of any order in a pipe.
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
. "$(dirname "$0")/lib.bash"

try "the gradient" 0 weft grad spmm.weft
same - <<'END'
program d_spmm(m, n, f)
axis I = m, J = compressed(I, n)
axis K = f
f32 A[I, J], B[n, K], d_A[I, J], d_B[n, K], d_C[I, K]
for i, j, k:
    d(c,A): d_A[i, j] += d_C[i, k] * B[j, k]
    d(c,B): d_B[j, k] += d_C[i, k] * A[i, j]
END
none stderr
cp stdout gradient.weft
try "from stdin" 0 weft grad <spmm.weft
same gradient.weft
try "from -" 0 weft grad - <spmm.weft
same gradient.weft
try "by one input" 0 weft grad --wrt A spmm.weft
out "d(c,A): d_A[i, j] += d_C[i, k] * B[j, k]"
try "by a list" 0 weft grad spmm.weft --wrt=B,A
same gradient.weft
try "by two options" 0 weft grad --wrt A spmm.weft --wrt B --of C
same gradient.weft
try "forward" 0 weft grad --forward spmm.weft --wrt B
out "t(c): t_C[i, k] += t_B[j, k] * A[i, j]"
try "saved" 0 weft grad "$examples/attention.weft" --save S,T,Z
grep -q 'exp' stdout
verdict "nothing saved is computed again" $((!$?)) "exp"

# The convolution three times, and that it runs: 3, 9, 27 products.
pipe() { weft grad "$examples/conv_equivariant.weft" | weft grad | weft grad; }
try "three in a pipe" 0 pipe
verdict "27 products" $(($(grep -c '+=' stdout) != 27)) "$(grep -c '+=' stdout)"
cp stdout third.weft
try "the third checks" 0 weft check third.weft
try "the first has 3" 0 weft grad "$examples/conv_equivariant.weft"
verdict "3 products" $(($(grep -c '+=' stdout) != 3)) "not 3"

weft run spmm.weft --in A=a.mtx --in B=b.mtx --out C=c.npy >stdout 2>stderr
try "a gradient runs" 0 weft run gradient.weft --in A=a.mtx --in B=b.mtx --in d_C=c.npy
out "d_A"
out "d_B"

try "an unknown buffer" 1 weft grad spmm.weft --wrt Q
err "weft: error: wrt: Q is not a buffer of the program"
none stdout
try "an output" 1 weft grad spmm.weft --wrt C
err "C is computed by the program; choose an input"
try "an unknown option" 2 weft grad spmm.weft --by A
err "there is no option --by"
try "two files" 2 weft grad spmm.weft spmm.weft
err "two programs"
for option in --wrt --of --save; do
    try "$option without names" 2 weft grad spmm.weft $option
    err "$option wants NAME,NAME,..."
    try "$option with an empty name" 2 weft grad spmm.weft $option A,,B
    try "$option= without names" 2 weft grad spmm.weft $option=
    try "$option with a comma at the end" 2 weft grad spmm.weft $option A,
done
try "a file that is not there" 1 weft grad nothing.weft
try "a program that does not parse" 1 weft grad <<<"program p("
none stdout
finish
