# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# What the structure checks share.  Each is `check.sh ROOT ...`: it looks at the tree in ROOT, says
# `bad ...` for each thing that is wrong, and ends with `part NAME` for each part and `finish`.
set -u
export LC_ALL=C.UTF-8
root=${1:-.}
passed=0 failed=0 errors=0

bad() {
    echo "$*"
    errors=$((errors + 1))
}

# Closes one part: passed if nothing bad was said since the last.
part() {
    if [ "$errors" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $1"; fi
    errors=0
}

skip() { echo "skipped: $1: $2"; }

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}

# A scratch folder, removed at the end.
scratch() {
    tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-structure-XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
}

# The build description and what it builds, copied to folder $1.
copy_sources() {
    mkdir -p "$1"
    for part in CMakeLists.txt cmake src include cli; do
        cp -r "$root/$part" "$1/"
    done
}

# C source without comments and without the insides of strings, as FILE:LINE:TEXT.
bare() {
    awk '
        FNR == 1 { inside = 0 }
        {
            out = ""
            n = length($0)
            for (i = 1; i <= n; i++) {
                c = substr($0, i, 1)
                two = substr($0, i, 2)
                if (inside) {
                    if (two == "*/") { inside = 0; i++ }
                } else if (two == "/*") {
                    inside = 1
                    i++
                } else if (two == "//") {
                    break
                } else if (c == "\"" || c == "\x27") {
                    for (i++; i <= n && substr($0, i, 1) != c; i++)
                        if (substr($0, i, 1) == "\\") i++
                    out = out c c
                } else {
                    out = out c
                }
            }
            print FILENAME ":" FNR ":" out
        }' "$@"
}

# c_files FOLDER...: the C files under the folders of the tree that exist.
c_files() {
    for folder in "$@"; do
        [ ! -d "$root/$folder" ] || find "$root/$folder" -name '*.[ch]' -o -name '*.def' | sort
    done
}
