#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# spdx.sh ROOT: every source file starts with the licence line (after a #! line, if it has one).
. "$(dirname "$0")/lib.sh"

# The first line, or the second after "#!", of each file.
mapfile -t files < <(
    for folder in src include cli tests bench examples cmake python .ci; do
        [ ! -d "$root/$folder" ] || find "$root/$folder" -type f \( -name '*.[ch]' -o -name '*.def' \
            -o -name '*.sh' -o -name '*.awk' -o -name '*.py' -o -name '*.cpp' -o -path '*/.ci/*' \)
    done
    for file in CMakeLists.txt Makefile; do [ ! -f "$root/$file" ] || echo "$root/$file"; done
)
missing=$(awk 'FNR == 1 { script = /^#!/ }
    FNR <= 1 + script && /SPDX-License-Identifier: BSD-3-Clause/ { print FILENAME }' "${files[@]}" |
    sort | comm -13 - <(printf '%s\n' "${files[@]}" | sort))
[ -z "$missing" ] || bad "no SPDX line in the first line: $missing"
part "SPDX lines"
finish
