# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Forks while other threads are inside calls: NumPy operators, operators of torch, and compiles.

Usage: forks.py COUNT [torch].  Every child computes what the parent has computed, some of them
compile a program that nobody has compiled before, and exits with 0.  Prints a line for each child
that does not, and a summary; exits with 1 if there was one."""

import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import warnings

import numpy as np
import scipy.sparse as sp

import weft

CPU_LIMIT = 5  # seconds of a child
WALL_LIMIT = 40 * CPU_LIMIT  # a hang takes no CPU time; a busy machine stretches the wall clock
PROGRAM = "program scale(n)\naxis I = n\nf64 X[I], Y[I]\nY[i] = {} * X[i]\n"


def compiled_right(factor):
    """A program that is new to the cache, compiled and run."""
    kernel = weft.Program(PROGRAM.format(factor)).compile()
    return np.array_equal(kernel(X=np.ones(3)), np.full(3, float(factor)))


class Case:
    def before_exit(self):
        """What a child has to do before it leaves through the interpreter."""


class Numpy(Case):
    """A product whose kernel runs on several threads."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.a = sp.random(3000, 3000, 0.01, format="csr", dtype=np.float64, random_state=1)
        self.b = rng.standard_normal((3000, 8))
        self.want = weft.spmm(self.a, self.b)

    def is_right(self):
        return np.array_equal(weft.spmm(self.a, self.b), self.want)


class Programs(Case):
    """Programs that are made, differentiated and freed: the lists of the context change all the time."""

    def is_right(self):
        grad = weft.Program(PROGRAM.format(2)).grad()
        again = weft.Program(grad.text)
        return again.text == grad.text and {"d_X", "d_Y"} <= {a.name for a in grad.args}


class Torch(Case):
    """An operator of torch on several threads, with its gradients.  It calls no operator of torch's own
    on so many elements: in a child those hang if the thread that forked has used torch's threads."""

    def __init__(self):
        import torch
        from weft import _torch

        self.torch, self.run = torch, _torch.run
        self.text = "o3 tp; in1=8x0e+8x1o; in2=0e+1o; out=8x0e+8x1o; mode=uvu; weights=item"
        f = _torch.function(self.text)
        torch.set_num_threads(2)
        self.x = [torch.randn(a.shape({f.symbols[0]: 1000})).requires_grad_() for a in f.inputs]
        self.dz = torch.ones(f.outputs[0].shape({f.symbols[0]: 1000}))
        self.want = self.results()

    def results(self):
        z, = self.run(self.text, self.x)
        return [a.detach().numpy() for a in (z, *self.torch.autograd.grad(z, self.x, self.dz))]

    def is_right(self):
        return all(np.array_equal(a, b) for a, b in zip(self.results(), self.want))

    def before_exit(self):
        """Torch joins the threads of its own pool at exit.  Those of the parent are not here: this call
        makes new ones.  test_fork.py shows that torch alone needs it too."""
        self.torch.set_num_threads(self.torch.get_num_threads())


def work(is_right, stop, wrong):
    while not stop.is_set():
        try:
            if not is_right():
                wrong.append("a thread of the parent computed something else")
        except BaseException as e:
            wrong.append(repr(e))
            return


def child(k, cases):
    """What a child does.  Some leave as scripts do, through the interpreter; the others as children of
    multiprocessing do."""
    faulthandler.dump_traceback_later(WALL_LIMIT - 5)  # where it hangs
    good = all(case.is_right() for case in cases) and (k % 50 or compiled_right(1000000 + k))
    if k % 10 == 0 and good:
        for case in cases:
            case.before_exit()
        gc.collect()
        sys.exit(0)
    os._exit(0 if good else 3)


def wait_for(pid):
    """None, or what was wrong with the child; and its seconds of CPU time."""
    end = time.monotonic() + WALL_LIMIT
    while time.monotonic() < end:
        got, status, usage = os.wait4(pid, os.WNOHANG)
        if got:
            cpu = usage.ru_utime + usage.ru_stime
            code = os.waitstatus_to_exitcode(status)
            if code == 0 and cpu > CPU_LIMIT:
                return f"it took {cpu:.1f} s of CPU time", cpu
            return (None if code == 0 else f"exit code {code}"), cpu
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    _, _, usage = os.wait4(pid, 0)
    cpu = usage.ru_utime + usage.ru_stime
    return f"it did not end in {WALL_LIMIT} s, {cpu:.2f} s of CPU time", cpu


def main(count, *more):
    cases = [Numpy(), Programs(), *([Torch()] if "torch" in more else [])]
    stop, wrong, slowest, bad = threading.Event(), [], 0.0, 0
    jobs = [case.is_right for case in cases for _ in range(2)]
    fresh = iter(range(2, 1000000))
    jobs.append(lambda: (time.sleep(1), compiled_right(next(fresh)))[1])
    threads = [threading.Thread(target=work, args=(job, stop, wrong)) for job in jobs]
    for t in threads:
        t.start()
    for k in range(count):
        pid = os.fork()
        if pid == 0:
            child(k, cases)
        fault, cpu = wait_for(pid)
        slowest = max(slowest, cpu)
        if fault is not None:
            bad += 1
            print(f"child {k}: {fault}", flush=True)
    stop.set()
    for t in threads:
        t.join()
    for line in sorted(set(wrong)):
        print(line)
    print(f"{count} forks, {bad} children failed, {len(wrong)} faults in the parent, "
          f"{slowest:.2f} s of CPU time at most")
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads: that is the test
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
