#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Every structure check, the runner and the harness, seen failing: a small right tree passes each
# check, and with one violation planted the check fails.  `selftest.sh quick` leaves out what needs a
# build of the tree.
. "$(dirname "$0")/lib.sh"
quick=${1:-}
here=$(cd "$(dirname "$0")" && pwd)
real=$(cd "$here/../.." && pwd)
scratch

good_tree() { # fresh, in $tmp/t
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{src/base,src/ir,src/api,include,cli,cmake}
    cd "$tmp/t" || exit 1
    cp "$real/CMakeLists.txt" .
    cp "$real"/cmake/* cmake/
    local spdx='/* SPDX-License-Identifier: BSD-3-Clause */'
    cat >include/weft.h <<END
$spdx
#ifndef WEFT_H
#define WEFT_H
#ifdef __cplusplus
extern "C" {
#endif
#define WEFT_API __attribute__((visibility("default")))
WEFT_API const char *weft_version(void);
#ifdef __cplusplus
}
#endif
#endif
END
    printf '%s\n#ifndef B\n#define B\nint base_one(void);\n#endif\n' "$spdx" >src/base/base.h
    printf '%s\n#include "base/base.h"\n\nint base_one(void)\n{\n    return 1; /* system(x) */\n}\n' "$spdx" >src/base/one.c
    printf '%s\n#include "base/base.h"\nint ir_one(void);\n' "$spdx" >src/ir/ir.h
    printf '%s\n#include "ir/ir.h"\n\nint ir_one(void)\n{\n    return base_one();\n}\n' "$spdx" >src/ir/ir.c
    printf '%s\n#include "weft.h"\n\nconst char *weft_version(void)\n{\n    return WEFT_VERSION_TEXT;\n}\n' "$spdx" >src/api/api.c
    printf '%s\n#include <weft.h>\n\nint main(void)\n{\n    return weft_version()[0] == 0;\n}\n' "$spdx" >cli/main.c
}

# The tree with our build trees, the harness and one test on top.
tested_tree() {
    good_tree
    mkdir -p tests/unit
    cp "$real"/tests/*.sh "$real"/tests/*.awk "$real"/tests/*.c tests/
    cp "$real"/tests/unit/{test.h,test.c,main.c} tests/unit/
    printf '#include "ir/ir.h"\n#include "unit/test.h"\n#include <stdlib.h>\n\nTEST(one) { CHECK_EQ(ir_one(), 1); }\n' >tests/unit/test_one.c
}

build() { cmake -S "$tmp/t" -B "$tmp/t/B" && cmake --build "$tmp/t/B"; } >"$tmp/build.log" 2>&1

# Whether this check is left out: it builds the tree.
skips() { [ "$quick" = quick ] && case " $built " in *" $1 "*) true ;; *) false ;; esac; }

check() { # CHECK: its arguments by its name
    case $1 in
    symbols) build; bash "$here/symbols.sh" "$tmp/t" "$tmp/t/B/libweft.so" ;;
    install) build; bash "$here/install.sh" "$tmp/t" "$tmp/t/B" ;;
    *) bash "$here/$1.sh" "$tmp/t" ;;
    esac >"$tmp/out" 2>&1
}

built="symbols install plain repro"
for c in includes banned spdx sizes paths header policy $built; do
    skips "$c" && continue
    good_tree
    check $c || bad "$c fails on the right tree: $(cat "$tmp/out")"
    part "$c passes the right tree"
done

# planted CHECK WHAT COMMAND: after the command, run in the tree, the check has to fail.
planted() {
    skips "$1" && return
    good_tree
    eval "$3"
    check "$1" && bad "$1 did not see: $2"
    grep -qE '^[0-9]+ passed, [1-9][0-9]* failed' "$tmp/out" || bad "$1 gave no verdict on: $2: $(cat "$tmp/out")"
    part "$1 sees $2"
}
add() { printf '%s\n' "$2" >>"$1"; }

planted includes "base including ir"          'add src/base/one.c "#include \"ir/ir.h\""'
planted includes "ir including format"        'add src/ir/ir.c "#  include \"format/format.h\""'
planted includes "a relative include"         'add src/ir/ir.c "#include \"../base/base.h\""'
planted includes "an include without folder"  'add src/ir/ir.c "#include \"ir.h\""'
planted includes "another folder's private header" 'add src/api/api.c "#include \"ir/ir_int.h\""'
planted includes "an include by macro"        'add src/ir/ir.c "#include HEADER"'
planted includes "weft.h inside the library"  'add src/ir/ir.c "#include <weft.h>"'
planted includes "a folder not in the table"  'mkdir src/new && cp src/base/base.h src/new/new.h'
for word in 'the irreps of x' Clebsch-Gordan wigner_3j Equivariant 'spherical harmonics' o3_cg; do
    planted includes "$word outside of o3"    "add src/ir/ir.c '/* $word */'"
done
planted includes "cli including an inside"    'add cli/main.c "#include \"base/base.h\""'
planted includes "an example including an inside" 'mkdir examples && add examples/a.c "#include \"ir/ir.h\""'

for call in 'system("x")' 'popen(a, b)' 'sscanf(a, b)' 'fscanf (a, b)' 'strtok(a, b)' 'alloca(8)' \
    'strcpy(a, b)' 'sprintf(a, b)' 'gets(a)' 'abort()' 'exit(1)' 'printf("x")' 'puts("x")' \
    'fprintf(stderr, "x")' 'atoi(a)' 'malloc(8)' 'free(a)' 'fopen(a, b)' 'open(a, 0)' 'x = strcpy'; do
    planted banned "$call" "add src/ir/ir.c 'void f(void) { $call; }'"
done
planted banned "system in cli"                'add cli/main.c "int f(void) { return system(0); }"'

planted policy "a constant for speed"         'mkdir -p src/lower/edges && echo "enum { MOST_ROWS = 8 };" >src/lower/edges/a.c'
planted policy "a macro for speed"            'add src/api/api.c "#define GAIN 0.75"'
planted policy "a bare threshold"             'mkdir src/sched && echo "int f(int n) { return n > 40; }" >src/sched/a.c'
planted spdx "a C file without it"            'echo "int x;" >src/ir/new.c'
planted spdx "a script without it"            'mkdir tests && printf "#!/bin/sh\necho\n" >tests/a.sh'
planted spdx "another licence"                'sed -i s/BSD-3-Clause/MIT/ src/ir/ir.h'
planted sizes "a line of 101 columns"         'add src/ir/ir.c "$(printf "/*%097d*/" 0)"'
planted sizes "a file of 801 lines"           'yes "" | head -n 801 >src/ir/long.c'
planted sizes "a tab"                         'add cli/main.c "$(printf "int\tx;")"'
planted sizes "a blank at the end"            'add include/weft.h "int x; "'
for dir in wo''rk ro''ot ho''me; do
    planted paths "/$dir"                     "add cli/main.c '/* see /$dir/me/x */'"
done
planted header "a C++ keyword"                'add include/weft.h "int weft_f(int class);"'
planted header "what C99 has not"             'add include/weft.h "_Static_assert(1, \"x\");"'
planted header "a missing include"            'add include/weft.h "size_t weft_n(void);"'
planted header "no extern C"                  'sed -i "/extern/d; /^}/d" include/weft.h'
planted header "no include guard"             'sed -i "/WEFT_H/d; \$d" include/weft.h; add include/weft.h "enum weft_e { WEFT_A };"'
planted symbols "a stray export"              'add src/ir/ir.c "__attribute__((visibility(\"default\"))) int stray(void) { return 0; }"'
planted symbols "visibility by default"       'sed -i "/VISIBILITY/d" CMakeLists.txt'
planted symbols "an export that is not in weft.h" 'add src/ir/ir.c "__attribute__((visibility(\"default\"))) int weft_x(void) { return 0; }"'
planted symbols "a declaration without a body" 'add include/weft.h "WEFT_API int weft_none(void);"'
planted install "a header not installed"      'sed -i "/include.weft.h DEST/d" CMakeLists.txt'
planted install "a place remembered"          'sed -i "s|^prefix=.*|prefix=@CMAKE_INSTALL_PREFIX@|" cmake/weft.pc.in'
planted install "a dependency forgotten"      'sed -i "/find_dependency/d" cmake/weft-config.cmake.in'
planted install "another version"             'sed -i "s/WEFT_VERSION_TEXT/\"9.9\"/" src/api/api.c'
planted plain "a warning"                     'add src/ir/ir.c "static int unused;"'
planted plain "an array of variable length"   'add src/ir/ir.c "int ir_f(int n); int ir_f(int n) { int a[n]; a[0] = n; return a[0]; }"'
planted plain "an error"                      'add src/ir/ir.c "int"'
planted plain "the command under another name" 'sed -i "/OUTPUT_NAME weft)/d" CMakeLists.txt'
planted repro "the source folder in the bytes" 'sed -i "s|^add_compile_definitions.*|add_compile_definitions(_GNU_SOURCE WHERE=\"\${CMAKE_SOURCE_DIR}\")|" CMakeLists.txt; add src/ir/ir.c "const char *ir_where(void); const char *ir_where(void) { return WHERE; }"'
planted repro "the time in the bytes"         'add src/ir/ir.c "const char *ir_when(void); const char *ir_when(void) { return __TIME__; }"'

# gate WHAT COMMAND PLANT: the command passes on the tested tree, and fails with the plant.
gate() {
    [ "$quick" != quick ] || return
    tested_tree
    eval "$2" >"$tmp/out" 2>&1 || bad "fails on the right tree: $1: $(cat "$tmp/out")"
    if grep '^skipped: ' "$tmp/out"; then return; fi
    eval "$3"
    eval "$2" >"$tmp/out" 2>&1 && bad "not seen: $1"
    part "$1 is seen"
}
export WEFT_NO_INSTALL=1
asan='tests/tree.sh asan build/asan/weft_unit'
valgrind='tests/tree.sh release tests/valgrind.sh build/release/weft_unit'
test_body() { printf 'TEST(planted) { volatile int n = 4; int *volatile p = malloc(16); %s }\n' "$1" >>tests/unit/test_one.c; }
gate "a read past a block (asan)"      "$asan" 'test_body "n = p[n]; free(p);"'
gate "integer overflow (ubsan)"        "$asan" 'test_body "free(p); n += 0x7fffffff;"'
gate "a leak (asan)"                   "$asan" 'test_body "*p = 1; p = NULL;"'
gate "an unset value (valgrind)"       "$valgrind" 'test_body "if (p[1]) n = 5; free(p);"'
gate "a leak (valgrind)"               "$valgrind" 'test_body "*p = 1; p = NULL;"'
gate "a warning of gcc"                'tests/tree.sh release' 'add src/ir/ir.c "static int unused;"'
gate "a warning of clang"              'tests/tree.sh clang' 'add src/ir/ir.c "int ir_f(int n); int ir_f(int n) { if ((n == 1)) return 2; return 3; }"'
gate "a finding of gcc -fanalyzer"     'bash tests/analyzer.sh' 'add src/ir/ir.c "#include <stdlib.h>"; add src/ir/ir.c "int ir_f(void); int ir_f(void) { int *p = malloc(4); *p = 1; int r = *p; free(p); return r; }"'
gate "a line that is not covered"      'tests/coverage.sh | grep -q "^src/ir/ir.c  *line 100"' 'add src/ir/ir.c "int ir_f(void); int ir_f(void) { return 2; }"'

# The runner, on a table of its own.
cd "$tmp" || exit 1
mkdir -p "$tmp/r/tests"
cp "$real"/tests/{run,limit}.sh "$real/tests/limit.c" "$tmp/r/tests/"
runner() { # LAST-LINE CODE WHAT [TIER]: how a run of the table has to end
    WEFT_TEST_SEED=${given:-} WEFT_TABLE=$tmp/table bash "$tmp/r/tests/run.sh" "${4:-fast}" >"$tmp/out" 2>&1
    local code=$? last
    last=$(tail -n 1 "$tmp/out")
    [ "$last" = "$1" ] && [ $code = "$2" ] || bad "wanted '$1' and $2, got '$last' and $code: $(cat "$tmp/out")"
    part "runner: $3"
}
rows() { printf 'table() {\n%s\n}\n' "$1" >"$tmp/table"; }
rows 'row a fast 9 - "echo 3 passed, 0 failed"; row b fast 9 a true';            runner '4 passed, 0 failed' 0 "a green run"
rows 'row a fast 9 - "echo 3 passed, 2 failed; false"; row b fast 9 - true';     runner '4 passed, 2 failed' 1 "failed tests"
rows 'row a fast 9 - "echo 3 passed, 2 failed"';                                 runner '3 passed, 2 failed' 1 "failed tests with exit code 0"
rows 'row a fast 9 - "echo 3 passed, 0 failed; exit 9"';                         runner '3 passed, 1 failed' 1 "an exit code after a green line"
rows 'row a fast 9 - "echo 3 passed, 0 failed; kill -SEGV \$\$"';                runner '3 passed, 1 failed' 1 "a crash"
busy='while :; do :; done'
rows "row a fast 1 - '$busy'; row b fast 9 - true";                              runner '1 passed, 1 failed' 1 "a suite over its processor time"
grep -q 'stopped after 1 seconds of processor time' "$tmp/out" || bad "the limit is not named: $(cat "$tmp/out")"
rows "row a fast 1 - '($busy) & ($busy) & ($busy) & wait'";                      runner '0 passed, 1 failed' 1 "children over their processor time together"
rows "row a fast 1 - 'for k in {1..99}; do (for ((i = 0; i < 50000; i++)); do :; done); done'"; runner '0 passed, 1 failed' 1 "children over it one after the other"
grep -q 'seconds of processor time' "$tmp/out" || bad "children that have ended are not counted: $(cat "$tmp/out")"
rows 'row a fast 1 - "sleep 3"; row b fast 9 - true';                            runner '2 passed, 0 failed' 0 "a suite that only waits is not over it"
rows 'row a fast 1 - "sleep 40"; row b fast 9 - true';                           runner '1 passed, 1 failed' 1 "a suite that hangs"
grep -q 'stopped after 10 seconds$' "$tmp/out" || bad "the limit is not named: $(cat "$tmp/out")"
rows "row a fast 9 - 'setsid sleep 4321 & true'";                                runner '1 passed, 0 failed' 0 "a suite that leaves a process"
pgrep -fx 'sleep 4321' >/dev/null && bad "a process that a suite left behind still runs"
part "runner: ends what a suite leaves behind"
tiers='row tools full 9 - "echo 1 passed, 0 failed"; row a fast 9 - true; row b fast! 9 - "echo 10 passed, 0 failed"; row c full 9 - true; row d full! 9 - "echo 30 passed, 0 failed"; row e long 9 - true'
rows "$tiers"; runner '11 passed, 0 failed' 0 "the fast tier" fast
rows "$tiers"; runner '33 passed, 0 failed' 0 "the full tier" full
rows "$tiers"; runner '4 passed, 0 failed' 0 "the long tier" long
grep -q '^seed [0-9]' "$tmp/out" || bad "the seed is not named: $(cat "$tmp/out")"
grep '^seed' "$tmp/out" >"$tmp/first" && runner '4 passed, 0 failed' 0 "the long tier again" long
grep -qxF "$(cat "$tmp/first")" "$tmp/out" && bad "two long runs have the same seed"
rows 'row a fast 9 - "echo seed is \$WEFT_TEST_SEED; [ \$WEFT_TEST_SEED = 7 ]"'
given=7 runner '1 passed, 0 failed' 0 "a seed that is given" fast
rows 'row tools full 9 - "echo 2 passed, 0 failed; sleep 2; touch tool"; row a full 9 - "[ -e tool ]"'; runner '3 passed, 0 failed' 0 "tools come before all else" full
rows 'row tools full 9 - false; row a full 9 - true';                            runner '0 passed, 2 failed' 1 "nothing runs without them" full
rows 'row a fast 9 - "echo 0 passed, 0 failed"';                                 runner '0 passed, 1 failed' 1 "a suite that tests nothing"
rows 'row a fast 9 - ./missing';                                                 runner '0 passed, 1 failed' 1 "a missing suite"
rows 'row a fast 9 - false; row b fast 9 a true';                                runner '0 passed, 2 failed' 1 "a suite on top of a failed one"
rows 'row a fast 9 - "echo skipped: x: why"; row b fast 9 - true';               runner '1 passed, 0 failed, 1 skipped' 0 "a skipped part"
grep -q '^skipped: a: x: why' "$tmp/out" || bad "the skipped part is not named"
part "runner: names what was skipped"
rows 'row a fast 9 z true; row b fast 9 - true';                                 runner '1 passed, 1 failed' 1 "a row that waits for none"
rows 'row a fast 9 - "echo skipped: x: why"';                                    runner '0 passed, 0 failed, 1 skipped' 1 "a run that tests nothing"

# The engine of mutants: every change of this file, and none in what it has to leave alone.
cat >"$tmp/p.c" <<'END'
#include <assert.h>
#define N 3
enum { LIMIT = 7 };
/* if (a < 1) f(); */
static const int table[] = { 1, 2, 3 };
static int f(int a, int b)
{
    static const char *const words[] = { "x < 1", "y" };
    char text[120];
    int left = 4;

    assert(a < 5);
    for (int i = 0; i < b; i++)
        left += a - i;
    if (left > 10 && text[0] != ';')
        return f(b, left);
    switch (a) {
    case 1: left = words[a][2]; break;
    default: left--;
    }
    do
        left /= 2;
    while (left >= LIMIT);
    return left + table[b % N];
}
END
cc -std=c11 -D_GNU_SOURCE "$real/tests/mutate.c" -o "$tmp/mutate" || bad "the engine does not compile"
"$tmp/mutate" list "$tmp/p.c" >"$tmp/changes"
counts() { cut -f4 "$tmp/changes" | sort | uniq -c | awk '{ printf "%s %s, ", $2, $1 }'; }
[ "$(counts)" = "constant 7, drop 5, negate 3, relate 3, swap 6, " ] || bad "found: $(counts)"
cut -f3 "$tmp/changes" | grep -qvxE '1[03-68-9]|2[2-4]' && bad "a change in a line that is to be left alone"
while IFS=$'\t' read -r file k line op before after; do
    "$tmp/mutate" apply "$file" "$k" >"$tmp/q.c" || bad "change $k is not made"
    cc -w -c -o "$tmp/q.o" "$tmp/q.c" || bad "change $k is no C: $after"
    [ "$(diff "$file" "$tmp/q.c" | grep '^>' | sed 's/^> *//')" = "$after" ] || bad "change $k is not this line alone: $after"
done <"$tmp/changes"
for change in 'for (int i = 0; !(i < b); i++)' 'for (int i = 0; i <= b; i++)' 'left += i - a;' \
    'return f(left, b);' 'case 1: (void)0; break;' 'left /= 3;'; do
    cut -f6 "$tmp/changes" | grep -qxF "$change" || bad "this change is missing: $change"
done
[ "$("$tmp/mutate" draw 9 5 "$tmp/p.c" | sort -u | wc -l)" = 9 ] || bad "nine different changes are not drawn"
[ "$("$tmp/mutate" draw 9 5 "$tmp/p.c")" = "$("$tmp/mutate" draw 9 5 "$tmp/p.c")" ] || bad "a seed does not give the same"
[ "$("$tmp/mutate" draw 9 5 "$tmp/p.c")" != "$("$tmp/mutate" draw 9 6 "$tmp/p.c")" ] || bad "another seed gives the same"
# What a seed draws stays when other code is written, and when the file has another name.
drawn() { "$tmp/mutate" draw 9 5 "$1" | cut -f4-; }
{ echo 'static int first(int x) { return g(x, 7) - x; }' && cat "$tmp/p.c"; } >"$tmp/q.c"
same=$(comm -12 <(drawn "$tmp/p.c" | sort) <(drawn "$tmp/q.c" | sort) | wc -l)
[ "$same" -ge 6 ] || bad "with one more function, $same of nine mutants are drawn again"
mv "$tmp/q.c" "$tmp/a.c" && cp "$tmp/p.c" "$tmp/q.c"
[ "$(drawn "$tmp/p.c")" = "$(drawn "$tmp/q.c")" ] || bad "another name of the file gives others"
part "mutants"

# The tests without optional tools, on programs that ask for one.
bare() { # PROGRAM-TEXT CODE WHAT
    rm -rf "$tmp/b" && mkdir -p "$tmp/b/tests/cli" "$tmp/b/build/release"
    cp "$real/tests/bare.sh" "$tmp/b/tests/"
    for program in weft_sched weft_kernel weft_golden; do
        printf '#!/bin/sh\n%s\n' "$1" >"$tmp/b/build/release/$program"
        chmod +x "$tmp/b/build/release/$program"
    done
    echo true >"$tmp/b/tests/cli/kernel.sh"
    bash "$tmp/b/tests/bare.sh" quick >"$tmp/out" 2>&1
    local code=$?
    [ $code = "$2" ] || bad "wanted $2, got $code: $(cat "$tmp/out")"
    part "bare: $3"
}
bare 'exit 0' 0 "suites that pass"
bare 'exit 1' 1 "suites that fail"
for tool in clang valgrind qemu-aarch64 gcov pkg-config apt-get; do
    bare "command -v $tool" 1 "suites that need $tool"
done
bare 'command -v cc && command -v cmake && [ "$WEFT_NO_INSTALL" = 1 ]' 0 "what is always there"
if command -v python3 >/dev/null; then
    bare 'python3 -c "import sys; sys.exit(any(\"-packages\" in p for p in sys.path))"' 0 "no packages of Python"
fi

# The harness, on tests that fail.
cat >"$tmp/fails.c" <<'END'
#include "unit/test.h"
#include <math.h>
TEST(passes) { CHECK(1); CHECK_EQ(1, 1); CHECK_STR("a", "a"); CHECK_NEAR(1.0, 1.5, 0.5); CHECK_HAS("abc", "bc"); CHECK_SAME(NAN, NAN); }
TEST(f1) { CHECK(0); }
TEST(f2) { CHECK_EQ(1, 2); }
TEST(f3) { CHECK_STR("a", "b"); }
TEST(f4) { CHECK_STR("a", NULL); }
TEST(f5) { CHECK_NEAR(1.0, 1.5, 0.25); }
TEST(f6) { CHECK_NEAR(NAN, NAN, 1.0); }
TEST(f7) { CHECK_SAME(0.0, -0.0); }
TEST(f8) { CHECK_HAS("abc", "x"); }
static int helper(void) { CHECK(0); return 1; }
TEST(f9) { helper(); }
TEST(s1) { test_skip("why"); }
int main(int argc, char **argv) { return test_main(argc, argv); }
END
cc -D_GNU_SOURCE -std=c11 -I"$real/tests" "$tmp/fails.c" "$real/tests/unit/test.c" -lm -o "$tmp/fails" || bad "the harness does not compile"
"$tmp/fails" >"$tmp/out" && bad "failing tests gave exit code 0"
[ "$(tail -n 1 "$tmp/out")" = "1 passed, 9 failed, 1 skipped" ] || bad "$(cat "$tmp/out")"
grep -q 'fails.c:5: f2: 1 == 2: 1 and 2' "$tmp/out" || bad "place and values are missing: $(cat "$tmp/out")"
"$tmp/fails" passes >/dev/null || bad "the filter does not choose"
"$tmp/fails" none_such >/dev/null && bad "no test chosen gave exit code 0"
share() { WEFT_TEST_SHARE=$1 "$tmp/fails" | tail -n 1; }
[ "$(share 5)" = "1 passed, 1 failed, 1 skipped" ] || bad "every fifth of 11 tests: $(share 5)"
[ "$(share '9 :f')" = "1 passed, 1 failed, 1 skipped" ] || bad "every ninth of those with :f: $(share '9 :f')"
part "the harness reports failing tests"
finish
