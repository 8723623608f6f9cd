/* SPDX-License-Identifier: MIT */
/* Arguments from Python's values to what Tanso's functions take. */
#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- readers ---- */

static const char *const kind_names[] = {[NONE] = "None",      [BOOL] = "a bool",      [INT] = "an integer",
                                         [FLOAT] = "a float",  [COMPLEX] = "a complex", [STRING] = "a string",
                                         [DTYPE] = "a dtype",  [SLICE] = "a slice",     [ELLIPSIS] = "...",
                                         [LIST] = "a list",    [ARRAY] = "an array"};

static void mismatch(call *c, const value *v, const char *expected)
{
    refuse(c, "expected %s, got %s", expected, v ? kind_names[v->kind] : "nothing");
}

bool given(const call *c, int i) { return c->slot[i] && c->slot[i]->kind != NONE; }

/* Python's number in v, or the one element of an array; false if it is none. */
static bool scalar_of(const value *v, value *out)
{
    if (v && (v->kind == BOOL || v->kind == INT || v->kind == FLOAT)) {
        *out = *v;
        return true;
    }
    if (!v || v->kind != ARRAY || tn_size(v->array) != 1)
        return false;
    tn_dtype type = tn_dtype_of(v->array);
    if (tn_dtype_is_float(type))
        *out = (value){.kind = FLOAT, .f = tn_item(v->array)};
    else if (type == TN_BOOL)
        *out = (value){.kind = BOOL, .i = tn_item_int(v->array)};
    else
        *out = (value){.kind = INT, .i = tn_item_int(v->array)};
    return true;
}

long long integer(call *c, int i, long long absent)
{
    if (!given(c, i))
        return absent;
    value v;
    if (!scalar_of(c->slot[i], &v) || v.kind == FLOAT) {
        mismatch(c, c->slot[i], "an integer");
        return absent;
    }
    return v.i;
}

bool is_integer(const call *c, int i)
{
    const value *v = c->slot[i];
    return v && (v->kind == INT ||
                 (v->kind == ARRAY && tn_ndim(v->array) == 0 && tn_dtype_is_integer(tn_dtype_of(v->array))));
}

double number(call *c, int i, double absent)
{
    if (!given(c, i))
        return absent;
    value v;
    if (!scalar_of(c->slot[i], &v)) {
        mismatch(c, c->slot[i], "a number");
        return absent;
    }
    return v.kind == FLOAT ? v.f : v.digits ? strtod(v.digits, NULL) : (double)v.i;
}

bool boolean(call *c, int i, bool absent) { return number(c, i, absent) != 0; }

const char *string(call *c, int i, const char *absent)
{
    if (!given(c, i))
        return absent;
    const value *v = c->slot[i];
    if ((v->kind != STRING && v->kind != DTYPE) || !v->text) {
        mismatch(c, v, "a string");
        return absent ? absent : "";
    }
    return v->text;
}

tn_dtype dtype_named(const char *text)
{
    static const struct {
        const char *name, *dtype;
    } aliases[] = {{"float", "float64"},
                   {"double", "float64"},
                   {"single", "float32"},
                   {"half", "float16"},
                   {"int", "int64"},
                   {"intp", "int64"},
                   {"uint", "uint64"},
                   {"bool_", "bool"},
                   {"complex", "complex128"},
                   {"longlong", "int64"},
                   {"float_", "float64"},
                   {"int_", "int64"},
                   {"f2", "float16"},
                   {"f4", "float32"},
                   {"f8", "float64"},
                   {"i1", "int8"},
                   {"i2", "int16"},
                   {"i4", "int32"},
                   {"i8", "int64"},
                   {"u1", "uint8"},
                   {"u2", "uint16"},
                   {"u4", "uint32"},
                   {"u8", "uint64"},
                   {"b1", "bool"},
                   {"c8", "complex64"},
                   {"c16", "complex128"},
                   {"?", "bool"},
                   {"d", "float64"},
                   {"f", "float32"},
                   {"e", "float16"},
                   {"F", "complex64"},
                   {"D", "complex128"},
                   {"b", "int8"},
                   {"B", "uint8"},
                   {"h", "int16"},
                   {"H", "uint16"},
                   {"i", "int32"},
                   {"I", "uint32"},
                   {"l", "int64"},
                   {"L", "uint64"},
                   {"q", "int64"},
                   {"Q", "uint64"},
                   {"byte", "int8"},
                   {"ubyte", "uint8"},
                   {"short", "int16"},
                   {"ushort", "uint16"},
                   {"intc", "int32"},
                   {"uintc", "uint32"},
                   {"long", "int64"},
                   {"ulong", "uint64"},
                   {"ulonglong", "uint64"},
                   {"uintp", "uint64"},
                   {"n", "int64"},
                   {"p", "int64"},
                   {"N", "uint64"},
                   {"P", "uint64"},
                   {"csingle", "complex64"},
                   {"cdouble", "complex128"},
                   {"complex_", "complex128"},
                   {"bool8", "bool"}};
    static const char *const around[] = {"<class '", "dtype('", "numpy.", "np."}; /* as Python prints types */
    char bare[32];
    for (size_t k = 0; k < sizeof around / sizeof *around; k++)
        if (!strncmp(text, around[k], strlen(around[k])))
            text += strlen(around[k]);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(text, "'"), text);
    text = bare;
    if (strchr("<>=|", *text) && *text)
        text++;
    for (size_t k = 0; k < sizeof aliases / sizeof *aliases; k++)
        if (!strcmp(text, aliases[k].name))
            return tn_dtype_parse(aliases[k].dtype);
    return tn_dtype_parse(text);
}

tn_dtype dtype(call *c, int i, tn_dtype absent)
{
    if (!given(c, i))
        return absent;
    const char *text = string(c, i, "");
    tn_dtype found = dtype_named(text);
    if (!found)
        refuse(c, "'%s' is no dtype", text);
    return found;
}

int integers(call *c, const value *v, long long *out, int capacity)
{
    value one;
    if (v->kind == ARRAY && tn_ndim(v->array) == 1) {
        if (tn_size(v->array) > capacity)
            refuse(c, "too many integers");
        int64_t buffer[MAX_ARGUMENTS];
        int n = (int)tn_size(v->array);
        if (n > MAX_ARGUMENTS || n > capacity ||
            tn_to_host(tn_cast(v->array, TN_INT64), buffer, sizeof buffer) != TN_OK) {
            mismatch(c, v, "integers");
            return 0;
        }
        for (int k = 0; k < n; k++)
            out[k] = buffer[k];
        return n;
    }
    if (v->kind != LIST) {
        if (!scalar_of(v, &one) || one.kind == FLOAT) {
            mismatch(c, v, "an integer or a list of integers");
            return 0;
        }
        out[0] = one.i;
        return 1;
    }
    if (v->list.count > capacity)
        refuse(c, "%d integers, expected %d at most", v->list.count, capacity);
    for (int k = 0; k < v->list.count && !c->refused; k++) {
        if (!scalar_of(&v->list.item[k], &one) || one.kind == FLOAT)
            mismatch(c, &v->list.item[k], "an integer");
        out[k] = one.i;
    }
    return c->refused ? 0 : v->list.count;
}

tn_axes axes(call *c, int i)
{
    tn_axes list = {0};
    if (!given(c, i))
        return list;
    long long read[TN_MAX_NDIM];
    list.count = integers(c, c->slot[i], read, TN_MAX_NDIM);
    for (int k = 0; k < list.count; k++)
        list.axis[k] = (int)read[k];
    return list;
}

tn_axes one_axis(call *c, int i)
{
    if (given(c, i) && c->slot[i]->kind == LIST)
        mismatch(c, c->slot[i], "one axis");
    return axes(c, i);
}

/* NumPy's bools are no extents, while Python's are. */
static bool holds_bools(const value *v)
{
    if (v->kind == ARRAY)
        return tn_dtype_of(v->array) == TN_BOOL;
    bool any = false;
    for (int k = 0; v->kind == LIST && k < v->list.count; k++)
        any |= holds_bools(&v->list.item[k]);
    return any;
}

tn_shape shape(call *c, int i)
{
    tn_shape result = {0};
    if (!given(c, i)) {
        if (c->slot[i] && numpy_1)
            return result;
        refuse(c, "a shape is missing");
        return result;
    }
    long long read[TN_MAX_NDIM];
    if (c->slot[i]->kind == BOOL || holds_bools(c->slot[i]))
        mismatch(c, c->slot[i], "a shape");
    result.ndim = integers(c, c->slot[i], read, TN_MAX_NDIM);
    for (int k = 0; k < result.ndim; k++)
        result.dim[k] = read[k];
    return result;
}

/* ---- arrays ---- */

/* What asarray needs to know of nested lists of numbers. */
typedef struct nest {
    tn_shape shape;
    kind kind;
    bool ragged, holds_arrays;
    bool beyond, within; /* integers beyond int64, and others */
} nest;

static void explore(const value *v, int depth, nest *n)
{
    if (v->kind != LIST) {
        if (depth != n->shape.ndim && !n->holds_arrays)
            n->ragged = true;
        if (v->kind == ARRAY)
            n->holds_arrays = true;
        else if (v->kind > COMPLEX || v->kind == NONE)
            n->ragged = true;
        else if (v->kind > n->kind)
            n->kind = v->kind;
        n->beyond |= v->kind == INT && v->digits;
        n->within |= v->kind <= INT && !v->digits;
        return;
    }
    if (depth >= TN_MAX_NDIM || (depth < n->shape.ndim && n->shape.dim[depth] != v->list.count)) {
        n->ragged = true;
        return;
    }
    for (int k = 0; k < v->list.count; k++)
        explore(&v->list.item[k], depth + 1, n);
}

static void fill(const value *v, kind as, char **at)
{
    if (v->kind == LIST) {
        for (int k = 0; k < v->list.count; k++)
            fill(&v->list.item[k], as, at);
    } else if (as == BOOL) {
        *(*at)++ = v->i != 0;
    } else if (as == INT) {
        int64_t whole = v->i;
        memcpy(*at, &whole, 8);
        *at += 8;
    } else {
        double parts[2] = {v->kind == FLOAT              ? v->f
                           : v->kind == INT && v->digits ? strtod(v->digits, NULL)
                           : v->kind == COMPLEX          ? v->complex_parts[0]
                                                         : (double)v->i,
                           v->kind == COMPLEX ? v->complex_parts[1] : 0};
        size_t bytes = as == COMPLEX ? 16 : 8;
        memcpy(*at, parts, bytes);
        *at += bytes;
    }
}

/* An integer beyond int64: of uint64 if it is one. */
static tn_array *beyond(call *c, const value *v)
{
    errno = 0;
    uint64_t whole = strtoull(v->digits, NULL, 10);
    if (errno || *v->digits == '-')
        refuse(c, "%s fits no integer dtype", v->digits);
    return tn_from_host(&whole, (tn_shape){0}, TN_UINT64);
}

static bool fill_beyond(const value *v, uint64_t **at)
{
    bool fits = true;
    for (int k = 0; k < (v->kind == LIST ? v->list.count : 0); k++)
        fits = fill_beyond(&v->list.item[k], at) && fits;
    if (v->kind == LIST)
        return fits;
    errno = 0;
    *(*at)++ = strtoull(v->digits, NULL, 10);
    return !errno && *v->digits != '-';
}

/* Integers beyond int64 alone are of uint64; with others NumPy makes floats of them. */
static tn_array *beyond_all(call *c, const value *v, const nest *n)
{
    size_t size = 1;
    for (int d = 0; d < n->shape.ndim; d++)
        size *= (size_t)n->shape.dim[d];
    char *data = case_memory(size * 8 + 1), *at = data;
    uint64_t *whole = (uint64_t *)data;
    if (n->within || !fill_beyond(v, &whole)) {
        fill(v, FLOAT, &at);
        return tn_from_host(data, n->shape, TN_FLOAT64);
    }
    (void)c;
    return tn_from_host(data, n->shape, TN_UINT64);
}

static tn_array *from_nest(call *c, const value *v)
{
    nest n = {.kind = NONE};
    for (const value *first = v; first->kind == LIST && n.shape.ndim < TN_MAX_NDIM;) {
        n.shape.dim[n.shape.ndim++] = first->list.count;
        if (first->list.count == 0)
            break;
        first = first->list.item;
    }
    explore(v, 0, &n);
    if (n.holds_arrays) {
        tn_array *part[MAX_ARGUMENTS];
        int count = arrays(c, v, part, MAX_ARGUMENTS);
        return count ? tn_stack(count, (const tn_array *const *)part, 0) : tn_zeros(TN_SHAPE(0));
    }
    if (n.ragged) {
        refuse(c, "a list is ragged or holds what is no number");
        return tn_zeros(TN_SHAPE(1));
    }
    if (n.beyond && n.kind == INT)
        return beyond_all(c, v, &n);
    static const char *const names[] = {[NONE] = "float64", [BOOL] = "bool", [INT] = "int64", [FLOAT] = "float64",
                                        [COMPLEX] = "complex128"};
    tn_dtype type = tn_dtype_parse(names[n.kind]);
    size_t size = 1;
    for (int d = 0; d < n.shape.ndim; d++)
        size *= (size_t)n.shape.dim[d];
    char *data = case_memory(size * 16 + 1), *at = data;
    fill(v, n.kind == NONE ? FLOAT : n.kind, &at);
    return tn_from_host(data, n.shape, type);
}

tn_array *array_of(call *c, const value *v)
{
    if (v && v->kind == ARRAY)
        return v->array;
    if (!v || v->kind == NONE || (v->kind > COMPLEX && v->kind != LIST)) {
        mismatch(c, v, "an array");
        return tn_zeros(TN_SHAPE(1));
    }
    return v->kind == INT && v->digits ? beyond(c, v) : from_nest(c, v);
}

tn_array *array(call *c, int i) { return array_of(c, c->slot[i]); }

tn_array *own_array(call *c, int i)
{
    if (c->slot[i] && (c->slot[i]->kind == LIST || c->slot[i]->kind <= COMPLEX))
        mismatch(c, c->slot[i], "an array");
    return array(c, i);
}

tn_array *operand(call *c, int i, int first, int last)
{
    if (numpy_1)
        return first_operand(c, i, first, last);
    bool strong = false;
    for (int k = first; k <= last; k++)
        strong |= c->slot[k] && (c->slot[k]->kind == ARRAY || c->slot[k]->kind == LIST);
    const value *v = c->slot[i];
    if (v && strong && v->kind == BOOL)
        return tn_weak_bool(v->i);
    if (v && strong && v->kind == INT && v->digits) {
        tn_dtype other = TN_BOOL;
        for (int k = first; k <= last; k++)
            if (c->slot[k] && c->slot[k]->kind == ARRAY)
                other = tn_dtype_of(c->slot[k]->array);
        errno = 0;
        (void)strtoull(v->digits, NULL, 10);
        if (other == TN_UINT64 && !errno)
            return beyond(c, v);
        if (tn_dtype_is_float(other) || tn_dtype_is_complex(other))
            return tn_weak_float(strtod(v->digits, NULL));
        static const char *const comparisons[] = {"less",          "less_equal", "greater",
                                                  "greater_equal", "equal",      "not_equal"};
        static const char *const of_floats[] = {"logaddexp", "logaddexp2", "hypot",     "heaviside", "arctan2",
                                                "atan2",     "copysign",   "nextafter", "divide",    "true_divide"};
        for (size_t k = 0; k < sizeof comparisons / sizeof *comparisons; k++) /* any integer compares with integers */
            if (!strcmp(c->row->name, comparisons[k]) && other != TN_BOOL)
                return tn_scalar(*v->digits == '-' ? -1e30 : 1e30, .dtype = TN_FLOAT64);
        for (size_t k = 0; k < sizeof of_floats / sizeof *of_floats; k++)
            if (!strcmp(c->row->name, of_floats[k]))
                return tn_weak_int(v->i);
        refuse(c, "%s does not fit %s", v->digits, tn_dtype_name(other));
    }
    if (v && strong && v->kind == INT)
        return tn_weak_int(v->i);
    if (v && strong && v->kind == FLOAT)
        return tn_weak_float(v->f);
    if (v && strong && v->kind == COMPLEX)
        return tn_weak_complex_parts(v->complex_parts[0], v->complex_parts[1]);
    return array_of(c, v);
}

int arrays(call *c, const value *v, tn_array **out, int capacity)
{
    if (v && v->kind == ARRAY && tn_ndim(v->array) > 0) {
        int count = (int)tn_dim(v->array, 0);
        if (count > capacity)
            refuse(c, "%d arrays, the tool takes %d", count, capacity);
        for (int k = 0; k < count && !c->refused; k++)
            out[k] = tn_index(v->array, k);
        return c->refused ? 0 : count;
    }
    if (!v || v->kind != LIST) {
        mismatch(c, v, "a list of arrays");
        return 0;
    }
    if (v->list.count > capacity)
        refuse(c, "%d arrays, the tool takes %d", v->list.count, capacity);
    for (int k = 0; k < v->list.count && !c->refused; k++)
        out[k] = array_of(c, &v->list.item[k]);
    return c->refused ? 0 : v->list.count;
}

tn_array *mask(call *c, int i)
{
    bool all = c->slot[i] && c->slot[i]->kind == BOOL && c->slot[i]->i;
    return given(c, i) && !all ? array(c, i) : NULL;
}

tn_array *assigned(call *c, const value *v, tn_dtype to)
{
    tn_array *x = array_of(c, v);
    bool ints = numpy_1 && v->kind == FLOAT && tn_dtype_is_integer(to) && fabs(v->f) < 0x1p63;
    return ints ? tn_cast(x, TN_INT64) : x;
}

void check_assigned(call *c, const value *v, tn_dtype to)
{
    bool whole = tn_dtype_is_integer(to);
    if (v->kind == LIST)
        for (int k = 0; k < v->list.count; k++)
            check_assigned(c, &v->list.item[k], to);
    if (v->kind == FLOAT && whole && !isfinite(v->f))
        refuse(c, "%g cannot be an integer", v->f);
    if (v->kind == COMPLEX && !tn_dtype_is_complex(to) && to != TN_BOOL)
        refuse(c, "a complex number cannot be %s", tn_dtype_name(to));
    if (v->kind == FLOAT && whole && (fabs(v->f) >= 0x1p64 || !numpy_1)) { /* made an int first */
        double least = tn_dtype_name(to)[0] == 'i' ? -ldexp(1, 8 * (int)tn_dtype_size(to) - 1) : 0,
               most = ldexp(1, 8 * (int)tn_dtype_size(to) - (least < 0));
        if (!(trunc(v->f) >= least && trunc(v->f) < most))
            refuse(c, "%g does not fit %s", v->f, tn_dtype_name(to));
    }
    if (v->kind != INT || !whole || (numpy_1 && !v->digits))
        return;
    int bits = 8 * (int)tn_dtype_size(to);
    bool is_signed = tn_dtype_name(to)[0] == 'i';
    long long most = is_signed || bits < 64 ? (long long)(UINT64_MAX >> (64 - bits + is_signed)) : INT64_MAX;
    errno = 0;
    if (v->digits)
        (void)strtoull(v->digits, NULL, 10);
    bool beyond_all = v->digits && (to != TN_UINT64 || *v->digits == '-' || errno);
    if (beyond_all || (!v->digits && (v->i > most || v->i < (is_signed ? -most - 1 : 0))))
        refuse(c, "%lld does not fit %s", v->i, tn_dtype_name(to));
}
