# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The programs of o3/ against e3nn, where it is installed (tests/python/run.sh full): 3j symbols,
tensor products of every mode, layout, type and normalisation, named forms, linear layers, spherical
harmonics, D matrices.  WEFT_TEST_SCALE is a percentage of the number of random products."""

import itertools
import math
import os
import random
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest

import weft
from weft import _lib

torch = pytest.importorskip("torch", reason="o3 against e3nn: torch is not installed")
e3nn = pytest.importorskip("e3nn", reason="o3 against e3nn: e3nn is not installed")
from e3nn import o3  # noqa: E402

SCALE = int(os.environ.get("WEFT_TEST_SCALE", "100"))
MODES = ["uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"]
TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
LIMITS = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}  # relative to the largest element


@pytest.fixture(autouse=True)
def doubles():
    """e3nn in f64, constants included, and without compiling its modules."""
    before, options = torch.get_default_dtype(), e3nn.get_optimization_defaults()
    torch.set_default_dtype(torch.float64)
    e3nn.set_optimization_defaults(jit_mode="eager", optimize_einsums=False)
    yield
    torch.set_default_dtype(before)
    e3nn.set_optimization_defaults(**options)


def tell(question):
    with _lib.lock:
        return _lib.text(_lib.lib.weft_o3_tell, _lib.context(), question.encode())


def symbol(l1, l2, l3, signs="e3nn"):
    out = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1))
    for line in tell(f"wigner; l={l1} {l2} {l3}; signs={signs}").splitlines():
        m1, m2, m3, value = line.split()
        out[int(m1), int(m2), int(m3)] = float(value)
    return out


def triples(lmax):
    for l1, l2 in itertools.product(range(lmax + 1), repeat=2):
        for l3 in range(abs(l1 - l2), min(l1 + l2, lmax) + 1):
            yield l1, l2, l3


def test_symbols_are_those_of_e3nn():
    for l in triples(6):
        np.testing.assert_allclose(symbol(*l), o3.wigner_3j(*l).numpy(), rtol=0, atol=4e-16)
    for l in ((4, 8, 11), (1, 11, 11)):
        np.testing.assert_allclose(symbol(*l), o3.wigner_3j(*l).numpy(), rtol=0, atol=4e-16)


def test_symbols_of_e3nn_04_differ_by_these_signs():
    # read off e3nn 0.4.4, which does not install beside 0.6; of ascending degrees up to 6
    turned = {(1, 2, 2), (1, 3, 3), (1, 4, 4), (1, 5, 5), (1, 6, 6), (3, 4, 6), (4, 4, 5), (4, 5, 6),
              (5, 5, 5), (5, 6, 6)}
    for l in triples(6):
        sign = -1 if tuple(sorted(l)) in turned else 1
        np.testing.assert_array_equal(symbol(*l, signs="e3nn-0.4"), sign * symbol(*l))


def squared(l1, l2, l3, m1, m2, m3):
    """The square of the complex symbol, as a fraction."""
    f = math.factorial
    total = Fraction(0)
    for k in range(l1 + l2 + l3 + 1):
        below = [k, l1 + l2 - l3 - k, l1 - m1 - k, l2 + m2 - k, l3 - l2 + m1 + k, l3 - l1 - m2 + k]
        if min(below) >= 0:
            total += Fraction((-1) ** k, math.prod(map(f, below)))
    norm = Fraction(f(l1 + l2 - l3) * f(l1 - l2 + l3) * f(l2 + l3 - l1), f(l1 + l2 + l3 + 1))
    ends = math.prod(f(l + m) * f(l - m) for l, m in ((l1, m1), (l2, m2), (l3, m3)))
    return norm * ends * total * total


def test_symbols_are_the_nearest_doubles():
    for l in triples(8):
        c = symbol(*l)
        if sum(l) % 3 and max(l) > 4:
            continue
        for m in zip(*np.nonzero(c)):
            r = [abs(int(k) - n) for k, n in zip(m, l)]
            # the one complex triple of these magnitudes with m1 + m2 = m3
            m1, m2 = next((s * r[0], t * r[1]) for s in (1, -1) for t in (1, -1)
                          if abs(s * r[0] + t * r[1]) == r[2])
            exact = squared(*l, m1, m2, m1 + m2)
            exact *= Fraction(1, 2) if all(r) else 1
            v = abs(c[m])
            low = (Fraction(v) + Fraction(np.nextafter(v, 0.0))) / 2
            high = (Fraction(v) + Fraction(np.nextafter(v, 2.0))) / 2
            assert low * low <= exact <= high * high, (l, m)


def test_rotations_are_those_of_e3nn():
    rng = np.random.default_rng(3)
    for l in range(12):
        angles = rng.uniform(0, 2 * np.pi, 3)
        for parity in "eo":
            rotation = o3.angles_to_matrix(*map(torch.tensor, angles)) * -1
            want = o3.Irrep(f"{l}{parity}").D_from_matrix(rotation).numpy()
            numbers = " ".join(map(repr, rotation.numpy().ravel().tolist()))
            got = np.array(tell(f"D; of={l}{parity}; matrix={numbers}").split(), float)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=1e-11)
            want = o3.Irrep(f"{l}{parity}").D_from_angles(*map(torch.tensor, angles)).numpy()
            got = np.array(tell(f"D; of={l}{parity}; angles={' '.join(map(repr, angles.tolist()))}")
                           .split(), float)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=1e-11)


def test_irreps_are_read_and_sorted_as_by_e3nn():
    rng = random.Random(4)
    for _ in range(100):
        slots = [f"{rng.choice(['', '0x', '2x', '17x'])}{rng.randrange(4)}{rng.choice('eo')}"
                 for _ in range(rng.randrange(7))]
        text = rng.choice(["+", " + "]).join(slots)
        irreps, ask = o3.Irreps(text), lambda what: tell(f"irreps; of={text}; do={what}")[:-1]
        order = irreps.sort()
        assert ask("print") == str(irreps)
        assert ask("dim") == str(irreps.dim) and ask("num") == str(irreps.num_irreps)
        assert ask("simplify") == str(irreps.simplify())
        assert ask("regroup") == str(irreps.regroup())
        assert ask("sort").split("\n") == [str(order.irreps), " ".join(["to", *map(str, order.p)]),
                                           " ".join(["from", *map(str, order.inv)])]
        assert ask("slices").split() == [str(n) for s in irreps.slices() for n in (s.start, s.stop)]
        assert tell(f"irreps; of={text}; do=filter; keep=1o+0e").strip() == str(irreps.filter(["1o", "0e"]))
        assert tell(f"irreps; of={text}; do=filter; drop=1o").strip() == str(irreps.filter(drop=["1o"]))


def in_layout(x, irreps, layout, back=False):
    """Rows in mul_ir, as e3nn has them, to a layout, or back."""
    if layout == "mul_ir":
        return x
    parts = []
    for s, (mul, ir) in zip(irreps.slices(), irreps):
        shape = (ir.dim, mul) if back else (mul, ir.dim)
        parts.append(x[:, s].reshape(len(x), *shape).swapaxes(1, 2).reshape(len(x), -1))
    return np.concatenate([x[:, :0], *parts], axis=1)


def close(got, want, kind, summands=1):
    """Rounding grows with the root of the number of products in an element."""
    limit = LIMITS[kind] * max(np.abs(want).max(initial=0), 1e-30) * max(1, (summands / 500) ** 0.5)
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
        return "tp; " + "; ".join(f"{k}={v}" for k, v in words.items())

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
        self.want = module(*self.given).numpy()
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
        got = widened(in_layout(got, self.irreps[2], self.layouts[2], back=True))
        close(got, self.want, self.kind, self.summands)


def run_both(*args, **more):
    trial = Trial(*args, **more)
    trial.check(trial.program.run(trial.arrays))


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
    kernel = weft.Program(text).compile()
    assert kernel.info.how in ("memory", "disk", "compiled"), kernel.info.why
    got = kernel(given)
    got = got if isinstance(got, dict) else {"Z_0": got}
    for k, t in enumerate(trials):
        t.check(got[f"Z_{k}"])


MULS = {"ones": [1], "equal": [4], "unequal": [5, 2, 3], "zero": [0, 2], "odd": [33], "large": [123],
        "larger": [512]}
FACTORS = {
    "mode": [*MODES, "mixed"], "layout_in1": ["mul_ir", "ir_mul"], "layout_in2": ["mul_ir", "ir_mul"],
    "layout_out": ["mul_ir", "ir_mul"], "weights": ["shared", "item", "none"], "type": list(TYPES),
    "muls": list(MULS), "muls2": ["ones", "equal", "unequal", "zero"], "l": [0, 1, 2, 3, 4, 5],
    "norm": ["component", "norm", "none"], "path_norm": ["element", "path", "none"],
    "vars": [False, True], "path_weights": [False, True],
}
PRODUCTS = 1500 * SCALE // 100  # or as many as it takes to meet each pair of values; each twice
MANY_PATHS, COMPILED, AT_ONCE = 20, 50, 10  # every so many; so many in one kernel


def covering(seed, wanted):
    """Combinations of FACTORS, greedily chosen until each pair of values has been met."""
    rng = random.Random(seed)
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
    l, muls, muls2 = case["l"], MULS[case["muls"]], MULS[case["muls2"]]
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
            if w is None or w > 2000 or ("<" in mode and u > 40) or rng.random() < 0.3:
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


def check_product(product, again):
    """Both programs of a product against one module of e3nn; what is left to be compiled."""
    settings = product.settings
    trial = Trial(weft.Program.o3(product.spec), product.module(), product.irreps, settings, rows=2,
                  summands=product.summands, kinds=[again["type"]])
    trial.check(trial.program.run(trial.arrays))
    product.settings = again
    trial.set(weft.Program.o3(product.spec), again)
    trial.check(trial.program.run(trial.arrays))
    return trial


def test_products_are_those_of_e3nn():
    rng = random.Random(6)
    trials = []
    for count, case in covering(7, PRODUCTS):
        product = make({**case, "most": 100 if count % MANY_PATHS == 0 else 3}, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                trial = check_product(product, turned(product.settings, rng))
                if count % COMPILED == 1:
                    trials.append(trial)
                if len(trials) == AT_ONCE:
                    run_compiled(trials)
                    trials = []
        except BaseException:
            print(case, product.spec)
            raise
    if trials:
        run_compiled(trials)


def test_gradients_are_those_of_e3nn():
    rng = random.Random(8)
    for count, case in covering(9, 0):
        if count > 20:
            break
        case = {**case, "type": "f64", "most": 100, "muls": "unequal", "muls2": "equal", "l": case["l"] % 4}
        product = make(case, rng)
        s, module = product.settings, product.module()
        program = weft.Program.o3(product.spec)
        names = [n for n in ("X", "Y", "Wt") if n in {a.name for a in program.args}]
        shapes = {"X": (2, product.irreps[0].dim), "Y": (2, product.irreps[1].dim),
                  "Wt": (2, module.weight_numel) if s["weights"] == "item" else
                  (module.weight_numel,)}
        data = {n: np.random.default_rng(i).standard_normal(shapes[n]) for i, n in enumerate(names)}
        tensors = [torch.from_numpy(data[n]).requires_grad_() for n in names]
        z = module(*tensors)
        if not z.requires_grad or not product.paths:
            continue
        d_z = np.random.default_rng(9).standard_normal(z.shape)
        z.backward(torch.from_numpy(d_z))
        layouts = dict(zip(("X", "Y", "Z"), zip(product.irreps, (s["layout_in1"], s["layout_in2"],
                                                                  s["layout_out"]))))
        given = {n: in_layout(data[n], *layouts[n]) if n in layouts else data[n] for n in names}
        got = program.grad().run(given, d_Z=in_layout(d_z, *layouts["Z"]))
        for n, tensor in zip(names, tensors):
            want = np.zeros(shapes[n]) if tensor.grad is None else tensor.grad.numpy()
            mine = got[f"d_{n}"]
            mine = in_layout(mine, *layouts[n], back=True) if n in layouts else mine
            assert np.abs(mine - want).max(initial=0) <= 1e-13 * max(np.abs(want).max(initial=0), 1)


IRREPS = ["3x0e + 2x1o", "0o+1e+2x2o", "4x1o", "2x1e+3x2e", "1x0e", "", "0x1o+2x0e"]


def test_named_forms_are_those_of_e3nn():
    for a, b in itertools.product(IRREPS, repeat=2):
        for keep in (None, "0e+1o+1e"):
            for name, cls in (("full", o3.FullTensorProduct), ("elementwise", o3.ElementwiseTensorProduct)):
                if name == "elementwise" and o3.Irreps(a).num_irreps != o3.Irreps(b).num_irreps:
                    continue
                module = cls(a, b, None if keep is None else [ir for _, ir in o3.Irreps(keep)])
                program = weft.Program.o3(f"{name}; in1={a}; in2={b}; type=f64" +
                                          (f"; keep={keep}" if keep else ""))
                run_both(program, module,
                         [module.irreps_in1, module.irreps_in2, module.irreps_out],
                         {"type": "f64", "weights": "shared"})
        out = "2x0e+3x1o+1e+2o"
        for norm in ("component", "norm"):
            module = o3.FullyConnectedTensorProduct(a, b, out, internal_weights=False,
                                                    irrep_normalization=norm)
            program = weft.Program.o3(f"connected; in1={a}; in2={b}; out={out}; type=f64; norm={norm}")
            run_both(program, module, [o3.Irreps(i) for i in (a, b, out)],
                     {"type": "f64", "weights": "shared"})


@pytest.mark.parametrize("norm", ["component", "norm", "none"])
def test_squares_are_those_of_e3nn(norm):
    for a in IRREPS:
        for out in (None, "2x0e+3x1o+1e+2e"):
            options = {"irrep_normalization": norm}
            if out:
                options["internal_weights"] = False
            module = o3.TensorSquare(a, out, **options)
            program = weft.Program.o3(f"square; in1={a}; type=f64; norm={norm}" +
                                      (f"; out={out}" if out else ""))
            run_both(program, module, [module.irreps_in1, module.irreps_in2, module.irreps_out],
                     {"type": "f64", "weights": "shared"}, inputs=1)


def test_norms_are_those_of_e3nn():
    for a in IRREPS:
        for squared_ in (False, True):
            module = o3.Norm(a, squared=squared_)
            program = weft.Program.o3(f"norm; in1={a}; type=f64; squared={'yes' if squared_ else 'no'}")
            run_both(program, module, [module.irreps_in, None, module.irreps_out],
                     {"type": "f64", "weights": "shared"}, inputs=1)


def test_linear_layers_are_those_of_e3nn():
    rng = np.random.default_rng(11)
    for a, b in itertools.product([*IRREPS, "3x0e+2x1o+4x0e+1o", "123x0e+33x1o"], repeat=2):
        for norm, bias, item, layout in (("element", True, False, "mul_ir"),
                                         ("path", False, True, "ir_mul"),
                                         ("element", True, False, "ir_mul")):
            irreps = [o3.Irreps(a), o3.Irreps(b)]
            bias = bias and irreps[0].count("0e") > 0  # e3nn fails where a bias stands alone
            module = o3.Linear(a, b, biases=bias, path_normalization=norm, internal_weights=False,
                               shared_weights=not item)
            program = weft.Program.o3(
                f"linear; in1={a}; out={b}; type=f64; bias={'yes' if bias else 'no'}; layout={layout};"
                f" path_norm={norm}; weights={'item' if item else 'shared'}")
            rows = (3,) if item else ()
            x = rng.standard_normal((3, irreps[0].dim))
            wt = rng.standard_normal((*rows, module.weight_numel))
            given = {"X": in_layout(x, irreps[0], layout), "Wt": wt}
            more = {}
            if module.bias_numel:
                given["Bias"] = rng.standard_normal(module.bias_numel)
                more["bias"] = torch.from_numpy(given["Bias"])
            want = module(torch.from_numpy(x), torch.from_numpy(wt), **more).numpy()
            got = in_layout(program.run(given), irreps[1], layout, back=True)
            close(got, want, "f64")


@pytest.mark.parametrize("norm", ["component", "norm", "integral"])
def test_spherical_harmonics_are_those_of_e3nn(norm):
    rng = np.random.default_rng(12)
    for degrees in (range(12), [0], [1, 3], [2, 2, 0], [5]):
        for normalize in (False, True):
            program = weft.Program.o3(f"sh; l={' '.join(map(str, degrees))}; norm={norm}; type=f64; "
                                      f"normalize={'yes' if normalize else 'no'}")
            x = rng.standard_normal((20, 3))
            x[:3] = [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
            tensor = torch.from_numpy(x).requires_grad_()
            want = o3.spherical_harmonics(list(degrees), tensor, normalize, norm)
            got = program.run(X=x)
            for l in set(degrees):  # each degree by its own size
                at = np.concatenate([np.full(2 * k + 1, k) for k in degrees]) == l
                close(got[:, at], want.detach().numpy()[:, at], "f64")
            if not want.requires_grad:
                continue
            d_y = rng.standard_normal(want.shape)
            want[1:].backward(torch.from_numpy(d_y[1:]))
            d_x = program.grad().run(X=x, d_Y=d_y)
            assert np.isfinite(d_x).all()
            limit = 1e-13 * max(np.abs(tensor.grad.numpy()).max(), 1)
            assert np.abs(d_x[1:] - tensor.grad.numpy()[1:]).max() <= limit


def couplings(irreps, degree, out):
    """The tensors U[m, i1, ..., in] of MACE's symmetric contraction, from their definition: inputs
    are coupled from left to right, and results sorted by irrep after each."""
    slots = list(zip(irreps.slices(), (ir for _, ir in irreps)))
    eye = np.eye(irreps.dim)
    found = [(ir, eye[s]) for s, ir in slots]
    for _ in range(degree - 1):
        found = sorted(found, key=lambda c: c[0])
        more = []
        for left, u in found:
            for s, ir in slots:
                for result in left * ir:
                    c = symbol(result.l, left.l, ir.l) * result.dim ** 0.5
                    wide = np.zeros((result.dim, *u.shape[1:], irreps.dim))
                    wide[..., s] = np.einsum("abc,b...->a...c", c, u)
                    more.append((result, wide))
        found = more
    return [u for ir, u in sorted(found, key=lambda c: c[0]) if ir == out]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_contractions_are_their_definition(degree):
    rng = np.random.default_rng(13)
    mul, rows, elements = 2, 4, 3
    for slots, outs in ((["0e", "1o"], ["0e", "1o"]), (["0e", "1o", "2e"], ["1o", "2e", "0e"])):
        irreps = o3.Irreps("+".join(slots))
        program = weft.Program.o3(
            f"contraction; in1={'+'.join(f'{mul}x{s}' for s in slots)}; correlation={degree}; type=f64; "
            f"out={'+'.join(f'{mul}x{s}' for s in outs)}; layout=ir_mul")
        x = rng.standard_normal((rows, irreps.dim, mul))
        el = rng.integers(0, elements, rows)
        per_slot = [[u for d in range(1, degree + 1) for u in couplings(irreps, d, o3.Irrep(out))]
                    for out in outs]
        wt = rng.standard_normal((elements, sum(map(len, per_slot)), mul))
        want, k = [], 0
        for tensors, out in zip(per_slot, outs):
            z = np.zeros((rows, o3.Irrep(out).dim, mul))
            for u in tensors:
                term = np.broadcast_to(u[None, ..., None], (rows, *u.shape, mul))
                for _ in range(u.ndim - 1):
                    term = np.einsum("n...iu,niu->n...u", term, x)
                z += term * wt[el, k][:, None]
                k += 1
            want.append(z.reshape(rows, -1))
        got = program.run(X=x.reshape(rows, -1), el=el, Wt=wt)
        close(got, np.concatenate(want, axis=1), "f64")
