#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Lines of every operator, of SpMM in every format and of composed formats in one launch, with
# their gradients: 64 rows of 32 entries, 128 features.  The arithmetic is the operations of the
# cost model over 64, the operations of a warp's fma.
# Usage: tests/gpu/counts_ops.sh WEFT_GPU [PART]; PART: of a program's name
set -u
cd "$(dirname "$0")/../.."
. tests/gpu/programs.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gpu_programs "$scratch" "${WEFT:-$PWD/build/release/weft}"
"${WEFT:-$PWD/build/release/weft}" list ops | awk '{ print $1 }' >"$scratch/ops"
awk -F'\t' -v part="${2:-}" 'NR == FNR { op["op_" $1] = op["d_op_" $1] = 1; next }
    ($1 in op || $1 ~ /^spmm_in_/) && index($1, part) > 0' "$scratch/ops" "$scratch/list" >"$scratch/some"
"$1" cuda "$scratch/some" -serial -rows deg32 -set "*=64" -set f=128 -set ci=32 -set co=32 \
    -set nr=4 -set ng=16 -set heads=2 -set nq=4 -set nk=16 -set np=8 -set d=32 -set dv=32 -set k=27 \
    -set strips=4 -set groups=8 -set npages=32 -set nseq=8 -set tokens=32
