/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Schedules as text: one step after the other, each a word and a number. */
#include "sched/sched.h"

#include <string.h>

const SchedInfo sched_step[SCHED_STEPS] = {
    { "tile", "vector registers that the sums of a loop may take", 0, 64 },
    { "ahead", "bytes of gathered rows that are on their way at a time; 0: none", 0, 1 << 20 },
    { "panel", "elements of a row that are done for all rows before the next; 0: all", 0, 1 << 20 },
    { "pack", "1: the panels of gathered rows are laid out one after the other first", 0, 1 },
    { "stream", "1: results that nothing reads go past the caches", 0, 1 },
    { "jam", "1: sums over lanes run four at a time", 0, 1 },
};

/* Half of the registers: the others hold what is multiplied.  Long ones fill eight lines sooner,
 * and more at a time gain nothing. */
Sched sched_default(int registers, int bytes)
{
    int half = registers / 2, most = 512 / (bytes > 0 ? bytes : 32);

    return (Sched){ { [SCHED_TILE] = half < most ? half : most,
                      [SCHED_AHEAD] = 4096,
                      [SCHED_JAM] = 1 } };
}

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t\n");
}

static int find_step(Err *err, const char *word, size_t n)
{
    for (int i = 0; i < SCHED_STEPS; i++)
        if (strlen(sched_step[i].name) == n && memcmp(sched_step[i].name, word, n) == 0)
            return i;
    err_throw(err, ST_ARG, "there is no schedule step %.*s; `weft list steps` shows them",
              n > 40 ? 40 : (int)n, word);
}

/* word number */
static const char *parse_step(Err *err, const char *s, Sched *out)
{
    size_t n = strcspn(s, " \t\n;"), digits;
    int i = find_step(err, s, n);
    int64_t v = 0;

    s = skip_space(s + n);
    digits = strspn(s, "0123456789");
    if (!num_parse_int(s, digits, &v) || v < sched_step[i].least || v > sched_step[i].most)
        err_throw(err, ST_ARG, "the schedule step %s takes a number from %d to %d",
                  sched_step[i].name, sched_step[i].least, sched_step[i].most);
    out->step[i] = (int)v;
    return skip_space(s + digits);
}

void sched_parse(Err *err, const char *text, Sched *out)
{
    const char *s = skip_space(text);

    while (*s != 0) {
        s = parse_step(err, s, out);
        if (*s != 0 && *s != ';')
            err_throw(err, ST_ARG, "a `;` stands between schedule steps, not `%.20s`", s);
        s = skip_space(s + (*s == ';'));
    }
}

void sched_print(Text *out, const Sched *s)
{
    for (int i = 0; i < SCHED_STEPS; i++)
        text_f(out, "%s%s %d", i > 0 ? "; " : "", sched_step[i].name, s->step[i]);
}
