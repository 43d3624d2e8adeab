#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Symmetric contractions beside MACE's own: verifies results and gradients, then times in turn, round by
round.

    python bench/contract.py ['IN>OUT' ...] [--channels 128] [--correlation 3] [--items 100]
                             [--elements 3] [--rounds 9] [--threads 1]

Needs mace-torch and e3nn 0.4 (tests/python/run.sh o3_04 makes such an environment).  Prints a line a
problem: medians in microseconds an item of the forward kernel and of the backward one, by features and
weights; the same of MACE; and how many times faster forward, and both together, are."""

import argparse
import importlib
import importlib.util
import statistics
import sys
import time
import types
import warnings

PROBLEMS = ["0e+1o+2e+3o>0e", "0e+1o+2e+3o>0e+1o", "0e+1o+2e+3o>0e+1o+2e"]


def mace():
    """The two modules of MACE that make it, without what the rest of the package needs."""
    import torch

    torch.serialization.add_safe_globals([slice])  # which e3nn 0.4 has in its constants
    root = importlib.util.find_spec("mace").submodule_search_locations[0]
    for name in ("mace", "mace.tools", "mace.modules"):
        module = types.ModuleType(name)
        module.__path__ = [root + name[len("mace"):].replace(".", "/")]
        sys.modules[name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("mace.modules.symmetric_contraction").SymmetricContraction


def parameters(module, ours, degree):
    """MACE's, in the order of our weights."""
    found = []
    for slot, part in enumerate(module.contractions):
        own = dict(part.named_parameters())
        for d in range(1, degree + 1):
            if (str(slot), str(d)) in {(str(s), str(e)) for s, e in ours.paths}:
                found.append(own["weights_max" if d == degree else f"weights.{degree - 1 - d}"])
    return found


def slots_apart(x, irreps):
    """(items, channels, components of all slots) to slot after slot."""
    import torch

    parts, at = [], 0
    for _, ir in irreps:
        parts.append(x[:, :, at : at + ir.dim].reshape(len(x), -1))
        at += ir.dim
    return torch.cat(parts, dim=1)


def relative(got, want):
    return abs(got - want).max() / abs(want).max()


def run(text, options, contraction):
    import torch
    import weft
    from e3nn import o3

    irreps, out = (o3.Irreps("+".join(f"{options.channels}x{ir}" for ir in part.split("+")))
                   for part in text.split(">"))
    theirs = contraction(irreps, out, options.correlation, num_elements=options.elements)
    ours = weft.Contraction(str(irreps), str(out), options.correlation, signs="e3nn-0.4")
    weights = parameters(theirs, ours, options.correlation)
    x = torch.randn(options.items, options.channels, sum(ir.dim for _, ir in irreps), requires_grad=True)
    element = torch.randint(options.elements, (options.items,))
    hot = torch.nn.functional.one_hot(element, options.elements).to(x.dtype)
    given = (slots_apart(x, irreps).detach().numpy(), element.numpy(),
             torch.cat(weights, dim=1).detach().numpy())
    want = theirs(x, hot)
    dz = torch.randn_like(want)

    def back(z):
        return torch.autograd.grad(z, [x, *weights], dz)

    wanted = back(want)
    got = ours.backward(dz.numpy(), *given)
    errors = [relative(ours(*given), want.detach().numpy()),
              relative(got["x"], slots_apart(wanted[0], irreps).numpy()),
              relative(got["weight"], torch.cat(wanted[1:], dim=1).numpy())]
    assert max(errors) <= 1e-5, errors
    times = [[], [], [], []]
    for _ in range(options.rounds):
        clock = [time.perf_counter()]
        ours(*given)
        clock.append(time.perf_counter())
        ours.backward(dz.numpy(), *given)
        clock.append(time.perf_counter())
        z = theirs(x, hot)
        clock.append(time.perf_counter())
        back(z)
        clock.append(time.perf_counter())
        for k in range(4):
            times[k].append(clock[k + 1] - clock[k])
    f, b, mf, mb = (statistics.median(t) * 1e6 / options.items for t in times)
    print(f"{text:24} {f:8.2f} {b:8.2f} {mf:9.1f} {mb:9.1f} {mf / f:8.1f} {(mf + mb) / (f + b):8.1f}"
          f"  {max(errors):.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("problem", nargs="*", default=PROBLEMS)
    for name, value in (("channels", 128), ("correlation", 3), ("items", 100), ("elements", 3),
                        ("rounds", 9), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    import torch
    import weft

    contraction = mace()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    weft.set_threads(options.threads)
    print("problem                   forward backward      mace  backward  forward     both  error")
    for text in options.problem:
        run(text, options, contraction)


if __name__ == "__main__":
    main()
