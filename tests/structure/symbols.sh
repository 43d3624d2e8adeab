#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# symbols.sh ROOT LIBRARY: the shared library exports weft_* and nothing else, and all that the
# headers in include/ declare as WEFT_API.
. "$(dirname "$0")/lib.sh"
scratch

nm -D --defined-only "$2" | awk '{ print $3 }' | sed 's/@.*//' | sort -u >"$tmp/exported"
[ -s "$tmp/exported" ] || bad "$2 exports nothing"
grep -v '^weft_' "$tmp/exported" | while read -r name; do echo "$2 exports $name"; done >"$tmp/alien"
[ ! -s "$tmp/alien" ] || bad "$(cat "$tmp/alien")"
part "only weft_* is exported"

bare "$root"/include/*.h | cut -d: -f3- | grep -v '^#' | tr '\n' ' ' |
    grep -oE 'WEFT_API [^;(]*\(' | grep -oE 'weft_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u >"$tmp/declared"
[ -s "$tmp/declared" ] || bad "include/: no WEFT_API function found"
for name in $(comm -23 "$tmp/declared" "$tmp/exported"); do bad "$name is declared in include/ and not exported"; done
for name in $(comm -13 "$tmp/declared" "$tmp/exported"); do bad "$name is exported and not declared in include/"; done
part "the headers and the exports agree"
finish
