#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Executed warp instructions of sm_80 for each nonzero, of what nvcc makes of the default schedule:
# one row a program, on rows of 96 and 160 entries (the slope), of 32, and of log-normal length.
# Below each, peers' kernels on the same matrices, counted in the same way.  Counts are not times.
# A row fails where it has more than was reached once (`at most`), spills, has less than 32 resident
# warps, or where the interpreter finds a race or a wrong access.  The goal of a row is another figure.
# Usage: tests/gpu/counts.sh sparse [NAME]
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/tools.sh
weft=$PWD/build/release/weft sass=$PWD/build/release/weft_sass only=${2:-}
need_cuda "counts of machine code" || { echo "0 passed, 0 failed"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# arguments CU SHAPES: what the kernel of the first phase takes, in the order of the text's heading;
# SHAPES are "NAME=in:cols*128"; the arrays of long rows, of which there are none, hold anything.
arguments() {
    local name shape
    sed -n '/^ \* Each takes these arrays/,/^ \* and then/p' "$1" | grep -E '^ \*     ' | while read -r _ _ name _; do
        shape=$(tr ' ' '\n' <<<"$2" | sed -n "s/^$name=//p")
        case $name in
        E.start) echo start ;;
        E.j) echo coord ;;
        *.limit) echo ints:2147483647 ;;
        *) echo "${shape:-in:1}" ;;
        esac
    done
    # where units begin, scratch, the word for faults; then sizes, iterations, units, step, scratch
    echo in:1 in:1 inout:1
}

# sparse PROGRAM ROWS_OF_A_WARP GOAL AT_MOST SHAPES: counts of its first kernel.
sparse() {
    [[ $1 == *"$only"* ]] || return
    local spec=$1 shares=$2 goal=$3 limits=$4 m n line sizes use good=ok at=0
    "$weft" op "$spec" >"$scratch/p.weft" && "$weft" emit -t cuda:sm_80 "$scratch/p.weft" >"$scratch/p.cu" &&
        nvcc -arch=sm_80 -O3 -fmad=false -cubin -o "$scratch/p.cubin" "$scratch/p.cu" || good="does not build"
    local kernel
    kernel=weft_run_$(sed -n 's/^program \([a-z0-9_]*\).*/\1/p' "$scratch/p.weft")_kernel_0
    read -r _ use < <("$sass" "$scratch/p.cubin" | grep "^$kernel ")
    read -r registers stack shared spills _ warps _ <<<"${use//,/}"
    sizes=$(sed -nE 's/^ *int64_t size\[([0-9]+)\];/\1/p' "$scratch/p.cu" | tail -n 1)
    line=
    for m in steady deg32 skew; do
        # sizes are not read by these kernels: m, n and the numbers of entries may be anything
        local numbers=()
        for ((n = 0; n < sizes; n++)); do numbers+=(i64:256); done
        # shellcheck disable=SC2046 # words are wanted
        "$sass" "$scratch/p.cubin" "$kernel" -m $m -b 128 -g "rows/$((4 * shares))" $(arguments "$scratch/p.cu" "$5") \
            "${numbers[@]}" i64:rows i64:rows i64:1 i64:0 >"$scratch/out" 2>"$scratch/err" || good="wrong: $(head -n 1 "$scratch/err")"
        n=$(awk '/^warp instructions/ { print $4 }' "$scratch/out")
        line+=$(printf ' %6.2f' "${n:-0}")
        local limit
        at=$((at + 1))
        limit=$(cut -d/ -f$at <<<"$limits")
        awk -v n="${n:-1e9}" -v limit="$limit" 'BEGIN { exit !(n > limit) }' && [ "$good" = ok ] && good="more than $limit on $m"
    done
    [ "$good" != ok ] || [ "${warps:-0}" -ge 32 ] || good="fewer than 32 warps"
    [ "$good" != ok ] || [ "${spills:-1}" = 0 ] || good="spills"
    printf '%-22s%s  %4s registers, %s spills, %s bytes shared, %s warps; goal %s, at most %s: %s\n' \
        "$spec" "$line" "$registers" "$spills" "$shared" "$warps" "$goal" "$limits" "$good"
    if [ "$good" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

peer() { printf '    %-26s %s\n' "$1" "$2"; }

echo "program                steady  deg32   skew"
sparse spmm:f=128 1 9/10/14 9/10/14 "B=in:cols*128 A=values C=out:rows*128"
peer "Sputnik" "6.75 / 8.5 / 14.7, 255 registers, 8 warps"
peer "SparseTIR, hyb" "17.3 / 17.3 / 29.9, 32 registers, 64 warps"
peer "cuSPARSE (static)" "11.4 to 14.4"
sparse spmm:f=64 2 5/6/8 5/6/10.5 "B=in:cols*64 A=values C=out:rows*64"
peer "Sputnik" "3.4 steady"
peer "SparseTIR, hyb" "8.6 steady"
sparse spmm:f=32 4 3/3.5/5.5 3/3.5/6.5 "B=in:cols*32 A=values C=out:rows*32"
peer "Sputnik" "2.1 steady"
peer "SparseTIR, hyb" "6.5 steady"
sparse sddmm:f=128 1 10/11/13.5 10/11/13.5 "X=in:rows*128 Y=in:cols*128 Z=out:nnz"
peer "Sputnik" "10.2 / 11.3 / 29.5, 72 registers, 28 warps"
peer "SparseTIR, best of 27" "13.4 / 13.4 / 13.5, 78 registers, 25 warps"
sparse sddmm:f=32 1 5/6/9 5/6/9 "X=in:rows*32 Y=in:cols*32 Z=out:nnz"
peer "Sputnik" "3.8 steady"
peer "SparseTIR" "8.9 steady"
sparse segment_sum:f=128 1 7 7/8/13 "X=in:nnz*128 Y=out:rows*128"
peer "DGL" "19 steady"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
