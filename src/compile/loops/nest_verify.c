/* SPDX-License-Identifier: MIT */
/* Checks a nest that has been built, whoever merged it: what the passes behind it, and the emitters, rely on. */
#include "compile/loops/nest.h"

#include <stdlib.h>

/* The first and the last element of an affine position; false where some loop that it varies with has no iteration. */
static bool reach(int count, const int64_t *extent, const int64_t *stride, int64_t *low, int64_t *high)
{
    for (int d = 0; d < count; d++) {
        if (extent[d] == 0)
            return false;
        int64_t span = (extent[d] - 1) * stride[d];
        *(span < 0 ? low : high) += span;
    }
    return true;
}

/* Elements of a value's memory, from the lowest to the highest: of a leaf with strides those that it shows. */
static void memory_of(const tn__value *v, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = v->shape->size - 1;
    if (!v->strides)
        return;
    *high = 0;
    reach(v->shape->ndim, v->shape->dim, v->strides->v, low, high);
}

static uint32_t all_loops(const tn__nest *n) { return (1u << n->loop_count) - 1; }

static uint32_t loops_of(const tn__nest *n, const tn__access *a)
{
    uint32_t loops = 0;
    for (int l = 0; l < n->loop_count; l++)
        loops |= a->stride[l] ? 1u << l : 0;
    return loops;
}

/* Do its elements lie in the value's memory? Of lines that are chosen by positions only the kernel knows. */
static bool is_inside(const tn__graph *graph, const tn__nest *n, const tn__access *a)
{
    int64_t low = a->offset, high = a->offset, first, last;
    int64_t extent[TN__MAX_LOOPS + 1], stride[TN__MAX_LOOPS + 1];
    int count = 0;
    if (a->lines || a->counted)
        return true;
    for (int l = 0; l < n->loop_count; l++) {
        if (n->extent[l] == 0) /* then nothing is done */
            return true;
        if (a->stride[l]) {
            extent[count] = n->extent[l];
            stride[count++] = a->stride[l];
        }
    }
    if (a->gathered || a->raw || a->factor) {
        extent[count] = a->gather_extent;
        stride[count++] = a->gather_stride;
    }
    memory_of(&graph->value[a->value], &first, &last);
    return !reach(count, extent, stride, &low, &high) || (low >= first && high <= last);
}

static const char *check_access(const tn__graph *graph, const tn__nest *n, const tn__access *a)
{
    for (int l = n->loop_count; l < TN__MAX_LOOPS; l++)
        if (a->stride[l])
            return "an access varies with a loop that is not there";
    if (a->kind == TN__ACCESS_INDEX || (a->kind == TN__ACCESS_STORE && a->value < 0)) /* the latter is dropped */
        return NULL;
    if (a->value < 0 || a->value >= graph->count)
        return "an access to no value";
    if (a->dtype != graph->value[a->value].dtype)
        return "an access in another dtype than its value's";
    if (a->kind == TN__ACCESS_STORE && (a->gathered || a->factor || a->raw))
        return "a store through an index";
    return is_inside(graph, n, a) ? NULL : "an access reaches outside its value";
}

/* What each kind of expression names. */
static const char *check_kind(const tn__nest *n, const tn__expr *e)
{
    static const tn__access_kind accesses[] = {[TN__EXPR_LOAD] = TN__ACCESS_LOAD,
                                               [TN__EXPR_INDEX] = TN__ACCESS_INDEX,
                                               [TN__EXPR_RAW] = TN__ACCESS_LOAD};
    switch (e->kind) {
    case TN__EXPR_LOAD:
    case TN__EXPR_INDEX:
    case TN__EXPR_RAW: {
        if (e->access < 0 || e->access >= n->access_count)
            return "an expression of no access";
        const tn__access *a = &n->access[e->access];
        if (a->kind != accesses[e->kind] || a->raw != (e->kind == TN__EXPR_RAW) || a->gathered != (e->arity == 1))
            return "an expression of another kind than its access";
        return loops_of(n, a) & ~e->loops ? "an expression varies with fewer loops than its access" : NULL;
    }
    case TN__EXPR_REDUCED:
        if (e->reduction < 0 || e->reduction >= n->reduction_count)
            return "an expression of no reduction";
        if (e->loops & n->reduced)
            return "a reduction's result varies with a reduced loop";
        return e->level == n->reduction[e->reduction].level + 1 ? NULL : "a reduction's result before its pass";
    case TN__EXPR_PRODUCT:
        return n->product.there ? NULL : "an expression of no product";
    default:
        return NULL;
    }
}

static const char *check_expr(const tn__nest *n, int index)
{
    const tn__expr *e = &n->expr[index];
    if (e->loops & ~all_loops(n))
        return "an expression varies with a loop that is not there";
    for (int i = 0; i < e->arity; i++) {
        if (e->arg[i] < 0 || e->arg[i] >= index)
            return "an expression that comes before its argument";
        const tn__expr *arg = &n->expr[e->arg[i]];
        if (arg->loops & ~e->loops)
            return "an expression varies with fewer loops than its argument";
        if (arg->level > e->level)
            return "an expression in an earlier pass than its argument";
    }
    return check_kind(n, e);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Targets are in ascending order. */
static bool is_target(const tn__nest *n, int value)
{
    return bsearch(&value, n->target, (size_t)n->target_count, sizeof value, by_number) != NULL;
}

static const char *check_reduction(const tn__nest *n, const tn__reduction *r)
{
    if (!is_target(n, r->value))
        return "a reduction that is no target";
    if (r->arg < 0 || r->arg >= n->expr_count)
        return "a reduction of no expression";
    return n->expr[r->arg].level <= r->level ? NULL : "a reduction in an earlier pass than what it reduces";
}

static const char *check_store(const tn__nest *n, const tn__store *s)
{
    if (!is_target(n, s->value))
        return "a store of what is no target";
    if (s->expr < 0 || s->expr >= n->expr_count || s->access < 0 || s->access >= n->access_count)
        return "a store of no expression or access";
    const tn__access *a = &n->access[s->access];
    if (a->kind != TN__ACCESS_STORE || a->value != s->value)
        return "a store through another value's access";
    if (s->row && (n->expr[s->expr].loops | loops_of(n, a)) & n->reduced)
        return "a row's store varies with a reduced loop";
    return n->expr[s->expr].level <= s->level ? NULL : "a store in an earlier pass than its expression";
}

const char *tn__nest_verify(const tn__graph *graph, const tn__nest *n)
{
    const char *wrong = NULL;
    if (n->loop_count < 0 || n->loop_count > TN__MAX_LOOPS || n->reduced & ~all_loops(n))
        return "reduced loops that are not there";
    for (int l = 0; l < n->loop_count; l++)
        if (n->extent[l] < 0)
            return "a loop of a negative extent";
    for (int t = 0; t < n->target_count; t++)
        if (n->target[t] < 0 || n->target[t] >= graph->count || (t && n->target[t] <= n->target[t - 1]))
            return "targets out of order";
    for (int i = 0; i < n->access_count && !wrong; i++)
        wrong = check_access(graph, n, &n->access[i]);
    for (int e = 0; e < n->expr_count && !wrong; e++)
        wrong = check_expr(n, e);
    for (int r = 0; r < n->reduction_count && !wrong; r++)
        wrong = check_reduction(n, &n->reduction[r]);
    for (int s = 0; s < n->store_count && !wrong; s++)
        wrong = check_store(n, &n->store[s]);
    return wrong;
}
