/* SPDX-License-Identifier: MIT */
/* Convolution and correlation: sums of products at all shifts of two vectors. */
#include "numpy/compose.h"

#include <string.h>

/* Of x[i + k] y[k], i from 1 - m to n - 1, where y has m elements and x as many or more. */

enum { GROUP = 16, LONG_WORK = 1 << 22, LONG = 256 };

static tn_array *stretch(const tn_array *x, int64_t start, int64_t count)
{
    return tn__cut(x, 0, start, count);
}

/* Of `count` shifts from the first one at which y lies within x: stretches of x times elements of y, a group of them in
 * a pass. */
static tn_array *within(const tn_array *x, const tn_array *y, int64_t count)
{
    int64_t m = tn_size(y);
    tn_array *sums = NULL;
    for (int64_t first = 0; first < m; first += GROUP) {
        tn_array *term[GROUP];
        int terms = m - first < GROUP ? (int)(m - first) : GROUP;
        for (int k = 0; k < terms; k++)
            term[k] = tn_multiply(stretch(x, first + k, count), stretch(y, first + k, 1));
        for (int half = 1; half < terms; half *= 2) /* in pairs, whose roundings add up least */
            for (int k = 0; k + half < terms; k += 2 * half)
                term[k] = tn_add(term[k], term[k + half]);
        sums = sums ? tn_add(sums, term[0]) : term[0];
        if (m > GROUP && tn_eval(sums) != TN_OK)
            return tn__failed_array();
    }
    return sums;
}

/* Of `count` shifts from number `first` on: windows of x with zeros at its ends, summed as they are gathered. A product
 * would have all of them in memory at once. */
static tn_array *gathered(const tn_array *whole, const tn_array *y, int64_t first, int64_t count)
{
    int64_t m = tn_size(y), begin = first > m - 1 ? first - (m - 1) : 0;
    int64_t end = first + count < tn_size(whole) ? first + count : tn_size(whole), n = end - begin;
    const tn_array *x = n < tn_size(whole) ? stretch(whole, begin, n) : whole; /* all that they reach */
    first -= begin;
    const int64_t width[1][2] = {{m - 1, m - 1}};
    tn_array *padded = tn_pad_with(x, width, NULL);
    tn_array *each = tn__count_up(x, count),
             *start = tn_expand_dims(first ? tn_add(each, tn_weak_int(first)) : each, 1);
    tn_array *rows = tn_broadcast_to(padded, TN_SHAPE(count, tn_size(padded)));
    tn_array *place = tn_add(start, tn__count_up(x, m)), *windows = tn_take_along_axis(rows, place, 1);
    tn_dtype dtype = tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(y));
    const tn_reduce_opts along = {.axis = {1, {-1}}, .dtype = dtype};
    if (dtype == TN_BOOL)
        return tn_matmul(windows, y);
    tn_array *terms = tn_multiply(windows, y);
    if (tn__dtype_inexact(dtype)) { /* what lies beyond the ends counts for nothing, not 0 times infinity */
        tn_array *inside =
            tn_logical_and(tn_greater_equal(place, tn_weak_int(m - 1)), tn_less(place, tn_weak_int(m - 1 + n)));
        terms = tn_where(inside, terms, tn_weak_int(0));
    }
    return tn_sum_with(terms, &along);
}

/* Shifts first ... first + count - 1, numbered from 0. */
static tn_array *shifted_sums(const tn_array *x, const tn_array *y, int64_t first, int64_t count)
{
    int64_t n = tn_size(x), m = tn_size(y), whole = n - m + 1, begin = first > m - 1 ? first : m - 1;
    int64_t end = first + count < n ? first + count : n, inner = end - begin;
    tn_dtype dtype = tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(y));
    bool rounds_late = dtype == TN_FLOAT16 || dtype == TN_BFLOAT16; /* sums do, additions one by one do not */
    if (dtype == TN_BOOL || rounds_late || inner < LONG || (m > GROUP && (double)inner * (double)m < LONG_WORK))
        return gathered(x, y, first, count);
    tn_array *part[3];
    int parts = 0;
    if (first < begin)
        part[parts++] = gathered(x, y, first, begin - first);
    part[parts++] = within(inner == whole ? x : stretch(x, begin - (m - 1), inner + m - 1), y, inner);
    if (end < first + count)
        part[parts++] = gathered(x, y, end, first + count - end);
    return parts == 1 ? part[0] : tn_concatenate(parts, (const tn_array *const *)part, 0);
}

static tn_array *convolve(const char *operation, const tn_array *a, const tn_array *b, const char *mode, bool reversed)
{
    if (tn_is_error(a) || tn_is_error(b))
        return tn__again(tn_is_error(a) ? a : b);
    int64_t n = tn_size(a), m = tn_size(b);
    if (tn_ndim(a) > 1 || tn_ndim(b) > 1 || n == 0 || m == 0)
        return tn__refused(TN_ERR_SHAPE, operation, "expected two vectors with elements");
    mode = mode ? mode : reversed ? "full" : "valid";
    bool full = strcmp(mode, "full") == 0, same = strcmp(mode, "same") == 0;
    if (!full && !same && strcmp(mode, "valid") != 0)
        return tn__refused(TN_ERR_NAME, operation, "no mode '%s'; there are full, same and valid", mode);
    tn_array *x = tn_ravel(a), *y = tn_ravel(b);
    y = reversed ? tn_flip(y, (tn_axes){0}) : tn_conjugate(y); /* now: sums of x[i + k] y[i] */
    int64_t longer = n > m ? n : m, shorter = n > m ? m : n, shifts = n + m - 1;
    int64_t count = full ? shifts : same ? longer : longer - shorter + 1;
    int64_t first = full ? 0 : same ? (shorter - 1) / 2 : shorter - 1;
    if (same && !reversed && n < m)
        first = shifts - longer - first; /* NumPy swaps the operands, and turns the result */
    if (n >= m)
        return shifted_sums(x, y, first, count);
    return tn_flip(shifted_sums(y, x, shifts - first - count, count), (tn_axes){0}); /* the other way round */
}

tn_array *tn_convolve(const tn_array *a, const tn_array *b, const char *mode)
{
    TN__COMPOSE(convolve("convolve", a, b, mode, true));
}

tn_array *tn_correlate(const tn_array *a, const tn_array *b, const char *mode)
{
    TN__COMPOSE(convolve("correlate", a, b, mode, false));
}
