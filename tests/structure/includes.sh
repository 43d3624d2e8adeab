#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# includes.sh ROOT: includes point one way only.  The table says what each folder may include.
. "$(dirname "$0")/lib.sh"

table='
base    :
ir      : base
format  : base ir
grad    : base ir
sched   : base ir
emit    : base ir
interp  : base ir
cost    : base ir
lower   : base ir format
jit     : base
io      : base
geom    : base
run     : base jit
tune    : base ir format sched cost
ops     : base ir format
o3      : base ir
api     : base ir format grad sched emit interp cost lower jit io geom run tune ops o3 weft.h
'

may_include() { echo "$table" | sed -n "s/^$1 *: *//p"; }

# includes_of FILE: LINE:WHAT, for "quoted" ones; <angled> ones only when they are ours.
includes_of() {
    grep -nE '^[[:space:]]*#[[:space:]]*include' "$1" | grep -vE '<[^>]*>' |
        sed -E 's/^([0-9]+):[^"]*"?([^"]*)"?.*/\1:\2/'
    grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<weft' "$1" | sed -E 's/:.*<([^>]*)>.*/:\1/'
}

check_src() { # FILE FOLDER
    local line what from
    while IFS=: read -r line what; do
        from=${what%%/*}
        case $what in
        *..*) bad "$1:$line: \"$what\": include by path from src/" ;;
        "$2"/*) ;;
        *_int.h) bad "$1:$line: \"$what\" is private to its folder" ;;
        */* | weft.h)
            case " $(may_include "$2") " in
            *" $from "*) ;;
            *) bad "$1:$line: $2 may not include \"$what\"; it may: $(may_include "$2")" ;;
            esac ;;
        *) bad "$1:$line: \"$what\": include by path from src/, in plain quotes" ;;
        esac
    done < <(includes_of "$1")
}

for file in $(c_files src); do
    folder=${file#"$root"/src/} folder=${folder%%/*}
    echo "$table" | grep -q "^$folder *:" || bad "$file: folder $folder is not in the table"
    check_src "$file" "$folder"
done
part "src: each folder includes only what the table allows"

# Users of the library see weft.h, and headers beside them.
for file in $(c_files cli examples); do
    while IFS=: read -r line what; do
        [ "$what" = weft.h ] || [ -f "$(dirname "$file")/$what" -a "$what" = "${what##*/}" ] ||
            bad "$file:$line: may include weft.h and its own headers only, not \"$what\""
    done < <(includes_of "$file")
done
part "cli and examples: only weft.h"

# What an irrep is stays in o3/ and what hands it out: kernels see programs as any other.
for file in $(c_files src); do
    case ${file#"$root"/src/} in o3/* | api/*) continue ;; esac
    hits=$(grep -niE 'irrep|clebsch|wigner|equivarian|spherical|harmonic|e3nn|\bmace\b|\b3j\b|\bo3[_/]|\bo3\b' "$file" | head -n 3)
    [ -z "$hits" ] || bad "$file:$hits: only o3/ and api/ know about irreps"
done
part "only o3 and api know about irreps"
finish
