/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The bytes of a library to a loaded module.  What was verified is what is loaded: the bytes go
 * into memory that nobody can change any more (a sealed memfd), and dlopen gets that.  Where
 * there is no such thing, a private file serves. */
#include "jit/jit_int.h"

#include <link.h>
#include <string.h>

/* dlopen maps what the headers promise and then dies by a signal if the file is shorter: so half a
 * library has to be found before.  Linkers put the section headers last. */
static const char *elf_fault(Bytes lib)
{
    ElfW(Ehdr) h;

    if (lib.n < sizeof h)
        return "it is no library: too short";
    memcpy(&h, lib.p, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_type != ET_DYN ||
        h.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
        return "it is no library";
    if (h.e_phentsize != sizeof(ElfW(Phdr)) || h.e_phoff > lib.n ||
        (lib.n - h.e_phoff) / sizeof(ElfW(Phdr)) < h.e_phnum || h.e_shoff > lib.n ||
        (h.e_shentsize != 0 && (lib.n - h.e_shoff) / h.e_shentsize < h.e_shnum))
        return "the library is cut off";
    for (int i = 0; i < h.e_phnum; i++) {
        ElfW(Phdr) s;

        memcpy(&s, lib.p + h.e_phoff + (size_t)i * sizeof s, sizeof s);
        if (s.p_offset > lib.n || s.p_filesz > lib.n - s.p_offset)
            return "the library is cut off";
    }
    return NULL;
}

/* /proc/self/fd/N, where N may be that of a module loaded earlier, whose name the loader
 * remembers and would take for the same file.  So a hash of the key is in the name: each bit
 * "/." or "//.". */
static const char *memory_path(Job *j, int fd)
{
    uint64_t bits = hash_bytes(0, j->key, JIT_KEY);
    Text path = { .arena = &j->arena };

    text_str(&path, "/proc/self/fd");
    for (int i = 0; i < 64; i++)
        text_str(&path, bits >> i & 1 ? "//." : "/.");
    text_f(&path, "/%d", fd);
    return path.s;
}

static void *from_memory(Job *j, Bytes lib)
{
    int fd = job_hold(j, j->os->memfd(j->os, "weft-kernel"));
    void *handle = NULL;

    if (fd < 0)
        return NULL;
    if (file_put(j->os, fd, lib.p, lib.n) == 0 && j->os->seal(j->os, fd) == 0)
        handle = j->os->dlopen(j->os, memory_path(j, fd));
    job_close(j, fd);
    return handle;
}

static void *from_file(Job *j, int dir, Bytes lib)
{
    const char *name = dir_temp(j);
    void *handle = NULL;
    int code;

    if (j->dir[dir].fd < 0)
        return NULL;
    code = job_write(j, j->dir[dir].fd, name, 0700, &lib, 1, false);
    if (code == 0)
        handle = j->os->dlopen(j->os, job_path(j, dir, name));
    j->os->unlinkat(j->os, j->dir[dir].fd, name, 0);
    return handle;
}

static const char *open_library(Job *j, Bytes lib)
{
    JitModule *m = j->module;
    const char *why;

    j->os->dlerror(j->os); /* forgets what went wrong before */
    m->lib = from_memory(j, lib);
    if (m->lib != NULL)
        return NULL;
    dir_open_own(j);
    for (int i = DIR_OWN; i >= DIR_CACHE && m->lib == NULL; i--)
        m->lib = from_file(j, i, lib);
    if (m->lib != NULL) {
        job_note(j, "loaded from a file");
        return NULL;
    }
    why = j->os->dlerror(j->os);
    return why == NULL ? "there is no room to load it from" : job_quote(&j->arena, why, 300);
}

static const char *symbol_fault(Job *j)
{
    const char *key = j->os->dlsym(j->os, j->module->lib, JIT_KEY_SYMBOL);

    if (key == NULL || strcmp(key, j->key) != 0)
        return "the library is not the one that was asked for";
    for (int i = 0; i < j->req->nsymbol; i++)
        if (j->os->dlsym(j->os, j->module->lib, j->req->symbol[i]) == NULL) {
            Text t = { .arena = &j->arena };

            text_f(&t, "the library does not define %s", j->req->symbol[i]);
            return t.s;
        }
    return NULL;
}

static JitModule *new_module(Job *j)
{
    JitModule *m = j->os->alloc(j->os, NULL, sizeof *m);

    if (m == NULL)
        err_throw(j->err, ST_NOMEM, "out of memory loading a kernel");
    memset(m, 0, sizeof *m);
    m->jit = j->jit;
    m->refs = 1;
    memcpy(m->key, j->key, sizeof m->key);
    return m;
}

const char *load_module(Job *j, Bytes lib)
{
    const char *why = elf_fault(lib);

    if (why != NULL)
        return why;
    j->module = new_module(j);
    why = open_library(j, lib);
    if (why == NULL)
        why = symbol_fault(j);
    if (why != NULL) {
        load_free(j->os, j->module);
        j->module = NULL;
    }
    return why;
}

void load_free(const Os *os, JitModule *m)
{
    if (m == NULL)
        return;
    if (m->lib != NULL)
        os->dlclose(os, m->lib);
    os->alloc(os, m, 0);
}
