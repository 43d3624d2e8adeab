#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Neighbour lists against matscipy: the same pairs, then the time of both in turns.

    python bench/neighbours.py [--cutoff 5] [--threads 1,2] [--seconds 1] [SPEC ...]

A row for each structure: atoms, pairs, the best time of matscipy's neighbour_list("ijSD") and of
weft.neighbours for the same four arrays, by threads."""

import argparse
import time

import numpy as np
from matscipy.neighbours import neighbour_list

import weft

SPECS = ["crystal:silicon:repeat=4:rattle=0.05", "crystal:silicon:n1=8:n2=8:n3=10:rattle=0.05",
         "crystal:silicon:n1=20:n2=25:n3=25:rattle=0.05", "water:molecules=171",
         "water:molecules=1667", "water:molecules=33333"]
WANT = ("receiver", "sender", "shift", "vectors")


def same(a, cutoff):
    """Both give the same pairs; how many."""
    i, j, S, D = neighbour_list("ijSD", positions=a.positions, cell=a.cell, pbc=a.pbc, cutoff=cutoff)
    got = weft.neighbours(a.positions, a.cell, a.pbc, cutoff, want=WANT)
    order = np.lexsort((S[:, 2], S[:, 1], S[:, 0], j, i))
    assert np.array_equal(i[order], got.receiver) and np.array_equal(j[order], got.sender)
    assert np.array_equal(S[order], got.shift)
    np.testing.assert_allclose(got.vectors, D[order], rtol=0, atol=1e-10)
    return len(i)


def best(calls, seconds):
    """The least time of each call, in turns, for so many seconds in all."""
    least, end = [np.inf] * len(calls), time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for k, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            least[k] = min(least[k], time.perf_counter() - begin)
        rounds += 1
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--cutoff", type=float, default=5.0)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    threads = [int(t) for t in args.threads.split(",")]


    print("structure, atoms, pairs, matscipy ms, " + ", ".join(f"weft ms t={t} (x)" for t in threads))
    for spec in args.specs:
        a = weft.atoms(spec)
        pairs = same(a, args.cutoff)

        def ours():
            weft.neighbours(a.positions, a.cell, a.pbc, args.cutoff, want=WANT)

        def theirs():
            neighbour_list("ijSD", positions=a.positions, cell=a.cell, pbc=a.pbc, cutoff=args.cutoff)

        row = []
        for t in threads:
            weft.set_threads(t)
            row.append(best([theirs, ours], args.seconds))
        peer = min(r[0] for r in row)
        print(f"{spec}, {len(a.positions)}, {pairs}, {1e3 * peer:.2f}, "
              + ", ".join(f"{1e3 * r[1]:.2f} ({r[0] / r[1]:.1f})" for r in row), flush=True)


if __name__ == "__main__":
    main()
