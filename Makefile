# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# The front door.  CMakeLists.txt is the build description, tests/tree.sh the table of build trees.
.PHONY: build demo check test test-long gpu-check bench coverage format clean

build:
	@tests/tree.sh release

demo: build
	@examples/potential.sh

check:
	@tests/run.sh fast

test:
	@tests/run.sh full

test-long:
	@tests/run.sh long

gpu-check: build
	@tests/gpu/check.sh

bench: build
	@if [ -x bench/run ]; then bench/run; else echo 'no benchmarks yet (bench/run)'; fi

coverage:
	@tests/coverage.sh

format:
	clang-format -i $$(find src include cli tests examples bench -name '*.[ch]')

clean:
	rm -rf build
