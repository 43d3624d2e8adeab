#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# header.sh ROOT: weft.h is plain C99, stands alone, is usable from C++, and can be included twice.
. "$(dirname "$0")/lib.sh"
scratch

printf '#include <weft.h>\n#include <weft.h>\nint main(void) { return 0; }\n' >"$tmp/use.c"
cp "$tmp/use.c" "$tmp/use.cpp"
try() { "$@" -I"$root/include" -fsyntax-only >"$tmp/log" 2>&1 || bad "$(head -n 20 "$tmp/log")"; }

try cc -std=c99 -pedantic -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror "$tmp/use.c"
part "weft.h as C99"
cxx=$(command -v g++ || command -v clang++)
if [ -n "$cxx" ]; then
    try "$cxx" -std=c++11 -pedantic -Wall -Wextra -Wshadow -Werror "$tmp/use.cpp"
    grep -q 'extern "C"' "$root/include/weft.h" || bad "include/weft.h: no extern \"C\""
    part "weft.h as C++11"
else
    skip "weft.h as C++11" "no C++ compiler"
fi
finish
