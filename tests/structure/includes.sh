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
tree    : base ir
sched   : base ir tree
find    : base ir tree sched cost
emit    : base ir
interp  : base ir
cost    : base ir
lower   : base ir tree
jit     : base
io      : base
geom    : base
run     : base jit
dev     : base
tune    : base ir format sched cost
ops     : base ir format
o3      : base ir
api     : base ir tree format grad sched find emit interp cost lower jit dev io geom run tune ops o3 weft.h weft_device.h
'

declare -A may=()
while read -r folder _ rest; do [ -z "$folder" ] || may[$folder]=" $rest "; done <<<"$table"

# includes_of FILE...: FILE:LINE:WHAT, for "quoted" ones; <angled> ones only when they are ours.
includes_of() {
    awk '!/^[[:space:]]*#[[:space:]]*include/ { next }
         !/<[^>]*>/ { split($0, part, "\""); print FILENAME ":" FNR ":" part[2]; next }
         /include[[:space:]]*<weft/ { split($0, part, /[<>]/); print FILENAME ":" FNR ":" part[2] }' "$@"
}

check_src() { # FOLDER FILE LINE WHAT
    local from=${4%%/*}
    case $4 in
    *..*) bad "$2:$3: \"$4\": include by path from src/" ;;
    "$1"/*) ;;
    *_int.h) bad "$2:$3: \"$4\" is private to its folder" ;;
    */* | weft.h | weft_device.h)
        case ${may[$1]:-} in
        *" $from "*) ;;
        *) bad "$2:$3: $1 may not include \"$4\"; it may:${may[$1]:-}" ;;
        esac ;;
    *) bad "$2:$3: \"$4\": include by path from src/, in plain quotes" ;;
    esac
}

for file in $(c_files src); do
    folder=${file#"$root"/src/} folder=${folder%%/*}
    [ -n "${may[$folder]:-}" ] || bad "$file: folder $folder is not in the table"
done
while IFS=: read -r file line what; do
    folder=${file#"$root"/src/}
    check_src "${folder%%/*}" "$file" "$line" "$what"
done < <(includes_of $(c_files src) /dev/null)
part "src: each folder includes only what the table allows"

# Users of the library see weft.h, and headers beside them.
while IFS=: read -r file line what; do
    [ "$what" = weft.h ] || [ -f "${file%/*}/$what" -a "$what" = "${what##*/}" ] ||
        bad "$file:$line: may include weft.h and its own headers only, not \"$what\""
done < <(includes_of $(c_files cli examples) /dev/null)
part "cli and examples: only weft.h"

# What an irrep is stays in o3/ and what hands it out: kernels see programs as any other.
while IFS= read -r hit; do
    case ${hit#"$root"/src/} in o3/* | api/*) continue ;; esac
    bad "$hit: only o3/ and api/ know about irreps"
done < <(grep -niHE -m 3 'irrep|clebsch|wigner|equivarian|spherical|harmonic|e3nn|\bmace\b|\b3j\b|\bo3[_/]|(^|[^-])\bo3\b' \
    $(c_files src) /dev/null)
part "only o3 and api know about irreps"
finish
