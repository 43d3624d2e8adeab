#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Errors in f32 of tensor products and of their derivatives, beside those of e3nn in f32: each relative to the
largest element of what e3nn gives in f64.

    python bench/errors.py [NAME ...] [--items 64] [--order 3] [--weights item shared]
    python bench/errors.py 'IN1*IN2>OUT:uvu'       # any other product

Prints a line for each problem, kind of weights, order and operand: the gradient of order k is that of all
gradients of order k - 1, along random cotangents, by each operand of the product.  The last column is Weft's
error in units of e3nn's."""

import argparse

from tp import PROBLEMS, e3nn_product

OPERANDS = ("X", "Y", "W")


def weft_product(product):
    """The same in Weft; path weights of e3nn's instructions have all normalisation in them."""
    import weft.o3

    paths = [(*tuple(i)[:5], float(i.path_weight) ** 2) for i in product.instructions]
    return weft.o3.TensorProduct(product.irreps_in1, product.irreps_in2, product.irreps_out, paths,
                                 irrep_normalization="none", path_normalization="none",
                                 shared_weights=product.shared_weights, internal_weights=False)


def derivatives(torch, f, operands, order, seed):
    """The result, then the gradients of each order by the operands, all in f64."""
    g = torch.Generator().manual_seed(seed)
    inputs = [x.detach().requires_grad_() for x in operands]
    outputs, found = [f(*inputs)], []
    found.append({"Z": outputs[0].detach().double()})
    for _ in range(order):
        along = [torch.randn(z.shape, generator=g, dtype=torch.float32).to(z.dtype).requires_grad_()
                 for z in outputs]
        grads = torch.autograd.grad(outputs, inputs, along, create_graph=True, allow_unused=True)
        grads = [torch.zeros_like(x) if d is None else d for x, d in zip(inputs, grads)]
        found.append({n: d.detach().double() for n, d in zip(OPERANDS, grads)})
        inputs, outputs = inputs + along, [d for d in grads if d.requires_grad]
    return found


def errors(torch, spec, items, order, seed=0):
    """(order, operand, error of e3nn, error of Weft) of a product."""
    before = torch.get_default_dtype()
    products = {}
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        products[dtype] = e3nn_product(spec)
    torch.set_default_dtype(before)
    exact, single = products[torch.float64], products[torch.float32]
    g = torch.Generator().manual_seed(seed)
    rows = () if exact.shared_weights else (items,)
    shapes = [(items, exact.irreps_in1.dim), (items, exact.irreps_in2.dim), (*rows, exact.weight_numel)]
    operands = [torch.randn(s, generator=g, dtype=torch.float32) for s in shapes]
    want = derivatives(torch, exact, [x.double() for x in operands], order, seed + 1)
    peer = derivatives(torch, single, operands, order, seed + 1)
    ours = derivatives(torch, weft_product(exact), operands, order, seed + 1)
    for k, values in enumerate(want):
        for name, z in values.items():
            size = max(float(z.abs().max()), 1e-30)
            yield k, name, *(float((other[k][name] - z).abs().max()) / size for other in (peer, ours))


def main():
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--weights", nargs="+", choices=("item", "shared"), default=["item", "shared"])
    options = parser.parse_args()
    print(f"{'problem':<16} {'weights':<7} order operand    e3nn     weft  ratio")
    for name in options.names or PROBLEMS:
        product, mode = PROBLEMS.get(name, name).split(":")[:2]
        for weights in options.weights:
            spec = f"{product}:{mode}:{weights}"
            for order, operand, peer, ours in errors(torch, spec, options.items, options.order):
                print(f"{name:<16} {weights:<7} {order:>5} {operand:>7} {peer:>8.1e} {ours:>8.1e} "
                      f"{ours / max(peer, 1e-30):>6.2f}", flush=True)


if __name__ == "__main__":
    main()
