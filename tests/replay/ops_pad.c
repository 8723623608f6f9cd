/* SPDX-License-Identifier: MIT */
/* Replaying pad. */
#include "replay.h"

#include <string.h>

#define EACH(i, n) (int i = 0; i < (n); i++)

/* NumPy's forms of a pair an axis: n, (n,), (before, after), ((before, after),), ((before, after), ...). */
static bool pairs(call *c, int i, int ndim, double (*out)[2])
{
    if (!given(c, i))
        return false;
    tn_array *p = tn_cast(array(c, i), TN_FLOAT64);
    if (tn_ndim(p) <= 1 && tn_size(p) == 1)
        p = tn_broadcast_to(tn_reshape(p, (tn_shape){0}), TN_SHAPE(ndim, 2));
    p = tn_broadcast_to(p, TN_SHAPE(ndim, 2));
    if (tn_is_error(p) || tn_to_host(p, out, sizeof(double) * 2 * (size_t)ndim) != TN_OK)
        refuse(c, "%s", tn_error());
    return true;
}

/* Exactly, in their own dtype. NumPy assigns Python's numbers, but one to unsigned integers, which wraps around. */
static tn_array *constants(call *c, int i, const tn_array *x)
{
    tn_array *p = array(c, i);
    bool one = tn_size(p) == 1, ramp = !strcmp(string(c, 2, ""), "linear_ramp");
    tn_dtype to = tn_dtype_of(x);
    bool wraps = one && tn_dtype_is_integer(to) && *tn_dtype_name(to) == 'u';
    if (!ramp && one && tn_dtype_is_complex(tn_dtype_of(p)) && !tn_dtype_is_complex(to))
        p = tn_real(p);
    else if (!ramp && !wraps && c->slot[i]->kind == ARRAY && tn_dtype_of(p) == TN_INT64)
        for (int64_t k = 0; k < tn_size(p); k++)
            check_assigned(c, &(value){.kind = INT, .i = tn_item_int(tn_index(tn_ravel(p), k))}, to);
    else if (!ramp && !wraps)
        check_assigned(c, c->slot[i], to);
    return one ? tn_reshape(p, (tn_shape){0}) : p;
}

static void pad(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    int ndim = tn_ndim(x);
    double width[TN_MAX_NDIM][2] = {0}, length[TN_MAX_NDIM][2];
    int64_t whole[TN_MAX_NDIM][2], lengths[TN_MAX_NDIM][2];
    tn_pad_opts o = {.mode = string(c, 2, "constant"), .odd = !strcmp(string(c, 5, "even"), "odd")};
    static const char *const belongs[][2] = {{NULL, "constant"}, {NULL, "linear_ramp"}, {"reflect", "symmetric"}};
    for EACH(k, 3)
    if (given(c, 3 + k) && strcmp(o.mode, belongs[k][1]) && !(belongs[k][0] && !strcmp(o.mode, belongs[k][0])))
        refuse(c, "an option of another mode");
    if (given(c, 6) && strcmp(o.mode, "maximum") && strcmp(o.mode, "minimum") && strcmp(o.mode, "mean") &&
        strcmp(o.mode, "median"))
        refuse(c, "stat_length");
    if (tn_dtype_is_float(tn_dtype_of(array(c, 1))))
        refuse(c, "widths must be integers");
    pairs(c, 1, ndim, width);
    if (tn_size(array(c, 1)) && tn_item(tn_any(tn_less(array(c, 1), 0))))
        refuse(c, "negative widths");
    o.constants = given(c, 3) ? constants(c, 3, x) : given(c, 4) ? constants(c, 4, x) : NULL;
    if (pairs(c, 6, ndim, length))
        o.stat_length = (const int64_t(*)[2])lengths;
    for EACH(d, ndim)
        for EACH(s, 2) {
            whole[d][s] = (int64_t)width[d][s];
            lengths[d][s] = o.stat_length ? (int64_t)length[d][s] : 0;
        }
    if (!c->refused)
        give(c, tn_pad_with(x, (const int64_t(*)[2])whole, &o));
}

static const row rows[] = {
    {"pad", "array pad_width mode constant_values end_values reflect_type stat_length", pad},
};
REPLAY_ROWS(rows)
