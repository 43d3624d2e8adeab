# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""How torch differentiates the operators of this package.  This is the one place that asks which operands
have gradients or tangents, and which transforms of functions are active; an operator brings rules, which
are made of operators again, and so exist to any order and in any mix of both modes."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

SMALL = 4096  # elements of all operands

Tensors = Sequence[torch.Tensor]


def keep_arrays(arrays, results, *rest):
    return arrays


class Rules(NamedTuple):
    """An operator of `arrays` and of `rest`, which has no derivative.

    run(arrays, *rest) gives the results, and nothing is recorded.  keep(arrays, results, *rest) tells which
    of these the derivatives need.  gradients(kept, rest, grads, wanted) gives those of the arrays that are
    wanted, from those of the results (None: 0).  tangents(kept, rest, tangents) gives those of the
    results, from those of the arrays (None: 0).  batch(call, arrays, dims, n, *rest) runs n calls, by
    `call`, of arrays with such a dimension."""

    name: str
    run: Callable
    gradients: Callable
    tangents: Callable
    batch: Callable
    keep: Callable = keep_arrays


def is_traced() -> bool:
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def has_tangent(x: Any) -> bool:
    """Does forward mode carry a tangent along with this tensor?"""
    return (forward_ad._current_level >= 0 and isinstance(x, torch.Tensor)
            and forward_ad.unpack_dual(x).tangent is not None)


def primal(x: torch.Tensor) -> torch.Tensor:
    """The tensor without its tangent of this level: rules are to see those of outer levels only."""
    return forward_ad.unpack_dual(x).primal if forward_ad._current_level >= 0 else x


def is_watched(x: Any) -> bool:
    """Must torch see what is done to it: for a gradient, a tangent or a transform of functions?"""
    return isinstance(x, torch.Tensor) and (
        (torch.is_grad_enabled() and x.requires_grad)
        or torch._C._functorch.is_functorch_wrapped_tensor(x) or has_tangent(x))


def asked(node: Any) -> bool:
    """Is a gradient that could be given asked for in this backward?  In torch.autograd.grad it is not
    when no path goes from there to the inputs."""
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:  # of a leaf that is an input of autograd.grad, and outside of the engine
        return True


def save(ctx: Any, rules: Rules, rest: Sequence[Any], arrays: Tensors, results: Tensors) -> None:
    """Keeps what derivatives need: tensors as torch wants it, the rest as it is."""
    tensors = [x for x in rest if isinstance(x, torch.Tensor)]
    kept = list(rules.keep(arrays, results, *rest))
    ctx.rest = [None if isinstance(x, torch.Tensor) else x for x in rest]
    ctx.narrays, ctx.nkept = len(arrays), len(kept)
    ctx.save_for_backward(*kept, *tensors)
    ctx.save_for_forward(*kept, *tensors)
    ctx.set_materialize_grads(False)


def saved(ctx: Any) -> tuple:
    """What was kept, and the rest."""
    tensors = ctx.saved_tensors
    others = iter(tensors[ctx.nkept:])
    return tensors[:ctx.nkept], [next(others) if x is None else x for x in ctx.rest]


def functions(rules: Rules, call: Callable) -> tuple:
    """The two functions of torch with these rules: their inputs are the length of `rest`, all of it, and
    the arrays."""

    def run(n, inputs):
        return tuple(rules.run(list(inputs[n:]), *inputs[:n]))

    class Quick(torch.autograd.Function):
        """The quick way to a gradient, outside of compiled code."""

        @staticmethod
        def forward(ctx, n, *inputs):
            ctx.n = n
            out = run(n, inputs)
            save(ctx, rules, inputs[:n], inputs[n:], out)
            return out

        @staticmethod
        def backward(ctx, *grads):
            if all(g is None for g in grads):
                return (None,) * (ctx.n + 1 + ctx.narrays)
            wanted = ctx.needs_input_grad[ctx.n + 1:]
            # A single one is asked for, or this would not run; where all are small, to ask takes longer.
            if wanted.count(True) > 1 and sum([a.numel() for a in ctx.saved_tensors]) > SMALL:
                nodes = ctx.next_functions[-ctx.narrays:]  # which has tensors only
                wanted = [w and asked(node) for w, (node, _) in zip(wanted, nodes)]
            return (*[None] * (ctx.n + 1), *rules.gradients(*saved(ctx), grads, wanted))

    class General(Quick):
        """The same with tangents and for transforms of functions, which ask for more and take longer."""

        @staticmethod
        def forward(n, *inputs):
            return run(n, inputs)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.n, *inputs = inputs
            save(ctx, rules, inputs[:ctx.n], inputs[ctx.n:], output)

        @staticmethod
        def jvp(ctx, *tangents):
            # Torch switches forward mode off here, and would drop the tangents of outer levels.
            with forward_ad._set_fwd_grad_enabled(True):
                kept, rest = saved(ctx)
                return tuple(rules.tangents([primal(x) for x in kept], rest, tangents[ctx.n + 1:]))

        @staticmethod
        def vmap(info, in_dims, n, *inputs):
            if any(d is not None for d in tree_leaves(in_dims[1:n + 1], is_leaf=lambda d: d is None)):
                raise NotImplementedError(f"weft::{rules.name}: vmap over indices of edges; call it "
                                          "for each graph, or join them to one")
            out = rules.batch(call, inputs[n:], in_dims[n + 1:], info.batch_size, *inputs[:n])
            return tuple(out), tuple(0 for _ in out)

    return Quick, General


def differentiable(rules: Rules) -> Callable:
    """How to call an operator with these rules: call(arrays, *rest) -> results."""

    def call(arrays, *rest):
        if torch._C._are_functorch_transforms_active() or any([has_tangent(a) for a in arrays]):
            return general.apply(len(rest), *rest, *arrays)
        if torch.is_grad_enabled() and any([a.requires_grad for a in arrays]):
            return quick.apply(len(rest), *rest, *arrays)
        return rules.run(list(arrays), *rest)

    quick, general = functions(rules, call)
    return call
