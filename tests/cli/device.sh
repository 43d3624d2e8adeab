#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Kernels of a device from the command: run -t opencl, emit, and what is refused.
. "$(dirname "$0")/lib.bash"

cat >product.txt <<'END'
C f32 [3, 2]
     8  11.5
     0     0
     1   0.5
END
files="--in A=a.mtx --in B=b.mtx"

try "targets" 0 weft list targets
out "opencl"
try "no driver" 1 env OCL_ICD_VENDORS=/nonexistent OCL_ICD_FILENAMES= "$WEFT" run spmm.weft -t opencl $files
err "OpenCL"
none stdout
try "emit" 0 weft emit spmm.weft -t opencl
out "WEFT_KERNEL(WEFT_BLOCKS("
out "weft_run_spmm_kernel_0: c; iterations 0..m, a warp for each"
try "emit to a file" 0 weft emit spmm.weft -t opencl -o product
[ -s product.cl ] && [ ! -e product.c ] && [ ! -e product.h ]
verdict "emit to a file writes product.cl alone" $?
if command -v clang >/dev/null && clang -x cl -cl-std=CL1.2 -fsyntax-only -Xclang -finclude-default-header - </dev/null 2>/dev/null; then
    try "the text compiles without a warning" 0 clang -x cl -cl-std=CL1.2 -fsyntax-only -Wall -Wextra \
        -Xclang -finclude-default-header product.cl
    none stderr
else
    echo "skipped: the text of kernels by clang: it is not installed"
fi

# Sanitizers of the command would see into the driver.
case $WEFT in
*asan* | *ubsan* | *tsan*) finish ;;
esac
if ! weft run spmm.weft -t opencl $files >/dev/null 2>stderr.txt && grep -q "there is no OpenCL\|has no device" stderr.txt; then
    echo "skipped: kernels on a device: OpenCL has none here"
    finish
fi
try "run" 0 weft run spmm.weft -t opencl $files
same product.txt
none stderr
cat >square.weft <<'END'
program square(n)
axis I = n, E(I) = seg : j < n, U(I) = built : load < n
f64 A[E], C[I, U]
sym: for i, e, f in E(j(e)): U(i) |= j(f)
num: for i, e, f in E(j(e)): C[i, j(f)] += A[e] * A[f]
END
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 2\n2 3 3\n3 1 4\n' >p.mtx
try "a built axis" 1 weft run square.weft -t opencl --in A=p.mtx
err "U is a built axis, and a device does not build structure"
cat >wrong.weft <<'END'
program wrong(n)
axis I = n
i64 Y[I]
Y[i] = (i + 4000000000) * (i + 5000000000)
END
try "a fault, interpreted" 1 weft run wrong.weft -t interp --set n=40
cp stderr fault.txt
try "a fault is told as everywhere" 1 weft run wrong.weft -t opencl --set n=40
diff fault.txt stderr >/dev/null
verdict "the fault is the same text" $? ""
finish
