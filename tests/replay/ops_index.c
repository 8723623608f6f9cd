/* SPDX-License-Identifier: MIT */
/* Replaying indexing, taking, putting, choosing. */
#include "replay.h"

#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* ---- keys ---- */

static bool holds_keys(const value *v)
{
    bool found = false;
    for EACH(i, v->kind == LIST ? v->list.count : 0)
        found |= v->list.item[i].kind == SLICE || v->list.item[i].kind == ELLIPSIS || v->list.item[i].kind == NONE;
    return found;
}

static tn_key key_of(call *c, const value *v)
{
    switch (v->kind) {
    case SLICE:
        if (v->slice.step == 0)
            refuse(c, "a slice's step is 0");
        return (tn_key){.kind = TN_KEY_SLICE, .slice = v->slice};
    case ELLIPSIS:
        return (tn_key){.kind = TN_KEY_ELLIPSIS};
    case NONE:
        return (tn_key){.kind = TN_KEY_NEWAXIS};
    case INT:
        return (tn_key){.kind = TN_KEY_NUMBER, .slice = {v->i, TN_NONE, TN_NONE}};
    default:
        break;
    }
    tn_array *x = array_of(c, v);
    if (tn_ndim(x) == 0 && tn_dtype_is_integer(tn_dtype_of(x))) /* an integer scalar */
        return (tn_key){.kind = TN_KEY_NUMBER, .slice = {tn_item_int(x), TN_NONE, TN_NONE}};
    if (v->kind == LIST && tn_size(x) == 0)
        x = tn_cast(x, TN_INT64); /* NumPy: an empty list indexes */
    return (tn_key){.kind = TN_KEY_ARRAY, .array = x};
}

/* The values as keys; a single list that holds slices and such stands for a tuple. */
static int keys_of(call *c, const value *const *v, int count, tn_key *keys)
{
    bool arrays_in = false; /* a list that holds arrays is a tuple as well */
    for EACH(i, count == 1 && v[0]->kind == LIST ? v[0]->list.count : 0)
        arrays_in |= v[0]->list.item[i].kind == ARRAY && tn_ndim(v[0]->list.item[i].array) > 0;
    if (count == 1 && (arrays_in || holds_keys(v[0]) || (lists_are_tuples && v[0]->kind == LIST))) {
        for EACH(i, v[0]->list.count) keys[i] = key_of(c, &v[0]->list.item[i]);
        return v[0]->list.count;
    }
    for EACH(i, count) keys[i] = key_of(c, v[i]);
    return count;
}

static void getitem(call *c, const row *r)
{
    (void)r;
    tn_key keys[MAX_ARGUMENTS];
    if (c->rest_count < 1) {
        refuse(c, "no array");
        return;
    }
    tn_array *x = array_of(c, c->rest[0]);
    int count = keys_of(c, c->rest + 1, c->rest_count - 1, keys);
    if (!c->refused)
        give(c, tn_getitem(x, count, keys));
}

static int list_depth(const value *v)
{
    int deepest = 0;
    for
        EACH(i, v->kind == LIST ? v->list.count : 0)
        deepest = list_depth(&v->list.item[i]) > deepest ? list_depth(&v->list.item[i]) : deepest;
    return v->kind == LIST ? deepest + 1 : 0;
}

/* A list is as deep as what it is assigned to at most; a mask alone takes vectors. */
static void check_depth(call *c, const value *v, tn_array *x, int count, const tn_key *keys)
{
    bool masked = count == 1 && keys[0].kind == TN_KEY_ARRAY && tn_dtype_of(keys[0].array) == TN_BOOL;
    int depth = v->kind == ARRAY ? tn_ndim(v->array) : list_depth(v);
    bool arrays_only = v->kind == ARRAY;
    for EACH(i, count) arrays_only |= keys[i].kind == TN_KEY_ARRAY;
    if (masked && tn_ndim(keys[0].array) == tn_ndim(x) && depth > 1)
        refuse(c, "a mask takes at most one axis");
    if (!arrays_only && !c->refused && depth > tn_ndim(tn_getitem(x, count, keys)))
        refuse(c, "a sequence for an element");
}

static void setitem(call *c, const row *r)
{
    (void)r;
    tn_key keys[MAX_ARGUMENTS];
    if (c->rest_count < 2) {
        refuse(c, "no array and value");
        return;
    }
    tn_array *x = array_of(c, c->rest[0]), *y = assigned(c, c->rest[c->rest_count - 1], tn_dtype_of(x));
    check_assigned(c, c->rest[c->rest_count - 1], tn_dtype_of(x));
    int count = keys_of(c, c->rest + 1, c->rest_count - 2, keys);
    if (!c->refused)
        check_depth(c, c->rest[c->rest_count - 1], x, count, keys);
    bool element = count > 0; /* which NumPy 2.4 takes from no array with axes */
    for EACH(i, count) element &= keys[i].kind == TN_KEY_NUMBER;
    if (numpy_2_5 && element && count == tn_ndim(x) && tn_ndim(y) > 0)
        refuse(c, "an array for an element");
    if (!c->refused && tn_setitem(x, y, count, keys) == TN_OK)
        give(c, x);
}

/* A list of plain numbers is an array; one that holds arrays, lists, slices and such is a tuple. */
int index_keys(call *c, const value *v, tn_key *keys)
{
    bool tuple = v->kind == LIST && ((v->list.count && holds_keys(v)) || lists_are_tuples);
    for EACH(i, v->kind == LIST ? v->list.count : 0) tuple |= v->list.item[i].kind >= LIST;
    const value *items[MAX_ARGUMENTS] = {v};
    for EACH(i, tuple ? v->list.count : 0) items[i] = &v->list.item[i];
    return keys_of(c, items, tuple ? v->list.count : 1, keys);
}

static void add_at(call *c, const row *r)
{
    tn_key keys[MAX_ARGUMENTS];
    tn_array *x = array(c, 0), *y = numpy_1 ? array(c, 2) : operand(c, 2, 0, 2);
    int count = c->slot[1] ? index_keys(c, c->slot[1], keys) : 0;
    if (c->refused)
        return;
    if (tn_dtype_of(x) == TN_BOOL) { /* the sum of bools is their disjunction; their difference there is not */
        if (tn_apply_at(r->number ? (tn_subtract) : (tn_logical_or), x, y, count, keys) == TN_OK)
            give(c, x);
    } else if (!tn_can_cast(tn_dtype_of(y), tn_dtype_of(x)) ||
               (r->number && tn_dtype_of(y) != tn_dtype_of(x))) { /* added, then cast */
        if (tn_apply_at(r->number ? (tn_subtract) : (tn_add), x, y, count, keys) == TN_OK)
            give(c, x);
    } else if (tn_add_at(x, r->number ? tn_negative(y) : y, count, keys) == TN_OK)
        give(c, x);
}

/* ---- taking and putting ---- */

static void take(call *c, const row *r)
{
    (void)r;
    tn_take_opts o = {.axis = one_axis(c, 2), .mode = string(c, 4, NULL), .out = given(c, 3) ? array(c, 3) : NULL};
    tn_array *i = array(c, 1), *x = array(c, 0);
    bool number = c->slot[1] && (c->slot[1]->kind == FLOAT || (c->slot[1]->kind == LIST && tn_size(i) == 0));
    if (number)
        i = tn_cast(i, TN_INT64);
    if (tn_ndim(x) == 0 && o.axis.count == 1 && (o.axis.axis[0] == 0 || o.axis.axis[0] == -1))
        x = tn_reshape(x, TN_SHAPE(1));
    if (o.out && tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(o.out)) != tn_dtype_of(x))
        refuse(c, "out's dtype");
    if (!tn_dtype_is_integer(tn_dtype_of(i)) && tn_dtype_of(i) != TN_BOOL)
        refuse(c, "indices must be integers");
    if (!c->refused)
        give(c, tn_take_with(x, i, &o));
}

static void take_along_axis(call *c, const row *r)
{
    (void)r;
    bool flat = c->slot[2] && !given(c, 2);
    tn_array *x = own_array(c, 0), *i = own_array(c, 1);
    give(c, tn_take_along_axis(flat ? tn_ravel(x) : x, i, flat ? 0 : (int)integer(c, 2, -1)));
}

static void put_along_axis(call *c, const row *r)
{
    (void)r;
    bool flat = c->slot[3] && !given(c, 3);
    tn_array *x = array(c, 0), *target = flat ? tn_ravel(x) : x;
    if (tn_put_along_axis(target, array(c, 1), array(c, 2), flat ? 0 : (int)integer(c, 3, 0)) == TN_OK)
        give(c, flat ? tn_reshape(target, tn_shape_of(x)) : target);
}

static void put(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    if (numpy_1 && tn_size(x) == 0 && strcmp(string(c, 3, "raise"), "raise")) {
        give(c, x);
        return;
    }
    if (!numpy_1 && tn_size(x) == 0 && tn_size(array(c, 1)) > 0)
        refuse(c, "nothing to put into");
    if (c->slot[2])
        check_assigned(c, c->slot[2], tn_dtype_of(x));
    if (!c->refused && tn_put(x, array(c, 1), array(c, 2), string(c, 3, NULL)) == TN_OK)
        give(c, x);
}

static void place(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    if (c->slot[2] && c->slot[2]->kind == ARRAY && !tn_can_cast_by(tn_dtype_of(array(c, 2)), tn_dtype_of(x), "safe"))
        refuse(c, "casting");
    if (c->slot[2])
        check_assigned(c, c->slot[2], tn_dtype_of(x));
    if (c->refused)
        return;
    if (((tn_status(*)(tn_array *, const tn_array *, const tn_array *))r->function)(x, array(c, 1), array(c, 2)) ==
        TN_OK)
        give(c, x);
}

static tn_array *same(const tn_array *x) { return tn_broadcast_to(x, tn_shape_of(x)); }

static void copyto(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *y = operand(c, 1, 0, 1);
    const char *rule = string(c, 2, "same_kind");
    kind of = c->slot[1] ? c->slot[1]->kind : NONE;
    bool any = !strcmp(rule, "unsafe") && (of == FLOAT || of == COMPLEX); /* cast as an array's elements are */
    any |= of == INT && tn_dtype_of(x) == TN_BOOL && !strcmp(rule, "unsafe");
    if (any)
        y = array(c, 1);
    else if (of != NONE)
        check_assigned(c, c->slot[1], tn_dtype_of(x));
    if (of == BOOL && tn_dtype_of(x) != TN_BOOL && (!strcmp(rule, "no") || !strcmp(rule, "equiv")))
        refuse(c, "a bool of another dtype");
    if (!any && of <= COMPLEX && !(of == FLOAT && tn_dtype_is_integer(tn_dtype_of(x))))
        rule = "same_kind";
    tn_ufunc_opts o = {.out = x, .where = mask(c, 3), .casting = strcmp(rule, "same_kind") ? rule : NULL};
    give(c, o.casting ? tn_unary_with(same, y, &o) : tn_write(x, y, o.where));
}

static void fill_diagonal(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    if (c->slot[1])
        check_assigned(c, c->slot[1], tn_dtype_of(x));
    if (!c->refused && tn_fill_diagonal(x, array(c, 1), boolean(c, 2, false)) == TN_OK)
        give(c, x);
}

/* ---- what is not zero ---- */

static void nonzero(call *c, const row *r)
{
    (void)r;
    tn_array *x = numpy_1 ? tn_atleast_1d(array(c, 0)) : array(c, 0), *out[TN_MAX_NDIM];
    if (tn_nonzero(x, out) != TN_OK)
        return;
    for EACH(d, tn_ndim(x)) give(c, out[d]);
}

static void compress(call *c, const row *r)
{
    (void)r;
    tn_axes axis = one_axis(c, 2);
    tn_array *x = array(c, 1);
    if (tn_ndim(x) == 0 && axis.count == 1 && (axis.axis[0] == 0 || axis.axis[0] == -1))
        x = tn_reshape(x, TN_SHAPE(1));
    give(c, tn_compress_with(array(c, 0), x, axis, &(tn_out_opts){.out = given(c, 3) ? array(c, 3) : NULL}));
}

/* The method: the array first. */
static void method_compress(call *c, const row *r)
{
    const value *x = c->slot[0];
    c->slot[0] = c->slot[1];
    c->slot[1] = x;
    compress(c, r);
}

static void extract(call *c, const row *r)
{
    (void)r;
    give(c, tn_extract(array(c, 0), array(c, 1)));
}

/* ---- choosing ---- */

/* As arrays; numbers beside arrays are weak. */
static int choices(call *c, const value *v, tn_array **out)
{
    bool any = false;
    for
        EACH(k, v && v->kind == LIST ? v->list.count : 0)
        any |= v->list.item[k].kind == ARRAY || v->list.item[k].kind == LIST;
    int count = arrays(c, v, out, MAX_ARGUMENTS);
    if (numpy_1 && any && v->kind == LIST) {
        const value *all[MAX_ARGUMENTS];
        for EACH(k, count) all[k] = &v->list.item[k];
        for EACH(k, count) out[k] = first_of(c, all[k], all, count);
        return count;
    }
    for EACH(k, any && !c->refused && v->kind == LIST ? count : 0) {
        const value *item = &v->list.item[k];
        if (item->kind == BOOL)
            out[k] = tn_weak_bool(item->i);
        if (item->kind == INT && !item->digits)
            out[k] = tn_weak_int(item->i);
        if (item->kind == FLOAT)
            out[k] = tn_weak_float(item->f);
        if (item->kind == COMPLEX)
            out[k] = tn_weak_complex_parts(item->complex_parts[0], item->complex_parts[1]);
    }
    return count;
}

static void choose(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_ARGUMENTS];
    int count = choices(c, c->slot[1], in);
    const tn_out_opts o = {.out = given(c, 2) ? array(c, 2) : NULL};
    if (tn_dtype_of(array(c, 0)) == TN_UINT64)
        refuse(c, "no safe cast");
    if (!c->refused)
        give(c, tn_choose_with(array(c, 0), count, (const tn_array *const *)in, string(c, 3, NULL), &o));
}

static void select_first(call *c, const row *r)
{
    (void)r;
    tn_array *condition[MAX_ARGUMENTS], *choice[MAX_ARGUMENTS];
    int count = arrays(c, c->slot[0], condition, MAX_ARGUMENTS);
    if (choices(c, c->slot[1], choice) != count)
        refuse(c, "as many conditions as choices");
    tn_array *otherwise = given(c, 2) ? operand(c, 2, 1, 2) : tn_weak_int(0);
    if (numpy_1 && c->slot[1]->kind == LIST && count < MAX_ARGUMENTS) { /* the default is one of the choices */
        const value *all[MAX_ARGUMENTS], zero = {.kind = INT};
        for EACH(k, count) all[k] = &c->slot[1]->list.item[k];
        all[count] = given(c, 2) ? c->slot[2] : &zero;
        for EACH(k, count) choice[k] = first_of(c, all[k], all, count + 1);
        otherwise = first_of(c, all[count], all, count + 1);
    }
    if (!c->refused)
        give(c, tn_select(count, (const tn_array *const *)condition, (const tn_array *const *)choice, otherwise));
}

/* Of numbers and arrays: functions have no form here. */
static void piecewise(call *c, const row *r)
{
    (void)r;
    tn_array *condition[MAX_ARGUMENTS], *in[MAX_ARGUMENTS], *x = array(c, 0);
    const value *v = c->slot[1];
    bool several =
        v && v->kind == LIST && v->list.count && (v->list.item[0].kind == LIST || v->list.item[0].kind == ARRAY);
    several |= v && v->kind == ARRAY && tn_ndim(v->array) > 1; /* its rows */
    int count = several ? arrays(c, v, condition, MAX_ARGUMENTS) : 1, values = arrays(c, c->slot[2], in, MAX_ARGUMENTS);
    for
        EACH(i, several && v->kind == ARRAY ? count : 0)
        if (tn_ndim(condition[i]) != tn_ndim(x))
            refuse(c, "conditions of other axes");
    /* of a number: one each */
    if (tn_ndim(x) == 0 && v && v->kind == LIST && !several && v->list.count > 0 && v->list.item[0].kind == BOOL) {
        count = v->list.count;
        for EACH(i, count) condition[i] = array_of(c, &v->list.item[i]);
    } else if (!several)
        condition[0] = array(c, 1);
    if (values != count && values != count + 1)
        refuse(c, "%d values for %d conditions", values, count);
    for EACH(i, c->refused ? 0 : values)
        if (c->slot[2]->kind == LIST)
            check_assigned(c, &c->slot[2]->list.item[i], tn_dtype_of(x));
    if (!c->refused)
        give(c, tn_piecewise(x, count, (const tn_array *const *)condition, (const tn_array *const *)in,
                             values > count ? in[count] : NULL));
}

/* ---- positions as numbers ---- */

static void unravel_index(call *c, const row *r)
{
    (void)r;
    tn_array *out[TN_MAX_NDIM];
    tn_shape s = shape(c, 1), turned = s;
    bool fortran = string(c, 2, "C")[0] == 'F';
    if (strlen(string(c, 2, "C")) != 1 || !strchr("CF", *string(c, 2, "C")))
        refuse(c, "order");
    for EACH(d, s.ndim) turned.dim[d] = s.dim[fortran ? s.ndim - 1 - d : d];
    if (s.ndim == 0 && tn_ndim(array(c, 0)) > 0)
        refuse(c, "several positions in an array without axes");
    if (c->refused || tn_unravel_index(array(c, 0), turned, out) != TN_OK)
        return;
    for EACH(d, s.ndim) give(c, out[fortran ? s.ndim - 1 - d : d]);
}

static void ravel_multi_index(call *c, const row *r)
{
    (void)r;
    tn_array *in[TN_MAX_NDIM];
    int count = arrays(c, c->slot[0], in, TN_MAX_NDIM);
    tn_shape s = shape(c, 1), turned = s;
    bool listed = c->slot[0] && c->slot[0]->kind == LIST;
    for EACH(d, count)
    if (!tn_dtype_is_integer(tn_dtype_of(in[d])) && tn_dtype_of(in[d]) != TN_BOOL && !(tn_size(in[d]) == 0 && listed))
        refuse(c, "positions must be integers");
    const char *mode = NULL;
    if (given(c, 2) && c->slot[2]->kind == LIST) { /* one an axis: the others out of range are an error already */
        mode = "raise";
        for EACH(d, c->slot[2]->list.count) {
            const value *m = &c->slot[2]->list.item[d];
            if (d >= count || d >= s.ndim || m->kind != STRING)
                break;
            tn_array *i = tn_cast(in[d], TN_INT64);
            if (!strcmp(m->text, "wrap"))
                in[d] = tn_remainder(i, (double)s.dim[d]);
            if (!strcmp(m->text, "clip"))
                in[d] = tn_clip(i, 0, (double)s.dim[d] - 1);
        }
    } else {
        mode = string(c, 2, NULL);
    }
    bool fortran = string(c, 3, "C")[0] == 'F';
    tn_array *order[TN_MAX_NDIM];
    if (count != s.ndim)
        refuse(c, "%d arrays for %d axes", count, s.ndim);
    for EACH(d, c->refused ? 0 : count) {
        turned.dim[d] = s.dim[fortran ? s.ndim - 1 - d : d];
        order[d] = in[fortran ? count - 1 - d : d];
    }
    if (!c->refused)
        give(c, tn_ravel_multi_index(count, (const tn_array *const *)order, turned, mode));
}

static void triangle_indices(call *c, const row *r)
{
    tn_array *out[2];
    tn_status (*f)(int64_t, int, int64_t, tn_array **) = (tn_status(*)(int64_t, int, int64_t, tn_array **))r->function;
    if (f(integer(c, 0, 0), (int)integer(c, 1, 0), integer(c, 2, -1), out) != TN_OK)
        return;
    give(c, out[0]);
    give(c, out[1]);
}

/* Of an array's two axes. */
static void triangle_of(call *c, const row *r)
{
    tn_array *out[2], *x = array(c, 0);
    tn_status (*f)(int64_t, int, int64_t, tn_array **) = (tn_status(*)(int64_t, int, int64_t, tn_array **))r->function;
    if (tn_ndim(x) != 2)
        refuse(c, "expected two axes");
    if (c->refused || f(tn_dim(x, 0), (int)integer(c, 1, 0), tn_dim(x, 1), out) != TN_OK)
        return;
    give(c, out[0]);
    give(c, out[1]);
}

static void diagonal_of(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    if (tn_ndim(x) < 2)
        refuse(c, "expected two axes");
    for EACH(d, tn_ndim(x)) if (tn_dim(x, d) != tn_dim(x, 0)) refuse(c, "expected equal extents");
    for EACH(d, c->refused ? 0 : tn_ndim(x)) give(c, tn_arange(0, (double)tn_dim(x, 0), 1, .dtype = TN_INT64));
}

/* Vectors (masks: their positions) along axes of their own. */
static void open_mesh(call *c, const row *r)
{
    (void)r;
    for EACH(i, c->rest_count) {
        tn_array *x = array_of(c, c->rest[i]);
        if (tn_ndim(x) != 1)
            refuse(c, "expected vectors");
        if (c->refused)
            return;
        if (tn_dtype_of(x) == TN_BOOL)
            x = tn_flatnonzero(x);
        if (tn_size(x) == 0 && c->rest[i]->kind == LIST)
            x = tn_cast(x, TN_INT64);
        tn_shape s = {.ndim = c->rest_count};
        for EACH(d, s.ndim) s.dim[d] = d == i ? tn_size(x) : 1;
        give(c, tn_reshape(x, s));
    }
}

static void diag_indices(call *c, const row *r)
{
    (void)r;
    for EACH(d, (int)integer(c, 1, 2)) give(c, tn_arange(0, (double)integer(c, 0, 0), 1, .dtype = TN_INT64));
}

static const row rows[] = {
    {"getitem", "*args", getitem}, {"setitem", "*args", setitem},
    {"add.at", "a indices b", add_at, NULL, 0}, {"subtract.at", "a indices b", add_at, NULL, 1},
    {"take", "a indices axis out mode", take}, {"take_along_axis", "arr indices axis", take_along_axis},
    {"put_along_axis", "arr indices values axis", put_along_axis}, {"put", "a ind v mode", put},
    {"place", "arr mask vals", place, NAME(tn_place)}, {"putmask", "a mask values", place, NAME(tn_putmask)},
    {"copyto", "dst src casting where", copyto}, {"fill_diagonal", "a val wrap", fill_diagonal},
    {"nonzero", "a", nonzero}, {"flatnonzero", "a", of_one, NAME(tn_flatnonzero)},
    {"argwhere", "a", of_one, NAME(tn_argwhere)},
    {"compress", "condition a axis out", compress}, {"ndarray.compress", "a condition axis out", method_compress},
    {"extract", "condition arr", extract},
    {"choose", "a choices out mode", choose}, {"select", "condlist choicelist default", select_first},
    {"piecewise", "x condlist funclist", piecewise},
    {"unravel_index", "indices shape order", unravel_index},
    {"ravel_multi_index", "multi_index dims mode order", ravel_multi_index},
    {"tril_indices", "n k m", triangle_indices, NAME(tn_tril_indices)},
    {"triu_indices", "n k m", triangle_indices, NAME(tn_triu_indices)},
    {"tril_indices_from", "arr k", triangle_of, NAME(tn_tril_indices)},
    {"triu_indices_from", "arr k", triangle_of, NAME(tn_triu_indices)},
    {"diag_indices_from", "arr", diagonal_of}, {"ix_", "*args", open_mesh}, {"diag_indices", "n ndim", diag_indices},
};
REPLAY_ROWS(rows)
