# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The optional tools of the tests.  To be sourced.
declare -A package=( # the Debian packages of each
    [clang]=clang
    [clang-sanitizers]="clang libclang-rt-dev"
    [gcov]=gcc
    [valgrind]="valgrind libc6-dbg"
    [pkg-config]=pkg-config
    [aarch64-linux-gnu-gcc]="gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
    [qemu-aarch64]=qemu-user
    [pocl]="pocl-opencl-icd ocl-icd-libopencl1"
    [oclgrind]="oclgrind ocl-icd-libopencl1"
    [clang-22]=clang-22
    [opencl-headers]=opencl-c-headers
)

# has TOOL: whether it is there.  The run-time libraries of clang's sanitizers are a package of their own.
has() {
    [ "$1" != clang-sanitizers ] || {
        command -v clang >/dev/null && clang -fsanitize=undefined -x c -o /dev/null - <<<'int main(void) { return 0; }' 2>/dev/null
        return
    }
    if [ "$1" = pocl ]; then # a driver is no command
        ls /etc/OpenCL/vendors/pocl.icd >/dev/null 2>&1
        return
    fi
    if [ "$1" = opencl-headers ]; then
        [ -e /usr/include/CL/cl.h ]
        return
    fi
    command -v "$1" >/dev/null
}

may_install() { [ -z "${WEFT_NO_INSTALL:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# install_tools TOOL...: installs what is missing of them, if root may; true when all are there.
install_tools() {
    local tool wanted=()
    for tool in "$@"; do has "$tool" || wanted+=(${package[$tool]}); done
    [ ${#wanted[@]} -gt 0 ] || return 0
    may_install || return 1
    mkdir -p build
    ( flock 8
      timeout 300 apt-get update
      DEBIAN_FRONTEND=noninteractive timeout 900 \
          apt-get install -y --no-install-recommends "${wanted[@]}" ||
          for tool in "${wanted[@]}"; do # one that is not to be had does not take the others along
              DEBIAN_FRONTEND=noninteractive timeout 300 \
                  apt-get install -y --no-install-recommends "$tool"
          done
    ) >build/.install.log 2>&1 8>build/.install.lock
    hash -r
    for tool in "$@"; do has "$tool" || return 1; done
}

# need TOOL WHAT: true when TOOL is there.  Root gets a missing one installed, unless WEFT_NO_INSTALL
# is set or the runner has tried it before; otherwise it prints "skipped: WHAT: reason" and is false.
need() {
    has "$1" && return 0
    local why="$1 is not installed"
    if [ -n "${WEFT_TOOLS_TRIED:-}" ] && may_install; then
        why="$why and apt-get could not install it"
    elif may_install; then
        install_tools "$1" && return 0
        why="$why and apt-get could not install it"
    elif [ -z "${WEFT_NO_INSTALL:-}" ] && command -v apt-get >/dev/null; then
        why="$why (make test as root would install it)"
    fi
    echo "skipped: $2: $why"
    return 1
}
