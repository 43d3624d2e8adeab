#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# One pipeline: explain, print, run and emit see the same loops, and answer a schedule the same way.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/cli/lib.bash"
examples=$here/examples

csc="--in A=$examples/data/a.mtx:T --in B=$examples/data/b.npy"
for step in "split c.e 16" "split c.t_e 16" "format E csr(); split c.e_e 2"; do
    weft explain "$examples/spmm_csc.weft" --schedule "$step" >explained 2>&1
    refused=$(sed -n 's/^refused  //p' explained)
    code=0
    [ -n "$refused" ] && code=1
    for command in "print --after steps" "print --after cse" emit; do
        try "$command: $step" $code weft $command "$examples/spmm_csc.weft" --schedule "$step"
        [ $code = 0 ] || err "$refused"
    done
    try "run: $step" $code weft run "$examples/spmm_csc.weft" -t c --schedule "$step" $csc
    [ $code = 0 ] || err "$refused"
done
weft explain "$examples/spmm_csc.weft" --schedule "split c.e 16" >stdout
out "refused  split c.e 16: there is no loop c.e"

# Each loop that explain lists is one that a step can name.
for program in "$examples"/*.weft; do
    weft explain "$program" >explained 2>/dev/null || continue
    missing=
    for loop in $(sed -n '/^loops:/,$s/^ \+\([^ ]*\).*/\1/p' explained); do
        weft print --after steps --schedule "split $loop 2" "$program" >/dev/null 2>message
        ! grep -q "there is no loop" message || missing="$missing $loop"
    done
    [ -z "$missing" ]
    verdict "$(basename "$program"): print knows the loops of explain" $? "not$missing"
done

# A format of a schedule is made by the emitted text.
cat >main.c <<'END'
#include "spmm.h"
#include <stdio.h>

int main(void)
{
    int64_t start[] = { 0, 2, 2, 4, 7 }, coord[] = { 0, 2, 1, 3, 0, 1, 4 };
    float a[] = { 1.5f, 2, -1, 0.5f, 1, 3, -2 }, b[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, c[8];
    struct weft_plan_spmm plan;

    if (weft_plan_spmm_make(4, 5, 2, start, coord, &plan) != 0 ||
        weft_run_spmm(4, 5, 2, start, coord, a, b, c, &plan) != 0)
        return 1;
    for (int i = 0; i < 8; i++)
        printf("%g ", c[i]);
    puts("");
    weft_plan_spmm_free(&plan);
    return 0;
}
END
flags=$(weft emit spmm.weft | sed -n 's/^ \*     cc \(.*\) \.\.\. -lm$/\1/p')
for format in 'bsr(2, 2)' 'sell(2, 4)'; do
    try "emit in $format" 0 weft emit spmm.weft --schedule "format J $format" -o spmm
    try "$format compiles" 0 cc $flags -std=gnu11 -Wall -Wextra -Werror main.c spmm.c -o main -lm
    try "$format runs" 0 ./main
    same - <<<"8 11.5 0 0 1 0.5 -10 -8 "
done
try "a format that cannot hold the entries" 0 weft emit spmm.weft --schedule "format J band(0, 0)" -o spmm
try "it compiles" 0 cc $flags -std=gnu11 -Wall -Wextra -Werror main.c spmm.c -o main -lm
try "and is refused when the plan is made" 1 ./main

# Dense rows have no arrays that could be of int32_t: those of the plan are int64_t, and read so.
cat >dense.weft <<'END'
program even(n)
axis I = n, U(I) = 3
f64 X[I, U], Y[I]
y: Y[i] += X[i, u] * (u + 1)
END
cat >main.c <<'END'
#include "even.h"
#include <stdio.h>

int main(void)
{
    double x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, y[4];
    struct weft_plan_even plan;

    if (weft_plan_even_make(4, &plan) != 0 || weft_run_even(4, x, y, &plan) != 0)
        return 1;
    for (int i = 0; i < 4; i++)
        printf("%g ", y[i]);
    puts("");
    weft_plan_even_free(&plan);
    return 0;
}
END
for format in 'csr()' 'band_rest(1)'; do
    try "emit dense rows in $format" 0 weft emit dense.weft --schedule "format U $format" -o even
    try "dense rows in $format compile" 0 cc $flags -std=gnu11 -Wall -Wextra -Werror main.c even.c -o main -lm
    try "dense rows in $format run" 0 ./main
    same - <<<"14 32 50 68 "
done
finish
