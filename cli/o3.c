/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft tp, linear, sh: programs over irreps, for the other commands to go on with.  weft irreps,
 * wigner: facts about them.  Options are settings of the library's text, so none is known here. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Line { /* the text that the library reads */
    char *text;
    size_t n, cap;
} Line;

static bool put(Line *l, const char *s)
{
    size_t n = strlen(s);

    if (l->text == NULL || l->n + n + 1 > l->cap) {
        size_t cap = 2 * (l->n + n + 64);
        char *more = realloc(l->text, cap);

        if (more == NULL)
            return false;
        l->text = more;
        l->cap = cap;
    }
    memcpy(l->text + l->n, s, n + 1);
    l->n += n;
    return true;
}

/* "; key=value", with - in the key as _. */
static bool put_setting(Line *l, const char *key, const char *value)
{
    size_t from = l->n + 2;

    if (!put(l, "; ") || !put(l, key) || !put(l, "=") || !put(l, value))
        return false;
    for (char *s = l->text + from; *s != '='; s++)
        *s = *s == '-' ? '_' : *s;
    return true;
}

/* Arguments in order become the settings of `names`; --key value becomes key=value, and --form the
 * form.  EXIT_GOOD, or the code to leave with. */
static int read_line(const Command *c, int argc, char **argv, const char *const *names, Line *l)
{
    bool good = true;
    int given = 0;

    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--form") == 0) {
            l->n = 0;
            good = put(l, argv[i + 1]);
        }
    for (int i = 1; i < argc; i++) {
        bool option = strncmp(argv[i], "--", 2) == 0;

        if (option && i + 1 == argc)
            return cli_usage(c, "%s needs a value", argv[i]);
        if (!option && names[given] == NULL)
            return cli_usage(c, "%s is one argument too many", argv[i]);
        if (strchr(argv[i], ';') != NULL || (option && strchr(argv[i + 1], ';') != NULL))
            return cli_usage(c, "a ; in an argument");
        if (option && strcmp(argv[i], "--form") != 0)
            good = good && put_setting(l, argv[i] + 2, argv[i + 1]);
        else if (!option)
            good = good && put_setting(l, names[given++], argv[i]);
        i += option;
    }
    if (!good)
        fprintf(stderr, "weft: error: out of memory\n");
    return good ? EXIT_GOOD : EXIT_FAILED;
}

static int show_program(const char *line)
{
    weft_ctx *ctx = cli_ctx();
    weft_prog *prog;
    weft_status made = weft_prog_o3(ctx, line, &prog);
    int code = cli_print(ctx, made, prog);

    cli_free(ctx);
    return code;
}

static int show_facts(const char *line)
{
    weft_ctx *ctx = cli_ctx();
    const char *text;
    int code = EXIT_GOOD;

    if (weft_o3_tell(ctx, line, &text) == WEFT_OK)
        fputs(text, stdout);
    else
        code = cli_failed(ctx);
    cli_free(ctx);
    return code;
}

static int answer(const Command *c, int argc, char **argv, const char *form,
                  const char *const *names, bool program)
{
    Line l = { 0 };
    int code = put(&l, form) ? read_line(c, argc, argv, names, &l) : EXIT_FAILED;

    if (code == EXIT_GOOD)
        code = program ? show_program(l.text) : show_facts(l.text);
    free(l.text);
    return code;
}

static int tp(const Command *c, int argc, char **argv)
{
    static const char *const names[] = { "in1", "in2", "out", NULL };

    return answer(c, argc, argv, "tp", names, true);
}

static int linear(const Command *c, int argc, char **argv)
{
    static const char *const names[] = { "in1", "out", NULL };

    return answer(c, argc, argv, "linear", names, true);
}

static int sh(const Command *c, int argc, char **argv)
{
    static const char *const names[] = { "lmax", NULL };

    return answer(c, argc, argv, "sh", names, true);
}

static int irreps(const Command *c, int argc, char **argv)
{
    static const char *const names[] = { "of", "do", NULL };

    return answer(c, argc, argv, "irreps", names, false);
}

/* Three degrees are one setting. */
static int wigner(const Command *c, int argc, char **argv)
{
    static const char *const names[] = { "l", NULL };
    Line degrees = { 0 };
    int code = EXIT_FAILED;

    if (argc < 4)
        return cli_usage(c, "three degrees, as in weft wigner 1 1 2");
    if (put(&degrees, argv[1]) && put(&degrees, " ") && put(&degrees, argv[2]) &&
        put(&degrees, " ") && put(&degrees, argv[3])) {
        argv[3] = degrees.text;
        code = answer(c, argc - 2, argv + 2, "wigner", names, false);
    }
    free(degrees.text);
    return code;
}

const Command cmd_tp = {
    "tp",
    "print the program of a tensor product of irreps",
    "usage: weft tp IN1 IN2 [OUT] [--mode MODE] [--paths LIST] [--SETTING VALUE]...\n"
    "       weft tp --form FORM [IN1 [IN2 [OUT]]] [--SETTING VALUE]...\n\n"
    "MODE is uvw (all channels with all, to OUT), uvu, uvv, uuw, uuu, uvuv, uvu<v or u<vw.  In\n"
    "uvu, uvv, uuu, uvuv and uvu<v every allowed product has a slot of its own, and OUT says\n"
    "which irreps to keep.  LIST is slots and modes one by one: '0 0 0 uvw yes 1.0, 0 1 1 uvu'.\n"
    "FORM is connected, full, elementwise, square, norm or contraction (with --in1 and --out).\n\n"
    "  --type f32|f64|f16|bf16              elements; --weight-type: of the weights\n"
    "  --layout mul_ir|ir_mul               or --layout-in1, --layout-in2, --layout-out\n"
    "  --weights shared|item|none           one set for all items, or one for each\n"
    "  --norm component|norm|none           --path-norm element|path|none\n"
    "  --var1 LIST --var2 LIST --var-out LIST    variances of the slots\n"
    "  --signs e3nn|e3nn-0.4                of the 3j symbols\n"
    "  --order out|in                       paths by output slot, or by pairs of inputs\n"
    "  --keep IRREPS                        of full, elementwise, square: outputs to keep\n"
    "  --empty refuse|zeros                 no path: an error, or a result of 0\n\n"
    "docs/tensor-products.md has the formulas.\n\n"
    "examples:\n"
    "  weft tp '8x0e + 8x1o' '0e + 1o' '0e + 1o' --mode uvu --weights item\n"
    "  weft tp 8x0e+8x1o 0e+1o 4x1o --mode uvw --type f64\n"
    "  weft tp --form square 4x1o --keep 0e+2e\n"
    "  weft tp --form contraction --in1 8x0e+8x1o --out 8x0e --correlation 3\n",
    tp,
};

const Command cmd_linear = {
    "linear",
    "print the program of a linear layer of irreps",
    "usage: weft linear IN OUT [--bias yes] [--paths LIST] [--SETTING VALUE]...\n\n"
    "Mixes the channels of each irrep.  Settings: type, layout, weights, path-norm, empty, as of\n"
    "weft tp.\n\n"
    "examples:\n"
    "  weft linear 8x0e+4x1o 16x0e+2x1o --bias yes\n",
    linear,
};

const Command cmd_sh = {
    "sh",
    "print the program of real spherical harmonics",
    "usage: weft sh LMAX [--SETTING VALUE]...   or   weft sh --l '1 3' ...\n\n"
    "  --norm component|norm|integral\n"
    "  --normalize yes                      the vectors first\n"
    "  --type f32|f64|f16|bf16\n\n"
    "examples:\n"
    "  weft sh 3 --normalize yes\n"
    "  weft sh 3 --type f64 | weft grad\n",
    sh,
};

const Command cmd_irreps = {
    "irreps",
    "read, sort, simplify or measure irreps",
    "usage: weft irreps IRREPS [print|dim|num|lmax|sort|simplify|regroup|slices]\n"
    "       weft irreps IRREPS filter --keep IRREPS | --drop IRREPS\n\n"
    "sort also prints where each slot goes (to), and where each came from (from).\n\n"
    "examples:\n"
    "  weft irreps '128x0e + 64x1o' dim\n"
    "  weft irreps 1o+0e+1o sort\n",
    irreps,
};

const Command cmd_wigner = {
    "wigner",
    "print a Wigner 3j symbol in the real basis",
    "usage: weft wigner L1 L2 L3 [--signs e3nn|e3nn-0.4]\n\n"
    "Prints the coefficients that are not 0, one a line: m1 m2 m3 value, each m from 0.\n\n"
    "examples:\n"
    "  weft wigner 1 1 2\n",
    wigner,
};
