/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From the text of an instruction, "@!P0 IMAD.WIDE R2, R0, R3, c[0x0][0x160]", to operands that are
 * ready to be used.  What a function of the interpreter does not know is an error when it runs. */
#include "gpu/sass/sass_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const mod_names[] = {
#define MOD(id, text) text,
#include "gpu/sass/mods.def"
#undef MOD
};

int mod_find(const char *name, size_t n)
{
    for (int m = 0; m < MODS; m++)
        if (strncmp(mod_names[m], name, n) == 0 && mod_names[m][n] == 0)
            return m;
    return -1;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* "R12", "UR4", "RZ", "P0", "UPT": the kind and the number; returns the length, or 0. */
static size_t read_register(const char *s, Arg *a)
{
    const bool u = s[0] == 'U' && (s[1] == 'R' || s[1] == 'P');
    const char *p = s + u, kind = *p++;
    char *end;

    if ((kind != 'R' && kind != 'P') || (*p != 'Z' && *p != 'T' && (*p < '0' || *p > '9')))
        return 0;
    a->kind = kind == 'R' ? (u ? ARG_UREG : ARG_REG) : u ? ARG_UPRED : ARG_PRED;
    if (*p == 'Z' || *p == 'T') {
        a->reg = *p == 'T' ? PT : u ? URZ : RZ;
        return (size_t)(p + 1 - s);
    }
    a->reg = (int)strtol(p, &end, 10);
    return (size_t)(end - s);
}

/* ".reuse", ".64", ".H0_H0", ".X4" after a register of an operand or of an address. */
static void read_suffix(const char *s, Arg *a)
{
    while (*s == '.') {
        s++;
        if (starts(s, "64"))
            a->wide = true;
        else if (starts(s, "U32"))
            a->narrow = true;
        else if (starts(s, "H0"))
            a->part = 'h';
        else if (starts(s, "H1"))
            a->part = 'H';
        else if (s[0] == 'B' && s[1] >= '0' && s[1] <= '3')
            a->part = (char)('b' + s[1] - '0');
        else if (*s == 'X')
            a->scale = atoi(s + 1);
        while (*s != 0 && *s != '.')
            s++;
    }
}

/* "[R2.64+0x10]", "[R3.X4+UR4+-0x20]", or what stands in the second bracket of a constant. */
static void read_address(char *s, Arg *a)
{
    a->scale = 1;
    a->reg = RZ;
    a->ureg = URZ;
    while (*s != 0 && *s != ']') {
        Arg part = { .scale = 1 };
        size_t n = strcspn(s, "+]");
        const char end = s[n];

        s[n] = 0;
        if (read_register(s, &part) > 0) {
            read_suffix(s + strcspn(s, "."), &part);
            if (part.kind == ARG_UREG) {
                a->ureg = part.reg;
            } else {
                a->reg = part.reg;
                a->scale = part.scale;
                a->wide = part.wide;
                a->narrow = part.narrow;
            }
        } else {
            a->value += strtoll(s, NULL, 0);
        }
        s[n] = end;
        s += n + (end == '+');
    }
}

static bool read_number(const char *s, Arg *a)
{
    char *end;

    a->kind = ARG_VALUE;
    if (strstr(s, "0x") != NULL) {
        a->value = (int64_t)strtoull(s + (*s == '-'), &end, 16);
        a->value = *s == '-' ? -a->value : a->value;
        return *end == 0;
    }
    a->decimal = true;
    if (strstr(s, "QNAN") != NULL || strstr(s, "SNAN") != NULL) {
        a->number = *s == '-' ? -__builtin_nan("") : __builtin_nan("");
        return true;
    }
    if (strstr(s, "INF") != NULL) {
        a->number = *s == '-' ? -__builtin_inf() : __builtin_inf();
        return true;
    }
    a->number = strtod(s, &end);
    a->value = (int64_t)(a->number > -9e18 && a->number < 9e18 ? a->number : 0);
    return end != s && *end == 0;
}

static bool read_arg(char *s, Arg *a)
{
    size_t n = strlen(s);

    while (n > 0 && s[n - 1] == ' ')
        s[--n] = 0;
    if (*s == '!' || *s == '~') {
        a->inv = true;
        s++;
    }
    if (*s == '-' && (s[1] == 'R' || s[1] == 'U' || s[1] == 'c' || s[1] == '|')) {
        a->neg = true;
        s++;
    }
    if (*s == '|') {
        a->abs = true;
        s++;
        *strrchr(s, '|') = '.'; /* what follows is a suffix */
    }
    if (starts(s, "c[")) {
        a->bank = (int)strtol(s + 2, &s, 0);
        a->kind = ARG_CONST;
        read_address(s + 2, a);
        return true;
    }
    if (*s == '[') {
        a->kind = ARG_MEM;
        read_address(s + 1, a);
        return true;
    }
    if (starts(s, "desc[") && strchr(s, ']') != NULL)
        return read_arg(strchr(s, ']') + 1, a);
    n = read_register(s, a);
    if (n > 0 && (s[n] == 0 || s[n] == '.')) {
        read_suffix(s + n, a);
        return true;
    }
    a->kind = ARG_NONE;
    if (strchr("-+0123456789.", *s) != NULL && *s != 0)
        return read_number(s, a);
    a->kind = ARG_NAME;
    snprintf(a->name, sizeof a->name, "%s", s);
    return starts(s, "SR") || starts(s, "SB") || strcmp(s, "PR") == 0 ||
           (*s == 'B' && s[1] >= '0' && s[1] <= '9');
}

/* The operation's name and its modifiers; false: one of them is not known to its function. */
static bool read_op(Ins *i, char *s, char why[SASS_TEXT])
{
    size_t n = strcspn(s, ".");
    const char *known;
    char name[32];

    snprintf(name, sizeof name, "%.*s", (int)n, s);
    i->op = op_find(name, &i->uniform);
    if (i->op == NULL) {
        snprintf(why, SASS_TEXT, "the operation %s is not known", name);
        return false;
    }
    i->cls = i->op->cls;
    for (known = i->op->mods; s[n] == '.';) {
        const char *p = s + n + 1, *k = known;
        const size_t len = strcspn(p, ".");
        const int m = mod_find(p, len);

        while (k != NULL && !(strncmp(k, p, len) == 0 && (k[len] == ' ' || k[len] == 0))) {
            k = strchr(k, ' ');
            k += k != NULL;
        }
        if (m < 0 || k == NULL) {
            snprintf(why, SASS_TEXT, "%s does not know the modifier .%.*s", name, (int)len, p);
            return false;
        }
        i->mods[m / 64] |= UINT64_C(1) << (m % 64);
        n += 1 + len;
    }
    return true;
}

/* Cuts operands at commas outside brackets. */
static bool read_args(Ins *i, char *s, char why[SASS_TEXT])
{
    while (*s != 0) {
        char *end = s;

        while (*s == ' ')
            s++;
        for (int depth = 0; *end != 0 && (depth > 0 || *end != ','); end++)
            depth += *end == '[' ? 1 : *end == ']' ? -1 : 0;
        const bool more = *end == ',';

        *end = 0;
        /* a branch may have its number of registers to save before the place: "R8 -0x20" */
        char *gap = *s != 0 ? strchr(s + 1, ' ') : NULL;

        if (gap != NULL && (gap[1] == '-' || gap[1] == '0') && i->args < ARGS) {
            *gap = 0;
            if (!read_arg(s, &i->arg[i->args++]))
                return false;
            s = gap + 1;
        }
        if (i->args == ARGS || !read_arg(s, &i->arg[i->args])) {
            snprintf(why, SASS_TEXT, "the operand %s is not understood", s);
            return false;
        }
        i->args++;
        s = end + more;
    }
    return true;
}

static uint32_t half_bits(double x, bool brain)
{
    float f = (float)x;
    uint32_t b;

    memcpy(&b, &f, 4);
    if (brain)
        return b >> 16;
    _Float16 h = (_Float16)x;
    uint16_t v;

    memcpy(&v, &h, 2);
    return v;
}

/* Decimal numbers become the bits of the type that the operation computes in.  The text does not
 * tell one NaN from another, so the instruction's own bits are taken where they are known. */
static void set_numbers(Ins *i)
{
    const char *name = i->op->name;
    const bool doubles = name[0] == 'D' || (has(i, M_F64) && name[0] == 'F');
    const bool real = strchr("FDH", name[0]) != NULL || strcmp(name, "MUFU") == 0;
    int n = 0;

    for (int k = 0; k < i->args; k++, n++) {
        Arg *a = &i->arg[k];
        float f = (float)a->number;
        uint32_t b;

        memcpy(&b, &f, 4);
        i->arg[n] = *a;
        if (a->kind != ARG_VALUE || !real)
            continue;
        a = &i->arg[n];
        if (name[0] == 'H' && a->decimal && k + 1 < i->args &&
            i->arg[k + 1].decimal) { /* upper and lower half */
            k++;
            b = half_bits(a->number, has(i, M_BF16_V2)) << 16 |
                half_bits(i->arg[k].number, has(i, M_BF16_V2));
        }
        if (a->decimal && i->coded != 0)
            a->value = (int64_t)(i->coded >> 32);
        else if (a->decimal && doubles)
            memcpy(&a->value, &a->number, 8);
        else if (a->decimal)
            a->value = b;
        if (doubles && (!a->decimal || i->coded != 0))
            a->value = (int64_t)((uint64_t)a->value << 32);
    }
    i->args = n;
}

/* Only LDC reads constants at an address in a register. */
static bool constants_known(const Ins *i)
{
    for (int k = 0; k < i->args; k++)
        if (i->arg[k].kind == ARG_CONST && (i->arg[k].reg != RZ || i->arg[k].ureg != URZ) &&
            strcmp(i->op->name, "LDC") != 0)
            return false;
    return true;
}

static void set_sizes(Ins *i)
{
    i->bytes = has(i, M_128)                    ? 16
               : has(i, M_64)                   ? 8
               : has(i, M_U8) || has(i, M_S8)   ? 1
               : has(i, M_U16) || has(i, M_S16) ? 2
                                                : 4;
    if (has(i, M_F64) || has(i, M_U64) || has(i, M_S64))
        i->bytes = 8;
    for (int m = M_EQ; m <= M_T; m++) /* a comparison's own */
        if (has(i, (enum Mod)m))
            i->mode = m;
}

static void run_unknown(Warp *w, const Ins *i, uint32_t mask)
{
    fail(w, i, (uint32_t)__builtin_ctz(mask), "the interpreter does not know this instruction");
}
static const Op unknown = { "?", run_unknown, SASS_INT, FLOW_MEMORY, "" };

bool decode(Ins *i, char *text, char why[SASS_TEXT])
{
    char *s = text, *args;

    i->guard = (Arg){ .kind = ARG_PRED, .reg = PT };
    if (*s == '@') {
        char *end = strchr(s, ' ');

        *end = 0;
        read_arg(s + 1, &i->guard);
        s = end + 1;
        while (*s == ' ')
            s++;
    }
    args = strchr(s, ' ');
    if (args != NULL)
        *args++ = 0;
    if (!read_op(i, s, why) || !read_args(i, args != NULL ? args : s + strlen(s), why)) {
        i->op = &unknown;
        i->dest = -1;
        return false;
    }
    if (!constants_known(i)) {
        snprintf(why, SASS_TEXT, "a constant at an address in a register is known of LDC only");
        i->op = &unknown;
        i->dest = -1;
        return false;
    }
    set_numbers(i);
    set_sizes(i);
    decode_dest(i);
    /* HFMA2.MMA of two zeros is a move of a constant */
    if (strcmp(i->op->name, "HFMA2") == 0 && has(i, M_MMA) && i->arg[1].reg == RZ &&
        i->arg[2].reg == RZ)
        i->cls = SASS_INT;
    return true;
}

/* ---- What one instruction tells of others */

/* The number that register `reg` has after instruction `at`, if a move of the instructions from
 * `from` on put it there; *reg becomes the register it was copied from. */
static bool moved(const Ins *ins, uint32_t from, uint32_t at, int *reg, uint32_t *value)
{
    for (uint32_t p = at; p-- > from;) {
        const Ins *i = &ins[p];

        if (i->args < 2 || i->arg[0].kind != ARG_REG || i->arg[0].reg != *reg)
            continue;
        const Arg *a = &i->arg[i->args - 1];

        if (strcmp(i->op->name, "MOV") != 0 && !has(i, M_MOV))
            return false;
        if (a->kind == ARG_VALUE) {
            *value = (uint32_t)a->value;
            return true;
        }
        if (a->kind != ARG_REG)
            return false;
        *reg = a->reg;
    }
    return false;
}

/* BRA.CONV jumps over a call of a WARPSYNC, whose mask says which lanes wait for each other. */
static void link_conv(const Sass *s, Ins *i)
{
    const uint32_t here = (uint32_t)(i - s->ins);
    uint32_t call = here + 1, sync, value = 0;
    int reg;

    i->conv = -1;
    i->conv_mask = ALL_LANES;
    while (call < here + 10 && call < s->count && s->ins[call].op->flow == FLOW_NONE)
        call++;
    if (call >= s->count || strcmp(s->ins[call].op->name, "CALL") != 0)
        return;
    sync = s->ins[call].target;
    while (sync < s->count && s->ins[sync].op->flow == FLOW_NONE)
        sync++;
    if (sync >= s->count || strcmp(s->ins[sync].op->name, "WARPSYNC") != 0)
        return;
    if (s->ins[sync].arg[0].kind == ARG_VALUE) {
        i->conv_mask = (uint32_t)s->ins[sync].arg[0].value;
        return;
    }
    reg = s->ins[sync].arg[0].reg;
    if (moved(s->ins, s->ins[call].target, sync, &reg, &value) ||
        moved(s->ins, here + 1, call, &reg, &value))
        i->conv_mask = value;
    else
        i->conv = reg;
}

/* The load in front of a loop of compare and swap: what is atomic in the source. */
static void link_swap(const Sass *s, const Ins *i)
{
    const uint32_t here = (uint32_t)(i - s->ins);
    const Arg *at = &i->arg[1];

    for (uint32_t p = here; p-- > 0 && p + 24 > here;) {
        Ins *load = &s->ins[p];

        if (strcmp(load->op->name, "LDS") == 0 && load->arg[1].reg == at->reg &&
            load->arg[1].value == at->value && load->arg[1].ureg == at->ureg &&
            load->arg[1].scale == at->scale)
            load->atomic = true;
    }
}

void decode_links(Sass *s)
{
    for (uint32_t p = 0; p < s->count; p++) {
        Ins *i = &s->ins[p];
        const Function *f = &s->function[i->function];

        if (i->op->flow == FLOW_BRANCH && i->args > 0 && i->arg[i->args - 1].kind == ARG_VALUE) {
            const uint64_t to = (uint64_t)i->arg[i->args - 1].value;

            i->target = has(i, M_ABS) ? (uint32_t)(to >> 4) : f->first + (uint32_t)(to >> 4);
        }
    }
    for (uint32_t p = 0; p < s->count; p++) {
        Ins *i = &s->ins[p];

        if (has(i, M_CONV))
            link_conv(s, i);
        else if (strcmp(i->op->name, "ATOMS") == 0 && has(i, M_CAST))
            link_swap(s, i);
    }
}
