/* SPDX-License-Identifier: MIT */
/*
 * NumPy 1's answers, where they are not NumPy 2's. Tanso follows NumPy 2; a folder may come from NumPy 1, and does not
 * say so. A call that is none of NumPy 2's is made once more with `numpy_1` set: then the adapters write the casts down
 * that NumPy 1 made by itself. Likewise with `numpy_2_5`: since then eigenvalues are complex even if all are real, and
 * `where` refuses numbers beside arrays of integers that do not hold them.
 *
 * Most of these are its promotion of arrays with numbers (Python's, or arrays without axes), which counts by the least
 * dtype that holds the number's value unless the number is of a higher kind than the arrays (NEP 50 has that rule,
 * which it replaced).
 *
 * A generator may also write a tuple that is an index as a list of numbers, which is another index: `lists_are_tuples`,
 * tried last.
 */
#include "replay.h"

#include <math.h>
#include <stdlib.h>

bool numpy_1, numpy_2_5, lists_are_tuples;

void set_edition(int i)
{
    lists_are_tuples = i >= 3;
    numpy_1 = i == 1 || i == 4;
    numpy_2_5 = i == 2;
}

static bool is_unsigned(tn_dtype dtype) { return tn_dtype_is_integer(dtype) && tn_dtype_name(dtype)[0] == 'u'; }

/* bool, integers, and the rest. */
static int kind_of(tn_dtype dtype) { return dtype == TN_BOOL ? 0 : tn_dtype_is_integer(dtype) ? 1 : 2; }

/* The least dtype of an integer beside one of dtype `beside`: a number that both kinds hold is of that kind. */
static tn_dtype least_integer(bool negative, unsigned long long size, tn_dtype beside)
{
    static const tn_dtype with_sign[] = {TN_INT8, TN_INT16, TN_INT32, TN_INT64},
                          without[] = {TN_UINT8, TN_UINT16, TN_UINT32, TN_UINT64};
    int step = 0;
    while (step < 3 && (negative ? size > 1ull << ((8 << step) - 1) : size >> (8 << step)))
        step++;
    bool fits_signed = negative || size < 1ull << ((8 << step) - 1);
    return fits_signed && !is_unsigned(beside) ? with_sign[step] : negative ? with_sign[step] : without[step];
}

static tn_dtype least_float(double re, double im, bool complex)
{
    double size = fmax(fabs(re), fabs(im));
    bool finite = isfinite(size);
    if (complex)
        return finite && size > 3.4e38 ? TN_COMPLEX128 : TN_COMPLEX64;
    return !finite || size < 65000 ? TN_FLOAT16 : size < 3.4e38 ? TN_FLOAT32 : TN_FLOAT64;
}

static tn_dtype least(call *c, const value *v, tn_dtype beside)
{
    if (v->kind == BOOL)
        return TN_BOOL;
    if (v->kind == INT && v->digits)
        return least_integer(*v->digits == '-', strtoull(v->digits + (*v->digits == '-'), NULL, 10), beside);
    if (v->kind == INT)
        return least_integer(v->i < 0, v->i < 0 ? 0ull - (unsigned long long)v->i : (unsigned long long)v->i, beside);
    if (v->kind == FLOAT)
        return least_float(v->f, 0, false);
    if (v->kind == COMPLEX)
        return least_float(v->complex_parts[0], v->complex_parts[1], true);
    tn_array *x = array_of(c, v);
    tn_dtype of = tn_dtype_of(x);
    double parts[2] = {0};
    if (of == TN_BOOL || tn_item_parts(x, parts) != TN_OK)
        return of;
    if (kind_of(of) == 2)
        return least_float(parts[0], parts[1], tn_dtype_is_complex(of));
    long long whole = of == TN_UINT64 ? 0 : tn_item_int(x);
    unsigned long long size = of == TN_UINT64 ? (unsigned long long)parts[0]
                              : whole < 0     ? 0ull - (unsigned long long)whole
                                              : (unsigned long long)whole;
    return least_integer(whole < 0, size, beside);
}

static bool is_number(const value *v) { return v->kind <= COMPLEX || (v->kind == ARRAY && tn_ndim(v->array) == 0); }
static bool is_array(const value *v) { return v->kind == LIST || (v->kind == ARRAY && tn_ndim(v->array) > 0); }

tn_array *first_of(call *c, const value *own, const value *const *all, int count)
{
    tn_dtype common = TN_DTYPE_DEFAULT;
    int highest = -1;
    for (int k = 0; k < count && own; k++) {
        if (!all[k] || !is_array(all[k]))
            continue;
        tn_dtype of = tn_dtype_of(array_of(c, all[k]));
        common = common ? tn_dtype_promote(common, of) : of;
    }
    if (!own || !is_number(own) || own->kind == NONE || !common)
        return array_of(c, own);
    for (int k = 0; k < count; k++)
        if (all[k] && is_number(all[k]) && all[k]->kind != NONE) {
            int kind = kind_of(tn_dtype_of(array_of(c, all[k])));
            highest = kind > highest ? kind : highest;
        }
    if (highest > kind_of(common))
        return array_of(c, own);
    for (int k = 0; k < count; k++)
        if (all[k] && is_number(all[k]) && all[k]->kind != NONE)
            common = tn_dtype_promote(common, least(c, all[k], common));
    return tn_cast(array_of(c, own), common);
}

tn_array *first_operand(call *c, int i, int first, int last)
{
    return first_of(c, c->slot[i], c->slot + first, last - first + 1);
}

tn_array *first_inexact(tn_array *x)
{
    if (!numpy_1 || tn_is_error(x))
        return x;
    return tn_cast(x, tn_dtype_is_complex(tn_dtype_of(x)) ? TN_COMPLEX128 : TN_FLOAT64);
}
