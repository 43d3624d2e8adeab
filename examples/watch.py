# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What the training examples show while they run: a progress bar, and the peak memory of a part of the run."""

import resource
import sys


def progress(name, step, steps, loss):
    bar = "#" * (30 * step // steps)
    end = "\n" if step == steps else ""
    print(f"\r{name:5} [{bar:30}] {step}/{steps}  loss {loss:.5f}", end=end, file=sys.stderr, flush=True)


def _status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


class Peak:
    """The most memory, in MB, that the process had since this was made, beyond what it had then."""

    def __init__(self):
        self.whole = False
        try:
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")  # the kernel forgets the peak so far
            self.begin = _status("VmRSS")
        except OSError:
            self.whole, self.begin = True, 0.0

    def __str__(self):
        if self.whole:
            return f"peak memory of the process so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
        return f"peak memory +{max(0.0, _status('VmHWM') - self.begin):.0f} MB"
