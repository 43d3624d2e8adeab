# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# What the tests of the command share.  WEFT is the command; each test works in a scratch folder.
# A test is `try NAME CODE COMMAND...`, then `out`, `err` and `same` on what it said.
set -u
export LC_ALL=C
: "${WEFT:?the path of the command}"
passed=0 failed=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-cli-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export WEFT_CACHE_DIR=$tmp/cache WEFT_VERBOSE=

weft() { "$WEFT" "$@"; }

verdict() { # NAME GOOD(0 or not) DETAIL
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'failed: %s: %s\n--- stdout\n%s\n--- stderr\n%s\n' "$1" "$3" "$(cat stdout)" "$(cat stderr)"
    fi
}

# try NAME CODE COMMAND...: the command ends with this exit code; its stdin is the caller's.
try() {
    name=$1
    local want=$2 code=0
    shift 2
    "$@" >stdout 2>stderr || code=$?
    [ "$code" = "$want" ]
    verdict "$name" $? "exit code $code, not $want"
}

# out TEXT, err TEXT: stdout, stderr of the last command has TEXT in it; none: is empty.
out() { grep -qF -- "$1" stdout; verdict "$name" $? "no '$1' on stdout"; }
err() { grep -qF -- "$1" stderr; verdict "$name" $? "no '$1' on stderr"; }
none() { [ ! -s "$1" ]; verdict "$name" $? "$1 is not empty"; }

# same FILE: stdout of the last command is FILE (- is the text on stdin).
same() { diff -u "$1" stdout >diff.txt; verdict "$name" $? "$(cat diff.txt)"; }

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}

cat >spmm.weft <<'END'
# C = A B, A stored by rows
program spmm(m, n, f)
axis I = dense(m), J = compressed(I, n), K = dense(f)
f32 A[I, J], B[n, K], C[I, K]
c: C[i, k] += A[i, j] * B[j, k]
END
cat >a.mtx <<'END'
%%MatrixMarket matrix coordinate real general
3 4 4
1 1 1.5
1 3 2
3 2 -1
3 4 0.5
END
cat >b.mtx <<'END'
%%MatrixMarket matrix array real general
4 2
0
2
4
6
1
3
5
7
END
