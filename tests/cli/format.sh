#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft format and weft convert: programs over formats, what a format stores, rules of one's own.
. "$(dirname "$0")/lib.bash"

try "a format" 0 weft format spmm.weft 'J=ell(0)'
same - <<'END'
program spmm(m, n, f, w_l_j)
axis I = m, J = compressed(I, n)
axis K = f
f32 A[I, J], B[n, K], C[I, K]
axis I_J = m, L_J(I_J) = w_l_j : j < n, entry padded
c: for i_j, l_j, k: C[i_j, k] += A[@entry(l_j)] * B[j(l_j), k]
END
none stderr
try "it is a program" 0 bash -c '"$WEFT" format spmm.weft "J=ell(0)" | "$WEFT" check'
try "from the standard input" 0 bash -c 'cat spmm.weft | "$WEFT" format "J=blocks_rest(2, 2, 3)"'
out 'c.blocks: '
out 'c.rest: '
try "in a schedule" 0 weft print --after formats --schedule 'format J csc()' spmm.weft
out 'E_J(J_J) = seg : i < m, entry sorted'
try "no axis" 1 weft format spmm.weft 'E=csr()'
err 'there is no axis E'
try "no format" 1 weft format spmm.weft 'J=rsc()'
err 'there is no format rsc'
try "no entries" 1 weft format spmm.weft 'K=csr()'
err 'format csr is for entries with 2 coordinates, but those of K have 1'
try "no equals sign" 2 weft format spmm.weft J
try "no such option" 2 weft format spmm.weft 'J=csr()' --bogus
try "help" 0 weft format --help
out 'usage: weft format'

try "what is stored" 0 weft convert a.mtx --to 'csr()'
out 'csr(): 4 entries in 4 positions of 1 part, 0.0 % padding, 32 bytes of structure, '
try "with padding" 0 weft convert a.mtx --to 'bsr(3, 2)'
out 'bsr(3, 2): 4 entries in 12 positions of 2 parts, 66.7 % padding, '
try "refused" 1 weft convert a.mtx --to 'band(0, 0)'
err 'format band: entry'
try "no matrix" 2 weft convert --to 'csr()'
try "no file" 1 weft convert none.mtx --to 'csr()'
err 'none.mtx'

cat >own.txt <<'END'
format halves()   # the left and the right columns apart
part left where 2*j < n
axis I = m, E(I) = seg : j < n sorted
part right
axis I = m, E(I) = seg : j < n sorted
END
try "a rule of one's own" 0 weft convert a.mtx --to 'halves()' --rules own.txt
out '4 entries in 4 positions of 2 parts'
try "in a program" 0 weft format spmm.weft 'J=halves()' --rules own.txt
out 'c.left: '
try "no rules" 1 weft format spmm.weft 'J=halves()' --rules none.txt
err 'cannot read none.txt'

cat >own.weft <<'END'
program spmm(m, n, f)
axis I = dense(m), J = compressed(I, n), K = dense(f)
f32 A[I, J], B[n, K], C[I, K]
c: C[i, k] += A[i, j] * B[j, k]
schedule
format J  apart(d = 2)  {   # columns from d on by columns
    part low where j < d

    axis I = m, E(I) = seg : j < n sorted   # as csr
    part high; axis J = n, E(J) = seg : i < m sorted
}
tile 0
END
data="--in A=a.mtx --in B=b.mtx"
weft run spmm.weft $data >right.txt
try "a rule in a schedule" 0 weft run own.weft -t c $data
same right.txt
try "it is printed" 0 weft print own.weft
out 'part high'
cp stdout printed.weft
try "and reads back" 0 weft print printed.weft
same printed.weft
cp spmm.weft beside.weft
sed '1,/^schedule/d' own.weft >beside.sched
try "beside the program" 0 weft run beside.weft -t c $data
same right.txt
try "one line of it" 0 weft print beside.weft
out 'format J apart(d = 2) { part low where j < d; axis I = m, E(I) = seg : j < n sorted; part high; axis J = n, E(J) = seg : i < m sorted }'
out 'tile 0'
try "after it" 0 weft print --after formats own.weft
out 'c.low: '
out 'c.high: '
try "why" 0 weft explain own.weft
out 'done     format J apart(d = 2) {'
try "on the command line" 0 weft run spmm.weft -t c --schedule "$(sed '1,/^schedule/d' own.weft)" $data
same right.txt
try "a rule that ends nowhere" 1 weft run spmm.weft -t c --schedule 'format J f() { axis I = m' $data
err 'a format with a rule of its own is written as'
try "the list" 0 weft list formats
out 'bsr(b, c)'
finish
