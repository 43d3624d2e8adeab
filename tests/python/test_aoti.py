# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A model with Weft's operators, compiled by AOTInductor into a package, which a program in C++ loads and
runs: there is no Python in that process."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import weft  # noqa: E402
import weft.torch  # noqa: E402

INCLUDE = Path(torch.__file__).parent / "include"
LOADER = "torch/csrc/inductor/aoti_package/model_package_loader.h"

PROGRAM = r"""
#include <ATen/ops/from_file.h>
#include <dlfcn.h>
#include <fstream>
#include <iostream>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

static at::Tensor read(const std::string &path, std::vector<int64_t> shape, at::ScalarType type)
{
    return at::from_file(path, false, c10::multiply_integers(shape), at::TensorOptions(type)).view(shape);
}

#ifdef LINKED
static const char *load(char **) { return nullptr; }
#else
static const char *load(char **argv)
{
    void *weft = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL), *ops = dlopen(argv[2], RTLD_NOW);
    const char *(*of)(void) = ops == nullptr ? nullptr :
        reinterpret_cast<const char *(*)(void)>(dlsym(ops, "weft_torch_load"));
    return weft == nullptr || of == nullptr ? dlerror() : of();
}
#endif

/* WEFT LIBRARY, its library of OPERATORS, PACKAGE, FOLDER of arrays, EDGES */
int main(int argc, char **argv)
{
    std::string folder = argc == 6 ? argv[4] : "";
    const char *fault = load(argv);

    if (fault != nullptr) {
        std::cerr << fault << "\n";
        return 1;
    }
    torch::inductor::AOTIModelPackageLoader model(argv[3]);
    int64_t edges = std::stol(argv[5]);
    auto z = model.run({ read(folder + "/x", { 5, 8 }, at::kFloat), read(folder + "/y", { edges, 4 }, at::kFloat),
                         read(folder + "/w", { edges, 16 }, at::kFloat), read(folder + "/rows", { edges }, at::kLong),
                         read(folder + "/cols", { edges }, at::kLong) })[0].contiguous();
    std::ofstream(folder + "/z").write(static_cast<const char *>(z.data_ptr()), z.nbytes());
    return dlsym(RTLD_DEFAULT, "Py_IsInitialized") == nullptr ? 0 : 2; /* 2: this is Python */
}
"""


class Model(torch.nn.Module):
    """A convolution with something of torch before and after it."""

    def __init__(self):
        super().__init__()
        paths = [(0, 0, 0, "uvu", True), (0, 1, 1, "uvu", True)]
        problem = weft.TPProblem("8x0e", "0e + 1o", "8x0e + 8x1o", paths, shared_weights=False)
        self.conv = weft.TensorProductConv(problem)

    def forward(self, x, y, w, rows, cols):
        return torch.tanh(self.conv(x, y, torch.sigmoid(w), rows, cols))


class Programs(torch.nn.Module):
    """A program over a list of edges as it is, and one over rows, which the list is sorted into."""

    LIST = """program several(nnz, m, n)
axis E = nnz : i < m, j < n
axis K = 8, L = 4, Q = 16
f32 X[n, K], Y[E, L], W[E, Q], Z[m, K, L]
z: Z[i(e), k, l] += X[j(e), k] * Y[e, l] * W[e, q]
"""

    def __init__(self):
        super().__init__()
        self.list, self.rows = weft.torch.operator(self.LIST), weft.torch.operator("spmm")

    def forward(self, x, y, w, rows, cols):
        z = self.list(X=x, Y=y, W=torch.sigmoid(w), E_i=rows, E_j=cols, m=x.shape[0])
        return torch.tanh(self.rows(A=torch.stack([cols, rows]), B=z.flatten(1)))


class Layers(torch.nn.Module):
    """Layers that make structure of what they are given: rows and tiles of edges, blocks of a mask, kernel maps."""

    def __init__(self):
        super().__init__()
        self.sage, self.gat = weft.nn.SAGEConv(8, 8), weft.nn.GATConv(8, 4, 2)
        self.rgcn = weft.nn.RGCNConv(8, 8, 3)
        self.near = weft.nn.SparseAttention(8, 2, weft.masks.band(5, 1))
        self.some = weft.nn.SparseAttention(8, 2, weft.masks.of(torch.rand(5, 5) < 0.6))
        self.down = weft.nn.SparseConv3d(8, 8, 2, stride=2, indice_key="down")
        self.up = weft.nn.SparseInverseConv3d(8, 8, 2, indice_key="down")
        self.last = torch.nn.Linear(8, 32)

    def forward(self, x, y, w, rows, cols):
        index = torch.stack([cols, rows])
        h = self.sage(x, index) + self.gat(x, index) + self.rgcn(x, index, rows % 3)
        h = self.near(h) + self.some(h, lengths=rows[:1].new_full((1,), 4))
        places = torch.arange(5) + 0 * rows[0]
        voxels = torch.stack([0 * places, places, places // 2, places % 3], 1)
        h = self.up(self.down(weft.nn.SparseConvTensor(h, voxels, (6, 6, 6), 1))).features
        return self.last(h) + y.sum() * torch.sigmoid(w).sum()


def arrays(edges):
    g = torch.Generator().manual_seed(edges)
    return (torch.randn(5, 8, generator=g), torch.randn(edges, 4, generator=g),
            torch.randn(edges, 16, generator=g), *torch.randint(0, 5, (2, edges), generator=g))


def build(folder, *more):
    """The program; with `more` options it is linked with what it loads otherwise."""
    libraries = Path(torch.__file__).parent / "lib"
    (folder / "run.cpp").write_text(PROGRAM)
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    subprocess.run(["c++", "-std=c++20", "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{INCLUDE}",
                    f"-I{INCLUDE}/torch/csrc/api/include", "run.cpp", "-o", "run", f"-L{libraries}",
                    f"-Wl,-rpath,{libraries}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10", "-ldl",
                    *more],
                   cwd=folder, check=True, timeout=300)
    return folder / "run"


@pytest.mark.skipif(shutil.which("c++") is None or not (INCLUDE / LOADER).exists(),
                    reason="AOTInductor: there is no C++ compiler, or torch has no headers")
@pytest.mark.parametrize("make", [Model, Programs, Layers])
def test_a_package_runs_without_python(make, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    torch.manual_seed(1)
    model, given = make(), arrays(9)
    edges = torch.export.Dim("edges", min=2)
    exported = torch.export.export(model, given, dynamic_shapes=[{}, *[{0: edges}] * 4])
    package = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
    operators = Path(weft.torch_ext_so_path())
    for n, more in ((9, []), (31, ["-DLINKED", operators, f"-Wl,-rpath,{operators.parent}"])):
        program = build(tmp_path, *more)
        for name, array in zip(("x", "y", "w", "rows", "cols"), arrays(n)):
            array.numpy().tofile(tmp_path / name)
        subprocess.run([program, operators.with_name("libweft.so"), operators, package, tmp_path, str(n)],
                       check=True, timeout=120, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
        got = torch.from_file(str(tmp_path / "z"), size=5 * 32).view(5, 32)
        torch.testing.assert_close(got, model(*arrays(n)))


def product():
    """A tensor product and its gradient, whose sizes are those of their arrays, as one graph of torch.fx."""
    problem = weft.TPProblem("8x1o", "1o", "8x0e", [(0, 0, 0, "uvu", True)], shared_weights=False)
    tp = weft.TensorProduct(problem)

    def both(x, y, w):
        x = x.detach().requires_grad_()
        z = tp(x, y, w)
        return z.detach(), torch.autograd.grad(torch.tanh(z).sum(), x)[0]

    return both


@pytest.mark.skipif(shutil.which("c++") is None, reason="AOTInductor: there is no C++ compiler")
def test_a_package_of_a_tensor_product(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    model, given = product(), (torch.randn(7, 24), torch.randn(7, 3), torch.randn(7, 8))
    exported = torch.export.export(make_fx(model)(*given), given)
    package = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
    for got, want in zip(torch._inductor.aoti_load_package(package)(*given), model(*given)):
        torch.testing.assert_close(got, want)
