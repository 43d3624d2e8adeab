#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Keeps the documentation true.  Of the fenced blocks in README.md and docs/*.md:
#   weft     is a whole program: it must check, and print to a text that prints the same;
#   c        is a whole program: it must compile without a warning, and run;
#   console  is commands after "$ " with what they print: run in examples/, it must be just that.
# WEFT is the command under test.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/structure/lib.sh"
. "$here/tests/cli/c_program.bash"
scratch
WEFT=$(realpath "${WEFT:-$here/build/release/weft}")
mkdir "$tmp/bin"
ln -s "$WEFT" "$tmp/bin/weft"
export PATH=$tmp/bin:$PATH WEFT_CACHE_DIR=$tmp/cache

# blocks FILE: each fenced block with one of the languages as $tmp/FILE-LINE.LANGUAGE.
blocks() {
    awk -v out="$tmp/$(basename "$1" .md)" '
        /^```/ && on { on = 0; close(to); next }
        /^```[a-z]/ { language = substr($0, 4); on = 1; to = out "-" NR "." language; next }
        /^```/ { on = 1; to = "/dev/null"; next }
        on { print >to }' "$1"
}
for file in "$here/README.md" "$here"/docs/*.md; do blocks "$file"; done

cd "$here/examples" || exit 1
for program in "$tmp"/*.weft; do
    weft check "$program" >"$tmp/said" 2>&1 || bad "$(cat "$tmp/said")"
    weft print "$program" >"$tmp/once" 2>&1 && weft print "$tmp/once" >"$tmp/twice" 2>&1
    cmp -s "$tmp/once" "$tmp/twice" || bad "$program does not print to itself"
    part "$(basename "$program")"
done

for source in "$tmp"/*.c; do
    build_c "$source" "$tmp/program" &&
        { "$tmp/program" >"$tmp/said" 2>&1 || bad "$source fails: $(cat "$tmp/said")"; }
    part "$(basename "$source")"
done

for session in "$tmp"/*.console; do
    while IFS= read -r line; do
        case $line in
        '$ '*) printf '%s\n' "$line"; bash -c "${line#\$ }" 2>&1 ;;
        esac
    done <"$session" >"$tmp/said"
    diff -u "$session" "$tmp/said" || bad "$session: not what the commands print"
    part "$(basename "$session")"
done
finish
