#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# sizes.sh ROOT: no file over 800 lines, no line over 100 columns, no tab, no blank at a line's end.
. "$(dirname "$0")/lib.sh"

while read -r file; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 800 ] || bad "$file: $lines lines, over 800: there are two files in it"
    long=$(grep -nE '^.{101,}' "$file" | cut -d: -f1 | head -n 5 | tr '\n' ' ')
    [ -z "$long" ] || bad "$file: over 100 columns in lines $long"
    blank=$(grep -nE "$(printf '\t')|[[:space:]]\$" "$file" | cut -d: -f1 | head -n 5 | tr '\n' ' ')
    [ -z "$blank" ] || bad "$file: a tab, or blanks at the end, in lines $blank"
done < <(c_files src include cli)
part "sizes"
finish
