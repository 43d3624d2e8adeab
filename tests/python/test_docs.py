# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The Python in the documentation runs."""

import re

import pytest
from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TUTORIAL = "tutorial.md"  # its blocks go on from one another


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


BLOCKS = [(page.name, i, text) for page in PAGES if page.name != TUTORIAL
          for i, text in enumerate(blocks(page))]


@pytest.mark.parametrize("page, number, text", BLOCKS, ids=[f"{p}-{i}" for p, i, _ in BLOCKS])
def test_block(page, number, text, monkeypatch):
    if re.search(r"^import (torch|weft\.o3|weft\.nn)", text, re.M):
        pytest.importorskip("torch")
    monkeypatch.chdir(ROOT / "examples")
    exec(compile(text, f"{page}, block {number}", "exec"), {})


def test_the_tutorial_from_its_first_block_to_its_last(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = {}
    for i, text in enumerate(blocks(ROOT / "docs" / TUTORIAL)):
        exec(compile(text, f"{TUTORIAL}, block {i}", "exec"), names)
    assert names["losses"][-1] < names["losses"][0]
