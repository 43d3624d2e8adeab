# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Random layers of weft.o3 beside those of e3nn.o3: products, linear layers, norms, harmonics.  Arguments
that e3nn refuses are refused with an error of the same kind; else the layers have the same public names,
irreps, paths and weights, and the same values and gradients."""

import random
from typing import Any, Dict, List, Tuple

import torch
from drawn import irrep, irreps, outcome

TOLERANCE = {torch.float64: 1e-12, torch.float32: 5e-6}
MODES = ("uvw", "uvu", "uvv", "uuw", "uuu", "uvuv")
SHOWN = ("irreps_in", "irreps_in1", "irreps_in2", "irreps_out", "weight_numel", "bias_numel", "shared_weights",
         "internal_weights", "squared", "normalize", "normalization")
Drawn = Tuple[str, List[Any], Dict[str, Any]]


def _of(slots: List[Tuple[int, str]]) -> str:
    return " + ".join(f"{mul}x{ir}" for mul, ir in slots)


def _path(rng: random.Random, slots: List[List[Tuple[int, str]]], o3: Any) -> Tuple[Any, ...]:
    """Adds a slot to each operand, so that the path is allowed; now and then it is not."""
    mode, u, v = rng.choice(MODES), rng.randint(0 if rng.random() < 0.1 else 1, 4), rng.randint(1, 4)
    if mode in ("uuw", "uuu"):
        v = u
    w = {"uvu": u, "uvv": v, "uuu": u, "uvuv": u * v}.get(mode, rng.randint(1, 4))
    one, two = irrep(rng, 2), irrep(rng, 2)
    out = str(rng.choice(list(o3.Irrep(one) * o3.Irrep(two))))
    if rng.random() < 0.04:  # a mistake
        w, out = rng.choice([(w + 1, out), (w, irrep(rng, 2))])
    for of, slot in zip(slots, ((u, one), (v, two), (w, out))):
        of.append(slot)
    last = len(slots[0]) - 1
    at = (last, last, last + (rng.random() < 0.02))
    has = rng.random() < 0.7 or mode == "uvw"
    return (*at, mode, has, *([round(rng.uniform(0.1, 2), 2)] if rng.random() < 0.5 else []))


def draw(rng: random.Random, o3: Any) -> Drawn:
    """The name of a class, and arguments for it."""
    name = rng.choice(["TensorProduct", "TensorProduct", "TensorProduct", "FullyConnectedTensorProduct", "Linear",
                       "Linear", "FullTensorProduct", "ElementwiseTensorProduct", "TensorSquare", "Norm",
                       "SphericalHarmonics"])
    some = [irreps(rng, 3, 2, 3) for _ in range(3)]
    more: Dict[str, Any] = {}
    norms = {"irrep_normalization": rng.choice(["component", "norm", "none", None])}
    paths = {"path_normalization": rng.choice(["element", "path", "none", None])}
    weights = rng.choice([{}, {}, {"shared_weights": False}, {"internal_weights": False},
                          {"internal_weights": True, "shared_weights": rng.random() < 0.8}])
    keep = rng.choice([{}, {"filter_ir_out": [irrep(rng, 2) for _ in range(3)]}])
    if name == "TensorProduct":
        slots: List[List[Tuple[int, str]]] = [[], [], []]
        args: List[Any] = [_path(rng, slots, o3) for _ in range(rng.randint(0, 3))]
        if args and rng.random() < 0.4:  # another path of the same slots
            args.append((*args[0][:4], True, 0.5))
        if rng.random() < 0.3:
            more["in1_var"] = [rng.uniform(0.5, 2) for _ in slots[0]]
            more["out_var"] = [rng.uniform(0.5, 2) for _ in slots[2]]
        return name, [*map(_of, slots), args], {**norms, **paths, **weights, **more}
    if name == "FullyConnectedTensorProduct":
        return name, some, {**norms, **paths, **weights}
    if name == "Linear":
        one, out = some[0], rng.choice([some[1], some[0], f"{some[0]} + 2x0e" if some[0] else "2x0e"])
        n = [len(o3.Irreps(s)) for s in (one, out)]
        if rng.random() < 0.3:
            more["biases"] = rng.choice([True, [rng.random() < 0.5 for _ in range(n[1])]])
        if rng.random() < 0.2 and min(n):
            more["instructions"] = [tuple(rng.randrange(k + (rng.random() < 0.1)) for k in n) for _ in range(2)]
        if rng.random() < 0.2:
            more["f_in"], more["f_out"] = rng.randint(1, 3), rng.randint(1, 3)
        if rng.random() < 0.3:
            more["path_normalization"] = rng.choice(["path", "element"])
        return name, [one, out], {**weights, **more}
    if name == "ElementwiseTensorProduct":
        n = [o3.Irreps(s).num_irreps for s in some[:2]]
        some[n[0] > n[1]] += f"{' + ' if some[n[0] > n[1]] else ''}{abs(n[0] - n[1])}x1o"
    if name in ("ElementwiseTensorProduct", "FullTensorProduct"):
        return name, some[:2], {**norms, **keep}
    if name == "TensorSquare":
        return name, some[:1], {**norms, **rng.choice([keep, {"irreps_out": some[1]}])}
    if name == "Norm":
        return name, some[:1], {"squared": rng.random() < 0.5}
    what = rng.choice([rng.randint(0, 6), [rng.randint(0, 4) for _ in range(3)], irreps(rng, 3, 4, 2), "0e+1o+2e",
                       "0e + 2x1e"])
    if rng.random() < 0.3:
        more["irreps_in"] = rng.choice(["1e", "1o", "0e"])
    return name, [what, rng.random() < 0.5, rng.choice(["integral", "component", "norm", "none"])], more


def _tuples(layer: Any) -> List[Any]:
    return [tuple(round(v, 12) if isinstance(v, float) else v for v in i)
            for i in getattr(layer, "instructions", [])]


def _same_surface(mine: Any, theirs: Any) -> None:
    names = [n for n in dir(theirs) if not n.startswith("_") and n not in dir(torch.nn.Module())]
    missing = [n for n in names if not hasattr(mine, n) and n not in ("tp", "sph_func")]  # parts of e3nn's
    assert not missing, f"missing: {missing}"
    for name in SHOWN:
        if hasattr(theirs, name):
            a, b = getattr(mine, name), getattr(theirs, name)
            assert str(a) == str(b), f"{name}: {a}, wanted {b}"
    assert _tuples(mine) == _tuples(theirs), (_tuples(mine), _tuples(theirs))
    keys = [{k for k in layer.state_dict() if not k.startswith(("_compiled", "tp."))} for layer in (mine, theirs)]
    assert keys[0] == keys[1], keys
    if hasattr(theirs, "weight_views") and theirs.internal_weights and theirs.weight.numel():
        shapes = [[tuple(v.shape) for v in layer.weight_views()] for layer in (mine, theirs)]
        assert shapes[0] == shapes[1], shapes


def _operands(layer: Any, name: str, more: Dict[str, Any], dtype: torch.dtype) -> List[torch.Tensor]:
    lead = (2, 3)
    if name in ("Linear", "Norm", "SphericalHarmonics", "TensorSquare"):
        irreps_in = [layer.irreps_in]
    else:
        irreps_in = [layer.irreps_in1, layer.irreps_in2]
    copies = (more["f_in"],) if "f_in" in more else ()
    out = [torch.randn(*lead, *copies, i.dim, dtype=dtype) for i in irreps_in]
    for what in ("weight", "bias"):
        n = getattr(layer, f"{what}_numel", 0)
        if n and not layer.internal_weights:
            own = () if layer.shared_weights else lead
            own += () if not copies else (more["f_in"], more["f_out"])[what == "bias":]
            out.append(torch.randn(*own, n, dtype=dtype))
    return out


def _close(what: str, mine: Any, theirs: Any, dtype: torch.dtype) -> None:
    if mine is None or theirs is None:  # no gradient: the same as zeros
        left = theirs if mine is None else mine
        assert left is None or not left.any(), f"{what}: there is none, wanted {left}"
        return
    assert mine.shape == theirs.shape and mine.dtype == theirs.dtype, f"{what}: {mine.shape}, wanted {theirs.shape}"
    mine, theirs = mine.detach(), theirs.detach()
    scale = float(theirs.abs().max()) if theirs.numel() else 0
    error = float((mine - theirs).abs().max()) if theirs.numel() else 0
    assert error <= TOLERANCE[dtype] * max(scale, 1), f"{what}: {error} at a size of {scale}"


def _graph(layer: Any, operands: List[torch.Tensor]) -> List[Any]:
    """The result, its gradients, and gradients of the sum of their squares."""
    variables = [*operands, *layer.parameters()]
    z = layer(*operands)
    if not z.requires_grad:
        return [z] + 2 * [None] * len(variables)
    cotangent = torch.cos(torch.arange(z.numel(), dtype=z.dtype)).reshape(z.shape)
    first = torch.autograd.grad(z, variables, cotangent, create_graph=True, allow_unused=True)
    square = sum(((g ** 2).sum() for g in first if g is not None), torch.zeros((), dtype=z.dtype))
    second = [None] * len(variables)
    if square.requires_grad:
        second = list(torch.autograd.grad(square, variables, allow_unused=True))
    return [z, *first, *second]


def _made(drawn: Drawn, mine_of: Any, theirs_of: Any) -> Tuple[str, Any, Any]:
    """Both layers, when both can be made."""
    name, args, more = drawn
    theirs, error = outcome(lambda: getattr(theirs_of, name)(*args, **more))
    mine, wrong = outcome(lambda: getattr(mine_of, name)(*args, **more))
    if isinstance(error, RuntimeError):  # of its generated code, for irreps without elements
        return "neither", None, None
    if error is not None:
        assert isinstance(wrong, type(error)), f"{drawn}: e3nn raises {error!r}, here {wrong!r}"
        return "errors", None, None
    assert wrong is None, f"{drawn}: {wrong!r}"
    return "values", mine, theirs


def compare_made(drawn: Drawn, mine_of: Any, theirs_of: Any) -> str:
    """Compares what a layer shows, or how it is refused; says which: "values", "errors" or "neither"."""
    what, mine, theirs = _made(drawn, mine_of, theirs_of)
    if what == "values":
        _same_surface(mine, theirs)
    return what


def compare(drawn: Drawn, mine_of: Any, theirs_of: Any, dtype: torch.dtype) -> str:
    """The same, with values and gradients."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # constants of e3nn have that of when they are made
    try:
        what, mine, theirs = _made(drawn, mine_of, theirs_of)
    finally:
        torch.set_default_dtype(before)
    if what != "values":
        return what
    _same_surface(mine, theirs)
    if hasattr(theirs, "bias") and theirs.bias.numel():
        torch.nn.init.normal_(theirs.bias)
    mine.load_state_dict(theirs.state_dict())
    if hasattr(theirs, "output_mask"):
        _close("output_mask", mine.output_mask, theirs.output_mask, dtype)
    operands = _operands(theirs, drawn[0], drawn[2], dtype)
    results = [_graph(layer, [x.clone().requires_grad_() for x in operands]) for layer in (mine, theirs)]
    for k, (a, b) in enumerate(zip(*results)):
        _close(f"result {k}", a, b, dtype)
    return what
