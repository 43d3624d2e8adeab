#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft bench and weft gen on tiny problems: what they verify, print and refuse; never how long it
# took.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/lib.bash"

try "a generator" 0 weft gen uniform:n=40:nnz=200
out "40 rows, 40 columns, 200 entries"
out "rows: "
none stderr
for file in g.mtx g.npz; do
    try "write $file" 0 weft gen powerlaw:n=30:nnz=100 -o $file
    none stdout
    try "read $file" 0 weft gen $file
    out "30 rows, 30 columns, 100 entries"
done
weft gen banded:n=4:w=1 -o band.mtx
try "what gen writes, run reads" 0 weft run spmm.weft --in A=band.mtx --in B=b.mtx
same - <<'END2'
C f32 [4, 2]
   2   4
   6   9
  12  15
  10  12
END2
try "gen of nothing" 2 weft gen
try "gen of two" 2 weft gen g.mtx g.npz
err "one graph at a time"
try "gen --fast" 2 weft gen --fast
try "gen of no generator" 1 weft gen smallworld:n=3
err "uniform, powerlaw, rmat or banded"
try "gen to a strange file" 1 weft gen g.mtx -o g.txt
err "ends in .mtx or .npz"

try "the machine" 0 weft bench machine
out "weft-machine 4"
out "measured 1"
out "gather 64 "
none stderr
kept=$(ls "$WEFT_CACHE_DIR"/machine-*.txt)
# The printed lines without their units: the lines of the file.
facts() { sed -E '/^#/d; s: +(bytes|GHz|GFLOP/s|1e9 results/s|GB/s)$::' stdout; }
facts | cmp -s - "$kept"
verdict "the machine is kept" $? "$kept"
try "the machine again" 0 weft bench machine
for fact in 'clock [0-9.]+ [0-9.]+ +GHz' 'cache L2 [0-9]+ +bytes' 'fma f32 [0-9.]+ [0-9.]+ +GFLOP/s' 'call exp f32 .* 1e9 results/s' \
    'stream L2 triad .* GB/s' 'gather [0-9]+ .* GB/s'; do
    grep -qE "^$fact\$" stdout
    verdict "$name" $? "no unit: $fact"
done
out "# rates are those of one thread, then of one thread for each CPU"
facts | cmp -s - "$kept"
verdict "what was kept is read" $? "it changed"
try "the machine without a compiler" 0 env WEFT_CACHE_DIR="$tmp/none" WEFT_DISABLE_JIT=1 "$WEFT" bench machine
out "measured 0"
err "was not measured"
[ -e "$tmp/none" ] && ls "$tmp/none" | grep -q machine
verdict "a guess is not kept" $((1 - $?)) "it was"

quick="--seconds 0"
try "spmm" 0 weft bench spmm:g.mtx:k=16:f32:t=2 $quick
out "interpreter"
out "spmm:g.mtx:k=16:f32:t=2"
out "GFLOP/s"
try "a held input" 0 weft bench "spmm:g.mtx:k=16:t=2:sched=format E bsr(2, 2):hold=A:hold=B" $quick
out "interpreter"
try "a held output" 1 weft bench spmm:g.mtx:k=16:hold=C $quick
err "C is written by the program"
try "tensor products" 0 weft bench tp:2x0e+1o*0e+1o'>'0e+1o:n=20 tp:2x1o*2x1o:uuu:shared:f64:ir_mul:backward \
    tp:1o*1o'>'0e:uvw:double:item $quick
out "interpreter"
out "uuu:shared:f64"
try "a named product" 0 weft bench tp:nequip-water:n=3:t=1 $quick
out "tp:nequip-water"
try "convolutions" 0 weft bench conv:2x0e+1o*0e+1o'>'0e+1o:atoms=8:hidden=3 \
    conv:2x0e*0e:uvu:shared:f64:system=water:atoms=9:cutoff=2.5:backward conv:0e*0e:system=oxide:atoms=5 $quick
out "conv:2x0e*0e:uvu:shared:f64:system=water:atoms=9:cutoff=2.5:backward"
try "a named convolution on a small graph" 0 weft bench conv:nequip-water:atoms=512:t=1 $quick
out "small graph"
for word in atoms=0 atoms=x cutoff=-1 cutoff= hidden=0; do
    try "a convolution of $word" 2 weft bench conv:0e*0e:$word $quick
    err "makes no sense: $word"
done
try "a crystal that is not known" 1 weft bench conv:0e*0e:system=cheese $quick
try "a product without irreps" 2 weft bench tp:uvu
err "it has no irreps"
try "a product of one factor" 1 weft bench tp:4x0e $quick
err "neither a named product nor IN1*IN2"
try "irreps that do not read" 1 weft bench tp:4x0f*0e $quick
err "0f"
try "several" 0 weft bench spmm:g.npz:k=5 sddmm:g.npz:k=5:f64:i64 spmv:uniform:n=20:nnz=50:t=1 \
    softmax:g.mtx spmm:coo:g.mtx:k=3 $quick
[ "$(grep -c interpreter stdout)" = 5 ]
verdict "$name" $? "not five lines"
try "a large one" 0 weft bench spmm:uniform:n=3000:nnz=200000:k=64 $quick
out "loop"
try "a large one at entries" 0 weft bench sddmm:uniform:n=3000:nnz=200000:k=64:i64 $quick
out "loop"
try "a file" 0 weft bench file:spmm.weft:g.mtx:f=8 --baseline spmm:g.mtx:k=8 --json $quick
out '"problem": "file:spmm.weft:g.mtx:f=8"'
out '"verified": "interpreter"'
out '"against": "spmm:g.mtx:k=8"'
out '"baseline": '
for key in ms gflops gbs gathered_gbs limit_ms share predicted_ms plan_ms compile_ms nnz; do
    out "\"$key\": "
done
if command -v python3 >/dev/null; then
    cp stdout line.json
    try "it is JSON" 0 python3 -c 'import json; json.load(open("line.json"))'
fi
try "a large file" 0 weft bench file:spmm.weft:uniform:n=3000:nnz=200000:f=64 $quick
out "small graph"

# No comparison passes on NaN.
cat >wrong.weft <<'END2'
program wrong(m, n, f)
axis I = dense(m), J = compressed(I, n), K = dense(f)
f32 A[I, J], B[n, K], C[I, K]
c: C[i, k] += A[i, j] * B[j, k] / 0
END2
try "NaN is not right" 1 weft bench file:wrong.weft:g.mtx:f=4 $quick
err "C is wrong by nan"

for bad in spmm spmm:g.mtx:k spmm:g.mtx:k=x spmm::k=3 spmm:g.mtx:k=-1 file:x.weft; do
    try "bench $bad" 2 weft bench $bad
    none stdout
done
try "bench of no graph" 1 weft bench spmm:none.mtx:k=3
err "none.mtx"
try "bench of no operator" 1 weft bench frobnicate:g.mtx:k=3
err "frobnicate"
try "bench without k" 1 weft bench spmm:g.mtx
err "a size is missing: k"
try "bench of another size" 1 weft bench spmm:g.mtx:k=3:q=4
err "the program has no size q"
try "bench of a dense program" 1 weft bench file:dense.weft:g.mtx
try "bench of nothing" 2 weft bench
try "bench --fast" 2 weft bench --fast
try "bench --seconds x" 2 weft bench spmm:g.mtx:k=1 --seconds x
# Structures that are no matrix: three coordinates, n:m, several axes.
data=$here/examples/data
csf=file:$here/examples/mttkrp_csf.weft
try "a graph for three coordinates" 1 weft bench $csf:uniform:n=9:nnz=20:f=4
err "its structure is not that of one matrix; give data=FILE.npz, with the array K.start"
try "three coordinates" 0 weft bench $csf:data=$data/csf.npz:f=4:b=5:c=6 --seconds 0
out "interpreter"
try "a size that the file does not tell" 1 weft bench $csf:data=$data/csf.npz:f=4 --seconds 0
err "the size b is not known"
try "a graph beside data" 2 weft bench $csf:g.mtx:data=$data/csf.npz:f=4
err "both a graph and data="
try "n:m" 0 weft bench file:$here/examples/spmm_nm.weft:data=$data/nm.npz:f=4 --seconds 0
out "interpreter"
try "tune three coordinates" 0 weft tune $csf:data=$data/csf.npz:f=4:b=5:c=6 --seconds 1 --top 2 --quiet
out "  schedule  "

try "bench machine and more" 2 weft bench machine spmm:g.mtx:k=1
finish
