#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# spdx.sh ROOT: every source file starts with the licence line (after a #! line, if it has one).
. "$(dirname "$0")/lib.sh"

while read -r file; do
    head -n 2 "$file" | awk 'NR == 1 && /^#!/ { next } { print; exit }' |
        grep -q 'SPDX-License-Identifier: BSD-3-Clause' || bad "$file:1: no SPDX line"
done < <(
    for folder in src include cli tests bench examples cmake python .ci; do
        [ ! -d "$root/$folder" ] || find "$root/$folder" -type f \( -name '*.[ch]' -o -name '*.def' \
            -o -name '*.sh' -o -name '*.awk' -o -name '*.py' -o -name '*.cpp' -o -path '*/.ci/*' \)
    done
    for file in CMakeLists.txt Makefile; do [ ! -f "$root/$file" ] || echo "$root/$file"; done
)
part "SPDX lines"
finish
