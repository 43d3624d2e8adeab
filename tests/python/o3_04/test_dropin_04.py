# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.o3 beside e3nn 0.4, whose 3j symbols have other signs: classes have its convention by default, so
that its state dicts give its results."""

import random
import warnings

import pytest

torch = pytest.importorskip("torch", reason="e3nn 0.4: torch is not installed")
torch.serialization.add_safe_globals([slice])  # which e3nn 0.4 has in its constants
e3nn = pytest.importorskip("e3nn", reason="e3nn 0.4: it is not installed")
if not e3nn.__version__.startswith("0.4."):
    pytest.skip(f"e3nn 0.4: this is {e3nn.__version__}", allow_module_level=True)

from e3nn import o3  # noqa: E402

import weft  # noqa: E402
import weft.o3  # noqa: E402
import drawn  # noqa: E402

ARGS = ("2x0e+2x1o+2x1e+2x2e", "0e+1o+2e", "2x0e+2x1o+2x1e+2x2o")


def test_results_are_those_of_e3nn_04():
    theirs, mine = o3.FullyConnectedTensorProduct(*ARGS), weft.o3.FullyConnectedTensorProduct(*ARGS)
    assert mine.signs == "e3nn-0.4" and "signs of e3nn-0.4" in repr(mine)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        mine.load_state_dict(theirs.state_dict())
    x, y = mine.irreps_in1.randn(5, -1), mine.irreps_in2.randn(5, -1)
    torch.testing.assert_close(mine(x, y), theirs(x, y), rtol=1e-5, atol=1e-5)
    other = weft.o3.FullyConnectedTensorProduct(*ARGS, signs="e3nn")
    with pytest.warns(UserWarning, match="3j symbols of e3nn-0.4, and .* has those of e3nn"):
        other.load_state_dict(theirs.state_dict())
    assert (other(x, y) - theirs(x, y)).abs().max() > 0.01
    torch.testing.assert_close(weft.o3.wigner_3j(1, 2, 2), o3.wigner_3j(1, 2, 2))


def test_irreps_go_into_each_other():
    mine, theirs = weft.Irreps(ARGS[0]), o3.Irreps(ARGS[0])
    assert o3.Irreps(mine) == theirs == mine and weft.Irreps(theirs) == mine
    assert [tuple(i) for i in weft.o3.FullyConnectedTensorProduct(*ARGS).instructions] == [
        tuple(i) for i in o3.FullyConnectedTensorProduct(*ARGS).instructions]


def test_random_irreps_answer_as_those_of_e3nn_04():
    """What it answers: questions about names that it does not have yet are left out."""
    asked = 0
    for seed in range(100):
        for question, ask in drawn.questions(random.Random(seed)).items():
            if not isinstance(drawn.outcome(lambda: ask(o3))[1], AttributeError):
                drawn.compare(f"seed {seed}: {question}", lambda: ask(weft), lambda: ask(o3))
                asked += 1
    assert asked > 3000
