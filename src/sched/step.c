/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reads the steps of a schedule's text, and applies one: wholly or not at all. */
#include "sched/step.h"
#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

void step_refuse(StepCall *c, const char *fmt, ...)
{
    char why[800];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    ir_throw(c->p, ST_ARG, "%.200s: %s", c->line->text, why);
}

void step_count(StepCall *c, int least, int most)
{
    int n = c->line->nword;

    if (n < least || n > most)
        step_refuse(c, "write it as: %s %s", c->line->step->name, c->line->step->args);
}

bool step_at_shared(StepCall *c)
{
    const char *const *word = c->line->word;

    step_count(c, 4, 5);
    if (strcmp(word[2], "at") != 0)
        step_refuse(c, "`at` and a loop come after the array, not %s", word[2]);
    if (c->line->nword == 5 && strcmp(word[4], "shared") != 0)
        step_refuse(c, "after the loop comes `shared`, not %s", word[4]);
    return c->line->nword == 5;
}

int64_t step_int(StepCall *c, int i, int64_t least, int64_t most)
{
    const char *word = c->line->word[i];
    int64_t v;

    if (!num_parse_int(word, strlen(word), &v) || v < least || v > most)
        step_refuse(c, "%s is no number from %lld to %lld", word, (long long)least,
                    (long long)most);
    return v;
}

/* One step, from its name on: words up to the end of the step. */
static StepLine read_line(Prog *p, const Step *step, const char *s, const char *end)
{
    StepLine l = { .step = step };
    Text all = { .arena = p->arena };

    text_str(&all, step->name);
    s += strlen(step->name);
    while ((s += strspn(s, " \t\r")) < end) {
        size_t n = sched_word(s);
        char *word = arena_alloc(p->arena, n + 1);

        if (l.nword == LIMIT_STEP_WORDS)
            ir_throw(p, ST_LIMIT, "%s: more than %d words", step->name, LIMIT_STEP_WORDS);
        memcpy(word, s, n);
        l.word[l.nword++] = word;
        text_f(&all, " %s", word);
        s += n;
    }
    l.text = all.s;
    return l;
}

int step_lines(Prog *p, const char *text, StepLine **out)
{
    SchedItem at = { 0 };
    int n = 0, cap = 0;

    *out = NULL;
    while (text != NULL && sched_next(&text, &at)) {
        const Step *step = step_named(at.s, at.nword);

        if (step == NULL || sched_is_number(&at))
            continue;
        *out = arena_grow(p->arena, *out, n, &cap, sizeof **out);
        (*out)[n++] = read_line(p, step, at.s, at.s + at.n);
    }
    return n;
}

/* The variable of the statement that goes over the axis of which `rest` is the name, perhaps with a
 * dot and more after it; NULL: none does, or several. */
static const Var *variable_of(const Stmt *s, const char *rest)
{
    const Var *found = NULL;

    for (int i = 0; i < s->nbind; i++) {
        const char *name = s->bind[i]->axis->name;
        size_t n = name != NULL ? strlen(name) : 0;

        if (strcmp(s->bind[i]->name, rest) == 0)
            return NULL;
        if (n == 0 || strncmp(rest, name, n) != 0 || (rest[n] != 0 && rest[n] != '.'))
            continue;
        if (found != NULL)
            return NULL;
        found = s->bind[i];
    }
    return found;
}

/* A loop that is named by a statement and an axis, c.K, is that of the axis's variable, c.k. */
static const char *by_variable(Prog *p, const char *word)
{
    Text t = { .arena = p->arena };

    for (int i = 0; i < p->nstmt; i++) {
        const char *label = p->stmt[i]->assign[0].label;
        size_t n = strlen(label);
        const Var *v = strncmp(word, label, n) == 0 && word[n] == '.'
                           ? variable_of(p->stmt[i], word + n + 1)
                           : NULL;

        if (v == NULL)
            continue;
        text_f(&t, "%s.%s%s", label, v->name, word + n + 1 + strlen(v->axis->name));
        return t.s;
    }
    return word;
}

void step_apply(Prog *p, const StepLine *line, const StepTarget *target)
{
    StepLine own = *line;
    StepCall c = { .p = p, .line = &own, .target = target, .n = p->nphase };
    const Node *at;
    const char *why;

    for (int i = 0; i < own.nword; i++)
        own.word[i] = by_variable(p, own.word[i]);

    c.phase = arena_copy(p->arena, p->phase, (size_t)p->nphase * sizeof *c.phase);
    p->at = (Place){ 0 };
    if (p->stage != line->step->stage)
        step_refuse(&c, "it works at stage %s, and the program is at stage %s",
                    ir_stage[line->step->stage], ir_stage[p->stage]);
    if (p->stage != STAGE_COORDINATES)
        step_place_named(&c);
    line->step->apply(&c);
    why = p->stage != STAGE_COORDINATES ? loop_level_objection(p, c.phase, c.n, &at) : NULL;
    if (why != NULL)
        step_refuse(&c, "%s", why);
    loop_settle(p, c.phase, c.n);
    p->phase = c.phase;
    p->nphase = c.n;
    for (int i = 0; i < c.nplaced; i++)
        loop_drop_init(c.placed[i]);
}

bool step_arranges(Prog *p, const char *text)
{
    StepLine *line;
    int n = step_lines(p, text, &line);
    bool does = false;

    for (int i = 0; i < n; i++)
        does = does || !line[i].step->last;
    return does;
}

void step_apply_all(Prog *p, const char *text, Stage stage, bool last, const StepTarget *target)
{
    StepLine *line;
    int n = step_lines(p, text, &line);

    for (int i = 0; i < n; i++)
        if (line[i].step->stage == stage && line[i].step->last == last)
            step_apply(p, &line[i], target);
    if (stage == STAGE_POSITIONS && n > 0)
        step_cut_tails(p);
}
