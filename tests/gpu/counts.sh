#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Counts of executed instructions: CUDA text of Weft, compiled by nvcc for sm_80 and run in the
# interpreter of machine code (docs/testing.md).  Counts are not times.
# Usage: tests/gpu/counts.sh PART [NAME]   PART: ops, ...: of a file counts_PART.sh; NAME: of lines
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/tools.sh
what=${1:-}
run=${WEFT_COUNT:-$PWD/build/release/weft_count}
[ "$what" != ops ] || run=$PWD/build/release/weft_gpu
[ -n "$what" ] && [ -e "tests/gpu/counts_$what.sh" ] || {
    echo "usage: tests/gpu/counts.sh PART [NAME]; parts: $(ls tests/gpu/counts_*.sh | sed 's/.*counts_//; s/.sh$//' | tr '\n' ' ')" >&2
    exit 2
}
need_cuda "counts of instructions" || exit 0
exec bash "tests/gpu/counts_$what.sh" "$run" "${2:-}"
