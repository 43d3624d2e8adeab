# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Random irreps and questions about them, put to Weft and to e3nn: answers are compared as plain values,
and where e3nn raises, Weft raises an error of the same kind."""

import random
from typing import Any, Callable, Dict, Tuple


def irrep(rng: random.Random, lmax: int = 4) -> str:
    return f"{rng.randint(0, lmax)}{rng.choice('eo')}"


def irreps(rng: random.Random, slots: int = 5, lmax: int = 4, most: int = 6, zeros: bool = True) -> str:
    """Text of up to so many slots; some have no multiplicity or spaces, some the multiplicity 0."""
    out = []
    for _ in range(rng.randint(0 if zeros else 1, slots)):
        mul = rng.randint(0 if zeros else 1, most)
        out.append(rng.choice(["{}x{}", "{} x {}", " {}x{}"]).format(mul, irrep(rng, lmax)))
        if mul == 1 and rng.random() < 0.7:
            out[-1] = out[-1].split("x")[1]
    return rng.choice(["+", " + "]).join(out)


def plain(x: Any) -> Any:
    """A value without its class: irreps as text, tensors as lists."""
    name = type(x).__name__
    if name in ("Irreps", "Irrep", "_MulIr", "Slot"):
        return str(x)
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, dict):
        return {plain(k): plain(v) for k, v in x.items()}
    if hasattr(x, "tolist"):
        return [round(v, 4) for v in x.double().flatten().tolist()], list(x.shape)
    return x


def outcome(ask: Callable[[], Any]) -> Tuple[Any, Any]:
    """The answer, or the error."""
    try:
        return plain(ask()), None
    except Exception as e:  # of any kind: it is compared
        return None, e


def compare(question: str, mine: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    answer, wrong = outcome(mine)
    wanted, error = outcome(theirs)
    if isinstance(error, AssertionError):  # of an assert statement of e3nn 0.4, which no caller catches
        assert isinstance(wrong, (ValueError, TypeError, AssertionError)), f"{question}: here {answer!r} {wrong!r}"
    elif error is not None:
        assert isinstance(wrong, type(error)), f"{question}: e3nn raises {error!r}, here {answer!r} {wrong!r}"
    else:
        assert wrong is None, f"{question}: {wrong!r}, wanted {wanted!r}"
        assert answer == wanted, f"{question}: {answer!r}, wanted {wanted!r}"


def questions(rng: random.Random) -> Dict[str, Callable[[Any], Any]]:
    """By their text: functions of a package, which is weft or e3nn.o3."""
    a, b, ir, other = irreps(rng), irreps(rng), irrep(rng), irrep(rng)
    i, j, n, step = rng.randint(-6, 6), rng.randint(-6, 6), rng.randint(-2, 3), rng.choice([None, 2, -1])
    start, stop = sorted((rng.randint(0, 20), rng.randint(0, 20)))
    lmax, p = rng.randint(0, 5), rng.choice([1, -1])
    word = rng.choice(["bla", "1q", "-1x0e", "0e+", "1x2x0e", "1.0x0e", "3x-1e", "0e 1e", "e", "2x", "1x1o+x"])
    odd = rng.choice([5, [(1,)], [(1, 2, 3, 4)], [(-1, "0e")], [(2, (1, 3))], [("2", "0e")], [(1.5, "0e")],
                      [(3, 1)], ["0e", 3], [None], object()])

    texts = {f"Irreps({a!r}){end}": ask for end, ask in {
        "": lambda x: x, " of repr": repr, ".dim": lambda x: x.dim, ".num_irreps": lambda x: x.num_irreps,
        ".ls": lambda x: x.ls, ".lmax": lambda x: x.lmax, ".slices()": lambda x: x.slices(),
        ".sort()": lambda x: x.sort(), ".sort().inv": lambda x: x.sort().inv, ".simplify()": lambda x: x.simplify(),
        ".regroup()": lambda x: x.regroup(), " sorted": sorted, " length": len,
        " pairs": lambda x: [tuple(s) for s in x],
        " fields": lambda x: [(s.mul, s.ir.l, s.ir.p, s.dim, s.ir.dim) for s in x], " true": bool,
        ".remove_zero_multiplicities()": lambda x: x.remove_zero_multiplicities(),
        f".count({ir})": lambda x: x.count(ir), f" has {ir}": lambda x: ir in x, " has None": lambda x: None in x,
        f"[{i}]": lambda x: x[i], f"[{i}:{j}:{step}]": lambda x: x[i:j:step], f"*{n}": lambda x: x * n,
        f"{n}*": lambda x: n * x, "*1.5": lambda x: x * 1.5, "**2": lambda x: x ** 2, "-1": lambda x: x - 1,
        " == itself": lambda x: x == type(x)(a), f" == Irreps({b!r})": lambda x: x == type(x)(b),
        f" != Irreps({b!r})": lambda x: x != type(x)(b), " == 3": lambda x: x == 3, f" + {b!r}": lambda x: x + b,
        " + None": lambda x: x + None, " as a sum": lambda x: list(x) + list(type(x)(b)),
        f".filter(lmax={lmax})": lambda x: x.filter(lmax=lmax), 
        f".filter([{ir}, {other}])": lambda x: x.filter(keep=[ir, other]),
        f".filter(drop=[{ir}, {other}])": lambda x: x.filter(drop=[ir, other]),
        ".filter(even)": lambda x: x.filter(lambda s: s.ir.p == 1),
        ".filter(both)": lambda x: x.filter("0e", lmax=2),
        f".slice_by_mul[{start}:{stop}]": lambda x: x.slice_by_mul[start:stop],
        ".slice_by_mul[2]": lambda x: x.slice_by_mul[2], ".index": lambda x: x.index("0e"),
        ".randn": lambda x: x.randn(2, -1, 3).shape, ".randn twice": lambda x: x.randn(2, 3),
        f" in a set with {b!r}": lambda x: len({x, type(x)(b)}),
        " by number": lambda x: list(map(tuple, enumerate(x)))}.items()}
    out: Dict[str, Callable[[Any], Any]] = {
        q: lambda o3, ask=ask: ask(o3.Irreps(a)) for q, ask in texts.items()}
    out.update({
        f"Irrep({ir!r})*{other!r}": lambda o3: list(o3.Irrep(ir) * o3.Irrep(other)),
        f"{n}*Irrep({ir!r})": lambda o3: n * o3.Irrep(ir),
        f"Irrep({ir!r}) + {other!r}": lambda o3: o3.Irrep(ir) + o3.Irrep(other),
        f"Irrep({ir!r}) < {other!r}": lambda o3: [o3.Irrep(ir) < o3.Irrep(other), o3.Irrep(ir) == o3.Irrep(other),
                                                  o3.Irrep(ir) <= o3.Irrep(other), o3.Irrep(ir) != o3.Irrep(other)],
        f"Irrep({ir!r}) facts": lambda o3: [(x.l, x.p, x.dim, x.is_scalar(), str(x))
                                            for x in [o3.Irrep(ir)]],
        f"Irrep({lmax}, {p})": lambda o3: o3.Irrep(lmax, p), f"Irrep({lmax})": lambda o3: o3.Irrep(lmax),
        f"Irrep({word!r})": lambda o3: o3.Irrep(word), f"Irrep({odd!r})": lambda o3: o3.Irrep(odd),
        f"Irrep.iterator({lmax})": lambda o3: list(o3.Irrep.iterator(lmax)),
        f"Irreps.spherical_harmonics({lmax}, {p})": lambda o3: o3.Irreps.spherical_harmonics(lmax, p),
        f"Irreps({word!r})": lambda o3: o3.Irreps(word), f"Irreps({odd!r})": lambda o3: o3.Irreps(odd),
        f"Irreps of {ir!r}": lambda o3: o3.Irreps(o3.Irrep(ir)),
        f"Irreps of a list with {ir!r}": lambda o3: o3.Irreps([(n, ir), (2, o3.Irrep(other)), ir, o3.Irrep(ir),
                                                              (3, (lmax, p))]),
        f"sum of {a!r}, {b!r}": lambda o3: sum([o3.Irreps(b)], o3.Irreps(a)),
    })
    return out
