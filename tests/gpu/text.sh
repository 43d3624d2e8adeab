#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The text of `weft emit` for GPUs builds alone and without a warning: CUDA by nvcc, HIP by clang,
# OpenCL by clang and, what the host runs, by the C compiler.  Of every example, operator, option,
# type, format and tensor product, with gradients, one in SHARE is built, each time for another
# target; several CUDA texts are one file, as nvcc takes long to begin.
# Usage: tests/gpu/text.sh SHARE SEED [WEFT]
set -u
cd "$(dirname "$0")/../.."
. tests/tool.sh
. tests/gpu/programs.sh
share=$1 seed=$2 weft=${3:-$PWD/build/release/weft}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gpu_programs "$scratch/p" "$weft"
passed=0 failed=0
verdict() { # CODE WHAT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "==== $2" && head -n 30 "$scratch/log"; fi
}

# emit NAME SCHEDULE TARGET FILE: false when the program is refused, which is right for built axes
# and formats that cannot hold any matrix.
emit() {
    "$weft" emit "$scratch/p/$1.weft" -t "$3" ${2:+--schedule "$2"} >"$4" 2>"$scratch/log" && return 0
    grep -qE "is a built axis|axis E |E: |no axis" "$scratch/log" || verdict 1 "$1 is refused for $3"
    rm -f "$4"
    return 1
}

mapfile -t list <"$scratch/p/list"
take() { # TARGET NUMBER: sets names, schedules
    local i
    names=() schedules=()
    for ((i = (seed + $2) % share; i < ${#list[@]}; i += share)); do
        names+=("${list[i]%%$'\t'*}") schedules+=("${list[i]#*$'\t'}")
    done
}

cuda() { # ARCH NUMBER: eight programs a file
    local i k=0 n=0
    take "cuda:$1" "$2"
    : >"$scratch/all.cu"
    for i in "${!names[@]}"; do
        emit "${names[i]}" "${schedules[i]}" "cuda:$1" "$scratch/one.cu" &&
            cat "$scratch/one.cu" >>"$scratch/all.cu" && n=$((n + 1))
        k=$((k + 1))
        if [ $n -gt 0 ] && { [ $((k % 8)) = 0 ] || [ $k = ${#names[@]} ]; }; then
            nvcc -Werror all-warnings -Xcompiler -Wall,-Werror -arch="$1" -fmad=false -c -o "$scratch/all.o" \
                "$scratch/all.cu" >"$scratch/log" 2>&1
            verdict $? "CUDA for $1, up to ${names[i]}"
            : >"$scratch/all.cu"
            n=0
        fi
    done
}

hip() { # ARCH NUMBER
    local i
    take "hip:$1" "$2"
    for i in "${!names[@]}"; do
        emit "${names[i]}" "${schedules[i]}" "hip:$1" "$scratch/one.hip" || continue
        clang-22 -x hip --offload-arch="$1" --cuda-device-only -nogpuinc -nogpulib -O1 -Wall -Wextra -Werror \
            -include __clang_hip_runtime_wrapper.h -S -o /dev/null "$scratch/one.hip" >"$scratch/log" 2>&1
        verdict $? "HIP for $1: ${names[i]}"
    done
}

opencl() { # NUMBER
    local i headers=0
    need opencl-headers "the host's part of OpenCL text" && headers=1
    take opencl "$1"
    for i in "${!names[@]}"; do
        emit "${names[i]}" "${schedules[i]}" opencl "$scratch/one.cl" || continue
        clang-22 -x cl -cl-std=CL1.2 -Wall -Wextra -Werror -fsyntax-only "$scratch/one.cl" >"$scratch/log" 2>&1
        verdict $? "OpenCL: ${names[i]}"
        [ $headers = 0 ] && continue
        cc -x c -std=c11 -Wall -Wextra -Werror -c -o /dev/null "$scratch/one.cl" >"$scratch/log" 2>&1
        verdict $? "the host's part of OpenCL: ${names[i]}"
    done
}

if has nvcc; then
    cuda sm_80 0
    cuda sm_90 1
    cuda sm_100 2
    cuda sm_120 3
else
    echo "skipped: the text of CUDA: nvcc is not installed"
fi
if need clang-22 "the text of HIP and OpenCL"; then
    hip gfx90a 0
    hip gfx942 1
    hip gfx1100 2
    opencl 3
fi
echo "${#list[@]} programs, one in $share for each target"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
