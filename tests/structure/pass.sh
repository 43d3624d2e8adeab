#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# pass.sh ROOT BUILD: a new pass is one file, one declaration and one row, shown by a copy of the tree
# with a toy pass that reverses the order of independent phases of one store.
. "$(dirname "$0")/lib.sh"
build=$(realpath "${2:-$root/build/release}")
scratch
copy=$tmp/tree
mkdir -p "$copy"
cp -r "$root/src" "$root/include" "$root/cli" "$copy/"

cat >"$copy/src/lower/finish/toy.c" <<'END'
/* Reverses the phases of a kernel, where no two of them clash. */
#include "lower/facts/facts_int.h"

void lower_toy(Kernel *k)
{
    for (int a = 0; a < k->n; a++)
        for (int b = a + 1; b < k->n; b++) {
            Touches x = lower_touched(k->p, k->phase[a]), y = lower_touched(k->p, k->phase[b]);

            if (lower_clash(&x, &y, NULL))
                return;
        }
    for (int a = 0, b = k->n - 1; a < b; a++, b--) {
        Node *n = k->phase[a];

        k->phase[a] = k->phase[b];
        k->phase[b] = n;
    }
}
END
sed -i 's|^void lower_cse(Kernel \*);|&\nvoid lower_toy(Kernel *);|' "$copy/src/lower/lower.h"
sed -i -e 's|^PLAIN(cse)|PLAIN(toy)\n&|' \
    -e 's|^    ROW("cse"|    ROW("toy", LOOPS, LOOPS, FLAT, NONE, OPTIONAL, EVERY, "reverse phases", toy),\n&|' \
    "$copy/src/api/pipeline.c"
changed=$(diff -r "$root/src" "$copy/src" | grep -c '^[<>]')
[ "$changed" = 3 ] || bad "the toy pass took $changed lines beside its file"
flags="-O1 -std=gnu11 -I$copy/src -I$copy/include -D_GNU_SOURCE"
for f in lower/finish/toy api/pipeline; do
    cc $flags -c -o "$tmp/$(basename $f).o" "$copy/src/$f.c" || bad "$f.c does not compile"
done
# The number of passes is part of other objects only through the table itself.
zlib=$(nm "$build/libweft.a" 2>/dev/null | grep -q " U inflate" && echo -lz)
cc $flags -I"$copy" -o "$tmp/weft" "$copy"/cli/*.c "$tmp/pipeline.o" "$tmp/toy.o" \
    "$build/libweft.a" $zlib -lm -lpthread -ldl || bad "the command does not link"
cat >"$tmp/two.weft" <<'END'
program two(n)
axis I = dense(n), K = dense(4)
f32 A[I], B[K]
a: A[i] = i
b: B[k] = k * 2
END
export WEFT_CACHE_DIR=$tmp/cache
weft=$tmp/weft
"$weft" list passes | grep -q '^toy .*reverse phases (needs FLAT; gives NONE; OPTIONAL; targets: EVERY)' ||
    bad "the toy pass is not listed"
phases() { "$weft" "$@" "$tmp/two.weft" | sed -n 's/^phase \([a-z]*\).*/\1/p' | tr -d '\n'; }
[ "$(phases print --after toy)" = ba ] || bad "print --after toy shows $(phases print --after toy)"
[ "$(phases --skip toy print --after cse)" = ab ] || bad "--skip toy does not skip it"
"$weft" run "$tmp/two.weft" -t interp --set n=5 >"$tmp/want" || bad "the interpreter fails"
"$weft" run "$tmp/two.weft" -t c --set n=5 >"$tmp/got" || bad "the kernel fails"
cmp -s "$tmp/want" "$tmp/got" || bad "its result is another"
part "a pass is one file and one row"
finish
