#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Programs, files in and out, and filters in pipes.
. "$(dirname "$0")/lib.bash"

try "a right program" 0 weft check spmm.weft
none stdout
none stderr
try "print" 0 weft print spmm.weft
cp stdout plain.weft
none stderr
try "print of what was printed" 0 weft print plain.weft
same plain.weft
try "print as a filter" 0 weft print <spmm.weft
same plain.weft
try "check after print" 0 bash -c '"$WEFT" print - <spmm.weft | "$WEFT" check'

try "run shows what has no file" 0 weft run spmm.weft --in A=a.mtx --in B=b.mtx
none stderr
same - <<'END'
C f32 [3, 2]
     8  11.5
     0     0
     1   0.5
END
cp stdout product.txt
try "run in a pipe" 0 bash -c '"$WEFT" print spmm.weft | "$WEFT" run --in A=a.mtx --in=B=b.mtx'
same product.txt
try "run to a file" 0 weft run spmm.weft --in A=a.mtx --in B=b.mtx --out C=c.npy
none stdout
[ "$(head -c 6 c.npy | tail -c 5)" = NUMPY ]
verdict "the file is an array" $? "$(head -c 6 c.npy)"
try "run to a matrix" 0 weft run spmm.weft --in A=a.mtx --in B=b.mtx --out C=c.mtx
head -n 1 c.mtx | grep -qF '%%MatrixMarket matrix array real general'
verdict "the file is a matrix" $? "$(cat c.mtx)"

cat >copy.weft <<'END'
program copy(m, n)
f32 A[m, n], B[m, n]
b: for i in m, j in n: B[i, j] = A[i, j]
END
try "an array reads back" 0 weft run copy.weft --in A=c.npy
sed 's/^C/B/' product.txt >want.txt
same want.txt
try "a matrix reads back" 0 weft run copy.weft --in A=c.mtx
same want.txt
try "a size that is given" 0 weft run copy.weft --in A=c.npy --set m=3 --set n=2
same want.txt

cat >two.weft <<'END'
program two(n)
i64 X[n], Y[n], S[]
x: for i in n: X[i] = loc(i) * 2
y: for i in n: Y[i] = X[i] + 1
s: for i in n: S[] += Y[i]
END
try "some to files, some shown" 0 weft run two.weft --set=n=3 --out Y=y.npy
same - <<'END'
X i64 [3]
  0  2  4
S i64 []
  9
END
try "the folder" 0 ls
! grep -q tmp stdout
verdict "nothing is left behind" $? "$(cat stdout)"

cat >csc.weft <<'END'
program csc(m, n)
axis J = n, E(J) = seg : i < m
f32 A[E], X[n], Y[m]
y: Y[i(e)] += A[e] * X[j]
END
printf '%%%%MatrixMarket matrix array real general\n4 1\n1\n10\n100\n1000\n' >x.mtx
try "a transpose, and a vector" 0 weft run csc.weft --in A=a.mtx:T --in X=x.mtx
same - <<'END'
Y f32 [3]
  201.5      0    490
END

cat >square.weft <<'END'
program square(n)
axis I = n, E(I) = seg : j < n, U(I) = built : load < n
f64 A[E], C[I, U]
sym: for i, e, f in E(j(e)): U(i) |= j(f)
num: for i, e, f in E(j(e)): C[i, j(f)] += A[e] * A[f]
END
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 2\n2 3 3\n3 1 4\n' >p.mtx
try "a built structure, as a matrix" 0 weft run square.weft --in A=p.mtx --out C=c2.mtx
out "U.coord i64 [3]"
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 3\n1 3 6\n2 1 12\n3 2 8\n' | diff - c2.mtx
verdict "its entries" $? "$(cat c2.mtx)"
finish
