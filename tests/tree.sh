#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Configures and builds one of our build trees: tests/tree.sh NAME [COMMAND...] gives build/NAME and
# then runs the command.  ubsan-unit is the tree ubsan with the unit tests and the command alone.  Safe
# to call from several processes at a time.  When the compiler is missing it says "skipped: ..." and
# that is all.  Trees with sanitizers are not optimized: they take a third of the time to build, which
# is more than their tests lose.
set -eu
cd "$(dirname "$0")/.."
name=$1
shift
. tests/tool.sh

options=(-DWEFT_WERROR=ON -DWEFT_TESTS=ON) only=()
case $name in
release) ;;
asan) options+=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -g1"
                -DWEFT_SANITIZE=address,undefined) ;;
tsan) options+=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -g1" -DWEFT_SANITIZE=thread
                -DWEFT_WERROR=OFF) # which makes gcc guess about the length of formatted numbers
      only=(--target weft_kernel weft_unit weft_jit) ;;
clang) need clang "clang build" || exit 0
       options+=(-DCMAKE_C_COMPILER=clang) ;;
ubsan | ubsan-unit) need clang-sanitizers "clang's undefined-behaviour sanitizer" || exit 0 # sees more than gcc's
       [ "$name" = ubsan ] || only=(--target weft_unit weft_cli)
       name=ubsan options+=(-DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -g1"
                 -DWEFT_SANITIZE=undefined,float-cast-overflow,integer-divide-by-zero,implicit-conversion) ;;
neon) need aarch64-linux-gnu-gcc "NEON" || exit 0
      only=(--target weft_kernel)
      options+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
                -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc) ;;
coverage) need gcov "coverage" || exit 0
          options+=(-DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DWEFT_COVERAGE=ON) ;;
*) echo "tree.sh: no tree named $name" >&2; exit 2 ;;
esac

mkdir -p "build/$name"
exec 9>"build/.$name.lock"
flock 9
if [ "${options[*]}" != "$(cat "build/$name/.options" 2>/dev/null)" ]; then
    rm -rf "build/$name"
    cmake -S . -B "build/$name" "${options[@]}" >"build/.$name.log" 2>&1 ||
        { cat "build/.$name.log"; exit 1; }
    echo "${options[*]}" >"build/$name/.options"
fi
cmake --build "build/$name" "${only[@]}" -j "${WEFT_JOBS:-2}" >"build/.$name.log" 2>&1 9>&- ||
    { grep -vE '^(\[|--)' "build/.$name.log"; exit 1; }
exec 9>&-
[ $# = 0 ] || exec "$@"
