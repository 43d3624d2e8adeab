#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft tune on tiny problems: what it lists, prints, keeps, puts together and refuses; never which
# schedule is faster.
. "$(dirname "$0")/lib.bash"

weft gen uniform:n=60:nnz=300 -o g.mtx
problem=spmm:g.mtx:k=32:t=1
quick="--seconds 5000 --top 2" # more than any of it takes on a busy machine

try "the space of a problem" 0 weft tune --space $problem
out " ms  default"
out "tile 1"
out " schedules"
try "the first three" 0 weft tune --space $problem --top 3
[ "$(wc -l <stdout)" = 4 ]
verdict "$name" $? "not three lines and a sum"
try "the space of a program" 0 weft tune --space spmm.weft
out "default"
if grep -q ' ms ' stdout; then false; else true; fi
verdict "$name" $? "a time without sizes"
try "the space as JSON" 0 weft tune --space $problem --top 2 --json
out '{"schedule": "'
out '"predicted_ms": '
cat >twice.weft <<'END'
program twice(m, n)
axis I = dense(m), J = compressed(I, n)
f32 A[I, J], X[n], Y[I]
y: Y[i] += A[i, j] * X[j]
END
try "steps that change nothing are not in it" 0 weft tune --space file:twice.weft:g.mtx
if grep -q 'panel' stdout; then false; else true; fi
verdict "$name" $? "panels of single numbers"

try "tune" 0 weft tune $problem $quick
out "$problem"
out "  schedule  "
out "  tried     "
err " s: "
grep -q '^weft-tuned 1 spmm program=' "$WEFT_CACHE_DIR/tuned.txt"
verdict "the record is kept" $? "$(cat "$WEFT_CACHE_DIR/tuned.txt")"
try "tune quietly, as JSON" 0 weft tune $problem file:spmm.weft:g.mtx:f=32:t=1 $quick --quiet --json
none stderr
for key in problem schedule threads ms default_ms points compiled timed wrong stopped; do
    out "\"$key\": "
done
[ "$(wc -l <stdout)" = 2 ]
verdict "$name" $? "not two lines"
if command -v python3 >/dev/null; then
    cp stdout lines.json
    try "it is JSON" 0 python3 -c 'import json; [json.loads(l) for l in open("lines.json")]'
fi
try "what was tuned is right" 0 weft bench $problem --seconds 0
out "interpreter"

if command -v python3 >/dev/null; then # a terminal of 80 columns: no line of the bar may reach the last one
    cat >terminal.py <<'END'
import fcntl, os, pty, re, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    said += part
bars = [line for line in re.split(rb"[\r\n]", said) if line.startswith(b"[")]
longest = max(map(len, bars), default=0)
sys.exit(f"{len(bars)} bars, the longest of {longest}") if not 20 < longest < 80 else None
END
    try "the bar fits a terminal of 80 columns" 0 python3 terminal.py "$WEFT" tune $problem $quick
fi

# A compiler that gets wrong what looks 16,384 bytes ahead.
cat >wrong_cc <<'END'
#!/bin/sh
sed '/weft_div_i64(16384,/,$ s/ = a_A\[v_e\];/ = 2 * a_A[v_e];/' | exec cc "$@"
END
chmod +x wrong_cc
try "a wrong kernel" 0 env WEFT_CC="$tmp/wrong_cc" "$WEFT" tune $problem --seconds 5000 --quiet
err "dropped: "
err "ahead 16384"
err "of C is "
out " dropped"
if grep -q 'schedule  .*16384' stdout; then false; else true; fi
verdict "$name" $? "the wrong one was kept"

# Ctrl-C: the exit code is good, and what was found is kept.  A shell gives background jobs no SIGINT.
cat >interrupt.py <<'END'
import signal, subprocess, sys
p = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
p.stderr.readline()  # the default was timed
p.send_signal(signal.SIGINT)
p.stderr.read()
sys.exit(p.wait())
END
if command -v python3 >/dev/null; then
    try "Ctrl-C" 0 python3 interrupt.py "$WEFT" tune spmm:uniform:n=3000:nnz=60000:k=64:t=1 --seconds 5000
    out "then it was stopped"
fi

cp "$WEFT_CACHE_DIR/tuned.txt" one.txt
try "merge" 0 weft tune --merge one.txt one.txt
cp stdout merged.txt
n=$(cut -d' ' -f3-8 one.txt | sort -u | wc -l)
[ "$(wc -l <merged.txt)" = "$n" ]
verdict "$name" $? "not one record for each key"
try "merge again" 0 weft tune --merge merged.txt one.txt merged.txt
same merged.txt
(sed 's/threads=1/threads=2/' one.txt; echo junk) >damaged.txt
try "merge of damaged records" 0 weft tune --merge damaged.txt merged.txt
same merged.txt
err "not a record, or damaged"
cp damaged.txt "$WEFT_CACHE_DIR/tuned.txt"
try "damaged records do no harm" 0 env WEFT_VERBOSE=1 "$WEFT" bench $problem --seconds 0
err "weft,records,"

try "tune of nothing" 2 weft tune
err "a problem is missing"
try "merge of nothing" 2 weft tune --merge
err "a file is missing"
try "merge of no file" 1 weft tune --merge none.txt
err "none.txt"
try "tune --fast" 2 weft tune --fast
try "tune --seconds x" 2 weft tune $problem --seconds x
try "tune --top 0" 2 weft tune $problem --top 0
try "tune with a schedule" 2 weft tune "$problem:sched=tile 1"
err "no sched= of its own"
try "tune of no graph" 1 weft tune spmm:none.mtx:k=3
try "tune without a compiler" 1 env WEFT_DISABLE_JIT=1 "$WEFT" tune $problem
err "cannot be tuned"
finish
