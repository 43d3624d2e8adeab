# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# nvcc, and cuobjdump with nvdisasm, which come from the PyPI.  To be sourced.
. tests/tool.sh

# cuda_bin: the folder of cuobjdump and nvdisasm: on the PATH, or in a Python environment of the tests.
cuda_bin() {
    local tool
    if [ -n "${WEFT_CUDA_BIN:-}" ]; then
        echo "$WEFT_CUDA_BIN"
        return
    fi
    if tool=$(command -v cuobjdump) && command -v nvdisasm >/dev/null; then
        dirname "$tool"
        return
    fi
    for tool in .venv build/cuda; do
        tool=$(find "$tool" -path '*/bin/cuobjdump' 2>/dev/null | head -n 1)
        [ -z "$tool" ] || { cd "$(dirname "$tool")" && pwd && return; }
    done
    return 1
}

# need_cuda WHAT: true when nvcc, cuobjdump and nvdisasm are there; WEFT_CUDA_BIN is then their folder.
# The two are put into build/cuda if pip can fetch them.
need_cuda() {
    has nvcc || { echo "skipped: $1: nvcc is not installed"; return 1; }
    WEFT_CUDA_BIN=$(cuda_bin)
    if [ -z "$WEFT_CUDA_BIN" ] && [ -z "${WEFT_NO_INSTALL:-}" ]; then
        { python3 -m venv build/cuda &&
            timeout 300 build/cuda/bin/pip install -q nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm; } >build/.cuda.log 2>&1
        WEFT_CUDA_BIN=$(cuda_bin)
    fi
    [ -n "$WEFT_CUDA_BIN" ] || { echo "skipped: $1: cuobjdump and nvdisasm are not installed and pip could not fetch them"; return 1; }
    export WEFT_CUDA_BIN
}
