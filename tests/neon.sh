#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Kernels for NEON on a machine that has none: the tests of kernels, built by a cross compiler, run
# under qemu's emulation of a process.  It starts the cross compiler itself, outside the emulation.
# Usage: tests/neon.sh [N random programs [FILE...]]
set -u
cd "$(dirname "$0")/.."
. tests/tool.sh

need aarch64-linux-gnu-gcc "NEON" || exit 0
need qemu-aarch64 "NEON" || exit 0
tests/tree.sh neon || exit 1

export WEFT_CC=aarch64-linux-gnu-gcc
kernel() { qemu-aarch64 -L /usr/aarch64-linux-gnu build/neon/weft_kernel "$@"; }

programs=${1:-300} files=("${@:2}")
[ ${#files[@]} -gt 0 ] || files=(examples/*.weft tests/kernel/cases/*.weft)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
kernel files cc "${files[@]}" >"$log" 2>&1 || code=1
kernel run "$programs" $((${WEFT_TEST_SEED:-1} + 40000)) cc 150 >>"$log" 2>&1 || code=1
grep -v ' passed, ' "$log"
awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 }
     END { printf "%d passed, %d failed\n", p, f }' "$log"
exit $code
