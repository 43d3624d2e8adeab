#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# tests/bisect.sh [PASS...]: a miscompile in the source of a pass is found by leaving out passes.  For each
# pass, mutants of its file (tests/mutate.c) are compiled and linked into weft_stage, until one makes
# random programs wrong.  Then `weft_stage blame` leaves out one optional pass after the other: this pass
# has to be among those that make all wrong programs right again, and they have to be few.
# Passes unroll and fold are one file, so that leaving out one of them is no cure for it.
# WEFT_BISECT_TRIES=N tries N mutants of a pass (12).  The sources are not touched.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/bisect passed=0 failed=0
tests/tree.sh release || exit 1
[ -f build/release/CMakeFiles/weft_objects.dir/flags.make ] ||
    { echo "skipped: bisect: the build trees are not of make"; exit 0; }
mkdir -p "$work"
cc -std=c11 -D_GNU_SOURCE -O1 tests/mutate.c -o "$work/engine" || exit 1
flags=$(sed -n 's/^C_[A-Z]* = //p' build/release/CMakeFiles/weft_objects.dir/flags.make | tr '\n' ' ')
libs=$(sed -n 's/^Libs.private: //p' build/release/weft.pc)
suite=$(find build/release/CMakeFiles/weft_stage.dir -name '*.o' | sort)

# The file of a pass: its function is defined there.
file_of() { grep -lE "^(void|bool) lower_$1\\(" -r src/lower --include='*.c' | head -n 1; }

# blame FILE K: what weft_stage says of mutant K; fails when it does not compile, or ends otherwise.
blame() {
    "$work/engine" apply "$1" "$2" >"$work/$(basename "$1")" &&
        eval "cc $flags -Wno-error -Werror=int-conversion -Werror=incompatible-pointer-types \
            -iquote \"$(dirname "$1")\" -c \"$work/$(basename "$1")\" -o \"$work/mutant.o\"" 2>/dev/null &&
        cc $suite "$work/mutant.o" build/release/libweft_testkit.a build/release/libweft.a $libs \
            -o "$work/weft_stage" || return
    (ulimit -v 4000000 -t 120; timeout 600 "$work/weft_stage" blame 120 1) 2>/dev/null | grep ' wrong:'
}

# try PASS: one line of the report.
try() {
    local file said cured k n=${WEFT_BISECT_TRIES:-12}
    file=$(file_of "$1")
    [ -n "$file" ] || { echo "skipped: $1: no file defines lower_$1"; return; }
    while IFS=$'\t' read -r _ k line op before after; do
        said=$(blame "$file" "$k") || continue
        [ "${said%% *}" != 0 ] || continue
        cured=" ${said#*wrong: } "
        if [[ $cured == *" $1 "* ]] && [ "$(wc -w <<<"$cured")" -le 6 ]; then
            echo "ok    $1: $file:$line: $after: without$cured"
            passed=$((passed + 1))
        else
            echo "FAIL  $1: $file:$line: $before -> $after: $said"
            failed=$((failed + 1))
        fi
        return
    done < <("$work/engine" draw "$n" 1 "$file")
    echo "none  $1: $n mutants of $file made no program wrong"
}

[ $# -gt 0 ] || set -- fuse_sums fuse_entries fuse_rows split_sums hoist factor accumulate \
    accumulate_outer vectorize combine cse
for pass in "$@"; do try "$pass"; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
