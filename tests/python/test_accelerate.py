# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.accelerate where it has to stand back, and weft.restore: devices, calculators in calculators, no
compiler, TorchScript; then what `python -m weft accelerate` says about bad arguments."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("sevenn.calculator")
    from ase.build import bulk
    from ase.calculators.emt import EMT
    from ase.calculators.mixing import SumCalculator
    from e3nn.o3 import Irreps
    from sevenn.nn.convolution import IrrepsConvolution

import weft  # noqa: E402
from weft.models import _specs, _swap  # noqa: E402


def conv():
    """A convolution of SevenNet, small."""
    torch.manual_seed(0)
    return IrrepsConvolution(Irreps("4x0e+4x1e"), Irreps("0e+1e"), Irreps("4x0e+4x1e"), [8, 16],
                             weight_layer_act=torch.nn.functional.silu, lazy_layer_instantiate=False)


def data(model):
    g = torch.Generator().manual_seed(1)
    return {model.key_x: torch.randn(5, 16, generator=g, requires_grad=True),
            model.key_filter: torch.randn(9, 4, generator=g),
            model.key_weight_input: torch.randn(9, 8, generator=g),
            model.key_edge_idx: torch.randint(5, (2, 9), generator=g)}


def results(model):
    """The result, and the gradient of its squares."""
    given = data(model)
    x = given[model.key_x]
    out = model(given)[model.key_x]
    (out ** 2).sum().backward()
    return out.detach(), x.grad


def same(a, b):
    return all(torch.allclose(p, q, rtol=1e-4, atol=1e-5) for p, q in zip(a, b))


class Calculator:
    """What calculators have, as far as accelerate looks."""

    def __init__(self, model):
        self.model = model


def test_restore_undoes_accelerate():
    model = torch.nn.ModuleList([conv()])
    want, before = results(model[0]), dict(model[0].__dict__)
    layer = list(model[0].weight_nn.children())[-1]
    kind = type(layer)
    assert len(weft.accelerate(model).replaced) == 1 and type(layer) is not kind
    assert same(results(model[0]), want)
    report = weft.restore(model)
    assert report and str(report).startswith("ModuleList: 1 modules restored")
    assert type(model[0]) is IrrepsConvolution and type(layer) is kind
    assert model[0].__dict__.keys() == before.keys()
    assert not [name for name in layer.__dict__ if "weft" in name]
    assert all(torch.equal(a, b) for a, b in zip(results(model[0]), want))
    again = weft.restore(model)
    assert not again and "nothing restored: no module is replaced" in str(again)
    assert weft.accelerate(model) and weft.restore(Calculator(model))
    pickle.loads(pickle.dumps(model))


def test_models_elsewhere_are_left_alone():
    model = torch.nn.ModuleList([conv()]).to("meta")
    report = weft.accelerate(model)
    assert not report and "the model is on meta, and kernels run on the CPU" in str(report)
    assert type(model[0]) is IrrepsConvolution


def test_a_model_that_goes_elsewhere_runs_the_stock_way():
    model = conv()
    weft.accelerate(model)
    model.to("meta")
    given = {k: v.to("meta") for k, v in data(model).items()}
    with pytest.warns(RuntimeWarning, match="stock forward: the input is on meta"):
        assert model(given)[model.key_x].shape == (5, 4 * (1 + 1 + 3 + 3 + 3))


def test_calculators_in_calculators():
    parts = [conv(), conv(), conv()]
    wrapped = Calculator(parts[2])
    wrapped.calc, wrapped.model = Calculator(parts[2]), None
    committee = Calculator(None)
    committee.models = parts[:2]
    total = SumCalculator([EMT(), EMT()])
    total.mixer.calcs = [EMT(), committee, wrapped]
    assert len(weft.accelerate(total).replaced) == 3
    assert all(type(m) is not IrrepsConvolution for m in parts)
    assert len(weft.restore(total).replaced) == 3
    atoms = bulk("Cu")
    atoms.calc = wrapped.calc
    assert len(weft.accelerate(atoms).replaced) == 1


def test_what_has_no_model_inside_is_named():
    with pytest.raises(TypeError, match="got SumCalculator, which has .*EMT.* and no torch module"):
        weft.accelerate(SumCalculator([EMT(), EMT()]))
    with pytest.raises(TypeError, match="expected a torch module, or a calculator.*; got int$"):
        weft.accelerate(3)
    with pytest.raises(TypeError, match="expected a torch module, or a calculator"):
        weft.restore("7net-0")


def test_a_scripted_model_is_not_one_to_replace():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(torch.nn.Linear(2, 2))
    assert "the model is TorchScript" in str(weft.accelerate(scripted))


def test_torchscript_gets_the_stock_modules():
    stock, fast = conv(), conv()
    fast.load_state_dict(stock.state_dict())
    weft.accelerate(fast)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scripted = torch.jit.script(fast)
    assert [w for w in said if "weft.restore(model)" in str(w.message)]
    given = {k: v.detach() for k, v in data(stock).items()}
    want = stock(dict(given))[stock.key_x]
    assert torch.allclose(scripted(dict(given))[stock.key_x], want)
    assert type(fast) is IrrepsConvolution and torch.allclose(fast(dict(given))[stock.key_x], want)


@pytest.mark.parametrize("fuse", [None, True])
def test_a_kernel_that_cannot_be_compiled_is_left_to_the_stock_forward(monkeypatch, fuse):
    model = conv()
    want = results(model)
    weft.accelerate(model, fuse_radial=fuse)

    def refuse(*_):
        raise RuntimeError("weft::conv: conv would be interpreted, and this run has about 1e+09 operations")

    monkeypatch.setattr(_specs, "conv", refuse)
    with pytest.warns(RuntimeWarning, match="modules run their stock forward: .*would be interpreted"):
        assert same(results(model), want)
    monkeypatch.undo()
    with pytest.warns(RuntimeWarning, match="stock forward"):  # from then on
        assert same(results(model), want)

    def other(*_):
        raise RuntimeError("weft::conv: something else")

    weft.restore(model)
    weft.accelerate(model)
    monkeypatch.setattr(_specs, "conv", other)
    with pytest.raises(RuntimeError, match="something else"):
        results(model)


def test_a_model_from_elsewhere_without_a_compiler_runs_the_stock_way(monkeypatch):
    model = conv()
    want = results(model)
    weft.accelerate(model)
    monkeypatch.setattr(_swap, "no_compiler", lambda: "no C compiler: none of cc, gcc, clang")
    with pytest.warns(RuntimeWarning, match="stock forward: no C compiler"):
        assert same(results(model), want)


NO_COMPILER = """
import os, sys, warnings
sys.path.insert(0, {folder!r})
warnings.simplefilter("ignore")
from test_accelerate import conv, results
import weft
model = conv()
print(weft.accelerate(model))
results(model)
"""


def test_a_cache_is_no_compiler(tmp_path):
    """What another process has compiled does not make up for a compiler that is not there."""
    path = tmp_path / "script.py"
    path.write_text(NO_COMPILER.format(folder=os.path.dirname(__file__)))
    said = []
    for search in (os.environ["PATH"], "/nonexistent"):
        env = {**os.environ, "PATH": search, "WEFT_CACHE_DIR": str(tmp_path / "cache")}
        env.pop("WEFT_CC", None)
        got = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True)
        assert got.returncode == 0, got.stderr
        said.append(got.stdout)
    assert "1 modules replaced" in said[0] and "convolution over edges" in said[0]
    assert said[1].count("\n") == 1
    assert "nothing replaced: no C compiler: none of cc, gcc, clang is a program on PATH" in said[1]


def command(*words):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    got = subprocess.run([sys.executable, "-m", "weft", "accelerate", *words], env=env,
                         capture_output=True, text=True)
    return got.returncode, got.stdout, got.stderr


@pytest.mark.parametrize("words, line", [
    (["missing.pth"], "weft: error: missing.pth: file not found\n"),
    (["7net-0", "--report", "--structure", "none.xyz"], "weft: error: none.xyz: file not found\n"),
    (["7net-0", "--repeat", "0"], "weft: error: --repeat 0: expected a number of at least 1\n"),
])
def test_the_command_says_in_a_line_what_is_wrong(words, line):
    code, out, err = command(*words)
    assert code == 1 and out == "" and err == line


def test_the_command_says_what_other_packages_refuse(tmp_path, monkeypatch, capsys):
    from weft import __main__ as main

    bad = tmp_path / "bad.model"
    bad.write_text("not a model")
    assert main.main(["accelerate", str(bad), "--kind", "mace"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith(f"weft: error: {bad}: mace cannot load it: ")
    assert "pip install mace-torch" in err or "is it a model of mace?" in err
    strange = tmp_path / "strange.xyz"
    strange.write_text("not atoms")
    assert main.main(["accelerate", "7net-0", "--report", "--structure", str(strange)]) == 1
    assert f"weft: error: {strange}: ASE cannot read it: " in capsys.readouterr().err

    class Ignorant(Calculator):
        def calculate(self, atoms):
            raise ValueError(f"Model do not know atomic number: {atoms.numbers[0]}\nand more")

    monkeypatch.setitem(main._KINDS, "sevennet", lambda name: Ignorant(conv()))
    assert main.main(["accelerate", "7net-0", "--report"]) == 1
    got = capsys.readouterr()
    assert "1 modules replaced" in got.out
    assert got.err == ("weft: error: the model cannot compute silicon: ValueError: Model do not know atomic "
                       "number: 14; --structure FILE gives another structure\n")


def test_names_of_the_package():
    assert {"Any", "List", "import_module"}.isdisjoint(dir(weft))
    assert {"accelerate", "restore", "o3", "models", "spmm", "Program", "__version__"} <= set(dir(weft))
    assert all(getattr(weft, name) is not None for name in dir(weft))
    for module in (weft.masks, weft.o3, weft.torch):
        assert {name for name in dir(module) if not name.startswith("__")} == set(module.__all__)
    assert np.all([not name.startswith("_") or name.startswith("__") for name in dir(weft)])
