/* SPDX-License-Identifier: MIT */
/* Replaying sorting, searching, sets, and products. */
#include "replay.h"

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

static tn_array *out_or(call *c, int i, tn_array *y) { return given(c, i) ? tn_write(array(c, i), y, NULL) : y; }

/* axis=None: the flat array; by default the last axis. */
static tn_array *along(call *c, int x, int axis, tn_axis_opts *o)
{
    bool flat = c->slot[axis] && !given(c, axis);
    *o = (tn_axis_opts){.axis = flat ? (tn_axes){1, {0}} : given(c, axis) ? axes(c, axis) : (tn_axes){1, {-1}}};
    return flat ? tn_ravel(array(c, x)) : array(c, x);
}

static void sort(call *c, const row *r)
{
    tn_axis_opts o;
    tn_array *x = along(c, 0, 1, &o);
    give(c, ((tn_array * (*)(const tn_array *, const tn_axis_opts *)) r->function)(x, &o));
}

static void partition(call *c, const row *r)
{
    tn_axis_opts o;
    tn_array *x = along(c, 0, 2, &o);
    long long read[MAX_ARGUMENTS];
    int64_t kth[MAX_ARGUMENTS];
    int count = c->slot[1] ? integers(c, c->slot[1], read, MAX_ARGUMENTS) : 0;
    for EACH(i, count) kth[i] = read[i];
    if (c->refused) return;
    give(c, r->number ? tn_argpartition_with(x, count, kth, &o) : tn_partition_with(x, count, kth, &o));
}

static void lexsort(call *c, const row *r)
{
    (void)r;
    tn_array *keys[MAX_ARGUMENTS];
    int count = arrays(c, c->slot[0], keys, MAX_ARGUMENTS);
    tn_axis_opts o = {.axis = given(c, 1) ? axes(c, 1) : (tn_axes){1, {-1}}};
    if (!c->refused) give(c, tn_lexsort_with(count, (const tn_array *const *)keys, &o));
}

static void searchsorted(call *c, const row *r)
{
    (void)r;
    const char *side = string(c, 2, "left");
    tn_search_opts o = {.right = side[0] == 'r'};
    tn_array *sorted = array(c, 0);
    if (given(c, 3)) sorted = tn_take(sorted, array(c, 3), 0);
    give(c, tn_searchsorted_with(sorted, operand(c, 1, 0, 1), &o));
}

static void digitize(call *c, const row *r)
{
    (void)r;
    tn_search_opts o = {.right = boolean(c, 2, false)};
    give(c, tn_digitize_with(array(c, 0), array(c, 1), &o));
}

static void unique(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *index, *inverse, *counts;
    bool wanted[3];
    for EACH(i, 3) wanted[i] = boolean(c, 1 + i, false);
    tn_unique_opts o = {.index = wanted[0] ? &index : NULL, .inverse = wanted[1] ? &inverse : NULL, .counts = wanted[2] ? &counts : NULL};
    if (given(c, 4)) refuse(c, "unique along an axis is not replayed");
    if (c->refused) return;
    give(c, tn_unique_with(x, &o));
    if (wanted[0]) give(c, index);
    if (wanted[1]) give(c, inverse);
    if (wanted[2]) give(c, counts);
}

static void isin(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    give(c, tn_isin(r->number ? tn_ravel(x) : x, array(c, 1), boolean(c, 3, false)));
}

static void sets(call *c, const row *r)
{
    give(c, ((tn_array * (*)(const tn_array *, const tn_array *)) r->function)(array(c, 0), array(c, 1)));
}

/* ---- products ---- */

static void product(call *c, const row *r)
{
    tn_array *y = ((tn_array * (*)(const tn_array *, const tn_array *)) r->function)(array(c, 0), array(c, 1));
    y = given(c, 3) ? tn_cast(y, dtype(c, 3, TN_FLOAT64)) : y;
    give(c, out_or(c, 2, y));
}

static void vecdot(call *c, const row *r)
{
    (void)r;
    give(c, tn_vecdot(array(c, 0), array(c, 1), (int)integer(c, 2, -1)));
}

static void tensordot(call *c, const row *r)
{
    (void)r;
    tn_array *a = array(c, 0), *b = array(c, 1);
    tn_axes p = {0}, q = {0};
    const value *v = c->slot[2];
    if (v && v->kind == LIST && v->list.count == 2) {
        long long read[TN_MAX_NDIM];
        p.count = integers(c, &v->list.item[0], read, TN_MAX_NDIM);
        for EACH(i, p.count) p.axis[i] = (int)read[i];
        q.count = integers(c, &v->list.item[1], read, TN_MAX_NDIM);
        for EACH(i, q.count) q.axis[i] = (int)read[i];
    } else {
        p.count = q.count = (int)integer(c, 2, 2);
        if (p.count < 0 || p.count > tn_ndim(a) || q.count > tn_ndim(b)) refuse(c, "too many axes");
        for EACH(i, c->refused ? 0 : p.count) {
            p.axis[i] = tn_ndim(a) - p.count + i;
            q.axis[i] = i;
        }
    }
    if (!c->refused) give(c, tn_tensordot(a, b, p, q));
}

static void einsum(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_ARGUMENTS];
    if (c->rest_count < 2 || c->rest[0]->kind != STRING) {
        refuse(c, "expected a string and operands");
        return;
    }
    for (int i = 1; i < c->rest_count; i++) in[i - 1] = array_of(c, c->rest[i]);
    tn_array *y = tn_einsum(c->rest[0]->text, c->rest_count - 1, (const tn_array *const *)in);
    y = given(c, 2) ? tn_cast(y, dtype(c, 2, TN_FLOAT64)) : y;
    give(c, out_or(c, 1, y));
}

static void cross(call *c, const row *r)
{
    (void)r;
    tn_cross_opts o = {.a = {1, {(int)integer(c, 2, -1)}}, .b = {1, {(int)integer(c, 3, -1)}}, .result = {1, {(int)integer(c, 4, -1)}}};
    if (given(c, 5)) o.a = o.b = o.result = axes(c, 5);
    give(c, tn_cross_with(array(c, 0), array(c, 1), &o));
}

static const row rows[] = {
    {"sort", "a axis kind order stable", sort, NAME(tn_sort_with)},
    {"argsort", "a axis kind order stable", sort, NAME(tn_argsort_with)},
    {"partition", "a kth axis kind order", partition}, {"argpartition", "a kth axis kind order", partition, NULL, 1},
    {"lexsort", "keys axis", lexsort}, {"searchsorted", "a v side sorter", searchsorted}, {"digitize", "x bins right", digitize},
    {"unique", "ar return_index return_inverse return_counts axis equal_nan", unique},
    {"isin", "element test_elements assume_unique invert", isin}, {"in1d", "ar1 ar2 assume_unique invert", isin, NULL, 1},
    {"intersect1d", "ar1 ar2 assume_unique return_indices", sets, NAME(tn_intersect1d)},
    {"union1d", "ar1 ar2", sets, NAME(tn_union1d)},
    {"setdiff1d", "ar1 ar2 assume_unique", sets, NAME(tn_setdiff1d)},
    {"setxor1d", "ar1 ar2 assume_unique", sets, NAME(tn_setxor1d)},
    {"matmul", "x1 x2 out dtype", product, NAME(tn_matmul)}, {"dot", "a b out", product, NAME(tn_dot)},
    {"vdot", "a b", product, NAME(tn_vdot)}, {"inner", "a b", product, NAME(tn_inner)},
    {"outer", "a b out", product, NAME(tn_outer)}, {"kron", "a b", product, NAME(tn_kron)},
    {"vecdot", "x1 x2 axis", vecdot}, {"linalg.vecdot", "x1 x2 axis", vecdot},
    {"tensordot", "a b axes", tensordot}, {"einsum", "*operands out dtype order casting optimize", einsum},
    {"cross", "a b axisa axisb axisc axis", cross},
};
REPLAY_ROWS(rows)
