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
try "print with a schedule" 0 weft print --after panels --schedule "panel 3; pack 1" spmm.weft
out "phase B.pack for"
out "(f + 2) / 3"
try "options in any order" 0 weft print spmm.weft --schedule "tile 4" --after tiles
out " by 4"
weft print --after share --schedule "panel 3; pack 1" spmm.weft >shared.weft
try "the text runs" 0 weft run shared.weft $data
same right.txt
try "emit with a schedule" 0 weft emit spmm.weft --schedule "panel 3; pack 1"
out "a_B_pack"
graph=uniform:n=60:nnz=300
try "bench with a schedule" 0 weft bench --seconds 0 "spmm:$graph:k=9:sched=panel 4; pack 1:t=2"
out "sched=panel 4; pack 1"

for command in "run spmm.weft" "print --after tiles spmm.weft" "emit spmm.weft"; do
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
finish
