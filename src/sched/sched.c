/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Schedules as text: one step after the other, `;` or the end of a line between them.  Those with a
 * number are read here; the others are for step.c. */
#include "sched/sched.h"
#include "sched/step.h"

#include <string.h>

const SchedInfo sched_step[SCHED_STEPS] = {
    { "tile", "vector registers that the sums of a loop may take", 0, 64 },
    { "ahead", "bytes of gathered rows that are on their way at a time; 0: none", 0, 1 << 20 },
    { "panel", "elements of a row that are done for all rows before the next; 0: all", 0, 1 << 20 },
    { "pack", "1: the panels of gathered rows are laid out one after the other first", 0, 1 },
    { "stream", "bytes of rows from which on results go past the caches; 0: never", 0, 1 << 30 },
    { "jam", "1: sums over lanes run four at a time", 0, 1 },
    { "sweep", "entries that pass while sums of many products are in registers; 0: one", 0, 64 },
    { "compensate", "1: sums over entries add up what rounding takes from them", 0, 1 },
};

enum { MOST_SUMS = 128 }; /* f32: eight cache lines; more at a time gain nothing */

/* Half of the registers: the others hold what is multiplied. */
Sched sched_default(const VectorUnit *unit)
{
    int half = unit->registers / 2, most = MOST_SUMS / lanes_of(unit, T_f32);

    return (Sched){ .step = { [SCHED_TILE] = half < most ? half : most,
                              [SCHED_AHEAD] = 4096,
                              [SCHED_STREAM] = 32 << 20,
                              [SCHED_JAM] = 1,
                              [SCHED_SWEEP] = 8 } };
}

size_t sched_word(const char *s)
{
    size_t n = *s == '{' ? strcspn(s, "}") : strcspn(s, " \t\r\n;#{");

    return *s == '{' && s[n] == '}' ? n + 1 : n;
}

bool sched_next(const char **text, SchedItem *out)
{
    const char *s = *text + strspn(*text, " \t\r\n;");

    while (*s == '#')
        s += strcspn(s, "\n"), s += strspn(s, " \t\r\n;");
    out->s = s;
    out->n = strcspn(s, "\n;#{");
    while (s[out->n] == '{') {
        out->n += sched_word(s + out->n);
        out->n += strcspn(s + out->n, "\n;#{");
    }
    out->nword = strcspn(s, " \t\r\n;#");
    while (out->n > 0 && strchr(" \t\r", s[out->n - 1]) != NULL)
        out->n--;
    *text = s + out->n;
    return out->n > 0;
}

static int find_number(const char *word, size_t n)
{
    for (int i = 0; i < SCHED_STEPS; i++)
        if (strlen(sched_step[i].name) == n && memcmp(sched_step[i].name, word, n) == 0)
            return i;
    return -1;
}

/* What comes after the name. */
static const char *rest_of(const SchedItem *at)
{
    return at->s + at->nword + strspn(at->s + at->nword, " \t\r");
}

/* word number; pack and the like are steps of step.h where loops come after the word */
bool sched_is_number(const SchedItem *at)
{
    return find_number(at->s, at->nword) >= 0 &&
           (strspn(rest_of(at), "0123456789") > 0 || step_named(at->s, at->nword) == NULL);
}

static bool parse_number(Err *err, const SchedItem *at, Sched *out)
{
    int i = find_number(at->s, at->nword);
    const char *s = rest_of(at);
    size_t digits = strspn(s, "0123456789");
    int64_t v = 0;

    if (!sched_is_number(at))
        return false;
    if (!num_parse_int(s, digits, &v) || v < sched_step[i].least || v > sched_step[i].most)
        err_throw(err, ST_ARG, "the schedule step %s takes a number from %d to %d",
                  sched_step[i].name, sched_step[i].least, sched_step[i].most);
    s += digits;
    s += strspn(s, " \t\r");
    if (s < at->s + at->n)
        err_throw(err, ST_ARG, "a `;` stands between schedule steps, not `%.*s`",
                  at->s + at->n - s > 20 ? 20 : (int)(at->s + at->n - s), s);
    out->step[i] = (int)v;
    return true;
}

void sched_parse(Err *err, const char *text, Sched *out)
{
    const char *s = text;
    SchedItem at;

    out->text = NULL;
    while (sched_next(&s, &at)) {
        if (parse_number(err, &at, out))
            continue;
        if (step_named(at.s, at.nword) == NULL)
            err_throw(err, ST_ARG, "there is no schedule step %.*s; `weft list steps` shows them",
                      at.nword > 40 ? 40 : (int)at.nword, at.s);
        out->text = text;
    }
}

void sched_print(Text *out, const Sched *s)
{
    const char *text = s->text;
    SchedItem at;

    for (int i = 0; i < SCHED_STEPS; i++)
        text_f(out, "%s%s %d", i > 0 ? "; " : "", sched_step[i].name, s->step[i]);
    while (text != NULL && sched_next(&text, &at))
        if (!sched_is_number(&at))
            text_f(out, "; %.*s", (int)at.n, at.s);
}

/* The rule of a format, in braces: lines become what ends in `;`, comments go. */
static void put_rule(Text *out, const char *s, size_t n)
{
    const char *end = s + n - (s[n - 1] == '}');
    bool any = false;

    text_str(out, " {");
    for (s++; s < end;) {
        size_t k = strcspn(s, " \t\r\n#}");

        if (k > 0)
            text_f(out, " %.*s", (int)k, s);
        any = any || k > 0;
        s += k;
        if (*s == '#')
            s += strcspn(s, "\n}");
        if (*s == '\n' && any && out->s[out->n - 1] != ';' && s[strspn(s, " \t\r\n")] != '}')
            text_char(out, ';');
        s += strspn(s, " \t\r\n");
    }
    text_str(out, " }");
}

const char *sched_lines(Arena *a, const char *text)
{
    Text out = { .arena = a };
    SchedItem at;

    text_put(&out, "", 0);
    while (sched_next(&text, &at)) {
        const char *s = at.s;

        if (out.n > 0)
            text_char(&out, '\n');
        while (s < at.s + at.n) {
            size_t n = sched_word(s);

            if (*s == '{')
                put_rule(&out, s, n);
            else
                text_f(&out, "%s%.*s", s > at.s ? " " : "", (int)n, s);
            s += n + strspn(s + n, " \t\r");
        }
    }
    return out.s;
}
