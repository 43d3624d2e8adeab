/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft neighbours: atoms from files or generators, what they are like, and their neighbours. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Wanted {
    const char *source, *out;
    double cutoff; /* 0: no neighbours */
} Wanted;

static void put_atoms(const weft_atoms *a)
{
    printf("%lld atoms", (long long)a->n);
    for (int k = 0; k < a->kinds; k++) {
        int64_t n = 0;

        for (int64_t i = 0; i < a->n; i++)
            n += a->kind[i] == k;
        printf("%s %lld %s", k == 0 ? ":" : ",", (long long)n, a->name[k]);
    }
    printf("\n");
    for (int c = 0; c < 3; c++)
        if (a->pbc[c] != 0)
            printf("periodic along %.10g %.10g %.10g\n", a->cell[3 * c], a->cell[3 * c + 1],
                   a->cell[3 * c + 2]);
}

static void put_neighbours(const weft_neighbours *e, double cutoff)
{
    const int64_t *start = e->start;
    int64_t least = e->n > 0 ? e->nnz : 0, most = 0;
    double nearest = 0;

    for (int64_t i = 0; i < e->n; i++) {
        int64_t n = start[i + 1] - start[i];

        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    for (int64_t p = 0; p < e->nnz; p++)
        nearest = p == 0 || e->dist[p] < nearest ? e->dist[p] : nearest;
    printf("%lld pairs nearer than %.10g\n", (long long)e->nnz, cutoff);
    printf("neighbours of an atom: least %lld, mean %.4g, most %lld; nearest at %.6g\n",
           (long long)least, (double)e->nnz / (double)(e->n > 0 ? e->n : 1), (long long)most,
           nearest);
}

static int work(weft_ctx *ctx, const Wanted *w)
{
    bool to_xyz = w->out != NULL && (w->cutoff == 0 || strstr(w->out, ".xyz") != NULL);
    weft_atoms atoms;
    weft_neighbours e = { 0 };

    if (weft_atoms_make(ctx, w->source, &atoms) != WEFT_OK ||
        (w->cutoff != 0 &&
         weft_neighbours_make(ctx, &atoms, w->cutoff, WEFT_I64, &e) != WEFT_OK) ||
        (to_xyz && weft_atoms_write(ctx, &atoms, w->out) != WEFT_OK) ||
        (w->out != NULL && !to_xyz && weft_neighbours_write(ctx, w->out) != WEFT_OK))
        return cli_failed(ctx);
    if (w->out != NULL)
        return EXIT_GOOD;
    put_atoms(&atoms);
    if (w->cutoff != 0)
        put_neighbours(&e, w->cutoff);
    return EXIT_GOOD;
}

static int neighbours(const Command *c, int argc, char **argv)
{
    Wanted w = { 0 };
    weft_ctx *ctx;
    int code;

    for (int i = 1; i < argc; i++) {
        char *end = NULL;

        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            w.out = argv[++i];
        } else if (strcmp(argv[i], "-r") == 0 && i + 1 < argc) {
            w.cutoff = strtod(argv[++i], &end);
            if (end == argv[i] || *end != 0 || !(w.cutoff > 0))
                return cli_usage(c, "the cutoff is a length above 0, not %s", argv[i]);
        } else if (argv[i][0] == '-') {
            return cli_usage(c, "there is no option %s, or a word is missing after it", argv[i]);
        } else if (w.source != NULL) {
            return cli_usage(c, "one structure at a time");
        } else {
            w.source = argv[i];
        }
    }
    if (w.source == NULL)
        return cli_usage(c, "atoms are missing");
    ctx = cli_ctx();
    code = work(ctx, &w);
    cli_free(ctx);
    return code;
}

const Command cmd_neighbours = {
    "neighbours",
    "find the neighbours of atoms",
    "usage: weft neighbours ATOMS [-r CUTOFF] [-o FILE]\n\n"
    "Prints what the atoms are like and, with a cutoff, how many neighbours they have. With -o it\n"
    "writes instead: the neighbours to x.npz (n, start, col, shift, vec, dist: a graph that weft\n"
    "bench can read), or the atoms to x.xyz. ATOMS is a file, plain or extended .xyz, or a\n"
    "generator, which gives the same atoms on every machine; lengths are in Angstrom:\n\n"
    "  crystal:NAME:repeat=4:rattle=0.05  cubes of silicon, copper, iron, mgo, nacl, sio2 or\n"
    "                                     srtio3; n1= n2= n3= repeat in one direction, a= is the\n"
    "                                     side of a cube\n"
    "  water:molecules=64                 at 1 g/cm3, turned at random\n\n"
    "and :seed=S.\n\n"
    "examples:\n"
    "  weft neighbours crystal:silicon:repeat=4:rattle=0.05 -r 5\n"
    "  weft neighbours water:molecules=512 -o water.xyz\n"
    "  weft neighbours water.xyz -r 5 -o edges.npz\n",
    neighbours,
};
