#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The runner behind `make check` (fast), `make test` (full) and `make test-long` (long): runs the
# suites of the table below, two at a time, and ends with the line "N passed, N failed, N skipped".
#
# A suite is a command.  It ends with "N passed, N failed" or is counted as one test by its exit
# code; "skipped: WHAT: WHY" lines are counted and repeated at the end.  A suite that fails in any
# other way (crash, limit, nothing run, its file missing) is a failure.  Logs: build/log/.
#
# A suite and its children may use a number of seconds of processor time, which does not depend on
# how busy the machine is.  A limit on the clock, ten times as long, ends what hangs.
# Usage: tests/run.sh fast|full|long [PART of the suites' names]
set -u
cd "$(dirname "$0")/.."
tier=${1:-fast} part=${2:-}
seed=${WEFT_TEST_SEED:-1}
# scale: percent of the random cases.  The counts that docs/testing.md promises are those of the long
# tier; the full tier runs at least a tenth of each.
case $tier in
fast) scale=2 ;;
full) scale=10 ;;
long) scale=100 seed=${WEFT_TEST_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')} ;;
*) echo "usage: $0 fast|full|long [PART]" >&2; exit 2 ;;
esac
export WEFT_TEST_SEED=$seed WEFT_TEST_SCALE=$scale

names=() limits=() afters=() commands=()
# row NAME TIER SECONDS AFTER COMMAND: SECONDS of processor time; AFTER is the suite that has to pass
# first, or "-".  TIER is the first of fast, full and long that has the row; the ones after it have
# it too.  "only TIER" is said as fast!, full!.
row() {
    case $2/$tier in
    fast/* | full/full | full/long | long/long | "$tier!/$tier") ;;
    *) return ;;
    esac
    local after=${4/#-/}
    [ "$tier" = fast ] || [ "$1" = tools ] || after="tools $after"
    names+=("$1") limits+=("$3") afters+=("$after") commands+=("$5")
}

# at PERCENT: the scale of a suite that runs so many percent in the long tier, and a tenth of it before.
at() { echo "WEFT_TEST_SCALE=$((($1 * scale + 99) / 100))"; }

# flags LEVEL: what kernels are compiled with, O2 or O0, with precompiled system headers
# (tests/header.sh).  Suites take O2 unless their row says `plain`, where only results count.  The long
# tier compiles as users do.
flags() {
    case $tier/$PWD in
    long/* | *[[:space:]]*) ;;
    *) echo "-$1 -I$PWD/build/header/$1 -include kernel.h" ;;
    esac
}

table() { # what takes longest comes first, so that the two lanes end together
    local r=build/release a=build/asan t=build/tsan race=-fsanitize=thread f n reader first first_asan
    local compile="kernel conv compensate" # tests that compile
    local plain="WEFT_CFLAGS='$(flags O0)'"
    row tools               full  300 -              "bash tests/tools.sh"
    row build               fast  600 -              "tests/tree.sh release && tests/header.sh"
    row build-asan          full  900 build          "tests/tree.sh asan"
    row build-tsan          full  600 build          "tests/tree.sh tsan"
    row build-ubsan         full! 900 build          "tests/tree.sh ubsan-unit" # by clang, without warnings
    row build-ubsan         long  900 build          "tests/tree.sh ubsan"

    row mutate              long 14400 -             "bash tests/mutate.sh 60 $seed"
    row bisect              long 7200 build          "bash tests/bisect.sh"
    row bare                full! 300 build          "bash tests/bare.sh quick"
    row bare                long 7200 -              "bash tests/bare.sh full"
    row coverage            long 1800 -              "tests/coverage.sh"
    row python/install      full  900 build          "bash tests/python/run.sh install"
    row python/models       full 1800 python/install "$plain bash tests/python/run.sh models"
    row python/base         full! 1200 python/install "$plain bash tests/python/run.sh base"
    row python/base         long 3600 python/install "WEFT_TEST_LONG=1 bash tests/python/run.sh base" # 2,000 forks, 50 shapes, 50,000 graphs
    row python/o3           full 3600 python/install "$plain bash tests/python/run.sh o3"
    row python/o3_04        full 1200 python/install "$plain bash tests/python/run.sh o3_04"
    for reader in ir mtx npy npz xyz; do
        row "fuzz/$reader"      fast!  60 build      "$r/weft_fuzz $reader 20000 $seed"
        row "asan/fuzz/$reader" full  600 build-asan "$a/weft_fuzz $reader ${scale}0000 $seed"
    done
    row kernel              fast 1800 build          "$r/weft_kernel"
    row kernel/seeds        full   60 build          "$r/weft_kernel run 1 6092" # once refused
    row asan/kernel         full  900 build-asan     "$(at 10) $a/weft_kernel"
    row tsan/kernel         full  600 build-tsan     "$(at 2) $t/weft_kernel"
    row sched               fast 1200 build          "$r/weft_sched all examples/*.weft"
    row asan/sched          full 1200 build-asan     "$(at 5) $a/weft_sched all examples/*.weft"
    row stage               fast 1200 build          "$r/weft_stage"
    row stage/seeds         full   60 build          "$r/weft_stage run 1 1174 && $r/weft_stage run 1 1496" # once wrong
    row asan/stage          full 1200 build-asan     "$(at 25) $a/weft_stage"
    row grad                fast  900 build          "$r/weft_grad all examples"
    row asan/grad           full  900 build-asan     "$(at 10) $a/weft_grad all examples"
    row growth              full! 300 build          "cmake --build $r --target weft_growth && $r/weft_growth 300"
    row growth              long  600 build          "cmake --build $r --target weft_growth && $r/weft_growth front && $r/weft_growth 2000"
    row random              fast  600 build          "$r/weft_random"
    row asan/random         full  600 build-asan     "$(at 10) $a/weft_random"
    row kernel/neon         full! 900 -              "bash tests/neon.sh 30 tests/kernel/cases/*.weft"
    row kernel/neon         long 1800 -              "bash tests/neon.sh"
    row kernel/native       full 1800 build          "$r/weft_kernel run ${scale}0 $((seed + 30000)) fast 250"
    row kernel/warp         long 3600 build          "$r/weft_kernel run ${scale}00 $((seed + 50000)) warp 250"
    row kernel/device       full 1200 build          "bash tests/device.sh pocl $((scale * 6)) $((seed + 70000)) examples/*.weft"
    row kernel/device-api   full  300 build          "WEFT_TEST_DEVICE=1 $r/weft_unit test_device"
    row kernel/oclgrind     full  600 build          "bash tests/device.sh oclgrind ${scale}0 $((seed + 80000))"
    row kernel/plants       full  600 build          "bash tests/device.sh plants $((seed + 1))"
    row kernel/cuda         full  900 build          "bash tests/device.sh cuda ${scale}0 $((seed + 90000))"
    row gpu/sass            full  600 build          "bash tests/gpu/sass.sh"
    row gpu/explain         full  600 build          "bash tests/gpu/explain.sh $((scale < 100 ? 8 : 1)) $seed"
    row gpu/counts          full  300 build          "bash tests/gpu/counts.sh sparse"
    row gpu/text            full! 900 build          "bash tests/gpu/text.sh 200 $seed"
    row gpu/text            long 7200 build          "bash tests/gpu/text.sh 8 $seed"
    row gpu/programs        full! 900 build          "bash tests/gpu/programs_run.sh 60 $seed"
    row gpu/programs        long 7200 build          "bash tests/gpu/programs_run.sh 4 $seed"
    row kernel/variants     full! 900 build          "$r/weft_kernel variants tests/kernel/cases/*.weft"
    row kernel/variants     long 1200 build          "$r/weft_kernel variants examples/*.weft tests/kernel/cases/*.weft"
    row elementary          full! 300 -              "bash tests/elementary.sh 4099"
    row elementary          long 7200 -              "bash tests/elementary.sh 1"
    row kernel/examples     fast  300 build          "$r/weft_kernel files cc examples/*.weft"
    row kernel/emitted      full! 900 build          "$plain $r/weft_kernel emitted 100 examples/*.weft tests/kernel/cases/*.weft"
    row kernel/emitted      long 7200 build          "$plain $r/weft_kernel emitted 10 examples/*.weft tests/kernel/cases/*.weft"
    row kernel/formats      full  300 build          "$plain $r/weft_kernel emitted 1 examples/spmm.weft"
    row kernel/selftest     full  400 build          "$r/weft_kernel selftest"
    row unit                fast! 300 build          "WEFT_TEST_SHARE='5 $compile' $r/weft_unit"
    row unit                full  900 build          "$plain $r/weft_unit"
    row asan/unit           full! 900 build-asan     "$plain WEFT_TEST_SHARE='3 $compile' $(at 25) $a/weft_unit"
    row asan/unit           long 1200 build-asan     "$(at 25) $a/weft_unit"
    row valgrind            full! 900 build          "$plain WEFT_TEST_SHARE=10 tests/valgrind.sh $r/weft_unit"
    row valgrind            long 3600 build          "tests/valgrind.sh $r/weft_unit"
    row clang               long  900 -              "tests/tree.sh clang build/clang/weft_unit"
    row analyzer            full! 600 -              "bash tests/analyzer.sh base io jit"
    row analyzer            long  900 -              "bash tests/analyzer.sh"
    row ubsan/unit          full! 900 build-ubsan    "$plain WEFT_TEST_SHARE='10 $compile' $(at 25) tests/tree.sh ubsan-unit build/ubsan/weft_unit"
    row ubsan/unit          long 1800 build-ubsan    "$(at 25) tests/tree.sh ubsan build/ubsan/weft_unit"
    for n in random stage "grad all examples" kernel; do
        row "ubsan/${n%% *}"    long 1200 build-ubsan "$(at 10) tests/tree.sh ubsan build/ubsan/weft_$n"
    done
    row jit                 fast  600 build          "$r/weft_jit"
    row asan/jit            full  600 build-asan     "$(at 10) $a/weft_jit"
    row tsan/run            full  400 build-tsan     "$(at 5) $t/weft_unit test_run"
    row tsan/parts          full  400 build-tsan     "WEFT_CFLAGS=$race $t/weft_unit test_kernel_parts"
    row tsan/calls          full  400 build-tsan     "$(at 5) WEFT_CFLAGS=$race $t/weft_unit test_kernel_threads"
    row tsan/jit            full  400 build-tsan     "$(at 5) $t/weft_jit threads"
    row golden              fast  120 build          "$r/weft_golden tests/golden"
    row asan/golden         full  240 build-asan     "$a/weft_golden tests/golden"
    row fail                fast  240 build          "$r/weft_fail"
    row asan/fail           full  400 build-asan     "$a/weft_fail"
    for f in tests/cli/*.sh; do # with no script at all this is a row that fails
        n=$(basename "$f" .sh) first=fast first_asan=full
        case $n in bench | examples | tune) first=full first_asan=long ;; esac # they compile much
        row "cli/$n"        $first 240 build         "WEFT=\$PWD/$r/weft bash $f"
        row "asan/cli/$n"   $first_asan 400 build-asan "$plain WEFT=\$PWD/$a/weft bash $f"
        row "ubsan/cli/$n"  long  400 build-ubsan    "WEFT=\$PWD/build/ubsan/weft tests/tree.sh ubsan bash $f"
    done

    row structure/selftest  full! 300 -              "bash tests/structure/selftest.sh quick"
    row structure/selftest  long  900 -              "bash tests/structure/selftest.sh"
    row structure/plain     full  600 build          "bash tests/structure/plain.sh . $r"
    row structure/repro     long  600 -              "bash tests/structure/repro.sh ."
    row structure/target    full  120 build          "bash tests/structure/target.sh . $r"
    row structure/pass      full  120 build          "bash tests/structure/pass.sh . $r"
    row structure/install   full  300 build          "bash tests/structure/install.sh . $r"
    row structure/symbols   fast   60 build          "bash tests/structure/symbols.sh . $r/libweft.so"
    row structure/passes    fast   60 build          "bash tests/structure/passes.sh . $r/weft"
    for f in includes banned spdx sizes paths header policy; do
        row "structure/$f"  fast   60 -              "bash tests/structure/$f.sh ."
    done
}

mkdir -p build/log
exec 9>build/.run.lock
flock -n 9 || { echo "another run is going on in this tree: waiting for it"; flock 9; }
if [ -n "${WEFT_TABLE:-}" ]; then . "$WEFT_TABLE"; fi # the runner's own test brings another table
table
. tests/limit.sh
limit_build || exit 1
[ "$tier" != long ] || echo "seed $seed (WEFT_TEST_SEED=$seed runs the same cases again)"

# A locale with a decimal comma, for the tests of number text.
if [ ! -d build/locale ] && command -v localedef >/dev/null; then
    mkdir -p build/locale
    localedef -i de_DE -f UTF-8 build/locale/de_DE.UTF-8 >/dev/null 2>&1
fi
[ -d build/locale/de_DE.UTF-8 ] && export LOCPATH=$PWD/build/locale
export ASAN_OPTIONS=${ASAN_OPTIONS:-abort_on_error=0:detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

declare -A state=() log=() pid_of=() # state: running, passed or failed
begun=$SECONDS cpu_sum=0
passed=0 failed=0 skipped=0
bad=()

start() { # INDEX
    local n=${names[$1]}
    log[$n]=build/log/${n//\//-}.log
    state[$n]=running
    [ ! -d build/header ] || export WEFT_CFLAGS="$(flags O2)"
    [ "$n" = tools ] || export WEFT_TOOLS_TRIED=1 # what it could not install, no suite tries again
    build/limit "${limits[$1]}" $((10 * limits[$1])) "${log[$n]%.log}.time" \
        bash -c "${commands[$1]}" >"${log[$n]}" 2>&1 </dev/null 9>&- &
    pid_of[$!]=$1
}

finish() { # INDEX EXIT-CODE
    local n=${names[$1]} code=$2 closing p f s cpu wall
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
    read -r cpu wall <"${log[$n]%.log}.time"
    cpu_sum=$(echo "$cpu_sum $cpu" | awk '{ print $1 + $2 }')
    printf '%-22s %7d passed %4d failed %7s s %7s s CPU' "$n" "$p" "$f" "$wall" "$cpu"
    [ "$s" = 0 ] || printf '  %d skipped' "$s"
    printf '\n'
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" = 0 ]; then state[$n]=passed; else state[$n]=failed bad+=("$n"); fi
}

# What the suites are that row INDEX waits for: passed, failed or waiting.
condition() {
    local after all=passed
    for after in ${afters[$1]}; do
        case ${state[$after]:-} in
        passed) ;;
        failed) echo "failed $after"; return ;;
        *) all=waiting ;;
        esac
    done
    echo $all
}

# Starts the first suite whose condition is met; false when there is none at the moment.
start_next() {
    local i n is
    for i in "${!names[@]}"; do
        n=${names[$i]}
        [ -z "${state[$n]:-}" ] || continue
        is=$(condition "$i")
        case $is in
        passed) start "$i"; return 0 ;;
        failed*) # what it stands on is broken: a failure too, without a run
            log[$n]=build/log/${n//\//-}.log
            echo "run.sh: not run, because ${is#failed } failed" >"${log[$n]}"
            echo "0.0 0.0" >"${log[$n]%.log}.time"
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
    before=
    while [ "$before" != "$want" ]; do # and what these stand on
        before=$want
        for i in "${!names[@]}"; do
            case $want in *" ${names[$i]} "*)
                for a in ${afters[$i]}; do
                    case $want in *" $a "*) ;; *) want+="$a " ;; esac
                done ;;
            esac
        done
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
printf '%d s, %.0f s CPU\n' $((SECONDS - begun)) "$cpu_sum"
printf '%d passed, %d failed' "$passed" "$failed"
[ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
printf '\n'
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
