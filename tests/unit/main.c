/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_unit: every tests/unit/test_*.c in one program. */
#include "unit/test.h"

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
