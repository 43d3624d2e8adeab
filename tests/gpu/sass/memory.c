/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Memory: loads, stores and atomics of global, shared and local (stack) memory.  Each lane's
 * address must lie in a buffer and be a multiple of the access's size. */
#include "gpu/sass/numbers.h"
#include "gpu/sass/ops.h"

#include <stdlib.h>
#include <string.h>

typedef struct Request { /* what the lanes of one place ask for */
    Warp *w;
    const Ins *i;
    uint32_t mask;
    uint64_t *at; /* of each lane, in its place */
    int bytes;
    enum Access access;
} Request;

/* ---- Addresses */
static void addresses(const Warp *w, const Arg *a, bool wide, uint64_t at[LANES])
{
    const uint32_t *r = w->r[a->reg];
    const uint64_t base = (uint64_t)a->value + w->ur[a->ureg][0] +
                          (wide ? (uint64_t)w->ur[a->ureg == URZ ? URZ : a->ureg + 1][0] << 32 : 0);

    if (wide && !a->narrow) {
        for (int l = 0; l < LANES; l++)
            at[l] = base + (a->reg == RZ ? 0 : pair_at(r, (uint32_t)l));
        return;
    }
    for (int l = 0; l < LANES; l++)
        at[l] = wide ? base + r[l] : (uint32_t)(base + (uint64_t)r[l] * (uint64_t)a->scale);
}

static const Arg *address_of(const Ins *i)
{
    for (int k = 0; k < i->args; k++)
        if (i->arg[k].kind == ARG_MEM)
            return &i->arg[k];
    return &i->arg[0];
}

static bool aligned(const Request *q)
{
    for (EACH(l, q->mask))
        if (q->at[l] & (uint64_t)(q->bytes - 1)) {
            fail(q->w, q->i, l, "the address %#llx is no multiple of %d",
                 (unsigned long long)q->at[l], q->bytes);
            return false;
        }
    return true;
}

/* ---- Global memory */
static Buffer *buffer_at(Run *r, uint64_t at, int bytes)
{
    SassGpu *g = r->gpu;

    for (int k = 0; k < g->buffers; k++) {
        Buffer *b = &g->buffer[k];

        if (at - b->base < b->bytes && b->bytes - (at - b->base) >= (uint64_t)bytes)
            return b;
    }
    return NULL;
}

static void outside(const Request *q, uint32_t l)
{
    const SassGpu *g = q->w->run->gpu;
    const Buffer *near = NULL;
    int64_t best = INT64_MAX;

    for (int k = 0; k < g->buffers; k++) {
        const int64_t off = (int64_t)(q->at[l] - g->buffer[k].base),
                      over = off - (int64_t)g->buffer[k].bytes;
        const int64_t far = off < 0 ? -off : over;

        if (far < best) {
            best = far;
            near = &g->buffer[k];
        }
    }
    if (near == NULL)
        fail(q->w, q->i, l, "the address %#llx is in no buffer", (unsigned long long)q->at[l]);
    else
        fail(q->w, q->i, l,
             "%d bytes at %#llx are in no buffer; the nearest is %s, which has %zu bytes: "
             "this is byte %lld of it",
             q->bytes, (unsigned long long)q->at[l], near->name, near->bytes,
             (long long)(q->at[l] - near->base));
}

/* Sectors of 32 bytes that the lanes touch. */
static void count_sectors(const Request *q)
{
    SassCount *c = &q->w->run->count;
    uint64_t seen[64], last = UINT64_MAX;
    uint64_t used = 0, n = 0;

    for (EACH(l, q->mask)) {
        const uint64_t s = q->at[l] >> 5;
        uint64_t h = s * UINT64_C(0x9e3779b97f4a7c15) >> 58;

        if (s == last)
            continue;
        last = s;
        while (used >> h & 1 && seen[h] != s)
            h = (h + 1) & 63;
        n += !(used >> h & 1);
        used |= UINT64_C(1) << h;
        seen[h] = s;
    }
    c->sectors[q->access] += n;
    c->bytes[q->access] += (uint64_t)q->bytes * (uint64_t)__builtin_popcount(q->mask);
}

static uint32_t same_address(const Request *q) /* the mask, if all lanes have one address; else 0 */
{
    const uint64_t first = q->at[__builtin_ctz(q->mask)];

    for (EACH(l, q->mask))
        if (q->at[l] != first)
            return 0;
    return q->mask;
}

/* The access of each lane goes to the race detector; lanes that read one address go together. */
static void watch(const Request *q, const Cells *cells, uint64_t base)
{
    const uint32_t together = same_address(q);

    if (together != 0) {
        access_word(q->w, q->i, cells, q->at[__builtin_ctz(together)] - base, q->bytes, together,
                    q->access);
        return;
    }
    for (EACH(l, q->mask))
        access_word(q->w, q->i, cells, q->at[l] - base, q->bytes, 1u << l, q->access);
}

/* Host addresses of the lanes; false: the launch has failed. */
static bool global_hosts(const Request *q, unsigned char *host[LANES])
{
    Run *r = q->w->run;
    uint32_t left = q->mask;

    if (!aligned(q))
        return false;
    count_sectors(q);
    while (left != 0) { /* the lanes of one buffer after another */
        const uint32_t first = (uint32_t)__builtin_ctz(left);
        Buffer *b = buffer_at(r, q->at[first], q->bytes);
        uint32_t here = 0;

        if (b == NULL) {
            outside(q, first);
            return false;
        }
        for (EACH(l, left))
            if (q->at[l] - b->base < b->bytes &&
                b->bytes - (q->at[l] - b->base) >= (uint64_t)q->bytes) {
                here |= 1u << l;
                host[l] = b->host + (q->at[l] - b->base);
            }
        left &= ~here;
        if (b->kind == SASS_INPUT) {
            if (q->access != READS) {
                fail(q->w, q->i, first, "it writes to %s, which is an input", b->name);
                return false;
            }
            continue;
        }
        const Cells cells = { IN_GLOBAL, b->cell, b, b->kind == SASS_FRESH };
        Request part = *q;

        part.mask = here;
        watch(&part, &cells, b->base);
    }
    return true;
}

/* ---- Shared memory */

/* Wavefronts: a bank of 32 gives one word of 4 bytes at a time; 8-byte accesses go by half warps,
 * 16-byte accesses by quarters. */
static uint64_t wavefronts(const Request *q)
{
    const int group = q->bytes <= 4   ? 32
                      : q->bytes == 8 ? 16
                                      : 8,
              words = q->bytes <= 4 ? 1 : q->bytes / 4;
    uint64_t n = 0;

    for (int from = 0; from < LANES; from += group) {
        const uint32_t mask = q->mask & (uint32_t)((UINT64_C(1) << group) - 1) << from;
        uint32_t word[32][32];
        uint8_t in[32] = { 0 };
        int most = 0;

        for (EACH(l, mask))
            for (int k = 0; k < words; k++) {
                const uint32_t x = (uint32_t)(q->at[l] >> 2) + (uint32_t)k, bank = x & 31;
                int m = 0;

                while (m < in[bank] && word[bank][m] != x)
                    m++;
                if (m == in[bank])
                    word[bank][in[bank]++] = x;
                most = in[bank] > most ? in[bank] : most;
            }
        n += (uint64_t)most;
    }
    return n;
}

static bool shared_hosts(const Request *q, unsigned char *host[LANES])
{
    Run *r = q->w->run;

    if (!aligned(q))
        return false;
    for (EACH(l, q->mask)) {
        if (q->at[l] > r->shared_bytes || (uint64_t)q->bytes > r->shared_bytes - q->at[l]) {
            fail(q->w, q->i, l, "%d bytes at %llu of shared memory, of which the block has %zu",
                 q->bytes, (unsigned long long)q->at[l], r->shared_bytes);
            return false;
        }
        host[l] = r->shared + q->at[l];
    }
    if (q->access != UPDATES) {
        r->count.shared[q->access] += (uint64_t)q->bytes * (uint64_t)__builtin_popcount(q->mask);
        r->count.waves[q->access] += wavefronts(q);
    }
    const Cells cells = { IN_SHARED, r->shared_cell, NULL, true };

    watch(q, &cells, 0);
    return true;
}

/* ---- Local memory: a lane's own stack, words of the lanes side by side */
static bool local_ready(const Request *q, uint32_t l)
{
    Warp *w = q->w;

    if (w->stack == NULL) {
        w->stack = calloc(STACK / 4 * LANES, 4);
        w->written = calloc(STACK / 4 * LANES, 1);
        w->stack_low = STACK / 4;
        if (w->stack == NULL || w->written == NULL)
            abort();
    }
    if (q->at[l] > STACK || (uint64_t)q->bytes > STACK - q->at[l]) {
        fail(w, q->i, l, "%d bytes at %#llx of local memory, of which a thread has %d", q->bytes,
             (unsigned long long)q->at[l], STACK);
        return false;
    }
    return true;
}

static void local_access(const Request *q, uint32_t *values)
{
    if (!aligned(q))
        return;
    for (EACH(l, q->mask)) {
        if (!local_ready(q, l))
            return;
        Warp *w = q->w;

        for (int k = 0; k < q->bytes; k++) {
            const size_t at = q->at[l] + (uint64_t)k, cell = at / 4 * LANES + l;
            const unsigned shift = 8 * (at & 3), to = 8 * ((unsigned)k & 3);
            uint32_t *v = &values[(k >> 2) * LANES + (int)l];

            if (q->access == READS) {
                if (!(w->written[cell] >> (at & 3) & 1)) {
                    const Cells stack = { IN_LOCAL, NULL, NULL, true };

                    note_undefined(w, q->i, &stack, at, k >> 2, 1u << l);
                }
                *v = (*v & ~(255u << to)) | (w->stack[cell] >> shift & 255) << to;
            } else {
                w->stack[cell] = (w->stack[cell] & ~(255u << shift)) | (*v >> to & 255) << shift;
                w->written[cell] |= (uint8_t)(1 << (at & 3));
                w->stack_low = at / 4 < w->stack_low ? (uint32_t)(at / 4) : w->stack_low;
            }
        }
    }
}

/* ---- Loads and stores */
static void read_hosts(const Request *q, unsigned char *host[LANES], uint32_t *v)
{
    const bool sign = has(q->i, M_S8) || has(q->i, M_S16);

    for (EACH(l, q->mask)) {
        switch (q->bytes) {
        case 1: v[l] = sign ? (uint32_t)(int8_t)*host[l] : *host[l]; break;
        case 2: {
            uint16_t x;

            memcpy(&x, host[l], 2);
            v[l] = sign ? (uint32_t)(int16_t)x : x;
            break;
        }
        case 4: memcpy(&v[l], host[l], 4); break;
        default:
            for (int k = 0; k < q->bytes / 4; k++)
                memcpy(&v[k * LANES + (int)l], host[l] + 4 * k, 4);
        }
    }
}

static void write_hosts(const Request *q, unsigned char *host[LANES], const uint32_t *v)
{
    for (EACH(l, q->mask))
        for (int k = 0; k < q->bytes; k += 4)
            memcpy(host[l] + k, &v[k / 4 * LANES + (int)l], q->bytes < 4 ? (size_t)q->bytes : 4);
}

static void move_place(Request *q, enum Place place, uint32_t *v)
{
    unsigned char *host[LANES];

    if (q->mask == 0)
        return;
    if (place == IN_LOCAL) {
        if (q->access == READS && q->bytes < 4) /* bytes that are not read are 0 */
            for (EACH(l, q->mask))
                v[l] = 0;
        local_access(q, v);
        if (q->access == READS && (has(q->i, M_S8) || has(q->i, M_S16)))
            for (EACH(l, q->mask))
                v[l] = q->bytes == 1 ? (uint32_t)(int8_t)v[l] : (uint32_t)(int16_t)v[l];
        return;
    }
    if (!(place == IN_SHARED ? shared_hosts(q, host) : global_hosts(q, host)))
        return;
    if (q->access == READS)
        read_hosts(q, host, v);
    else
        write_hosts(q, host, v);
}

/* Which place each lane's generic address is in; addresses become those of the place. */
static void sort_places(Request *q, uint32_t in[3])
{
    in[0] = in[1] = in[2] = 0;
    for (EACH(l, q->mask)) {
        enum Place p = IN_GLOBAL;

        if (q->at[l] - SHARED_WINDOW < WINDOW) {
            p = IN_SHARED;
            q->at[l] -= SHARED_WINDOW;
        } else if (q->at[l] - LOCAL_WINDOW < WINDOW) {
            p = IN_LOCAL;
            q->at[l] -= LOCAL_WINDOW;
        }
        in[p] |= 1u << l;
    }
}

/* The place by the operation's name: LDG, LDS, LDL; LD is any. */
static bool one_place(const Ins *i, enum Place *p)
{
    const char last = i->op->name[2];

    *p = last == 'S' ? IN_SHARED : last == 'L' ? IN_LOCAL : IN_GLOBAL;
    return last != 0;
}

static void move(Warp *w, const Ins *i, uint32_t mask, enum Access access, uint32_t *v)
{
    uint64_t at[LANES];
    Request q = { w, i, mask, at, i->bytes, access };
    enum Place p;
    const bool one = one_place(i, &p);

    addresses(w, address_of(i), !one || p == IN_GLOBAL, at);
    if (one) {
        move_place(&q, p, v);
        return;
    }
    uint32_t in[3];

    sort_places(&q, in);
    for (int k = 0; k < 3 && !w->run->failed; k++) {
        q.mask = in[k];
        move_place(&q, (enum Place)k, v);
    }
}

void op_load(Warp *w, const Ins *i, uint32_t mask)
{
    const Arg *to = is_pred(&i->arg[0]) ? &i->arg[1] : &i->arg[0];
    uint32_t v[4 * LANES], *r = dest(w, to);

    move(w, i, mask, READS, v);
    if (w->run->failed)
        return;
    for (int k = 0; k < (i->bytes + 3) / 4; k++)
        put_to(r + k * LANES, v + k * LANES, mask);
}

void op_store(Warp *w, const Ins *i, uint32_t mask)
{
    const Arg *a = &i->arg[i->args - 1];
    uint32_t v[4 * LANES];

    if (a->reg == RZ)
        memset(v, 0, sizeof v);
    else
        memcpy(v, raw(w, a), (size_t)(i->bytes + 3) / 4 * LANES * sizeof *v);
    move(w, i, mask, WRITES, v);
}

/* ---- Atomics, one lane after another */
static uint64_t float_sum(uint64_t a, uint64_t b, bool doubles)
{
    if (doubles)
        return of_double(as_double(a) + as_double(b));
    return flushed(of_float(as_float(flushed((uint32_t)a)) + as_float(flushed((uint32_t)b))));
}

static uint64_t updated(const Ins *i, uint64_t old, uint64_t v, uint64_t swap)
{
    const bool wide = i->bytes == 8, sign = has(i, M_S32) || has(i, M_S64);
    const uint64_t flip = !sign ? 0 : wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;

    if (has(i, M_CAS) || has(i, M_CAST))
        return old == v ? swap : old;
    if (has(i, M_ADD))
        return has(i, M_F32) || has(i, M_F64) ? float_sum(old, v, wide) : old + v;
    if (has(i, M_MIN))
        return (v ^ flip) < (old ^ flip) ? v : old;
    if (has(i, M_MAX))
        return (v ^ flip) > (old ^ flip) ? v : old;
    if (has(i, M_INC))
        return old >= v ? 0 : old + 1;
    if (has(i, M_DEC))
        return old == 0 || old > v ? v : old - 1;
    return has(i, M_AND) ? old & v : has(i, M_OR) ? old | v : has(i, M_XOR) ? old ^ v : v;
}

static uint64_t value_of(const Warp *w, const Arg *a, uint32_t l, bool wide)
{
    const uint32_t *v = raw(w, a);

    return wide && a->reg != RZ ? pair_at(v, l) : v[l];
}

static void update_place(Request *q, enum Place place, const Arg *v, const Arg *swap, uint64_t *old)
{
    const bool wide = q->bytes == 8;
    unsigned char *host[LANES];

    if (q->mask == 0)
        return;
    if (place == IN_LOCAL) {
        fail(q->w, q->i, (uint32_t)__builtin_ctz(q->mask), "an atomic operation on local memory");
        return;
    }
    if (!(place == IN_SHARED ? shared_hosts(q, host) : global_hosts(q, host)))
        return;
    for (EACH(l, q->mask)) {
        uint64_t x = 0, now;

        memcpy(&x, host[l], (size_t)q->bytes);
        now = updated(q->i, x, value_of(q->w, v, l, wide),
                      swap != NULL ? value_of(q->w, swap, l, wide) : 0);
        memcpy(host[l], &now, (size_t)q->bytes);
        /* a loop of compare and swap asks whether it has succeeded */
        old[l] = has(q->i, M_CAST) ? x == value_of(q->w, v, l, wide) : x;
    }
}

void op_atom(Warp *w, const Ins *i, uint32_t mask)
{
    const bool shared = strcmp(i->op->name, "ATOMS") == 0, any = strcmp(i->op->name, "ATOM") == 0;
    const Arg *addr = address_of(i), *v = addr + 1;
    const Arg *swap = has(i, M_CAS) || has(i, M_CAST) ? addr + 2 : NULL, *to = addr - 1;
    uint64_t at[LANES], old[LANES] = { 0 };
    uint32_t in[3] = { 0 }, low[LANES];
    Request q = { w, i, mask, at, i->bytes, UPDATES };

    addresses(w, addr, !shared, at);
    in[shared ? IN_SHARED : IN_GLOBAL] = mask;
    if (any)
        sort_places(&q, in);
    const bool tells = addr > i->arg && is_pred(&i->arg[0]) && i->arg[0].reg != PT;

    for (int k = 0; k < 3 && !w->run->failed; k++) {
        q.mask = tells && k == IN_SHARED
                     ? 0
                     : in[k]; /* such an atomic only says that memory is shared */
        update_place(&q, (enum Place)k, v, swap, old);
    }
    if (w->run->failed)
        return;
    if (tells)
        put_pred(w, &i->arg[0], ~in[IN_SHARED], mask);
    if (addr == i->arg || to->kind != ARG_REG)
        return;
    for (int l = 0; l < LANES; l++)
        low[l] = (uint32_t)old[l];
    if (i->bytes == 8)
        put_pair(w, to, old, mask);
    else
        put(w, to, low, mask);
}

/* Whether a generic address is one of shared memory. */
void op_qspc(Warp *w, const Ins *i, uint32_t mask)
{
    uint64_t at[LANES];
    uint32_t in[3];
    Request q = { w, i, mask, at, 4, READS };

    addresses(w, address_of(i), true, at);
    sort_places(&q, in);
    put_pred(w, &i->arg[0], in[IN_SHARED], mask);
}

/* ---- Buffers */
void buffer_free(Buffer *b)
{
    free(b->cell);
}

uint64_t sass_buffer(SassGpu *g, const char *name, void *host, size_t bytes, enum SassBuffer kind)
{
    Buffer *b;

    if (g->buffers == g->room) {
        g->room = g->room == 0 ? 16 : 2 * g->room;
        g->buffer = realloc(g->buffer, (size_t)g->room * sizeof *g->buffer);
        if (g->buffer == NULL)
            abort();
    }
    b = &g->buffer[g->buffers++];
    *b = (Buffer){ .host = host, .bytes = bytes, .base = g->next, .kind = kind };
    snprintf(b->name, sizeof b->name, "%s", name);
    g->next += (bytes + 1023) / 256 * 256; /* as cudaMalloc aligns, and a gap */
    if (kind != SASS_INPUT) {
        b->cell = calloc(bytes / 4 + 1, sizeof *b->cell);
        if (b->cell == NULL)
            abort();
    }
    return b->base;
}

void sass_drop_buffers(SassGpu *g)
{
    for (int k = 0; k < g->buffers; k++)
        buffer_free(&g->buffer[k]);
    g->buffers = 0;
    g->sass = NULL;
    g->next = BUFFERS;
}

void sass_filled(SassGpu *g, uint64_t at)
{
    for (int k = 0; k < g->buffers; k++)
        if (g->buffer[k].base == at && g->buffer[k].kind == SASS_FRESH)
            g->buffer[k].kind = SASS_INOUT;
}
