#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Failures: exit code 1, nothing on stdout, the place as file:line:col with its line and a caret.
. "$(dirname "$0")/lib.bash"

sed 's/B\[j, k\]/B[j, q]/' spmm.weft >bad.weft
try "a fault in a file" 1 weft check bad.weft
none stdout
head -n 1 stderr | grep -qE '^bad\.weft:5:[0-9]+: error: '
verdict "the place comes first" $? "$(head -n 1 stderr)"
err "    c: C[i, k] += A[i, j] * B[j, q]"
[ "$(tail -n 1 stderr)" = "                                 ^" ]
verdict "the caret stands under it" $? "$(tail -n 1 stderr)"

try "a fault on stdin" 1 weft check <bad.weft
err "<stdin>:5:"
try "a fault on stdin, named" 1 weft print - <bad.weft
err "<stdin>:5:"
none stdout
try "a fault before a run" 1 weft run bad.weft
err "bad.weft:5:"
try "a program that means nothing" 1 weft check <<'END'
program p(n)
f32 Y[n]
y: for i in n: Y[i] += 1
z: for i in n: Y[i] max= 1
END
err "<stdin>:4:"
try "an empty program" 1 weft check </dev/null
err "error: "
try "a file that is not there" 1 weft check nothing.weft
err "weft: error: cannot open nothing.weft: No such file or directory"
try "a folder" 1 weft print .
err "weft: error: "

try "an input that is not there" 1 weft run spmm.weft --in A=nothing.mtx
err "nothing.mtx: No such file"
try "an input without a kind" 1 weft run spmm.weft --in A=a.txt
err ".npy, .npz or .mtx"
try "an input nobody knows" 1 weft run spmm.weft --in Q=a.mtx
err "spmm has no argument Q; it has m, n, f, J.start, J.coord, A, B, C"
try "an input left out" 1 weft run spmm.weft --in A=a.mtx
err "B is not bound"
try "a shape that does not fit" 1 weft run spmm.weft --in A=a.mtx --in B=a.mtx
err "weft: error: "
try "a size that does not fit" 1 weft run spmm.weft --in A=a.mtx --in B=b.mtx --set n=5
err "n = 5 as set"
try "a negative size" 1 weft run spmm.weft --set n=-5
err "the size n cannot be -5"
printf '%%%%MatrixMarket matrix coordinate real general\n3 4 1\n9 9 1\n' >bad.mtx
try "a matrix that does not read" 1 weft run spmm.weft --in A=bad.mtx
err "bad.mtx:3:"
try "an output nobody knows" 1 weft run spmm.weft --in A=a.mtx --in B=b.mtx --out Q=q.npy
none stdout
try "an output to nowhere" 1 weft run spmm.weft --in A=a.mtx --in B=b.mtx --out C=no/c.npy
err "cannot write no/c.npy"
try "a run that fails" 1 weft run --set n=3 <<'END'
program p(n)
i64 Y[n]
y: for i in n: Y[i] = 1 / (loc(i) - 1)
END
err "y"
none stdout
if [ -w /dev/full ]; then
    try "a full disk" 1 bash -c '"$WEFT" list >/dev/full'
    err "cannot write the standard output"
fi
finish
