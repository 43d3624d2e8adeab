# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# limit_build: compiles tests/limit.c to build/limit when that is missing or older.  To be sourced.
limit_build() {
    local cc
    [ build/limit -nt tests/limit.c ] && return 0
    mkdir -p build
    for cc in ${CC:-} cc gcc clang; do
        command -v "$cc" >/dev/null || continue
        "$cc" -std=c11 -D_GNU_SOURCE -O1 tests/limit.c -o build/limit.$$ &&
            mv build/limit.$$ build/limit && return 0
    done
    echo "no C compiler (cc, gcc or clang) can compile tests/limit.c" >&2
    return 1
}
