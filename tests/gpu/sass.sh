#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Tests of the interpreter of sm_80 machine code: compiles tests/gpu/self/*.cu with nvcc in three ways, and
# runs weft_sass on what cuobjdump prints of them.
# Usage: tests/gpu/sass.sh [PROGRAM]; PROGRAM is build/release/weft_sass.
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/tools.sh
program=${1:-build/release/weft_sass}
need_cuda "machine code of sm_80" || exit 0

to=$PWD/build/gpu/self
mkdir -p "$to"
# compile FILE VARIANT FLAG...: anew when the sources are newer
compile() {
    local cubin=$to/$1-$2.cubin file=${1%-right}
    shift 2
    [ -n "$(find tests/gpu/self tests/gpu/sass.sh -newer "$cubin" 2>/dev/null)" ] || [ ! -e "$cubin" ] || return 0
    nvcc -arch=sm_80 -fmad=false -diag-suppress 550,177 -Xptxas --suppress-stack-size-warning "$@" -cubin \
        -o "$cubin.new" "tests/gpu/self/$file.cu" && mv "$cubin.new" "$cubin"
}
for file in ops warp; do
    compile $file o3 -O3 && compile $file o1 -O1 -Xptxas -O1 && compile $file g -G || exit 1
done
for file in plants plants-right; do
    right=$([ $file = plants ] || echo -DRIGHT)
    compile $file o3 -O3 $right && compile $file g -G $right || exit 1
done
WEFT_SASS_CUBINS=$to exec "$program" test
