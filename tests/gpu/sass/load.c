/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From a cubin to decoded instructions: what cuobjdump prints of it, and the content of its ELF
 * file (elf.c) for constants and addresses. */
#include "gpu/sass/sass_int.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *grown(void *old, uint32_t n, uint32_t *room, size_t size)
{
    if (n < *room)
        return old;
    *room = *room == 0 ? 64 : *room * 2;
    old = realloc(old, *room * size);
    if (old == NULL)
        abort();
    return old;
}

static char *copied(const char *s)
{
    char *to = strdup(s);

    if (to == NULL)
        abort();
    return to;
}

/* ---- The text of cuobjdump -sass */

/* A line has the address, the instruction and a semicolon, and its bits in hexadecimal; address and
 * bits are in comments.  Cuts the instruction out of the line. */
static char *instruction_of(char *line, uint64_t *address, uint64_t *coded)
{
    char *s = line + strspn(line, " \t"), *end;

    if (strncmp(s, "/*", 2) != 0 || !isxdigit((unsigned char)s[2]))
        return NULL;
    *address = strtoull(s + 2, &end, 16);
    if (strncmp(end, "*/", 2) != 0)
        return NULL;
    s = end + 2;
    s += strspn(s, " \t");
    end = strchr(s, ';');
    if (end == NULL || strncmp(s, "/*", 2) == 0)
        return NULL;
    const char *hex = strstr(end, "/* 0x");

    *coded = hex != NULL ? strtoull(hex + 3, NULL, 16) : 0;
    while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = 0;
    return s;
}

static void add_function(Sass *s, const char *name, uint32_t *room)
{
    s->function = grown(s->function, (uint32_t)s->functions, room, sizeof *s->function);
    s->function[s->functions++] =
        (Function){ .name = copied(name), .first = s->count, .use = { -1, 0, 0, 0 } };
}

static void add_instruction(Sass *s, char *text, uint64_t address, uint64_t coded)
{
    Function *f = &s->function[s->functions - 1];
    char why[SASS_TEXT], *scratch = copied(text);
    Ins *i;

    s->ins = grown(s->ins, s->count, &s->room, sizeof *s->ins);
    i = &s->ins[s->count];
    *i = (Ins){
        .text = text, .address = address, .coded = coded, .function = (uint32_t)s->functions - 1
    };
    decode(i, scratch, why);
    free(scratch);
    f->use.spills += i->cls == SASS_LOCAL;
    s->count++;
    f->count++;
}

static bool read_text(Sass *s, char why[SASS_TEXT])
{
    uint32_t room = 0;
    char *line = s->text;

    while (line != NULL) {
        char *next = strchr(line, '\n'), *name, *text;
        uint64_t address, coded;

        if (next != NULL)
            *next++ = 0;
        name = strstr(line, "Function : ");
        if (name != NULL) {
            name += strlen("Function : ");
            name[strcspn(name, " \t\r")] = 0;
            add_function(s, name, &room);
        } else if (s->functions > 0 && (text = instruction_of(line, &address, &coded)) != NULL) {
            if (address != (uint64_t)s->function[s->functions - 1].count * 16) {
                snprintf(why, SASS_TEXT,
                         "%s: the instruction at %#llx is not 16 bytes after the last",
                         s->function[s->functions - 1].name, (unsigned long long)address);
                return false;
            }
            add_instruction(s, text, address, coded);
        }
        line = next;
    }
    if (s->count == 0)
        snprintf(why, SASS_TEXT, "there is no instruction in the text");
    return s->count > 0;
}

static int number_after(const char *s, const char *end, const char *word)
{
    const char *at = strstr(s, word);

    return at == NULL || (end != NULL && at > end) ? 0 : atoi(at + strlen(word));
}

/* " Function NAME:" and, in the next line, " REG:32 STACK:0 SHARED:0 ...". */
static void read_usage(Sass *s)
{
    for (int f = 0; f < s->functions; f++) {
        Function *fn = &s->function[f];
        const size_t n = strlen(fn->name);
        const char *at = s->usage;

        while ((at = strstr(at, "Function ")) != NULL) {
            at += strlen("Function ");
            if (strncmp(at, fn->name, n) != 0 || at[n] != ':')
                continue;
            const char *line = strchr(at, '\n'),
                       *end = line == NULL ? NULL : strchr(line + 1, '\n');

            if (line == NULL)
                break;
            fn->use.registers = number_after(line, end, "REG:");
            fn->use.stack = number_after(line, end, "STACK:");
            fn->use.shared = number_after(line, end, "SHARED:");
        }
    }
}

Sass *sass_parse(const char *text, const char *usage, const void *elf, size_t bytes,
                 char why[SASS_TEXT])
{
    Sass *s = calloc(1, sizeof *s);

    if (s == NULL)
        abort();
    s->text = copied(text);
    s->usage = copied(usage);
    if (elf != NULL) {
        s->elf = malloc(bytes + 1);
        if (s->elf == NULL)
            abort();
        memcpy(s->elf, elf, bytes);
        s->elf[bytes] = 0;
        s->elf_bytes = bytes;
    }
    if (!read_text(s, why) || (elf != NULL && !elf_read(s, why))) {
        sass_free(s);
        return NULL;
    }
    read_usage(s);
    decode_links(s);
    decode_numbers(s);
    s->kernel = calloc((size_t)s->functions, sizeof *s->kernel);
    if (s->kernel == NULL)
        abort();
    for (int f = 0; f < s->functions; f++)
        s->kernel[f] = (SassKernel){ s, (uint32_t)f };
    return s;
}

void sass_free(Sass *s)
{
    if (s == NULL)
        return;
    for (int f = 0; f < s->functions; f++)
        free(s->function[f].name);
    for (int d = 0; d < s->datas; d++)
        free(s->data[d].at);
    free(s->text);
    free(s->usage);
    free(s->elf);
    free(s->ins);
    free(s->function);
    free(s->kernel);
    free(s->symbol);
    free(s->number);
    free(s);
}

/* ---- The tools */

/* Where cuobjdump is: on the PATH, else in a Python environment of the tests. */
bool sass_tools(char where[SASS_TEXT])
{
    const char *path = getenv("PATH"), *given = getenv("WEFT_CUDA_BIN");

    if (given != NULL && *given != 0) {
        snprintf(where, SASS_TEXT, "%s", given);
        return true;
    }
    while (path != NULL && *path != 0) {
        const size_t n = strcspn(path, ":");
        char file[SASS_TEXT];

        snprintf(file, sizeof file, "%.*s/cuobjdump", (int)n, path);
        if (access(file, X_OK) == 0) {
            snprintf(where, SASS_TEXT, "%.*s", (int)n, path);
            return true;
        }
        path += n + (path[n] == ':');
    }
    snprintf(where, SASS_TEXT, "cuobjdump is not on the PATH; WEFT_CUDA_BIN names its folder");
    return false;
}

static char *read_fd(int fd, size_t *n)
{
    uint32_t room = 0;
    char *text = NULL;
    ptrdiff_t got;

    *n = 0;
    do {
        while (room <= *n + 65536)
            text = grown(text, room, &room, 1);
        got = read(fd, text + *n, 65536);
        *n += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    text[*n] = 0;
    return text;
}

/* What `cuobjdump OPTION FILE` prints, or NULL.  cuobjdump finds nvdisasm by the PATH. */
static char *printed(const char *bin, const char *option, const char *file)
{
    int fd[2], status = 0;
    char tool[SASS_TEXT], *text;
    size_t n;
    pid_t pid;

    snprintf(tool, sizeof tool, "%s/cuobjdump", bin);
    if (pipe(fd) != 0)
        return NULL;
    pid = fork();
    if (pid == 0) {
        const char *old = getenv("PATH");
        char path[8192];

        snprintf(path, sizeof path, "%s:%s", bin, old != NULL ? old : "/usr/bin");
        setenv("PATH", path, 1);
        dup2(fd[1], 1);
        close(fd[0]);
        close(fd[1]);
        execl(tool, tool, option, file, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    text = read_fd(fd[0], &n);
    close(fd[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
        free(text);
        return NULL;
    }
    return text;
}

Sass *sass_load(const char *cubin, char why[SASS_TEXT])
{
    char bin[SASS_TEXT], *text, *usage, *elf;
    const int fd = open(cubin, O_RDONLY | O_CLOEXEC);
    Sass *s = NULL;
    size_t n;

    if (fd < 0) {
        snprintf(why, SASS_TEXT, "%s cannot be read", cubin);
        return NULL;
    }
    elf = read_fd(fd, &n);
    close(fd);
    if (!sass_tools(bin)) {
        memcpy(why, bin, SASS_TEXT);
        free(elf);
        return NULL;
    }
    text = printed(bin, "-sass", cubin);
    usage = printed(bin, "-res-usage", cubin);
    if (text == NULL || usage == NULL)
        snprintf(why, SASS_TEXT, "cuobjdump cannot read %.200s", cubin);
    else
        s = sass_parse(text, usage, elf, n, why);
    free(text);
    free(usage);
    free(elf);
    return s;
}

/* ---- Kernels */
const SassKernel *sass_kernel(const Sass *s, const char *name)
{
    for (int f = 0; f < s->functions; f++)
        if (strcmp(s->function[f].name, name) == 0)
            return &s->kernel[f];
    return NULL;
}

const SassKernel *sass_kernel_at(const Sass *s, int i)
{
    return i >= 0 && i < s->functions ? &s->kernel[i] : NULL;
}
const char *sass_name(const SassKernel *k)
{
    return k->sass->function[k->function].name;
}
SassUse sass_use(const SassKernel *k)
{
    return k->sass->function[k->function].use;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* An SM of sm_80: 65,536 registers, dealt to warps by 256; 64 warps; 32 blocks; 164 KB of shared
 * memory, of which each block takes 1 KB more than it asks for. */
int sass_warps(const SassKernel *k, int threads, int dynamic)
{
    const SassUse use = sass_use(k);
    const int warps = (threads + 31) / 32,
              registers = ((use.registers > 0 ? use.registers : 1) * 32 + 255) / 256 * 256;
    int blocks = smaller(32, 64 / warps);

    blocks = smaller(blocks, 65536 / (registers * warps));
    blocks = smaller(blocks, 164 * 1024 / (use.shared + dynamic + 1024));
    return blocks * warps;
}

int sass_unknown(const Sass *s, FILE *to)
{
    int n = 0;

    for (uint32_t p = 0; p < s->count; p++) {
        char why[SASS_TEXT], *text;
        Ins i = { .text = "" };

        if (*s->ins[p].op->name != '?')
            continue;
        text = copied(s->ins[p].text);
        decode(&i, text, why);
        free(text);
        fprintf(to, "%s /*%04llx*/ %s: %s\n", s->function[s->ins[p].function].name,
                (unsigned long long)s->ins[p].address, s->ins[p].text, why);
        n++;
    }
    return n;
}
