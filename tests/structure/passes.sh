#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# passes.sh ROOT WEFT: every pass of the table has a golden file and a unit test under its name, and
# its function is declared in src/lower/lower.h, or, of a pass that walks the loops with others, in a
# header of its room.  Every folder of src has a folder of unit tests.
. "$(dirname "$0")/lib.sh"
weft=${2:?the command}

names=$("$weft" list passes | awk '{ print $1 }')
[ "$(echo "$names" | wc -l)" -ge 20 ] || bad "there are only these passes: $names"
part "the table of passes is printed"

for name in $names; do
    file=
    for file in "$root/tests/golden/$name.txt" "$root/tests/golden/${name}_"*.txt; do
        [ -f "$file" ] && break
    done
    [ -f "$file" ] || bad "pass $name has no tests/golden/$name.txt, nor one that begins with ${name}_"
done
part "every pass has a golden file"

for name in $names; do
    find "$root/tests/unit" -name "test_$name.c" -exec cat {} + | grep -q "^TEST(" || bad "pass $name has no unit test: tests/unit/.../test_$name.c"
done
part "every pass has a unit test of its name"

for name in $names; do
    case $name in formats | steps | lanes | fold | levels) continue ;; esac # steps of a schedule; unroll again
    header=$root/src/lower/lower.h
    [[ $("$weft" list passes | grep "^$name ") != *JOINT* ]] || header=$(echo "$root"/src/lower/*/*_int.h)
    grep -qE "\blower_$name\(" $header || bad "no header declares lower_$name"
done
part "every pass is a function of its name"

for folder in $(cd "$root/src" && find . -name '*.c' -printf '%h\n' | sort -u); do
    find "$root/tests/unit/$folder" -maxdepth 1 -name 'test_*.c' -exec cat {} + 2>/dev/null | grep -q "^TEST(" ||
        bad "src/${folder#./} has no unit tests in tests/unit/${folder#./}"
done
part "every folder of src has unit tests"
finish
