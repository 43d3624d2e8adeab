/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program, its arrays and a trap, for the tests of interp/ and of layout.c.  Arrays are called as
 * a caller of the library calls them: "A", "E.start", "E.j". */
#ifndef WEFT_INTERP_BED_H
#define WEFT_INTERP_BED_H

#include "interp/interp.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <string.h>

typedef struct Bed {
    Err err;
    Arena arena;
    Prog *prog;
    Env *env;
} Bed;

static inline void bed_open(Bed *b, const char *text)
{
    memset(b, 0, sizeof *b);
    arena_init(&b->arena, &os_libc, &b->err);
    if (CATCH(&b->err, b->prog = ir_parse(&b->arena, "test.weft", text, strlen(text));
              ir_check(b->prog); b->env = ir_env(&b->arena, b->prog)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%d:%d: %s", b->err.line, b->err.col, b->err.msg);
}

static inline void bed_close(Bed *b)
{
    arena_free(&b->arena);
}

static inline void bed_size(Bed *b, const char *name, int64_t v)
{
    Size *s = ir_find_size(b->prog, name);

    CHECK(s != NULL);
    b->env->size[s->id] = v;
}

/* The place in the Env of an array's name. */
static inline Array *bed_array(Bed *b, const char *name)
{
    const char *dot = strchr(name, '.');
    char axis[IR_MAX_NAME + 1] = "";
    Axis *a;
    int k = 0;

    if (dot == NULL) {
        CHECK(ir_find_buf(b->prog, name) != NULL);
        return &b->env->buf[ir_find_buf(b->prog, name)->id];
    }
    memcpy(axis, name, (size_t)(dot - name));
    a = ir_find_axis(b->prog, axis);
    CHECK(a != NULL);
    if (strcmp(dot + 1, "start") == 0)
        return &b->env->start[a->id];
    if (strcmp(dot + 1, "coord") != 0)
        k = ir_find_coord(a, dot + 1);
    CHECK(k >= 0);
    return &b->env->coord[a->id][k];
}

/* Binds a copy of n elements. */
static inline void bed_bind(Bed *b, const char *name, Type type, int64_t n, const void *from)
{
    void *copy = arena_copy(&b->arena, from, (size_t)n * ir_type[type].bytes);

    *bed_array(b, name) = (Array){ copy, n, type };
}

#define BIND(b, name, type, ...) \
    bed_bind(b, name, type, sizeof(__VA_ARGS__) / sizeof *(__VA_ARGS__), __VA_ARGS__)
#define F64(b, name, ...) BIND(b, name, T_f64, (const double[]){ __VA_ARGS__ })
#define F32(b, name, ...) BIND(b, name, T_f32, (const float[]){ __VA_ARGS__ })
#define I64(b, name, ...) BIND(b, name, T_i64, (const int64_t[]){ __VA_ARGS__ })
#define I32(b, name, ...) BIND(b, name, T_i32, (const int32_t[]){ __VA_ARGS__ })

static inline void bed_run(Bed *b)
{
    if (CATCH(&b->err, interp_run(&b->arena, b->prog, b->env)) != ST_OK)
        test_fail(__FILE__, __LINE__, "run: %s", b->err.msg);
}

/* Runs, and wants this failure with this in its message. */
static inline void bed_fails(Bed *b, Status code, const char *part)
{
    Status got = CATCH(&b->err, interp_run(&b->arena, b->prog, b->env));

    CHECK_HAS(b->err.msg, part);
    CHECK_EQ(got, code);
}

static inline double bed_f(Bed *b, const char *name, int64_t i)
{
    Array *a = bed_array(b, name);

    CHECK(i < a->n && ir_type[a->type].floats);
    return ir_array_float(a, i);
}

static inline int64_t bed_i(Bed *b, const char *name, int64_t i)
{
    Array *a = bed_array(b, name);

    CHECK(i < a->n && !ir_type[a->type].floats);
    return ir_array_int(a, i);
}

/* The buffer holds these n values, bit for bit. */
static inline void bed_want(Bed *b, const char *name, int64_t n, const double *want)
{
    CHECK_EQ(bed_array(b, name)->n, n);
    for (int64_t i = 0; i < n; i++)
        CHECK_SAME(bed_f(b, name, i), want[i]);
}

static inline void bed_want_int(Bed *b, const char *name, int64_t n, const int64_t *want)
{
    CHECK_EQ(bed_array(b, name)->n, n);
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(bed_i(b, name, i), want[i]);
}

#define WANT(b, name, ...)                                                      \
    bed_want(b, name, sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double), \
             (const double[]){ __VA_ARGS__ })
#define WANT_INT(b, name, ...)                                                        \
    bed_want_int(b, name, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                 (const int64_t[]){ __VA_ARGS__ })

#endif
