# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The Python in the documentation runs."""

import re

import pytest
from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(page.name, i, text) for page in PAGES
          for i, text in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S))]


@pytest.mark.parametrize("page, number, text", BLOCKS, ids=[f"{p}-{i}" for p, i, _ in BLOCKS])
def test_block(page, number, text, monkeypatch):
    if re.search(r"^import (torch|weft\.o3)", text, re.M):
        pytest.importorskip("torch")
    monkeypatch.chdir(ROOT / "examples")
    exec(compile(text, f"{page}, block {number}", "exec"), {})
