#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Behind `make gpu-check`: all that can be known of GPU targets on a machine without a GPU.  Installs
# the tools that it may, runs those that are there, names the others, and prints one table.
# Usage: tests/gpu/check.sh [SHARE]; one program in SHARE, 20 without it
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/tools.sh
share=${1:-20}
install_tools pocl oclgrind clang-22 opencl-headers || true
failed=0
# part NAME COMMAND...: its last line, and all of it when it fails or skips something
part() {
    local log
    log=$("${@:2}" 2>&1) || failed=$((failed + 1))
    grep -E '^skipped: ' <<<"$log"
    if grep -qE ' 0 failed' <<<"$log"; then
        printf '%-58s %s\n' "$1" "$(tail -n 1 <<<"$log")"
    elif ! grep -qE '^skipped: ' <<<"$log"; then
        printf '%s\n==== %s\n' "$log" "$1 failed"
        failed=$((failed + 1))
    fi
}
part "random programs on PoCL" bash tests/device.sh pocl 60 70001
part "random programs under Oclgrind" bash tests/device.sh oclgrind 30 80001
part "random programs in the interpreter of sm_80 code" bash tests/device.sh cuda 60 90001
part "planted defects, each found by two tools" bash tests/device.sh plants 2
part "the interpreter of sm_80 code itself" bash tests/gpu/sass.sh
part "texts build alone: nvcc, clang-22, no warning" bash tests/gpu/text.sh $((share * 4)) 1
part "programs on PoCL and as CUDA text" bash tests/gpu/programs_run.sh "$share" 1
cat <<END

Executed in the interpreter of sm_80 machine code.  launches; warp instructions an entry (or item)
of all launches, and over the program's arithmetic (operations / 64); registers of a thread; spills;
shared bytes of a block; resident warps of an SM, of 64; bytes of global memory an entry, cached or not.
Counts are not times.
program                    target     right  n instr/item   /arith regs spl shared wrp  bytes/item
END
for list in tests/gpu/counts_*.sh; do
    name=${list##*counts_}
    bash tests/gpu/counts.sh "${name%.sh}" || failed=$((failed + 1))
done
echo "$failed parts failed"
[ $failed = 0 ]
