#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Kernels of OpenCL against the interpreter, without a GPU: `pocl` runs them on the CPU, natively;
# `oclgrind` runs them work-item by work-item, where an access out of bounds or a race of two lanes is
# an error; `cuda` compiles them by nvcc and runs the machine code in the interpreter of tests/gpu/sass;
# `plants` breaks the prelude of kernels in several ways, each of which two tools have to find.
# Usage: tests/device.sh pocl|oclgrind|cuda N SEED [FILE...] | plants SEED
set -u
cd "$(dirname "$0")/.."
. tests/tool.sh
mode=$1
shift
kernel=$PWD/build/release/weft_kernel
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export POCL_CACHE_DIR=$PWD/build/pocl # what PoCL has compiled, for the next run
mkdir -p build/pocl build/oclgrind

on_pocl() { "$kernel" "$@"; }

# Oclgrind stands in for every driver; it does not know intrinsics that optimizations make.
on_oclgrind() {
    find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2>/dev/null | head -n 1 >build/oclgrind/oclgrind.icd
    OCL_ICD_VENDORS=$PWD/build/oclgrind OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCLGRIND_DATA_RACES=1 "$kernel" "$@"
}

# reports FILE: how many errors Oclgrind has told.
reports() { grep -acE 'data race|Invalid (read|write)|Work-group divergence' "$1"; }

case $mode in
pocl)
    need pocl "kernels on PoCL" || exit 0
    n=$1 seed=$2
    shift 2
    on_pocl run "$n" "$seed" device 20 >"$log" 2>&1
    [ $# = 0 ] || on_pocl files device "$@" >>"$log" 2>&1
    grep -avE '^[0-9]+ passed' "$log"
    runs=$((1 + ($# > 0)))
    awk -v runs=$runs '/^[0-9]+ passed/ { n++; p += $1; f += $3 }
        END { f += runs - n; print p + 0 " passed, " f + 0 " failed" }' "$log" ;;
oclgrind)
    need oclgrind "kernels under Oclgrind" || exit 0
    on_oclgrind run "$1" "$2" device 25 >"$log" 2>&1
    told=$(reports "$log")
    grep -avE '^[0-9]+ passed' "$log" | tail -n 60
    read -r passed _ failed _ < <(grep -aE '^[0-9]+ passed' "$log" | tail -n 1)
    echo "$told errors told by Oclgrind"
    echo "${passed:-0} passed, $((${failed:-1} + told)) failed" ;;
cuda)
    . tests/gpu/tools.sh
    need_cuda "kernels as CUDA" || exit 0
    "$kernel" run "$1" "$2" cuda 20 2>&1 ;;
plants)
    need pocl "planted defects on PoCL" || exit 0
    names=$(sed -n 's/^    { "\([a-z]*\)", .*/\1/p' tests/kernel/device.c)
    declare -A by=() # tools that find each
    tools=1
    for name in $names; do
        on_pocl plants 12 "$1" device "$name" >"$log" 2>&1
        # a kernel that leaves its arrays may end the process, which tells of the defect, too
        if [ $? -gt 128 ] || grep -aqE '^[1-9][0-9]* passed, [1-9][0-9]* failed' "$log"; then by[$name]+=" PoCL"; fi
    done
    found() { # TOOL: what the log says it has found
        tools=$((tools + 1))
        for name in $names; do
            if grep -aqE "^$name +is found" "$log"; then by[$name]+=" $1"; fi
        done
    }
    passed=0 failed=0
    if need oclgrind "planted defects under Oclgrind"; then
        on_oclgrind plants 30 "$1" device >"$log" 2>&1
        found Oclgrind
        on_oclgrind plants 30 "$1" device barrier >"$log" 2>&1
        if [ "$(reports "$log")" -gt 0 ]; then passed=$((passed + 1)); else
            echo "Oclgrind tells of no race without barriers"
            failed=$((failed + 1))
        fi
    fi
    . tests/gpu/tools.sh
    if need_cuda "planted defects in machine code"; then
        "$kernel" plants 12 "$1" cuda >"$log" 2>&1
        found SASS
    fi
    for name in $names; do
        echo "$name: found by${by[$name]:- none}"
        if [ "$(wc -w <<<"${by[$name]:-}")" -ge $((tools > 1 ? 2 : 1)) ]; then passed=$((passed + 1)); else
            failed=$((failed + 1))
        fi
    done
    echo "$passed passed, $failed failed" ;;
esac
