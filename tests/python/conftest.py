# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What the tests share: a cache of their own, random data that sums exactly, the examples."""

import ctypes
import os
import re
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import weft

_cache = tempfile.TemporaryDirectory(prefix="weft-python-")
os.environ["WEFT_CACHE_DIR"] = os.path.realpath(_cache.name)

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items):
    """NequIP's come last: it changes settings of torch and e3nn that others rely on."""
    items.sort(key=lambda item: item.path.name == "test_nequip.py")


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


class Emitted:
    """A program as the C text of `weft emit`, compiled without the library."""

    def __init__(self, program, folder):
        self.program = program
        text = program.source
        flags = re.search(r"cc (.*) \.\.\. -lm", text).group(1).split()
        name = re.search(r"(weft_run_\w+) runs it", text).group(1)
        (folder / f"{name}.c").write_text(text)
        cc = os.environ.get("WEFT_CC", "cc").split()
        more = os.environ.get("WEFT_CFLAGS", "").split()
        subprocess.run([*cc, *flags, *more, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
                        f"{name}.c", "-o", f"{name}.so", "-lm"], cwd=folder, check=True)
        lib = ctypes.CDLL(str(folder / f"{name}.so"))
        self.run = getattr(lib, name)
        self.run.restype = ctypes.c_int64
        self.plan = None  # room for its struct, where the program has one
        plan = re.search(r"^struct (weft_plan_\w+) {\n(.*?)^};", text, re.M | re.S)
        if plan:
            self.plan = ctypes.create_string_buffer(8 * plan.group(2).count(";"))
            self.make, self.free = (getattr(lib, f"{plan.group(1)}_{f}") for f in ("make", "free"))
            self.make.restype = ctypes.c_int64

    def __call__(self, arrays, sizes, like):
        """The outputs, from arrays by the names of the program; like: outputs of the right shape."""
        out, given, structure, keep = {}, [], [], []
        for a in self.program.args:
            if a.role == "size":
                given.append(ctypes.c_int64(sizes[a.name]))
                structure.append(given[-1])
                continue
            if a.role == "output":
                array = out[a.name] = np.full_like(like[a.name], 77)
            else:
                array = np.ascontiguousarray(arrays[a.name], np.int64 if a.structure else None)
            keep.append(array)
            given.append(ctypes.c_void_p(array.ctypes.data))
            if a.structure:
                structure.append(given[-1])
        if self.plan is None:
            assert self.run(*given) == 0
        else:
            assert self.make(*structure, self.plan) == 0
            assert self.run(*given, self.plan) == 0
            self.free(self.plan)
        return out


class Both:
    """Calls a kernel, and what is emitted for the same program: the results are the same bits."""

    def __init__(self, kernel, folder):
        self.kernel = kernel
        self.emitted = None
        if kernel.info.target == "c" and "= built" not in kernel.program.text:
            self.emitted = Emitted(kernel.program, folder)

    def __call__(self, arrays=None, /, **more):
        got = self.kernel(arrays, **more)
        if self.emitted is None:
            return got
        caller = self.kernel._caller
        named = caller._name_all({**(arrays or {}), **more})
        sizes = {a.name: int(caller._get(a.name)) for a in self.kernel.program.args if a.role == "size"}
        outputs = got if isinstance(got, dict) else {caller._outputs[0].name: got}
        for name, array in self.emitted(named, sizes, outputs).items():
            np.testing.assert_array_equal(array, outputs[name])
        return got


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The kernel of an example, by its name; each is compiled once."""
    kernels = {}

    def get(name):
        if name not in kernels:
            with warnings.catch_warnings():  # that some are interpreted is tested elsewhere
                warnings.simplefilter("ignore", RuntimeWarning)
                kernel = weft.Program.read(ROOT / "examples" / f"{name}.weft").compile()
            kernels[name] = Both(kernel, tmp_path_factory.mktemp(name))
        return kernels[name]

    return get
