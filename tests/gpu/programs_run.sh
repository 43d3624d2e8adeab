#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Every example, operator, option, type, format and tensor product, with gradients, runs on GPU
# targets: kernels of OpenCL on PoCL by the library, and the text of CUDA, compiled by nvcc, with
# the interpreter of machine code as its device.  Results are those of Weft's interpreter.  One
# program in SHARE is run; a few of them with each call of the CUDA runtime failing in turn, without
# any entries, and with one row of 10,000.
# Usage: tests/gpu/programs_run.sh SHARE SEED [pocl|cuda]
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/tools.sh
. tests/gpu/programs.sh
share=$1 seed=$2 only=${3:-}
run=$PWD/build/release/weft_gpu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export POCL_CACHE_DIR=$PWD/build/pocl
mkdir -p build/pocl
gpu_programs "$scratch" "$PWD/build/release/weft"
passed=0 failed=0
weft_gpu() { # TARGET SHARE OPTION...
    local p f
    "$run" "$1" "$scratch/list" -quiet -share "$2,$seed" -seed "$seed" "${@:3}" >"$scratch/log" 2>&1 ||
        echo "weft_gpu ends with $?" >>"$scratch/log"
    grep -vE '^[0-9]+ (passed|refused)|^weft_gpu ends with 1$' "$scratch/log"
    read -r p _ f _ < <(grep -E '^[0-9]+ passed' "$scratch/log" || echo "0 passed, 1 failed")
    passed=$((passed + p)) failed=$((failed + f))
}
if [ "$only" != cuda ] && need pocl "programs on PoCL"; then
    weft_gpu opencl "$share"
    weft_gpu opencl $((share * 8)) -rows empty
    weft_gpu opencl $((share * 8)) -rows long
fi
if [ "$only" != pocl ] && need_cuda "programs as CUDA text"; then
    weft_gpu cuda $((share * 2))
    weft_gpu cuda $((share * 16)) -fail
    weft_gpu cuda $((share * 16)) -rows empty
    weft_gpu cuda $((share * 16)) -rows long
fi
echo "$(wc -l <"$scratch/list") programs, one in $share"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
