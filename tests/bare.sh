#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The tests on a machine with nothing but what the project needs: clang, valgrind, qemu, gcov,
# pkg-config and packages of Python are not found, and nothing may be installed.  All has to pass,
# and what is skipped has to be named.
#
#   tests/bare.sh fast|full [PART]   the runner (tests/run.sh), on a copy of the tree in a scratch
#                                    folder, without build trees and .venv
#   tests/bare.sh quick              some suites of build/release that use a compiler, as they are
set -u
cd "$(dirname "$0")/.."
root=$PWD tier=${1:-full} part=${2:-}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-bare-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 143' TERM INT
passed=0 failed=0
verdict() { # CODE WHAT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "failed: $2"; fi
}

# A C compiler with its binutils, CMake, make, git, and what every system has.  python3 is there, as
# on most machines, but sees no packages.
programs=(ar as awk basename bash c++ cat cc chmod cmake cmp comm cp cut date dd diff dirname du env expr
    false find flock g++ gcc getconf git gmake grep gzip head id install kill ld ldd ln localedef ls
    make mkdir mkfifo mktemp mv nice nm nproc objdump od paste pgrep printf ps pwd ranlib readelf
    readlink realpath rm rmdir sed seq setsid sh sha256sum sleep sort stat strings strip sync tail
    tar tee test timeout touch tr true truncate uname uniq wc which xargs yes)
mkdir "$tmp/bin"
for program in "${programs[@]}"; do
    path=$(type -P "$program") && ln -s "$path" "$tmp/bin/$program"
done
if path=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null); then
    printf '#!/bin/sh\nexec "%s" -s -S "$@"\n' "$path" >"$tmp/bin/python3"
    chmod +x "$tmp/bin/python3"
fi
for tool in clang valgrind qemu-aarch64 aarch64-linux-gnu-gcc gcov pkg-config; do
    ! PATH=$tmp/bin type -P $tool >/dev/null
    verdict $? "$tool is on the PATH"
done
bare() { # COMMAND: without what the caller's environment has
    env -i HOME="$tmp" PATH="$tmp/bin" TERM=dumb WEFT_NO_INSTALL=1 WEFT_TEST_SEED="${WEFT_TEST_SEED:-1}" \
        WEFT_TEST_SCALE=2 WEFT_LANES="${WEFT_LANES:-2}" WEFT="$root/build/release/weft" bash -c "$1"
}

if [ "$tier" = quick ]; then
    r=build/release
    for suite in "$r/weft_sched all examples/*.weft" $r/weft_kernel "$r/weft_golden tests/golden" \
        "bash tests/cli/kernel.sh"; do
        bare "$suite" >"$tmp/log" 2>&1
        verdict $? "$suite: $(tail -n 20 "$tmp/log")"
        grep -a '^skipped: ' "$tmp/log"
    done
else
    mkdir "$tmp/weft"
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar -c --null -T - | tar -x -C "$tmp/weft" || exit 1
    (cd "$tmp/weft" && bare "tests/run.sh $tier $part") >"$tmp/log" 2>&1
    verdict $? "the suites do not pass"
    grep -av ' 0 failed ' "$tmp/log" # what failed and what was skipped
    mkdir -p build/log/bare && cp "$tmp"/weft/build/log/* build/log/bare/ 2>/dev/null
fi
if [ "$tier" = full ] && [ -z "$part" ]; then
    for what in clang "clang's undefined-behaviour sanitizer" "valgrind memcheck" NEON "Python package" "pkg-config consumer"; do
        grep -qa "^skipped: .*: $what: " "$tmp/log"
        verdict $? "nothing says that $what was skipped"
    done
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
