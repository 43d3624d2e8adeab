#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Signals while a kernel is compiled: neither the command nor a C program leaves a compiler behind.
# The command removes its files, too; those of a C program go when the next kernel is compiled.
# WEFT_TEST_SIGNALS is how many signals each of the three gets.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/lib.bash"
. "$here/tests/cli/c_program.bash"
clean=$(trap -p EXIT)
trap - EXIT # a shell that is killed before it becomes the command would clean up
bad() { verdict "$1" 1 ""; }
rounds=${WEFT_TEST_SIGNALS:-12}

# A compiler that takes its time, in a process of its own: slow SECONDS.
slow() { printf '#!/bin/sh\nsleep %s\ncc "$@"\n' "$1" >slowcc; }
slow 0
chmod +x slowcc
export WEFT_CC=$tmp/slowcc TMPDIR=$tmp/t
mkdir "$TMPDIR"
cat >double.weft <<'END'
program double(n)
axis I = n
f32 X[I], Y[I]
y: Y[i] = 2 * X[i]
END
printf '%%%%MatrixMarket matrix array real general\n2 1\n1\n2\n' >x.mtx
cat >user.c <<'END'
#include <string.h>
#include <weft.h>

int main(void)
{
    static const char text[] = "program triple(n)\naxis I = n\nf32 X[I], Y[I]\n"
                               "y: Y[i] = 3 * X[i]\n";
    weft_ctx *ctx = weft_ctx_new();
    weft_prog *prog;
    weft_kernel *kernel;
    int bad = weft_prog_parse(ctx, NULL, text, strlen(text), &prog) ||
              weft_kernel_compile(prog, &kernel);

    weft_ctx_free(ctx);
    return bad;
}
END

# The processes of compilers: the path of what they make is among their arguments.
echo "$TMPDIR/weft-jit" >pattern # in a file, so that grep does not find itself
compilers() { grep -lsF -f "$tmp/pattern" /proc/[0-9]*/cmdline; }
files() { find "$TMPDIR" "$WEFT_CACHE_DIR" -name 'weft-jit-*' -o -name '*.lock' 2>/dev/null; }

no_compiler() {
    local i
    for i in $(seq 100); do
        [ -n "$(compilers)" ] || return 0
        sleep 0.05
    done
    return 1
}

# interrupt NAME FILES SIGNALS COMMAND...: at random moments; FILES: 1 when none may stay.
interrupt() {
    local name=$1 files=$2 sigs=($3) i sig pid code died=0 left=0 orphans=0
    shift 3
    for i in $(seq "$rounds"); do
        rm -rf "$WEFT_CACHE_DIR"
        slow $((i % 2 * 30)).1
        sig=${sigs[i % ${#sigs[@]}]}
        # not by the shell alone, which has its background jobs ignore INT
        env --default-signal=INT "$@" >stdout 2>stderr &
        pid=$!
        sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
        kill -s "$sig" "$pid" 2>/dev/null
        code=0
        wait "$pid" 2>/dev/null || code=$?
        [ "$code" -le 128 ] || died=$((died + 1))
        no_compiler || orphans=$((orphans + 1))
        [ "$files" = 0 ] || [ -z "$(files)" ] || left=$((left + 1))
    done
    [ "$orphans" = 0 ]
    verdict "$name leaves no compiler" $? "$orphans of $rounds times: $(compilers)"
    [ "$left" = 0 ]
    verdict "$name leaves no files" $? "$left of $rounds times: $(files)"
    [ "$died" -gt $((rounds / 4)) ]
    verdict "$name dies of the signal" $? "$died of $rounds times"
}

interrupt "weft run" 1 "TERM HUP INT" "$WEFT" run double.weft -t c --in X=x.mtx
interrupt "weft bench" 1 "TERM HUP INT" "$WEFT" bench 'spmm:a.mtx:k=16:t=2'
if build_c user.c user; then
    interrupt "a C program" 0 "TERM HUP INT KILL" ./user
    rm -rf "$WEFT_CACHE_DIR"
    slow 0
    try "the next compile" 0 ./user
    [ -z "$(files)" ]
    verdict "the next compile sweeps what the dead left" $? "$(files)"
fi
eval "$clean"
finish
