#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# target.sh ROOT BUILD: passes know lanes and registers of a machine, and nothing else of it; and a
# new target is one row of src/api/target.c, shown by a copy of that file with one line more.
. "$(dirname "$0")/lib.sh"
build=$(realpath "${2:-$root/build/release}")
scratch

# Of registers only lanes_of tells how much they hold: a width in bytes, divided by the size of an
# element, is another machine's number of lanes.  Constants, in capitals, may be divided so.
hits=$(grep -rnE '[a-z_.)] */ *(\([a-z_ 0-9]+\))? *ir_type\[' "$root/src/lower" "$root/src/sched" |
    grep -vE 'policy\.([a-z]*_?scratch|long_row) / ir_type') # bytes of memory
[ -z "$hits" ] || bad "bytes of a register: use lanes_of
$hits"
hits=$(grep -rniE 'registers? of (so many )?bytes|bytes of an? (vector )?register|register_bytes' "$root/src/lower")
[ -z "$hits" ] || bad "bytes of a register
$hits"
hits=$(grep -rnE '"(c:)?(sse2|avx2|avx512|neon|generic)"|"c:warp"|__AVX|KIND_WARP' "$root"/src/{lower,sched,cost,tune,ir})
[ -z "$hits" ] || bad "a pass asks which machine it compiles for
$hits"
part "passes know lanes, not bytes"

copy=$tmp/tree
mkdir -p "$copy"
cp -r "$root/src" "$root/include" "$root/cli" "$copy/"
row='    { "c:toy", "a machine of 16 lanes", \&emit_dialect_c, KIND_WARP, { VECTOR_LANES(16, 16), 40, VECTOR_CORE }, TARGET_BY_NAME, { "-DWEFT_WARP=16", "-Wno-psabi" } },'
sed -i "s|^    { \"c:warp\",|$row\n&|" "$copy/src/api/target.c"
changed=$(diff -r "$root/src" "$copy/src" | grep -c '^[<>]')
[ "$changed" = 1 ] || bad "the toy target took $changed lines"
cc -O1 -std=gnu11 -I"$copy/src" -I"$copy/include" -D_GNU_SOURCE -c -o "$tmp/target.o" \
    "$copy/src/api/target.c" || bad "the row does not compile"
zlib=$(nm "$build/libweft.a" 2>/dev/null | grep -q " U inflate" && echo -lz)
# The object stands before the archive, so that it is the one that is linked.
cc -O1 -std=gnu11 -I"$copy/include" -I"$copy" -D_GNU_SOURCE -o "$tmp/weft" "$copy"/cli/*.c "$tmp/target.o" \
    "$build/libweft.a" $zlib -lm -lpthread -ldl ||
    bad "the command does not link"
cat >"$tmp/outer.weft" <<'END'
program outer(n)
f32 A[n], B[n, n]
a: for i in n: A[i] = i
b: for i in n, k in n: B[i, k] += A[i] * A[k]
END
outer=$tmp/outer.weft data="--set n=75" # whole registers, and a rest
export WEFT_CACHE_DIR=$tmp/cache
"$tmp/weft" list targets | grep -q '^c:toy ' || bad "the toy target is not listed"
"$tmp/weft" emit "$outer" -t c:toy >"$tmp/outer.c" || bad "no text for the toy target"
grep -q 'v_k + 16 <= ' "$tmp/outer.c" || bad "its text has no loop of 16 lanes"
cc -O1 -std=gnu11 -Wno-psabi -DWEFT_WARP=16 -c -o "$tmp/outer.o" "$tmp/outer.c" || bad "its text does not compile"
WEFT_MAX_ISA=toy "$tmp/weft" print "$outer" --after cse | grep -q 'step 16' ||
    bad "passes do not have its lanes"
"$tmp/weft" run "$outer" -t interp $data >"$tmp/want" || bad "the interpreter fails"
WEFT_VERBOSE=1 WEFT_MAX_ISA=toy "$tmp/weft" run "$outer" -t c $data >"$tmp/got" 2>"$tmp/said" || bad "no run for the toy target"
grep -q 'toy' "$tmp/said" || bad "the run was not of the toy target"
cmp -s "$tmp/want" "$tmp/got" || bad "its result is another"
part "a target is one row"
finish
