# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The package itself: programs, kernels, arrays in and out, errors, threads, fork."""

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import weft

SPMM = """
program spmm(m, n, f)
axis I = dense(m), J = compressed(I, n), K = dense(f)
f32 A[I, J], B[n, K], C[I, K]
c: C[i, k] += A[i, j] * B[j, k]
"""
TWICE = "program twice(n)\n{0} X[n], Y[n]\ny: for i in n: Y[i] = X[i] + X[i]\n"
ACCUMULATE = "program acc(n)\nf64 X[n]\ninout f64 Y[n]\ny: for i in n: Y[i] += 2 * X[i]\n"


@pytest.fixture(scope="module")
def spmm():
    return weft.Program(SPMM).compile()


@pytest.fixture
def data(rng):
    a = sp.random(30, 20, 0.2, format="csr", dtype=np.float32, random_state=1)
    a.data[:] = rng.integers(-4, 5, a.nnz)
    return a, rng.integers(-4, 5, (20, 6)).astype(np.float32)


def test_program_tells_its_text_and_arguments():
    p = weft.Program(SPMM)
    assert weft.Program(p.text).text == p.text
    assert [a.name for a in p.args] == ["m", "n", "f", "J.start", "J.coord", "A", "B", "C"]
    assert [a.role for a in p.args] == ["size"] * 3 + ["input"] * 4 + ["output"]
    assert p.args[3].structure and p.args[5].type == "f32" and p.args[6].ndim == 2
    assert "weft_run_spmm(" in p.source
    assert weft.__version__.count(".") == 2


def test_kernel_tells_how_it_came_to_be(spmm):
    assert spmm.info.target == "c" and len(spmm.info.key) == 64 and spmm.info.why == ""
    assert "J_start" in spmm.source and "weft.Kernel c" in repr(spmm)
    assert weft.Program(SPMM).compile().info.how == "memory"


def test_a_schedule_arranges_loops_and_changes_no_result():
    kernel = weft.Program(SPMM).compile()
    start, coord = np.array([0, 2, 2, 4]), np.array([0, 2, 1, 3])
    a = np.array([1.5, 2, -1, 0.5], dtype=np.float32)
    b = np.arange(8, dtype=np.float32).reshape(4, 2)
    for text in ("panel 1; pack 1", "tile 0", None):
        kernel.schedule(text)
        c = kernel(A=a, B=b, J_start=start, J_coord=coord)
        assert c.tolist() == [[8, 11.5], [0, 0], [1, 0.5]]
        assert ("a_B_pack" in kernel.source) == (text == "panel 1; pack 1")
    with pytest.raises(weft.ArgumentError, match="weft list steps"):
        kernel.schedule("tiles 8")


def test_out_is_written_in_place_and_returned(spmm, data):
    a, b = data
    want = a @ b
    out = np.full((30, 6), np.nan, np.float32)
    assert spmm(A=a, B=b, out=out) is out
    np.testing.assert_array_equal(out, want)
    big = np.full((60, 12), np.nan, np.float32)
    view = big[58::-2, ::2]
    assert spmm(A=a, B=b, out={"C": view}) is view
    np.testing.assert_array_equal(view, want)
    assert np.isnan(big[1::2]).all()


def test_results_are_arrays_of_their_own(spmm, data):
    a, b = data
    first = spmm(A=a, B=b)
    kept = first.copy()
    for k in range(3):
        again = spmm(A=a, B=b * 2)
        np.testing.assert_array_equal(again, 2 * kept)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("change", [
    lambda b: np.asfortranarray(b), lambda b: np.repeat(b, 3, axis=1)[:, ::3], lambda b: b[::-1][::-1],
    lambda b: np.frombuffer(b"x" + b.tobytes(), np.uint8)[1:].view(np.float32).reshape(b.shape),
    lambda b: b.tolist(),
])
def test_inputs_of_any_layout(spmm, data, change):
    a, b = data
    np.testing.assert_array_equal(spmm(A=a, B=change(b)), a @ b)


def test_other_structure_and_other_shapes_in_turn(spmm, rng):
    for n in (20, 5, 31, 20, 5):
        a = sp.random(n + 1, n, 0.3, format="csr", dtype=np.float32, random_state=n)
        b = rng.standard_normal((n, n % 4 + 1)).astype(np.float32)
        np.testing.assert_allclose(spmm(A=a, B=b), a @ b, rtol=1e-5, atol=1e-6)
        a.indices[:] = rng.permutation(a.indices)  # in place: the next call sees it
        np.testing.assert_allclose(spmm(A=a, B=b), sp.csr_matrix(
            (a.data, a.indices, a.indptr), shape=a.shape) @ b, rtol=1e-5, atol=1e-6)


def test_structure_arrays_by_name(spmm, data):
    a, b = data
    want = a @ b
    parts = {"J.start": a.indptr, "J.coord": a.indices}
    for kernel in (spmm, weft.Program(SPMM).run):
        np.testing.assert_array_equal(kernel(parts, A=a.data, B=b), want)
        np.testing.assert_array_equal(kernel(**parts, A=a.data, B=b), want)
    np.testing.assert_array_equal(spmm(J_start=a.indptr.astype(np.uint16), J_coord=list(a.indices),
                                       A=a.data, B=b, m=30, n=20, f=6), want)
    np.testing.assert_array_equal(spmm(A=a, B=b), want)  # the sizes are not set any more


@pytest.mark.parametrize("type", ["i32", "i64", "f16", "bf16", "f32", "f64"])
def test_types(type):
    kernel = weft.Program(TWICE.format(type)).compile()
    if type == "bf16":  # the upper half of a float
        x = (np.array([1, -2.5, 3], np.float32).view(np.uint32) >> 16).astype(np.uint16)
        got = (kernel(X=x).astype(np.uint32) << 16).view(np.float32)
        assert got.tolist() == [2, -5, 6]
        return
    x = np.array([1, -2, 3], {"i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8"}[type])
    assert kernel(X=x).dtype == x.dtype and kernel(X=x).tolist() == [2, -4, 6]
    assert kernel(X=[1, -2, 3]).tolist() == [2, -4, 6]
    with pytest.raises(weft.ArgumentError, match="are not known"):
        kernel(X=x.astype(np.complex128))
    with pytest.raises(weft.ArgumentError):
        kernel(X=x.astype("i4" if type == "i64" else "i8"))
    with pytest.raises((weft.ArgumentError, TypeError)):
        kernel(X=x.astype(x.dtype.newbyteorder()))


def test_inout_is_changed_in_place():
    kernel = weft.Program(ACCUMULATE).compile()
    x, y = np.array([1.0, 2, 3]), np.array([10.0, 20, 30])
    assert kernel(X=x, Y=y) is y
    assert kernel(X=x, Y=y).tolist() == [14, 28, 42]
    assert kernel(X=x, Y=[1, 1, 1]).tolist() == [3, 5, 7]
    y.flags.writeable = False
    with pytest.raises(weft.ArgumentError, match="read-only"):
        kernel(X=x, Y=y)


def test_scalars_and_several_outputs():
    p = weft.Program("program p(n)\nf64 X[n], a[], S[], D[n]\ns: for i in n: S[] += a[] * X[i]\n"
                     "d: for i in n: D[i] = X[i] - a[]\n")
    for call in (p.compile(), p.run):
        got = call(X=np.arange(4.0), a=2)
        assert got["S"] == 12 and got["S"].shape == () and got["D"].tolist() == [-2, -1, 0, 1]
    out = {"S": np.zeros(())}
    assert p.compile()(X=np.arange(4.0), a=2, out=out)["S"] is out["S"]
    with pytest.raises(weft.ArgumentError, match="several outputs"):
        p.compile()(X=np.arange(4.0), a=2, out=np.zeros(()))


def test_output_shapes_that_only_the_structure_tells():
    p = weft.Program("program p(m)\naxis I = m, E(I) = seg\nf64 X[I], Y[E]\ny: Y[e] = X[i]\n").compile()
    x = np.array([5.0, 7])
    for count in ([1, 2], [1, 2], [3, 1], [0, 0]):
        got = p(X=x, E_start=np.concatenate([[0], np.cumsum(count)]))
        assert got.tolist() == [5] * count[0] + [7] * count[1]


def test_gradients(data):
    a, b = data
    p = weft.Program(SPMM)
    d_c = np.ones((30, 6), np.float32)
    got = p.grad().compile()(A=a, B=b, d_C=d_c)
    np.testing.assert_array_equal(got["d_B"], a.T @ d_c)
    np.testing.assert_array_equal(got["d_A"], (d_c @ b.T)[a.tocoo().row, a.indices])
    only = p.grad(wrt="B", of=["C"]).compile()(A=a, d_C=d_c, n=20)
    np.testing.assert_array_equal(only, a.T @ d_c)
    tangent = p.grad(wrt="B", forward=True)
    np.testing.assert_array_equal(tangent.compile()(A=a, t_B=b), a @ b)
    soft = weft.Program("program s(n)\nf64 X[n], Z[n]\ntemp f64 T[n]\n"
                        "t: for i in n: T[i] = exp(X[i])\nz: for i in n: Z[i] = T[i] * T[i]\n")
    x = np.linspace(-1, 1, 5)
    for program in (soft.grad(), soft.grad(save="T")):
        given = {"T": np.exp(x)} if any(q.name == "T" for q in program.args) else {"X": x}
        np.testing.assert_allclose(program.compile()(given, d_Z=np.ones(5)), 2 * np.exp(2 * x), 1e-12)
    second = soft.grad().grad(wrt="X")
    assert "d2_X" in second.text


def test_errors_have_the_librarys_words(spmm, data):
    a, b = data
    with pytest.raises(weft.ParseError, match=r"x.weft:1:11: error: "):
        weft.Program("program x(", "x.weft")
    with pytest.raises(weft.CheckError):
        weft.Program("program p(n)\nf32 X[n], Y[n]\ny: for i in n: Y[i] = X[i]\n"
                     "z: for i in n: Y[i] += X[i]\n").compile()
    with pytest.raises(weft.BindError, match="dimension 0 of B is 19"):
        spmm(A=a, B=b[:19], n=20)
    with pytest.raises(weft.BindError, match="B is not bound"):
        spmm(A=a)
    with pytest.raises(weft.ArgumentError, match="has no argument Q; it has m, n, f"):
        spmm(A=a, B=b, Q=b)
    with pytest.raises(weft.ArgumentError, match="give it as out="):
        spmm(A=a, B=b, C=np.zeros((30, 6), np.float32))
    with pytest.raises(weft.ArgumentError, match="n: expected an integer"):
        spmm(A=a, B=b, n=20.0)
    with pytest.raises(weft.ArgumentError, match="no NumPy array"):
        spmm(A=a, B=b, out=[1])
    with pytest.raises(weft.BindError):
        spmm(A=a, B=b, out=np.zeros((30, 7), np.float32))
    with pytest.raises(weft.BindError, match="outside 0..20"):
        spmm(J_start=a.indptr, J_coord=a.indices + 1000, A=a.data, B=b)
    with pytest.raises(weft.BindError, match="shares memory"):
        big = np.zeros((20, 20), np.float32)
        spmm(A=sp.csr_matrix(np.eye(20, dtype=np.float32)), B=big, out=big)
    with pytest.raises(weft.BindError):
        spmm(A=a.data, B=a)
    with pytest.raises(FileNotFoundError):
        weft.Program.read("no/such.weft")
    with pytest.raises(weft.ArgumentError):
        weft.set_threads(-1)
    gather = weft.Program("program g(m, n)\ni64 P[m]\nf32 X[n], Y[m]\n"
                          "y: for i in m: Y[i] = X[P[i]]\n").compile()
    with pytest.raises(weft.RunError):
        gather(P=np.array([7]), X=np.zeros(3, np.float32))
    np.testing.assert_array_equal(spmm(A=a, B=b), a @ b)  # all is well after that
    assert issubclass(weft.RunError, weft.Error) and issubclass(weft.BindError, ValueError)


INTERPRETED = """
import warnings, weft
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    kernel = weft.Program('program y(n)\\naxis I = n\\nf64 X[I], Y[I]\\nY[i] = 2 * X[i]\\n').compile()
assert "y is interpreted" in str(seen[0].message), seen
assert kernel.info.target == "interp" and "interp" in repr(kernel)
assert kernel(X=[1.0, 3.0]).tolist() == [2, 6]
"""


def test_what_is_only_interpreted_warns_once_it_is_compiled():
    env = {**os.environ, "WEFT_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", INTERPRETED], env=env, check=True)


def test_a_built_structure_is_a_kernel():
    text = ("program u(n)\naxis I = n, E(I) = seg : j < n, U(I) = built : load < n\n"
            "i64 C[I, U]\nu: U(i) |= j(e)\nc: for i, u: C[i, u] = 1\n")
    kernel = weft.Program(text).compile()
    assert kernel.info.target == "c"
    got = kernel({"E.start": [0, 2, 2], "E.j": [1, 1]})
    assert got["U.start"].tolist() == [0, 1, 1] and got["C"].tolist() == [1]


def test_same_bits_for_any_number_of_threads(rng):
    kernel = weft.Program(SPMM).compile()
    a = sp.random(3000, 2000, 0.01, format="csr", dtype=np.float32, random_state=3)
    b = rng.standard_normal((2000, 33)).astype(np.float32)
    results = []
    for n in (1, 2, 3, 7, 0):
        weft.set_threads(n)
        results.append(kernel(A=a, B=b).tobytes())
    assert len(set(results)) == 1


def test_calls_from_several_threads(spmm, data):
    a, b = data
    want, bad = a @ b, []

    def work():
        for _ in range(50):
            if not np.array_equal(spmm(A=a, B=b), want):
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad


def test_fork(spmm, data):
    a, b = data
    want = a @ b
    with warnings.catch_warnings():  # that there are threads: this is what is tested
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(spmm(A=a, B=b), want) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_array_equal(spmm(A=a, B=b), want)


def in_python(code, **env):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, text=True,
                          capture_output=True, timeout=120)


def test_verbose_lines_go_to_stderr():
    code = f"import weft, numpy\nweft.Program({TWICE.format('f64')!r}).compile()(X=numpy.ones(3))"
    done = in_python(code, WEFT_VERBOSE="1")
    assert done.returncode == 0 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("weft,compile,twice,c,") and lines[1].startswith("weft,run,twice,c,")
    assert in_python(code, WEFT_VERBOSE="0").stderr == ""


def test_without_a_compiler():
    code = (f"import weft, numpy\nk = weft.Program({TWICE.format('f64')!r}).compile()\n"
            "print(k.info.target, k(X=numpy.ones(3)))\nk(X=numpy.ones(10**8))")
    done = in_python(code, WEFT_DISABLE_JIT="1")
    assert "interp [2. 2. 2.]" in done.stdout and "RuntimeWarning" in done.stderr
    assert "LimitError" in done.stderr and "WEFT_DISABLE_JIT" in done.stderr


def test_import_compiles_nothing(tmp_path):
    done = in_python("import weft; print(weft.__version__)", WEFT_CACHE_DIR=str(tmp_path / "c"),
                     WEFT_CC="/bin/false")
    assert done.returncode == 0 and not (tmp_path / "c").exists()


def test_a_library_that_is_not_there():
    done = in_python("import weft", WEFT_LIBRARY="/nowhere/libweft.so")
    assert "ImportError" in done.stderr and "WEFT_LIBRARY" in done.stderr


def test_held_inputs_are_read_once(data):
    a, b = data
    held = weft.Program(SPMM).compile()
    held.schedule("format J bsr(2, 2)")
    held.hold("A")
    before = a @ b
    for _ in range(2):  # the second has a plan for results that are bound
        assert np.array_equal(held(A=a, B=b), before)
    a.data[:] += 1
    assert np.array_equal(held(A=a, B=b), before)  # nobody has said so
    assert np.array_equal(held(A=a, B=2 * b), 2 * before)
    held.changed("A")
    assert np.array_equal(held(A=a, B=b), a @ b)
    other = a.copy()
    other.data[:] -= 3
    assert np.array_equal(held(A=other, B=b), other @ b)  # another array
    assert np.array_equal(held(A=a, B=b), a @ b)
    held.release("A")
    a.data[:] *= 2
    assert np.array_equal(held(A=a, B=b), a @ b)
    with pytest.raises(weft.ArgumentError, match="not held"):
        held.changed("A")
    with pytest.raises(weft.ArgumentError, match="written by the program"):
        held.hold("C")


def test_held_inputs_stay_held_when_a_size_is_taken_back():
    twice = weft.Program(TWICE.format("f32")).compile()
    x = np.arange(3, dtype=np.float32)
    twice.hold("X")
    assert np.array_equal(twice(X=x, n=3), 2 * x)
    assert np.array_equal(twice(X=x), 2 * x)
    twice.changed("X")
