#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The default schedule of a GPU is text: what `weft explain --plain` prints, given back, gives the
# default kernels byte for byte.  Of every example, operator, option and gradient, one in SHARE.
# Usage: tests/gpu/explain.sh SHARE SEED [WEFT]
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/programs.sh
share=$1 seed=$2 weft=${3:-$PWD/build/release/weft}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gpu_programs "$scratch/p" "$weft"
passed=0 failed=0 lines=0 n=$seed
while IFS=$'\t' read -r name schedule; do
    [ -z "$schedule" ] || continue
    n=$((n + 1))
    [ $((n % share)) = 0 ] || continue
    for target in cuda:sm_80 opencl c:warp; do
        file=$scratch/p/$name.weft
        "$weft" emit -t "$target" "$file" >"$scratch/default" 2>/dev/null || continue
        "$weft" explain -t "$target" --plain "$file" >"$scratch/text" &&
            "$weft" emit -t "$target" --schedule "$(cat "$scratch/text")" "$file" >"$scratch/again" &&
            cmp -s "$scratch/default" "$scratch/again"
        case $? in
        0) passed=$((passed + 1)) lines=$((lines + $(wc -l <"$scratch/text"))) ;;
        *) failed=$((failed + 1)) && echo "==== $name for $target" && diff "$scratch/default" "$scratch/again" | head -n 10 ;;
        esac
    done
done <"$scratch/p/list"
echo "$lines lines of schedule"
[ $lines -gt 0 ] || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ $failed = 0 ]
