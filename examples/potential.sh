#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Run by `make demo`: puts the package and what it needs into .venv and runs potential.py.  Where that
# cannot be installed, says why and runs demo.sh, which needs the built command alone.
# WEFT_NO_INSTALL=1: nothing is fetched; what is not there counts as what cannot be installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."

without() {
    echo "SevenNet-0 is left out: $1"
    echo
    exec "$here/demo.sh"
}
install() { timeout 900 .venv/bin/pip install -q --disable-pip-version-check --retries 1 "$@"; }
has() { .venv/bin/python -W ignore -c "import $1" >/dev/null 2>&1; }
need() { # MODULE PACKAGES: fetched unless the module is there
    has "$1" && return
    [ -z "${WEFT_NO_INSTALL:-}" ] || return 1
    echo "installing ${*:2} into .venv"
    install "${@:2}" && has "$1"
}

python=$(command -v python3) || without "python3 is not installed"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    without "$("$python" --version) is older than 3.10"
[ -x .venv/bin/pip ] || [ -n "${WEFT_NO_INSTALL:-}" ] || "$python" -m venv .venv >/dev/null 2>&1
[ -x .venv/bin/pip ] || without "there is no .venv, and it cannot be made"
need scikit_build_core numpy scikit-build-core 2>/dev/null || without "scikit-build-core cannot be installed"
need torch torch==2.13.0 2>/dev/null || without "torch cannot be installed"
need sevenn.calculator sevenn 2>/dev/null || without "sevenn cannot be installed"
install --no-build-isolation --no-deps --force-reinstall . || without "pip install . failed"
unset WEFT_LIBRARY PYTHONPATH
exec .venv/bin/python examples/potential.py "$@"
