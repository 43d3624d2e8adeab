#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# policy.sh ROOT: no number that affects only speed stands outside of the policy (src/ir/policy.h)
# and the cost model (src/cost).  A constant in the folders below is a limit that guards correctness or
# memory, LIMIT_*, or stands in the table with what it is instead.  No text of a kernel depends on
# src/run, nor on how src/format packs: their numbers cut the work of plans and runs, and many decide
# the order of sums, so that they are the same on every machine.
. "$(dirname "$0")/lib.sh"

# FILE NAME WHAT: constants that are no choice for speed.
table='
src/lower/split/reductions.c GROUPS the order of sums: another number gives other bits
src/lower/lower.h LOWER_ANY a mark
src/lower/fuse/sums.c UNKNOWN_WIDTH a mark
src/lower/init/stores.c NOBODY a mark
src/lower/init/stores.c SEVERAL a mark
src/tree/tree.h TREE_NOT_LINEAR a mark
src/tree/edit.c SMALL_TREE the time of a compile, not of a kernel
src/lower/algebra/draft.c LEAF a mark
src/lower/algebra/groups.c WORD bits of a type
src/api/api_int.h TARGET_TEXT a bit
src/api/api_int.h TAG_CTX a mark
src/api/api_int.h TARGET_AVX2 a bit
src/api/api_int.h TARGET_AVX512 a bit
src/api/api_int.h TARGET_BY_NAME a bit
src/api/pass_int.h PASS_OPTIONAL a bit
src/api/pass_int.h PASS_ARRANGES a bit
src/api/pass_int.h PASS_PLANNED a bit
src/api/pass_int.h PASS_REORDERS a bit
src/api/pass_int.h PASS_JOINT a bit
src/lower/lower.h EDIT_SWEEP a bit
src/lower/lower.h EDIT_CONSUME a bit
src/lower/lower.h EDIT_RECOMPUTE a bit
src/lower/lower.h EDIT_INTERCHANGE a bit
src/lower/lower.h EDIT_FACTOR a bit
src/api/api_int.h HOLD_READS a bit
src/api/api_int.h HOLD_WRITES a bit
src/api/pipeline.c REQUIRED a bit
src/api/pipeline.c NONE a bit
src/api/pipeline.c CPU a bit
src/api/pipeline.c WARP a bit
src/api/pipeline.c EVERY a bit
src/api/show.c TAIL digits that are printed
src/api/rows.c TILE the layout of an operator
src/run/run.h POOL_MAX_THREADS a limit of the interface
src/run/run.h RUN_ROW_WORK the cuts of a range
src/run/run.h RUN_GRAIN the cuts of a range
src/run/run.h RUN_MAX_CHUNKS the cuts of a range
src/run/run.h RUN_PART the order of sums
src/run/run.h RUN_MAX_PARTS the order of sums
src/run/run.h RUN_ROOM the order of sums
src/run/run.h RUN_FINE_ROOM the order of sums
src/run/run.h RUN_LEAST_PIECES the order of sums
src/run/run.h RUN_MAX_PIECES the order of sums
src/run/run.h RUN_CHAIN the order of sums
src/run/run.h RUN_ROW_PARTS the order of sums
src/run/run.h RUN_ROW_ENTRIES the order of sums
src/run/run.h RUN_LEVELS a limit
src/run/run.h RUN_SLICE_WORK the cuts of a range
src/run/built.c FIRST_ROOM memory of a run
src/run/built.c GROWTH memory of a run
src/run/built.c TOP_WORDS bits of a set
src/run/memory.c BLOCK the copies of a run
src/run/memory.c FEW the copies of a run
src/run/memory.c PAGE bytes of a large page
src/run/memory.c MANY memory of a run
src/run/plan.c MUCH the time of a plan
src/run/pool.c SPIN how long an idle thread waits
src/format/bits.c BITS_AN_ENTRY the time of packing
src/format/bits.c SMALL the time of packing
src/format/format_int.h FMT_MOST a limit
src/format/format_int.h FMT_SPARE memory of packing
src/format/format_int.h FMT_BLOCK the time of packing
src/format/format_int.h FMT_MOST_BLOCKS the time of packing
src/format/format_int.h FMT_RUN the time of packing
src/format/sort.c LEAST_DIGIT the time of packing
src/format/sort.c MOST_DIGIT the time of packing
src/format/sort.c NARROW_BITS the time of packing
src/format/sort.c MOST_BITS bits of a key
src/emit/emit_part.c OPERATION nodes of a line of C, by which function_lines counts
src/emit/emit_part.c EMIT_KEEP how much longer than function_lines a list may be
src/emit/emit_part.c OUTSIDE a mark
src/emit/emit_part.c INSIDE a mark
src/emit/emit_registers.c OF_ARRAY what a compiler of GPUs takes
src/emit/emit_registers.c OF_LOOP what a compiler of GPUs takes
src/emit/emit_registers.c OF_OTHERS what a compiler of GPUs takes
src/emit/emit_registers.c MARGIN what a compiler of GPUs takes
src/grad/algebra.c MOST a limit
'
# What the tuner and the measurement of the machine do with their own time.
own_time='^src/api/(tune|machine)\.c$'

# constants FILE...: FILE:LINE:NAME of members of enums, macros and constants with a number.
constants() {
    bare "$@" | awk -F: '
        { file = $1; line = $2; text = substr($0, length($1) + length($2) + 3) }
        function name_of(s) { sub(/[^A-Za-z0-9_].*/, "", s); return s }
        text ~ /^[ \t]*#[ \t]*define[ \t]+[A-Z][A-Z0-9_]*[ \t]+[-(]*(\(int64_t\))?[0-9]/ {
            sub(/^[ \t]*#[ \t]*define[ \t]+/, "", text); print file ":" line ":" name_of(text); next }
        text ~ /^[ \t]*static const (unsigned )?(u?int[0-9]*_t|int|size_t|double|float|long) [a-z_A-Z0-9]+ = -?[0-9]/ {
            match(text, /[A-Za-z0-9_]+ = /); print file ":" line ":" name_of(substr(text, RSTART)); next }
        { while (match(text, /(^|[^A-Za-z0-9_.>\]])[A-Z][A-Z0-9_]+ = [-(]*[0-9]/)) {
              s = substr(text, RSTART); text = substr(text, RSTART + RLENGTH)
              sub(/^[^A-Z]/, "", s); print file ":" line ":" name_of(s) } }'
}

# thresholds FILE...: FILE:LINE of comparisons with a number of two digits or a power of two, and of
# products with it.
thresholds() {
    bare "$@" | grep -vE ':[[:space:]]*#' |
        grep -E '[^<>-][<>]=? \(?[0-9]{2,}([^0-9.]|$)|[^<>-][<>]=? (INT64_C)?\(?[0-9]+\)? <<|[*/] [0-9]{2,}([^0-9.u]|$)' |
        grep -vE '> ([0-9]+) \? \1 ?:' | cut -d: -f1,2
}

files=$(cd "$root" && {
    find src/tree src/lower src/sched src/api src/run src/format src/grad -name '*.[ch]'
    find src/emit -name '*.c' # its headers are text of kernels
} 2>/dev/null | sort)
cd "$root" || exit 1
while IFS=: read -r file line name; do
    case $name in LIMIT_*) continue ;; esac
    [[ $file =~ $own_time ]] || sed -n "${line}p" "$file" | grep -q 'not speed:' && continue
    grep -qF "$file $name " <<<"$table" ||
        bad "$file:$line: $name: a number for speed is a field of src/ir/policy.h; a limit is LIMIT_*"
done < <(constants $files /dev/null)
part "named constants"

while IFS=: read -r file line; do
    [[ $file =~ $own_time ]] && continue
    sed -n "${line}p" "$file" | grep -q 'not speed:' ||
        bad "$file:$line: a bare number: name it LIMIT_*, make it a field of src/ir/policy.h, or say /* not speed: ... */"
done < <(thresholds $files /dev/null)
part "bare thresholds"

while read -r file name _; do
    [ -z "$file" ] || [ ! -f src/ir/policy.h ] || grep -qw "$name" "$file" 2>/dev/null ||
        bad "$name of $file is in the table of policy.sh, and not in the tree"
done <<<"$table"
part "the table has no row too many"
finish
