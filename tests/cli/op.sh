#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# weft op: programs of operators, and what the other commands make of them.
. "$(dirname "$0")/lib.bash"

try "an operator" 0 weft op spmm
same - <<'END'
program spmm(m, n, f)
axis I = m, E(I) = seg : j < n
axis K = f
f32 A[E], B[n, K], C[m, K]
c: C[i, k] += A[e] * B[j(e), k]
END
none stderr
try "with options" 0 weft op segment_mean:t:f16:heads:batch:nodes
same - <<'END'
program segment_mean_f16_t_heads_batch_nodes(m, n, batch, heads, f)
axis I = m, E(I) = seg : j < n
axis L = batch
axis H = heads
axis K = f
f16 X[L, m, H, K], Y[L, n, H, K]
temp f32 S[L, n, H, K]
temp i64 D[n]
s: S[l, j(e), h, k] += X[l, i, h, k]
d: D[j(e)] += 1
y: for r in n, l, h, k: Y[l, r, h, k] = S[l, r, h, k] / max(D[r], 1)
END
try "columns that nobody asks for" 0 weft op softmax:csc:t:f64
same - <<'END'
program softmax_f64_csc_t(n)
axis J = n, E = ragged(J)
f64 S[E], P[E]
temp f64 M[n], T[E], Z[n]
m: M[j] max= S[e]
t: T[e] = exp(S[e] - stop(M[j]))
z: Z[j] += T[e]
p: P[e] = T[e] / Z[j]
END

# Every operator and every option that a table names.
weft list ops >stdout 2>stderr
verdict "there are operators" $(($(wc -l <stdout) < 8)) "too few"
for op in $(weft list ops | cut -d' ' -f1); do
    # what it takes, as its message says, but for sizes; arg of a reduction needs a maximum
    options=$(weft op "$op:?" 2>&1 | sed -E 's/.*it takes//; s/ [a-z]+=N//g; s/\<arg\>/arg:max/')
    case $op in segment_*) options=${options/arg:max/arg} ;; esac
    verdict "$op names its options" $(($(wc -w <<<"$options") < 4)) "$options"
    for option in $options; do
        weft op "$op:$option" | weft check >stdout 2>stderr
        verdict "$op:$option checks" $? "it does not"
    done
done
try "options" 0 weft list options
for option in f32 bf16 csr coo t heads batch values nodes arg bias strip=512; do out "$option "; done

# A matrix in a file fits all formats.
run() { weft op "spmm:$1" | weft run --in "A=$2" --in B=b.mtx "${@:3}" --out C=c.npy; }
try "csr from a file" 0 run csr a.mtx
cp c.npy want.npy
try "csc from a file" 0 run csc a.mtx:T
cmp -s c.npy want.npy
verdict "the same result" $? "another one"
try "coo from a file" 0 run coo a.mtx
cmp -s c.npy want.npy
verdict "the same result" $? "another one"

gradient() { weft op sddmm:f64 | weft grad --wrt X; }
try "in a pipe" 0 gradient
out "d(z,X): d_X[i, k] += d_Z[e] * Y[j(e), k]"
emitted() { weft op spmm | weft grad --wrt B | weft emit -t c; }
try "to C" 0 emitted
out "weft_run_d_spmm("

try "no operator" 2 weft op
err "one operator and its options"
try "two operators" 2 weft op spmm sddmm
try "an option of the command" 2 weft op --all
try "an unknown operator" 1 weft op spnn
err "weft: error: there is no operator spnn; there are spmv spmm sddmm"
none stdout
try "an unknown option" 1 weft op spmm:values
err "weft: error: spmm has no option values; it takes f32 f64 f16 bf16 csr csc coo t heads batch"
finish
