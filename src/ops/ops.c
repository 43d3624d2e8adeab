/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reads the spec of an operator and writes the text of its program, by the tables of its family. */
#include "ops/ops_int.h"

#include <string.h>

enum { MOST_SIZES = 32 };

static const OpsFamily *const families[] = {
    &ops_sparse,
    &ops_graph,
    &ops_relation,
    &ops_node,
    &ops_attention,
    &ops_paged,
    &ops_conv3d,
    &ops_weights,
    &ops_matrix,
};
enum { NFAMILY = sizeof families / sizeof *families };

static const OpsOption types[] = {
    { "f32", OPS_F32, OPS_TYPES, "elements; default" },
    { "f64", OPS_F64, OPS_TYPES, "elements" },
    { "f16", OPS_F16, OPS_TYPES, "elements in memory; computed and summed in f32, rounded once" },
    { "bf16", OPS_BF16, OPS_TYPES, "the same" },
    { NULL, 0, 0, NULL },
};

static const OpsSign common[] = {
    { 'a', OPS_F64, "f64", "f32", 0 },
    { 't', OPS_F64, "f64", "$%", 0 },
    { '%', OPS_F16, "f16", "$&", 0 },
    { '&', OPS_BF16, "bf16", "f32", 0 },
    { 0, 0, NULL, NULL, 0 },
};

struct OpsSpec {
    const OpsFamily *family;
    const OpsRow *row;
    unsigned bits;
    int64_t size[MOST_SIZES]; /* by OpsFamily.size; 0: a parameter of the program */
    bool fixed[MOST_SIZES];   /* the spec has a number for it */
};

const char *ops_name(int i, const char **note)
{
    for (int f = 0; f < NFAMILY; f++)
        for (const OpsRow *r = families[f]->row; r->name != NULL; r++)
            if (i-- == 0)
                return *note = r->note, r->name;
    return *note = NULL, NULL;
}

static const char *option_at(const OpsOption *o, int *i, const char **note)
{
    for (; o->name != NULL; o++)
        if ((*i)-- == 0)
            return *note = o->note, o->name;
    return NULL;
}

const char *ops_option(int i, const char **note)
{
    const char *name = option_at(types, &i, note);

    for (int f = 0; f < NFAMILY && name == NULL; f++) {
        name = option_at(families[f]->option, &i, note);
        for (const OpsSize *s = families[f]->size; s->name != NULL && name == NULL; s++)
            if (strchr(s->name, '=') != NULL && i-- == 0)
                return *note = s->note, s->name;
    }
    if (name == NULL)
        *note = NULL;
    return name;
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* Of the name of a size, without its default. */
static int length(const OpsSize *s)
{
    return (int)strcspn(s->name, "=");
}

static bool is_size(const char *s, size_t n, const OpsSize *size)
{
    return n == (size_t)length(size) && memcmp(s, size->name, n) == 0;
}

/* The default; 0: the size is a parameter of the program. */
static int64_t standard_size(const OpsSize *s)
{
    const char *equal = strchr(s->name, '=');
    int64_t value = 0;

    for (; equal != NULL && *++equal != 0;)
        value = 10 * value + (*equal - '0');
    return value;
}

static void find_op(Text *out, OpsSpec *spec, const char *s, size_t n)
{
    Text known = { .arena = out->arena };

    for (int f = 0; f < NFAMILY; f++)
        for (const OpsRow *r = families[f]->row; r->name != NULL; r++) {
            if (is_word(s, n, r->name)) {
                spec->family = families[f];
                spec->row = r;
                return;
            }
            text_f(&known, " %s", r->name);
        }
    err_throw(out->arena->err, ST_ARG, "there is no operator %.*s; there are%s",
              (int)(n < 64 ? n : 64), s, known.s);
}

static const OpsOption *option_of(const OpsSpec *spec, const OpsOption *o, const char *s, size_t n,
                                  Text *known)
{
    for (; o->name != NULL; o++) {
        if (!(o->bit & (OPS_TYPES | spec->row->takes)))
            continue;
        if (is_word(s, n, o->name))
            return o;
        text_f(known, " %s", o->name);
    }
    return NULL;
}

static const OpsOption *find_option(Text *out, const OpsSpec *spec, const char *s, size_t n)
{
    Text known = { .arena = out->arena };
    const OpsOption *o = option_of(spec, types, s, n, &known);

    for (const OpsFamily *f = spec->family; f != NULL && o == NULL; f = f->base)
        o = option_of(spec, f->option, s, n, &known);
    if (o != NULL)
        return o;
    for (const OpsSize *z = spec->family->size; z->name != NULL; z++)
        text_f(&known, " %.*s=N", length(z), z->name);
    err_throw(out->arena->err, ST_ARG, "%s has no option %.*s; it takes%s", spec->row->name,
              (int)(n < 64 ? n : 64), s, known.s);
}

/* The name of the option with this bit. */
static const char *name_of(const OpsSpec *spec, unsigned bit)
{
    for (const OpsOption *o = types; o->name != NULL; o++)
        if (o->bit == bit)
            return o->name;
    for (const OpsFamily *f = spec->family; f != NULL; f = f->base)
        for (const OpsOption *o = f->option; o->name != NULL; o++)
            if (o->bit == bit)
                return o->name;
    return "";
}

static void take_option(Text *out, OpsSpec *spec, const char *s, size_t n)
{
    const OpsOption *o = find_option(out, spec, s, n);

    if (spec->bits & o->bit)
        err_throw(out->arena->err, ST_ARG, "%s: the option %s is given twice", spec->row->name,
                  o->name);
    for (unsigned bit = 1; bit != 0 && bit <= o->group; bit <<= 1)
        if (spec->bits & o->group & bit)
            err_throw(out->arena->err, ST_ARG, "%s: the options %s and %s exclude each other",
                      spec->row->name, name_of(spec, bit), o->name);
    spec->bits |= o->bit;
}

/* "f=64": true when it is a size of the family, which then is this number. */
static bool take_size(Text *out, OpsSpec *spec, const char *s, size_t n)
{
    const char *equal = memchr(s, '=', n);
    int64_t value = 0;

    for (int i = 0; equal != NULL && spec->family->size[i].name != NULL; i++) {
        if (!is_size(s, (size_t)(equal - s), &spec->family->size[i]))
            continue;
        for (const char *c = equal + 1; c < s + n; c++) {
            if (*c < '0' || *c > '9' || value > 99999999)
                err_throw(out->arena->err, ST_ARG, "%s: %.*s: give a number from 1 to 999999999",
                          spec->row->name, (int)(n < 64 ? n : 64), s);
            value = 10 * value + (*c - '0');
        }
        if (value == 0)
            err_throw(out->arena->err, ST_ARG, "%s: %.*s: give a number from 1 to 999999999",
                      spec->row->name, (int)(n < 64 ? n : 64), s);
        if (spec->fixed[i])
            err_throw(out->arena->err, ST_ARG, "%s: the size %.*s is given twice",
                      spec->row->name, length(&spec->family->size[i]), spec->family->size[i].name);
        spec->size[i] = value;
        spec->fixed[i] = true;
        return true;
    }
    return false;
}

/* A winner is that of a maximum or minimum. */
static void check_arg(Text *out, const OpsSpec *spec)
{
    if (spec->family->axes == ops_entry_axes && (spec->row->takes & OPS_REDUCES) &&
        (spec->bits & OPS_ARG) && !(spec->bits & (OPS_MAX | OPS_MIN)))
        err_throw(out->arena->err, ST_ARG, "%s: the option arg is for max or min; add one",
                  spec->row->name);
}

/* The options in "f64:heads:f=64". */
static void read_options(Text *out, OpsSpec *spec, const char *s)
{
    unsigned standard = spec->family->standard & spec->row->takes;

    for (int i = 0; spec->family->size[i].name != NULL; i++)
        spec->size[i] = standard_size(&spec->family->size[i]);
    while (*s == ':') {
        size_t n = strcspn(++s, ":");

        if (!take_size(out, spec, s, n))
            take_option(out, spec, s, n);
        s += n;
    }
    if (!(spec->bits & OPS_TYPES))
        spec->bits |= OPS_F32;
    for (const OpsFamily *f = spec->family; f != NULL && standard != 0; f = f->base)
        for (const OpsOption *o = f->option; o->name != NULL; o++)
            if (o->bit == standard && !(spec->bits & o->group))
                spec->bits |= standard;
    check_arg(out, spec);
}

static const OpsSign *sign_of(const OpsSign *s, char c)
{
    for (; s->sign != 0; s++)
        if (s->sign == c)
            return s;
    return NULL;
}

/* "${f}": the number, or the name of the parameter; returns its end. */
static const char *put_size(const OpsSpec *spec, Text *out, const char *s)
{
    size_t n = strcspn(s, "}");
    const OpsSize *size = spec->family->size;

    for (int i = 0; size[i].name != NULL; i++)
        if (is_size(s, n, &size[i])) {
            if (spec->size[i] > 0)
                text_f(out, "%lld", (long long)spec->size[i]);
            else
                text_str(out, size[i].name);
        }
    return s + n;
}

unsigned ops_put(const OpsSpec *spec, Text *out, const char *text)
{
    unsigned needs = 0;

    for (; *text != 0; text++) {
        const OpsSign *s;

        if (*text != '$') {
            text_char(out, *text);
            continue;
        }
        if (*++text == '{') {
            text = put_size(spec, out, text + 1);
            continue;
        }
        s = NULL;
        for (const OpsFamily *f = spec->family; f != NULL && s == NULL; f = f->base)
            s = sign_of(f->sign, *text);
        if (s == NULL)
            s = sign_of(common, *text);
        needs |= s->needs | ops_put(spec, out, spec->bits & s->bit ? s->with : s->without);
    }
    return needs;
}

static void put_options(const OpsSpec *spec, Text *out, const OpsOption *o)
{
    for (; o->name != NULL; o++)
        if (spec->bits & o->bit & ~(OPS_F32 | spec->family->standard))
            text_f(out, "_%s", o->name);
}

/* "spmm_f64_heads_f_64(m, n, heads)": two specs have one name only if they are one program. */
static void put_head(const OpsSpec *spec, Text *out, unsigned bits)
{
    const OpsSize *size = spec->family->size;
    const char *comma = "";

    text_f(out, "program %s", spec->row->name);
    put_options(spec, out, types);
    for (const OpsFamily *f = spec->family; f != NULL; f = f->base)
        put_options(spec, out, f->option);
    for (int i = 0; size[i].name != NULL; i++) {
        if (spec->fixed[i] && size[i].bit != 0 && !(bits & size[i].bit))
            err_throw(out->arena->err, ST_ARG, "%s has no size %.*s; leave out %.*s=%lld",
                      spec->row->name, length(&size[i]), size[i].name, length(&size[i]),
                      size[i].name, (long long)spec->size[i]);
        if (spec->fixed[i])
            text_f(out, "_%.*s_%lld", length(&size[i]), size[i].name, (long long)spec->size[i]);
    }
    text_char(out, '(');
    for (int i = 0; size[i].name != NULL; i++)
        if ((size[i].bit == 0 || (bits & size[i].bit)) && spec->size[i] == 0) {
            text_f(out, "%s%s", comma, size[i].name);
            comma = ", ";
        }
    text_str(out, ")\n");
}

void ops_write(Text *out, const char *text)
{
    size_t n = strcspn(text, ":");
    OpsSpec spec = { .bits = 0 };
    Text body = { .arena = out->arena };
    unsigned bits;

    find_op(out, &spec, text, n);
    read_options(out, &spec, text + n);
    bits = spec.bits | ops_put(&spec, &body, spec.row->text);
    put_head(&spec, out, bits);
    if (spec.family->axes != NULL)
        spec.family->axes(&spec, out, bits);
    text_put(out, body.s, body.n);
}
