#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# tests/analyzer.sh [FOLDER...]: gcc's -fanalyzer on the library, or on these folders of src/ alone:
# a finding is a failure.  gcc analyses what is in one file, so files are compiled one by one.
set -u
cd "$(dirname "$0")/.."
. tests/tool.sh
need gcc "gcc -fanalyzer" || exit 0
[ $# -gt 0 ] || set -- $(ls src)
for folder in "$@"; do
    [ -d "src/$folder" ] || { echo "analyzer.sh: there is no src/$folder"; exit 2; }
done
find "${@/#/src/}" -name '*.c' -print0 | sort -z |
    xargs -0 -n 1 -P "${WEFT_JOBS:-2}" gcc -std=c11 -D_GNU_SOURCE -DWEFT_VERSION_TEXT='""' \
        -Isrc -Iinclude -g -fanalyzer -Werror -c -o /dev/null || exit 1
