/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs and what becomes of them, as files to review.  A file of tests/golden is a comment that
 * says what it is there to catch, a program, and sections
 *
 *     ---- print
 *     ---- error
 *     ---- grad --wrt A,B --save T
 *     ---- positions
 *     ---- share --alone
 *     ---- panels --schedule "panel 8; pack 1"
 *
 * each with the text that is expected.  `weft_golden DIR` compares, `weft_golden --rewrite DIR`
 * writes what is true now: the diff is what gets reviewed. */
#include "api/api_int.h"
#include "grad/grad.h"
#include "unit/trap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Golden { /* one file */
    Arena *arena;
    const char *name, *text; /* text: of the program */
    size_t n;
} Golden;

/* What a section shows: appended to out; may throw. */
typedef void Section(Golden *, const char *options, Text *out);

static Prog *checked(Golden *g)
{
    Prog *p = ir_parse(g->arena, g->name, g->text, g->n);

    ir_check(p);
    return p;
}

static void print_section(Golden *g, const char *options, Text *out)
{
    (void)options;
    ir_print(out, checked(g));
}

/* The error itself is what is shown, by show() below; a program without one shows nothing. */
static void error_section(Golden *g, const char *options, Text *out)
{
    (void)options;
    (void)out;
    checked(g);
}

/* "--wrt A,B": the names after this word; how many. */
static int names_after(Golden *g, const char *options, const char *word, const char **out, int most)
{
    const char *s = strstr(options, word);
    int n = 0;

    for (s = s == NULL ? "" : s + strlen(word); *s == ' '; s++)
        ;
    while (*s != 0 && *s != ' ' && n < most) {
        size_t len = strcspn(s, ", ");
        char *name = arena_alloc(g->arena, len + 1);

        memcpy(name, s, len);
        out[n++] = name;
        s += len + (s[len] == ',');
    }
    return n;
}

static void grad_section(Golden *g, const char *options, Text *out)
{
    const char *wrt[16], *of[16], *save[16], *times = strstr(options, "--order ");
    GradOptions o = { .wrt = wrt, .of = of, .save = save };
    Prog *p = checked(g);

    o.nwrt = names_after(g, options, "--wrt ", wrt, 16);
    o.nof = names_after(g, options, "--of ", of, 16);
    o.nsave = names_after(g, options, "--save ", save, 16);
    for (int i = times == NULL ? 1 : atoi(times + 8); i > 1; i--) /* the options are the last's */
        p = grad_reverse(g->arena, p, &(GradOptions){ 0 });
    p = strstr(options, "--forward") != NULL ? grad_forward(g->arena, p, &o)
                                              : grad_reverse(g->arena, p, &o);
    ir_print(out, p);
}

/* --schedule "tile 8": what is between the quotes; NULL: it is not there. */
static const char *schedule_of(Golden *g, const char *options)
{
    Text out = { .arena = g->arena };
    const char *s = strstr(options, "--schedule \"");

    if (s == NULL)
        return NULL;
    s += strlen("--schedule \"");
    text_put(&out, s, strcspn(s, "\""));
    return out.s;
}

/* --target c:warp: that row of the table; else the machine that golden files are for. */
static Target target_of(Golden *g, const char *options)
{
    const Target avx2 = { .unit = { VECTOR_LANES(8, 4), 16, VECTOR_CORE } }, *found = NULL;
    const char *name;

    if (names_after(g, options, "--target ", &name, 1) == 0)
        return avx2;
    found = api_target_named(name);
    if (found == NULL)
        err_throw(g->arena->err, ST_ARG, "there is no target %s", name);
    return *found;
}

/* What the program has become after the pass of this name: its phases, or, while it has none, all of
 * it. */
static void pass_section(Golden *g, const char *options, Text *out)
{
    Text name = { .arena = g->arena }, all = { .arena = g->arena }, head = { .arena = g->arena };
    Target target = target_of(g, options);
    Aim aim = api_aim_at(g->arena->err, &target, schedule_of(g, options));
    Prog *p = checked(g);

    text_put(&name, options, strcspn(options, " "));
    api_lower_to(p, &aim, api_find_pass(p, name.s));
    ir_print(&all, p);
    p->nphase = 0;
    for (int i = 0; loop_buf(p, i) != NULL; i++)
        loop_drop_init(loop_buf(p, i));
    if (p->stage != STAGE_COORDINATES)
        ir_print(&head, p);
    text_str(out, all.s + head.n);
}

static const struct {
    const char *name;
    Section *fn;
} sections[] = {
    { "print", print_section },
    { "error", error_section },
    { "grad", grad_section },
};

static Section *find_section(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strlen(sections[i].name) == n && memcmp(sections[i].name, name, n) == 0)
            return sections[i].fn;
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (strlen(s->name) == n && memcmp(s->name, name, n) == 0)
            return pass_section;
    return NULL;
}

/* What the section gives, an error as the user sees it included. */
static void show(Golden *g, Section *fn, const char *options, Text *out)
{
    Err *err = g->arena->err;

    if (CATCH(err, fn(g, options, out)) == ST_OK)
        return;
    out->n = 0;
    if (err->line > 0)
        text_f(out, "%d:%d: %s\n%s\n%*s^\n", err->line, err->col, err->msg, err->src, err->col - 1,
               "");
    else
        text_f(out, "%s\n", err->msg);
    err_clear(err);
}

static const char *next_section(const char *s, const char *end)
{
    for (; s < end; s = memchr(s, '\n', (size_t)(end - s)) == NULL
                            ? end
                            : (const char *)memchr(s, '\n', (size_t)(end - s)) + 1)
        if ((size_t)(end - s) >= 5 && memcmp(s, "---- ", 5) == 0)
            return s;
    return end;
}

/* The file as it would be now; *bad counts the sections that differ. */
static void renew(Golden *g, Bytes file, Text *out, int *good, int *bad)
{
    const char *s = (const char *)file.p, *end = s + file.n, *at = next_section(s, end);

    g->text = s;
    g->n = (size_t)(at - s);
    text_put(out, s, g->n);
    if (at == end)
        (*bad)++;
    while (at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at)), *body, *next;
        Text now = { .arena = g->arena }, head = { .arena = g->arena };
        Section *fn;

        body = eol == NULL ? end : eol + 1;
        next = next_section(body, end);
        text_put(&head, at + 5, (size_t)((eol == NULL ? end : eol) - at - 5));
        fn = find_section(head.s, strcspn(head.s, " "));
        text_str(&now, "");
        if (fn == NULL)
            text_f(&now, "there is no section %s\n", head.s);
        else
            show(g, fn, head.s, &now);
        if (now.n == (size_t)(next - body) && memcmp(now.s, body, now.n) == 0) {
            (*good)++;
        } else {
            (*bad)++;
            printf("%s: %s: is now\n%s", g->name, head.s, now.s);
        }
        text_f(out, "---- %s\n", head.s);
        text_put(out, now.s, now.n);
        at = next;
    }
}

static void run_file(const char *dir, const char *name, bool rewrite, int *good, int *bad)
{
    Err err = { 0 };
    Arena arena;
    Text path, out;
    Bytes file;
    Golden g = { .arena = &arena, .name = name };
    int wrong = 0;

    arena_init(&arena, &os_libc, &err);
    path = out = (Text){ .arena = &arena };
    if (CATCH(&err, text_f(&path, "%s/%s", dir, name)) != ST_OK ||
        CATCH(&err, file = file_read(&arena, path.s, 1 << 20)) != ST_OK) {
        printf("%s: %s\n", name, err.msg);
        (*bad)++;
    } else {
        renew(&g, file, &out, good, &wrong);
        if (rewrite && wrong > 0 && CATCH(&err, file_write(&arena, path.s, out.s, out.n)) != ST_OK)
            printf("%s: %s\n", name, err.msg);
        *bad += wrong;
    }
    arena_free(&arena);
}

static int is_golden(const struct dirent *d)
{
    size_t n = strlen(d->d_name);

    return n > 4 && strcmp(d->d_name + n - 4, ".txt") == 0;
}

int main(int argc, char **argv)
{
    bool rewrite = argc == 3 && strcmp(argv[1], "--rewrite") == 0;
    struct dirent **list;
    int n, good = 0, bad = 0;

    if (argc != 2 + rewrite) {
        fprintf(stderr, "usage: weft_golden [--rewrite] DIR\n");
        return 2;
    }
    n = scandir(argv[argc - 1], &list, is_golden, alphasort);
    for (int i = 0; i < n; i++) {
        run_file(argv[argc - 1], list[i]->d_name, rewrite, &good, &bad);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    printf("%d passed, %d failed\n", good, bad);
    return bad > 0 || good == 0;
}
