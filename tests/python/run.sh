#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Installs the package into .venv with pip, as its users do, and runs the tests of this folder.
# `full` installs torch, e3nn, ase, matscipy, sevenn, nequip and torch_geometric too, to compare with, and tries the package
# in an environment with NumPy alone, build/alone, where README.md's first screen has to run as written;
# `install` does only that.  Others run in what it has installed: `models` the tests of torch and of models, `base` those of this
# folder beside them; `o3` and `o3_04` those of that folder: tensor products against e3nn, and against e3nn
# 0.4 and MACE, which need an environment of their own, build/e3nn-0.4.  What cannot be installed is
# skipped.
# Usage: tests/python/run.sh [fast|full|install|base|models|o3|o3_04] [PYTEST OPTIONS]
set -u
cd "$(dirname "$0")/../.."
tier=${1:-fast}
[ $# = 0 ] || shift
unset WEFT_LIBRARY PYTHONPATH

skip() { echo "skipped: $1: $2"; }
install() { timeout 900 .venv/bin/pip install -q --disable-pip-version-check --retries 1 "$@"; }
fetch() { [ -z "${WEFT_NO_INSTALL:-}" ] && install "$@"; } # from outside
has() { .venv/bin/python -c "import $1" 2>/dev/null; }

run() { exec "$1/bin/python" -m pytest -q -p no:cacheprovider "${@:2}"; }

models=(tests/python/test_{accelerate,graph_layers_random,conv3d,torch,torch_operator,forward,torch_e3nn,torch_sparse,examples_torch,aoti,conv_e3nn,sevennet,nequip}.py)
folders=(--ignore tests/python/o3 --ignore tests/python/o3_04)
case $tier in
base | models)
    [ -x .venv/bin/pytest ] || { skip "Python package" "it is not installed"; exit 0; }
    [ "$tier" = models ] && run .venv "${models[@]}" "$@"
    run .venv tests/python "${folders[@]}" "${models[@]/#/--ignore=}" "$@"
    ;;
esac

# It sees the packages of .venv behind its own.
install_04() {
    local env=build/e3nn-0.4
    "$env/bin/python" -c 'import e3nn, sys; sys.exit(e3nn.__version__ != "0.4.4")' 2>/dev/null &&
        ls "$env"/lib/python3*/site-packages/mace >/dev/null 2>&1 && return
    [ -z "${WEFT_NO_INSTALL:-}" ] && rm -rf "$env" && .venv/bin/python -m venv "$env" &&
        .venv/bin/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
            >"$(echo "$env"/lib/python3*/site-packages)/behind.pth" &&
        timeout 600 "$env/bin/pip" install -q --disable-pip-version-check --retries 1 --no-deps \
            e3nn==0.4.4 mace-torch==0.3.16 torch-ema prettytable wcwidth python-hostlist configargparse \
            GitPython gitdb smmap h5py lmdb orjson pandas torchmetrics lightning-utilities
}

if [ "$tier" = o3 ] || [ "$tier" = o3_04 ]; then
    if ! { has torch && has e3nn; }; then
        skip "tensor products against e3nn" "torch and e3nn are not installed"
        exit 0
    fi
    [ "$tier" = o3 ] && run .venv tests/python/o3 "$@"
    install_04 || { skip "e3nn 0.4 and MACE" "they cannot be installed"; exit 0; }
    run build/e3nn-0.4 tests/python/o3_04 "$@"
fi
python=$(command -v python3) || { skip "Python package" "python3 is not installed"; exit 0; }
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))'; then
    skip "Python package" "$("$python" --version) is older than 3.8"
    exit 0
fi
if [ ! -x .venv/bin/pip ] && ! "$python" -m venv .venv; then
    skip "Python package" "python3 -m venv does not work here"
    exit 0
fi
if ! { has numpy && has scipy && has pytest && has scikit_build_core; } &&
    ! fetch numpy scipy pytest scikit-build-core; then
    skip "Python package" "numpy, scipy, pytest and scikit-build-core cannot be installed"
    exit 0
fi
[ "$tier" = fast ] && peers= || peers=yes
if [ -n "$peers" ] && ! { has torch && has e3nn; } &&
    ! fetch torch==2.13.0 e3nn; then
    echo "torch and e3nn cannot be installed"
fi
for peer in ase matscipy sevenn nequip torch_geometric; do # each alone: one that cannot be installed does not take the other along
    if [ -n "$peers" ] && ! has $peer && ! fetch $peer; then
        echo "$peer cannot be installed"
    fi
done
# What `pip install .` does, in its two steps: one wheel for both environments.
rm -rf build/wheel
.venv/bin/pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel . &&
    install --no-deps --force-reinstall build/wheel/weft-*.whl || { echo "pip install . failed"; exit 1; }

# An environment with the package and what it asks for, which is NumPy alone.
alone() {
    rm -rf build/alone
    if ! { [ -z "${WEFT_NO_INSTALL:-}" ] && "$python" -m venv build/alone &&
        timeout 300 build/alone/bin/pip install -q --disable-pip-version-check --retries 1 build/wheel/weft-*.whl; }; then
        skip "the package with NumPy alone" "NumPy cannot be installed"
        return 0
    fi
    (cd build/alone && bin/python "$OLDPWD/tests/python/alone.py") &&
        bash tests/python/readme.sh build/alone .venv
}
[ "$tier" = fast ] || alone || { echo "the package does not work with NumPy alone"; exit 1; }
[ "$tier" = install ] || run .venv tests/python "${folders[@]}" "$@"
