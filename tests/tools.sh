#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Installs every optional tool of the tests that is missing, in one go and before any suite that can
# use one: a suite must not change its course when another installs a tool beside it.  A tool that
# stays missing is no failure: the suites that want it say what they skip.
set -u
cd "$(dirname "$0")/.."
. tests/tool.sh
install_tools "${!package[@]}" || echo "not every tool can be installed here"
for tool in "${!package[@]}"; do
    echo "$tool: $(has "$tool" && { command -v "$tool" || echo installed; } || echo missing)"
done
