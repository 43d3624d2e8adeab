/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft tune: searches for the fastest schedule of a problem and keeps it; lists what it searches;
 * puts records together.  The search tells where it is by a bar on a terminal, by lines elsewhere;
 * Ctrl-C ends it with what was found. */
#include "problem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24, WIDTH = 80, MOST_WIDTH = 200 };

typedef struct Options {
    const char *word[64]; /* problems, or files */
    int n, top;
    double seconds;
    bool json, space, merge, quiet;
} Options;

typedef struct Show {
    bool terminal, quiet, shown;
    int width;   /* of the bar */
    double last; /* when the bar was drawn */
    char best[MAX_WORD * 8];
} Show;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

/* Columns that a line may fill without going on in the next: one less than there are. */
static int terminal_width(void)
{
    struct winsize size = { .ws_col = 0 };
    int width = ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : WIDTH;

    return (width < MOST_WIDTH ? width : MOST_WIDTH) - 1;
}

static void draw_bar(Show *s, const weft_tuning *t)
{
    double share = t->elapsed_s < t->budget_s ? t->elapsed_s / t->budget_s : 1;
    char bar[BAR + 1], line[512];
    int full = (int)(share * BAR);

    if (problem_now() - s->last < 0.1)
        return;
    s->last = problem_now();
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '=' : ' ';
    bar[BAR] = 0;
    snprintf(line, sizeof line, "[%s] %3.0f s  %-7s %2d/%-2d", bar, t->elapsed_s, t->what, t->done,
             t->of);
    if (t->best != NULL)
        snprintf(line + strlen(line), sizeof line - strlen(line), "  best %.4g ms (%.2fx)  %s",
                 t->best_s * 1e3, t->default_s / t->best_s, t->best[0] != 0 ? t->best : "default");
    s->width = terminal_width();
    fprintf(stderr, "\r%-*.*s", s->width, s->width, line);
    s->shown = true;
}

static void end_bar(Show *s)
{
    if (s->shown)
        fprintf(stderr, "\r%*s\r", s->width, "");
    s->shown = false;
}

static const char *name_of(const char *schedule)
{
    return schedule[0] != 0 ? schedule : "default";
}

/* Elsewhere a line for a new best, at most one a second. */
static void put_best(Show *s, const weft_tuning *t)
{
    if (t->best == NULL || strcmp(s->best, name_of(t->best)) == 0 || problem_now() - s->last < 1)
        return;
    s->last = problem_now();
    snprintf(s->best, sizeof s->best, "%s", name_of(t->best));
    fprintf(stderr, "%.1f s: %.4g ms (default %.4g): %s\n", t->elapsed_s, t->best_s * 1e3,
            t->default_s * 1e3, s->best);
}

static int show(void *user, const weft_tuning *t)
{
    Show *s = user;

    if (strcmp(t->what, "wrong") == 0) {
        end_bar(s);
        fprintf(stderr, "weft: note: dropped: %s: %s\n", name_of(t->schedule), t->why);
    }
    if (!s->quiet && s->terminal)
        draw_bar(s, t);
    else if (!s->quiet)
        put_best(s, t);
    return interrupted != 0;
}

static void put_json(const Problem *p, const weft_tuned *r)
{
    printf("{\"problem\": ");
    cli_json(p->text);
    printf(", \"schedule\": ");
    cli_json(r->schedule);
    printf(", \"threads\": %d, \"ms\": %.6g, \"default_ms\": %.6g", p->threads, r->seconds * 1e3,
           r->default_s * 1e3);
    if (r->pick_s > 0)
        printf(", \"pick_ms\": %.6g", r->pick_s * 1e3);
    if (r->turns > 0)
        printf(", \"turns\": %d, \"spread\": %.3g", r->turns, r->spread);
    printf(", \"points\": %d, \"compiled\": %d, \"timed\": %d, \"wrong\": %d, \"stopped\": %s}\n",
           r->points, r->compiled, r->timed, r->wrong, r->stopped ? "true" : "false");
}

static void put_result(const Problem *p, const weft_tuned *r)
{
    printf("%s\n  schedule  %s\n  ms        %.4g, by the default %.4g (%.2fx)", p->text,
           name_of(r->schedule), r->seconds * 1e3, r->default_s * 1e3,
           r->seconds > 0 ? r->default_s / r->seconds : 1);
    if (r->turns > 0)
        printf(" in %d turns, spread %.0f %%", r->turns, r->spread * 100);
    if (r->pick_s > 0)
        printf(", by the model's choice %.4g", r->pick_s * 1e3);
    printf("\n  tried     %d of %d schedules%s", r->timed, r->points,
           r->stopped ? ", then it was stopped" : "");
    if (r->wrong > 0)
        printf("; %d dropped", r->wrong);
    printf("\n");
    fflush(stdout);
}

static int search(Problem *p, const Options *o)
{
    Show s = { .terminal = isatty(2) && !o->json, .quiet = o->quiet };
    weft_tune opt = { .seconds = o->seconds, .top = o->top, .tell = show, .user = &s };
    weft_tuned found;
    weft_status status = weft_kernel_tune(p->kernel, p->args, &opt, &found);

    end_bar(&s);
    if (status != WEFT_OK)
        return cli_failed(p->ctx);
    if (weft_warning(p->ctx)[0] != 0)
        fprintf(stderr, "weft: note: %s\n", weft_warning(p->ctx));
    if (o->json)
        put_json(p, &found);
    else
        put_result(p, &found);
    return EXIT_GOOD;
}

static int list_space(weft_ctx *ctx, weft_kernel *kernel, weft_args *args, const Options *o)
{
    const weft_point *point;
    int n, shown;

    if (weft_kernel_space(kernel, args, &point, &n) != WEFT_OK)
        return cli_failed(ctx);
    shown = o->top > 0 && o->top < n ? o->top : n;
    for (int i = 0; i < shown; i++) {
        if (o->json) {
            printf("{\"schedule\": ");
            cli_json(point[i].schedule);
            if (point[i].predicted_s > 0)
                printf(", \"predicted_ms\": %.6g", point[i].predicted_s * 1e3);
            printf("}\n");
        } else if (point[i].predicted_s > 0) {
            printf("%10.4g ms  %s\n", point[i].predicted_s * 1e3, name_of(point[i].schedule));
        } else {
            printf("%s\n", name_of(point[i].schedule));
        }
    }
    if (!o->json)
        printf("%d of %d schedules\n", shown, n);
    return EXIT_GOOD;
}

/* Of a program alone: no sizes, so no predictions. */
static int list_file(const char *path, const Options *o)
{
    weft_ctx *ctx = cli_ctx();
    weft_prog *prog = cli_read(ctx, path);
    weft_kernel *kernel;
    int code = EXIT_FAILED;

    if (prog != NULL)
        code = weft_kernel_compile(prog, &kernel) != WEFT_OK ? cli_failed(ctx)
                                                             : list_space(ctx, kernel, NULL, o);
    cli_free(ctx);
    return code;
}

static int tune_one(const Command *c, const Options *o, const char *word)
{
    Problem p;
    int code = EXIT_FAILED;

    if (o->space && strchr(word, ':') == NULL)
        return list_file(word, o);
    if (!problem_parse(&p, word))
        return EXIT_USAGE;
    if (p.sched[0] != 0)
        return cli_usage(c, "a problem that is tuned has no sched= of its own");
    if (problem_open(&p, NULL))
        code = o->space ? list_space(p.ctx, p.kernel, p.args, o) : search(&p, o);
    problem_close(&p);
    return code;
}

static int merge(const Options *o)
{
    weft_ctx *ctx = cli_ctx();
    const char *text;
    int code = EXIT_GOOD;

    if (weft_tuned_merge(ctx, o->word, o->n, &text) != WEFT_OK) {
        code = cli_failed(ctx);
    } else {
        if (weft_warning(ctx)[0] != 0)
            fprintf(stderr, "weft: note: %s\n", weft_warning(ctx));
        fputs(text, stdout);
    }
    cli_free(ctx);
    return code;
}

static bool parse_number(const char *text, double least, double most, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == 0 && *out >= least && *out <= most;
}

static int parse(const Command *c, Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        double v;

        if (strcmp(arg, "--json") == 0) {
            o->json = true;
        } else if (strcmp(arg, "--space") == 0) {
            o->space = true;
        } else if (strcmp(arg, "--merge") == 0) {
            o->merge = true;
        } else if (strcmp(arg, "--quiet") == 0) {
            o->quiet = true;
        } else if (strcmp(arg, "--seconds") == 0 && i + 1 < argc) {
            if (!parse_number(argv[++i], 0.001, 1e6, &o->seconds))
                return cli_usage(c, "--seconds wants a number, 0.001 to 1e6");
        } else if (strcmp(arg, "--top") == 0 && i + 1 < argc) {
            if (!parse_number(argv[++i], 1, 4096, &v))
                return cli_usage(c, "--top wants a number, 1 to 4096");
            o->top = (int)v;
        } else if (arg[0] == '-') {
            return cli_usage(c, "there is no option %s, or a word is missing after it", arg);
        } else if (o->n == (int)(sizeof o->word / sizeof *o->word)) {
            return cli_usage(c, "at most %d problems", o->n);
        } else {
            o->word[o->n++] = arg;
        }
    }
    if (o->n == 0)
        return cli_usage(c, "a %s is missing", o->merge ? "file" : "problem");
    return EXIT_GOOD;
}

static int tune(const Command *c, int argc, char **argv)
{
    struct sigaction act = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
    Options o = { .n = 0 };
    int code = parse(c, &o, argc, argv);

    if (code != EXIT_GOOD)
        return code;
    if (o.merge)
        return merge(&o);
    if (!o.space)
        sigaction(SIGINT, &act, NULL); /* a second one ends the process */
    for (int i = 0; i < o.n && code == EXIT_GOOD && !interrupted; i++)
        code = tune_one(c, &o, o.word[i]);
    return code;
}

const Command cmd_tune = {
    "tune",
    "find and record the fastest schedule of a problem",
    "usage: weft tune PROBLEM... [--seconds S] [--top N] [--quiet] [--json]\n"
    "       weft tune --space PROBLEM|FILE... [--top N] [--json]\n"
    "       weft tune --merge FILE...\n\n"
    "A problem is as for weft bench: an operator or file:PATH, a graph or data=FILE, sizes,\n"
    "threads.\n"
    "Some schedules are compiled, each is compared with the default one, and all are timed in\n"
    "turns, the slower half dropped after each round. The fastest is kept in the cache directory\n"
    "with the program, the structure and the machine: kernels that have no schedule of their own\n"
    "use it from then on. Ctrl-C ends the search and keeps the best so far.\n\n"
    "  --seconds S  for the search; 30 without it\n"
    "  --top N      how many schedules begin; 24 without it. With --space: how many are shown\n"
    "  --quiet      no word on how it goes\n"
    "  --json       one object a line\n"
    "  --space      list the schedules that are searched, the model's favourites first, with the\n"
    "               time that it predicts; of a program file without a graph it can tell no time\n"
    "  --merge      the records of several files as one text: for each program, structure and\n"
    "               machine the last\n\n"
    "docs/tuning.md has what is searched, and how.\n\n"
    "examples:\n"
    "  weft tune spmm:graph.mtx:k=128:f32:t=2\n"
    "  weft tune file:mine.weft:graph.npz:feat=64 --seconds 10\n"
    "  weft tune --space spmm:graph.mtx:k=128 --top 10\n"
    "  weft tune --merge here/tuned.txt there/tuned.txt > tuned.txt\n",
    tune,
};
