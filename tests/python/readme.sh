#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# readme.sh ALONE [OTHER]: the blocks of README.md's first screen, which ends at "## The command", run as
# they are written, in order, in an empty folder and an empty environment: PATH has the folder bin of
# ALONE, where the package and NumPy are installed and nothing else, and the system's programs.  Python
# that imports torch or a package of models runs in OTHER, if that package is there.  `pip install .` is
# what made ALONE (run.sh), so it is not run again.
here=$(cd "$(dirname "$0")/../.." && pwd)
alone=$(cd "$1" && pwd) other=$(cd "${2:-$1}" && pwd)
set -- "$here"
. "$here/tests/structure/lib.sh"
scratch
mkdir "$tmp/home" "$tmp/empty" "$tmp/blocks"

# Each block as blocks/NUMBER.LANGUAGE, in the order of the page.
awk -v out="$tmp/blocks" '
    /^## The command/ { exit }
    /^```/ && on { on = 0; close(to); next }
    /^```/ { on = 1; to = sprintf("%s/%02d.%s", out, ++n, substr($0, 4)); next }
    on { print >to }' "$here/README.md"

run() { # ENVIRONMENT COMMAND...
    (cd "$tmp/empty" && env -i HOME="$tmp/home" PATH="$1/bin:/usr/local/bin:/usr/bin:/bin" "${@:2}") \
        >"$tmp/said" 2>&1
}

installs=0 results=0
for block in "$tmp"/blocks/*; do
    name=$(basename "$block")
    case $name in
    *.sh)
        if [ "$(cat "$block")" = "pip install ." ]; then
            installs=$((installs + 1))
            [ -x "$alone/bin/weft" ] || bad "pip install . gives no command weft"
        else
            results=$((results + 1))
            run "$alone" bash -euo pipefail "$block" || bad "$(cat "$block"): $(tail -n 20 "$tmp/said")"
        fi ;;
    *.python)
        package=$(sed -nE 's/^(import|from) (torch|sevenn|nequip|mace).*/\2/p' "$block" | head -n 1)
        if [ -z "$package" ]; then
            results=$((results + 1))
            run "$alone" python "$block" || bad "$(cat "$block"): $(tail -n 20 "$tmp/said")"
        elif run "$other" python -c "import $package"; then
            run "$other" python -W error::UserWarning:weft "$block" ||
                bad "$(cat "$block"): $(tail -n 20 "$tmp/said")"
        else
            skip "README.md, $name" "$package is not installed"
        fi ;;
    *.weft) run "$alone" weft check "$block" || bad "$(cat "$tmp/said")" ;;
    *) bad "README.md, $name: the first screen has a block that this test cannot run" ;;
    esac
    part "README.md, $name"
done
[ $installs = 1 ] && [ $results -ge 3 ] || bad "$installs commands that install, $results blocks that need no torch"
part "the first screen has its blocks"
finish
