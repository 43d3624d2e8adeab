#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Precompiles <immintrin.h>.  The tests compile some thousand small kernels, and half of the time of
# such a compile goes into that header.  With WEFT_CFLAGS set to "-I/.../build/header/O2 -include
# kernel.h" gcc takes it from there, and so with "-O0 -I/.../build/header/O0 -include kernel.h".  A
# compiler that cannot use it, because it is clang or is given other flags, reads it as usual.
set -eu
cd "$(dirname "$0")/.."
dir=build/header
cc=$(type -P cc || type -P gcc || echo none)
flags=$(build/release/weft emit examples/spmm.weft | sed -n 's/^ \*     cc \(.*\) \.\.\. -lm$/\1/p')
want="$("$cc" --version 2>/dev/null | head -n 1) $flags"
[ "$want" != "$(cat $dir/made 2>/dev/null)" ] || [ tests/header.sh -nt $dir/made ] || exit 0
rm -rf $dir
for level in O0 O2; do # a folder each: gcc crashes on headers compiled at another level
    mkdir -p $dir/$level
    printf '#ifdef __AVX__\n#include <immintrin.h>\n#endif\n' >$dir/$level/kernel.h
    if "$cc" --version 2>/dev/null | grep -q 'Free Software'; then # gcc; clang has another form of this
        "$cc" $flags -$level -std=gnu11 -fPIC -x c-header $dir/$level/kernel.h -o $dir/$level/kernel.h.gch
    fi
done
echo "$want" >$dir/made
