#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft neighbours: what it prints, writes and refuses.
. "$(dirname "$0")/lib.bash"

try "a crystal" 0 weft neighbours crystal:silicon:repeat=2 -r 2.5
same - <<'END'
64 atoms: 64 Si
periodic along 10.862 0 0
periodic along 0 10.862 0
periodic along 0 0 10.862
256 pairs nearer than 2.5
neighbours of an atom: least 4, mean 4, most 4; nearest at 2.35169
END
none stderr
try "water" 0 weft neighbours water:molecules=8
out "24 atoms: 8 O, 16 H"
try "write atoms" 0 weft neighbours crystal:mgo:rattle=0.1 -o mgo.xyz
none stdout
try "read atoms" 0 weft neighbours mgo.xyz -r 2.6
out "8 atoms: 4 Mg, 4 O"
try "write neighbours" 0 weft neighbours mgo.xyz -r 2.6 -o mgo.npz
none stdout
try "neighbours are a graph" 0 weft gen mgo.npz
out "8 rows, 8 columns"
try "atoms by way of a cutoff" 0 weft neighbours mgo.xyz -r 3 -o again.xyz
cmp -s mgo.xyz again.xyz
verdict "the same atoms" $? "mgo.xyz and again.xyz differ"
printf '2\n\nH 0 0 0\nH 0 0 0.74\n' >h2.xyz
try "a molecule" 0 weft neighbours h2.xyz -r 1
same - <<'END'
2 atoms: 2 H
2 pairs nearer than 1
neighbours of an atom: least 1, mean 1, most 1; nearest at 0.74
END
printf '0\n\n' >none.xyz
try "no atoms" 0 weft neighbours none.xyz -r 1
out "0 pairs nearer than 1"

printf '2\n\nH 0 0 0\nH 0 0 zero\n' >bad.xyz
try "a bad file" 1 weft neighbours bad.xyz
err "bad.xyz:4:7: error: expected a coordinate, a finite number, found 'zero'"
try "no such file" 1 weft neighbours nowhere.xyz
err "nowhere.xyz"
try "no such generator" 1 weft neighbours ice:molecules=3
err "crystal or water"
try "to a strange file" 1 weft neighbours h2.xyz -o h2.pdb
err "ends in .xyz"
try "neighbours to a strange file" 1 weft neighbours h2.xyz -r 1 -o h2.mtx
err "ends in .npz"
try "a cutoff of nothing" 2 weft neighbours h2.xyz -r 0
err "the cutoff is a length above 0"
try "a cutoff that is no number" 2 weft neighbours h2.xyz -r 3A
try "a cutoff that is missing" 2 weft neighbours h2.xyz -r
err "a word is missing"
try "two structures" 2 weft neighbours h2.xyz h2.xyz
err "one structure at a time"
try "no structure" 2 weft neighbours
err "atoms are missing"
try "too far" 1 weft neighbours crystal:iron -r 1e20
err "wrap the positions"
try "help" 0 weft neighbours --help
out "usage: weft neighbours ATOMS"
finish
