/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Problems of weft bench that are convolutions over the neighbours of atoms:
 *
 *     conv:sevennet0-main:system=silicon:atoms=1000:cutoff=5:t=1
 *     conv:8x0e+8x1o*0e+1o>0e+1o:uvu:hidden=64:f64:backward
 *
 * The product is as of tp.c; system is silicon, water, oxide (of strontium and titanium) or any
 * crystal of weft_atoms_make; atoms are about so many. */
#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATOMS = 512, MOST_ATOMS = 10000000 };

#define CUTOFF 5.0 /* Angstrom */

static bool take_positive(const char *word, double most, double *to)
{
    char *end;

    *to = strtod(word, &end);
    return *end == 0 && end != word && *to > 0 && *to <= most;
}

int conv_take(Problem *p, const char *word)
{
    double v;

    if (strncmp(word, "system=", 7) == 0 && strlen(word) < sizeof p->matter + 7) {
        memcpy(p->matter, word + 7, strlen(word) - 6);
        return 1;
    }
    if (strncmp(word, "atoms=", 6) == 0) {
        if (!take_positive(word + 6, MOST_ATOMS, &v))
            return -1;
        p->atoms = (int64_t)v;
        return 1;
    }
    if (strncmp(word, "cutoff=", 7) == 0)
        return take_positive(word + 7, 100, &p->cutoff) ? 1 : -1;
    if (strncmp(word, "hidden=", 7) == 0) {
        if (!take_positive(word + 7, 65536, &v))
            return -1;
        p->hidden = (int)v;
        return 1;
    }
    return 0;
}

/* As many cubes of a crystal as make up the atoms, about as many in each direction. */
static bool make_crystal(Problem *p, const char *name, int64_t atoms, weft_atoms *out)
{
    char source[128];
    double cubes;
    long long side, rest;

    snprintf(source, sizeof source, "crystal:%s", name);
    if (weft_atoms_make(p->ctx, source, out) != WEFT_OK)
        return false;
    cubes = (double)atoms / (double)out->n;
    side = (long long)fmax(1, round(cbrt(cubes)));
    rest = (long long)fmax(1, round(cubes / (double)(side * side)));
    snprintf(source, sizeof source, "crystal:%s:n1=%lld:n2=%lld:n3=%lld:rattle=0.05", name, side,
             side, rest);
    return weft_atoms_make(p->ctx, source, out) == WEFT_OK;
}

static bool make_atoms(Problem *p, weft_atoms *out)
{
    const char *name = p->matter[0] != 0 ? p->matter : "silicon";
    int64_t atoms = p->atoms > 0 ? p->atoms : ATOMS;
    char source[64];

    if (strcmp(name, "water") == 0) {
        snprintf(source, sizeof source, "water:molecules=%lld", (long long)(atoms + 2) / 3);
        return weft_atoms_make(p->ctx, source, out) == WEFT_OK;
    }
    return make_crystal(p, strcmp(name, "oxide") == 0 ? "srtio3" : name, atoms, out);
}

bool conv_graph(Problem *p)
{
    double cutoff = p->cutoff > 0 ? p->cutoff : CUTOFF;
    weft_atoms atoms;
    weft_neighbours near;

    if (p->few) /* to compare with the interpreter */
        return weft_graph_make(p->ctx, "uniform:n=4:nnz=8", p->index, &p->graph) == WEFT_OK;
    if (!make_atoms(p, &atoms) ||
        weft_neighbours_make(p->ctx, &atoms, cutoff, p->index, &near) != WEFT_OK)
        return false;
    p->graph = (weft_graph){ near.n, near.n, near.nnz, p->index, near.start, near.sender };
    return true;
}
