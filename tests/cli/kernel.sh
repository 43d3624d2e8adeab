#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Machine code from the command: run -t, emit and what it compiles to, cache, verbose lines.
. "$(dirname "$0")/lib.bash"

cat >product.txt <<'END'
C f32 [3, 2]
     8  11.5
     0     0
     1   0.5
END
files="--in A=a.mtx --in B=b.mtx"
for target in "" "-t c" "-t interp"; do
    try "run $target" 0 weft run spmm.weft $target $files
    same product.txt
    none stderr
done
try "verbose" 0 env WEFT_VERBOSE=1 "$WEFT" run spmm.weft $files
same product.txt
err "weft,compile,spmm,c,"
err "weft,run,spmm,c,"
# A folder that is opened has the number 0 then.
for how in compiled disk; do
    try "standard input closed, $how" 0 env WEFT_VERBOSE=1 WEFT_CACHE_DIR="$PWD/closed" \
        bash -c "'$WEFT' run spmm.weft $files <&-"
    same product.txt
    err ",$how,"
done
try "verbose turned off" 0 env WEFT_VERBOSE=0 "$WEFT" run spmm.weft $files
none stderr

awk 'BEGIN { print "program p(n)\naxis I = n\nf32 X[I], Z[I]"; for (i = 0; i < 8193; i++) print "Z[i] += X[i]" }' >long.weft
try "more statements than a kernel may have" 1 weft emit long.weft
err "8193 statements: a kernel has at most 8192"
try "they can be checked" 0 weft check long.weft

cat >square.weft <<'END'
program square(n)
axis I = n, E(I) = seg : j < n, U(I) = built : load < n
f64 A[E], C[I, U]
sym: for i, e, f in E(j(e)): U(i) |= j(f)
num: for i, e, f in E(j(e)): C[i, j(f)] += A[e] * A[f]
END
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 2\n2 3 3\n3 1 4\n' >p.mtx
try "a built axis, interpreted" 0 weft run square.weft -t interp --in A=p.mtx
cp stdout square.txt
try "a built axis" 0 weft run square.weft -t c --in A=p.mtx
same square.txt
none stderr
cat >tree.weft <<'END'
program square(n) stage loops
f64 C[n]
phase c for i in 0..n
    C[i] = i * i
END
try "a program that is only interpreted" 0 weft run tree.weft --set n=3
err "weft: note: square is interpreted: "
try "the same with -t interp" 0 weft run tree.weft -t interp --set n=3
none stderr
try "the same with -t c" 1 weft run tree.weft -t c --set n=3
err "weft: error: there is no machine code: "
none stdout
try "no compiler" 0 env WEFT_DISABLE_JIT=1 "$WEFT" run spmm.weft $files
err "weft: note: spmm is interpreted: WEFT_DISABLE_JIT"
same product.txt
try "no compiler, but -t c" 1 env WEFT_DISABLE_JIT=1 "$WEFT" run spmm.weft -t c $files
err "WEFT_DISABLE_JIT"
cat >large.weft <<'END'
program large(n)
f64 S[]
s: for i in n, j in n: S[] += 1
END
try "no compiler, and large" 1 env WEFT_DISABLE_JIT=1 "$WEFT" run large.weft --set n=100000
err "scalar operations"
err "weft run -t interp"
try "a bad variable" 1 env WEFT_MAX_ISA=mmx "$WEFT" run spmm.weft $files
err "WEFT_MAX_ISA is mmx"

# Two programs as C, in one C program, without the library.
cat >norm.weft <<'END'
program norm(m, f)
axis I = m, K = f
f64 X[I, K], Y[I, K]
temp f64 S[I]
s: S[i] += X[i, k] * X[i, k]
y: Y[i, k] = X[i, k] / sqrt(S[i])
END
cat >wide.weft <<'END'
program wide(m, n)
axis I = m, K = n
f64 X[I], Z[K]
temp f64 T[I, K]
t: T[i, k] = X[i]
for i, k:
    z: Z[k] += T[i, k]
END
cat >main.c <<'END'
#include "norm.h"
#include "spmm.h"
#include "wide.h"
#include <stdio.h>

int main(void)
{
    int64_t start[] = { 0, 2, 2, 4 }, coord[] = { 0, 2, 1, 3 };
    float a[] = { 1.5f, 2, -1, 0.5f }, b[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, c[6];
    double x[] = { 3, 4, 0, 2 }, y[4];
    struct weft_plan_spmm plan;

    if (weft_plan_spmm_make(3, 4, 2, start, coord, &plan) != 0 ||
        weft_run_spmm(3, 4, 2, start, coord, a, b, c, &plan) != 0 ||
        weft_run_norm(2, 2, x, y) != 0)
        return 1;
    if (weft_run_wide(INT64_C(1) << 32, INT64_C(1) << 32, x, y) != -1)
        return 2; /* 2^64 elements are not none */
    weft_plan_spmm_free(&plan);
    for (int i = 0; i < 6; i++)
        printf("%g ", c[i]);
    for (int i = 0; i < 4; i++)
        printf("%g ", y[i]);
    puts("");
    return 0;
}
END
flags=$(weft emit spmm.weft | sed -n 's/^ \*     cc \(.*\) \.\.\. -lm$/\1/p')
verdict "the heading has flags" $? "$flags"
[ -n "$flags" ]
verdict "flags" $? "none"
try "emit spmm" 0 weft emit spmm.weft -o spmm
none stdout
try "emit norm" 0 weft emit -t c -o norm norm.weft
try "emit wide" 0 weft emit -t c -o wide wide.weft
try "compile" 0 cc $flags -std=gnu11 -Wall -Wextra -Werror main.c spmm.c norm.c wide.c -o main -lm
try "run what was emitted" 0 ./main
same - <<<"8 11.5 0 0 1 0.5 0.6 0.8 0 1 "
try "phases over strips of rows compile" 0 bash -c \
    "\"\$WEFT\" linear 32x0e 32x0e | \"\$WEFT\" emit - | cc -x c $flags -c - -o x.o"
try "emit to stdout" 0 weft emit spmm.weft
cmp -s stdout spmm.c
verdict "the same text as the file" $? "$(diff stdout spmm.c | head -n 5)"
try "emit twice is the same" 0 bash -c '"$WEFT" print spmm.weft | "$WEFT" emit -'
cmp -s stdout spmm.c
verdict "the same text from what is printed" $? "$(diff stdout spmm.c | head -n 5)"
if command -v c++ >/dev/null; then
    printf '#include "norm.h"\n#include "spmm.h"\nint main() { return 0; }\n' >main.cpp
    try "the headers as C++" 0 c++ -Wall -Wextra -Werror -fsyntax-only main.cpp
fi
for target in c:sse2 c:avx2 c:avx512 c:neon c:generic; do
    try "emit for $target" 0 weft emit spmm.weft -t $target
    out "for ${target#c:}"
done
if [ "$(uname -m)" = x86_64 ]; then
    try "the wrong flags are noticed" 1 bash -c '"$WEFT" emit spmm.weft -t c:avx2 | cc -x c -c - -o x.o'
    err "this text is for avx2"
fi
try "emit to a folder that is not there" 1 weft emit spmm.weft -o no/where
err "cannot write no/where.c"
try "emit for no target" 1 weft emit spmm.weft -t cude
err "there is no target cude"
try "emit of a built axis" 1 weft emit square.weft
err "U is a built axis"
none stdout
try "emit of nothing" 1 weft emit none.weft
for option in -t -o; do
    try "emit $option" 2 weft emit spmm.weft $option
    err "$option wants a word after it"
done
try "emit two" 2 weft emit spmm.weft norm.weft
try "emit --fast" 2 weft emit --fast
try "run -t" 2 weft run spmm.weft -t
err "-t wants a target"
try "run -t gpu" 2 weft run spmm.weft -t gpu
err "the targets of run are c, opencl and interp"
try "targets" 0 weft list targets
out "c:avx2"
out "interp"

export WEFT_CACHE_DIR=$tmp/other
try "an empty cache" 0 weft cache
same - <<<"$tmp/other: 0 kernels, 0 B"
try "fill it" 0 weft run spmm.weft -t c $files
try "show" 0 weft cache show
out "$tmp/other: 1 kernel, "
try "verify" 0 weft cache verify
out "  good"
out ", 0 bad"
kernel=$(ls "$tmp/other" | grep -E '^[0-9a-f]{64}$')
printf 'damage' | dd of="$tmp/other/$kernel" bs=1 seek=600 conv=notrunc 2>/dev/null
try "verify a damaged one" 1 weft cache verify
out "  bad: "
try "run with a damaged one" 0 weft run spmm.weft $files
same product.txt
try "it is good again" 0 weft cache verify
try "clear" 0 weft cache clear
same - <<<"$tmp/other: 1 kernel removed"
try "a cleared cache" 0 weft cache
out "0 kernels"
try "cache of what" 2 weft cache burn
err "it is show, verify or clear"
try "cache of two" 2 weft cache show clear
try "a bad directory" 1 env WEFT_CACHE_DIR=here "$WEFT" cache
err "WEFT_CACHE_DIR"
finish
