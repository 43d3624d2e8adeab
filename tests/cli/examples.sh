#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Runs every example by the command in its heading and compares all of its results with those in
# examples/data/expected: exactly, or to 2e-15 of the largest value where square roots and exp come
# in.  Then the C example and the demo.  WEFT is the command under test.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/structure/lib.sh"
scratch
WEFT=$(realpath "${WEFT:-$here/build/release/weft}")
export WEFT WEFT_CACHE_DIR=$tmp/cache
cd "$here/examples" || exit 1

head_bytes() { echo $((10 + $(od -An -tu2 -j8 -N2 "$1"))); }
head_of() { head -c "$(head_bytes "$1")" "$1" | tail -c +11 | tr -d ' \n'; }
numbers() { # FILE HEADER: one a line
    case $2 in
    *"'<f8'"*) od -An -v -w8 -tf8 -j "$(head_bytes "$1")" "$1" ;;
    *"'<f4'"*) od -An -v -w4 -tf4 -j "$(head_bytes "$1")" "$1" ;;
    *"'<i8'"*) od -An -v -w8 -td8 -j "$(head_bytes "$1")" "$1" ;;
    esac
}
# same GOT WANT TOLERANCE: type, shape and values; what is not a finite number is not the same.
same() {
    local head
    head=$(head_of "$2")
    [ -s "$1" ] && [ "$(head_of "$1")" = "$head" ] || return 1
    paste -d' ' <(numbers "$1" "$head") <(numbers "$2" "$head") | awk -v tol="$3" '
        NF != 2 || $1 !~ /^-?[0-9]/ || $2 !~ /^-?[0-9]/ { bad = 1 }
        { got[NR] = $1 + 0; want[NR] = $2 + 0; large = want[NR] > large ? want[NR] : large
          large = -want[NR] > large ? -want[NR] : large }
        END {
            for (i = 1; i <= NR; i++) {
                far = got[i] < want[i] ? want[i] - got[i] : got[i] - want[i]
                if (!(far <= tol * large)) bad = 1
            }
            exit bad || NR == 0
        }'
}

# The comparator first: one example of each kind of difference, made by editing bytes.
right=data/expected/spmm_csc.C.npy
change() { # BYTE (an octal escape) AT: a copy of the right file with one byte changed
    { head -c "$2" "$right"; printf "$1"; tail -c +$(($2 + 2)) "$right"; } >"$tmp/changed.npy"
}
size=$(wc -c <"$right")
same "$right" "$right" 0 || bad "a file is not the same as itself"
change '\001' $((size - 8)); same "$tmp/changed.npy" "$right" 0 && bad "the last bit changed: not seen"
same "$tmp/changed.npy" "$right" 1e-14 || bad "the last bit is within 1e-14"
change '\300' $((size - 1)); same "$tmp/changed.npy" "$right" 1e-14 && bad "a sign changed: not seen"
{ head -c $((size - 8)) "$right"; printf '\0\0\0\0\0\0\370\177'; } >"$tmp/changed.npy"
same "$tmp/changed.npy" "$right" 1e-14 && bad "a NaN: not seen"
head -c $((size - 8)) "$right" >"$tmp/changed.npy"
same "$tmp/changed.npy" "$right" 1e-14 && bad "a missing element: not seen"
same data/expected/spmm.C.npy "$right" 0 && bad "another type: not seen"
same data/expected/spmm_bsr.Y.npy data/expected/spmm_srbcrs.Y.npy 1e9 || bad "same shape, huge tolerance"
same data/expected/spmm_bsr.Y.npy "$right" 1e9 && bad "another shape: not seen"
same "$tmp/none.npy" "$right" 1e-14 2>/dev/null && bad "a missing file: not seen"
part "the comparator tells files apart"

# The command in the heading of an example, on one line.
command_of() {
    awk '/^#   weft run/ { on = 1 }
         on { sub(/^# */, ""); more = sub(/\\$/, ""); printf "%s ", $0; if (!more) exit }' "$1"
}
tolerance_of() {
    case $1 in
    attention | tp_* | conv_equivariant | conv_weights | symmetric_contraction | rotate) echo 2e-15 ;;
    *) echo 0 ;;
    esac
}

example() { # NAME
    local line out want array target options=()
    line=$(command_of "$1.weft")
    set -- "$1" $line
    [ "$#" -gt 3 ] && [ "$4" = "$1.weft" ] || { bad "$1.weft: no command of its own in the heading"; return; }
    shift 2
    "$WEFT" "$@" >"$tmp/shown" 2>"$tmp/said" || { bad "$line failed: $(cat "$tmp/said")"; return; }
    [ -s "$tmp/shown" ] || bad "$line shows no result"
    for want in "data/expected/$name".*.npy; do
        array=${want#"data/expected/$name."} array=${array%.npy}
        options+=(--out "$array=$tmp/$array.npy")
    done
    for target in "" "-t interp"; do # machine code where there is, then what it must agree with
        out=$("$WEFT" "$@" $target "${options[@]}" 2>"$tmp/said") ||
            bad "$line $target ${options[*]} failed: $(cat "$tmp/said")"
        [ -z "$out" ] || bad "$name: results that nothing is compared with: $out"
        for want in "data/expected/$name".*.npy; do
            array=${want#"data/expected/$name."} array=${array%.npy}
            same "$tmp/$array.npy" "$want" "$(tolerance_of "$name")" ||
                bad "$name: $array is not as expected: $(head_of "$tmp/$array.npy") $(
                    numbers "$tmp/$array.npy" "$(head_of "$want")" | head -n 12)"
        done
    done
}

for file in *.weft; do
    name=${file%.weft}
    example "$name"
    "$WEFT" print "$file" >"$tmp/once" && "$WEFT" print "$tmp/once" >"$tmp/twice" ||
        bad "$file does not print"
    cmp -s "$tmp/once" "$tmp/twice" || bad "$file: what is printed reads back as another program"
    part "$file"
done
for want in data/expected/*.npy; do
    name=${want##*/} name=${name%%.*}
    [ -f "$name.weft" ] || bad "$want: there is no example $name"
done
part "every expected result has its example"

. "$here/tests/cli/c_program.bash"
build_c spmm.c "$tmp/spmm" && "$tmp/spmm" >"$tmp/shown" 2>&1
[ "$(cat "$tmp/shown" 2>/dev/null)" = "9 90
0 0
18 180" ] || bad "spmm.c does not build, or gives: $(cat "$tmp/shown" 2>/dev/null)"
part "spmm.c"

bash demo.sh >"$tmp/shown" 2>&1 || bad "demo.sh failed: $(tail -n 5 "$tmp/shown")"
part "demo.sh"
finish
