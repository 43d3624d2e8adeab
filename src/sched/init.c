/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Initial values in schedules.  They are attributes of arrays until pass init places them.  A step
 * that names the loop C.init.x0, or that moves what computes C, needs them as loops. */
#include "sched/step.h"

#include <string.h>

bool step_has_init(const StepCall *c, const Buf *b)
{
    for (int i = 0; i < c->nplaced; i++)
        if (c->placed[i] == b)
            return false;
    return b->init != NULL;
}

void step_placed(StepCall *c, Buf *b)
{
    c->placed = arena_grow(c->p->arena, c->placed, c->nplaced, &c->cap_placed, sizeof *c->placed);
    c->placed[c->nplaced++] = b;
}

/* The arrays that the nest stores to. */
static void take(StepCall *c, const Node *n)
{
    if (n->kind == N_STORE)
        step_placed(c, n->out->buf);
    for (int i = 0; i < n->nbody; i++)
        take(c, n->body[i]);
}

void step_place_init(StepCall *c, Buf *b)
{
    NodeList to = { 0 };
    Node *nest;
    int i = 0;

    if (!step_has_init(c, b))
        return;
    if (c->target == NULL || c->target->init == NULL)
        step_refuse(c, "the initial value of %s is in no loops yet", b->name);
    nest = c->target->init(c->p, b);
    take(c, nest);
    for (; i < c->n && !step_mentions(c, c->phase[i], b); i++)
        tree_append(c->p, &to, c->phase[i]);
    tree_append(c->p, &to, nest);
    for (; i < c->n; i++)
        tree_append(c->p, &to, c->phase[i]);
    c->phase = to.node;
    c->n = to.n;
}

/* Whether a word is the phase of this label, or a loop of it. */
static bool is_word_of(const char *word, const char *label)
{
    size_t n = strlen(label);

    return strncmp(word, label, n) == 0 && (word[n] == 0 || word[n] == '.');
}

void step_place_named(StepCall *c)
{
    for (int w = 0; w < c->line->nword; w++) {
        const char *word = c->line->word[w];

        if (strstr(word, ".init") == NULL)
            continue;
        for (int i = 0; loop_buf(c->p, i) != NULL; i++) {
            Buf *b = loop_buf(c->p, i);

            if (step_has_init(c, b) && is_word_of(word, loop_init_label(c->p, b)))
                step_place_init(c, b);
        }
    }
}
