#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# paths.sh ROOT: no path of one machine in a file that is, or would be, tracked by git.
. "$(dirname "$0")/lib.sh"

pattern='(^|[^A-Za-z0-9_.~-])/(wo''rk|ro''ot|ho''me|Us''ers)/[A-Za-z0-9_.]'
cd "$root" || exit 1
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    list() { git ls-files -z --cached --others --exclude-standard; }
else
    list() { find . -type f -print0; }
fi
while IFS= read -r -d '' file; do
    hits=$(grep -InE "$pattern" "$file" 2>/dev/null | head -n 5)
    [ -z "$hits" ] || bad "$file:$hits"
done < <(list)
part "paths of a machine"
finish
