/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Schedules as text: steps separated by `;` or the end of a line.  This file reads the steps that
 * set a number; step.c reads the others. */
#include "sched/sched.h"
#include "sched/step.h"

#include <stdio.h>
#include <string.h>

enum { LIMIT_NAMES = 2000 }; /* bytes of a list of all fields */

Sched sched_default(const VectorUnit *unit)
{
    return (Sched){ .policy = policy_for(unit) };
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

/* The field of the policy that a word of schedules stands for; -1: none. */
static int find_number(const char *word, size_t n)
{
    int i = policy_find(word, n);

    return i < POLICY_NWORD ? i : -1;
}

static bool is_set(const SchedItem *at)
{
    return at->nword == 3 && memcmp(at->s, "set", 3) == 0;
}

/* What comes after the name. */
static const char *rest_of(const SchedItem *at)
{
    return at->s + at->nword + strspn(at->s + at->nword, " \t\r");
}

/* word number; pack and the like are steps of step.h where loops come after the word */
bool sched_is_number(const SchedItem *at)
{
    return is_set(at) ||
           (find_number(at->s, at->nword) >= 0 &&
            (strspn(rest_of(at), "0123456789") > 0 || step_named(at->s, at->nword) == NULL));
}

_Noreturn static void refuse_field(Err *err, const char *name, size_t n)
{
    char names[LIMIT_NAMES];
    size_t used = 0;

    for (int i = 0; i < POLICY_NFIELD && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 policy_field[i].name);
    err_throw(err, ST_ARG, "set %.*s: the policy has no such field; it has %s",
              n > 40 ? 40 : (int)n, name, names);
}

/* The field that an item sets; *s is what comes after its name.  -1: it is a step. */
static int field_of(Err *err, const SchedItem *at, const char **s)
{
    const char *name = rest_of(at);
    size_t n;
    int i;

    *s = name;
    if (!sched_is_number(at))
        return -1;
    if (!is_set(at))
        return find_number(at->s, at->nword);
    n = name < at->s + at->n ? sched_word(name) : 0;
    i = policy_find(name, n);
    if (i < 0)
        refuse_field(err, name, n);
    *s = name + n + strspn(name + n, " \t\r");
    return i;
}

static bool parse_number(Err *err, const SchedItem *at, Sched *out)
{
    const char *s;
    int i = field_of(err, at, &s);
    size_t digits = strspn(s, "0123456789");
    const PolicyField *field = &policy_field[i < 0 ? 0 : i];
    int64_t v = 0;

    if (i < 0)
        return false;
    if (!num_parse_int(s, digits, &v) || v < field->least || v > field->most)
        err_throw(err, ST_ARG, "the schedule step %s%s takes a number from %d to %d",
                  is_set(at) ? "set " : "", field->name, field->least, field->most);
    s += digits;
    s += strspn(s, " \t\r");
    if (s < at->s + at->n)
        err_throw(err, ST_ARG, "a `;` stands between schedule steps, not `%.*s`",
                  at->s + at->n - s > 20 ? 20 : (int)(at->s + at->n - s), s);
    *policy_at(&out->policy, i) = (int)v;
    out->set[i] = true;
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
    Policy copy = s->policy;
    SchedItem at;

    for (int i = 0; i < POLICY_NFIELD; i++)
        if (i < POLICY_NWORD || s->set[i])
            text_f(out, "%s%s%s %d", i > 0 ? "; " : "", i < POLICY_NWORD ? "" : "set ",
                   policy_field[i].name, *policy_at(&copy, i));
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
