/* SPDX-License-Identifier: MIT */
/* Replaying what joins, splits, inserts and trims. */
#include "replay.h"

#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

static tn_array *out_or(call *c, int i, tn_array *y) { return given(c, i) ? tn_write(array(c, i), y, NULL) : y; }

/* The joined array in the dtype asked for, into which each part may be cast. */
static tn_array *cast_parts(call *c, int count, tn_array *const *in, tn_array *y, int as, int rule)
{
    if (!given(c, as)) return y;
    tn_dtype to = dtype(c, as, TN_FLOAT64);
    const char *casting = string(c, rule, "same_kind");
    for EACH(i, count) {
        tn_dtype from = tn_dtype_of(in[i]);
        bool may = !strcmp(casting, "unsafe") || from == to || (!strcmp(casting, "same_kind") && tn_can_cast(from, to)) ||
                   (!strcmp(casting, "safe") && tn_dtype_promote(from, to) == to);
        if (!may) refuse(c, "%s to %s by %s", tn_dtype_name(from), tn_dtype_name(to), casting);
    }
    return tn_cast(y, to);
}

static void concatenate(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_RESULTS];
    int count = arrays(c, c->slot[0], in, MAX_RESULTS);
    bool flat = c->slot[1] && !given(c, 1);
    for EACH(i, flat ? count : 0) in[i] = tn_ravel(in[i]);
    tn_array *y = tn_concatenate(count, (const tn_array *const *)in, flat ? 0 : (int)integer(c, 1, 0));
    give(c, out_or(c, 2, cast_parts(c, count, in, y, 3, 4)));
}

static void stack(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_RESULTS];
    int count = arrays(c, c->slot[0], in, MAX_RESULTS);
    tn_array *y = tn_stack(count, (const tn_array *const *)in, (int)integer(c, 1, 0));
    give(c, out_or(c, 2, cast_parts(c, count, in, y, 3, 4)));
}

static void stack_family(call *c, const row *r)
{
    tn_array *in[MAX_RESULTS];
    int count = arrays(c, c->slot[0], in, MAX_RESULTS);
    tn_array *y = ((tn_array * (*)(int, const tn_array *const *)) r->function)(count, (const tn_array *const *)in);
    give(c, cast_parts(c, count, in, y, 1, 2));
}

static void append(call *c, const row *r)
{
    (void)r;
    give(c, tn_append(array(c, 0), array(c, 1), axes(c, 2)));
}

/* number: 0 split, 1 array_split; 2, 3, 4: hsplit, vsplit, dsplit */
static void split(call *c, const row *r)
{
    tn_array *x = array(c, 0), *out[MAX_RESULTS];
    int axis = r->number < 2 ? (int)integer(c, 2, 0) : r->number == 2 ? (tn_ndim(x) > 1) : (int)r->number == 3 ? 0 : 2;
    int least = r->number < 2 ? 1 : r->number == 2 ? 1 : (int)r->number - 1;
    const value *v = c->slot[1];
    int count = 0;
    if (tn_ndim(x) < least) refuse(c, "too few axes");
    if (c->refused || !v) return;
    if (v->kind == INT) {
        count = (int)v->i;
        if (count < 1 || count > MAX_RESULTS) {
            refuse(c, "%d sections", count);
            return;
        }
        tn_status status = r->number == 1 ? tn_array_split(x, count, axis, out) : tn_split(x, count, axis, out);
        if (status != TN_OK) return;
    } else {
        long long read[MAX_ARGUMENTS];
        int64_t place[MAX_ARGUMENTS];
        count = integers(c, v, read, MAX_ARGUMENTS);
        for EACH(i, count) place[i] = read[i];
        if (c->refused || tn_split_at(x, count++, place, axis, out) != TN_OK) return;
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
        if (n > capacity || tn_to_host(places, out, sizeof *out * (size_t)capacity) != TN_OK) refuse(c, "too many positions");
        return n;
    }
    tn_array *p = array(c, i);
    if (tn_dtype_of(p) == TN_BOOL && (tn_ndim(p) != 1 || tn_size(p) != extent)) refuse(c, "a mask of another extent");
    if (tn_dtype_of(p) == TN_BOOL) p = tn_flatnonzero(p);
    if (!tn_dtype_is_integer(tn_dtype_of(p)) && tn_size(p) > 0) refuse(c, "positions must be integers");
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
    tn_axes along = axes(c, r->number ? 3 : 2);
    int64_t extent = along.count ? tn_dim(x, along.axis[0]) : tn_size(x);
    int count = positions(c, 1, extent, place, MAX_RESULTS);
    if (c->refused) return;
    if (r->number && count == 0) /* nothing goes nowhere */
        give(c, along.count ? x : tn_ravel(x));
    else
        give(c, r->number ? tn_insert(x, count, place, array(c, 2), along) : tn_delete(x, count, place, along));
}

static void trim_zeros(call *c, const row *r)
{
    (void)r;
    const char *trim = string(c, 1, "fb");
    give(c, tn_trim_zeros(array(c, 0), strpbrk(trim, "fF") != NULL, strpbrk(trim, "bB") != NULL));
}

static void unstack(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *out[MAX_RESULTS];
    int axis = (int)integer(c, 1, 0), ndim = tn_ndim(x);
    axis = axis < 0 ? axis + ndim : axis;
    if (axis < 0 || axis >= ndim || tn_dim(x, axis) > MAX_RESULTS || tn_dim(x, axis) < 1) {
        refuse(c, "axis");
        return;
    }
    int count = (int)tn_dim(x, axis);
    if (tn_split(x, count, axis, out) != TN_OK) return;
    for EACH(i, count) give(c, tn_squeeze(out[i], TN_AXES(axis)));
}

static const row rows[] = {
    {"unstack", "x axis", unstack},
    {"concatenate", "arrays axis out dtype casting", concatenate}, {"concat", "arrays axis out dtype casting", concatenate},
    {"stack", "arrays axis out dtype casting", stack},
    {"vstack", "tup dtype casting", stack_family, NAME(tn_vstack)}, {"row_stack", "tup dtype casting", stack_family, NAME(tn_vstack)},
    {"hstack", "tup dtype casting", stack_family, NAME(tn_hstack)}, {"dstack", "tup dtype casting", stack_family, NAME(tn_dstack)},
    {"column_stack", "tup dtype casting", stack_family, NAME(tn_column_stack)}, {"append", "arr values axis", append},
    {"split", "ary indices_or_sections axis", split, NULL, 0}, {"array_split", "ary indices_or_sections axis", split, NULL, 1},
    {"hsplit", "ary indices_or_sections", split, NULL, 2}, {"vsplit", "ary indices_or_sections", split, NULL, 3},
    {"dsplit", "ary indices_or_sections", split, NULL, 4},
    {"insert", "arr obj values axis", insert_or_delete, NULL, 1}, {"delete", "arr obj axis", insert_or_delete, NULL, 0},
    {"trim_zeros", "filt trim", trim_zeros},
};
REPLAY_ROWS(rows)
