/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the stub compiler "compiles": it puts the key and the value in. */
const char weft_jit_key[] = "KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK";
const char stub_value[] = "VVVVVVVV";

int answer(void)
{
    int v = 0;

    for (const volatile char *p = stub_value; *p != 0; p++)
        v = 10 * v + (*p - '0');
    return v;
}
