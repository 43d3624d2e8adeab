/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A whole program: sizes, then axes, then statements that call for buffers; put together as text
 * with the data bound by name. */
#include "random/gen.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *gen_f(Gen *g, const char *fmt, ...)
{
    char small[512];
    va_list ap, again;
    char *s;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    s = arena_alloc(g->arena, (size_t)n + 1);
    if ((size_t)n < sizeof small)
        memcpy(s, small, (size_t)n + 1);
    else
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

bool gen_p(Gen *g, int percent)
{
    return rng_p(&g->rng, percent);
}

int gen_pick(Gen *g, int n)
{
    return rng_int(&g->rng, 0, n - 1);
}

void gen_has(Gen *g, Feature f)
{
    g->out->has[f] = true;
}

const char *gen_lower(Gen *g, const char *s)
{
    char *low = arena_copy(g->arena, s, strlen(s) + 1);

    for (char *c = low; *c != 0; c++)
        *c = (char)tolower((unsigned char)*c);
    return low;
}

static bool is_taken(const Gen *g, const char *name)
{
    for (int i = 0; i < g->ntaken; i++)
        if (strcasecmp(g->taken[i], name) == 0)
            return true;
    return false;
}

const char *gen_name(Gen *g, const char *const *list)
{
    const char *stem, *name;
    int n = 0;

    while (list[n] != NULL)
        n++;
    stem = name = list[gen_pick(g, n)];
    for (int k = 1; is_taken(g, name); k++)
        name = gen_f(g, "%s%d", stem, k);
    g->taken[g->ntaken++] = name;
    return name;
}

void gen_extent(Gen *g, int64_t lo, int64_t hi, bool constant, const char **text, int64_t *value)
{
    static const char *const form[] = { "%s",     "%s",     "%s",    "2*%s",          "%s + 1",
                                        "%s / 2", "%s % 4", "%s*%s", "3 - 2*%s + %s", "-(%s - 6)" };

    for (int tries = 0; tries < 12 && !constant; tries++) {
        const GSize *a = &g->size[gen_pick(g, g->nsize)], *b = &g->size[gen_pick(g, g->nsize)];
        int64_t v[] = { a->value,
                        a->value,
                        a->value,
                        2 * a->value,
                        a->value + 1,
                        a->value / 2,
                        a->value % 4,
                        a->value * b->value,
                        3 - 2 * a->value + b->value,
                        6 - a->value };
        int k = gen_pick(g, 10);
        Text t = { .arena = g->arena };

        if (v[k] < lo || v[k] > hi)
            continue;
        for (const char *s = form[k], *name = a->name; *s != 0; s++)
            if (*s == '%' && s[1] == 's') {
                text_str(&t, name);
                name = b->name;
                s++;
            } else {
                text_char(&t, *s);
            }
        *text = t.s;
        *value = v[k];
        return;
    }
    *value = lo + gen_pick(g, (int)(hi - lo + 1));
    *text = gen_p(g, 90) || *value < 1 ? gen_f(g, "%lld", (long long)*value)
                                       : gen_f(g, "%lld + 1", (long long)*value - 1);
}

static void draw_sizes(Gen *g)
{
    static const char *const names[] = { "n0", "m0", "nnz", "len", "dim", "n_1", NULL };

    g->nsize = 1 + gen_pick(g, 4);
    for (int i = 0; i < g->nsize; i++) {
        g->size[i] = (GSize){ gen_name(g, names), gen_p(g, 7) ? 0 : 1 + gen_pick(g, 6) };
        data_size(g->arena, g->out->data, g->size[i].name, g->size[i].value);
    }
}

static void bind_structure(Gen *g, const GAxis *x)
{
    Array a;

    if (x->extent == X_SEG) {
        a = array_new(g->arena, gen_p(g, 50) ? T_i32 : T_i64, x->parent->n + 1);
        for (int64_t q = 0; q <= x->parent->n; q++)
            array_set(&a, q, x->start[q], 0);
        data_array(g->arena, g->out->data, gen_f(g, "%s.start", x->name), a);
    }
    for (int k = 0; k < x->ncoord && x->extent != X_BUILT; k++) {
        const GCoord *c = &x->coord[k];

        if (c->kind != C_LOAD)
            continue;
        a = array_new(g->arena, c->type, x->n);
        for (int64_t p = 0; p < x->n; p++)
            array_set(&a, p, c->val[p], 0);
        data_array(g->arena, g->out->data,
                   gen_f(g, "%s.%s", x->name, c->name == NULL ? "coord" : c->name), a);
    }
}

static void draw_axes(Gen *g)
{
    int n = 2 + gen_pick(g, 6);

    if (gen_p(g, 12))
        gen_tensor(g);
    if (gen_p(g, 12))
        gen_rows(g);
    for (int i = 0; i < n; i++)
        if (gen_p(g, 25))
            gen_format(g);
        else
            gen_axis(g, NULL);
    for (int i = 0; i < 2 && !g->knobs.no_built && gen_p(g, 30); i++) {
        GAxis *u = gen_axis_built(g);

        if (gen_p(g, 20))
            gen_axis(g, u);
    }
}

static const char *slots_text(Gen *g, const GBuf *b)
{
    const char *s = "";

    for (int i = 0; i < b->nslot; i++)
        s = gen_f(g, "%s%s%s", s, i > 0 ? ", " : "",
                  b->slot[i]->name != NULL ? b->slot[i]->name : b->slot[i]->size);
    if (b->nslot == 0 || gen_p(g, 97))
        return s;
    gen_has(g, F_trailing_comma);
    return gen_f(g, "%s,", s);
}

static const char *buf_text(Gen *g, const GBuf *b)
{
    const char *s = gen_f(g, "%s[%s]", b->name, slots_text(g, b));

    if (b->fill != NULL)
        s = gen_f(g, "%s fill %s", s, b->fill);
    return b->kind == B_CONST ? gen_f(g, "%s = {%s}", s, b->literal) : s;
}

/* Now and then a comment or an empty line: they must not count. */
static const char *line_end(Gen *g)
{
    if (gen_p(g, 92))
        return "\n";
    gen_has(g, F_comment);
    return gen_p(g, 50) ? "  # a comment: [ { ( \n" : "\n\n   # alone\n";
}

static void print_axes(Gen *g, Text *t)
{
    bool open = false;

    for (int i = 0; i < g->naxis; i++) {
        text_f(t, "%s%s", open ? ", " : "axis ", gen_axis_text(g, g->axis[i]));
        open = i + 1 < g->naxis && gen_p(g, 50);
        if (!open)
            text_str(t, line_end(g));
    }
}

/* Whether the statements from..to mention the buffer. */
static bool is_used(const char *from, const char *to, const GBuf *b)
{
    size_t n = strlen(b->name);

    for (const char *s = from; s < to && (s = strstr(s, b->name)) != NULL && s < to; s++)
        if (s[n] == '[' && (s == from || (!isalnum((unsigned char)s[-1]) && s[-1] != '_')))
            return true;
    return false;
}

static void print_buf(Gen *g, Text *t, const GBuf *b, const GBuf *last)
{
    static const char *const kinds[] = { "", "inout ", "temp ", "const " };
    bool line = last == NULL || gen_p(g, 90);

    if (last != NULL && last->kind == b->kind && last->type == b->type && gen_p(g, 70)) {
        text_f(t, ", %s", buf_text(g, b));
        return;
    }
    if (!line)
        gen_has(g, F_semicolon);
    text_f(t, "%s%s%s %s",
           last == NULL ? ""
           : line       ? "\n"
                        : ";  ",
           kinds[b->kind], ir_type[b->type].name, buf_text(g, b));
}

/* Declares what the statements from..to use and what has not been declared yet. */
static void print_bufs(Gen *g, Text *t, const char *from, const char *to)
{
    const GBuf *last = NULL;

    for (int i = 0; i < g->nbuf; i++) {
        GBuf *b = g->buf[i];

        if (b->rows || b->declared || !(is_used(from, to, b) || gen_p(g, 2)))
            continue;
        print_buf(g, t, b, last);
        b->declared = true;
        last = b;
    }
    if (last != NULL)
        text_str(t, line_end(g));
}

/* Statements with their declarations before all of them, or each just before it is needed. */
static void print_body(Gen *g, Text *t)
{
    bool mixed = g->ncut > 1 && gen_p(g, 20);
    const char *end;

    if (g->body.n == 0)
        return;
    end = g->body.s + g->body.n;
    if (mixed)
        gen_has(g, F_mixed);
    for (int i = 0; i < g->ncut; i++) {
        const char *from = g->body.s + g->cut[i];
        const char *to = i + 1 < g->ncut ? g->body.s + g->cut[i + 1] : end;

        print_bufs(g, t, from, mixed ? to : end);
        text_put(t, from, (size_t)(to - from));
    }
}

static const char *put_together(Gen *g)
{
    Text t = { .arena = g->arena };

    text_str(&t, gen_p(g, 10) ? "# what it is for\nprogram p(" : "program p(");
    for (int i = 0; i < g->nsize; i++)
        text_f(&t, "%s%s", i > 0 ? ", " : "", g->size[i].name);
    text_f(&t, ")%s", line_end(g));
    print_axes(g, &t);
    print_body(g, &t);
    return t.s;
}

Case *gen_text(Arena *a, uint64_t seed, const Knobs *knobs)
{
    Gen *g = arena_alloc(a, sizeof *g);
    int n;

    g->arena = a;
    g->rng.state = seed * 0x9e3779b97f4a7c15u + 1;
    g->knobs = *knobs;
    g->knobs.exact = knobs->exact || knobs->poly;
    g->body.arena = a;
    g->out = arena_alloc(a, sizeof *g->out);
    *g->out = (Case){ .seed = seed, .data = arena_alloc(a, sizeof *g->out->data) };
    g->out->risky = gen_p(g, knobs->risk < 0 ? 0 : knobs->risk == 0 ? 15 : knobs->risk);
    g->cut[g->ncut++] = 0;
    draw_sizes(g);
    draw_axes(g);
    n = 1 + gen_pick(g, knobs->stmts > 0 ? knobs->stmts : 5);
    for (int i = 0; i < n; i++) {
        gen_stmt(g);
        g->cut[g->ncut++] = g->body.n;
    }
    gen_flush_inserts(g);
    for (int i = 0; i < g->naxis; i++)
        bind_structure(g, g->axis[i]);
    g->out->text = put_together(g);
    return g->out;
}

void case_parse(Arena *a, Case *c)
{
    c->prog = ir_parse(a, "case.weft", c->text, strlen(c->text));
    ir_check(c->prog);
    c->env = data_bind(a, c->data, c->prog);
}

Case *gen_case(Arena *a, uint64_t seed, const Knobs *knobs)
{
    Case *c = gen_text(a, seed, knobs);

    case_parse(a, c);
    return c;
}
