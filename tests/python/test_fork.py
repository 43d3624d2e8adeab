# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Forks while other threads are inside calls."""

import importlib.util
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import weft

PROGRAM = "program p(n)\naxis I = n\nf64 X[I], Y[I]\nY[i] = 3 * X[i]\n"


def fork():
    with warnings.catch_warnings():  # that there are threads: this is what is tested
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def test_a_fork_waits_for_the_end_of_a_call():
    kernel, x = weft.Program(PROGRAM).compile(), np.ones(100)
    begun, inside = threading.Event(), []

    def progress(_):  # is called by the library, in the middle of a call
        inside.append(True)
        begun.set()
        time.sleep(0.3)
        inside.clear()
        return True

    thread = threading.Thread(target=lambda: kernel.tune(X=x, seconds=1, progress=progress))
    thread.start()
    assert begun.wait(60)
    pid = fork()
    if pid == 0:
        os._exit(1 if inside or not np.array_equal(kernel(X=x), 3 * x) else 0)
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0


def test_a_fork_inside_of_a_call_of_the_same_thread():
    kernel, x, codes = weft.Program(PROGRAM).compile(), np.ones(100), []

    def progress(_):
        if not codes:
            pid = fork()
            if pid == 0:
                os._exit(0 if weft._lib.lock._is_owned() else 1)
            codes.append(os.waitpid(pid, 0)[1])
        return True

    kernel.tune(X=x, seconds=1, progress=progress)
    assert codes == [0] and not weft._lib.lock._is_owned()
    np.testing.assert_array_equal(kernel(X=x), 3 * x)


@pytest.mark.parametrize("more", [(), ("torch",)], ids=["numpy", "torch"])
def test_forks_under_load(more):
    """All children compute and exit; 2,000 of them when WEFT_TEST_LONG is set."""
    if more and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    count = 1000 if os.environ.get("WEFT_TEST_LONG") else 100
    script = Path(__file__).with_name("forks.py")
    done = subprocess.run([sys.executable, str(script), str(count), *more], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


TORCH_ALONE = """
import os, sys, threading, warnings
import torch
warnings.simplefilter("ignore")
torch.set_num_threads(2)
torch.ones(100000).sum()
stop = threading.Event()
for _ in range(8):  # their stacks fill glibc's cache of stacks in the child
    threading.Thread(target=stop.wait, daemon=True).start()
pid = os.fork()
if pid == 0:
    if sys.argv[1:] == ["renew"]:
        torch.set_num_threads(torch.get_num_threads())
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()  # its end empties the cache: the stack of the thread that torch will join is gone
    sys.exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert "weft" not in sys.modules
sys.exit(0 if code == 0 else 9)
"""


def leaves_well(*more):
    done = subprocess.run([sys.executable, "-c", TORCH_ALONE, *more], text=True, capture_output=True)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 0


def test_children_of_torch_alone_leave_well_after_the_same_call():
    """Without Weft, a child of torch that exits through the interpreter crashes, unless it has renewed the
    threads of torch's pool.  forks.py does so, and docs/torch.md advises it."""
    pytest.importorskip("torch")
    assert leaves_well("renew")
    if leaves_well():
        pytest.skip("this torch needs no renewal")
