#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Programs of later stages: what a pass gives is text that reads, checks, runs and goes on through the
# passes after it.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/cli/lib.bash"
data="--in A=a.mtx --in B=b.mtx"

try "--after without a pass" 2 weft print --after
err "--after wants the name of a pass"
try "--after an unknown pass" 2 weft print --after lunch spmm.weft
err "there is no pass lunch"
try "the passes are listed" 0 weft list passes
out "positions"

weft run spmm.weft $data >right.txt
for pass in $(weft list passes | cut -d' ' -f1); do
    try "print --after $pass" 0 weft print --after $pass spmm.weft
    none stderr
    cp stdout $pass.weft
    try "$pass reads and checks" 0 weft check $pass.weft
    try "$pass prints as it is" 0 weft print $pass.weft
    same $pass.weft
    try "$pass runs" 0 weft run $pass.weft $data
    same right.txt
done
for pass in flatten cse; do
    try "$pass from the text of positions" 0 weft print --after $pass positions.weft
    same $pass.weft
done
try "a pass that is over" 1 weft print --after positions flatten.weft
err "the program is at stage loops already, and positions needs stage coordinates"
try "no derivative of a tree" 1 weft grad flatten.weft
err "spmm is at stage loops; the derivative is taken before that"

cat >race.weft <<'END'
program race(m) stage loops
f64 Y[m]
phase y for i in 0..m
    Y[i / 2] = i
END
try "a race is an error" 1 weft run race.weft --set m=3
err "y: element 0 of Y is written by iterations 0 and 1 of one phase"
cat >outside.weft <<'END'
program outside(m) stage positions
f64 Y[m]
phase y for i in 0..m
    Y[i + 1] = i
END
try "an index outside is an error" 1 weft run outside.weft --set m=3
err "y: index 3 of Y is outside 0..3"
try "a fault has its place" 1 weft check - <<'END'
program fault(m) stage loops
f64 Y[m]
phase y for i in 0..m
    Y[0] = 1
END
err "<stdin>:4:5: error: y: every iteration of the phase writes the same element of Y"

for program in "$here"/examples/*.weft; do
    name=$(basename "$program" .weft)
    weft print --after positions "$program" >p.weft
    weft print --after cse "$program" >s.weft
    for text in p.weft s.weft; do
        try "$name: $text checks" 0 weft check $text
        try "$name: $text prints as it is" 0 weft print $text
        same $text
    done
    try "$name: from one to the other" 0 weft print --after cse p.weft
    same s.weft
done
finish
