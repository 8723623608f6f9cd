/* SPDX-License-Identifier: MIT */
/* Replaying polynomials, windows, phases, bits, and histograms of points. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* ---- polynomials ---- */

static void roots(call *c, const row *r)
{
    (void)r;
    if (c->slot[0] && c->slot[0]->kind <= COMPLEX)
        refuse(c, "coefficients are expected");
    give(c, tn_roots(array(c, 0)));
}

static void polydiv(call *c, const row *r)
{
    (void)r;
    tn_array *quotient, *remainder;
    tn_polydiv(array(c, 0), array(c, 1), &quotient, &remainder);
    give(c, quotient);
    give(c, remainder);
}

static void polyder(call *c, const row *r)
{
    int m = (int)integer(c, 1, 1);
    give(c, r->number ? tn_polyint(array(c, 0), m, given(c, 2) ? array(c, 2) : NULL) : tn_polyder(array(c, 0), m));
}

/* x y deg rcond full w cov */
static void polyfit(call *c, const row *r)
{
    (void)r;
    tn_array *covariance = NULL, *residuals, *rank, *singular, *x = array(c, 0);
    bool full = boolean(c, 4, false), text = given(c, 6) && c->slot[6]->kind == STRING;
    bool wanted = !full && given(c, 6) && (text || boolean(c, 6, false));
    tn_polyfit_opts o = {.weights = given(c, 5) ? array(c, 5) : NULL,
                         .rcond = number(c, 3, 0),
                         .unscaled = text && !strcmp(c->slot[6]->text, "unscaled"),
                         .covariance = wanted ? &covariance : NULL,
                         .residuals = &residuals,
                         .rank = &rank,
                         .singular = &singular};
    give(c, tn_polyfit_with(x, array(c, 1), (int)integer(c, 2, 0), &o));
    if (wanted)
        give(c, covariance);
    if (!full || tn_is_error(c->result[0]))
        return;
    give(c, residuals);
    give(c, rank);
    give(c, singular);
    give_number(c, given(c, 3) ? number(c, 3, 0)
                               : (double)tn_size(x) * (tn_dtype_of(x) == TN_FLOAT32 ? 0x1p-23 : 0x1p-52));
}

/* ---- windows, phases, bits ---- */

static void window(call *c, const row *r)
{
    const tn_create_opts o = {.dtype = TN_FLOAT64};
    double n = number(c, 0, 0);
    if (n != floor(n))
        refuse(c, "a window of %g elements", n);
    if (c->refused)
        return;
    if (r->number)
        give(c, tn_kaiser_with((int64_t)n, number(c, 1, 0), &o));
    else
        give(c, ((tn_array * (*)(int64_t, const tn_create_opts *)) r->function)((int64_t)n, &o));
}

/* p discont axis period */
static void unwrap(call *c, const row *r)
{
    (void)r;
    const value *v = c->slot[3];
    tn_array *period = !given(c, 3)       ? NULL
                       : v->kind == INT   ? tn_weak_int(v->i)
                       : v->kind == FLOAT ? tn_weak_float(v->f)
                                          : array(c, 3);
    give(c, tn_unwrap(array(c, 0), period, number(c, 1, 0), (int)integer(c, 2, -1)));
}

static bool is_little(call *c, int i)
{
    const char *order = string(c, i, "big");
    if (strcmp(order, "big") && strcmp(order, "little"))
        refuse(c, "bitorder '%s'", order);
    return order[0] == 'l';
}

static void packbits(call *c, const row *r)
{
    if (r->number)
        give(c, tn_unpackbits(array(c, 0), axes(c, 1), integer(c, 2, TN_NONE), is_little(c, 3)));
    else
        give(c, tn_packbits(array(c, 0), axes(c, 1), is_little(c, 2)));
}

/* ---- histograms of points ---- */

/* bins range density weights, from slot `at` on; a list of as many as dimensions holds one of each. */
static void histogram(call *c, tn_array *points, int at)
{
    tn_array *edges[TN_MAX_NDIM], *own[TN_MAX_NDIM] = {0};
    int64_t bins[TN_MAX_NDIM];
    double limits[TN_MAX_NDIM][2];
    int ndim = tn_ndim(points) == 2 ? (int)tn_dim(points, 1) : 0;
    if (ndim < 1 || ndim > TN_MAX_NDIM)
        refuse(c, "expected points");
    const value *v = given(c, at) ? c->slot[at] : NULL, *range = given(c, at + 1) ? c->slot[at + 1] : NULL;
    bool sequence = v && (v->kind == LIST || (v->kind == ARRAY && tn_ndim(v->array) > 0));
    if (v && v->kind == LIST && v->list.count != ndim)
        refuse(c, "%d numbers of bins for %d dimensions", v->list.count, ndim);
    for EACH(d, c->refused ? 0 : ndim) {
        const value *one = sequence && v->kind == LIST ? &v->list.item[d] : NULL;
        bool whole = one && one->kind <= INT;
        bins[d] = !v ? 10 : whole ? one->i : !sequence ? integer(c, at, 10) : 1;
        own[d] = !sequence || whole ? NULL : one ? array_of(c, one) : tn_index(v->array, d);
        if (own[d] && tn_ndim(own[d]) == 0) {
            bins[d] = tn_item_int(own[d]);
            own[d] = NULL;
        }
        limits[d][0] = NAN;
        if (!range)
            continue;
        if (range->kind != LIST || range->list.count != ndim) {
            refuse(c, "expected limits a dimension");
            return;
        }
        if (range->list.item[d].kind == NONE)
            continue;
        tn_array *pair = tn_cast(array_of(c, &range->list.item[d]), TN_FLOAT64);
        if (tn_size(pair) != 2 || tn_to_host(pair, limits[d], sizeof limits[d]) != TN_OK)
            refuse(c, "expected two limits");
    }
    if (c->refused)
        return;
    const tn_histogramdd_opts o = {.bins = bins,
                                   .edges = (const tn_array *const *)own,
                                   .limits = range ? (const double(*)[2])limits : NULL,
                                   .density = boolean(c, at + 2, false),
                                   .weights = given(c, at + 3) ? array(c, at + 3) : NULL};
    give(c, tn_histogramdd_with(points, edges, &o));
    for EACH(d, tn_is_error(c->result[0]) ? 0 : ndim) give(c, edges[d]);
}

/* A list of vectors of coordinates, or an array of points. */
static void histogramdd(call *c, const row *r)
{
    (void)r;
    tn_array *x = numpy_1 ? first_inexact(array(c, 0)) : array(c, 0); /* its limits were of float64 */
    bool vectors = c->slot[0] && c->slot[0]->kind == LIST;
    if (vectors || tn_ndim(x) == 1)
        x = tn_transpose(tn_atleast_2d(x), (tn_axes){0});
    histogram(c, x, 1);
}

static void histogram2d(call *c, const row *r)
{
    (void)r;
    tn_array *both[] = {numpy_1 ? first_inexact(array(c, 0)) : array(c, 0),
                        numpy_1 ? first_inexact(array(c, 1)) : array(c, 1)};
    const value *v = given(c, 2) ? c->slot[2] : NULL;
    int count = v && v->kind == LIST                              ? v->list.count
                : v && v->kind == ARRAY && tn_ndim(v->array) == 1 ? (int)tn_size(v->array)
                                                                  : 0;
    value pair[2], list = {.kind = LIST, .list = {2, pair}};
    if (count > 2 || count == 1) { /* edges of both */
        pair[0] = pair[1] = *v;
        c->slot[2] = &list;
    }
    if (tn_size(both[0]) != tn_size(both[1]))
        refuse(c, "x and y must have the same length");
    if (!c->refused)
        histogram(c, tn_stack(2, (const tn_array *const *)both, 1), 2);
}

/* NumPy 1 adds one coefficient after another, as numbers. */
static void polyval(call *c, const row *r)
{
    (void)r;
    tn_array *p = array(c, 0), *x = array(c, 1);
    tn_dtype of = tn_dtype_of(x), to = tn_dtype_of(p);
    bool narrow = numpy_1 && tn_ndim(x) > 0 && (tn_dtype_is_float(of) || tn_dtype_is_complex(of));
    if (narrow)
        to = !tn_dtype_is_complex(to) || tn_dtype_is_complex(of) ? of : of == TN_FLOAT64 ? TN_COMPLEX128 : TN_COMPLEX64;
    bool whole = numpy_1 && tn_ndim(x) > 0 && tn_dtype_is_integer(of) && tn_dtype_is_integer(to) && tn_size(p) > 0;
    if (whole) { /* by what the least and the largest are */
        value end[] = {{.kind = INT, .i = tn_item_int(tn_min(p))}, {.kind = INT, .i = tn_item_int(tn_max(p))}};
        const value *all[] = {c->slot[1], &end[0], &end[1]};
        to = tn_dtype_of(first_of(c, all[1], all, 3));
    }
    if (numpy_1 && tn_size(p) == 0)
        to = of;
    give(c, tn_polyval(tn_cast(p, to), x));
}

static const row rows[] = {
    {"polyval", "p x", polyval}, {"polyadd", "a1 a2", of_two, NAME(tn_polyadd)},
    {"polysub", "a1 a2", of_two, NAME(tn_polysub)},
    {"polymul", "a1 a2", of_two, NAME(tn_polymul)}, {"polydiv", "u v", polydiv}, {"polyder", "p m", polyder, NULL, 0},
    {"polyint", "p m k", polyder, NULL, 1}, {"poly", "seq_of_zeros", of_one, NAME(tn_poly)}, {"roots", "p", roots},
    {"polyfit", "x y deg rcond full w cov", polyfit},
    {"bartlett", "M", window, NAME(tn_bartlett_with)}, {"blackman", "M", window, NAME(tn_blackman_with)},
    {"hamming", "M", window, NAME(tn_hamming_with)}, {"hanning", "M", window, NAME(tn_hanning_with)},
    {"kaiser", "M beta", window, NULL, 1},
    {"i0", "x", of_one, NAME(tn_i0)}, {"unwrap", "p discont axis | period", unwrap},
    {"packbits", "a axis bitorder", packbits, NULL, 0}, {"unpackbits", "a axis count bitorder", packbits, NULL, 1},
    {"histogramdd", "sample bins range density weights", histogramdd},
    {"histogram2d", "x y bins range density weights", histogram2d},
};
REPLAY_ROWS(rows)
