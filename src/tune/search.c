/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Finds the fastest point of a space within a time.  Candidates are few, as each is compiled: those
 * of each family that the model likes best, and each piece once, should the model be wrong.  They
 * are timed in turns, so that what disturbs one disturbs all; lower quartiles count, as what
 * disturbs a run makes it longer; the slower half goes after each round and the others get more
 * turns.  Then the neighbours of the best get their chance.  At the end the best has to win a match
 * with the default (confirm.c). */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64, ENOUGH = 21, FEW = 5, MOST_TURNS = 8, LAST = 3, ALONE = 3, WARM = 8 };
enum { EACH = 2 };    /* candidates that a family has at first */
enum { MATCHES = 3 }; /* candidates that may meet the default at the end */

/* How slow is too slow for a second turn, and for some more;
 * how slow the best of a family may be that its neighbours are tried; the share of the time after
 * which nothing more is compiled, at first and later; when a time has settled; and when two are the
 * same. */
#define HOPELESS 3.0
#define SLOW 1.5
#define NEARBY 1.25
#define FIRST 0.45
#define BUILDING 0.8
#define STEADY 0.95
#define ALIKE 1.02
/* The share of the time that a match with the default may take, and the least. */
#define MATCH 0.1
#define MATCH_S 1.0

typedef struct Candidate {
    int point;
    uint64_t tree;
    bool alive, timed;
    int n; /* samples of this round */
    double sample[SAMPLES], typical;
} Candidate;

typedef struct Search {
    TuneSpace *space;
    const TuneAsk *ask;
    const TuneDo *act;
    const TuneLimits *limits;
    TuneFound *out;
    Arena *arena;
    Candidate **cand; /* all that were chosen; the first is the default */
    int n, cap;
    int fresh, best; /* the first that is not built yet; the index of the best so far */
    bool *seen;      /* points that were chosen, or are the same as one that was */
    int *taken;      /* by family: how many candidates of the first round it has, */
    int quota, at;   /* of how many; and where in the order the next is looked for */
    double begin;
    bool stopped;
} Search;

static double elapsed(const Search *s)
{
    return s->act->now(s->act->user) - s->begin;
}

/* Seconds that the match of the best and the default will need. */
static double reserve(const Search *s)
{
    double both = s->best == 0 ? 0 : s->cand[0]->typical + s->cand[s->best]->typical;

    return fmin(TUNE_LEAST_TURNS * both, s->limits->seconds / 2);
}

static bool is_over(const Search *s)
{
    return s->stopped || elapsed(s) + reserve(s) >= s->limits->seconds;
}

static const TunePoint *point_of(const Search *s, int i)
{
    return &s->space->point[s->cand[i]->point];
}

static void tell(Search *s, const char *what, int i, const char *why, int done, int of)
{
    const Candidate *base = s->cand[0], *best = s->cand[s->best];
    TuneTold t = { .what = what,
                   .schedule = point_of(s, i)->text,
                   .why = why,
                   .done = done,
                   .of = of,
                   .elapsed = elapsed(s),
                   .budget = s->limits->seconds,
                   .best = best->timed ? point_of(s, s->best)->text : NULL,
                   .best_s = best->timed ? best->typical : 0,
                   .default_s = base->timed ? base->typical : 0 };

    s->stopped = s->act->tell(s->act->user, &t) || s->stopped;
}

/* The candidate with these loops, or -1. */
static int find_tree(const Search *s, uint64_t tree)
{
    for (int i = 0; i < s->n; i++)
        if (s->cand[i]->tree == tree)
            return i;
    return -1;
}

static void choose(Search *s, int point)
{
    Candidate *c;
    uint64_t tree;

    if (s->seen[point])
        return;
    s->seen[point] = true;
    if (!s->ask->tree(s->ask->user, s->space->point[point].text, &tree) || find_tree(s, tree) >= 0)
        return;
    c = arena_alloc(s->arena, sizeof *c);
    *c = (Candidate){ .point = point, .tree = tree };
    s->cand = arena_grow(s->arena, s->cand, s->n, &s->cap, sizeof *s->cand);
    s->cand[s->n++] = c;
}

/* Does a candidate have this piece? */
static bool is_covered(const Search *s, int dim, int piece)
{
    for (int i = 0; i < s->n; i++)
        if (point_of(s, i)->choice[dim] == piece)
            return true;
    return false;
}

/* A step is tried in the family of the default, of which most is known. */
static void choose_best_with(Search *s, int dim, int piece)
{
    const TuneSpace *space = s->space;

    for (int i = 0, n = s->n; i < space->npoint && s->n == n; i++) {
        const TunePoint *p = &space->point[space->order[i]];

        if (p->choice[dim] == piece && (p->family == 0 || space->dim[dim].family))
            choose(s, space->order[i]);
    }
}

/* One point more, without a place among the others. */
static int add_point(Search *s, const char *text)
{
    TuneSpace *space = s->space;
    TunePoint *p = arena_array(s->arena, space->npoint + 1, sizeof *p);
    bool *seen = arena_array(s->arena, space->npoint + 1, sizeof *seen);

    memcpy(p, space->point, (size_t)space->npoint * sizeof *p);
    memcpy(seen, s->seen, (size_t)space->npoint);
    p[space->npoint] = (TunePoint){ .choice = p[0].choice, .text = text, .changes = 1 };
    p[space->npoint].predicted = s->ask->predict(s->ask->user, text);
    space->point = p;
    s->seen = seen;
    return space->npoint++;
}

static int find_point(const TuneSpace *space, const char *text)
{
    for (int i = 0; i < space->npoint; i++)
        if (strcmp(space->point[i].text, text) == 0)
            return i;
    return -1;
}

/* The pick is in the space as a rule, perhaps in other words. */
static void choose_pick(Search *s, uint64_t *tree)
{
    const char *pick = s->limits->pick;

    if (pick == NULL || !s->ask->tree(s->ask->user, pick, tree)) {
        *tree = s->cand[0]->tree;
        return;
    }
    if (find_point(s->space, pick) >= 0)
        choose(s, find_point(s->space, pick));
    if (find_tree(s, *tree) < 0) {
        int ordered = s->space->npoint, at = add_point(s, pick);

        choose(s, at);
        s->space->npoint = ordered; /* the order knows nothing of it */
    }
}

/* The best of each family, later the next best: the model knows more of loops than of formats.
 * Those that it thinks hopeless wait for their turn among all others.  False: none is left. */
static bool choose_of_family(Search *s, int quota)
{
    const TuneSpace *space = s->space;
    int n = s->n, most = s->limits->top / 2 + s->limits->top / 4;
    double least = space->point[space->order[0]].predicted;

    for (; s->quota <= quota && n < most && s->n == n; s->at++) {
        const TunePoint *p;

        if (s->at == space->npoint) {
            s->quota++;
            s->at = -1;
            continue;
        }
        p = &space->point[space->order[s->at]];
        if (s->taken[p->family] >= s->quota || p->predicted > HOPELESS * least)
            continue;
        choose(s, space->order[s->at]);
        s->taken[p->family] += s->n > n;
    }
    return s->n > n;
}

/* Should the model be wrong about a step, it is tried all the same.  The families that were left
 * out are those it has no hope for, so they come last. */
static bool choose_with_piece(Search *s, bool family)
{
    const TuneSpace *space = s->space;
    int n = s->n;

    for (int d = 0; d < space->ndim && s->n == n; d++)
        for (int k = 1; k < space->dim[d].n && s->n == n; k++)
            if (space->dim[d].family == family && !is_covered(s, d, k))
                choose_best_with(s, d, k);
    return s->n > n;
}

static bool choose_in_order(Search *s)
{
    int n = s->n;

    for (int i = 0; i < s->space->npoint && s->n == n; i++)
        choose(s, s->space->order[i]);
    return s->n > n;
}

/* One more of the first round: each is lowered only when there is time for it.  Families and steps
 * take turns, as either may be what counts. */
static bool choose_more(Search *s)
{
    if (s->n >= s->limits->top)
        return false;
    if (s->n % 2 == 0 && choose_with_piece(s, false))
        return true;
    return choose_of_family(s, 1) || choose_with_piece(s, false) || choose_of_family(s, EACH) ||
           choose_with_piece(s, true) || choose_in_order(s);
}

static void choose_neighbours(Search *s, int center, int most)
{
    for (int i = 0; i < s->space->npoint && s->n < most; i++)
        if (tune_is_near(s->space, s->space->order[i], s->cand[center]->point))
            choose(s, s->space->order[i]);
}

static bool is_best_of_family(const Search *s, int i)
{
    const Candidate *c = s->cand[i];

    for (int k = 0; k < s->n; k++)
        if (s->cand[k]->timed && point_of(s, k)->family == point_of(s, i)->family &&
            s->cand[k]->typical < c->typical)
            return false;
    return c->timed && c->typical <= NEARBY * s->cand[s->best]->typical;
}

/* Those of the best; then of what is best in its family, and not far behind. */
static void choose_next(Search *s)
{
    int n = s->n, most = n + (s->limits->top + 1) / 2;

    choose_neighbours(s, s->best, most);
    for (int i = 0; i < n && s->n < most; i++)
        if (i != s->best && is_best_of_family(s, i))
            choose_neighbours(s, i, most);
}

static void check(Search *s, int i)
{
    const char *why = s->act->check(s->act->user, point_of(s, i));

    s->out->compiled++;
    s->cand[i]->alive = why == NULL;
    s->out->wrong += why != NULL;
    if (why != NULL)
        tell(s, "wrong", i, why, 0, 0);
}

/* Some of what was chosen.  The default is checked in any case. */
static int build_some(Search *s, double until)
{
    int n = s->n - s->fresh, first = s->fresh;
    const char **text;

    n = n < s->limits->together ? n : s->limits->together;
    text = arena_array(s->arena, n, sizeof *text);
    for (int i = 0; i < n; i++)
        text[i] = point_of(s, first + i)->text;
    n = s->act->build(s->act->user, text, n, s->begin + until);
    n = first + n > 0 ? n : 1;
    for (int i = 0; i < n; i++)
        check(s, s->fresh++);
    return n;
}

/* What there is no time for is taken back: a later search may choose it. */
static void build(Search *s, bool more)
{
    int first = s->fresh, of = more ? s->limits->top : s->n - first;
    double now = elapsed(s), all = s->limits->seconds;
    double until = more ? now + FIRST * (all - now) : BUILDING * all;

    while (s->fresh == 0 || !(is_over(s) || elapsed(s) > until)) {
        while (more && s->n - s->fresh < s->limits->together && choose_more(s))
            ;
        if (s->fresh == s->n)
            return;
        tell(s, "compile", s->fresh, "", s->fresh - first, of);
        if (build_some(s, until) == 0)
            break;
    }
    s->n = s->fresh;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void add_sample(Candidate *c, double seconds)
{
    double sorted[SAMPLES];

    if (c->n == SAMPLES)
        return;
    c->sample[c->n++] = seconds;
    memcpy(sorted, c->sample, (size_t)c->n * sizeof *sorted);
    qsort(sorted, (size_t)c->n, sizeof *sorted, by_value);
    c->typical = sorted[(c->n - 1) / 4];
}

static void remove_one(Search *s, int i)
{
    s->cand[i]->alive = false;
    s->act->drop(s->act->user, point_of(s, i));
}

/* Of those that are alive; the default has the benefit of the doubt. */
static void find_best(Search *s)
{
    int best = 0;
    double least = TUNE_GAIN * s->cand[0]->typical;

    for (int i = 1; i < s->n; i++)
        if (s->cand[i]->alive && s->cand[i]->timed && s->cand[i]->typical < least) {
            best = i;
            least = s->cand[i]->typical;
        }
    s->best = best;
}

static int count_alive(const Search *s)
{
    int n = 0;

    for (int i = 1; i < s->n; i++)
        n += s->cand[i]->alive;
    return n;
}

/* After one look what is far behind, after some what is behind at all. */
static bool is_hopeless(const Candidate *c, const Candidate *best)
{
    return c->typical > (c->n < FEW ? HOPELESS : SLOW) * best->typical;
}

/* One turn: each that is alive, once.  The default comes first and is timed in any case. */
static void take_turn(Search *s, int of)
{
    for (int i = 0; i < s->n; i++) {
        Candidate *c = s->cand[i];

        if (!c->alive || (c->timed + i > 0 && is_over(s)))
            continue;
        s->out->timed += !c->timed;
        c->timed = true;
        add_sample(c, s->act->time(s->act->user, point_of(s, i)));
        if (i > 0 && is_hopeless(c, s->cand[s->best]))
            remove_one(s, i);
        find_best(s);
        tell(s, "time", i, "", count_alive(s), of);
    }
}

/* Of two that are as fast as one another, the one that says more goes first. */
static bool is_worse(const Search *s, int a, int b)
{
    double x = s->cand[a]->typical, y = s->cand[b]->typical;
    int more = point_of(s, a)->changes - point_of(s, b)->changes;

    if (x > ALIKE * y || y > ALIKE * x || more == 0)
        return x >= y;
    return more > 0;
}

/* The slower half goes; never the default, which all are measured by. */
static void thin(Search *s)
{
    for (int left = (count_alive(s) + 1) / 2, n = count_alive(s); n > left && n > 1; n--) {
        int slowest = -1;

        for (int i = 1; i < s->n; i++)
            if (s->cand[i]->alive && (slowest < 0 || is_worse(s, i, slowest)))
                slowest = i;
        remove_one(s, slowest);
    }
}

static bool is_settled(const Search *s)
{
    int alive = count_alive(s);

    return alive <= LAST && s->cand[s->best]->n >= (alive > 0 ? ENOUGH : ALONE);
}

/* After a compile threads sleep and caches are cold: the default runs until that does not show. */
static void warm(Search *s)
{
    double last = s->act->time(s->act->user, point_of(s, 0)), next = 0;

    for (int i = 0; i < WARM && !is_over(s); i++) {
        next = s->act->time(s->act->user, point_of(s, 0));
        if (next > STEADY * last)
            return;
        last = next;
    }
}

/* Times of another while are no measure: all that are alive begin anew.  What was known counts
 * again when the time is up before each had its first turn. */
static void begin_round(Search *s, int of)
{
    Candidate *base = s->cand[0], *best = s->cand[s->best], before[] = { *base, *best };
    int known = s->best;

    for (int i = 0; i < s->n; i++)
        s->cand[i]->n = s->cand[i]->alive ? 0 : s->cand[i]->n;
    take_turn(s, of);
    if (!is_over(s) || before[0].n == 0)
        return;
    *base = before[0];
    *best = before[1];
    s->best = known;
}

static void halve(Search *s)
{
    int of = count_alive(s);

    if (is_over(s) && s->cand[0]->timed)
        return;
    if (of > 0 && !is_over(s))
        warm(s);
    begin_round(s, of);
    for (int turns = 2; !is_settled(s); turns = turns < MOST_TURNS ? 2 * turns : turns) {
        for (int t = 0; t < turns && !is_over(s); t++)
            take_turn(s, of);
        if (is_over(s))
            return;
        if (count_alive(s) > LAST)
            thin(s);
    }
}

/* Of those that are as fast as the best, the one that says least. */
static void simplify(Search *s)
{
    double most = ALIKE * s->cand[s->best]->typical;

    for (int i = 1; i < s->n; i++)
        if (s->cand[i]->alive && s->cand[i]->n >= s->cand[s->best]->n &&
            s->cand[i]->typical <= most && point_of(s, i)->changes < point_of(s, s->best)->changes)
            s->best = i;
}

/* The best meets the default again; if it does not win, the next best does.  After a stop there are
 * only the turns that a match needs. */
static void confirm(Search *s)
{
    double seconds = s->stopped ? 0 : fmax(MATCH * s->limits->seconds, MATCH_S);

    for (int i = 0; i < MATCHES && s->best != 0; i++) {
        TuneMatch m;
        bool won = tune_confirm(s->act, point_of(s, 0), point_of(s, s->best), seconds, &m);

        if (won) {
            s->cand[0]->typical = m.default_s;
            s->cand[s->best]->typical = m.seconds;
            s->out->spread = m.spread;
            s->out->turns = m.turns;
            return;
        }
        s->out->refuted++;
        s->cand[s->best]->alive = s->cand[s->best]->timed = false;
        find_best(s);
        simplify(s);
    }
    s->best = 0;
}

static void report(Search *s, uint64_t pick)
{
    int i = find_tree(s, pick);

    simplify(s);
    confirm(s);
    s->out->pick_s = i >= 0 ? s->cand[i]->typical : 0;
    s->out->best = point_of(s, s->best);
    s->out->seconds = s->cand[s->best]->typical;
    s->out->default_s = s->cand[0]->typical;
    s->out->stopped = s->stopped;
}

void tune_search(TuneSpace *space, const TuneAsk *ask, const TuneDo *act, const TuneLimits *limits,
                 TuneFound *out)
{
    Search s = { .space = space,
                 .ask = ask,
                 .act = act,
                 .limits = limits,
                 .out = out,
                 .arena = space->arena,
                 .begin = limits->since };
    uint64_t pick;

    *out = (TuneFound){ .best = &space->point[0] };
    s.seen = arena_array(s.arena, space->npoint, sizeof *s.seen);
    s.taken = arena_array(s.arena, space->nfamily, sizeof *s.taken);
    s.quota = 1;
    choose(&s, 0);
    choose_pick(&s, &pick);
    while (s.fresh < s.n) {
        build(&s, s.fresh == 0);
        halve(&s);
        if (is_over(&s))
            break;
        choose_next(&s);
    }
    report(&s, pick);
}
