/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The text of problems and questions: a form, then settings, "tp; in1=8x0e+8x1o; in2=0e+1o".  Each
 * form is a row of a table (write.c, tell.c); what it does not take is refused by name. */
#include "o3/o3_int.h"

#include <ctype.h>
#include <string.h>

static const char *trimmed(Arena *arena, const char *s, size_t n)
{
    char *copy;

    while (n > 0 && isspace((unsigned char)*s)) {
        s++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        n--;
    copy = arena_alloc(arena, n + 1);
    memcpy(copy, s, n);
    return copy;
}

static const SpecForm *find_form(const Spec *s, const SpecForm *form)
{
    Text known = { .arena = s->arena };

    for (; form->name != NULL; form++) {
        if (strcmp(form->name, s->form) == 0)
            return form;
        text_f(&known, " %s", form->name);
    }
    err_throw(s->arena->err, ST_ARG, "there is no form \"%.60s\" here; there are%s", s->form,
              known.s);
}

/* Whether a word stands in a list, blanks around it. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    if (n == 0 || strchr(word, ' ') != NULL)
        return false;
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if (at > list && at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

static void add_field(Spec *s, const char *takes, const char *text, size_t n)
{
    const char *eq = memchr(text, '=', n);
    SpecField f;

    if (eq == NULL)
        err_throw(s->arena->err, ST_ARG, "%s: \"%.60s\" is no setting; as in type=f64", s->form,
                  trimmed(s->arena, text, n));
    f.key = trimmed(s->arena, text, (size_t)(eq - text));
    f.value = trimmed(s->arena, eq + 1, n - (size_t)(eq - text) - 1);
    if (!has_word(takes, f.key))
        err_throw(s->arena->err, ST_ARG, "%s has no setting \"%.60s\"; it takes%s", s->form, f.key,
                  takes);
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->field[i].key, f.key) == 0)
            err_throw(s->arena->err, ST_ARG, "%s: %s is given twice", s->form, f.key);
    s->field[s->n++] = f; /* each is given once, and forms take fewer than there is room for */
}

const char *spec_get(const Spec *s, const char *key)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->field[i].key, key) == 0)
            return s->field[i].value;
    return NULL;
}

/* The number of a word in a list that ends in NULL; `otherwise` where it is not given. */
int spec_choice(const Spec *s, const char *key, const char *const *word, int otherwise)
{
    const char *value = spec_get(s, key);
    Text known = { .arena = s->arena };

    if (value == NULL)
        return otherwise;
    for (int i = 0; word[i] != NULL; i++) {
        if (strcmp(word[i], value) == 0)
            return i;
        text_f(&known, " %s", word[i]);
    }
    err_throw(s->arena->err, ST_ARG, "%s: %s is one of%s, not \"%.60s\"", s->form, key, known.s,
              value);
}

bool spec_yes(const Spec *s, const char *key)
{
    return spec_choice(s, key, (const char *const[]){ "no", "yes", NULL }, 0) == 1;
}

O3Irreps spec_irreps(const Spec *s, const char *key)
{
    const char *value = spec_get(s, key);

    if (value == NULL)
        err_throw(s->arena->err, ST_ARG, "%s: %s is missing, as in %s=8x0e+4x1o", s->form, key,
                  key);
    return o3_irreps(s->arena, value);
}

Type spec_type(const Spec *s, const char *key)
{
    static const char *const word[] = { "f16", "bf16", "f32", "f64", NULL };
    static const Type of[] = { T_f16, T_bf16, T_f32, T_f64, T_none };

    return of[spec_choice(s, key, word, 4)];
}

O3Layout spec_layout(const Spec *s, const char *key)
{
    static const char *const word[] = { "mul_ir", "ir_mul", NULL };

    return (O3Layout)spec_choice(s, spec_get(s, key) != NULL ? key : "layout", word, O3_MUL_IR);
}

O3Signs spec_signs(const Spec *s)
{
    static const char *const word[] = { "e3nn", "e3nn-0.4", NULL };

    return (O3Signs)spec_choice(s, "signs", word, O3_SIGNS_NOW);
}

/* The next word of *at, blanks and commas between; NULL at the end. */
const char *spec_word(Arena *arena, const char **at, const char *between)
{
    size_t n;
    const char *word;

    *at += strspn(*at, between);
    n = strcspn(*at, between);
    word = n > 0 ? trimmed(arena, *at, n) : NULL;
    *at += n;
    return word;
}

double spec_number(const Spec *s, const char *key, const char *word)
{
    double v;

    if (word == NULL || !num_parse(word, strlen(word), &v))
        err_throw(s->arena->err, ST_ARG, "%s: %s: \"%.60s\" is no number", s->form, key,
                  word != NULL ? word : "");
    return v;
}

int spec_integer(const Spec *s, const char *key, const char *word)
{
    int64_t v;

    if (word == NULL || !num_parse_int(word, strlen(word), &v) || v < -1000000 || v > 1000000)
        err_throw(s->arena->err, ST_ARG, "%s: %s: \"%.60s\" is no integer that fits", s->form, key,
                  word != NULL ? word : "");
    return (int)v;
}

/* Numbers of a setting: n of them, or with n < 0 as many as there are.  NULL: not given. */
double *spec_numbers(const Spec *s, const char *key, int n, int *count)
{
    const char *at = spec_get(s, key), *word;
    double *v = NULL;
    int have = 0, cap = 0;

    if (at == NULL)
        return NULL;
    while ((word = spec_word(s->arena, &at, " \t\n,")) != NULL) {
        v = arena_grow(s->arena, v, have, &cap, sizeof *v);
        v[have++] = spec_number(s, key, word);
    }
    if (n >= 0 && have != n)
        err_throw(s->arena->err, ST_ARG, "%s: %s has %d numbers and needs %d", s->form, key, have,
                  n);
    if (count != NULL)
        *count = have;
    return v != NULL ? v : arena_array(s->arena, 1, sizeof *v);
}

void spec_run(Text *out, const char *text, const SpecForm *forms, bool facts)
{
    Spec s = { .arena = out->arena, .facts = facts };
    size_t n = strcspn(text, ";");
    const SpecForm *form;

    s.form = trimmed(out->arena, text, n);
    form = find_form(&s, forms);
    while (text[n] == ';') {
        text += n + 1;
        n = strcspn(text, ";");
        if (trimmed(out->arena, text, n)[0] != 0)
            add_field(&s, form->takes, text, n);
    }
    text_str(out, "");
    form->run(out, &s);
}
