#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The error of functions in lanes, for each width that this machine has, over every STEP-th of the
# 2^32 floats; 1: over all of them, which takes minutes a width.
# Usage: tests/elementary.sh STEP [FUNCTION]
set -u
cd "$(dirname "$0")/.."
. tests/tool.sh

step=${1:?usage: tests/elementary.sh STEP [FUNCTION]}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
code=0
# width NAME RUN CC FLAG...
width() {
    local name=$1 run=$2
    shift 2
    echo "$name:"
    "$@" -O2 -std=gnu11 -ffp-contract=off -Wall -Wextra -Isrc tests/elementary.c -o "$dir/$name" -lm &&
        $run "$dir/$name" "$step" "${only[@]}" | tee -a "$dir/log"
    [ "${PIPESTATUS[0]}" = 0 ] || code=1
}
only=("${@:2}")
cpu_has() { grep -qw "$1" /proc/cpuinfo; }
case $(uname -m) in
x86_64)
    width sse2 "" "${CC:-cc}"
    cpu_has avx2 && cpu_has fma && width avx2 "" "${CC:-cc}" -mavx2 -mfma -mf16c
    cpu_has avx512vl && width avx512 "" "${CC:-cc}" -march=x86-64-v4
    if need aarch64-linux-gnu-gcc "NEON" && need qemu-aarch64 "NEON"; then
        step=$((step * 101 < 16777213 ? step * 101 : 16777213)) # emulated
        width neon "qemu-aarch64 -L /usr/aarch64-linux-gnu" aarch64-linux-gnu-gcc
    fi
    ;;
*) width native "" "${CC:-cc}" ;;
esac
awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 }
     END { printf "%d passed, %d failed\n", p, f }' "$dir/log"
exit $code
