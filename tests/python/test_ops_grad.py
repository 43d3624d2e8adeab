# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""gradcheck and gradgradcheck, in reverse and forward mode, of every operator over rows of entries (weft list ops)
with every option that it takes.  Options that go together are tried together.  Of messages each has some of its
options, and all of them when WEFT_TEST_LONG is set.  test_named_operators has the other families, and every name."""

import ctypes
import itertools
import os

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch  # noqa: E402
from test_message import MESSAGES  # noqa: E402
from weft._lib import lib  # noqa: E402
from weft._torch import function  # noqa: E402
from weft.torch import _bound  # noqa: E402

LONG = bool(os.environ.get("WEFT_TEST_LONG"))
MATRIX = ("spmv", "spmm", "sddmm", "segment_sum", "segment_mean", "segment_max", "segment_min", "softmax")
OPTIONS = ("csr", "csc", "coo", "t", "heads", "batch", "values", "nodes", "mean", "max", "min", "arg", "list", "edges",
           "scalar")
ROWS, COLS, NNZ = 4, 5, 9
SIZES = {"m": ROWS, "n": COLS, "nnz": NNZ, "ne": NNZ, "batch": 2, "heads": 2, "f": 2}


def is_taken(spec):
    try:
        weft.Program.op(spec)
    except weft.ArgumentError:
        return False
    return True


def specs_of(op):
    """Specs that have each option which the operator takes; "arg" goes with max or min."""
    left = [o for o in OPTIONS if is_taken(f"{op}:f64:{o}") or o == "arg" and is_taken(f"{op}:f64:max:arg")]
    found = []
    while left:
        spec = f"{op}:f64"
        for o in list(left):
            if is_taken(f"{spec}:{o}"):
                spec, left = f"{spec}:{o}", [x for x in left if x != o]
        assert spec != f"{op}:f64", left
        found.append(spec)
    return found


def all_specs():
    out = [s for op in MATRIX for s in specs_of(op)]
    for k, op in enumerate(MESSAGES):
        specs = specs_of(op)
        out += specs if LONG else [specs[k % len(specs)]]
    return out


def operand(f, a, g):
    """Entries are in CSR, CSC or a list; a row has no entries, and some are equal."""
    if not a.structure:
        shape = [e.value({**SIZES, "size(E)": NNZ}) for e in a.extents]
        return torch.rand(shape, generator=g, dtype=torch.float64).add(0.3).requires_grad_()
    name = a.name.partition(".")[2]
    if name == "start":
        counts = torch.tensor([4, 0, 3, 2] if a.extents[0].value(SIZES) == ROWS + 1 else [4, 0, 3, 1, 1])
        return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    if name == "of":
        return torch.randperm(NNZ, generator=g)
    return torch.randint(0, SIZES[_bound(f.program, a.name)], (NNZ,), generator=g)


@pytest.mark.parametrize("spec", all_specs())
def test_derivatives_of_both_orders(spec):
    op, f, g = weft.torch.operator(spec), function("op " + spec), torch.Generator().manual_seed(len(spec))
    given = {a.name: operand(f, a, g) for a in f.inputs}
    names = [a.name for a in f.inputs if not a.structure]
    sizes = {s: SIZES[s] for s in f.sizes}
    results = [a.name for a in f.outputs if a.dtype.is_floating_point]

    def call(*x):
        out = op({**given, **dict(zip(names, x)), **sizes})
        return tuple(out[r] for r in results) if isinstance(out, dict) else out

    x = [given[name] for name in names]
    assert torch.autograd.gradcheck(call, x, fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, x, fast_mode=True, check_fwd_over_rev=True)


def test_every_option_is_known():
    """An option that is added is to be added here, or to the rows of test_named_operators."""
    known = {name.partition("=")[0] for name in weft_list("options")}
    here = known - {"f32", "f64", "f16", "bf16"} - set(OPTIONS)
    assert here == {"scores", "mask", "weights", "basis", "blocks", "ragged", "split", "gqa", "dropout", "bi", "bj", "w",
                    "page", "bias", "strip", "bsr", "dbsr", "sr_bcrs", "n_m", "gather", "gates", "b", "c", "g", "k", "structure"}


def weft_list(table):
    lib.weft_list.restype, lib.weft_list.argtypes = ctypes.c_char_p, [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    names = (lib.weft_list(table.encode(), i, None) for i in itertools.count())
    return {name.decode() for name in itertools.takewhile(lambda name: name is not None, names)}
