/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_unit: every test_*.c below tests/unit, whose folders mirror those of src, in one program. */
#include "unit/test.h"

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
