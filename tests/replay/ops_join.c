/* SPDX-License-Identifier: MIT */
/* Replaying what joins, splits, inserts and trims. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* out dtype casting, from slot i on; `out` < 0: none. */
static tn_out_opts options(call *c, int out, int as, int rule)
{
    return (tn_out_opts){.out = out >= 0 && given(c, out) ? array(c, out) : NULL,
                         .dtype = dtype(c, as, TN_DTYPE_DEFAULT),
                         .casting = string(c, rule, NULL)};
}

static void concatenate(call *c, const row *r)
{
    tn_array *in[MAX_RESULTS];
    int count = arrays(c, c->slot[0], in, MAX_RESULTS);
    bool flat = c->slot[1] && !given(c, 1) && !r->number;
    for EACH(i, flat ? count : 0) in[i] = tn_ravel(in[i]);
    tn_out_opts o = options(c, 2, 3, 4);
    if (o.out && o.dtype)
        refuse(c, "out and dtype");
    if (c->refused)
        return;
    int axis = flat ? 0 : (int)integer(c, 1, 0);
    give(c, r->number ? tn_stack_with(count, (const tn_array *const *)in, axis, &o)
                      : tn_concatenate_with(count, (const tn_array *const *)in, axis, &o));
}

/* vstack and hstack. */
static void stack_with(call *c, const row *r)
{
    tn_array *in[MAX_RESULTS];
    int count = arrays(c, c->slot[0], in, MAX_RESULTS);
    tn_out_opts o = options(c, -1, 1, 2);
    if (!c->refused)
        give(c, ((tn_array * (*)(int, const tn_array *const *, const tn_out_opts *))
                     r->function)(count, (const tn_array *const *)in, &o));
}

static void stack_family(call *c, const row *r)
{
    tn_array *in[MAX_RESULTS];
    int count = arrays(c, c->slot[0], in, MAX_RESULTS);
    if (!c->refused)
        give(c, ((tn_array * (*)(int, const tn_array *const *)) r->function)(count, (const tn_array *const *)in));
}

/* How deep a list of lists is. */
static int depth_of(const value *v)
{
    int deepest = 0;
    for
        EACH(i, v->kind == LIST ? v->list.count : 0)
        deepest = depth_of(&v->list.item[i]) > deepest ? depth_of(&v->list.item[i]) : deepest;
    return v->kind == LIST ? deepest + 1 : 0;
}

static int most_axes(call *c, const value *v)
{
    int most = 0;
    if (v->kind != LIST)
        return tn_ndim(array_of(c, v));
    for EACH(i, v->list.count) most = most_axes(c, &v->list.item[i]) > most ? most_axes(c, &v->list.item[i]) : most;
    return most;
}

/* A nest of lists joined, the innermost along the last axis. */
static tn_array *joined(call *c, const value *v, int depth, int ndim)
{
    tn_array *part[MAX_RESULTS];
    if ((depth == 0) != (v->kind != LIST) || (v->kind == LIST && v->list.count == 0) ||
        (v->kind == LIST && v->list.count > MAX_RESULTS)) {
        refuse(c, "lists of unequal depths, or an empty one");
        return tn_zeros(TN_SHAPE(1));
    }
    if (depth == 0) {
        tn_array *x = array_of(c, v);
        while (tn_ndim(x) < ndim && !tn_is_error(x))
            x = tn_expand_dims(x, 0);
        return x;
    }
    for EACH(i, v->list.count) part[i] = joined(c, &v->list.item[i], depth - 1, ndim);
    return c->refused ? part[0] : tn_concatenate(v->list.count, (const tn_array *const *)part, -depth);
}

static void block(call *c, const row *r)
{
    (void)r;
    const value *v = c->slot[0];
    if (!v) {
        refuse(c, "nothing is given");
        return;
    }
    int depth = depth_of(v), most = most_axes(c, v), columns = depth == 2 ? v->list.item[0].list.count : 0;
    bool matrix = depth == 2 && columns > 0 && v->list.count * columns <= MAX_RESULTS;
    for EACH(i, matrix ? v->list.count : 0) {
        const value *line = &v->list.item[i];
        matrix = matrix && line->kind == LIST && line->list.count == columns;
        for EACH(j, matrix ? columns : 0) matrix = matrix && line->list.item[j].kind != LIST;
    }
    tn_array *part[MAX_RESULTS];
    for
        EACH(i, matrix ? v->list.count * columns : 0)
        part[i] = array_of(c, &v->list.item[i / columns].list.item[i % columns]);
    tn_array *y = matrix ? tn_block(v->list.count, columns, (const tn_array *const *)part)
                         : joined(c, v, depth, most > depth ? most : depth);
    if (!c->refused)
        give(c, y);
}

static void append(call *c, const row *r)
{
    (void)r;
    give(c, tn_append(array(c, 0), array(c, 1), one_axis(c, 2)));
}

/* number: 0 split, 1 array_split; 2, 3, 4: hsplit, vsplit, dsplit */
static void split(call *c, const row *r)
{
    bool sections = is_integer(c, 1) && r->number != 1; /* their number asks for the array's shape */
    tn_array *x = sections || r->number == 2 || r->number == 4 ? own_array(c, 0) : array(c, 0), *out[MAX_RESULTS];
    int axis = r->number < 2 ? (int)integer(c, 2, 0) : r->number == 2 ? (tn_ndim(x) > 1) : (int)r->number == 3 ? 0 : 2;
    int least = r->number < 2 ? 1 : r->number == 2 ? 1 : (int)r->number - 1;
    const value *v = c->slot[1];
    int count = 0;
    if (tn_ndim(x) < least)
        refuse(c, "too few axes");
    if (c->refused || !v)
        return;
    bool fraction = v->kind == FLOAT && r->number == 1; /* array_split truncates, split wants a divisor */
    if (v->kind == FLOAT && !fraction && tn_ndim(x) > axis && v->f > 0 && fmod((double)tn_dim(x, axis), v->f) == 0)
        fraction = true;
    if (fraction || is_integer(c, 1)) {
        count = (int)number(c, 1, 0);
        if (count < 1 || count > MAX_RESULTS) {
            refuse(c, "%d sections", count);
            return;
        }
        tn_status status = r->number == 1 ? tn_array_split(x, count, axis, out) : tn_split(x, count, axis, out);
        if (status != TN_OK)
            return;
    } else {
        long long read[MAX_ARGUMENTS];
        int64_t place[MAX_ARGUMENTS];
        count = integers(c, v, read, MAX_ARGUMENTS);
        for EACH(i, count) place[i] = read[i];
        if (c->refused || tn_split_at(x, count++, place, axis, out) != TN_OK)
            return;
    }
    for EACH(i, count) give(c, out[i]);
}

/* Positions: a number, a list, a slice, or a mask; as numbers within the extent. */
static int positions(call *c, int i, int64_t extent, int64_t *out, int capacity)
{
    const value *v = c->slot[i];
    if (v && v->kind == SLICE) {
        tn_array *places = tn_slice(tn_arange(0, (double)extent, 1, .dtype = TN_INT64), 1, &v->slice);
        int n = (int)tn_size(places);
        if (n > capacity || tn_to_host(places, out, sizeof *out * (size_t)capacity) != TN_OK)
            refuse(c, "too many positions");
        return n;
    }
    tn_array *p = array(c, i);
    bool inserts = !strcmp(c->row->name, "insert"); /* in front of what a mask of any extent says */
    if (numpy_1 && inserts)
        p = tn_cast(p, TN_INT64);
    if (tn_dtype_of(p) == TN_BOOL && (tn_ndim(p) != 1 || (tn_size(p) != extent && !inserts)))
        refuse(c, "a mask of another extent");
    if (tn_dtype_of(p) == TN_BOOL)
        p = tn_flatnonzero(p);
    bool none = tn_size(p) == 0 && v && v->kind == LIST;
    if (!tn_dtype_is_integer(tn_dtype_of(p)) && !none)
        refuse(c, "positions must be integers");
    if (tn_ndim(p) > 1 && inserts)
        refuse(c, "positions have one axis at most");
    p = tn_ravel(tn_cast(p, TN_INT64));
    int n = (int)tn_size(p);
    if (c->refused || n > capacity || tn_to_host(p, out, sizeof *out * (size_t)capacity) != TN_OK) {
        refuse(c, "bad positions");
        return 0;
    }
    return n;
}

static void insert_or_delete(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    int64_t place[MAX_RESULTS];
    tn_axes along = one_axis(c, r->number ? 3 : 2);
    int64_t extent = along.count ? tn_dim(x, along.axis[0]) : tn_size(x);
    int count = positions(c, 1, extent, place, MAX_RESULTS);
    if (r->number && c->slot[2])
        check_assigned(c, c->slot[2], tn_dtype_of(x));
    if (c->refused)
        return;
    if (r->number && count == 0) { /* nothing goes nowhere, if it would fit there */
        tn_shape gap = along.count ? tn_shape_of(x) : (tn_shape){1, {0}}, own = tn_shape_of(array(c, 2));
        if (along.count && gap.ndim)
            gap.dim[(along.axis[0] + gap.ndim) % gap.ndim] = 0;
        for EACH(d, own.ndim) {
            int64_t there = d < own.ndim - gap.ndim ? 1 : gap.dim[d - own.ndim + gap.ndim];
            if (own.dim[d] != 1 && own.dim[d] != there)
                refuse(c, "values that do not fit");
        }
        if (c->refused)
            return;
        give(c, along.count ? x : tn_ravel(x));
        return;
    }
    tn_array *values = r->number ? array(c, 2) : NULL;
    bool listed = c->slot[1]->kind == LIST || c->slot[1]->kind == SLICE ||
                  (c->slot[1]->kind == ARRAY && tn_ndim(c->slot[1]->array) > 0);
    if (values && count == 1 && listed && along.count) { /* a list of one: the values lie as they are, not with their
                                                            first axis in front */
        while (!tn_is_error(values) && tn_ndim(values) < tn_ndim(x))
            values = tn_expand_dims(values, 0);
        values = tn_moveaxis(values, along, TN_AXES(0));
    }
    give(c, r->number ? tn_insert(x, count, place, values, along) : tn_delete(x, count, place, along));
}

static void trim_zeros(call *c, const row *r)
{
    (void)r;
    const char *trim = string(c, 1, "fb");
    if (!numpy_1 && (!*trim || trim[strspn(trim, "fFbB")]))
        refuse(c, "trim '%s'", trim);
    bool front = strpbrk(trim, "fF") != NULL, back = strpbrk(trim, "bB") != NULL;
    bool none = given(c, 2) && c->slot[2]->kind == LIST && c->slot[2]->list.count == 0;
    if (none)
        give(c, array(c, 0));
    else
        give(c, given(c, 2) ? tn_trim_zeros_along(array(c, 0), front, back, axes(c, 2))
                            : tn_trim_zeros(array(c, 0), front, back));
}

static void unstack(call *c, const row *r)
{
    (void)r;
    tn_array *x = own_array(c, 0), *out[MAX_RESULTS];
    int axis = (int)integer(c, 1, 0), ndim = tn_ndim(x);
    axis = axis < 0 ? axis + ndim : axis;
    if (axis < 0 || axis >= ndim || tn_dim(x, axis) > MAX_RESULTS) {
        refuse(c, "axis");
        return;
    }
    int count = (int)tn_dim(x, axis);
    if (count == 0 || tn_split(x, count, axis, out) != TN_OK)
        return;
    for EACH(i, count) give(c, tn_squeeze(out[i], TN_AXES(axis)));
}

static const row rows[] = {
    {"block", "arrays", block},
    {"unstack", "x axis", unstack},
    {"concatenate", "arrays axis out | dtype casting", concatenate},
    {"concat", "arrays axis out | dtype casting", concatenate},
    {"stack", "arrays axis out | dtype casting", concatenate, NULL, 1},
    {"vstack", "tup | dtype casting", stack_with, NAME(tn_vstack_with)},
    {"row_stack", "tup | dtype casting", stack_with, NAME(tn_vstack_with)},
    {"hstack", "tup | dtype casting", stack_with, NAME(tn_hstack_with)},
    {"dstack", "tup", stack_family, NAME(tn_dstack)},
    {"column_stack", "tup", stack_family, NAME(tn_column_stack)}, {"append", "arr values axis", append},
    {"split", "ary indices_or_sections axis", split, NULL, 0},
    {"array_split", "ary indices_or_sections axis", split, NULL, 1},
    {"hsplit", "ary indices_or_sections", split, NULL, 2}, {"vsplit", "ary indices_or_sections", split, NULL, 3},
    {"dsplit", "ary indices_or_sections", split, NULL, 4},
    {"insert", "arr obj values axis", insert_or_delete, NULL, 1}, {"delete", "arr obj axis", insert_or_delete, NULL, 0},
    {"trim_zeros", "filt trim axis", trim_zeros},
};
REPLAY_ROWS(rows)
