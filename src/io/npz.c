/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * NumPy's .npz, a ZIP archive of .npy members.  The directory at the end of the file is the
 * authority; each member's own header must agree with it.  inflate.c expands a member, npy.c reads
 * it.  Members stand in the order of the directory and do not overlap, which defeats archives that
 * expand the same bytes many times. */
#include "io/io_int.h"

#include <string.h>

enum {
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    MAX_NAME = 255,
    MAX_MEMBERS = 100000,
    MAX_RATIO = 1032, /* deflate: 258 bytes from two bits */
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 0x2041, /* flags: encrypted, strongly encrypted, header encrypted */
    STREAMED = 8,       /* flag: the sizes follow the data */
    UTF8 = 0x800        /* flag: so is the name */
};
static const uint64_t saturated = 0xffffffff; /* the true value is in a ZIP64 field */
static const uint64_t max_total = (uint64_t)1 << 32;

typedef struct Zip {
    Cursor file, dir;
    Arena *arena;
    Names names;
    uint64_t count;    /* members */
    uint64_t from, to; /* where the next member may begin, where the directory does */
    uint64_t total;    /* bytes that were expanded */
} Zip;

typedef struct Member {
    const char *name;
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, size, at;
} Member;

static uint64_t take2(Cursor *c)
{
    return io_take_le(c, 2, "the archive's directory");
}

static uint64_t take4(Cursor *c)
{
    return io_take_le(c, 4, "the archive's directory");
}

static uint64_t take8(Cursor *c)
{
    return io_take_le(c, 8, "the archive's directory");
}

static bool take_signature(Cursor *c, const char *sign)
{
    if (io_left(c) < 4 || memcmp(c->p, sign, 4) != 0)
        return false;
    c->p += 4;
    return true;
}

/* The end record: the last one whose comment, up to 65535 bytes, ends where the file does. */
static const uint8_t *find_end(const Cursor *file)
{
    size_t size = (size_t)(file->end - file->begin);

    for (size_t k = END_SIZE; k <= size && k <= END_SIZE + 0xffff; k++) {
        const uint8_t *p = file->end - k;

        if (memcmp(p, "PK\5\6", 4) == 0 && (size_t)(p[20] | p[21] << 8) == k - END_SIZE)
            return p;
    }
    io_fail(file, NULL, ST_PARSE,
            "this is no .npz file, or it is incomplete: it does not end as a ZIP archive does; "
            "write it with numpy.savez");
}

/* The ZIP64 form of the end record, which stands before the other one; its place, or `end`. */
static const uint8_t *find_end64(Zip *z, const uint8_t *end)
{
    Cursor c = z->file;
    uint64_t at;

    if (end - c.begin < LOCATOR_SIZE)
        return end;
    c.p = end - LOCATOR_SIZE;
    if (!take_signature(&c, "PK\6\7"))
        return end;
    take4(&c);
    at = take8(&c);
    c.end = end - LOCATOR_SIZE;
    c.p = c.begin;
    if (at > io_left(&c) || io_left(&c) - at < END64_SIZE)
        io_fail(&z->file, end, ST_PARSE,
                "the ZIP64 record is not where the archive says; it is damaged");
    return c.begin + at;
}

static void read_end64(Zip *z, const uint8_t *at, uint64_t *size)
{
    Cursor c = z->file;

    c.p = at;
    if (!take_signature(&c, "PK\6\6"))
        io_fail(&c, at, ST_PARSE, "the ZIP64 record is not where the archive says; it is damaged");
    c.p += 20; /* its length, versions, disks */
    z->count = take8(&c);
    if (take8(&c) != z->count)
        io_fail(&c, at, ST_PARSE, "archives in several parts are not supported; join them");
    *size = take8(&c);
    z->to = take8(&c);
}

static void read_end(Zip *z)
{
    const uint8_t *end = find_end(&z->file), *dir_end = end;
    Cursor c = z->file;
    uint64_t disks, size;

    c.p = end + 4;
    disks = take4(&c);
    z->count = take2(&c);
    if (disks != 0 || take2(&c) != z->count)
        io_fail(&c, end, ST_PARSE, "archives in several parts are not supported; join them");
    size = take4(&c);
    z->to = take4(&c);
    if (z->count == 0xffff || size == saturated || z->to == saturated) {
        dir_end = find_end64(z, end);
        if (dir_end != end)
            read_end64(z, dir_end, &size);
    }
    if (z->to > (uint64_t)(dir_end - c.begin) || size != (uint64_t)(dir_end - c.begin) - z->to)
        io_fail(&c, end, ST_PARSE, "the directory is not where the archive says; it is damaged");
    z->dir = c;
    z->dir.p = c.begin + z->to;
    z->dir.end = dir_end;
    if (z->count > size / ENTRY_SIZE)
        io_fail(&c, end, ST_PARSE,
                "the directory is too small for the %llu members it declares; the file is damaged",
                (unsigned long long)z->count);
}

static void take_name(Zip *z, Member *m, uint64_t n)
{
    const uint8_t *p = io_take(&z->dir, n, "a member's name");
    uint32_t before = z->names.n;
    char quote[IO_QUOTE];

    if (n == 0 || n > MAX_NAME)
        io_fail(&z->dir, p, ST_PARSE, "a member's name has %llu characters, not 1 to %d",
                (unsigned long long)n, MAX_NAME);
    for (uint64_t i = 0; i < n; i++)
        if (p[i] < 32 || p[i] == 127)
            io_fail(&z->dir, p, ST_PARSE, "the name '%s' holds a control character; rename it",
                    io_quote(quote, p, n));
    m->name = name_intern(&z->names, (const char *)p, n);
    if (z->names.n == before)
        io_fail(&z->dir, p, ST_PARSE, "two members have the name '%s'; rename one",
                io_quote(quote, p, n));
}

/* The ZIP64 extra field holds, in this order, those of the three that did not fit. */
static void read_extra64(Cursor c, Member *m)
{
    while (io_left(&c) > 0) {
        uint64_t id = take2(&c), n = take2(&c);
        Cursor field = c;

        io_take(&c, n, "a member's extra field");
        field.end = c.p;
        if (id != 1)
            continue;
        if (m->size == saturated)
            m->size = take8(&field);
        if (m->packed == saturated)
            m->packed = take8(&field);
        if (m->at == saturated)
            m->at = take8(&field);
        return;
    }
}

static void read_entry(Zip *z, Member *m)
{
    Cursor *c = &z->dir, extra;
    uint64_t nname, nextra, ncomment;

    if (!take_signature(c, "PK\1\2"))
        io_fail(c, c->p, ST_PARSE, "the directory lacks a member here; the file is damaged");
    take4(c); /* versions */
    m->flags = (unsigned)take2(c);
    m->method = (unsigned)take2(c);
    take4(c); /* time and date */
    m->crc = (uint32_t)take4(c);
    m->packed = take4(c);
    m->size = take4(c);
    nname = take2(c);
    nextra = take2(c);
    ncomment = take2(c);
    take4(c); /* disk, attributes */
    take4(c);
    m->at = take4(c);
    take_name(z, m, nname);
    extra = *c;
    io_take(c, nextra, "a member's extra field");
    extra.end = c->p;
    if (m->size == saturated || m->packed == saturated || m->at == saturated)
        read_extra64(extra, m);
    io_take(c, ncomment, "a member's comment");
}

static void check_method(const Cursor *c, const Member *m)
{
    static const struct {
        unsigned method;
        const char *name;
    } others[] = { { 1, "shrink" }, { 6, "implode" },    { 9, "deflate64" }, { 12, "bzip2" },
                   { 14, "LZMA" },  { 93, "Zstandard" }, { 95, "xz" },       { 99, "AES" } };
    const char *name = "an unknown method";

    if ((m->flags & ENCRYPTED) != 0)
        io_fail(c, c->p, ST_PARSE, "it is encrypted; write it without a password");
    if (m->method == STORED || m->method == DEFLATED)
        return;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (others[k].method == m->method)
            name = others[k].name;
    io_fail(c, c->p, ST_PARSE,
            "it is packed with %s (method %u), which is not supported; write it with "
            "numpy.savez_compressed",
            name, m->method);
}

/* A member's own header, which must agree with the directory; leaves the cursor at its data. */
static void check_local(Cursor *c, const Member *m)
{
    uint64_t flags, method, packed, size, nname, nextra;
    bool agrees;

    if (!take_signature(c, "PK\3\4"))
        io_fail(c, c->p, ST_PARSE, "it is not where the directory says; the file is damaged");
    take2(c); /* version */
    flags = take2(c);
    method = take2(c);
    take8(c); /* time, date, checksum */
    packed = take4(c);
    size = take4(c);
    nname = take2(c);
    nextra = take2(c);
    agrees = method == m->method && nname == strlen(m->name) &&
             memcmp(io_take(c, nname, "a member's header"), m->name, nname) == 0;
    if ((flags & STREAMED) == 0)
        agrees = agrees && (packed == saturated || packed == m->packed) &&
                 (size == saturated || size == m->size);
    if (!agrees)
        io_fail(c, c->p, ST_PARSE,
                "its header and the directory do not agree; the file is damaged");
    io_take(c, nextra, "a member's header");
}

/* A cursor over the packed bytes of the member. */
static Cursor find_data(Zip *z, const Member *m)
{
    Cursor c = z->file;

    c.member = m->name;
    c.end = c.begin + z->to;
    if (m->at < z->from || m->at > z->to)
        io_fail(&c, NULL, ST_PARSE,
                "it begins at byte %llu, inside another member or the directory; the file is "
                "damaged, or its members are out of order: write it with numpy.savez",
                (unsigned long long)m->at);
    c.p = c.begin + m->at;
    check_method(&c, m);
    check_local(&c, m);
    if (m->packed > io_left(&c))
        io_fail(&c, c.p, ST_PARSE, "its %llu bytes reach into the directory; the file is damaged",
                (unsigned long long)m->packed);
    c.begin = c.p;
    c.end = c.p + m->packed;
    z->from = (uint64_t)(c.end - z->file.begin);
    return c;
}

/* The member's bytes as they were before packing. */
static Cursor unpack(Zip *z, Cursor c, const Member *m)
{
    uint8_t *out;

    if (m->method == STORED) {
        if (m->size != m->packed)
            io_fail(&c, c.p, ST_PARSE,
                    "it is stored, but its two sizes differ; the file is damaged");
        return c;
    }
    if (!io_can_inflate())
        io_fail(&c, NULL, ST_LIMIT,
                "it is compressed, and this build of Weft has no zlib to expand it; write the file "
                "with numpy.savez, which does not compress, or build Weft where CMake finds zlib");
    if (m->size > MAX_RATIO * m->packed + 64)
        io_fail(&c, c.p, ST_PARSE,
                "it declares %llu bytes packed in %llu, more than deflate can; the file is damaged",
                (unsigned long long)m->size, (unsigned long long)m->packed);
    z->total += m->size;
    if (z->total > max_total)
        io_fail(&c, c.p, ST_LIMIT,
                "the archive expands to more than 4 GiB; write it with numpy.savez, which does "
                "not compress");
    out = arena_alloc(z->arena, m->size);
    io_inflate(z->arena->os, &c, out, m->size);
    c.begin = c.p = out;
    c.end = out + m->size;
    return c;
}

static void read_member(Zip *z, Cursor c, const Member *m, IoArray *out)
{
    size_t n = strlen(m->name);
    uint32_t crc;
    char *name;

    if (n <= 4 || memcmp(m->name + n - 4, ".npy", 4) != 0)
        io_fail(&c, c.p, ST_PARSE, "it is no .npy file; remove it, or name the member to read");
    c = unpack(z, c, m);
    crc = io_crc32(c.p, io_left(&c));
    if (crc != m->crc)
        io_fail(&c, c.p, ST_PARSE, "its checksum is %08x, not %08x; the file is damaged",
                (unsigned)crc, (unsigned)m->crc);
    io_npy_read(z->arena, c, m->method == DEFLATED, out);
    name = arena_copy(z->arena, m->name, n);
    name[n - 4] = 0;
    out->name = name;
}

static bool is_wanted(const Member *m, const char *only)
{
    size_t n;

    if (only == NULL)
        return true;
    n = strlen(only);
    return strncmp(m->name, only, n) == 0 && strcmp(m->name + n, ".npy") == 0;
}

void io_npz_parse(Arena *arena, Bytes b, const char *file, const char *only, IoNpz *out)
{
    Zip z = { .file = io_cursor(arena->err, file, b), .arena = arena, .names.arena = arena };
    Text have = { .arena = arena };

    *out = (IoNpz){ 0 };
    read_end(&z);
    if (z.count > MAX_MEMBERS)
        io_fail(&z.file, NULL, ST_LIMIT, "the archive has more than %d members; split it",
                MAX_MEMBERS);
    out->array = arena_array(arena, only == NULL ? (int64_t)z.count : 1, sizeof *out->array);
    for (uint64_t k = 0; k < z.count; k++) {
        Member m;
        Cursor c;

        read_entry(&z, &m);
        c = find_data(&z, &m);
        if (is_wanted(&m, only))
            read_member(&z, c, &m, &out->array[out->n++]);
        if (have.n < 200)
            text_f(&have, " %s", m.name);
    }
    if (io_left(&z.dir) > 0)
        io_fail(&z.dir, z.dir.p, ST_PARSE,
                "the directory goes on after its last member; the file is damaged");
    if (only != NULL && out->n == 0)
        io_fail(&z.file, NULL, ST_ARG, "there is no member %s.npy; the file has%s", only,
                have.n > 0 ? have.s : " none");
}

static void put_le(Text *out, int size, uint64_t v)
{
    for (int i = 0; i < size; i++)
        text_char(out, (char)(v >> 8 * i & 255));
}

/* What both headers of a member hold, from the version needed to the length of the extra field. */
static void put_common(Text *out, const Member *m)
{
    put_le(out, 2, 20);
    put_le(out, 2, UTF8);
    put_le(out, 2, STORED);
    put_le(out, 4, 0x21 << 16); /* the first moment of ZIP, 1980-01-01: the same bytes every day */
    put_le(out, 4, m->crc);
    put_le(out, 4, m->packed);
    put_le(out, 4, m->size);
    put_le(out, 2, strlen(m->name) + 4);
    put_le(out, 2, 0);
}

static void put_local(Text *out, const Member *m)
{
    text_put(out, "PK\3\4", 4);
    put_common(out, m);
    text_f(out, "%s.npy", m->name);
}

static void put_entry(Text *out, const Member *m)
{
    text_put(out, "PK\1\2", 4);
    put_le(out, 2, 20);
    put_common(out, m);
    put_le(out, 6, 0);
    put_le(out, 4, 0);
    put_le(out, 4, m->at);
    text_f(out, "%s.npy", m->name);
}

/* Without ZIP64 fields all sizes and offsets have 32 bits, and the count 16. */
static void check_fits(Err *err, const IoNpz *npz)
{
    int64_t total = 0;

    for (int k = 0; k < npz->n; k++) {
        const IoArray *a = &npz->array[k];
        int64_t bytes;

        if (int_mul(a->n, (int64_t)io_type_size(a->type), &bytes) ||
            int_add(total, bytes, &total) ||
            int_add(total, 2048 + 2 * (int64_t)strlen(a->name), &total))
            total = INT64_MAX;
        if (total >= (int64_t)saturated || npz->n >= 0xffff)
            err_throw(err, ST_LIMIT,
                      "an .npz file is written up to 4 GiB and 65534 arrays; write .npy files");
    }
}

void io_npz_print(Text *out, const IoNpz *npz)
{
    Text dir = { .arena = out->arena }, data;
    Member m;
    size_t start = out->n, dir_at;

    check_fits(out->arena->err, npz);
    for (int k = 0; k < npz->n; k++) {
        data = (Text){ .arena = out->arena };
        io_npy_print(&data, &npz->array[k]);
        m = (Member){ .name = npz->array[k].name,
                      .packed = data.n,
                      .size = data.n,
                      .crc = io_crc32((const uint8_t *)data.s, data.n),
                      .at = out->n - start };
        put_local(out, &m);
        text_put(out, data.s, data.n);
        put_entry(&dir, &m);
    }
    dir_at = out->n - start;
    text_put(out, dir.s, dir.n);
    text_put(out, "PK\5\6\0\0\0\0", 8);
    put_le(out, 2, (uint64_t)npz->n);
    put_le(out, 2, (uint64_t)npz->n);
    put_le(out, 4, dir.n);
    put_le(out, 4, dir_at);
    put_le(out, 2, 0);
}
