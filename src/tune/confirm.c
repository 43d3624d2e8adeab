/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The last word on a candidate.  The best of many noisy times is too good: it was chosen for its
 * luck.  So the candidate that a search ends with meets the default once more, in turns and with
 * times of its own, and only what it gains there counts. */
#include "tune/tune.h"

#include <stdlib.h>

enum { TURNS = 20 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *sorted, int n)
{
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* The middle half of the times, as a share of their median. */
static double spread(const double *sorted, int n)
{
    double m = median(sorted, n);

    return m > 0 ? (sorted[n - 1 - n / 4] - sorted[n / 4]) / m : 0;
}

bool tune_confirm(const TuneDo *act, const TunePoint *base, const TunePoint *p, double seconds,
                  TuneMatch *out)
{
    const TunePoint *side[2] = { base, p };
    double time[2][TURNS], end = act->now(act->user) + seconds;
    int n = 0;

    while (n < TURNS && (n < TUNE_LEAST_TURNS || act->now(act->user) < end)) {
        for (int i = 0; i < 2; i++) { /* neither is always the first */
            int who = (i + n) % 2;

            time[who][n] = act->time(act->user, side[who]);
        }
        n++;
    }
    for (int i = 0; i < 2; i++)
        qsort(time[i], (size_t)n, sizeof *time[i], by_value);
    out->default_s = median(time[0], n);
    out->seconds = median(time[1], n);
    out->turns = n;
    out->spread = spread(time[0], n) > spread(time[1], n) ? spread(time[0], n) : spread(time[1], n);
    return out->seconds <= TUNE_GAIN * out->default_s;
}
