# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# need TOOL WHAT [PACKAGES]: true when TOOL is there.  Root gets a missing one installed (apt), unless
# WEFT_NO_INSTALL is set; otherwise it prints "skipped: WHAT: reason" and is false.
need() {
    command -v "$1" >/dev/null && return 0
    local why="$1 is not installed"
    if [ -n "${WEFT_NO_INSTALL:-}" ] || ! command -v apt-get >/dev/null; then
        :
    elif [ "$(id -u)" != 0 ]; then
        why="$why (make test as root would install it)"
    else
        mkdir -p build
        ( flock 8
          command -v "$1" >/dev/null ||
              { timeout 120 apt-get update && DEBIAN_FRONTEND=noninteractive \
                timeout 300 apt-get install -y --no-install-recommends ${3:-$1}; }
        ) >"build/.install-$1.log" 2>&1 8>build/.install.lock
        command -v "$1" >/dev/null && return 0
        why="$why and apt-get could not install it"
    fi
    echo "skipped: $2: $why"
    return 1
}
