# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What the tests share: a cache of their own, random data that sums exactly, the examples."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

_cache = tempfile.TemporaryDirectory(prefix="weft-python-")
os.environ["WEFT_CACHE_DIR"] = os.path.realpath(_cache.name)

ROOT = Path(__file__).resolve().parents[2]


def pytest_terminal_summary(terminalreporter):
    """The closing line that tests/run.sh reads, and what was skipped."""
    stats = terminalreporter.stats
    for report in stats.get("skipped", []):
        reason = str(report.longrepr[2]).replace("Skipped: ", "")
        terminalreporter.write_line(f"skipped: {reason}")
    bad = len(stats.get("failed", [])) + len(stats.get("error", []))
    terminalreporter.write_line(f"{len(stats.get('passed', []))} passed, {bad} failed")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def example():
    """The kernel of an example, by its name; each is compiled once."""
    import warnings

    import weft

    kernels = {}

    def get(name):
        if name not in kernels:
            with warnings.catch_warnings():  # that some are interpreted is tested elsewhere
                warnings.simplefilter("ignore", RuntimeWarning)
                kernels[name] = weft.Program.read(ROOT / "examples" / f"{name}.weft").compile()
        return kernels[name]

    return get
