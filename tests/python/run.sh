#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Installs the package into .venv with pip, as its users do, and runs the tests of this folder.
# `full` installs torch, e3nn, ase and matscipy too, to compare with.  What cannot be installed is skipped.
# Usage: tests/python/run.sh [fast|full] [PYTEST OPTIONS]
set -u
cd "$(dirname "$0")/../.."
tier=${1:-fast}
[ $# = 0 ] || shift
unset WEFT_LIBRARY PYTHONPATH

skip() { echo "skipped: $1: $2"; }
install() { timeout 900 .venv/bin/pip install -q --disable-pip-version-check --retries 1 "$@"; }
has() { .venv/bin/python -c "import $1" 2>/dev/null; }

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
    ! install numpy scipy pytest scikit-build-core; then
    skip "Python package" "numpy, scipy, pytest and scikit-build-core cannot be installed"
    exit 0
fi
if [ "$tier" = full ] && ! { has torch && has e3nn; } &&
    { [ -n "${WEFT_NO_INSTALL:-}" ] || ! install torch==2.13.0 e3nn; }; then
    echo "torch and e3nn cannot be installed"
fi
for peer in ase matscipy; do # each alone: one that cannot be installed does not take the other along
    if [ "$tier" = full ] && ! has $peer && { [ -n "${WEFT_NO_INSTALL:-}" ] || ! install $peer; }; then
        echo "$peer cannot be installed"
    fi
done
install --no-build-isolation --no-deps --force-reinstall . ||
    { echo "pip install . failed"; exit 1; }
exec .venv/bin/python -m pytest -q -p no:cacheprovider tests/python "$@"
