#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# tests/valgrind.sh PROGRAM: memcheck, with 0 errors and 0 definite or possible leaks (G24).
set -u
. "$(dirname "$0")/tool.sh"
need valgrind "valgrind memcheck" || exit 0
WEFT_TEST_SCALE=1 WEFT_TEST_MEMCHECK=1 exec valgrind --quiet --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible --show-leak-kinds=definite,possible "$@"
