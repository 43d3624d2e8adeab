/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A launch: blocks one after another, the warps of a block in turns. */
#include "gpu/sass/ops.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS = 0x160 };

uint64_t draw(Run *r) /* splitmix64 */
{
    uint64_t z = r->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---- What is told */
const char *thread_name(const Run *r, uint32_t thread, char to[48])
{
    snprintf(to, 48, "(%u,%u,%u)", thread % r->block[0], thread / r->block[0] % r->block[1],
             thread / r->block[0] / r->block[1]);
    return to;
}

static void add_error(Run *r, uint64_t key, const char *text)
{
    SassGpu *g = r->gpu;

    for (int k = 0; k < g->errors; k++)
        if (g->error_key[k] == key)
            return;
    if (g->errors == ERRORS)
        return;
    g->error_key[g->errors] = key;
    g->error[g->errors] = strdup(text);
    if (g->error[g->errors++] == NULL)
        abort();
}

/* Once for each key. */
void report(Run *r, uint64_t key, const char *fmt, ...)
{
    char what[SASS_TEXT], text[SASS_TEXT + 128];
    va_list list;

    va_start(list, fmt);
    vsnprintf(what, sizeof what, fmt, list);
    va_end(list);
    snprintf(text, sizeof text, "%s, block (%u,%u,%u): %s", sass_name(r->kernel), r->at[0],
             r->at[1], r->at[2], what);
    add_error(r, key, text);
}

void fail(Warp *w, const Ins *i, uint32_t lane, const char *fmt, ...)
{
    Run *r = w->run;
    char what[SASS_TEXT - 256], name[48];
    va_list list;

    va_start(list, fmt);
    vsnprintf(what, sizeof what, fmt, list);
    va_end(list);
    if (!r->failed)
        report(r, UINT64_C(1) << 62 | (uint64_t)(i - r->ins),
               "thread %s (warp %u, lane %u) at /*%04llx*/ %s: %s",
               thread_name(r, w->number * LANES + lane, name), w->number, lane,
               (unsigned long long)i->address, i->text, what);
    r->failed = true;
}

/* ---- A warp */
static uint32_t guarded(const Warp *w, const Ins *i)
{
    return i->guard.reg == PT && !i->guard.inv ? ALL_LANES : pred(w, &i->guard);
}

/* Runs a warp until it waits, has ended or has used its turn. */
static void run_warp(Warp *w)
{
    Run *r = w->run;
    const Ins *code = r->ins;

    while (w->act != 0 && w->quantum > 0 && !r->failed) {
        const Ins *i = &code[w->pc];
        const uint32_t on = guarded(w, i), mask = w->act & on;

        if (w->pc >= w->limit) { /* other lanes are there, or before it */
            park(w, w->pc, w->act, READY, 0);
            pick(w);
            continue;
        }
        r->executed[w->pc]++;
        r->lanes += (uint64_t)__builtin_popcount(mask);
        switch (i->op->flow) {
        case FLOW_NONE:
        case FLOW_MEMORY:
            if (w->undefined)
                watch_undefined(w, i, mask);
            if (mask != 0)
                i->op->run(w, i, i->uniform ? on : mask);
            w->pc++;
            w->quantum -= i->op->flow == FLOW_MEMORY;
            break;
        case FLOW_NOP:
            syncwarp_passed(w, mask);
            w->pc++;
            break;
        case FLOW_BRANCH: branch(w, i, mask); break;
        case FLOW_EXIT: leave(w, mask); break;
        default: synchronise(w, i, mask);
        }
        if (--r->budget == 0)
            fail(w, i, mask != 0 ? (uint32_t)__builtin_ctz(mask) : 0,
                 "the launch has not ended after %llu warp instructions",
                 (unsigned long long)r->gpu->limit);
    }
}

static void start_warp(Run *r, Warp *w, uint32_t number)
{
    const uint32_t threads = r->block[0] * r->block[1] * r->block[2], first = number * LANES;

    w->run = r;
    w->number = number;
    w->live = threads - first >= LANES ? ALL_LANES : (1u << (threads - first)) - 1;
    w->act = w->live;
    w->pc = r->sass->function[r->kernel->function].first;
    w->limit = UINT32_MAX;
    w->groups = 0;
    w->pending = 0;
    w->uniform = true;
    w->clock = 1;
    w->voted = 0;
    if (w->undefined)
        memset(w->undef, 0, sizeof w->undef);
    w->undefined = false;
    memset(w->p, 0, sizeof w->p);
    memset(w->up, 0, sizeof w->up);
    memset(w->b, 0, sizeof w->b);
    w->p[PT] = w->up[PT] = ALL_LANES;
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t t = first + l;

        w->tid[0][l] = t % r->block[0];
        w->tid[1][l] = t / r->block[0] % r->block[1];
        w->tid[2][l] = t / r->block[0] / r->block[1];
    }
    if (w->stack != NULL && w->stack_low < STACK / 4) {
        memset(w->written + (size_t)w->stack_low * LANES, 0, (STACK / 4 - w->stack_low) * LANES);
        w->stack_low = STACK / 4;
    }
}

/* ---- A block */
static bool runnable(const Warp *w)
{
    if (w->act != 0)
        return true;
    for (int g = 0; g < w->groups; g++)
        if (w->group[g].state == READY)
            return true;
    return false;
}

/* With seed 0 a turn ends only where a warp waits in a loop for another; else after a few accesses.
 * */
static void turn(Run *r, Warp *w)
{
    w->quantum = r->random == 0 ? 100000 : (int64_t)(draw(r) % 24) + 1;
    if (w->act == 0)
        pick(w);
    run_warp(w);
    if (r->random != 0 && w->groups > 0 && w->act != 0) { /* other lanes may go first then */
        park(w, w->pc, w->act, READY, 0);
        w->act = 0;
    }
}

static void run_block(Run *r)
{
    r->reduced[0] = r->reduced[1] = r->reduced[2] = 0;
    for (int k = 0; k < r->warps; k++)
        start_warp(r, &r->warp[k], (uint32_t)k);
    while (!r->failed) {
        bool any = false, left = false;
        const int from = r->random == 0 ? 0 : (int)(draw(r) % (uint64_t)r->warps);

        for (int k = 0; k < r->warps && !r->failed; k++) {
            Warp *w = &r->warp[(from + k) % r->warps];

            if (runnable(w) && (r->random == 0 || draw(r) % 4 != 0))
                turn(r, w);
            any |= runnable(w);
            left |= w->live != 0;
        }
        if (!left)
            return;
        if (!any && !r->failed && !release_barrier(r))
            return;
    }
}

/* ---- Constants */
void decode_numbers(Sass *s)
{
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (uint32_t p = 0; p < s->count; p++)
            for (int k = 0; k < s->ins[p].args; k++) {
                Arg *a = &s->ins[p].arg[k];

                if (a->kind != ARG_VALUE && a->kind != ARG_CONST)
                    continue;
                if (pass == 1) {
                    a->fixed = s->number[n];
                    for (int l = 0; l < LANES && a->kind == ARG_VALUE; l++) {
                        s->number[n][l] = (uint32_t)a->value;
                        s->number[n][LANES + l] = (uint32_t)((uint64_t)a->value >> 32);
                    }
                }
                n++;
            }
        if (pass == 0)
            s->number = calloc((size_t)n + 1, sizeof *s->number);
        if (s->number == NULL)
            abort();
    }
    s->numbers = n;
}

/* A bank is the function's own or, in a function that kernels call, the kernel's. */
static const Bank *bank_of(const Run *r, const Function *f, int bank)
{
    static const Bank none;

    if (bank < 0 || bank >= BANKS)
        return &none;
    return f->bank[bank].at != NULL ? &f->bank[bank]
                                    : &r->sass->function[r->kernel->function].bank[bank];
}

const unsigned char *constant_bank(const Run *r, uint32_t function, int bank, size_t *bytes)
{
    const Bank *b = bank_of(r, &r->sass->function[function], bank);

    *bytes = bank == 0 ? sizeof r->constant : b->bytes;
    return bank == 0 ? r->constant : b->at;
}

/* Two words of a bank, 0 beyond its end. */
static uint64_t constant_at(const Run *r, uint32_t function, int bank, int64_t at)
{
    size_t bytes;
    const unsigned char *from = constant_bank(r, function, bank, &bytes);
    uint64_t v = 0;

    if (from != NULL && at >= 0 && (size_t)at < bytes)
        memcpy(&v, from + at, bytes - (size_t)at < 8 ? bytes - (size_t)at : 8);
    return v;
}

void set_constants(Run *r, uint32_t function)
{
    const Function *f = &r->sass->function[function];

    if (r->ready[function])
        return;
    r->ready[function] = true;
    for (uint32_t p = f->first; p < f->first + f->count; p++)
        for (int k = 0; k < r->ins[p].args; k++) {
            const Arg *a = &r->ins[p].arg[k];

            if (a->kind != ARG_CONST)
                continue;
            const uint64_t v = constant_at(r, function, a->bank, a->value);
            uint32_t *to =
                r->sass->number[(uint32_t (*)[2 * LANES])(uintptr_t)a->fixed - r->sass->number];

            for (int l = 0; l < LANES; l++) {
                to[l] = (uint32_t)v;
                to[LANES + l] = (uint32_t)(v >> 32);
            }
        }
}

/* Bank 0: the shape of the launch, windows of generic addresses, the stack, parameters. */
static void fill_bank(Run *r, const SassParams *params)
{
    const uint64_t shared = SHARED_WINDOW, local = LOCAL_WINDOW, constants = CONSTANTS;
    const uint32_t stack = STACK;

    memset(r->constant, 0, sizeof r->constant);
    memcpy(r->constant, r->block, 12);
    memcpy(r->constant + 12, r->grid, 12);
    memcpy(r->constant + 0x18, &shared, 8);
    memcpy(r->constant + 0x20, &local, 8);
    memcpy(r->constant + 0x28, &stack, 4);
    memcpy(r->constant + 0x50, &constants, 8);
    memcpy(r->constant + PARAMS, params->bytes, params->size);
}

/* ---- A launch */

/* Data of the module are buffers that are there as long as its kernels run. */
static void bind_module(SassGpu *g, const Sass *s)
{
    if (g->sass == s)
        return;
    for (int k = g->buffers - 1; k >= 0; k--)
        if (g->buffer[k].module) {
            buffer_free(&g->buffer[k]);
            g->buffer[k] = g->buffer[--g->buffers];
        }
    g->sass = s;
    for (int d = 0; s != NULL && d < s->datas; d++) {
        const uint64_t next = g->next;

        sass_buffer(g, "data of the module", s->data[d].at, s->data[d].bytes, SASS_INOUT);
        g->next = next;
        g->buffer[g->buffers - 1].base = s->data[d].address;
        g->buffer[g->buffers - 1].module = true;
    }
    const Bank *constants = s == NULL ? NULL : &s->function[0].bank[3];

    if (constants != NULL && constants->at != NULL) { /* pointers may point to these too */
        const uint64_t next = g->next;

        sass_buffer(g, "constants", (void *)(uintptr_t)constants->at, constants->bytes, SASS_INPUT);
        g->next = next;
        g->buffer[g->buffers - 1].base = CONSTANTS;
        g->buffer[g->buffers - 1].module = true;
    }
}

static bool allowed(Run *r, const SassShape *shape)
{
    const uint64_t threads = (uint64_t)r->block[0] * r->block[1] * r->block[2];
    const Function *f = &r->sass->function[r->kernel->function];
    const int registers = f->use.registers > 0 ? f->use.registers : 1;
    const uint64_t shared = (uint64_t)f->use.shared + (uint64_t)shape->dynamic;

    if (threads > 1024)
        report(r, 0, "a block of %llu threads; 1024 are the most", (unsigned long long)threads);
    else if (shared > SHARED_MOST)
        report(r, 0, "a block with %llu bytes of shared memory; %d are the most",
               (unsigned long long)shared, SHARED_MOST);
    else if (sass_warps(r->kernel, (int)threads, shape->dynamic) == 0)
        report(r, 0, "%d registers a thread do not go into an SM with %llu threads a block",
               registers, (unsigned long long)threads);
    else
        return true;
    return false;
}

static void open_run(Run *r, const SassShape *shape, const SassParams *params)
{
    const Sass *s = r->sass;
    const Function *f = &s->function[r->kernel->function];
    const int warps = (int)((r->block[0] * r->block[1] * r->block[2] + LANES - 1) / LANES);

    fill_bank(r, params);
    r->ready = calloc((size_t)s->functions, sizeof *r->ready);
    if (r->ready == NULL)
        abort();
    set_constants(r, r->kernel->function);
    if (warps > r->warps) {
        for (int k = 0; k < r->warps; k++) {
            free(r->warp[k].stack);
            free(r->warp[k].written);
        }
        free(r->warp);
        r->warp = calloc((size_t)warps, sizeof *r->warp);
    }
    r->warps = warps > r->warps ? warps : r->warps;
    r->shared_bytes = (size_t)(f->use.shared + shape->dynamic);
    if (r->shared == NULL) {
        r->shared = calloc(1, SHARED_MOST + 16);
        r->shared_cell = calloc(SHARED_MOST / 4 + 4, sizeof *r->shared_cell);
    }
    free(r->gpu->executed);
    r->executed = r->gpu->executed = calloc(s->count + 1, sizeof *r->executed);
    if (r->warp == NULL || r->shared == NULL || r->shared_cell == NULL || r->executed == NULL)
        abort();
}

static void next_block(Run *r)
{
    if (r->blocks == r->block_room) {
        r->block_room = r->block_room == 0 ? 64 : 2 * r->block_room;
        r->first_eras = realloc(r->first_eras, r->block_room * sizeof *r->first_eras);
        if (r->first_eras == NULL)
            abort();
    }
    r->block_first = ++r->era;
    r->first_eras[r->blocks++] = r->era;
}

static void sum_up(Run *r)
{
    for (uint32_t p = 0; p < r->sass->count; p++) {
        const Ins *i = &r->ins[p];

        if (i->op->flow == FLOW_NOP)
            continue;
        r->count.of[i->cls] += r->executed[p];
        r->count.all += r->executed[p];
    }
    r->count.lanes = r->lanes;
    r->count.diverged = r->diverged;
    r->gpu->count = r->count;
}

bool sass_launch(SassGpu *g, const SassKernel *k, const SassShape *shape, const SassParams *params)
{
    Run *r = g->run;
    const int had = r->warps;

    for (int n = 0; n < g->errors; n++)
        free(g->error[n]);
    g->errors = 0;
    g->count = (SassCount){ 0 };
    bind_module(g, k->sass);
    r->gpu = g;
    r->sass = k->sass;
    r->kernel = k;
    r->ins = k->sass->ins;
    for (int d = 0; d < 3; d++) {
        r->grid[d] = shape->grid[d] == 0 ? 1 : shape->grid[d];
        r->block[d] = shape->block[d] == 0 ? 1 : shape->block[d];
        r->at[d] = 0;
    }
    r->count = g->count;
    r->lanes = r->diverged = 0;
    r->failed = false;
    r->look = g->look;
    r->budget = g->limit;
    r->random = g->seed;
    r->blocks = r->eaches = 0;
    r->launch_first = r->era + 1;
    if (!allowed(r, shape))
        return false;
    open_run(r, shape, params);
    const int most = r->warps;

    r->warps = (int)((r->block[0] * r->block[1] * r->block[2] + LANES - 1) / LANES);
    for (unsigned z = 0; z < r->grid[2]; z++)
        for (unsigned y = 0; y < r->grid[1]; y++)
            for (unsigned x = 0; x < r->grid[0] && !r->failed; x++) {
                r->at[0] = x, r->at[1] = y, r->at[2] = z;
                next_block(r);
                run_block(r);
            }
    r->warps = most > had ? most : had;
    free(r->ready);
    sum_up(r);
    return g->errors == 0;
}

/* ---- The device */
SassGpu *sass_gpu(void)
{
    SassGpu *g = calloc(1, sizeof *g);

    if (g == NULL || (g->run = calloc(1, sizeof *g->run)) == NULL)
        abort();
    g->next = BUFFERS;
    g->limit = UINT64_C(4000000000);
    g->look = true;
    return g;
}

void sass_gpu_free(SassGpu *g)
{
    if (g == NULL)
        return;
    Run *r = g->run;

    sass_drop_buffers(g);
    for (int k = 0; k < r->warps; k++) {
        free(r->warp[k].stack);
        free(r->warp[k].written);
    }
    for (int n = 0; n < g->errors; n++)
        free(g->error[n]);
    free(r->warp);
    free(r->shared);
    free(r->shared_cell);
    free(r->each);
    free(r->split);
    free(r->first_eras);
    free(r);
    free(g->executed);
    free(g->buffer);
    free(g);
}

void sass_seed(SassGpu *g, uint64_t seed)
{
    g->seed = seed;
}
void sass_limit(SassGpu *g, uint64_t instructions)
{
    g->limit = instructions;
}
void sass_races(SassGpu *g, bool look)
{
    g->look = look;
}
SassCount sass_count(const SassGpu *g)
{
    return g->count;
}
int sass_errors(const SassGpu *g)
{
    return g->errors;
}
const char *sass_error(const SassGpu *g, int i)
{
    return i >= 0 && i < g->errors ? g->error[i] : NULL;
}

void sass_profile(const SassGpu *g, FILE *to)
{
    for (uint32_t p = 0; g->sass != NULL && g->executed != NULL && p < g->sass->count; p++)
        if (g->executed[p] != 0)
            fprintf(to, "%12llu  /*%04llx*/ %s\n", (unsigned long long)g->executed[p],
                    (unsigned long long)g->sass->ins[p].address, g->sass->ins[p].text);
}

/* ---- Parameters */
void sass_param_bytes(SassParams *p, const void *v, size_t size, size_t align)
{
    const size_t at = (p->size + align - 1) / align * align;

    if (at + size > sizeof p->bytes)
        abort();
    memcpy(p->bytes + at, v, size);
    p->size = at + size;
}
void sass_param32(SassParams *p, uint32_t v)
{
    sass_param_bytes(p, &v, 4, 4);
}
void sass_param64(SassParams *p, uint64_t v)
{
    sass_param_bytes(p, &v, 8, 8);
}
void sass_param_float(SassParams *p, float v)
{
    sass_param_bytes(p, &v, 4, 4);
}
