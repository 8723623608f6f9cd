/* SPDX-License-Identifier: MIT */
/* Replaying questions about dtypes, and what an array's own names give. */
#include "replay.h"

#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* Of a dtype's name, or of an array. */
static tn_dtype dtype_of(call *c, const value *v)
{
    if (v && (v->kind == DTYPE || v->kind == STRING) && v->text) {
        tn_dtype found = dtype_named(v->text);
        if (!found) refuse(c, "'%s' is no dtype", v->text);
        return found;
    }
    return tn_dtype_of(array_of(c, v));
}

static void can_cast(call *c, const row *r)
{
    (void)r;
    static const char *const rules[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
    const char *rule = string(c, 2, "safe");
    bool known = false;
    for EACH(i, 5) known |= !strcmp(rule, rules[i]);
    if (!known) refuse(c, "casting '%s'", rule);
    if (c->slot[0] && c->slot[0]->kind <= COMPLEX) refuse(c, "a Python number has no dtype");
    tn_dtype from = dtype_of(c, c->slot[0]), to = dtype_of(c, c->slot[1]);
    if (!c->refused) give_bool(c, tn_can_cast_by(from, to, rule));
}

static void promote_types(call *c, const row *r)
{
    (void)r;
    tn_dtype a = dtype_of(c, c->slot[0]), b = dtype_of(c, c->slot[1]);
    if (!c->refused) give_dtype(c, tn_dtype_promote(a, b));
}

static tn_array *weak(call *c, const value *v)
{
    if (v->kind == BOOL) return tn_weak_bool(v->i);
    if (v->kind == INT) return tn_weak_int(v->i);
    if (v->kind == FLOAT) return tn_weak_float(v->f);
    return v->kind == COMPLEX ? tn_weak_complex_parts(v->complex_parts[0], v->complex_parts[1]) : array_of(c, v);
}

static void result_type(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_ARGUMENTS];
    bool typed = false;
    for EACH(i, c->rest_count) typed |= c->rest[i]->kind > COMPLEX;
    for EACH(i, c->rest_count) {
        bool named = c->rest[i]->kind == DTYPE || c->rest[i]->kind == STRING;
        in[i] = named ? tn_zeros(TN_SHAPE(0), .dtype = dtype_of(c, c->rest[i])) : typed ? weak(c, c->rest[i]) : array_of(c, c->rest[i]);
    }
    if (c->rest_count == 0) refuse(c, "at least one array or dtype is required");
    if (!c->refused) give_dtype(c, tn_result_type(c->rest_count, (const tn_array *const *)in));
}

static void isscalar(call *c, const row *r)
{
    (void)r;
    const value *v = c->slot[0];
    if (!v) refuse(c, "nothing is given");
    else give_bool(c, v->kind <= STRING && v->kind != NONE);
}

static void same(call *c, const row *r)
{
    (void)r;
    give(c, array(c, 0));
}

static void transposed(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    give(c, r->number ? tn_swapaxes(x, -1, -2) : tn_transpose(x, (tn_axes){0}));
}

static void fill(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    if (c->slot[1]) check_assigned(c, c->slot[1], tn_dtype_of(x));
    if (!c->refused && tn_assign(x, array(c, 1)) == TN_OK) give(c, x);
}

/* The one element, or the one at flat or several positions. */
static void item(call *c, const row *r)
{
    (void)r;
    tn_array *x = c->rest_count ? array_of(c, c->rest[0]) : NULL;
    tn_key keys[MAX_ARGUMENTS];
    if (!x || (c->rest_count == 1 && tn_size(x) != 1)) {
        refuse(c, "expected an array of one element, or positions");
        return;
    }
    int count = c->rest_count - 1;
    for EACH(i, count) keys[i] = (tn_key){.kind = TN_KEY_NUMBER, .slice = {c->rest[1 + i]->i, TN_NONE, TN_NONE}};
    tn_array *y = count == 0 ? tn_reshape(x, (tn_shape){0}) : tn_getitem(count == 1 ? tn_ravel(x) : x, count, keys);
    tn_dtype of = tn_dtype_of(y); /* Python's own numbers */
    give(c, tn_cast(y, of == TN_BOOL || (of == TN_UINT64 && tn_item(y) >= 0x1p63) ? of : tn_dtype_is_complex(of) ? TN_COMPLEX128 : tn_dtype_is_float(of) ? TN_FLOAT64 : TN_INT64));
}

static const row rows[] = {
    {"can_cast", "from_ to casting", can_cast}, {"promote_types", "type1 type2", promote_types}, {"result_type", "*arrays_and_dtypes", result_type},
    {"isscalar", "element", isscalar}, {"require", "a dtype requirements", same}, {"T", "a", transposed, NULL, 0}, {"mT", "a", transposed, NULL, 1},
    {"fill", "a value", fill}, {"item", "*args", item}, {"tolist", "a", same},
};
REPLAY_ROWS(rows)
