#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The runner behind `make check` (fast) and `make test` (full): runs every suite of the table below
# with a time limit, two at a time, and ends with the line "N passed, N failed, N skipped".
#
# A suite is a command.  It ends with "N passed, N failed" or is counted as one test by its exit
# code; "skipped: WHAT: WHY" lines are counted and repeated at the end.  A suite that fails in any
# other way (crash, time limit, nothing run, its file missing) is a failure.  Logs: build/log/.
# Usage: tests/run.sh fast|full [PART of the suites' names]
set -u
cd "$(dirname "$0")/.."
tier=${1:-fast} part=${2:-}
case $tier in
fast) scale=5 ;; # percent of the random cases
full) scale=100 ;;
*) echo "usage: $0 fast|full [PART]" >&2; exit 2 ;;
esac

names=() limits=() afters=() commands=()
# row NAME TIER SECONDS AFTER COMMAND: TIER is fast (both), full, or check (fast only); AFTER is the
# suite that has to pass first, or "-".
row() {
    case $2/$tier in full/fast | check/full) return ;; esac
    names+=("$1") limits+=("$3") afters+=("$4") commands+=("$5")
}

table() { # what takes longest comes first, so that the two lanes end together
    local r=build/release a=build/asan t=build/tsan race=-fsanitize=thread f n reader
    row build               fast  600 -              "tests/tree.sh release"
    row build-asan          full  600 -              "tests/tree.sh asan"
    row build-tsan          full  600 -              "tests/tree.sh tsan"

    for reader in ir mtx npy npz xyz; do
        row "fuzz/$reader"      check  60 build      "$r/weft_fuzz $reader 20000 1"
        row "asan/fuzz/$reader" full  400 build-asan "$a/weft_fuzz $reader 1000000 1"
    done
    row random              fast  400 build          "WEFT_TEST_SCALE=$scale $r/weft_random"
    row asan/random         full  240 build-asan     "WEFT_TEST_SCALE=10 $a/weft_random"
    row stage               fast  400 build          "WEFT_TEST_SCALE=$scale $r/weft_stage"
    row asan/stage          full  400 build-asan     "WEFT_TEST_SCALE=25 $a/weft_stage"
    row sched               fast  400 build          "WEFT_TEST_SCALE=$scale $r/weft_sched all examples/*.weft"
    row asan/sched          full  400 build-asan     "WEFT_TEST_SCALE=5 $a/weft_sched all examples/*.weft"
    row grad                fast  400 build          "WEFT_TEST_SCALE=$scale $r/weft_grad all examples"
    row asan/grad           full  240 build-asan     "WEFT_TEST_SCALE=10 $a/weft_grad all examples"
    row python/install      full 1200 -              "bash tests/python/run.sh install"
    row python/models       full 1800 python/install "bash tests/python/run.sh models"
    row python/base         full 1200 python/install "bash tests/python/run.sh base"
    row python/o3           full 1200 python/install "bash tests/python/run.sh o3"
    row python/o3_04        full 1200 python/install "bash tests/python/run.sh o3_04"
    row structure/selftest  full  300 -              "bash tests/structure/selftest.sh"
    row coverage            full  900 -              "tests/coverage.sh"
    row analyzer            full  900 -              "tests/tree.sh analyzer"
    row clang               full  900 -              "tests/tree.sh clang build/clang/weft_unit"
    row valgrind            full 1800 build          "tests/valgrind.sh $r/weft_unit"

    row kernel              fast  900 build          "WEFT_TEST_SCALE=$scale $r/weft_kernel"
    row kernel/examples     fast  120 build          "$r/weft_kernel files cc examples/*.weft tests/kernel/cases/*.weft"
    row kernel/variants     full  400 build          "$r/weft_kernel variants examples/*.weft tests/kernel/cases/*.weft"
    row kernel/native       full  1200 build          "$r/weft_kernel run 1000 30001 fast 250"
    row kernel/neon         full  600 -              "bash tests/neon.sh"
    row kernel/selftest     full  200 build          "$r/weft_kernel selftest"
    row asan/kernel         full  900 build-asan     "WEFT_TEST_SCALE=10 $a/weft_kernel"
    row tsan/kernel         full  400 build-tsan     "WEFT_TEST_SCALE=2 $t/weft_kernel"
    row tsan/run            full  240 build-tsan     "WEFT_TEST_SCALE=5 $t/weft_unit test_run"
    row tsan/parts          full  240 build-tsan     "WEFT_CFLAGS=$race $t/weft_unit test_kernel_parts"
    row tsan/calls          full  240 build-tsan     "WEFT_TEST_SCALE=5 WEFT_CFLAGS=$race $t/weft_unit test_kernel_threads"
    row tsan/jit            full  240 build-tsan     "WEFT_TEST_SCALE=5 $t/weft_jit threads"
    row jit                 fast  400 build          "WEFT_TEST_SCALE=$scale $r/weft_jit"
    row asan/jit            full  400 build-asan     "WEFT_TEST_SCALE=10 $a/weft_jit"
    row unit                fast  400 build          "WEFT_TEST_SCALE=$scale $r/weft_unit"
    row asan/unit           full  600 build-asan     "WEFT_TEST_SCALE=25 $a/weft_unit"
    row golden              fast  120 build          "$r/weft_golden tests/golden"
    row asan/golden         full  120 build-asan     "$a/weft_golden tests/golden"
    row fail                fast  120 build          "$r/weft_fail"
    row asan/fail           full  240 build-asan     "$a/weft_fail"
    for f in tests/cli/*.sh; do # with no script at all this is a row that fails
        n=$(basename "$f" .sh)
        row "cli/$n"        fast  120 build          "WEFT=\$PWD/$r/weft bash $f"
        row "asan/cli/$n"   full  240 build-asan     "WEFT=\$PWD/$a/weft bash $f"
    done

    row structure/repro     full  300 -              "bash tests/structure/repro.sh ."
    row structure/plain     full  300 -              "bash tests/structure/plain.sh ."
    row structure/install   full  120 build          "bash tests/structure/install.sh . $r"
    row structure/symbols   fast   60 build          "bash tests/structure/symbols.sh . $r/libweft.so"
    for f in includes banned spdx sizes paths header; do
        row "structure/$f"  fast   60 -              "bash tests/structure/$f.sh ."
    done
}

mkdir -p build/log
exec 9>build/.run.lock
flock -n 9 || { echo "another run is going on in this tree: waiting for it"; flock 9; }
if [ -n "${WEFT_TABLE:-}" ]; then . "$WEFT_TABLE"; fi # the runner's own test brings another table
table

# A locale with a decimal comma, for the tests of number text.
if [ ! -d build/locale ] && command -v localedef >/dev/null; then
    mkdir -p build/locale
    localedef -i de_DE -f UTF-8 build/locale/de_DE.UTF-8 >/dev/null 2>&1
fi
[ -d build/locale/de_DE.UTF-8 ] && export LOCPATH=$PWD/build/locale
export ASAN_OPTIONS=${ASAN_OPTIONS:-abort_on_error=0:detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

declare -A state=() log=() started=() pid_of=() # state: running, passed or failed
passed=0 failed=0 skipped=0
bad=()

start() { # INDEX
    local n=${names[$1]}
    log[$n]=build/log/${n//\//-}.log
    state[$n]=running
    started[$n]=$(date +%s.%N)
    timeout -k 10 "${limits[$1]}" bash -c "${commands[$1]}" >"${log[$n]}" 2>&1 </dev/null 9>&- &
    pid_of[$!]=$1
}

finish() { # INDEX EXIT-CODE
    local n=${names[$1]} code=$2 closing p f s took
    closing=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "${log[$n]}" | tail -n 1)
    s=$(grep -ac '^skipped: ' "${log[$n]}")
    if [ -n "$closing" ]; then
        p=${closing%% *} f=${closing#*, } f=${f%% *}
        [ "$code" != 0 ] && [ "$f" = 0 ] && f=1
        if [ $((p + f + s)) = 0 ]; then f=1 && echo "run.sh: nothing was tested" >>"${log[$n]}"; fi
    else
        p=0 f=0
        if [ "$code" != 0 ]; then f=1; elif [ "$s" = 0 ]; then p=1; fi
    fi
    [ "$code" = 124 ] && echo "run.sh: stopped after ${limits[$1]} seconds" >>"${log[$n]}"
    took=$(echo "${started[$n]} $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }')
    printf '%-22s %7d passed %4d failed %6s s' "$n" "$p" "$f" "$took"
    [ "$s" = 0 ] || printf '  %d skipped' "$s"
    printf '\n'
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" = 0 ]; then state[$n]=passed; else state[$n]=failed bad+=("$n"); fi
}

# Starts the first suite whose condition is met; false when there is none at the moment.
start_next() {
    local i n after
    for i in "${!names[@]}"; do
        n=${names[$i]} after=${afters[$i]}
        [ -z "${state[$n]:-}" ] || continue
        case ${after/#-/none}/${state[$after]:-} in
        none/* | */passed) start "$i"; return 0 ;;
        */failed) # what it stands on is broken: a failure too, without a run
            log[$n]=build/log/${n//\//-}.log started[$n]=$(date +%s.%N)
            echo "run.sh: not run, because $after failed" >"${log[$n]}"
            finish "$i" 1 ;;
        esac
    done
    return 1
}

# With PART, only the suites that have it in their name, and what they stand on.
if [ -n "$part" ]; then
    want=" "
    for i in "${!names[@]}"; do
        case ${names[$i]} in *"$part"*) want+="${names[$i]} ${afters[$i]} " ;; esac
    done
    for i in "${!names[@]}"; do
        case $want in *" ${names[$i]} "*) ;; *) unset "names[$i]" ;; esac
    done
fi

trap 'for p in "${!pid_of[@]}"; do kill "$p" 2>/dev/null; done; exit 130' INT TERM
jobs=${WEFT_LANES:-2}
while :; do
    while [ ${#pid_of[@]} -lt "$jobs" ] && start_next; do :; done
    [ ${#pid_of[@]} -gt 0 ] || break
    code=0
    wait -n -p pid "${!pid_of[@]}" || code=$?
    i=${pid_of[$pid]}
    unset "pid_of[$pid]"
    finish "$i" "$code"
done

for n in "${names[@]}"; do # a row that names a suite which is not in the table
    [ -n "${state[$n]:-}" ] || { echo "run.sh: $n waits for ever"; failed=$((failed + 1)); }
done
for n in "${bad[@]}"; do
    printf '\n---- %s: the end of %s\n' "$n" "${log[$n]}"
    grep -av '^skipped: ' "${log[$n]}" | tail -n 25
done
[ ${#bad[@]} = 0 ] || echo
for n in "${names[@]}"; do
    grep -a '^skipped: ' "${log[$n]:-/dev/null}" | sed "s|^skipped: |skipped: $n: |"
done
printf '%d passed, %d failed' "$passed" "$failed"
[ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
printf '\n'
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
