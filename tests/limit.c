/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * limit CPU WALL REPORT COMMAND...: runs a command and ends it, with every process that it started,
 * when they have used CPU seconds of processor time together, or after WALL seconds on the clock.
 * Processor time does not depend on what else the machine does; the clock catches a hang.  The file
 * REPORT gets "processor-seconds wall-seconds".  The exit code is the command's (128 + N for signal
 * N), or 124 at a limit.  With WEFT_LIMIT_MB in the environment their memory is
 * limited too.  What the command leaves running is ended.  The runner of the tests compiles this
 * file, before any other part of the project exists.
 *
 * Orphans of the command become children of this process (PR_SET_CHILD_SUBREAPER).  So the tree of
 * processes below this one is complete, and the time of a process is always counted once: by its
 * /proc/PID/stat while it lives, by its parent's once that has waited for it. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 128, GRACE_MS = 5000 };

typedef struct Process {
    int pid, parent;
    double seconds; /* its own, and those of the children it waited for */
    double mb;      /* of memory */
    bool ours;
} Process;

typedef struct Tree {
    Process *p;
    int n, room;
} Tree;

static volatile sig_atomic_t stopped; /* by this signal */

static void on_signal(int sig)
{
    stopped = sig;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* A process without a /proc entry has just ended. */
static bool read_process(const char *name, Process *p)
{
    char path[64], text[1024], *after;
    unsigned long long own_user, own_system, user, system, pages;
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    f = fopen(path, "r");
    if (f == NULL)
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    after = strrchr(text, ')'); /* the program's name may have blanks and brackets in it */
    if (after == NULL ||
        sscanf(after, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu"
                      " %*d %*d %*d %*d %*u %*u %llu",
               &p->parent, &own_user, &own_system, &user, &system, &pages) != 6)
        return false;
    p->pid = atoi(name);
    p->ours = false;
    p->mb = (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
    p->seconds = (double)(own_user + own_system + user + system) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static void read_processes(Tree *t)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    t->n = 0;
    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (t->n == t->room) {
            t->room = 2 * t->room + 64;
            t->p = realloc(t->p, (size_t)t->room * sizeof *t->p);
            if (t->p == NULL)
                exit(125);
        }
        t->n += read_process(entry->d_name, &t->p[t->n]);
    }
    closedir(dir);
}

static bool is_ours(const Tree *t, int pid)
{
    if (pid == getpid())
        return true;
    for (int i = 0; i < t->n; i++)
        if (t->p[i].pid == pid)
            return t->p[i].ours;
    return false;
}

/* Marks the processes below this one: a round finds the children of those that the last found. */
static void mark_ours(Tree *t)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < t->n; i++)
            if (!t->p[i].ours && is_ours(t, t->p[i].parent))
                t->p[i].ours = more = true;
    }
}

/* Processor seconds of children that were waited for, and of the tree that lives. */
static double tree_seconds(Tree *t)
{
    struct rusage use;
    double sum;

    getrusage(RUSAGE_CHILDREN, &use);
    sum = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
          1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    read_processes(t);
    mark_ours(t);
    for (int i = 0; i < t->n; i++)
        sum += t->p[i].ours ? t->p[i].seconds : 0;
    return sum;
}

static double tree_mb(const Tree *t)
{
    double sum = 0;

    for (int i = 0; i < t->n; i++)
        sum += t->p[i].ours ? t->p[i].mb : 0;
    return sum;
}

static int signal_tree(Tree *t, int sig)
{
    int n = 0;

    read_processes(t);
    mark_ours(t);
    for (int i = 0; i < t->n; i++)
        if (t->p[i].ours)
            n += kill(t->p[i].pid, sig) == 0;
    return n;
}

/* Reaps the children that have ended; true when the command is one of them. */
static bool reap(pid_t command, int *status)
{
    bool ended = false;
    pid_t pid;
    int code;

    while ((pid = waitpid(-1, &code, WNOHANG)) > 0)
        if (pid == command) {
            ended = true;
            *status = code;
        }
    return ended;
}

/* Ends the whole tree: scripts get a moment to remove their files, then all are killed, again until
 * none is left, as one may just have started another. */
static void end_tree(Tree *t, bool gently)
{
    int status, left = gently ? signal_tree(t, SIGTERM) : 1;

    for (int ms = 0; gently && left > 0 && ms < GRACE_MS; ms += POLL_MS) {
        pause_ms(POLL_MS);
        reap(-1, &status);
        left = signal_tree(t, 0);
    }
    while (signal_tree(t, SIGKILL) > 0) {
        reap(-1, &status);
        pause_ms(1);
    }
    while (waitpid(-1, &status, 0) > 0 || errno == EINTR)
        continue;
}

static pid_t start(char **argv)
{
    pid_t pid = fork();

    if (pid == 0) {
        setsid();
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        execvp(argv[0], argv);
        fprintf(stderr, "limit: %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

/* The limit that is broken, as text; or NULL. */
static const char *over(Tree *t, double begin, double cpu, double wall)
{
    static char text[100];
    const char *mb = getenv("WEFT_LIMIT_MB");

    if (tree_seconds(t) > cpu)
        snprintf(text, sizeof text, "%g seconds of processor time", cpu);
    else if (now() - begin > wall)
        snprintf(text, sizeof text, "%g seconds", wall);
    else if (mb != NULL && tree_mb(t) > atof(mb))
        snprintf(text, sizeof text, "%s MB of memory", mb);
    else
        return NULL;
    return text;
}

static int watch(Tree *t, char **argv, double cpu, double wall)
{
    const char *limit = NULL;
    double begin = now();
    pid_t command = start(argv);
    int status = 0;

    if (command < 0)
        return 125;
    for (int ms = 1; !reap(command, &status); ms = ms < POLL_MS ? 2 * ms : POLL_MS) {
        pause_ms(ms);
        if (ms == POLL_MS)
            limit = over(t, begin, cpu, wall);
        if (stopped == 0 && limit == NULL)
            continue;
        if (stopped == 0)
            fprintf(stderr, "limit: stopped after %s\n", limit);
        end_tree(t, true);
        return stopped != 0 ? 128 + stopped : 124;
    }
    end_tree(t, false);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    Tree tree = { 0 };
    double begin = now();
    FILE *report;
    int code;

    if (argc < 5) {
        fprintf(stderr, "usage: limit CPU WALL REPORT COMMAND...\n");
        return 125;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0); /* the runner is gone */
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_signal);
    code = watch(&tree, argv + 4, atof(argv[1]), atof(argv[2]));
    report = fopen(argv[3], "w");
    if (report != NULL) {
        fprintf(report, "%.1f %.1f\n", tree_seconds(&tree), now() - begin);
        fclose(report);
    }
    free(tree.p);
    return code;
}
