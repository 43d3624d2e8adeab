/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reads arguments from files and writes results to files.  The extension of the path says which
 * kind of file it is. */
#include "api/api_int.h"
#include "io/io.h"

#include <string.h>

#define LIMIT_BYTES ((int64_t)4 << 30)

typedef enum FileKind { FILE_OTHER, FILE_NPY, FILE_NPZ, FILE_MTX } FileKind;

typedef struct Path {
    const char *file, *part; /* "g.npz:row" is in two parts; part is NULL when there is none */
    FileKind kind;
} Path;

static FileKind kind_of(const char *s, size_t n)
{
    static const char *const end[] = {
        [FILE_NPY] = ".npy", [FILE_NPZ] = ".npz", [FILE_MTX] = ".mtx"
    };

    for (FileKind k = FILE_NPY; k <= FILE_MTX; k++)
        if (n > 4 && memcmp(s + n - 4, end[k], 4) == 0)
            return k;
    return FILE_OTHER;
}

static Path split(Arena *arena, const char *path)
{
    const char *colon = strrchr(path, ':');
    size_t n = strlen(path);
    char *file = arena_copy(arena, path, n + 1);
    Path p = { .file = file, .kind = kind_of(path, n) };

    if (p.kind == FILE_OTHER && colon != NULL) {
        p.kind = kind_of(path, (size_t)(colon - path));
        file[colon - path] = 0;
        p.part = file + (colon - path) + 1;
    }
    if (p.kind == FILE_OTHER)
        err_throw(arena->err, ST_ARG, "%s: the name of the file must end in .npy, .npz or .mtx",
                  path);
    return p;
}

static const Type type_of[] = {
    [IO_I32] = T_i32, [IO_I64] = T_i64, [IO_F16] = T_f16, [IO_F32] = T_f32, [IO_F64] = T_f64
};

/* Numbers in the type of the argument; structure arrays keep either integer type. */
static void convert(Arena *arena, const Arg *a, Array *data)
{
    Array to = { .type = a->type, .n = data->n };
    bool floats = ir_type[data->type].floats;

    if (data->type == a->type || (a->kind != ARG_BUF && !floats))
        return;
    to.data = arena_array(arena, to.n, ir_type[to.type].bytes);
    for (int64_t i = 0; i < to.n; i++)
        if (floats)
            fmt_store(arena, a->name, &to, i, ir_array_float(data, i));
        else
            fmt_store_int(arena, a->name, &to, i, ir_array_int(data, i));
    *data = to;
}

static void view_array(weft_ctx *ctx, const Arg *a, Array data, int ndim, const int64_t *dim,
                       Bound *out)
{
    weft_tensor t = { .ndim = ndim, .shape = dim };

    convert(&ctx->box->arena, a, &data);
    t.data = data.data;
    t.type = api_type_of[data.type];
    out->how = HOW_FILE;
    api_view(ctx, a->name, &t, &out->view);
}

static void read_array(weft_ctx *ctx, const Arg *a, const Path *path, Bound *out)
{
    Arena *arena = &ctx->box->arena;
    Bytes bytes = file_read(&ctx->scratch, path->file, LIMIT_BYTES);
    IoArray array;
    IoNpz npz;

    if (path->kind == FILE_NPY) {
        io_npy_parse(arena, bytes, path->file, &array);
    } else {
        io_npz_parse(arena, bytes, path->file, path->part != NULL ? path->part : a->name, &npz);
        array = npz.array[0];
    }
    view_array(ctx, a, (Array){ array.data, array.n, type_of[array.type] }, array.ndim, array.dim,
               out);
}

/* Every entry of a dense matrix, by row. */
static void list_places(Arena *arena, Coo *a)
{
    a->row = arena_array(arena, a->nnz, sizeof *a->row);
    a->col = arena_array(arena, a->nnz, sizeof *a->col);
    for (int64_t k = 0; k < a->nnz; k++) {
        a->row[k] = k / a->n;
        a->col[k] = k % a->n;
    }
}

static void read_matrix(weft_ctx *ctx, const Arg *a, const Path *path, Bound *out)
{
    Arena *arena = &ctx->box->arena;
    Bytes bytes = file_read(&ctx->scratch, path->file, LIMIT_BYTES);
    Coo *coo = arena_alloc(arena, sizeof *coo);
    IoMatrix m;

    if (a->kind != ARG_BUF)
        err_throw(&ctx->err, ST_BIND,
                  "%s is one array of a structure; bind the matrix to the "
                  "buffer on its axes, or %s to an .npy file",
                  a->name, a->name);
    io_mtx_parse(arena, bytes, path->file, &m);
    if (m.dense && m.n == 1 && a->ndim == 1 && path->part == NULL) {
        view_array(ctx, a,
                   m.integer ? (Array){ m.ival, m.nnz, T_i64 } : (Array){ m.val, m.nnz, T_f64 }, 1,
                   &m.m, out);
        return;
    }
    fmt_tree(arena, a->buf, &out->tree);
    *coo = (Coo){ m.m, m.n, m.nnz, m.row, m.col, m.val, m.ival };
    if (m.dense)
        list_places(arena, coo);
    if (path->part != NULL)
        fmt_transpose(arena, coo);
    out->how = HOW_MATRIX;
    out->matrix = coo;
    out->path = arena_copy(arena, path->file, strlen(path->file) + 1);
}

static void read_file(weft_ctx *ctx, weft_args *args, const char *name, const char *file)
{
    const Arg *a = api_find_arg(ctx, args->body, name);
    Path path = split(&ctx->scratch, file);
    Bound bound = { .how = HOW_NOT };

    if (a->role != WEFT_INPUT && a->role != WEFT_INOUT)
        err_throw(&ctx->err, ST_ARG, "%s is %s and cannot be read from a file", name,
                  a->kind == ARG_SIZE ? "a size" : "computed by the program");
    if (path.part != NULL && path.kind != FILE_NPZ && strcmp(path.part, "T") != 0)
        err_throw(&ctx->err, ST_ARG,
                  "%s: only an .npz file has members, and only an .mtx file can "
                  "be transposed (:T)",
                  file);
    if (path.part != NULL && path.kind == FILE_NPY)
        err_throw(&ctx->err, ST_ARG, "%s: only an .mtx file can be transposed (:T)", file);
    api_box(ctx);
    if (path.kind == FILE_MTX)
        read_matrix(ctx, a, &path, &bound);
    else
        read_array(ctx, a, &path, &bound);
    api_bind(args, a, &bound);
}

weft_status weft_args_read(weft_args *args, const char *name, const char *path)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_need(ctx, path, "the path");
    read_file(ctx, args, name, path);
    return api_leave(ctx);
}

static int64_t count(const weft_tensor *t)
{
    int64_t n = 1;

    for (int d = 0; d < t->ndim; d++)
        n *= t->shape[d];
    return n;
}

static void print_npy(weft_ctx *ctx, const char *name, const weft_tensor *t, Text *out)
{
    static const IoType io_type[] = {
        [WEFT_I32] = IO_I32,  [WEFT_I64] = IO_I64, [WEFT_F16] = IO_F16,
        [WEFT_BF16] = IO_F32, [WEFT_F32] = IO_F32, [WEFT_F64] = IO_F64
    };
    IoArray array = {
        .name = "", .type = io_type[t->type], .ndim = t->ndim, .n = count(t), .data = t->data
    };
    float *wide;

    if (t->ndim > IO_RANK)
        err_throw(&ctx->err, ST_LIMIT, "%s has more than %d dimensions", name, IO_RANK);
    for (int d = 0; d < t->ndim; d++)
        array.dim[d] = t->shape[d];
    if (t->type == WEFT_BF16) { /* NumPy has no such type */
        array.data = wide = arena_array(&ctx->scratch, array.n, sizeof *wide);
        for (int64_t i = 0; i < array.n; i++)
            wide[i] = num_bf16(((const uint16_t *)t->data)[i]);
    }
    io_npy_print(out, &array);
}

static void print_mtx(weft_ctx *ctx, weft_args *args, const Arg *a, Text *out)
{
    FmtTree tree;
    Coo coo;
    IoMatrix m;

    if (a->kind != ARG_BUF)
        err_throw(&ctx->err, ST_ARG, "%s is not a matrix; write it as .npy", a->name);
    fmt_tree(&ctx->scratch, a->buf, &tree);
    fmt_unpack(&ctx->scratch, &tree, args->body->prog, args->result->env, &coo);
    m = (IoMatrix){ .m = coo.m,
                    .n = coo.n,
                    .nnz = coo.nnz,
                    .integer = coo.ival != NULL,
                    .row = coo.row,
                    .col = coo.col,
                    .val = coo.val,
                    .ival = coo.ival };
    m.dense = tree.i->kind == C_IDENT && tree.j->kind == C_IDENT;
    io_mtx_print(out, &m);
}

static void write_file(weft_ctx *ctx, weft_args *args, const char *name, const char *file)
{
    const Arg *a = api_find_arg(ctx, args->body, name);
    const weft_tensor *t = api_result(args, a);
    Text out = { .arena = &ctx->scratch };
    FileKind kind = kind_of(file, strlen(file));

    if (kind == FILE_NPY)
        print_npy(ctx, name, t, &out);
    else if (kind == FILE_MTX)
        print_mtx(ctx, args, a, &out);
    else
        err_throw(&ctx->err, ST_ARG, "%s: a result is written to a file that ends in .npy or .mtx",
                  file);
    file_write(&ctx->scratch, file, out.s, out.n);
}

weft_status weft_args_write(weft_args *args, const char *name, const char *path)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_need(ctx, path, "the path");
    write_file(ctx, args, name, path);
    return api_leave(ctx);
}
