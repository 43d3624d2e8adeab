#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# repro.sh ROOT: two builds, from two source folders in two build folders, give the same bytes (G29).
. "$(dirname "$0")/lib.sh"
scratch

for place in "$tmp/a" "$tmp/another/and/longer"; do
    copy_sources "$place"
    cmake -S "$place" -B "$place-build" >"$tmp/log" 2>&1 &&
        cmake --build "$place-build" -j 2 >>"$tmp/log" 2>&1 ||
        bad "the build failed: $(tail -n 25 "$tmp/log")"
    sleep 1.1 # another second, in case the time gets in
done
for file in libweft.so libweft.a weft; do
    cmp "$tmp/a-build/$file" "$tmp/another/and/longer-build/$file" || bad "$file differs between two builds"
done
part "reproducible builds"
finish
