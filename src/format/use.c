/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Applies a rule to its parameters: names become numbers, coordinates and bounds; lines of axes are
 * parsed as those of a program; the map and the axes are combined, level by level, and proven to be
 * inverse to each other. */
#include "format/format_int.h"

#include <string.h>

typedef struct Scope { /* what names mean in one part */
    Arena *arena;
    const FmtRule *rule;
    FmtNamed *name;
    int n, cap;
} Scope;

static _Noreturn void fail(Arena *arena, const FmtRule *rule, const FmtShape *s, const char *what,
                           const char *name)
{
    err_throw(arena->err, ST_CHECK, "format %s%s%s: %s%s", rule->name,
              s != NULL && s->name[0] != '\0' ? ", part " : "", s != NULL ? s->name : "", what,
              name);
}

static void define(Scope *s, const char *name, FmtExpr *e)
{
    s->name = arena_grow(s->arena, s->name, s->n, &s->cap, sizeof *s->name);
    s->name[s->n++] = (FmtNamed){ name, e };
}

/* The latest meaning of a name. */
static FmtExpr *latest(const FmtNamed *list, int n, const char *name)
{
    for (int i = n - 1; i >= 0; i--)
        if (strcmp(list[i].name, name) == 0)
            return list[i].expr;
    return NULL;
}

static FmtExpr *find(const Scope *s, const char *name)
{
    return latest(s->name, s->n, name);
}

FmtExpr *fmt_name(const FmtShape *s, const char *name)
{
    return latest(s->name_of, s->nname, name);
}

static FmtExpr *number(Arena *arena, int64_t v)
{
    return fmt_node(arena, F_INT, v, NULL, NULL);
}

/* The expression with each name replaced by what it means. */
static FmtExpr *resolve(const Scope *s, const FmtExpr *e)
{
    FmtExpr *to;
    int64_t v;

    if (e->op == F_NAME) {
        to = find(s, e->name);
        if (to == NULL)
            fail(s->arena, s->rule, NULL, "there is no parameter or coordinate ", e->name);
        return to;
    }
    to = arena_copy(s->arena, e, sizeof *e);
    to->arg = arena_array(s->arena, e->nargs, sizeof *to->arg);
    for (int i = 0; i < e->nargs; i++)
        to->arg[i] = resolve(s, e->arg[i]);
    return fmt_expr_const(to, &v) ? number(s->arena, v) : to;
}

static void define_all(Scope *s, const FmtNamed *list, int n)
{
    for (int i = 0; i < n; i++)
        define(s, list[i].name, resolve(s, list[i].expr));
}

/* The axes of a part as a program whose sizes are all names that are numbers, bounds or fits.  Its
 * lines have the numbers that they have in the rule. */
static Prog *read_axes(const Scope *s, const FmtRulePart *part, const char *label)
{
    Text t = { .arena = s->arena };
    const char *sign = "(";
    int line = 1;

    text_f(&t, "program rule");
    for (int i = 0; i < s->n; i++) {
        FmtExpr *e = s->name[i].expr;

        if (find(s, s->name[i].name) == e && (e->op == F_INT || e->op == F_BOUND)) {
            text_f(&t, "%s%s", sign, s->name[i].name);
            sign = ", ";
        }
    }
    for (int i = 0; i < part->nfit; i++)
        if (find(s, part->fit[i]) == NULL) {
            text_f(&t, "%s%s", sign, part->fit[i]);
            sign = ", ";
        }
    text_f(&t, ")\n");
    for (int i = 0; i < part->naxis; i++) {
        for (line++; line < part->axis_line[i]; line++)
            text_char(&t, '\n');
        text_f(&t, "axis %s\n", part->axis[i]);
    }
    return ir_parse(s->arena, label, t.s, t.n);
}

typedef struct Building { /* of one part */
    const Scope *scope;
    const FmtRulePart *rule;
    FmtShape *shape;
} Building;

static _Noreturn void refuse(const Building *b, const char *what, const char *name)
{
    fail(b->scope->arena, b->scope->rule, b->shape, what, name);
}

static int level_of(const Building *b, const Axis *a)
{
    int l = 0;

    while (b->shape->level[l].axis != a)
        l++;
    return l;
}

static bool is_fit(const Building *b, const char *size)
{
    const FmtExpr *e = find(b->scope, size);

    for (int i = 0; i < b->rule->nfit; i++)
        if (strcmp(b->rule->fit[i], size) == 0)
            return e == NULL || (e->op == F_INT && e->v == 0);
    return false;
}

/* An expression of the axes: coordinates that are computed are replaced by what they are. */
static FmtExpr *of_axes(const Building *b, Expr *e)
{
    static const FmtOp op[] = { [OP_neg] = F_NEG, [OP_add] = F_ADD, [OP_sub] = F_SUB,
                                [OP_mul] = F_MUL, [OP_div] = F_DIV, [OP_mod] = F_MOD };
    Arena *arena = b->scope->arena;
    FmtExpr *to;

    switch (e->op) {
    case OP_int: return number(arena, e->i);
    case OP_size:
        if (is_fit(b, e->size->name))
            refuse(b, "only an extent can be a size that fits the data, such as ", e->size->name);
        return find(b->scope, e->size->name);
    case OP_loc: return fmt_node(arena, F_LOC, level_of(b, e->var->axis), NULL, NULL);
    case OP_coord: return b->shape->level[level_of(b, e->var->axis)].coord[e->k];
    case OP_neg:
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_div:
    case OP_mod:
        to = fmt_node(arena, op[e->op], 0, of_axes(b, e->arg[0]),
                      e->nargs > 1 ? of_axes(b, e->arg[1]) : NULL);
        return to;
    default: refuse(b, "coordinates may use sizes, positions in their parents and stored ", "ones");
    }
}

static void set_extent(const Building *b, FmtAxis *to)
{
    Axis *a = to->axis;

    if (a->extent == X_EXPR && a->size->op == OP_size && is_fit(b, a->size->size->name))
        to->fit = a->size->size;
    else if (a->extent == X_EXPR)
        to->extent = of_axes(b, a->size);
    else if (a->extent != X_SEG && a->extent != X_ONE)
        refuse(b, "the extent is an expression, seg or one, but not that of ", a->name);
}

static FmtExpr *find_map(const Building *b, const char *name)
{
    for (int i = 0; i < b->rule->nmap; i++)
        if (strcmp(b->rule->map[i].name, name) == 0)
            return resolve(b->scope, b->rule->map[i].expr);
    return NULL;
}

/* What the map says, or the entry's coordinate of the same name; or NULL. */
static FmtExpr *mapped(const Building *b, const char *name)
{
    FmtExpr *e = find_map(b, name);
    const FmtRule *rule = b->scope->rule;

    for (int i = 0; e == NULL && i < rule->ncoord; i++)
        if (strcmp(rule->coord[i], name) == 0)
            e = fmt_node(b->scope->arena, F_COORD, i, NULL, NULL);
    return e;
}

static FmtExpr *stored_value(const Building *b, const char *name)
{
    FmtExpr *e = mapped(b, name);

    if (e == NULL)
        refuse(b, "the map does not say what is stored as ", name);
    return e;
}

static void set_coord(const Building *b, int l, int k)
{
    FmtAxis *to = &b->shape->level[l];
    const Coord *c = &to->axis->coord[k];
    Arena *arena = b->scope->arena;

    if (c->bound != NULL)
        to->bound[k] = of_axes(b, c->bound);
    if (c->kind == C_LOAD) {
        to->load[k] = stored_value(b, c->name != NULL ? c->name : to->axis->var->name);
        to->coord[k] = fmt_node(arena, F_LOAD, l, NULL, NULL);
        to->coord[k]->k = k;
    } else if (c->kind == C_IDENT) {
        to->coord[k] = fmt_node(arena, F_LOC, l, NULL, NULL);
    } else if (c->kind == C_EXPR) {
        to->coord[k] = of_axes(b, c->expr);
    } else {
        refuse(b, "coordinates are stored, computed or positions, but not those of ",
               to->axis->name);
    }
}

/* Where a position is: by the map, by the entry's coordinate of the axis' name, or, where nothing
 * says so, in the order of what is stored. */
static void set_loc(const Building *b, FmtAxis *to)
{
    const char *var = to->axis->var->name;
    bool value = to->axis->coord[0].name == NULL && to->axis->coord[0].kind == C_LOAD;

    if (!value)
        to->loc = find_map(b, var);
    if (to->loc == NULL && to->load[0] == NULL && ir_is_ident(to->axis))
        to->loc = mapped(b, var);
    if (to->loc == NULL && to->load[0] == NULL && to->axis->extent != X_ONE)
        refuse(b, "the map does not say which position an entry has on axis ", to->axis->name);
}

static void set_level(const Building *b, int l)
{
    FmtAxis *to = &b->shape->level[l];
    Axis *up = l == 0 ? NULL : b->shape->level[l - 1].axis;

    to->axis = b->shape->prog->axis[l];
    if (to->axis->parent != up)
        refuse(b, "each axis hangs on the one before it, but not ", to->axis->name);
    set_extent(b, to);
    for (int k = 0; k < to->axis->ncoord; k++)
        set_coord(b, l, k);
    set_loc(b, to);
}

/* Which coordinate of the axes is that of the entry. */
static void find_inverse(const Building *b)
{
    FmtShape *s = b->shape;
    const FmtRule *rule = b->scope->rule;

    for (int i = 0; i < rule->ncoord; i++) {
        s->from_level[i] = -1;
        for (int l = 0; l < s->nlevel; l++)
            for (int k = 0; k < s->level[l].axis->ncoord; k++) {
                const Coord *c = &s->level[l].axis->coord[k];
                const char *name = c->name != NULL ? c->name : s->level[l].axis->var->name;

                if (strcmp(name, rule->coord[i]) == 0) {
                    s->from_level[i] = l;
                    s->from_k[i] = k;
                }
            }
        if (s->from_level[i] < 0)
            refuse(b, "no axis has the coordinate ", rule->coord[i]);
    }
}

static void check_maps(const Building *b)
{
    for (int i = 0; i < b->rule->nmap; i++) {
        const char *name = b->rule->map[i].name;
        bool used = false;

        for (int l = 0; l < b->shape->nlevel; l++) {
            const Axis *a = b->shape->level[l].axis;
            int k = ir_find_coord(a, name);

            used = used || strcmp(a->var->name, name) == 0 ||
                   (k >= 0 && a->coord[k].kind == C_LOAD);
        }
        if (!used)
            refuse(b, "the map speaks of what no axis stores or counts: ", name);
    }
}

static void check_last(const Building *b)
{
    const Axis *last = b->shape->level[b->shape->nlevel - 1].axis;

    if (last->coord[0].name == NULL)
        refuse(b, "the last axis needs a name for its coordinate, as in `: j < n`: ", last->name);
    if (last->ncoord == IR_MAX_RANK)
        refuse(b, "too many coordinates: ", last->name);
}

static void make_shape(const Scope *scope, const FmtRulePart *rule, FmtShape *s)
{
    Building b = { scope, rule, s };
    Text label = { .arena = scope->arena };

    if (rule->naxis == 0)
        refuse(&b, "a part needs axes", "");
    text_f(&label, "format %s", scope->rule->name);
    s->prog = read_axes(scope, rule, label.s);
    s->zeros = rule->zeros;
    s->nname = scope->n;
    s->name_of = arena_copy(scope->arena, scope->name, (size_t)scope->n * sizeof *scope->name);
    s->nlevel = s->prog->naxis;
    s->level = arena_array(scope->arena, s->nlevel, sizeof *s->level);
    if (rule->where != NULL)
        s->where = resolve(scope, rule->where);
    for (int l = 0; l < s->nlevel; l++)
        set_level(&b, l);
    find_inverse(&b);
    check_maps(&b);
    check_last(&b);
}

enum { LIMIT_PARTS = 4096 };

typedef struct Shapes {
    Scope *scope;
    FmtUse *use;
    int cap;
} Shapes;

static void add_shape(Shapes *all, const FmtRulePart *part, const char *name)
{
    FmtUse *u = all->use;
    Scope scope = *all->scope;
    FmtShape *s;

    if (u->nshape == LIMIT_PARTS)
        err_throw(scope.arena->err, ST_LIMIT, "format %s: more than %d parts", u->rule->name,
                  LIMIT_PARTS);
    scope.cap = scope.n; /* what it adds is its own */
    define_all(&scope, part->let, part->nlet);
    u->shape = arena_grow(scope.arena, u->shape, u->nshape, &all->cap, sizeof *u->shape);
    s = &u->shape[u->nshape++];
    *s = (FmtShape){ .name = name };
    make_shape(&scope, part, s);
    fmt_prove(scope.arena, u, s);
}

/* A part for each combination of the values of its loops. */
static void add_shapes(Shapes *all, const FmtRulePart *part, int depth, const char *name)
{
    Scope *scope = all->scope;
    int64_t n;

    if (depth == part->nloop) {
        add_shape(all, part, name);
        return;
    }
    if (!fmt_expr_const(resolve(scope, part->loop[depth].expr), &n))
        fail(scope->arena, scope->rule, NULL, "the number of parts is one of parameters: ",
             part->loop[depth].name);
    for (int64_t v = 0; v < n; v++) {
        Text t = { .arena = scope->arena };

        text_f(&t, "%s%s%lld", name, depth > 0 ? "_" : "", (long long)v);
        define(scope, part->loop[depth].name, number(scope->arena, v));
        add_shapes(all, part, depth + 1, t.s);
        scope->n--;
    }
}

static const char *skip(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

static _Noreturn void wrong_use(Arena *arena, const char *text)
{
    err_throw(arena->err, ST_ARG,
              "a format is written as `bsr(16, 16)`, with an integer for each parameter, and not "
              "as `%.60s`; `weft list formats` shows them",
              text);
}

/* The numbers in the brackets of a use; how many. */
static int parse_params(Arena *arena, const char *text, const char *p, int64_t *out)
{
    int n = 0;

    for (p = skip(p); *p != ')'; n++) {
        size_t len = (size_t)(*p == '-') + strspn(p + (*p == '-'), "0123456789");

        if (n == FMT_MOST || !num_parse_int(p, len, &out[n]))
            wrong_use(arena, text);
        p = skip(p + len);
        if (*p == ',')
            p = skip(p + 1);
        else if (*p != ')')
            wrong_use(arena, text);
    }
    if (*skip(p + 1) != '\0')
        wrong_use(arena, text);
    return n;
}

static FmtRule *find_rule(Arena *arena, FmtRule **own, int n, const char *name)
{
    const char *text = fmt_find_rule(arena, name), *rest;

    for (int i = 0; i < n; i++)
        if (strcmp(own[i]->name, name) == 0)
            return own[i];
    if (text == NULL)
        err_throw(arena->err, ST_ARG, "there is no format %s; `weft list formats` shows them",
                  name);
    return fmt_rule(arena, text, &rest);
}

static void set_text(Arena *arena, FmtUse *u, bool own)
{
    Text t = { .arena = arena };

    if (own)
        text_f(&t, "%s", u->rule->text);
    text_f(&t, "%s(", u->rule->name);
    for (int i = 0; i < u->rule->nparam; i++)
        text_f(&t, "%s%lld", i > 0 ? ", " : "", (long long)u->param[i]);
    text_f(&t, ")");
    u->text = t.s;
}

static void set_scope(Arena *arena, const FmtUse *u, Scope *s)
{
    const FmtRule *rule = u->rule;

    for (int i = 0; i < rule->ncoord; i++)
        define(s, rule->bound[i], fmt_node(arena, F_BOUND, i, NULL, NULL));
    for (int i = 0; i < rule->ncoord; i++)
        define(s, rule->coord[i], fmt_node(arena, F_COORD, i, NULL, NULL));
    for (int i = 0; i < rule->nparam; i++)
        define(s, rule->param[i], number(arena, u->param[i]));
    define_all(s, rule->let, rule->nlet);
}

FmtUse *fmt_use(Arena *arena, const char *text)
{
    FmtUse *u = arena_alloc(arena, sizeof *u);
    FmtRule **own = NULL;
    Scope scope = { .arena = arena };
    Shapes all = { .scope = &scope, .use = u };
    Text name = { .arena = arena };
    const char *p = text, *unfolded = fmt_is_rule(text) ? NULL : fmt_unfold(arena, skip(text));
    int nown = 0, cap = 0, n;

    if (unfolded != NULL) {
        u = fmt_use(arena, unfolded);
        u->text = text;
        return u;
    }
    while (fmt_is_rule(p)) {
        own = arena_grow(arena, own, nown, &cap, sizeof *own);
        own[nown++] = fmt_rule(arena, p, &p);
    }
    p = skip(p);
    n = (int)strcspn(p, "( \t\r\n");
    if (n == 0 || n > IR_MAX_NAME || *skip(p + n) != '(')
        wrong_use(arena, p);
    text_put(&name, p, (size_t)n);
    u->rule = find_rule(arena, own, nown, name.s);
    n = parse_params(arena, p, skip(p + n) + 1, u->param);
    if (n != u->rule->nparam)
        err_throw(arena->err, ST_ARG, "format %s has %d parameter%s and not %d", u->rule->name,
                  u->rule->nparam, u->rule->nparam == 1 ? "" : "s", n);
    scope.rule = u->rule;
    set_scope(arena, u, &scope);
    for (int i = 0; i < u->rule->npart; i++)
        add_shapes(&all, &u->rule->part[i], 0, u->rule->part[i].name);
    set_text(arena, u, nown > 0);
    return u;
}

const char *fmt_text(const FmtUse *u)
{
    return u->text;
}

int fmt_ncoord(const FmtUse *u)
{
    return u->rule->ncoord;
}

int fmt_nparts(const FmtUse *u)
{
    return u->nshape;
}
