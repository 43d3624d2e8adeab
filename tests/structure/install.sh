#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# install.sh ROOT BUILD: what BUILD installs can be moved, found by find_package and by pkg-config,
# linked both ways, and run: a line with its version, and examples/spmm.c.  Then ROOT is built as a
# subdirectory of another project, and configured without zlib.
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
    for kind in weft weft_static; do
        printf '%s\n' "add_executable(spmm_$kind spmm.c)" \
            "target_link_libraries(spmm_$kind weft::$kind)" >>"$tmp/use/CMakeLists.txt"
    done
fi
quiet cmake -S "$tmp/use" -B "$tmp/use/b" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release &&
    quiet cmake --build "$tmp/use/b" &&
    for kind in shared static; do says_version "$tmp/use/b/use_$kind"; done &&
    { [ ! -f "$example" ] ||
        for kind in weft weft_static; do says_product "$tmp/use/b/spmm_$kind"; done; }
part "find_package"

# A consumer whose CMake does not find zlib, as where only the library and no headers are there.
quiet cmake -S "$tmp/use" -B "$tmp/use/bz" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON &&
    quiet cmake --build "$tmp/use/bz" --target use_shared use_static &&
    for kind in shared static; do says_version "$tmp/use/bz/use_$kind"; done
part "find_package without zlib's"

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
    [ -f "$example" ] &&
        quiet cc $(pkg-config --cflags weft) "$example" -o "$tmp/use/spmms" -L"$lib" -l:libweft.a \
            $(pkg-config --static --libs-only-l weft | sed 's/-lweft//') && says_product "$tmp/use/spmms"
    if [ -f "$root/README.md" ]; then # its lines for ~/.local, as they are written
        mkdir -p "$tmp/home" && ln -s "$prefix" "$tmp/home/.local"
        awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$root/README.md" >"$tmp/quick.c"
        awk '/^```sh$/ { on = 1; block = ""; next } /^```/ { if (block ~ /PKG_CONFIG_PATH/) printf "%s", block; on = 0 }
            on { block = block $0 "\n" }' "$root/README.md" >"$tmp/quick.sh"
        grep -q PKG_CONFIG_PATH "$tmp/quick.sh" || bad "README.md does not say how to find weft.pc in ~/.local"
        cp -r "$root/examples" "$tmp/examples" && cp "$tmp/quick.c" "$tmp/examples/" &&
            (cd "$tmp/examples" && env -u LD_LIBRARY_PATH -u PKG_CONFIG_PATH HOME="$tmp/home" \
                bash -eu "$tmp/quick.sh" >"$tmp/log" 2>&1) || bad "README.md, From C: $(tail -n 5 "$tmp/log")"
        grep -q '^C f32' "$tmp/log" || bad "README.md, From C: $(tail -n 5 "$tmp/log")"
    fi
    part "pkg-config"
else
    skip "pkg-config consumer" "pkg-config is not installed"
fi

mkdir "$tmp/parent"
cp "$tmp/use/use.c" "$tmp/parent/"
cat >"$tmp/parent/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.16)
project(parent C)
add_subdirectory("$(cd "$root" && pwd)" weft)
add_executable(use_subdirectory use.c)
target_link_libraries(use_subdirectory weft::weft)
END
# Debug is the parent's choice, and compiles in a third of the time.
quiet cmake -S "$tmp/parent" -B "$tmp/parent/b" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 &&
    quiet cmake --build "$tmp/parent/b" --target use_subdirectory -j 2 &&
    says_version "$tmp/parent/b/use_subdirectory"
part "add_subdirectory"

quiet cmake -S "$root" -B "$tmp/without" -DWEFT_ZLIB=OFF &&
    grep -q -- '-lz' "$tmp/without/weft.pc" && bad "weft.pc names zlib in a build without it"
if grep -q 'WEFT_ZLIB_LINKS:INTERNAL=1' "$build/CMakeCache.txt"; then
    grep -q -- '-lz' "$build/weft.pc" || bad "weft.pc does not name zlib in a build with it"
fi
part "zlib"
finish
