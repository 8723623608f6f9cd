/* SPDX-License-Identifier: MIT */
/* Replaying sorting, searching, of_two, and products. */
#include "replay.h"

#include <stdio.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* axis=None: the flat array; by default the last axis. */
static tn_array *along(call *c, int x, int axis, tn_axis_opts *o)
{
    bool flat = c->slot[axis] && !given(c, axis);
    *o = (tn_axis_opts){.axis = flat ? (tn_axes){1, {0}} : given(c, axis) ? one_axis(c, axis) : (tn_axes){1, {-1}}};
    return flat ? tn_ravel(array(c, x)) : array(c, x);
}

static void sort(call *c, const row *r)
{
    tn_axis_opts o;
    static const char *const kinds[] = {"quicksort", "mergesort", "heapsort", "stable"};
    const char *kind = string(c, 2, "quicksort");
    bool known = false;
    for EACH(i, 4) known |= kind[0] == kinds[i][0] || kind[0] == kinds[i][0] - 32; /* NumPy looks at the first letter */
    if (!known)
        refuse(c, "kind '%s'", kind);
    if (given(c, 2) && given(c, 4))
        refuse(c, "kind and stable");
    tn_array *x = along(c, 0, 1, &o);
    if (r->number && tn_ndim(x) == 0)
        x = tn_reshape(x, TN_SHAPE(1));
    if (r->number && !(kind[0] & 32 ? strchr("ms", kind[0]) : strchr("MS", kind[0])) && !boolean(c, 4, false)) {
        c->order.open = true; /* not asked to be stable */
        c->order.of = x;
        c->order.axis = o.axis.axis[0];
    }
    give(c, ((tn_array * (*)(const tn_array *, const tn_axis_opts *)) r->function)(x, &o));
}

static void partition(call *c, const row *r)
{
    tn_axis_opts o;
    tn_array *x = along(c, 0, 2, &o);
    if (r->number && tn_ndim(x) == 0 && (integer(c, 2, -1) == 0 || integer(c, 2, -1) == -1))
        x = tn_reshape(x, TN_SHAPE(1)); /* the place of the one */
    long long read[MAX_ARGUMENTS];
    int64_t kth[MAX_ARGUMENTS];
    int count = c->slot[1] ? integers(c, c->slot[1], read, MAX_ARGUMENTS) : 0;
    if (strcmp(string(c, 3, "introselect"), "introselect"))
        refuse(c, "kind '%s'", string(c, 3, ""));
    for EACH(i, count) c->order.kth[i] = kth[i] = read[i];
    if (c->refused)
        return;
    c->order.open = count > 0;
    c->order.of = r->number ? x : NULL;
    c->order.axis = o.axis.axis[0];
    c->order.count = count;
    give(c, r->number ? tn_argpartition_with(x, count, kth, &o) : tn_partition_with(x, count, kth, &o));
}

/* The last axis, or as sort_complex has it. */
static void sort_complex(call *c, const row *r)
{
    (void)r;
    give(c, tn_sort_complex(array(c, 0)));
}

/* NumPy 1.24's, along the first axis. */
static void msort(call *c, const row *r)
{
    (void)r;
    give(c, tn_sort(array(c, 0), .axis = TN_AXES(0)));
}

static void lexsort(call *c, const row *r)
{
    (void)r;
    tn_array *keys[MAX_ARGUMENTS];
    int count = arrays(c, c->slot[0], keys, MAX_ARGUMENTS);
    tn_axis_opts o = {.axis = given(c, 1) ? axes(c, 1) : (tn_axes){1, {-1}}};
    if (count > 0 && tn_ndim(keys[0]) == 0) { /* numbers are in order */
        if (o.axis.axis[0] != 0 && o.axis.axis[0] != -1)
            refuse(c, "axis");
        give_integer(c, 0);
        return;
    }
    if (!c->refused)
        give(c, tn_lexsort_with(count, (const tn_array *const *)keys, &o));
}

static void searchsorted(call *c, const row *r)
{
    (void)r;
    const char *side = string(c, 2, "left");
    tn_search_opts o = {.right = side[0] == 'r' || side[0] == 'R'};
    bool known = !strcmp(side, "left") || !strcmp(side, "right") || (numpy_1 && *side && strchr("lrLR", *side));
    if (!known)
        refuse(c, "side '%s'", side);
    tn_array *sorted = array(c, 0);
    if (given(c, 3) && tn_size(array(c, 3)) != tn_size(sorted))
        refuse(c, "a sorter of another size");
    if (given(c, 3))
        sorted = tn_take(sorted, array(c, 3), 0);
    give(c, tn_searchsorted_with(sorted, array(c, 1), &o));
}

static void digitize(call *c, const row *r)
{
    (void)r;
    tn_search_opts o = {.right = boolean(c, 2, false)};
    for EACH(i, 2) if (tn_dtype_is_complex(tn_dtype_of(array(c, i)))) refuse(c, "complex numbers have no bins");
    give(c, tn_digitize_with(array(c, 0), array(c, 1), &o));
}

static void unique(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *index, *inverse, *counts;
    bool wanted[3];
    for EACH(i, 3) wanted[i] = boolean(c, 1 + i, false);
    tn_unique_opts o = {.index = wanted[0] ? &index : NULL,
                        .inverse = wanted[1] ? &inverse : NULL,
                        .counts = wanted[2] ? &counts : NULL};
    if (given(c, 4))
        o.axis = axes(c, 4);
    o.distinct_nan = !boolean(c, 5, true);
    if (c->refused)
        return;
    give(c, tn_unique_with(x, &o));
    if (wanted[0])
        give(c, index);
    if (wanted[1])
        give(c, numpy_1 ? tn_ravel(inverse) : inverse);
    if (wanted[2])
        give(c, counts);
}

/* unique_all and its kin: number: which of index, inverse, counts. NaNs are distinct. */
static void unique_parts(call *c, const row *r)
{
    tn_array *part[3];
    tn_unique_opts o = {.index = r->number & 1 ? &part[0] : NULL, .inverse = r->number & 2 ? &part[1] : NULL,
                        .counts = r->number & 4 ? &part[2] : NULL, .distinct_nan = true};
    c->unordered = r->number == 0 && !boolean(c, 1, false);
    give(c, tn_unique_with(array(c, 0), &o));
    for EACH(i, 3) if (r->number >> i & 1) give(c, part[i]);
}

static void isin(call *c, const row *r)
{
    tn_array *x = array(c, 0), *set = array(c, 1);
    bool table = given(c, 4) && !strcmp(string(c, 4, ""), "table"),
         whole = tn_dtype_of(x) == TN_BOOL || tn_dtype_is_integer(tn_dtype_of(x));
    if (table && (!whole || !(tn_dtype_of(set) == TN_BOOL || tn_dtype_is_integer(tn_dtype_of(set)))))
        refuse(c, "a table of integers only");
    give(c, tn_isin(r->number ? tn_ravel(x) : x, array(c, 1), boolean(c, 3, false)));
}

/* The elements of a vector where a mask is true. */
static tn_array *picked(tn_array *x, tn_array *where) { return tn_take(x, tn_flatnonzero(where), 0); }

static void intersect1d(call *c, const row *r)
{
    tn_array *a = array(c, 0), *b = array(c, 1);
    if (!boolean(c, 3, false)) {
        give(c, ((tn_array * (*)(const tn_array *, const tn_array *)) r->function)(a, b));
        return;
    }
    tn_array *i, *j, *x = tn_unique(a, .index = &i), *y = tn_unique(b, .index = &j);
    tn_array *in = tn_isin(x, y, false);
    give(c, tn_cast(picked(x, in), tn_dtype_promote(tn_dtype_of(a), tn_dtype_of(b))));
    give(c, picked(i, in));
    give(c, picked(j, tn_isin(y, x, false)));
}

static void setdiff1d(call *c, const row *r)
{
    (void)r;
    tn_array *a = array(c, 0), *b = array(c, 1);
    bool unique = boolean(c, 2, false); /* then in the order given */
    give(c, unique ? picked(tn_ravel(a), tn_isin(tn_ravel(a), b, true)) : tn_setdiff1d(a, b));
}

/* Numbers adapt to the array beside them. */
static void union1d(call *c, const row *r)
{
    (void)r;
    tn_array *a = operand(c, 0, 0, 1), *b = operand(c, 1, 0, 1);
    tn_dtype dtype = tn_result_type(2, (const tn_array *const[]){a, b});
    give(c, tn_union1d(tn_cast(a, dtype), tn_cast(b, dtype)));
}

/* ---- products ---- */

/* out dtype casting, from slot i on. */
static tn_out_opts options(call *c, int i)
{
    return (tn_out_opts){.out = given(c, i) ? array(c, i) : NULL,
                         .dtype = dtype(c, i + 1, TN_DTYPE_DEFAULT),
                         .casting = string(c, i + 2, NULL)};
}

static int product_ndim(const tn_array *a, const tn_array *b)
{
    int m = tn_ndim(a), n = tn_ndim(b);
    return m && n ? m + n - 2 : m + n;
}

enum { PRODUCT_AXES = 7 };

/* The axes of a matrix in operand or result i, of a product that is given them. */
static tn_axes matrix_axes(call *c, int i)
{
    const value *v = c->slot[PRODUCT_AXES];
    tn_axes pair = {.count = 2};
    long long read[2];
    if (v->kind != LIST || v->list.count != 3 || integers(c, &v->list.item[i], read, 2) != 2) {
        refuse(c, "expected three pairs of axes");
        return (tn_axes){2, {-2, -1}};
    }
    for (int k = 0; k < 2; k++)
        pair.axis[k] = (int)read[k];
    return pair;
}

/* x1 x2 out dtype casting, and those that have two operands only. */
static void product(call *c, const row *r)
{
    bool first = numpy_1 && !strcmp(r->name, "kron");
    tn_array *a = first ? operand(c, 0, 0, 1) : array(c, 0), *b = first ? operand(c, 1, 0, 1) : array(c, 1);
    tn_out_opts own = options(c, 2);
    const tn_ufunc_opts o = {.out = own.out, .dtype = own.dtype, .casting = own.casting};
    if (!strcmp(r->name, "linalg.outer") && (tn_ndim(a) != 1 || tn_ndim(b) != 1))
        refuse(c, "expected vectors");
    if (!strcmp(r->name, "dot") && o.out && tn_dtype_of(o.out) != tn_dtype_promote(tn_dtype_of(a), tn_dtype_of(b)))
        refuse(c, "out's dtype");
    bool moved = !strcmp(r->name, "matmul") && given(c, PRODUCT_AXES) && !o.out;
    if (moved)
        a = tn_moveaxis(a, matrix_axes(c, 0), TN_AXES(-2, -1)), b = tn_moveaxis(b, matrix_axes(c, 1), TN_AXES(-2, -1));
    if (c->refused)
        return;
    tn_array *y = tn_binary_with((tn_binary_function *)r->function, a, b, &o);
    if (moved)
        y = tn_moveaxis(y, TN_AXES(-2, -1), matrix_axes(c, 2));
    bool fits = !o.out || strcmp(r->name, "dot") || tn_ndim(o.out) == product_ndim(a, b);
    if (!fits)
        refuse(c, "out has %d axes", tn_ndim(o.out));
    give(c, y);
}

/* Stacks of matrices times stacks of vectors; number: vectors (conjugated) times matrices. */
static void matvec(call *c, const row *r)
{
    tn_out_opts o = options(c, 2);
    const tn_ufunc_opts typed = {.out = o.out, .dtype = o.dtype, .casting = o.casting};
    give(c, tn_binary_with((tn_binary_function *)r->function, array(c, 0), array(c, 1), &typed));
}

static void vecdot(call *c, const row *r)
{
    (void)r;
    tn_out_opts o = options(c, 2);
    int axis = (int)integer(c, 5, -1);
    if (!boolean(c, 6, false) || o.out) {
        give(c, tn_vecdot_with(array(c, 0), array(c, 1), axis, &o));
        return;
    }
    give(c, tn_expand_dims(tn_vecdot_with(array(c, 0), array(c, 1), axis, &o), axis));
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
        if (p.count < 0)
            p.count = q.count = 0; /* as Python's range has it */
        if (p.count > tn_ndim(a) || q.count > tn_ndim(b))
            refuse(c, "too many axes");
        for EACH(i, c->refused ? 0 : p.count) {
            p.axis[i] = tn_ndim(a) - p.count + i;
            q.axis[i] = i;
        }
    }
    if (!c->refused)
        give(c, tn_tensordot(a, b, p, q));
}

/* The form operand, list of axes, operand, list, ..., axes of the result: as text. */
static int listed(call *c, char *text, size_t capacity, tn_array **in)
{
    size_t at = 0;
    int count = 0;
    for EACH(i, c->rest_count) {
        bool axes = i % 2 == 1 || i == c->rest_count - 1;
        if (!axes) {
            in[count++] = array_of(c, c->rest[i]);
            at += (size_t)snprintf(text + at, capacity - at, "%s", count > 1 ? "," : "");
            continue;
        }
        if (c->rest[i]->kind != LIST) {
            refuse(c, "expected a list of axes");
            return 0;
        }
        if (i % 2 == 0)
            at += (size_t)snprintf(text + at, capacity - at, "->");
        for EACH(k, c->rest[i]->list.count) {
            const value *v = &c->rest[i]->list.item[k];
            if (v->kind != ELLIPSIS && (v->kind != INT || v->i < 0 || v->i > 51))
                refuse(c, "expected axes from 0 to 51");
            if (c->refused)
                return 0;
            at += v->kind == ELLIPSIS ? (size_t)snprintf(text + at, capacity - at, "...")
                                      : (size_t)snprintf(text + at, capacity - at, "%c",
                                                         (int)(v->i < 26 ? 'A' + v->i : 'a' + v->i - 26));
        }
    }
    return count;
}

static void einsum(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_ARGUMENTS];
    char lists[1024];
    const char *text = lists;
    int count = 0;
    if (c->rest_count < 1) {
        refuse(c, "expected a string and operands");
        return;
    }
    if (c->rest[0]->kind == STRING) {
        text = c->rest[0]->text;
        for (int i = 1; i < c->rest_count; i++)
            in[count++] = array_of(c, c->rest[i]);
    } else {
        count = listed(c, lists, sizeof lists, in);
    }
    if (c->refused)
        return;
    tn_out_opts o = {.out = given(c, 1) ? array(c, 1) : NULL,
                     .dtype = dtype(c, 2, TN_DTYPE_DEFAULT),
                     .casting = string(c, 4, NULL)};
    give(c, tn_einsum_with(text, count, (const tn_array *const *)in, &o));
}

static void cross(call *c, const row *r)
{
    (void)r;
    tn_cross_opts o = {.a = {1, {(int)integer(c, 2, -1)}},
                       .b = {1, {(int)integer(c, 3, -1)}},
                       .result = {1, {(int)integer(c, 4, -1)}}};
    if (given(c, 5))
        o.a = o.b = o.result = axes(c, 5);
    give(c, tn_cross_with(array(c, 0), array(c, 1), &o));
}

static void linalg_cross(call *c, const row *r)
{
    (void)r;
    tn_axes axis = given(c, 2) ? axes(c, 2) : TN_AXES(-1);
    tn_array *a = array(c, 0), *b = array(c, 1);
    if (tn_ndim(a) < 1 || tn_ndim(b) < 1 || tn_dim(a, axis.axis[0]) != 3 || tn_dim(b, axis.axis[0]) != 3)
        refuse(c, "expected vectors of 3");
    if (!c->refused)
        give(c, tn_cross(a, b, .a = axis, .b = axis, .result = axis));
}

static const row rows[] = {
    {"sort", "a axis kind order stable", sort, NAME(tn_sort_with)},
    {"argsort", "a axis kind order stable", sort, NAME(tn_argsort_with), 1},
    {"partition", "a kth axis kind order", partition}, {"argpartition", "a kth axis kind order", partition, NULL, 1},
    {"sort_complex", "a", sort_complex}, {"msort", "a", msort},
    {"lexsort", "keys axis", lexsort}, {"searchsorted", "a v side sorter", searchsorted},
    {"digitize", "x bins right", digitize},
    {"unique", "ar return_index return_inverse return_counts axis equal_nan", unique},
    {"isin", "element test_elements assume_unique invert kind", isin},
    {"in1d", "ar1 ar2 assume_unique invert kind", isin, NULL, 1},
    {"intersect1d", "ar1 ar2 assume_unique return_indices", intersect1d, NAME(tn_intersect1d)},
    {"union1d", "ar1 ar2", union1d},
    {"setdiff1d", "ar1 ar2 assume_unique", setdiff1d, NULL},
    {"setxor1d", "ar1 ar2 assume_unique", of_two, NAME(tn_setxor1d)},
    {"matmul", "x1 x2 out | dtype casting order subok axes", product, NAME(tn_matmul)},
    {"linalg.matmul", "x1 x2", product, NAME(tn_matmul)},
    {"linalg.outer", "x1 x2", product, NAME(tn_outer)},
    {"matvec", "x1 x2 out | dtype casting", matvec, NAME((tn_matvec))},
    {"vecmat", "x1 x2 out | dtype casting", matvec, NAME((tn_vecmat))}, {"dot", "a b out", product, NAME(tn_dot)},
    {"vdot", "a b", product, NAME(tn_vdot)}, {"inner", "a b", product, NAME(tn_inner)},
    {"outer", "a b out", product, NAME(tn_outer)}, {"kron", "a b", product, NAME(tn_kron)},
    {"vecdot", "x1 x2 out | dtype casting axis keepdims", vecdot},
    {"linalg.vecdot", "x1 x2 | out dtype casting axis", vecdot},
    {"tensordot", "a b axes", tensordot}, {"linalg.tensordot", "x1 x2 axes", tensordot},
    {"unique_all", "x", unique_parts, NULL, 7}, {"unique_counts", "x", unique_parts, NULL, 4},
    {"unique_values", "x | sorted", unique_parts, NULL, 0}, {"unique_inverse", "x", unique_parts, NULL, 2},
    {"einsum", "*operands out dtype order casting optimize", einsum},
    {"cross", "a b axisa axisb axisc axis", cross}, {"linalg.cross", "x1 x2 axis", linalg_cross},
};
REPLAY_ROWS(rows)
