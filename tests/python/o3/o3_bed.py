# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What the comparisons with e3nn share: products as arguments of e3nn and as settings of Weft, sets of
them in which every pair of features is met, and when two results are the same."""

import itertools
import os
import random
import re

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="o3 against e3nn: torch is not installed")
e3nn = pytest.importorskip("e3nn", reason="o3 against e3nn: e3nn is not installed")
from e3nn import o3  # noqa: E402

SCALE = int(os.environ.get("WEFT_TEST_SCALE", "100"))
SEED = int(os.environ.get("WEFT_TEST_SEED", "1"))
LONG = os.environ.get("WEFT_TEST_LONG", "") == "1"  # every combination, all of them compiled
MODES = ["uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"]
TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
LIMITS = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}  # relative to the largest element


@pytest.fixture(autouse=True)
def doubles():
    """e3nn in f64, constants included, and without compiling its modules."""
    before, options = torch.get_default_dtype(), e3nn.get_optimization_defaults()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    plain = {"jit_mode": "eager", "jit_script_fx": False, "optimize_einsums": False}
    e3nn.set_optimization_defaults(**{k: v for k, v in plain.items() if k in options})
    yield
    torch.set_num_threads(threads)
    torch.set_default_dtype(before)
    e3nn.set_optimization_defaults(**options)


def triples(lmax):
    for l1, l2 in itertools.product(range(lmax + 1), repeat=2):
        for l3 in range(abs(l1 - l2), min(l1 + l2, lmax) + 1):
            yield l1, l2, l3


def in_layout(x, irreps, layout, back=False):
    """Rows in mul_ir, as e3nn has them, to a layout, or back."""
    if layout == "mul_ir":
        return x
    parts = []
    for s, (mul, ir) in zip(irreps.slices(), irreps):
        shape = (ir.dim, mul) if back else (mul, ir.dim)
        parts.append(x[:, s].reshape(len(x), *shape).swapaxes(1, 2).reshape(len(x), -1))
    return np.concatenate([x[:, :0], *parts], axis=1)


FEW = 16  # numbers that may all be small by chance, while what they are sums of is not
STEP = 1e-6


def close(got, want, kind, summands=1, moves=0.0):
    """Rounding grows with the root of the number of products in an element.  moves: of few numbers, how
    far they move with their inputs, both relative; that is the size of what they are sums of."""
    size = max(np.abs(want).max(initial=0), moves, 1e-30)
    limit = LIMITS[kind] * size * max(1, (summands / 500) ** 0.5)
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= limit, np.abs(got - want).max() / limit * LIMITS[kind]


def stored(x, kind):
    """Numbers in f64 as Weft takes those of a type, bf16 as its bits."""
    x = x.to(TYPES[kind])
    return x.view(torch.int16).numpy().view(np.uint16) if kind == "bf16" else x.numpy()


def widened(x):
    """An array of Weft in f64."""
    if x.dtype == np.uint16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).to(torch.float64).numpy()
    return x.astype(np.float64)


class Product:
    """A tensor product as e3nn's arguments and as the settings of Weft."""

    def __init__(self, in1, in2, out, paths, **settings):
        self.irreps = [o3.Irreps(i) for i in (in1, in2, out)]
        self.paths, self.settings = paths, {"weights": "shared", "type": "f64", **settings}

    @property
    def summands(self):
        """At most so many products are added up in an element of the output."""
        muls = [[mul * ir.dim for mul, ir in irreps] for irreps in self.irreps]
        count = [0] * len(self.irreps[2])
        for i, j, k, mode, *_ in self.paths:
            count[k] += muls[0][i] * (muls[1][j] if mode in ("uvw", "u<vw") else 4)
        return max(count, default=0)

    @property
    def spec(self):
        rows = [f"{i} {j} {k} {mode} {'yes' if w else 'no'} {float(a)!r}"
                for i, j, k, mode, w, a in self.paths]
        words = {"in1": self.irreps[0], "in2": self.irreps[1], "out": self.irreps[2],
                 "paths": ", ".join(rows), **self.settings}
        return "tp; empty=zeros; " + "; ".join(f"{k}={v}" for k, v in words.items())

    def weight_slices(self):
        """Of each path that has weights."""
        at, out = 0, []
        for i, j, k, mode, weighted, _ in self.paths:
            u, v, w = (irreps[m].mul for irreps, m in zip(self.irreps, (i, j, k)))
            n = {"uvw": u * v * w, "uvu": u * v, "uvv": u * v, "uuw": u * w, "uuu": u, "uvuv": u * v,
                 "uvu<v": u * (u - 1) // 2, "u<vw": u * (u - 1) // 2 * w}[mode]
            if weighted:
                out.append(slice(at, at + n))
                at += n
        return out

    def parts(self):
        """Of each operand the irreps and the layout, of the weights those of each path."""
        layout = [self.settings.get(f"layout_{n}", "mul_ir") for n in ("in1", "in2", "out")]
        return {**{n: both for n, both in zip("XYZ", zip(self.irreps, layout))},
                "Wt": self.weight_slices()}

    def shapes(self, module, rows):
        shapes = {"X": (rows, self.irreps[0].dim), "Y": (rows, self.irreps[1].dim)}
        if any(weighted for *_, weighted, _ in self.paths):
            item = self.settings["weights"] == "item"
            shapes["Wt"] = (rows, module.weight_numel) if item else (module.weight_numel,)
        return shapes

    def gradients(self, order, *others):
        """Trials of each order, in these settings and then in others."""
        every, module = [self.settings, *others], self.module()
        d = Derivatives(module, self.shapes(module, 2), {s["type"] for s in every}, order)
        for self.settings in every:
            yield list(d.trials(weft.Program.o3(self.spec), self.parts(), self.settings["type"],
                                self.summands))

    def module(self):
        s = self.settings
        # e3nn takes time to order the sums of a module; many channels are slow without
        many = any(mul > 30 for irreps in self.irreps for mul, _ in irreps)
        e3nn.set_optimization_defaults(optimize_einsums=many)
        variances = {name: [float(v) for v in s[key].split()] for key, name in
                     (("var1", "in1_var"), ("var2", "in2_var"), ("var_out", "out_var")) if key in s}
        return o3.TensorProduct(*self.irreps, self.paths, shared_weights=s["weights"] == "shared",
                                internal_weights=False, irrep_normalization=s.get("norm"),
                                path_normalization=s.get("path_norm"), **variances)


class Trial:
    """A program, arrays for it, and what e3nn makes of them.  `kinds`: more types that hold the same
    numbers."""

    def __init__(self, program, module, irreps, settings, rows=3, inputs=2, summands=1, kinds=()):
        self.irreps, self.summands = irreps, summands
        rng = np.random.default_rng(5)
        shapes = [(rows, i.dim) for i in irreps[:inputs]]
        if "Wt" in {a.name for a in program.args}:
            item = settings["weights"] == "item"
            shapes.append((rows, module.weight_numel) if item else (module.weight_numel,))
        self.given = [torch.from_numpy(rng.standard_normal(s)) for s in shapes]
        for kind in ("f32", "bf16", "f16"):
            if kind in (settings["type"], *kinds):
                self.given = [x.to(TYPES[kind]).to(torch.float64) for x in self.given]
        self.names = [*"XY"[:inputs], "Wt"]
        self.want, self.moves = module(*self.given).numpy(), 0.0
        if self.want.size < FEW:
            moved = [x * (1 + STEP * torch.from_numpy(rng.standard_normal(x.shape))) for x in self.given]
            self.moves = np.abs(module(*moved).numpy() - self.want).max(initial=0) / STEP
        self.set(program, settings)

    def set(self, program, settings):
        """The same numbers for another program."""
        self.program, self.kind = program, settings["type"]
        self.layouts = [settings.get(f"layout_{n}", settings.get("layout", "mul_ir"))
                        for n in ("in1", "in2", "out")]
        self.arrays = {n: stored(x, self.kind) for n, x in zip(self.names, self.given)}
        for n, irreps, layout in zip("XY", self.irreps, self.layouts):
            if n in self.arrays:
                self.arrays[n] = in_layout(self.arrays[n], irreps, layout)
        return self

    def check(self, got):
        got = widened(in_layout(got["Z"], self.irreps[2], self.layouts[2], back=True))
        close(got, self.want, self.kind, self.summands, self.moves)


def outputs(program, got):
    """What a run gave, by name."""
    if isinstance(got, dict):
        return got
    return {a.name: got for a in program.args if a.role == "output"}


def interpret(trial):
    trial.check(outputs(trial.program, trial.program.run(trial.arrays)))


def run_both(*args, **more):
    interpret(Trial(*args, **more))


RESERVED = set("""program axis rows temp const for in let select sqrt max min f16 bf16 f32 f64 inf nan
    """.split())


def numbered(text, k):
    """The declarations and statements of a program, with a number behind each name."""
    text = text[text.index("\n") + 1:]
    return re.sub(r"\b[A-Za-z_]\w*", lambda m: m[0] if m[0] in RESERVED else f"{m[0]}_{k}", text)


def run_compiled(trials):
    """All of them as machine code, in one kernel: the compiler begins once."""
    sizes = ", ".join(f"n_{k}" for k in range(len(trials)))
    text = f"program many({sizes})\n" + "".join(numbered(t.program.text, k)
                                                 for k, t in enumerate(trials))
    given = {f"{n}_{k}": x for k, t in enumerate(trials) for n, x in t.arrays.items()}
    program = weft.Program(text)
    kernel = program.compile()
    assert kernel.info.how in ("memory", "disk", "compiled"), kernel.info.why
    got = outputs(program, kernel(given))
    for k, t in enumerate(trials):
        t.check({a.name: got[f"{a.name}_{k}"] for a in t.program.args if a.role == "output"})


AT_ONCE = 10  # programs in a kernel


class Compiled:
    """Every so many of the trials that it is given, compiled some at a time; in the long run all."""

    def __init__(self, every, at_once=AT_ONCE):
        self.every, self.at_once, self.count, self.waiting = 1 if LONG else every, at_once, 0, []

    def add(self, trial):
        self.count += 1
        if self.count % self.every == 0:
            self.waiting.append(trial)
        if len(self.waiting) == self.at_once:
            self.end()

    def end(self):
        if self.waiting:
            run_compiled(self.waiting)
        self.waiting = []


MULS = {"ones": [1], "equal": [4], "unequal": [5, 2, 3], "zero": [0, 2], "odd": [33], "large": [123],
        "larger": [512]}
FEWER = {**MULS, "odd": [5], "large": [6], "larger": [9]}  # for what would take long
FACTORS = {
    "mode": [*MODES, "mixed"], "layout_in1": ["mul_ir", "ir_mul"], "layout_in2": ["mul_ir", "ir_mul"],
    "layout_out": ["mul_ir", "ir_mul"], "weights": ["shared", "item", "none"], "type": list(TYPES),
    "muls": list(MULS), "muls2": ["ones", "equal", "unequal", "zero"], "l": [0, 1, 2, 3, 4, 5],
    "norm": ["component", "norm", "none"], "path_norm": ["element", "path", "none"],
    "vars": [False, True], "path_weights": [False, True],
}
PRODUCTS = 1500 * SCALE // 100  # or as many as it takes to meet each pair of values; each twice
MANY_PATHS = 20  # every so many
CROSSED = ["mode", "layout_in1", "layout_in2", "layout_out", "weights", "type", "muls", "muls2", "l"]


def covering(seed, wanted):
    """Combinations of FACTORS, greedily chosen until each pair of values has been met.  In the long run
    all combinations of those in CROSSED, the others at random."""
    rng = random.Random(seed - 1 + SEED)
    if LONG:
        for count, values in enumerate(itertools.product(*(FACTORS[n] for n in CROSSED)), 1):
            yield count, {**{n: rng.choice(v) for n, v in FACTORS.items()}, **dict(zip(CROSSED, values))}
        return
    names = list(FACTORS)
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2)
               for x in FACTORS[a] for y in FACTORS[b]}
    count = 0
    while missing or count < wanted:
        best, most = None, -1
        for _ in range(20):
            case = {n: rng.choice(v) for n, v in FACTORS.items()}
            if missing:
                case.update(dict(rng.choice(sorted(missing, key=str)[:50])))
            new = sum(p in missing for p in itertools.combinations(case.items(), 2))
            if new > most:
                best, most = case, new
        missing -= set(itertools.combinations(best.items(), 2))
        count += 1
        yield count, best


def turned(settings, rng):
    """The same product in other layouts and another type, which e3nn does not tell apart."""
    other = {"mul_ir": "ir_mul", "ir_mul": "mul_ir"}
    more = {k: other[v] for k, v in settings.items() if k.startswith("layout")}
    return {**settings, **more, "type": rng.choice([t for t in TYPES if t != settings["type"]])}


def fits(mode, u, v, weighted, rng):
    """The multiplicity of the output of a mode, or None where it does not fit."""
    if mode in ("uuw", "uuu", "uvu<v", "u<vw") and u != v:
        return None
    if mode in ("uvw", "u<vw") and not weighted:
        return None
    many = rng.choice([1, 2, 5])
    return {"uvw": many, "uvu": u, "uvv": v, "uuw": many if weighted else 1, "uuu": u, "uvuv": u * v,
            "uvu<v": u * (u - 1) // 2, "u<vw": many}[mode]


def make(case, rng):
    """A product with the features of a case, as random as they let it be."""
    l, muls, muls2 = case["l"], case.get("sizes", MULS)[case["muls"]], MULS[case["muls2"]]
    if "<" in case["mode"] and max(muls) > 33:
        muls = [33]  # pairs of them are many already
    if case["mode"] in ("uuw", "uuu", "uvu<v", "u<vw"):
        muls2 = muls
    most = {"large": 2, "larger": 1}.get(case["muls"], 3)
    in1 = [(muls[i % len(muls)], (rng.choice([l, rng.randint(0, l)]), rng.choice([1, -1])))
           for i in range(rng.randint(1, most))]
    in2 = [(muls2[i % len(muls2)], (rng.choice([l, rng.randint(0, l)]), rng.choice([1, -1])))
           for i in range(rng.randint(1, most))]
    out, paths = [], []
    for (i, (u, (l1, p1))), (j, (v, (l2, p2))) in itertools.product(enumerate(in1), enumerate(in2)):
        for l3 in range(abs(l1 - l2), min(l1 + l2, 5) + 1):
            mode = rng.choice(MODES) if case["mode"] == "mixed" else case["mode"]
            weighted = case["weights"] != "none" and rng.random() < 0.9
            w = fits(mode, u, v, weighted or case["mode"] in ("uvw", "u<vw"), rng)
            if w is None or w > 2000 or ("<" in mode and u > 40) or (paths and rng.random() < 0.3):
                continue
            weighted = weighted or mode in ("uvw", "u<vw")
            slot = (w, (l3, p1 * p2))
            if slot not in out or rng.random() < 0.7:
                out.append(slot)
            same = [k for k, s in enumerate(out) if s == slot]
            factor = rng.choice([1.0, 0.5, 3.0, 0.0, 0.3]) if case["path_weights"] else 1.0
            paths.append((i, j, rng.choice(same), mode, weighted, factor))
    rng.shuffle(paths)
    del paths[case["most"]:]
    settings = {k: case[k] for k in ("layout_in1", "layout_in2", "layout_out", "type", "norm",
                                     "path_norm")}
    settings["weights"] = "item" if case["weights"] == "item" else "shared"
    if case["vars"]:
        for key, slots in (("var1", in1), ("var2", in2), ("var_out", out)):
            settings[key] = " ".join(repr(rng.choice([1.0, 0.25, 1.7])) for _ in slots)
    return Product(in1, in2, out, paths, **settings)


GRAD_LIMITS = {"f64": 1e-13, "f32": 5e-6, "f16": 4e-3, "bf16": 3e-2}  # f16 and bf16: by three roundings


class Derivatives:
    """Gradients of each order of a function of tensors, as autograd makes them: those of order k take
    the cotangents of the outputs of order k - 1 and give gradients by all of its inputs.  Names are
    those of Weft's programs."""

    def __init__(self, f, shapes, kinds, order, result="Z"):
        self.kinds = kinds
        moved = self.gradients(f, shapes, order, result, STEP)
        self.order = [(given, want, {n: np.abs(want[n] - z) / STEP for n, z in other.items()})
                      for (given, want), (_, other) in zip(self.gradients(f, shapes, order, result), moved)]

    def gradients(self, f, shapes, order, result, step=0.0):
        """Of each order what is given and what comes out; with a step, of numbers that are other by it."""
        self.rng, self.step, out = np.random.default_rng(5), step, []
        inputs = {n: self.draw(shape) for n, shape in shapes.items()}
        outputs = {result: f(*inputs.values())}
        for k in range(1, order + 1):
            inputs, outputs = self.next("d_" if k == 1 else f"d{k}_", inputs, outputs)
            out.append((inputs, {n: z.detach().numpy() for n, z in outputs.items()}))
        return out

    def draw(self, shape):
        x, other = torch.from_numpy(self.rng.standard_normal((2, *shape)))
        for kind in self.kinds:
            x = x.to(TYPES[kind]).to(torch.float64)
        return (x * (1 + self.step * other)).requires_grad_()

    def next(self, prefix, inputs, outputs):
        given = {prefix + n: self.draw(z.shape) for n, z in outputs.items()}
        through = [n for n, z in outputs.items() if z.requires_grad]
        grads = [None] * len(inputs)
        if through:
            grads = torch.autograd.grad([outputs[n] for n in through], list(inputs.values()),
                                        [given[prefix + n] for n in through], create_graph=True,
                                        allow_unused=True)
        grads = {prefix + n: torch.zeros_like(x) if g is None else g
                 for (n, x), g in zip(inputs.items(), grads)}
        return {**inputs, **given}, grads

    def trials(self, program, parts, kind, summands=1, more=None):
        """A trial of each order.  parts: of each operand the irreps and layout, or slices.  more: inputs
        that have no derivative."""
        for given, want, moved in self.order:
            if any(a.role == "input" and a.type[0] in "bf" for a in program.args):
                program = program.grad()
                yield Gradient(program, parts, kind, summands, {**given, **(more or {})}, want, moved)


class Gradient:
    """A program of a gradient, arrays for it and what it should give."""

    def __init__(self, program, parts, kind, summands, given, want, moved):
        self.program, self.parts, self.kind, self.want, self.moved = program, parts, kind, want, moved
        self.limit = GRAD_LIMITS[kind] * max(1, (summands / 500) ** 0.5)
        self.arrays = {}
        for a in program.args:
            if a.role == "input":
                x = given[a.name]
                x = self.arranged(a.name, stored(x.detach(), kind)) if torch.is_tensor(x) else x
                self.arrays[a.name] = x
        if not self.arrays:
            self.arrays["n"] = len(given["X"])  # nothing else tells it

    def arranged(self, name, x, back=False):
        part = self.parts[name.split("_")[-1]]
        return in_layout(x, *part, back=back) if isinstance(part, tuple) else x

    def check(self, got):
        """Each slot of an operand, and the weights of each path, by their own size; few numbers as in
        close()."""
        for name, want in self.want.items():
            if name not in got:  # a program gives no gradient by what it does not read
                assert not want.any(), name
                continue
            mine = widened(self.arranged(name, got[name], back=True))
            assert mine.shape == want.shape, name
            part = self.parts[name.split("_")[-1]]
            for s in part[0].slices() if isinstance(part, tuple) else part:
                error, size, moves = (np.abs(v[..., s]).max(initial=0)
                                      for v in (mine - want, want, self.moved[name]))
                size = max(size, moves) if want[..., s].size < FEW else size
                assert error <= self.limit * size + 1e-290, (name, s, error / max(size, 1e-290), self.kind)
