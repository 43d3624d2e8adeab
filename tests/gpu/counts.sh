#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Counts of executed instructions: CUDA text of Weft, compiled by nvcc for sm_80 and run in the
# interpreter of machine code (docs/testing.md), beside those of other systems' kernels, which were
# executed in the same way.  Counts are not times.
# Usage: tests/gpu/counts.sh tp [PART]     tensor products and convolutions; PART of a line's name
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/tools.sh
run=${WEFT_COUNT:-$PWD/build/release/weft_count}
what=${1:-}
case $what in
tp) ;;
*) echo "usage: tests/gpu/counts.sh tp [PART]" >&2; exit 2 ;;
esac
need_cuda "counts of instructions" || exit 0
exec bash "tests/gpu/counts_$what.sh" "$run" "${2:-}"
