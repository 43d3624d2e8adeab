/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The ELF file of a cubin: banks of constants, data of the module, and addresses (relocations) that
 * a driver would put into constants and into code. */
#include "gpu/sass/sass_int.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Types of relocations, as `cuobjdump -elf` names them. */
enum {
    R_CUDA_32 = 1,
    R_CUDA_64 = 2,
    R_CUDA_ABS32_LO_32 = 0x38,
    R_CUDA_ABS32_HI_32 = 0x39,
    R_CUDA_FUNC = 0x3a
};

typedef struct Elf {
    Sass *s;
    const Elf64_Shdr *section;
    int sections;
    const char *names;
} Elf;

static const char *name_of(const Elf *e, int i)
{
    return e->names + e->section[i].sh_name;
}

static bool inside(const Sass *s, uint64_t at, uint64_t n)
{
    return at <= s->elf_bytes && n <= s->elf_bytes - at;
}

static int function_named(const Sass *s, const char *name)
{
    for (int f = 0; f < s->functions; f++)
        if (strcmp(s->function[f].name, name) == 0)
            return f;
    return -1;
}

/* The function of a section ".PREFIX.NAME". */
static int function_of(const Elf *e, int section, const char *prefix)
{
    const size_t n = strlen(prefix);

    return strncmp(name_of(e, section), prefix, n) == 0
               ? function_named(e->s, name_of(e, section) + n)
               : -1;
}

/* Data of the module gets addresses below those of buffers. */
static void add_data(const Elf *e, int i, uint64_t *next)
{
    Sass *s = e->s;
    const Elf64_Shdr *h = &e->section[i];
    Data *d = &s->data[s->datas++];

    d->at = calloc(1, h->sh_size + 16);
    if (d->at == NULL)
        abort();
    if (h->sh_type != SHT_NOBITS)
        memcpy(d->at, s->elf + h->sh_offset, h->sh_size);
    d->bytes = h->sh_size;
    d->address = *next;
    d->section = i;
    *next += (h->sh_size + 511) / 256 * 256;
}

static void read_sections(const Elf *e)
{
    uint64_t next = BUFFERS / 2;
    Sass *s = e->s;

    for (int i = 1; i < e->sections; i++) {
        const Elf64_Shdr *h = &e->section[i];
        const char *name = name_of(e, i);
        const int of = function_of(e, i, ".nv.info.");

        if (of >= 0) {
            s->function[of].info = s->elf + h->sh_offset;
            s->function[of].info_bytes = h->sh_size;
        }

        if (strcmp(name, ".nv.global") == 0 || strcmp(name, ".nv.global.init") == 0)
            add_data(e, i, &next);
        if (strncmp(name, ".nv.constant", 12) != 0 || name[12] < '1' || name[12] > '7')
            continue;
        const int f = name[13] == '.' ? function_named(s, name + 14) : -1;

        for (int k = 0; k < s->functions; k++) /* without a name: of all functions */
            if (f == k || name[13] == 0) {
                s->function[k].bank[name[12] - '0'].at = s->elf + h->sh_offset;
                s->function[k].bank[name[12] - '0'].bytes = h->sh_size;
            }
    }
}

static void read_symbols(const Elf *e)
{
    Sass *s = e->s;

    for (int i = 1; i < e->sections; i++) {
        const Elf64_Shdr *h = &e->section[i];

        if (h->sh_type != SHT_SYMTAB || h->sh_link >= (uint32_t)e->sections || s->symbol != NULL)
            continue;
        const Elf64_Sym *sym = (const void *)(s->elf + h->sh_offset);
        const char *strings = (const char *)s->elf + e->section[h->sh_link].sh_offset;

        s->symbols = (int)(h->sh_size / sizeof *sym);
        s->symbol = calloc((size_t)s->symbols + 1, sizeof *s->symbol);
        if (s->symbol == NULL)
            abort();
        for (int k = 0; k < s->symbols; k++) {
            Symbol *to = &s->symbol[k];

            *to = (Symbol){ strings + sym[k].st_name, sym[k].st_value,
                            sym[k].st_size,           0,
                            sym[k].st_shndx,          -1 };
            to->address = to->value;
            for (int d = 0; d < s->datas; d++)
                if (s->data[d].section == to->section)
                    to->address = s->data[d].address + to->value;
            if (to->section > 0 && to->section < e->sections) {
                to->function = function_of(e, to->section, ".text.");
                if (to->function >= 0)
                    to->address = code_address(&s->function[to->function], to->value);
            }
        }
    }
}

/* An address in the code: the number of a move or the place of a call. */
static void relocate_code(Sass *s, const Function *f, uint64_t at, int type, uint64_t value)
{
    const uint32_t p = f->first + (uint32_t)(at >> 4);
    Ins *i = p < s->count ? &s->ins[p] : NULL;

    if (i == NULL)
        return;
    for (int k = i->args - 1; k >= 0; k--)
        if (i->arg[k].kind == ARG_VALUE) {
            i->arg[k].value = (int64_t)(type == R_CUDA_ABS32_LO_32   ? value & 0xffffffff
                                        : type == R_CUDA_ABS32_HI_32 ? value >> 32
                                                                     : value);
            return;
        }
}

static void relocate(const Elf *e, int i)
{
    Sass *s = e->s;
    const Elf64_Shdr *h = &e->section[i];
    const bool addends = h->sh_type == SHT_RELA;
    const size_t size = addends ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);

    if ((h->sh_type != SHT_REL && !addends) || h->sh_info >= (uint32_t)e->sections ||
        h->sh_size % size != 0)
        return;
    const int to = (int)h->sh_info, f = function_of(e, to, ".text.");

    for (uint64_t k = 0; k < h->sh_size / size; k++) {
        Elf64_Rela r = { 0 };

        memcpy(&r, s->elf + h->sh_offset + k * size, size);
        const uint64_t sym = ELF64_R_SYM(r.r_info);
        const int type = (int)ELF64_R_TYPE(r.r_info);

        if (sym >= (uint64_t)s->symbols)
            continue;
        uint64_t value = s->symbol[sym].address + (uint64_t)r.r_addend;
        const Elf64_Shdr *t = &e->section[to];

        if (f >= 0)
            relocate_code(s, &s->function[f], r.r_offset, type, value);
        else if (strncmp(name_of(e, to), ".nv.constant", 12) == 0 && t->sh_type != SHT_NOBITS &&
                 (type == R_CUDA_64 || type == R_CUDA_32) && r.r_offset + 8 <= t->sh_size) {
            const size_t bytes = type == R_CUDA_64 ? 8 : 4;
            uint64_t there = 0;

            memcpy(&there, s->elf + t->sh_offset + r.r_offset, bytes);
            value += addends ? 0 : there;
            memcpy(s->elf + t->sh_offset + r.r_offset, &value, bytes);
        }
    }
}

/* Records of a kernel's information: a format, a number, and two bytes that are the value or, in
 * format 4, the length of what follows. */
enum { INFO_LONG = 4, INFO_PARAMETER = 0x17 };

int sass_kernel_params(const SassKernel *k, SassParam *to, int room)
{
    const Function *f = &k->sass->function[k->function];
    int n = 0;

    for (size_t at = 0; f->info != NULL && at + 4 <= f->info_bytes;) {
        const unsigned char *p = f->info + at;
        uint16_t value, which, offset;
        uint32_t flags;

        memcpy(&value, p + 2, 2);
        at += 4 + (p[0] == INFO_LONG ? value : 0u);
        if (p[0] != INFO_LONG || p[1] != INFO_PARAMETER || value != 12 || at > f->info_bytes)
            continue;
        memcpy(&which, p + 8, 2);
        memcpy(&offset, p + 10, 2);
        memcpy(&flags, p + 12, 4);
        if (which < room)
            to[which] = (SassParam){ offset, (int)(flags >> 18) };
        n = which >= n ? which + 1 : n;
    }
    return n;
}

bool elf_read(Sass *s, char why[SASS_TEXT])
{
    const Elf64_Ehdr *h = (const void *)s->elf;
    Elf e = { .s = s };

    snprintf(why, SASS_TEXT, "the file is no ELF file as nvcc -cubin writes it");
    if (s->elf_bytes < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_shentsize != sizeof(Elf64_Shdr) ||
        !inside(s, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) ||
        h->e_shstrndx >= h->e_shnum)
        return false;
    e.section = (const void *)(s->elf + h->e_shoff);
    e.sections = h->e_shnum;
    for (int i = 0; i < e.sections; i++)
        if (e.section[i].sh_type != SHT_NOBITS &&
            !inside(s, e.section[i].sh_offset, e.section[i].sh_size))
            return false;
    e.names = (const char *)s->elf + e.section[h->e_shstrndx].sh_offset;
    read_sections(&e);
    read_symbols(&e);
    for (int i = 1; i < e.sections; i++)
        relocate(&e, i);
    return true;
}
