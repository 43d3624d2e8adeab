#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# sizes.sh ROOT: no file over 800 lines, no line over 100 columns, no tab, no blank at a line's end.
. "$(dirname "$0")/lib.sh"

mapfile -t files < <(c_files src include cli)
hits() { grep -HnE "$1" "${files[@]}" | cut -d: -f1,2 | head -n 20; } # FILE:LINE of lines with it

while read -r lines file; do
    [ "$file" = total ] || [ "$lines" -le 800 ] || bad "$file: $lines lines, over 800: there are two files in it"
done < <(wc -l "${files[@]}")
long=$(hits '^.{101,}')
[ -z "$long" ] || bad "over 100 columns:
$long"
blank=$(hits "$(printf '\t')|[[:space:]]\$")
[ -z "$blank" ] || bad "a tab, or blanks at the end:
$blank"
part "sizes"
finish
