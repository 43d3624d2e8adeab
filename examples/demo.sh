#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# A short tour, run by `make demo`: a sparse program whose answer can be checked by eye, and an
# equivariant convolution that passes the test its name promises.  Fails when a result is wrong.
set -eu
weft=$(realpath "${WEFT:-$(dirname "$0")/../build/release/weft}")
cd "$(dirname "$0")"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-demo-XXXXXX")
trap 'rm -rf "$tmp"' EXIT

body() { sed -n '/^program/,$p' "$1" | sed 's/^/    /'; }
values() { # of an .npy file of f64, one a line
    local header
    header=$(od -An -tu2 -j8 -N2 "$1")
    od -An -v -w8 -tf8 -j $((10 + header)) "$1"
}

steps=200
echo "1. Two leaders of a club of 18 quarrel: 1 is for (+1), 10 is against (-1). Everyone else keeps"
echo "   taking the mean of their friends' opinions. Who ends on which side? One step is the program"
echo
body neighbour_mean.weft
echo
echo "   on the sparse matrix of their 39 friendships, run $steps times. Beside it, what solving the"
echo "   linear system of the end state gives:"
echo
x=data/club.npz
for ((k = 0; k < steps; k++)); do
    "$weft" run neighbour_mean.weft --in A=data/club.mtx --in pin=data/club.npz --in X=$x \
        --out Y="$tmp/y$((k % 2)).npy"
    x=$tmp/y$((k % 2)).npy
done
paste <(values "$x") <(values data/club_end.npy) | awk '
    { got[NR] = $1; want[NR] = $2; d = $1 - $2; if (d < 0) d = -d; if (!(d <= far)) far = d }
    END {
        print "   member    weft   solved      member    weft   solved"
        for (i = 1; i <= 9; i++)
            printf "   %6d %+7.4f  %+7.4f      %6d %+7.4f  %+7.4f\n",
                i, got[i], want[i], i + 9, got[i + 9], want[i + 9]
        printf "\n   largest difference %.1e: %s\n", far, far <= 1e-12 ? "the same" : "WRONG"
        exit !(NR == 18 && far <= 1e-12)
    }'

echo
echo "2. A graph convolution on scalars and vectors. Turning the input must turn the output, and"
echo "   nothing else: edges of run time and Clebsch-Gordan coefficients meet in one statement,"
echo
body conv_equivariant.weft | tail -n 1
echo
conv=("$weft" run conv_equivariant.weft --in E.start=data/conv.npz --in E.j=data/conv.npz
      --in Wt=data/conv.npz)
"${conv[@]}" --in X=data/conv.npz --in Y=data/conv.npz --out Z="$tmp/z.npy"
"$weft" run rotate.weft --in DX=data/rotation.npz --in DY=data/rotation.npz \
    --in DZ=data/rotation.npz --in X=data/conv.npz --in Y=data/conv.npz --in Z="$tmp/z.npy" \
    --out RX="$tmp/rx.npy" --out RY="$tmp/ry.npy" --out RZ="$tmp/convolved_then_turned.npy"
"${conv[@]}" --in X="$tmp/rx.npy" --in Y="$tmp/ry.npy" --out Z="$tmp/turned_then_convolved.npy"
"$weft" run difference.weft --in A="$tmp/turned_then_convolved.npy" \
    --in B="$tmp/convolved_then_turned.npy" --out far="$tmp/far.npy" --out large="$tmp/large.npy" \
    --out relative="$tmp/relative.npy"
paste <(values "$tmp/z.npy") <(values "$tmp/turned_then_convolved.npy") \
    <(values "$tmp/convolved_then_turned.npy") | awk '
    NR == 1 { print "   node 1, first vector:  as given   turned, convolved   convolved, turned" }
    NR == 7 || NR == 11 || NR == 15 { printf "   %31.6f %19.15f %19.15f\n", $1, $2, $3 }'
values "$tmp/relative.npy" | awk '{
    printf "\n   largest difference over all nodes, relative: %.1e: %s\n", $1,
        $1 <= 4e-15 ? "equivariant" : "WRONG"
    exit !($1 <= 4e-15)
}'
