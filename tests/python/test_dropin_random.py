# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Random irreps and random layers, asked the same of Weft and of the installed e3nn.  WEFT_TEST_LONG draws
more; a failure names its seed."""

import os
import random

import pytest

torch = pytest.importorskip("torch")
o3 = pytest.importorskip("e3nn.o3")

import weft  # noqa: E402
import weft.o3  # noqa: E402
import drawn  # noqa: E402
import drawn_layers  # noqa: E402

LONG = bool(os.environ.get("WEFT_TEST_LONG"))


def test_irreps_answer_as_those_of_e3nn():
    for seed in range(5000 if LONG else 200):
        for question, ask in drawn.questions(random.Random(seed)).items():
            drawn.compare(f"seed {seed}: {question}", lambda: ask(weft), lambda: ask(o3))


@pytest.mark.parametrize("part", range(40 if LONG else 3))
def test_layers_are_those_of_e3nn(part):
    met = set()
    for seed in range(12 * part, 12 * part + 12):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        layer = drawn_layers.draw(rng, o3)
        try:
            met.add(drawn_layers.compare(layer, weft.o3, o3, rng.choice([torch.float32, torch.float64])))
        except Exception as e:
            raise AssertionError(f"seed {seed}: {layer}: {e}") from e
    assert "values" in met


def test_refusals_are_of_the_kinds_of_e3nn():
    """Layers whose arguments do not fit, without computing any."""
    refused = 0
    for seed in range(100_000, 100_000 + (2000 if LONG else 100)):
        layer = drawn_layers.draw(random.Random(seed), o3)
        refused += drawn_layers.compare_made(layer, weft.o3, o3) == "errors"
    assert refused >= 3
