#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# plain.sh ROOT [BUILD]: `cmake -S . -B B && cmake --build B` gives library and command, without a
# warning; and the same bytes as BUILD, a release build of ROOT in another folder (G29).
. "$(dirname "$0")/lib.sh"
scratch
build=${2:+$(cd "$2" && pwd)}
copy_sources "$tmp/weft"
cd "$tmp/weft" || exit 1
unset CFLAGS LDFLAGS CC

if cmake -S . -B B >"$tmp/log" 2>&1 && cmake --build B -j 2 >>"$tmp/log" 2>&1; then
    for file in B/weft B/libweft.a B/libweft.so B/libweft.so.0; do [ -e $file ] || bad "not built: $file"; done
    [ -x B/weft ] || bad "B/weft cannot be run"
    grep -iE -A 8 'warning' "$tmp/log" && bad "the build gives warnings"
else
    bad "the build failed: $(tail -n 25 "$tmp/log")"
fi
part "plain cmake build"

if [ -n "$build" ]; then
    for file in libweft.so libweft.a weft; do cmp "B/$file" "$build/$file" || bad "$file differs from that of $build"; done
    part "the same bytes from another folder"
fi
finish
