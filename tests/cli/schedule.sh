#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Schedules from the command: the table of steps, run, print, emit and bench with one, and what is
# said of one that makes no sense.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/cli/lib.bash"
data="--in A=a.mtx --in B=b.mtx"

try "the steps are listed" 0 weft list steps
for step in tile ahead panel pack jam; do out "$step "; done

weft run spmm.weft $data >right.txt
for schedule in "" "tile 1" "tile 0; ahead 0" "panel 2; pack 1" "  jam 0 ;"; do
    try "run with '$schedule'" 0 weft run spmm.weft --schedule "$schedule" $data
    same right.txt
done
try "print with a schedule" 0 weft print --after panel --schedule "panel 3; pack 1" spmm.weft
out "phase B.pack for"
out "(f + 2) / 3"
try "options in any order" 0 weft print spmm.weft --schedule "tile 4" --after accumulate
out " by 4"
weft print --after cse --schedule "panel 3; pack 1" spmm.weft >shared.weft
try "the text runs" 0 weft run shared.weft $data
same right.txt
try "emit with a schedule" 0 weft emit spmm.weft --schedule "panel 3; pack 1"
out "a_B_pack"
graph=uniform:n=60:nnz=300
try "bench with a schedule" 0 weft bench --seconds 0 "spmm:$graph:k=9:sched=panel 4; pack 1:t=2"
out "sched=panel 4; pack 1"

for command in "run spmm.weft" "print --after accumulate spmm.weft" "emit spmm.weft"; do
    try "$command with an unknown step" 1 weft $command --schedule "tiles 8"
    err 'there is no schedule step tiles; `weft list steps` shows them'
    try "$command with a number out of range" 1 weft $command --schedule "tile 65"
    err "the schedule step tile takes a number from 0 to 64"
    try "$command without a text" 2 weft $command --schedule
    err "--schedule wants a"
done
try "bench with an unknown step" 1 weft bench "spmm:$graph:k=9:sched=lunch 1"
err "there is no schedule step lunch"
try "print with a schedule for nothing" 2 weft print --schedule "tile 8" spmm.weft
err "--schedule says nothing without --after"

for step in split fuse reorder unroll peel parallel merge vectorize tensorize; do
    try "the step $step is listed" 0 weft list steps
    out "$step "
done
steps="split c.k 2; reorder c.i c.k.0 c.j c.k.1; vectorize c.k.1 8; parallel c.i balance J"
try "run with steps" 0 weft run spmm.weft -t c --schedule "$steps" $data
same right.txt
try "explain says what is done" 0 weft explain --schedule "$steps" spmm.weft
out "done     split c.k 2"
out "done     vectorize c.k.1 8"
out "  c.i  parallel"
out "    c.k.0"
try "explain says what is refused" 0 weft explain --schedule "reorder c.j c.i; fuse c.i c.j" spmm.weft
out "refused  reorder c.j c.i: how far c.j goes depends on c.i, which has to be outside"
out "done     fuse c.i c.j"
try "explain wants a text" 2 weft explain spmm.weft --schedule
err "--schedule wants a text after it"
try "a refused step is an error" 1 weft run spmm.weft -t c --schedule "parallel c.k" $data
err "parallel c.k: only the outermost loop of a phase can be parallel"
try "print after the first step" 0 weft print --after 1 --schedule "$steps" spmm.weft
out "for k1 in 0..2 within tiles(K, 2)[k0] as k.1"
try "print after a step" 0 weft print --after reorder --schedule "$steps" spmm.weft
out "phase c scheduled for i in"
try "print after the last step" 0 weft print --after vectorize --schedule "$steps" spmm.weft
out "vector for k1"
try "print after a step that is not there" 1 weft print --after fuse --schedule "$steps" spmm.weft
err "the schedule has no step fuse"
try "print after too many steps" 1 weft print --after 5 --schedule "$steps" spmm.weft
err "the schedule has fewer than 5 steps"
try "print after nothing" 2 weft print --after nothing spmm.weft
err "there is no pass nothing"

{ cat spmm.weft; echo schedule; echo "split c.k 2; fuse c.i c.j # all entries"; } >own.weft
try "a program with a schedule of its own prints it" 0 weft print own.weft
out "    fuse c.i c.j"
weft print own.weft >again.weft
try "and reads it back" 0 weft print again.weft
same again.weft
try "and runs with it" 0 weft run own.weft -t c $data
same right.txt
try "another one takes its place" 0 weft explain --schedule "unroll c.k" own.weft
out "refused  unroll c.k"
try "explain takes its own" 0 weft explain own.weft
out "done     fuse c.i c.j"
cp spmm.weft beside.weft
echo "split c.j 3 mask" >beside.sched
try "a schedule beside the program" 0 weft explain beside.weft
out "done     split c.j 3 mask"
try "and runs with it, too" 0 weft run beside.weft -t c $data
same right.txt
echo "lunch c.j" >beside.sched
try "one that makes no sense" 1 weft check beside.weft
err "there is no schedule step lunch"
{ cat spmm.weft; echo schedule; echo "lunch"; } >own.weft
try "nor in the program" 1 weft check own.weft
err "there is no schedule step lunch"
# Blocks as tiles of registers, buckets as one launch, blocks that have to be exact.
b=blocks_j
tile="format J bsr(2, 2)
    reorder c.blocks.bj_$b c.blocks.k c.blocks.bi_$b
    cache_read c.blocks B at c.blocks.k
    parallel c.blocks.ib_$b balance JB_blocks_J
    tensorize c.blocks.jb_$b"
for shape in "" " 2 8" " 1 40"; do
    try "run with tiles of$shape" 0 weft run spmm.weft -t c --schedule "$tile$shape" $data
    same right.txt
done
try "the tile" 0 weft print --after tensorize --schedule "$tile" spmm.weft
out "        reg v1: f32x"
try "no tile" 0 weft explain --schedule "tensorize c.j" spmm.weft
out "refused  tensorize c.j: no loop in it is over rows"
hyb="format J hyb(2, 1)
    merge C.init c.b0_0 c.b0_1 c.b1_0 c.b1_1 c.long0 c.long1 by 3 balance J"
try "buckets in one launch" 0 weft explain --schedule "$hyb" spmm.weft
out "done     merge"
try "run with buckets in one launch" 0 weft run spmm.weft -t c --schedule "$hyb" $data
same right.txt
try "as text" 0 weft print --after merge --schedule "$hyb" spmm.weft
out "    c.long1: for r_long1_j in first(R_long1_J, 0, kept_r_long1_j, from)..first("
try "blocks that are exact" 0 weft run spmm.weft -t c --schedule "split c.k 2 exact" $data
same right.txt
try "blocks that are not" 1 weft run spmm.weft -t c --schedule "split c.k 3 exact" $data
err "a size is no multiple of the blocks that the schedule says are exact"
# Passes leave scheduled phases alone, and so may not take away an array that such a phase reads: rows of
# edges became scratch of other phases, and the scheduled one read what nobody had written.
cat >rows.weft <<'end'
program edges(n)
axis I = n, E(I) = seg, K = 4
f32 Y[E], Z[E], U[I, K]
temp f32 V[E, K]
v: V[e, k] += Y[e]
z: Z[e] += V[e, k]
u: U[i, k] += V[e, k]
end
try "rows that a scheduled phase reads" 0 weft print --after fuse_entries --schedule "split u.k 2" rows.weft
out "            V[e, k] += Y[e]"
try "rows that nothing else reads" 0 weft print --after fuse_entries --schedule "split z.k 2" rows.weft
out "            V[e, k] += Y[e]"

# Values that share parts: a step that walks them as trees, not once for each part, does not end.
squares() { # VALUE STATEMENT: the statement on a40, 40 times the square of the value
    echo "    let a0 = $1"
    for i in {1..40}; do echo "    let a$i = a$((i - 1)) * a$((i - 1))"; done
    echo "    $2"
}
{
    printf 'program p(n)\naxis I = n, K = 8, H = 8\nf32 X[I, K], V[I], M[H, K], Z[I, K], W[I, K], S[I], R[I, H]\n'
    printf 'temp f32 T[I, K]\nfor i, k:\n'
    squares 'X[i, k]' 't: T[i, k] = a40'
    printf 'for i, k:\n'
    squares 'T[i, k]' 'z: Z[i, k] = a40'
    printf 'for i, k:\n'
    squares 'X[i, k]' 's: S[i] += a40'
    printf 'for i, h, k:\n'
    squares 'X[i, k]' 'r: R[i, h] += a40 * M[h, k]'
    printf 'for i, k:\n'
    squares 'V[i]' 'w: W[i, k] = a40 * X[i, k]'
} >squares.weft
soon() { (ulimit -t 10 && "$WEFT" "$@"); } # in seconds of processor time
while read -r schedule; do
    try "$schedule of values that share parts" 0 soon explain squares.weft --schedule "$schedule"
    out "done     ${schedule##*; }"
done <<'end'
split z.i 8; peel z.i.0
fuse z.i z.k
reorder z.k z.i
unroll z.k
parallel z.i
cache_write s S at s.k
decompose_reduction s at s.i
compute_at t at z.k
compute_inline t
cache_read s X at s.i
rfactor s.k
pack r M by 4
vectorize z.k 8
vectorize w.k 8
vectorize s.k 4 by 2
end
finish
