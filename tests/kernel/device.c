/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The kernels of all subjects as one text for a device, and runs of them there: each array of a
 * subject is copied to the device before a phase and back after it, so that what follows a phase
 * sees what all of them do.  What a device is, backends know: opencl.c, sass.c. */
#include "kernel/kernel_test.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 32, GROUPS = 3 };

/* Products and sums round as the interpreter's do where data are not exact. */
static const char apart[] = "\n#undef weft_fma_f32\n#undef weft_fma_f64\n"
                            "#define weft_fma_f32(a, b, c) ((float)(a) * (float)(b) + (float)(c))\n"
                            "#define weft_fma_f64(a, b, c) ((double)(a) * (double)(b) + (c))\n";
static const char fused[] = "\n#undef weft_fma_f32\n#undef weft_fma_f64\n"
                            "#define weft_fma_f32(a, b, c) fma((float)(a), (float)(b), (float)(c))\n"
                            "#define weft_fma_f64(a, b, c) fma((double)(a), (double)(b), (double)(c))\n";

/* Defects of the prelude, by name: what stands behind it then, or what stands in it for `old`. */
static const struct {
    const char *name, *text, *old;
} plants[] = {
    { "barrier", "#undef WEFT_BARRIER\n#define WEFT_BARRIER (void)0\n", NULL },
    { "lane", "#undef WEFT_STOREM\n#define WEFT_STOREM(p, v, m) "
              "do { if (m) (p)[weft_lane ^ 1] = (v); } while (0)\n", NULL },
    { "fold", "#undef WEFT_FOLDED\n#define WEFT_FOLDED(name, v) (v)\n", NULL },
    { "mask", "#undef WEFT_MASK_F32\n#undef WEFT_MASK_F64\n#define WEFT_MASK_F32(n) ((n) > 0)\n"
              "#define WEFT_MASK_F64(n) ((n) > 0)\n", NULL },
    { "first", "#undef WEFT_ONE\n#define WEFT_ONE\n", NULL },
    { "width", "part > 1; part /= 2", "part > 0; part /= 2" },
    { "tile", ": weft_s.n - 1;", ": weft_s.n;" },
};
enum { PLANTS = sizeof plants / sizeof *plants };
static int planted = -1;

const char *device_plant(int i)
{
    planted = i < PLANTS ? i : -1;
    return i < PLANTS ? plants[i].name : NULL;
}

/* The prelude, with the defect that is planted. */
static void put_prelude(Text *t)
{
    const char *at = emit_gpu_h, *old = planted < 0 ? NULL : plants[planted].old, *next;

    while (old != NULL && (next = strstr(at, old)) != NULL) {
        text_put(t, at, (size_t)(next - at));
        text_str(t, plants[planted].text);
        at = next + strlen(old);
    }
    text_str(t, at);
    text_str(t, planted < 0 || old != NULL ? "" : plants[planted].text);
}

/* The text in which kernels are numbered one after the other; *n: how many there are. */
static Text text_of(Arena *a, const Subjects *all, const char ***name, int *n)
{
    Text t = { .arena = a };
    int cap = 0;

    *n = 0;
    *name = NULL;
    text_f(&t, "#define WEFT_LANES %d\n#define WEFT_WARPS %d\n#define WEFT_RESIDENT 1\n"
               "#define WEFT_REGISTERS 65536\n", LANES, all->device->warps);
    put_prelude(&t);
    for (int i = 0; i < all->n; i++) {
        const EmitKernel *k = all->s[i].kernel;

        if (k == NULL)
            continue;
        all->s[i].first = *n;
        text_str(&t, all->s[i].exact || all->s[i].tolerance > 0 ? fused : apart);
        text_str(&t, all->s[i].source);
        for (int f = 0; f < k->nphase; f++) {
            *name = arena_grow(a, *name, *n, &cap, sizeof **name);
            (*name)[(*n)++] = k->phase[f].kernel;
        }
    }
    return t;
}

void device_load(Arena *a, Batch *b, const Subjects *all)
{
    const char **name;
    int n;
    Text t = text_of(a, all, &name, &n);

    if (getenv("WEFT_TEST_KEEP") != NULL)
        file_write(a, "/tmp/weft-kernel.cl", t.s, t.n);
    b->backend = all->device;
    b->device = all->device->build(a, t.s, name, n);
}

void device_close(Batch *b)
{
    if (b->device != NULL)
        b->backend->close(b->device);
    b->device = NULL;
}

typedef struct Launch {
    const Backend *backend;
    const Subject *s;
    const EmitPhase *phase;
    int64_t n, units;
    const int64_t *part; /* by iteration; or NULL */
} Launch;

static void *put_units(Launch *l)
{
    int64_t *begin, n = 0;
    void *memory;

    l->units = (l->n + l->phase->step - 1) / l->phase->step;
    if (l->part == NULL)
        return NULL;
    begin = malloc((size_t)(l->n + 1) * sizeof *begin);
    for (int64_t i = 0; i < l->n; i++)
        if (i == 0 || l->part[i] != l->part[i - 1])
            begin[n++] = i;
    begin[n] = l->n;
    l->units = n;
    memory = l->backend->put(begin, (n + 1) * (int64_t)sizeof *begin);
    free(begin);
    return memory;
}

static int64_t launch(const Batch *b, const Launch *l, int phase, void **memory, int narray,
                      const int64_t *size, int nsize)
{
    const Backend *d = b->backend;
    int64_t threads = l->phase->lanes ? LANES * d->warps : d->threads;
    int64_t callers = l->phase->lanes ? d->warps : d->threads;
    uint32_t fault = UINT32_MAX;
    int64_t lanes = l->phase->width > 0 ? l->phase->width * l->phase->parts_of : LANES;
    int64_t units = l->phase->lanes ? callers * (LANES / lanes) : callers;
    int64_t groups = l->phase->each ? (l->units + units - 1) / units : GROUPS;
    void *scratch = d->put(NULL, l->phase->work * callers * GROUPS + 64),
         *fault_at = d->put(&fault, sizeof fault);
    DevArg *arg = calloc((size_t)narray + 4, sizeof *arg);
    int64_t *value = calloc((size_t)nsize + 5, sizeof *value);
    int n = 0;
    bool ran;

    for (int i = 0; i < narray; i++)
        if (l->s->kernel->array[i]->kind != B_CONST)
            arg[n++].memory = memory[i];
    arg[n++].memory = memory[narray];
    arg[n++].memory = scratch;
    arg[n++].memory = fault_at;
    memcpy(value, size, (size_t)nsize * sizeof *value);
    value[nsize + 1] = l->n;
    value[nsize + 2] = l->units;
    value[nsize + 3] = l->phase->step;
    value[nsize + 4] = l->phase->work;
    arg[n].value = value;
    arg[n++].bytes = (nsize + 5) * (int64_t)sizeof *value;
    ran = d->launch(b->device, l->s->first + phase, arg, n, groups, threads) &&
          d->get(fault_at, &fault, sizeof fault);
    d->drop(scratch);
    d->drop(fault_at);
    free(arg);
    free(value);
    return !ran ? -1 : fault == UINT32_MAX ? 0 : (int64_t)(fault & 0xff);
}

int64_t device_phase(const Batch *b, const Subject *s, int i, int64_t n, const int64_t *part,
                     const Array *array, const int64_t *size)
{
    const EmitKernel *k = s->kernel;
    Launch l = { b->backend, s, &k->phase[i], n, 0, part };
    void **memory = calloc((size_t)k->narray + 1, sizeof *memory);
    int64_t fault;

    for (int j = 0; j < k->narray; j++)
        if (k->array[j]->kind != B_CONST)
            memory[j] = b->backend->put(array[j].data,
                                        array[j].n * ir_type[array[j].type].bytes);
    memory[k->narray] = put_units(&l);
    fault = l.units > 0 ? launch(b, &l, i, memory, k->narray, size, s->prog->nsize + k->ncount) : 0;
    for (int j = 0; j < k->narray; j++)
        if (memory[j] != NULL && array[j].data != NULL)
            b->backend->get(memory[j], array[j].data, array[j].n * ir_type[array[j].type].bytes);
    for (int j = 0; j <= k->narray; j++)
        if (memory[j] != NULL)
            b->backend->drop(memory[j]);
    free(memory);
    return fault;
}
