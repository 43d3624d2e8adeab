#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# --skip and WEFT_SKIP: a kernel without an optional pass computes the same; names are checked.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/cli/lib.bash"
data=$here/examples/data
product="$here/examples/spmm.weft --in A=$data/a.mtx --in B=$data/b.npy"

weft run $product >right
optional=$(weft list passes | sed -n '/OPTIONAL/s/ .*//p')
[ "$(echo "$optional" | wc -l)" -ge 20 ]
verdict "most passes are optional" $? "only $optional"
for pass in $optional; do
    try "run without $pass" 0 weft run -t c --skip $pass $product
    same right
done
try "run without all of them" 0 env WEFT_SKIP="$(echo $optional)" "$WEFT" run -t c $product
same right

for command in "emit -t c:avx2" "print --after cse"; do
    weft $command "$here/examples/spmm.weft" >with
    try "$command --skip accumulate" 0 weft --skip accumulate $command "$here/examples/spmm.weft"
    ! cmp -s stdout with
    verdict "$command: another text without accumulate" $? "it is the same"
done

try "a name that is no pass" 2 weft run --skip lunch $product
err "weft: --skip wants the name of a pass after it, not lunch; the passes are formats, products,"
try "no name" 2 weft run $product --skip
err "not nothing; the passes are"
try "a pass that kernels need" 1 weft run -t c --skip flatten $product
err "no kernel can do without pass flatten; these can be skipped: products, transpose,"
try "a bad name in the environment" 1 env WEFT_SKIP=jam,lunch "$WEFT" run -t c $product
err "there is no pass lunch; these can be skipped:"

# The name in the cache is another, and tuning records are neither read nor kept.
key() { WEFT_VERBOSE=1 weft run "$@" $product 2>&1 >/dev/null | sed -n 's/^weft,compile,//p' | head -1; }
[ "$(key -t c)" != "$(key -t c --skip accumulate)" ]
verdict "another kernel in the cache" $? "the same key: $(key -t c)"
try "tune without a pass" 0 weft tune spmm:powerlaw:n=300:nnz=900:k=8 --seconds 6 --top 2 --quiet --skip jam
[ ! -e cache/tuned.txt ]
verdict "no record is kept" $? "$(cat cache/tuned.txt 2>/dev/null)"
try "tune with all passes" 0 weft tune spmm:powerlaw:n=300:nnz=900:k=8 --seconds 6 --top 2 --quiet
[ -e cache/tuned.txt ]
verdict "a record of all passes is kept" $? "there is none"
finish
