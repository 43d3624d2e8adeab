#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Tensor products (tp) and convolutions (conv) of published models, forward and backward, per item or
# edge.  A line fails when a result is wrong (1e-6 of the largest element, backward 5e-6, against
# f64), when registers spill, when there is an atomic operation, or when more than `bar` of the
# peer's instructions are executed.  A convolution is of 8 nodes with 28 edges each.
# Called by counts.sh: counts_tp.sh PROGRAM PART
set -u
run=$1 part=$2
peers=tests/gpu/counts_tp.txt
failed=0 passed=0
printf '%-13s %-4s %-8s %12s %7s %5s %5s %9s %6s %7s %5s %8s\n' problem kind pass instructions peer ratio bar \
    registers spills atomics warps error
while read -r name kind pass peer bar spec; do
    case $name in '' | '#'*) continue ;; esac
    case "$name $kind $pass" in *"$part"*) ;; *) continue ;; esac
    case $kind in
    tp) problem="tp; $spec" sizes="n=16 --per 16" ;;
    conv) problem="conv; $spec; edges=sorted" sizes="nodes=8 senders=8 E.start=28 --per 224" ;;
    esac
    # shellcheck disable=SC2086
    line=$("$run" --o3 "$problem" $([ "$pass" = forward ] || echo --grad) $sizes 2>&1 | tee build/.counts.log | tail -n 1)
    read -r _ verdict _ error _ count _ registers _ spills _ atomics _ warps < <(echo "$line")
    if [ "${verdict:-}" != right ] && [ "${verdict:-}" != WRONG ]; then
        tail -n 5 build/.counts.log
        verdict=failed error=- count=0 registers=0 spills=0 atomics=0 warps=0
    fi
    good=$(awk -v c="$count" -v p="$peer" -v b="$bar" -v s="$spills" -v a="$atomics" -v v="$verdict" \
        'BEGIN { print v == "right" && s == 0 && a == 0 && (b == "-" || c <= b * p) }')
    printf '%-13s %-4s %-8s %12.1f %7d %5.2f %5s %9d %6d %7d %5d %8s%s\n' "$name" "$kind" "$pass" "$count" "$peer" \
        "$(awk -v c="$count" -v p="$peer" 'BEGIN { print c / p }')" "$bar" "$registers" "$spills" "$atomics" "$warps" \
        "$error" "$([ "$good" = 1 ] || echo "  FAILED")"
    if [ "$good" = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done <$peers
echo "$passed passed, $failed failed"
[ $failed = 0 ]
