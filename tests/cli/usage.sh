#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Help, and wrong usage: exit code 2, one line on stderr, nothing on stdout.
. "$(dirname "$0")/lib.bash"

try "no command" 2 weft </dev/null
none stdout
err "usage: weft COMMAND"
try "an unknown command" 2 weft frobnicate </dev/null
none stdout
err "there is no command frobnicate; see weft --help"

for flag in --help -h help; do
    try "weft $flag" 0 weft $flag </dev/null
    none stderr
    out "examples:"
    out "usage: weft COMMAND"
done
for command in op tp linear sh irreps wigner check print grad run emit cache gen bench list version; do
    try "weft $command --help" 0 weft $command --help </dev/null
    none stderr
    out "usage: weft $command"
    out "examples:"
    try "weft $command x -h" 0 weft $command x -h </dev/null
    out "usage: weft $command"
    try "weft --help names $command" 0 weft --help
    out "  $command "
done

try "an unknown option" 2 weft check --fast spmm.weft
try "an unknown option" 2 weft check --fast
err "there is no option --fast"
try "an unknown option of run" 2 weft run spmm.weft --input A=a.mtx
err "there is no option --input"
try "an option that is a prefix" 2 weft run spmm.weft --i A=a.mtx
try "two files" 2 weft print spmm.weft spmm.weft
err "one FILE at a time"
try "two programs" 2 weft run spmm.weft other.weft
err "two programs, spmm.weft and other.weft"
for option in --in --out --set; do
    try "$option without a pair" 2 weft run spmm.weft $option
    err "$option wants NAME=VALUE"
    try "$option without a sign" 2 weft run spmm.weft $option A
    try "$option without a name" 2 weft run spmm.weft $option =a.mtx
    try "$option without a value" 2 weft run spmm.weft $option A=
    try "$option= without a pair" 2 weft run spmm.weft $option=A
    err "$option wants NAME=VALUE"
done
for value in x 1x 1.5 99999999999999999999 '1 '; do
    try "a size that is $value" 2 weft run spmm.weft --set "m=$value"
    err "--set m: $value is not an integer"
done

try "the version" 0 weft version
same - <<<"weft $(weft --version | cut -d' ' -f2)"
try "the version with more" 2 weft version 2
try "all tables" 0 weft list
out "functions"
out "  compressed(I, n)"
tables=$(grep -E '^[a-z]' stdout)
try "its help" 0 weft list --help
for table in $tables; do out "$table"; done
try "a table" 0 weft list types
same - <<'END'
i32   integer
i64   integer
f16   floating point
bf16  floating point
f32   floating point
f64   floating point
END
try "keywords" 0 weft list keywords
out "program"
try "an unknown table" 2 weft list colours
err "there is no table colours"
try "the policy of this machine" 0 weft list policy
try "the policy of a target" 0 weft list policy -t c:avx512
out "sweep_sums               20  "
try "the policy of a narrow target" 0 weft list policy -t c:avx2
out "sweep_sums               10  "
try "an unknown target of a policy" 1 weft list policy -t c:nine
err "there is no target c:nine"
try "two tables" 2 weft list types axes
finish
