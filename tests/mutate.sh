#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# tests/mutate.sh [N [SEED]]: do the tests notice a slip?  Draws N mutants (60) of the compiler by
# tests/mutate.c, with five operators: a condition negated, < for <=, a statement dropped,
# operands swapped, a constant changed.  Each mutant meets golden and all unit tests of its folder, then
# stage, sched and kernel at 1 % and at 10 %, until one fails: most are killed within seconds.  Only
# those that survive meet the other suites of `make test`, when all mutants have had their first turn.
# Ends with the score and fails when less than 95 % of the mutants are killed.  Those that
# tests/mutants.txt lists, with the proof that they compute the same, do not count.
#
# tests/mutate.sh one FILE K runs mutant number K of FILE alone and keeps its programs and logs.
# WEFT_MUTATE_FIRST=1 ends after the first turn; survivors of that count as such.
# WEFT_MUTATE_SECONDS=S begins no mutant after S seconds: the score is then that of the mutants that had
# their turn, and says how many they are.
#
# A compile of a kernel that an earlier mutant has asked for is not done again (tests/keep_cc.sh), but in the
# suites that test compiles.
#
# The sources are never touched.  A mutant is one object, compiled into build/mutate/ID and linked
# in front of the library of build/release (or build/asan), so that the linker has no use for the
# object of that file in the library.
set -u
cd "$(dirname "$0")/.."
. tests/limit.sh
work=$PWD/build/mutate lanes=${WEFT_LANES:-2}
folders=(tree lower sched emit jit format grad)
flags="-O0 -I$PWD/build/header/O0 -include kernel.h" # of kernels, see tests/header.sh
export WEFT_LIMIT_MB=6000 # a loop that never ends may fill the memory before its time is over

# suites FOLDER: those of the folder, and the common ones, cheapest first.  SUITE@1 runs at 1 %.
suites() {
    echo golden "unit/$1/"
    case $1 in
    tree) echo unit/lower/ unit/sched/ unit/test_stages unit/test_kernel_schedule ;;
    lower) echo unit/test_stages ;;
    sched) echo unit/test_kernel_schedule ;;
    emit) echo unit/test_export ;;
    jit) echo jit@1 jit ;;
    format) echo unit/test_layout kernel/formats ;;
    grad) echo grad@1 grad ;;
    esac
    [ "$1" = jit ] || echo stage@1 sched@1
    echo kernel@1
    [ "$1" = jit ] || echo stage sched
    echo kernel
}

# What is left of `make test` for a survivor.
rest() {
    local f
    echo unit kernel/examples kernel/emitted random grad fail
    for f in tests/cli/*.sh; do echo "cli/$(basename "$f" .sh)"; done
    echo kernel/variants kernel/native jit
    echo asan/golden asan/stage asan/unit asan/grad asan/kernel asan/fail
    [ ! -x .venv/bin/pytest ] || echo python
}

# command SUITE: $p is the folder of the mutant's programs.
command_of() {
    local all='examples/*.weft tests/kernel/cases/*.weft' name=${1#asan/}
    name=${name%@*}
    case $name in
    golden) echo '$p/weft_golden tests/golden' ;;
    sched) echo '$p/weft_sched all examples/*.weft' ;;
    grad) echo '$p/weft_grad all examples' ;;
    kernel/examples) echo "\$p/weft_kernel files cc $all" ;;
    kernel/emitted) echo "\$p/weft_kernel emitted 100 $all" ;;
    kernel/formats) echo '$p/weft_kernel emitted 1 examples/spmm.weft' ;;
    kernel/variants) echo "\$p/weft_kernel variants $all" ;;
    kernel/native) echo '$p/weft_kernel run 100 30001 fast 250' ;;
    unit/*) echo "\$p/weft_unit ${name#unit/}" ;;
    cli/*) echo "WEFT=\$p/weft bash tests/$name.sh" ;;
    python) echo 'WEFT_LIBRARY=$p/libweft.so .venv/bin/python -m pytest -q -x -p no:cacheprovider' \
        'tests/python --ignore tests/python/o3 --ignore tests/python/o3_04' ;;
    *) echo "\$p/weft_$name" ;;
    esac
}

program_of() {
    case ${1#asan/} in
    cli/*) echo weft ;;
    python) echo libweft.so ;;
    *) set -- "${1#asan/}"; set -- "${1%@*}"; echo "weft_${1%%/*}" ;;
    esac
}

folder_of() { local f=${1#src/}; echo "${f%%/*}"; }
tree_of() { case $1 in asan/*) echo asan ;; *) echo release ;; esac; }
name_of() { echo "${1//\//-}"; } # of the files of a suite

# compile ID TREE [FLAG]: the mutant in build/mutate/ID; false when it is no C.
compile() {
    local at=$work/$1/$2 file flags
    [ ! -f "$work/$1/file" ] || [ -f "$at/mutant.o" ] && return
    file=$(cat "$work/$1/file")
    mkdir -p "$at"
    flags=$(sed -n 's/^C_[A-Z]* = //p' "build/$2/CMakeFiles/weft_objects.dir/flags.make" |
        tr '\n' ' ')
    # Types have to fit: a pointer for a number is no slip that a compiler lets pass.
    eval "cc $flags ${3:-} -Wno-error -Werror=int-conversion -Werror=incompatible-pointer-types \
        -iquote \"$(dirname "$file")\" -c \"$work/$1/$(basename "$file")\" -o \"$at/mutant.o\"" \
        >"$at/compile.log" 2>&1
}

# link ID TREE PROGRAM: under another name first, as the other lane may link the same
link() {
    local at=$work/$1/$2 t=build/$2 mutant= file=none libs new=$3.$$ from=$3
    [ -x "$at/$3" ] && return
    mkdir -p "$at"
    compile "$1" "$2" || return
    [ ! -f "$work/$1/file" ] || { mutant=$at/mutant.o file=$(cat "$work/$1/file"); }
    [ "$3" != weft ] || from=weft_cli
    case $3 in
    libweft.so)
        libs=$(sed -n 's/^Libs.private: //p' "$t/weft.pc")
        cc -shared $mutant $(find "$t/CMakeFiles/weft_objects.dir" -name '*.o' | sort | grep -vF "/$file.o") \
            $libs -o "$at/$new" ;;
    *) (cd "$t" && sh -c "$(sed "s| -o $3 | -o '$at/$new' $mutant |" "CMakeFiles/$from.dir/link.txt")") ;;
    esac && mv "$at/$new" "$at/$3"
}

# Mutants run in a space of processes of their own, where the machine has that: one that ends
# processes by mistake then ends none but its own.
apart="unshare -pf --mount-proc"
$apart true 2>/dev/null || apart="unshare -Urpf --mount-proc"
$apart true 2>/dev/null || apart=

# run ID SUITE SECONDS of processor time
run() {
    local at=$work/$1 tree scale=10 path=$work/cc/use:$PATH
    [ "$1" != base ] || path=$work/cc/fill:$PATH # whose time is that of all compiles
    case $2 in *jit* | *fail | cli/*) path=$PATH ;; esac
    tree=$(tree_of "$2")
    [ "$tree" = release ] || scale=2
    case $2 in *@*) scale=${2#*@} ;; unit/*) scale=100 ;; esac
    link "$1" "$tree" "$(program_of "$2")" || return 200
    mkdir -p "$at/tmp" "$at/cache"
    p=$at/$tree PATH=$path HOME=$at TMPDIR=$at/tmp WEFT_CACHE_DIR=$at/cache WEFT_TEST_SEED=1 \
        WEFT_TEST_SCALE=$scale WEFT_CFLAGS="$flags" build/limit "$3" $((10 * $3)) "$at/$(name_of "$2").time" \
        $apart bash -c "$(command_of "$2"); exit" >"$at/$(name_of "$2").log" 2>&1 </dev/null
}

# limit_of SUITE: four times the processor time that it takes without a mutant.  The first that
# asks has it measured; it has to pass then.
limit_of() {
    local time tree
    tree=$(tree_of "$1")
    time=$work/base/$(name_of "$1").time
    (   flock 7
        [ "$tree" = release ] || tests/tree.sh "$tree" >&2 || exit 1
        [ "$time" -nt "build/$tree/libweft.a" ] || run base "$1" 3600 || { rm -f "$time"; exit 1; }
    ) 7>"$work/base/$(name_of "$1").lock" || return
    awk '{ print int(4 * $1) + 3 }' "$time"
}

# trial ID SUITE...: prints what kills the mutant, and after how many seconds of processor time.
trial() {
    local s code limit
    for s in "${@:2}"; do
        limit=$(limit_of "$s") || { echo "not tried: $s fails without a mutant"; return; }
        code=0
        run "$1" "$s" "$limit" || code=$?
        [ $code != 0 ] || continue
        [ $code != 200 ] || { echo "not tried: $(program_of "$s") does not link"; return; }
        [ $code != 124 ] || s="$s (a limit)"
        echo "killed by $s after $(awk '{ t += $1 } END { printf "%.0f", t }' "$work/$1"/*.time) s"
        return
    done
    echo survived
}

# choose ID FILE K: sets up build/mutate/ID; false when the mutant is no C.  The file without a change has
# to compile there, or no mutant of it would ever be tried.
choose() {
    local copy
    copy=$work/$1/$(basename "$2")
    rm -rf "${work:?}/$1"
    mkdir -p "$work/$1"
    echo "$2" >"$work/$1/file"
    "$work/engine" apply "$2" "$3" >"$copy" && compile "$1" release -fsyntax-only && return
    cp "$2" "$copy"
    compile "$1" release -fsyntax-only || { echo "$2 does not compile: $work/$1/release/compile.log" >&2; exit 1; }
    return 1
}

# Whether a mutant is proved to compute the same: FILE OPERATOR BEFORE AFTER.
is_listed() {
    awk -F '\t' -v f="$1" -v o="$2" -v a="$3" -v b="$4" '
        $1 == f && $2 == o { before = $3 == a; next }
        before && $0 == "\t" b { found = 1 }
        { before = 0 }
        END { exit !found }' tests/mutants.txt
}

prepare() {
    limit_build && tests/tree.sh release && tests/header.sh || exit 1
    [ -f build/release/CMakeFiles/weft_objects.dir/flags.make ] ||
        { echo "skipped: mutants: the build trees are not of make"; exit 0; }
    mkdir -p "$work/base" "$work/cc/use" "$work/cc/fill" "$work/cc/kept"
    for compiler in cc gcc clang; do
        [ -z "$(type -P $compiler)" ] || for how in use fill; do
            cp tests/keep_cc.sh "$work/cc/$how/new" && mv "$work/cc/$how/new" "$work/cc/$how/$compiler"
        done
    done
    find "$work/cc/kept" -type f -mtime +1 -delete
    cc -std=c11 -D_GNU_SOURCE -O1 tests/mutate.c -o "$work/engine" || exit 1
    find "$work/base" -name 'weft*' ! -newer build/release/libweft.a -delete
}

# settle HOW ID FILE LINE OPERATOR BEFORE AFTER: the mutant's line of the report.
settle() {
    printf '%s:%s  %s  %s\n    %s\n    %s\n' "$3" "$4" "$5" "$1" "$6" "$7"
    echo "$1" >>"$work/result.txt"
    [ "$1" = survived ] || rm -rf "${work:?}/$2"
}

is_late() { [ -n "${WEFT_MUTATE_SECONDS:-}" ] && [ "$(date +%s)" -ge "$WEFT_MUTATE_END" ]; }

case ${1:-} in
--first) # ID FILE LINE OPERATOR BEFORE AFTER
    shift
    ! is_late || exit 0
    how=equivalent
    is_listed "$2" "$4" "$5" "$6" || how=$(trial "$1" $(suites "$(folder_of "$2")"))
    if [ "$how" = survived ] && [ -z "${WEFT_MUTATE_FIRST:-}" ]; then
        printf '%s\0' "$@" >>"$work/left.bin"
    else
        settle "$how" "$@"
    fi
    exit 0 ;;
--rest) # ID FILE LINE OPERATOR BEFORE AFTER
    shift
    how=survived
    is_late || how=$(trial "$1" $(rest))
    settle "$how" "$@"
    exit 0 ;;
one) # FILE K
    prepare
    choose one "$2" "$3" || { echo "the mutant is no C"; exit 3; }
    trial one $(suites "$(folder_of "$2")") $([ -n "${WEFT_MUTATE_FIRST:-}" ] || rest)
    exit ;;
esac

n=${1:-60} seed=${2:-1} drawn=0 begun=$SECONDS
export WEFT_MUTATE_END=$(($(date +%s) + ${WEFT_MUTATE_SECONDS:-0}))
prepare
# More are drawn than are wanted, as some are no C.
"$work/engine" draw $((4 * n)) "$seed" $(for f in "${folders[@]}"; do find "src/$f" -name '*.c' | sort; done) \
    >"$work/drawn.txt"
: >"$work/result.txt"
while [ $drawn -lt "$n" ] && IFS=$'\t' read -r file k line op before after; do
    choose $((drawn + 1)) "$file" "$k" || continue
    drawn=$((drawn + 1))
    printf '%s\0' $drawn "$file" "$line" "$op" "$before" "$after"
done <"$work/drawn.txt" >"$work/chosen.bin"
: >"$work/left.bin"
xargs -0 -n 6 -P "$lanes" bash "$0" --first <"$work/chosen.bin"
xargs -0 -r -n 6 -P "$lanes" bash "$0" --rest <"$work/left.bin"

killed=$(grep -c '^killed' "$work/result.txt") survived=$(grep -c '^survived' "$work/result.txt")
same=$(grep -c '^equivalent' "$work/result.txt")
tried=$((killed + survived))
[ -z "${WEFT_MUTATE_SECONDS:-}" ] || n=$(awk 'END { print NR }' "$work/result.txt")
echo "seed $seed: $n of $drawn mutants in $((SECONDS - begun)) s:" \
    "$killed killed, $same equivalent, $survived survived"
awk -v k="$killed" -v n=$tried 'BEGIN { printf "score %.1f %%\n", n ? 100 * k / n : 0 }'
if [ $tried -gt 0 ] && [ $((tried + same)) = "$n" ] && [ $((100 * killed)) -ge $((95 * tried)) ]; then
    echo "1 passed, 0 failed"
else
    echo "0 passed, 1 failed"
    exit 1
fi
