#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# install.sh ROOT BUILD: what BUILD installs can be moved, found by find_package and by pkg-config,
# linked both ways, and run: a line with its version, and examples/spmm.c.
. "$(dirname "$0")/lib.sh"
scratch
build=$2
version=$(sed -n 's/^project(weft VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")

quiet() { "$@" >"$tmp/log" 2>&1 || { bad "$* failed: $(tail -n 15 "$tmp/log")"; return 1; }; }
says_version() { # COMMAND...
    local got
    got=$("$@" 2>&1) && [ "$got" = "$version" ] || bad "$*: said '$got', wanted '$version'"
}

says_product() { # COMMAND...: the example's matrix
    local got
    got=$("$@" 2>&1 | tr '\n' ' ') && [ "$got" = "9 90 0 0 18 180 " ] || bad "$*: said '$got'"
}

quiet cmake --install "$build" --prefix "$tmp/first"
mv "$tmp/first" "$tmp/moved" # whatever remembered the first place breaks now
prefix=$tmp/moved
lib=$(dirname "$(find "$prefix" -name libweft.a)")
for file in include/weft.h bin/weft; do [ -f "$prefix/$file" ] || bad "not installed: $file"; done
[ -L "$lib/libweft.so" ] && [ -e "$lib/libweft.so.0" ] || bad "libweft.so is not a link with SOVERSION 0"
[ -x "$prefix/bin/weft" ] && { quiet "$prefix/bin/weft" --help || bad "the installed command does not run"; }
grep -rlIF "$tmp/first" "$prefix" && bad "these files remember the place of installation"
part "files installed"

mkdir "$tmp/use"
cat >"$tmp/use/use.c" <<'END'
#include <stdio.h>
#include <weft.h>
int main(void) { return puts(weft_version()) < 0; }
END
cat >"$tmp/use/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(use C)
find_package(weft 0.1 REQUIRED CONFIG)
add_executable(use_shared use.c)
target_link_libraries(use_shared weft::weft)
add_executable(use_static use.c)
target_link_libraries(use_static weft::weft_static)
END
example=$root/examples/spmm.c # which the trees of selftest.sh have not: they compute nothing
if [ -f "$example" ]; then
    cp "$example" "$tmp/use/"
    printf '%s\n' 'add_executable(spmm spmm.c)' 'target_link_libraries(spmm weft::weft)' \
        >>"$tmp/use/CMakeLists.txt"
fi
quiet cmake -S "$tmp/use" -B "$tmp/use/b" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release &&
    quiet cmake --build "$tmp/use/b" &&
    for kind in shared static; do says_version "$tmp/use/b/use_$kind"; done &&
    { [ ! -f "$example" ] || says_product "$tmp/use/b/spmm"; }
part "find_package"

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$lib/pkgconfig
    [ "$(pkg-config --modversion weft)" = "$version" ] || bad "weft.pc has another version"
    quiet cc $(pkg-config --cflags weft) "$tmp/use/use.c" -o "$tmp/use/pc" $(pkg-config --libs weft) &&
        LD_LIBRARY_PATH=$lib says_version "$tmp/use/pc"
    quiet cc $(pkg-config --cflags weft) "$tmp/use/use.c" -o "$tmp/use/pcs" -L"$lib" -l:libweft.a \
        $(pkg-config --static --libs-only-l weft | sed 's/-lweft//') && says_version "$tmp/use/pcs"
    [ -f "$example" ] &&
        quiet cc "$example" -o "$tmp/use/spmm" $(pkg-config --cflags --libs weft) &&
        LD_LIBRARY_PATH=$lib says_product "$tmp/use/spmm"
    part "pkg-config"
else
    skip "pkg-config consumer" "pkg-config is not installed"
fi
finish
