/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Cubins of the tests, by file and variant. */
#include "gpu/self/self.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const variant_name[VARIANTS] = { "o3", "o1", "g" };

enum { CODES = 16 };
static struct {
    char path[SASS_TEXT];
    Sass *code;
} loaded[CODES];

const Sass *self_code(const char *file, const char *variant)
{
    const char *dir = getenv("WEFT_SASS_CUBINS");
    char path[SASS_TEXT], why[SASS_TEXT] = "";
    int k = 0;

    if (dir == NULL)
        test_skip(
            "WEFT_SASS_CUBINS names no folder: tests/gpu/sass.sh compiles the kernels and sets it");
    snprintf(path, sizeof path, "%s/%s-%s.cubin", dir, file, variant);
    while (k < CODES && loaded[k].code != NULL) {
        if (strcmp(loaded[k].path, path) == 0)
            return loaded[k].code;
        k++;
    }
    CHECK(k < CODES);
    loaded[k].code = sass_load(path, why);
    if (loaded[k].code == NULL)
        test_fail(__FILE__, __LINE__, "%s", why);
    memcpy(loaded[k].path, path, sizeof path);
    return loaded[k].code;
}

void self_run(SassGpu *gpu, const Sass *code, const char *name, SassShape shape,
              const SassParams *params)
{
    const SassKernel *k = sass_kernel(code, name);

    if (k == NULL)
        test_fail(__FILE__, __LINE__, "there is no kernel %s", name);
    sass_limit(gpu, 20000000);
    if (!sass_launch(gpu, k, &shape, params))
        test_fail(__FILE__, __LINE__, "%s", sass_error(gpu, 0));
}
