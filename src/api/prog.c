/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of weft.h for programs.  A program is its text: added text is appended, and the
 * whole text is parsed again.  So places in messages are always right, and text with an error
 * changes nothing. */
#include "api/api_int.h"

#include <fcntl.h>
#include <string.h>

void body_drop(Body *body)
{
    if (body != NULL)
        box_drop(body->box);
}

void prog_drop(weft_prog *prog)
{
    body_drop(prog->body);
    box_drop(prog->printed);
    box_drop(prog->scheduled);
}

void body_check(Body *body)
{
    Prog *p = body->prog;

    if (!body->checked)
        ir_check(p);
    for (int i = 0; i < p->naxis && !body->checked; i++)
        if (p->axis[i]->from != NULL && p->axis[i]->from_k == FROM_FORMAT)
            fmt_check_made(p, p->axis[i]);
    body->checked = true;
}

static Body *read_body(weft_ctx *ctx, const char *file, const char *text, size_t n)
{
    Box *box = api_box(ctx);
    Body *body = arena_alloc(&box->arena, sizeof *body);
    Sched sched = { .text = NULL };

    if (n > LIMIT_TEXT)
        err_throw(&ctx->err, ST_LIMIT, "a program of %zu bytes; at most %d are read", n,
                  LIMIT_TEXT);
    body->box = box;
    body->file = arena_copy(&box->arena, file, strlen(file) + 1);
    body->text = arena_copy(&box->arena, text, n);
    body->ntext = n;
    body->prog = ir_parse(&box->arena, body->file, body->text, n);
    api_list_args(body);
    if (body->prog->sched != NULL)
        sched_parse(&ctx->err, body->prog->sched, &sched);
    return body;
}

/* With a schedule in place of the program's own, or NULL. */
static weft_prog *scheduled(weft_ctx *ctx, const char *file, Bytes text, const char *sched)
{
    Body *body = read_body(ctx, file, (const char *)text.p, text.n);
    weft_prog *prog;

    if (sched != NULL)
        body->prog->sched = arena_copy(&body->box->arena, sched, strlen(sched) + 1);
    prog = api_handle_new(ctx, TAG_PROG, sizeof *prog);
    prog->body = body;
    prog->sched = body->prog->sched;
    api_keep(ctx);
    return prog;
}

weft_prog *prog_new(weft_ctx *ctx, const char *file, const char *text, size_t n)
{
    return scheduled(ctx, file, (Bytes){ (const uint8_t *)text, n }, NULL);
}

weft_status weft_prog_parse(weft_ctx *context, const char *file, const char *text, size_t n,
                            weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, text, "the text of the program");
    *out = prog_new(ctx, file == NULL ? "program" : file, text, n);
    return api_leave(ctx);
}

/* a.sched beside a.weft, if it is there: its schedule. */
static const char *beside(weft_ctx *ctx, const char *path)
{
    size_t n = strlen(path), end = n > 5 && strcmp(path + n - 5, ".weft") == 0 ? n - 5 : n;
    Text name = { .arena = &ctx->scratch };
    Sched sched = { .text = NULL };
    Bytes text;
    char *all;
    int fd;

    if (strcmp(path, "-") == 0 || end == n)
        return NULL;
    text_f(&name, "%.*s.sched", (int)end, path);
    fd = ctx->os->open(ctx->os, name.s, O_RDONLY, 0);
    if (fd < 0)
        return NULL;
    ctx->os->close(ctx->os, fd);
    text = file_read(&ctx->scratch, name.s, LIMIT_TEXT);
    all = arena_alloc(&ctx->scratch, text.n + 1);
    memcpy(all, text.p, text.n);
    sched_parse(&ctx->err, all, &sched);
    return sched_lines(&ctx->scratch, all);
}

static weft_prog *read_prog(weft_ctx *ctx, const char *path)
{
    Bytes text = file_read(&ctx->scratch, path, LIMIT_TEXT);

    return scheduled(ctx, strcmp(path, "-") == 0 ? "<stdin>" : path, text, beside(ctx, path));
}

weft_status weft_prog_read(weft_ctx *context, const char *path, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, path, "the path");
    *out = read_prog(ctx, path);
    return api_leave(ctx);
}

/* "spmm(m, n)" makes the file name "spmm" in messages. */
static weft_prog *from_head(weft_ctx *ctx, const char *head)
{
    Text text = { .arena = &ctx->scratch }, name = { .arena = &ctx->scratch };

    text_f(&text, "program %s\n", head);
    text_put(&name, head, strcspn(head, " ("));
    return prog_new(ctx, name.s, text.s, text.n);
}

weft_status weft_prog_new(weft_ctx *context, const char *head, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, head, "the head of the program");
    *out = from_head(ctx, head);
    return api_leave(ctx);
}

static void add_text(weft_ctx *ctx, weft_prog *prog, const char *piece)
{
    Body *old = prog->body;
    Text text = { .arena = &ctx->scratch };

    text_put(&text, old->text, old->ntext);
    if (text.n > 0 && text.s[text.n - 1] != '\n')
        text_char(&text, '\n');
    text_str(&text, piece);
    prog->body = read_body(ctx, old->file, text.s, text.n);
    api_keep(ctx);
    if (prog->scheduled == NULL)
        prog->sched = prog->body->prog->sched;
    body_drop(old);
}

weft_status weft_prog_add(weft_prog *prog, const char *text)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    API_ENTER(ctx);
    api_need(ctx, text, "the text to add");
    add_text(ctx, prog, text);
    return api_leave(ctx);
}

static void check_rows(weft_ctx *ctx, const weft_rows *r)
{
    int64_t sum = 0, values;
    bool bad = false;

    api_need(ctx, r->axis, "rows: the name of the axis");
    api_need(ctx, r->coord, "rows: the names of the coordinates");
    if (r->ncoord < 1 || r->ncoord > IR_MAX_RANK)
        err_throw(&ctx->err, ST_ARG, "rows: axis %s has %d coordinates; 1 to %d are possible",
                  r->axis, r->ncoord, IR_MAX_RANK);
    for (int k = 0; k < r->ncoord; k++)
        api_need(ctx, r->coord[k], "rows: the name of a coordinate");
    if (r->n < 0 || int_mul(r->n, r->ncoord, &values) || values > LIMIT_TEXT)
        err_throw(&ctx->err, ST_LIMIT, "rows: axis %s has %lld entries; up to %d numbers are read",
                  r->axis, (long long)r->n, LIMIT_TEXT);
    if (r->n > 0)
        api_need(ctx, r->table, "rows: the table of coordinates");
    if (r->value != NULL && r->n > 0)
        api_need(ctx, r->values, "rows: the values");
    if (r->parent == NULL)
        return;
    if (r->ncount > 0)
        api_need(ctx, r->count, "rows: the counts");
    for (int64_t i = 0; i < r->ncount && !bad; i++)
        bad = r->count[i] < 0 || int_add(sum, r->count[i], &sum);
    if (bad || sum != r->n)
        err_throw(&ctx->err, ST_ARG, "rows: the counts of axis %s must sum to its %lld entries",
                  r->axis, (long long)r->n);
}

static void put_row(Text *text, const weft_rows *r, int64_t i)
{
    char number[NUM_TEXT];

    for (int k = 0; k < r->ncoord; k++)
        text_f(text, k > 0 ? " %lld" : "%lld", (long long)r->table[i * r->ncoord + k]);
    if (r->value == NULL)
        return;
    num_print(number, r->values[i]);
    text_f(text, " -> %s", number);
}

static void add_rows(weft_ctx *ctx, weft_prog *prog, const weft_rows *r)
{
    Text text = { .arena = &ctx->scratch };
    int64_t i = 0, groups = r->parent != NULL ? r->ncount : 1;

    text_f(&text, r->parent != NULL ? "axis %s(%s) = rows" : "axis %s = rows", r->axis, r->parent);
    for (int k = 0; k < r->ncoord; k++)
        text_f(&text, " %s", r->coord[k]);
    if (r->value != NULL)
        text_f(&text, " -> %s", r->value);
    text_str(&text, " {");
    for (int64_t g = 0; g < groups; g++) {
        int64_t end = r->parent != NULL ? i + r->count[g] : r->n;

        text_str(&text, g > 0 ? "; " : " ");
        for (int64_t first = i; i < end; i++) {
            text_str(&text, i > first ? ", " : "");
            put_row(&text, r, i);
        }
    }
    text_str(&text, " }\n");
    add_text(ctx, prog, text.s);
}

weft_status weft_prog_rows(weft_prog *prog, const weft_rows *rows)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    API_ENTER(ctx);
    api_need(ctx, rows, "rows");
    check_rows(ctx, rows);
    add_rows(ctx, prog, rows);
    return api_leave(ctx);
}

weft_status weft_prog_check(weft_prog *prog)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    API_ENTER(ctx);
    body_check(prog->body);
    return api_leave(ctx);
}

static const char *print_prog(weft_ctx *ctx, weft_prog *prog, Prog *what)
{
    Text text = { .arena = &api_box(ctx)->arena };

    ir_print(&text, what);
    box_drop(prog->printed);
    prog->printed = api_keep(ctx);
    return text.s;
}

weft_status weft_prog_print(weft_prog *prog, const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = print_prog(ctx, prog, prog->body->prog);
    return api_leave(ctx);
}

/* After a pass, after the last step of this name, or after so many steps. */
static Prog *after(weft_ctx *ctx, weft_prog *prog, const char *where)
{
    const char *sched = prog->sched, *pass = api_until(ctx, where, &sched);
    Aim aim = api_aim_of(ctx, api_target(ctx), sched);
    Prog *p;

    body_check(prog->body);
    p = api_trees(ctx, prog->body->prog);
    p->sched = NULL; /* it is in the loops now, or not asked for */
    api_lower_to(p, &aim, api_find_pass(p, pass));
    return p;
}

weft_status weft_prog_print_after(weft_prog *prog, const char *pass, const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, pass, "the name of the pass");
    *out = print_prog(ctx, prog, after(ctx, prog, pass));
    return api_leave(ctx);
}

static const char *keep_schedule(weft_ctx *ctx, const char *text)
{
    Sched sched = { .text = NULL };

    sched_parse(&ctx->err, text, &sched);
    return arena_copy(&api_box(ctx)->arena, text, strlen(text) + 1);
}

weft_status weft_prog_schedule(weft_prog *prog, const char *text)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);
    const char *sched;

    API_ENTER(ctx);
    sched = text != NULL ? keep_schedule(ctx, text) : NULL;
    box_drop(prog->scheduled);
    prog->scheduled = text != NULL ? api_keep(ctx) : NULL;
    prog->sched = sched != NULL ? sched : prog->body->prog->sched;
    return api_leave(ctx);
}

weft_status weft_prog_nargs(const weft_prog *prog, int *out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = prog->body->narg;
    return api_leave(ctx);
}

weft_status weft_prog_arg(const weft_prog *prog, int i, weft_arg *out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);
    const Arg *a;

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    if (i < 0 || i >= prog->body->narg)
        err_throw(&ctx->err, ST_ARG, "the program %s has %d arguments, and there is no number %d",
                  prog->body->prog->name, prog->body->narg, i);
    a = &prog->body->arg[i];
    *out = (weft_arg){ .name = a->name,
                       .role = a->role,
                       .type = api_type_of[a->type],
                       .ndim = a->ndim,
                       .structure = a->kind == ARG_START || a->kind == ARG_COORD };
    return api_leave(ctx);
}

void weft_prog_free(weft_prog *prog)
{
    if (api_ctx_of(prog, TAG_PROG) != NULL)
        api_handle_free(prog);
}
