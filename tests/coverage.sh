#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Line and branch coverage of src/ by all suites (gcov), against reliability.md's G22: prints each
# file, each group against its goal, and every uncovered line as file:line.  Fails below a goal.
set -u
cd "$(dirname "$0")/.."
. tests/tool.sh
need gcov "coverage" || exit 0
tests/tree.sh coverage || exit 1
tree=$PWD/build/coverage

find "$tree" -name '*.gcda' -delete
export WEFT_TEST_SCALE=2 WEFT=$tree/weft
[ -d build/locale/de_DE.UTF-8 ] && export LOCPATH=$PWD/build/locale
mkdir -p build/log "$tree/gcov"
run() { # a suite that fails here fails in its own row too; the coverage would only be too low
    local log
    log=build/log/coverage-$(echo "$*" | tr -c 'a-z0-9\n' - | tail -c 40).log
    "$@" >"$log" 2>&1 </dev/null || { echo "failed: $*"; tail -n 5 "$log"; }
}
export -f run
{   # what takes longest comes first, so that the two lanes end together
    echo "$tree/weft_unit"
    echo "$tree/weft_sched all examples/*.weft"
    echo "$tree/weft_kernel"
    echo "$tree/weft_kernel files cc tests/kernel/cases/*.weft"
    for script in tests/cli/*.sh; do echo "bash $script"; done
    echo "$tree/weft_jit"
    echo "$tree/weft_golden tests/golden"
    echo "$tree/weft_random"
    echo "$tree/weft_grad all examples"
    echo "$tree/weft_stage"
    echo "$tree/weft_fail"
    for reader in ir mtx npy npz xyz; do echo "$tree/weft_fuzz $reader 3000 1"; done
} | xargs -P 2 -I '{}' bash -c 'run {}'

# One gcov call for all objects, so that what several of them include is summed.
rm -f "$tree"/gcov/*
( root=$PWD
  cd "$tree/gcov" && find "$tree" -path '*weft_objects*' -name '*.gcno' -print0 |
      xargs -0 gcov -b -c -p -r -s "$root" >gcov.log 2>&1 )
awk -f tests/coverage.awk "$tree"/gcov/*.gcov | sort -k1,2 -k3,3n >"$tree/coverage.txt"

awk '$1 == "file" {
         printf "%-28s line %6.2f %% of %5d   branch %6.2f %% of %5d\n",
             $2, 100 * $4 / $3, $3, $5 ? 100 * $6 / $5 : 100, $5
     }
     $1 == "uncovered" { print "uncovered: " $2 ":" $3 }' "$tree/coverage.txt"

# group NAME LINE-GOAL BRANCH-GOAL PATTERN: the files of PATTERN together.
group() {
    awk -v name="$1" -v line_goal="$2" -v branch_goal="$3" -v pattern="$4" '
        $1 == "file" && $2 ~ pattern { lines += $3; hit += $4; arms += $5; taken += $6 }
        END {
            line = lines ? 100 * hit / lines : 0
            branch = arms ? 100 * taken / arms : 100
            ok = line >= line_goal && branch >= branch_goal
            printf "%-28s line %6.2f %% (goal %d)   branch %6.2f %% (goal %d)   %s\n",
                name, line, line_goal, branch, branch_goal, ok ? "met" : "MISSED"
            exit !ok
        }' "$tree/coverage.txt" && met=$((met + 1)) || missed=$((missed + 1))
}
met=0 missed=0
group "all of src" 97 90 '^src/'
group "parsers and readers" 100 95 '^src/(ir/(loop_)?(parse|lex)[^/]*|io/[^/]*)$'
group "verifier" 100 95 '^src/ir/(loop_)?check[^/]*$'
echo "$met passed, $missed failed"
[ "$missed" = 0 ]
