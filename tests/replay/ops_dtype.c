/* SPDX-License-Identifier: MIT */
/* Replaying questions about dtypes, and what an array's own names give. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* Of a dtype's name, or of an array. */
static tn_dtype dtype_of(call *c, const value *v)
{
    if (v && (v->kind == DTYPE || v->kind == STRING) && v->text) {
        tn_dtype found = dtype_named(v->text);
        if (!found)
            refuse(c, "'%s' is no dtype", v->text);
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
    if (!known)
        refuse(c, "casting '%s'", rule);
    if (c->slot[0] && c->slot[0]->kind <= COMPLEX)
        refuse(c, "a Python number has no dtype");
    tn_dtype from = dtype_of(c, c->slot[0]), to = dtype_of(c, c->slot[1]);
    if (!c->refused)
        give_bool(c, tn_can_cast_by(from, to, rule));
}

static void promote_types(call *c, const row *r)
{
    (void)r;
    tn_dtype a = dtype_of(c, c->slot[0]), b = dtype_of(c, c->slot[1]);
    if (!c->refused)
        give_dtype(c, tn_dtype_promote(a, b));
}

/* A dtype is of itself, and of what it is a kind of. */
static void issubdtype(call *c, const row *r)
{
    (void)r;
    const char *kind = string(c, 1, "");
    tn_dtype of = dtype_of(c, c->slot[0]);
    bool real = tn_dtype_is_float(of), complex = tn_dtype_is_complex(of), whole = tn_dtype_is_integer(of),
         is_unsigned = tn_dtype_name(of)[0] == 'u';
    const struct {
        const char *name;
        bool holds;
    } kinds[] = {{"generic", true},
                 {"number", of != TN_BOOL},
                 {"inexact", real || complex},
                 {"floating", real && !complex},
                 {"complexfloating", complex},
                 {"integer", whole},
                 {"signedinteger", whole && !is_unsigned},
                 {"unsignedinteger", whole && is_unsigned}};
    for EACH(i, (int)(sizeof kinds / sizeof *kinds))
        if (!strcmp(kind, kinds[i].name)) {
            give_bool(c, kinds[i].holds);
            return;
        }
    tn_dtype other = dtype_of(c, c->slot[1]);
    if (!c->refused)
        give_bool(c, of == other);
}

static void isfortran(call *c, const row *r)
{
    (void)r;
    (void)own_array(c, 0);
    give_bool(c, c->slot[0] && c->slot[0]->fortran);
}

/* The smallest dtype of its kind that holds a number; an array's own. */
static void min_scalar_type(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_dtype of = tn_dtype_of(x);
    static const tn_dtype whole[2][4] = {{TN_UINT8, TN_UINT16, TN_UINT32, TN_UINT64},
                                         {TN_INT8, TN_INT16, TN_INT32, TN_INT64}};
    double parts[2] = {0};
    bool number = tn_ndim(x) == 0 && of != TN_BOOL && !c->refused;
    if (number && tn_item_parts(x, parts) != TN_OK)
        return;
    double size = fabs(parts[0]) > fabs(parts[1]) ? fabs(parts[0]) : fabs(parts[1]);
    int step = 0;
    if (number && tn_dtype_is_integer(of)) {
        bool below = parts[0] < 0;
        while (step < 3 && (below ? -parts[0] > ldexp(1, (8 << step) - 1) : parts[0] >= ldexp(1, 8 << step)))
            step++;
        of = whole[below][step];
    } else if (number) {
        bool complex = tn_dtype_is_complex(of), small = !(size > 65000) || isinf(size),
             medium = !(size > 3.4e38) || isinf(size);
        of = complex ? (medium ? TN_COMPLEX64 : TN_COMPLEX128) : small ? TN_FLOAT16 : medium ? TN_FLOAT32 : TN_FLOAT64;
    }
    if (!c->refused)
        give_dtype(c, of);
}

static tn_array *weak(call *c, const value *v)
{
    if (v->kind == BOOL)
        return tn_weak_bool(v->i);
    if (v->kind == INT)
        return tn_weak_int(v->i);
    if (v->kind == FLOAT)
        return tn_weak_float(v->f);
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
        in[i] = named   ? tn_zeros(TN_SHAPE(0), .dtype = dtype_of(c, c->rest[i]))
                : typed ? weak(c, c->rest[i])
                        : array_of(c, c->rest[i]);
    }
    if (c->rest_count == 0)
        refuse(c, "at least one array or dtype is required");
    if (!c->refused)
        give_dtype(c, tn_result_type(c->rest_count, (const tn_array *const *)in));
}

static void isscalar(call *c, const row *r)
{
    (void)r;
    const value *v = c->slot[0];
    if (!v)
        refuse(c, "nothing is given");
    else
        give_bool(c, v->kind <= STRING && v->kind != NONE);
}

static void same(call *c, const row *r)
{
    (void)r;
    give(c, array(c, 0));
}

/* Python's own numbers. */
static tn_array *of_python(tn_array *y)
{
    tn_dtype of = tn_dtype_of(y);
    return tn_cast(y, of == TN_BOOL             ? of
                      : tn_dtype_is_complex(of) ? TN_COMPLEX128
                      : tn_dtype_is_float(of)   ? TN_FLOAT64
                                                : TN_INT64);
}

static void listed(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    give(c, tn_dtype_of(x) == TN_UINT64 ? x : of_python(x));
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
    if (c->slot[1])
        check_assigned(c, c->slot[1], tn_dtype_of(x));
    if (!c->refused && tn_assign(x, array(c, 1)) == TN_OK)
        give(c, x);
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
    give(c, tn_dtype_of(y) == TN_UINT64 && tn_item(y) >= 0x1p63 ? y : of_python(y));
}

static const row rows[] = {
    {"can_cast", "from_ to casting", can_cast}, {"promote_types", "type1 type2", promote_types},
    {"result_type", "*arrays_and_dtypes", result_type},
    {"isfortran", "a", isfortran}, {"min_scalar_type", "a", min_scalar_type}, {"issubdtype", "arg1 arg2", issubdtype},
    {"isscalar", "element", isscalar}, {"require", "a dtype requirements", same}, {"T", "a", transposed, NULL, 0},
    {"mT", "a", transposed, NULL, 1},
    {"fill", "a value", fill}, {"item", "*args", item}, {"tolist", "a", listed},
};
REPLAY_ROWS(rows)
