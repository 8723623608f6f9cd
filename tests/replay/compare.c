/* SPDX-License-Identifier: MIT */
/* Comparing results with what NumPy returned: dtype, shape, values. */
#include "replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void give(call *c, tn_array *result)
{
    if (c->result_count < MAX_RESULTS)
        c->result[c->result_count++] = result;
    else
        refuse(c, "more than %d results", MAX_RESULTS);
}

void of_one(call *c, const row *r) { give(c, ((tn_array * (*)(const tn_array *)) r->function)(array(c, 0))); }

void of_two(call *c, const row *r)
{
    give(c, ((tn_array * (*)(const tn_array *, const tn_array *)) r->function)(array(c, 0), array(c, 1)));
}

void give_vectors(call *c, tn_array *result, int rows)
{
    c->vectors[c->result_count].columns = true;
    c->vectors[c->result_count].rows = rows;
    give(c, result);
}

void give_bool(call *c, bool result) { give(c, tn_scalar(result, .dtype = TN_BOOL)); }
void give_integer(call *c, long long result)
{
    int64_t whole = result;
    give(c, tn_from_host(&whole, (tn_shape){0}, TN_INT64));
}
void give_number(call *c, double result) { give(c, tn_scalar(result, .dtype = TN_FLOAT64)); }
/* As an array of it that holds nothing. */
void give_dtype(call *c, tn_dtype result) { give(c, tn_zeros(TN_SHAPE(0), .dtype = result)); }

static const char *TN_PRINTF(1, 2) message(const char *format, ...)
{
    char *text = case_memory(1024);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, 1024, format, arguments);
    va_end(arguments);
    return text;
}

static const char *shape_text(const tn_array *x)
{
    char *text = case_memory(256);
    size_t at = 0;
    for (int d = 0; d < tn_ndim(x); d++)
        at += (size_t)snprintf(text + at, 256 - at, d ? ",%lld" : "%lld", (long long)tn_dim(x, d));
    return text;
}

/* The elements in C order: `parts` numbers each, as long doubles, which hold every element exactly. */
static long double *elements(tn_array *x, int *parts)
{
    tn_dtype type = tn_dtype_of(x);
    int64_t count = tn_size(x);
    const char *name = tn_dtype_name(type);
    *parts = !strncmp(name, "complex", 7) ? 2 : 1;
    long double *out = case_memory(sizeof(long double) * (size_t)(count * *parts + 1));
    if (type == TN_FLOAT16 || type == TN_BFLOAT16) {
        x = tn_cast(x, TN_FLOAT32);
        type = TN_FLOAT32;
    }
    size_t size = tn_dtype_size(type), bytes = size * (size_t)count;
    char *data = case_memory(bytes + 1);
    if (tn_to_host(x, data, bytes) != TN_OK)
        return NULL;
    for (int64_t i = 0; i < count * *parts; i++) {
        const char *at = data + (size_t)i * (size / (size_t)*parts);
        if (*parts == 2)
            out[i] = size == 16 ? (long double)*(const double *)at : (long double)*(const float *)at;
        else if (tn_dtype_is_float(type))
            out[i] = size == 8 ? (long double)*(const double *)at : (long double)*(const float *)at;
        else if (name[0] == 'i')
            out[i] = size == 8   ? *(const int64_t *)at
                     : size == 4 ? *(const int32_t *)at
                     : size == 2 ? *(const int16_t *)at
                                 : *(const int8_t *)at;
        else
            out[i] = size == 8   ? *(const uint64_t *)at
                     : size == 4 ? *(const uint32_t *)at
                     : size == 2 ? *(const uint16_t *)at
                                 : *(const uint8_t *)at;
    }
    return out;
}

static bool same_part(long double got, long double expected, long double bound)
{
    if (isnan(expected) || isnan(got))
        return isnan(expected) && isnan(got);
    if (isinf(expected) || isinf(got))
        return got == expected;
    return fabsl(got - expected) <= bound;
}

/* A complex number with a NaN in it is NaN, as numpy.isnan and numpy.testing have it: what its other part is, compilers
 * differ about. */
static bool same_element(const long double *got, const long double *expected, int parts, double rtol, double atol)
{
    if (parts == 2 && (isnan(expected[0]) || isnan(expected[1])))
        return isnan(got[0]) || isnan(got[1]);
    long double size = parts == 1 ? fabsl(expected[0]) : hypotl(expected[0], expected[1]);
    long double bound = atol + rtol * (isfinite(size) ? size : 0);
    if (!same_part(got[0], expected[0], bound))
        return false;
    return parts == 1 || same_part(got[1], expected[1], bound);
}

static const char *number_text(const long double *x, int parts)
{
    return parts == 1 ? message("%.17Lg", x[0]) : message("%.17Lg%+.17Lgj", x[0], x[1]);
}

/* `any_dtype`: the expected value is a Python scalar, of which the kind counts alone. */
static const char *compare_one(tn_array *result, tn_array *expected, bool any_dtype, double rtol, double atol)
{
    tn_dtype got = tn_dtype_of(result), want = tn_dtype_of(expected);
    bool same =
        got == want || (any_dtype && tn_dtype_is_float(got) == tn_dtype_is_float(want) &&
                        tn_dtype_is_complex(got) == tn_dtype_is_complex(want) && (got == TN_BOOL) == (want == TN_BOOL));
    if (!same)
        return message("dtype %s, expected %s", tn_dtype_name(got), tn_dtype_name(want));
    bool same_shape = tn_ndim(result) == tn_ndim(expected);
    for (int d = 0; same_shape && d < tn_ndim(expected); d++)
        same_shape = tn_dim(result, d) == tn_dim(expected, d);
    if (!same_shape)
        return message("shape (%s), expected (%s)", shape_text(result), shape_text(expected));
    int parts, expected_parts;
    long double *a = elements(result, &parts), *b = elements(expected, &expected_parts);
    if (!a || !b)
        return message("%s", tn_error());
    int64_t wrong = 0, first = -1, size = tn_size(expected);
    for (int64_t i = 0; i < size; i++)
        if (!same_element(a + i * parts, b + i * parts, parts, rtol, atol)) {
            first = wrong++ ? first : i;
        }
    if (!wrong)
        return NULL;
    return message("%lld of %lld elements differ, first %lld: %s, expected %s", (long long)wrong, (long long)size,
                   (long long)first, number_text(a + first * parts, parts), number_text(b + first * parts, parts));
}

/* A list of numbers, or of such lists. */
static bool is_numbers(const value *v)
{
    bool numbers = v->kind == LIST;
    for (int i = 0; numbers && i < v->list.count; i++)
        numbers = v->list.item[i].kind <= COMPLEX ? v->list.item[i].kind != NONE : is_numbers(&v->list.item[i]);
    return numbers;
}

/* What NumPy returned as a flat list. */
static int flatten(call *c, const value *v, const value **out, int count)
{
    if (v->kind != LIST) {
        if (count < MAX_RESULTS)
            out[count] = v;
        return count + 1;
    }
    bool numbers = v->list.count > 0;
    for (int i = 0; i < v->list.count; i++)
        numbers &= v->list.item[i].kind != ARRAY && v->list.item[i].kind != LIST;
    for (int i = 0; i < v->list.count; i++)
        count = flatten(c, &v->list.item[i], out, count);
    return count;
}

static bool same_extents(const tn_array *a, const tn_array *b)
{
    bool same = tn_ndim(a) == tn_ndim(b);
    for (int d = 0; same && d < tn_ndim(a); d++)
        same = tn_dim(a, d) == tn_dim(b, d);
    return same;
}

/* Brings eigenvalues, and the vectors that belong to them, to the order of NumPy's: LAPACK's is none, and rounding
 * changes it. To each of NumPy's goes the nearest of those left. */
static void reorder(call *c, const tn_array *want)
{
    tn_array *got = c->result[0];
    if (tn_is_error(got) || !same_extents(got, want) || tn_ndim(got) == 0 || tn_size(got) == 0)
        return;
    int parts, want_parts;
    long double *a = elements(got, &parts), *b = elements((tn_array *)want, &want_parts);
    int64_t size = tn_size(got), n = tn_dim(got, -1), *from = case_memory(sizeof *from * (size_t)size);
    bool *taken = case_memory((size_t)size);
    if (!a || !b || parts != want_parts)
        return;
    for (int64_t i = 0; i < size; i++) {
        int64_t first = i - i % n, nearest = -1;
        long double least = INFINITY;
        for (int64_t k = first; k < first + n; k++) {
            long double apart =
                parts == 2 ? hypotl(a[2 * k] - b[2 * i], a[2 * k + 1] - b[2 * i + 1]) : fabsl(a[k] - b[i]);
            if (!taken[k] && (nearest < 0 || apart < least))
                nearest = k, least = apart;
        }
        taken[nearest] = true;
        from[i] = nearest - first;
    }
    tn_array *order = tn_reshape(tn_from_host(from, TN_SHAPE(size), TN_INT64), tn_shape_of(got));
    c->result[0] = tn_take_along_axis(got, order, -1);
    if (c->result_count > 1)
        c->result[1] = tn_take_along_axis(c->result[1], tn_expand_dims(order, -2), -1);
}

/* Multiplies result i's columns by what makes them NumPy's, if they differ by no more than that, and the rows tied to
 * them. */
static void align(call *c, int i, const tn_array *want)
{
    tn_array *got = c->result[i];
    if (!c->vectors[i].columns || tn_is_error(got) || tn_ndim(got) < 2 || tn_size(got) == 0 || !same_extents(got, want))
        return;
    tn_array *along = tn_expand_dims(tn_vecdot(got, want, -2), -2), *size = tn_abs(along);
    tn_array *factor = tn_where(tn_greater(size, 0), tn_divide(along, size), 1);
    c->result[i] = tn_multiply(got, factor);
    int rows = c->vectors[i].rows;
    if (rows < 0 || rows >= c->result_count)
        return;
    tn_array *tied = c->result[rows];
    if (tn_is_error(tied) || tn_ndim(tied) != tn_ndim(got))
        return;
    int64_t columns = tn_dim(got, -1), count = tn_dim(tied, -2), both = columns < count ? columns : count;
    factor = tn_conjugate(tn_swapaxes(tn_slice_axis(factor, -1, 0, both, 1), -1, -2));
    tn_array *part[] = {tn_multiply(factor, tn_slice_axis(tied, -2, 0, both, 1)),
                        tn_slice_axis(tied, -2, both, count, 1)};
    c->result[rows] = tn_concatenate(2, (const tn_array *const *)part, -2);
}

/* y with what lies between the places in ascending order. */
static tn_array *settled(tn_array *y, int axis, const int64_t *kth, int count)
{
    int64_t extent = tn_dim(y, axis), begin = 0;
    for (int done = 0; done <= count; done++) {
        int64_t end = extent;
        for (int i = 0; i < count; i++) {
            int64_t place = kth[i] < 0 ? kth[i] + extent : kth[i];
            if (place >= begin && place < end)
                end = place;
        }
        if (end - begin > 1) {
            tn_array *part[] = {tn_slice_axis(y, axis, 0, begin, 1),
                                tn_sort(tn_slice_axis(y, axis, begin, end, 1), .axis = TN_AXES(axis)),
                                tn_slice_axis(y, axis, end, extent, 1)};
            y = tn_concatenate(3, (const tn_array *const *)part, axis);
        }
        if (end == extent)
            break;
        begin = end + 1;
    }
    return y;
}

/* Where ties leave the order of the first result open: what it and NumPy's mean, if it is such an order at all. */
static void by_order(call *c, tn_array **got, tn_array **want)
{
    int axis = c->order.axis;
    tn_array *of = c->order.of ? tn_to(c->order.of, tn_cpu()) : NULL, *y = *got;
    if (!c->order.open || !same_extents(y, *want) || tn_dtype_of(y) != tn_dtype_of(*want) || tn_ndim(y) == 0)
        return;
    if (of) {
        tn_shape row = {.ndim = tn_ndim(y)};
        for (int d = 0; d < row.ndim; d++)
            row.dim[d] = 1;
        row.dim[axis < 0 ? axis + row.ndim : axis] = tn_dim(y, axis);
        tn_array *places =
            tn_reshape(tn_arange(0, (double)tn_dim(y, axis), 1, .dtype = TN_INT64, .device = tn_cpu()), row);
        if (!same_extents(of, y))
            return;
        const tn_array *orders[] = {y, *want};
        for (int i = 0; i < 2; i++)
            if (!tn_item(tn_all(tn_equal(tn_sort(orders[i], .axis = TN_AXES(axis)), places))))
                return;
        *got = tn_take_along_axis(of, y, axis);
        *want = tn_take_along_axis(of, *want, axis);
    }
    if (c->order.count == 0)
        return;
    *got = settled(*got, axis, c->order.kth, c->order.count);
    *want = settled(*want, axis, c->order.kth, c->order.count);
}

/* One array may stand for a list of equal arrays that NumPy returned: the expected results then, their number. */
static int spread(call *c, const value **expected, int count)
{
    int more = c->result_count - count;
    for (int i = 0; i < count && i < c->result_count; i++) {
        tn_array *list = expected[i]->kind == ARRAY ? expected[i]->array : NULL;
        if (!list || tn_ndim(list) != tn_ndim(c->result[i]) + 1 || tn_dim(list, 0) != more + 1 ||
            c->result_count > MAX_RESULTS)
            continue;
        memmove(expected + i + more + 1, expected + i + 1, sizeof *expected * (size_t)(count - i - 1));
        for (int k = 0; k <= more; k++) {
            value *one = case_memory(sizeof *one);
            *one = (value){.kind = ARRAY, .array = tn_index(list, k)};
            expected[i + k] = one;
        }
        return count + more;
    }
    return count;
}

/* Is result i one that need only decompose the operand, and does it, as NumPy's does? */
static bool decomposes(call *c, int i, const value *const *expected, int count)
{
    tn_array *want[MAX_RESULTS];
    if (!c->holds || !(c->open >> i & 1))
        return false;
    for (int k = 0; k < count; k++) {
        want[k] = array_of(c, expected[k]);
        if (!same_extents(c->result[k], want[k]) || tn_dtype_of(c->result[k]) != tn_dtype_of(want[k]))
            return false;
    }
    bool holds = c->holds(c, want) && c->holds(c, c->result);
    tn_clear_error();
    return holds;
}

/* Is v x's elements as nested lists, from axis d on? */
static bool nested_as(const value *v, const tn_array *x, int d)
{
    if (d == tn_ndim(x))
        return v->kind <= COMPLEX && v->kind != NONE;
    bool fits = v->kind == LIST && v->list.count == tn_dim(x, d);
    for (int i = 0; fits && i < v->list.count; i++)
        fits = nested_as(&v->list.item[i], x, d + 1);
    return fits;
}

static const char *compare_here(call *c, const json_t *out, const char *folder, double rtol, double atol)
{
    const value *expected[MAX_RESULTS];
    const value *all = value_read(c, out, folder, tn_cpu());
    if (!all)
        return c->message;
    /* as many as there are, some written as lists? */
    bool each = all->kind == LIST && all->list.count == c->result_count;
    for (int i = 0; each && i < c->result_count; i++)
        each = all->list.item[i].kind != LIST || is_numbers(&all->list.item[i]);
    int count = each ? c->result_count : flatten(c, all, expected, 0);
    for (int i = 0; each && i < count; i++)
        expected[i] = &all->list.item[i];
    if (!strcmp(c->row->name, "tolist") && c->result_count == 1 && tn_ndim(c->result[0]) > 0 &&
        nested_as(all, c->result[0], 0))
        expected[0] = all, count = 1;
    bool listed = all->kind == LIST && (count == 0 || expected[0] != all) && c->result_count == 1 &&
                  count <= MAX_RESULTS && tn_ndim(c->result[0]) > 0 && tn_dim(c->result[0], 0) == count;
    if (listed &&
        (count > 1 || (expected[0]->kind == ARRAY && tn_ndim(expected[0]->array) == tn_ndim(c->result[0]) - 1))) {
        tn_array *list = c->result[0]; /* a list of numbers, one by one */
        for (c->result_count = 0; c->result_count < count; c->result_count++)
            c->result[c->result_count] = tn_index(list, c->result_count);
    }
    count = spread(c, expected, count);
    if (count != c->result_count)
        return message("%d results, expected %d", c->result_count, count);
    for (int i = 0; i < count; i++) {
        if (expected[i]->kind == DTYPE || expected[i]->kind == STRING) {
            if (tn_dtype_of(c->result[i]) != dtype_named(expected[i]->text))
                return message("dtype %s, expected %s", tn_dtype_name(tn_dtype_of(c->result[i])), expected[i]->text);
            continue;
        }
        tn_array *want = array_of(c, expected[i]);
        if (c->refused)
            return c->message;
        if (c->spectrum && i == 0)
            reorder(c, want);
        align(c, i, want);
        if (c->unordered)
            want = tn_sort(want);
        tn_array *result = c->result[i];
        if (tn_is_error(result))
            return message("%s", tn_message_of(result));
        if (i == 0)
            by_order(c, &result, &want);
        const char *difference = compare_one(result, want, expected[i]->kind != ARRAY, rtol, atol);
        if (difference && decomposes(c, i, expected, count))
            difference = NULL;
        if (difference)
            return count == 1 ? difference : message("result %d: %s", i, difference);
    }
    return NULL;
}

/* On the CPU, wherever the call was made. */
const char *compare(call *c, const json_t *out, const char *folder, double rtol, double atol)
{
    const char *difference = NULL;
    TN_ON_DEVICE(tn_cpu())
    difference = compare_here(c, out, folder, rtol, atol);
    return difference;
}
