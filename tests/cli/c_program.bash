# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# build_c SOURCE PROGRAM: compiles a user's program as strictly as our own code, against weft.h and
# the static library beside $WEFT, with the options and libraries that its build tree has.  Needs `here` and `bad`.
build_c() {
    local tree flags sanitize libs
    tree=$(dirname "$WEFT") flags=(-std=c11 -Wall -Wextra -Wshadow -Wconversion -Werror)
    sanitize=$(sed -n 's/^WEFT_SANITIZE:STRING=//p' "$tree/CMakeCache.txt" 2>/dev/null)
    [ -z "$sanitize" ] || flags+=("-fsanitize=$sanitize")
    ! grep -q '^WEFT_COVERAGE:BOOL=ON' "$tree/CMakeCache.txt" 2>/dev/null || flags+=(--coverage)
    libs=$(sed -n 's/^Libs.private: //p' "$tree/weft.pc")
    cc "${flags[@]}" -I"$here/include" "$1" "$tree/libweft.a" $libs -o "$2" \
        >"$2.log" 2>&1 || { bad "$1 does not compile: $(cat "$2.log")"; return 1; }
}
