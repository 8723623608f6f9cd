/* SPDX-License-Identifier: MIT */
/*
 * Eigenvalues of Hermitian matrices and singular values of many small ones at once, which a GPU has kernels for: what
 * they promise, to float64's rounding, of matrices of every kind and size, against LAPACK's values; the numbers that
 * are not finite; and the same bits again. Inputs are made, and results looked at, in the host's memory.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

typedef double _Complex cell;

enum { MOST = 32, KINDS = 9 };

static uint64_t seed;

/* Extents of one more than the kernels' tables have room for, and one less; a warp's and a block's. */
static const int extents[] = {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32};
#define EXTENTS (int)(sizeof extents / sizeof *extents)

static double normal(void)
{
    double x = 0; /* good enough: nothing depends on its tails */
    for (int i = 0; i < 12; i++)
        x += rand() / (double)RAND_MAX - 0.5;
    return x;
}

/* Matrices one behind the other, of elements (row, column) at row * n + column. */
typedef struct set {
    int count, m, n;
    bool is_complex;
    cell *at;
} set;

static set set_new(int count, int m, int n, bool is_complex)
{
    return (set){count, m, n, is_complex, calloc((size_t)(count * m * n + 1), sizeof(cell))};
}

static cell *cell_of(const set *s, int which, int row, int column)
{
    return s->at + ((size_t)which * (size_t)s->m + (size_t)row) * (size_t)s->n + (size_t)column;
}

/* A product of two thin matrices, of random numbers. */
static void fill_product(const set *s, int which, int rank)
{
    cell left[MOST][MOST], right[MOST][MOST];
    for (int i = 0; i < MOST; i++)
        for (int j = 0; j < MOST; j++) {
            left[i][j] = normal() + (s->is_complex ? normal() * I : 0);
            right[i][j] = normal() + (s->is_complex ? normal() * I : 0);
        }
    for (int i = 0; i < s->m; i++)
        for (int j = 0; j < s->n; j++)
            for (int k = 0; k < rank; k++)
                *cell_of(s, which, i, j) += left[i][k] * right[k][j];
}

/* 0 random, 1 of half the rank, 2 zero, 3 diagonal, 4 the identity and a matrix of rank 1: equal values, 5 tiny, 6
 * huge, 7 rows of sizes far apart, 8 columns that are equal, or zero */
static set draw(int m, int n, bool is_complex)
{
    set s = set_new(KINDS, m, n, is_complex);
    int least = m < n ? m : n;
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind != 2 && kind != 3)
            fill_product(&s, kind, kind == 1 ? least / 2 : kind == 4 ? 1 : kind == 8 ? 2 : least);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                cell *x = cell_of(&s, kind, i, j);
                if ((kind == 3 || kind == 4) && i == j)
                    *x += kind == 3 ? normal() : 3;
                *x *= kind == 5 ? 1e-150 : kind == 6 ? 1e150 : kind == 7 ? pow(10, -i) : 1;
                if (kind == 8)
                    *x = j % 3 == 2 ? 0 : *cell_of(&s, kind, i, j - j % 3);
            }
    }
    return s;
}

/* Of square matrices the Hermitian ones that a triangle of them gives; what the other one holds, `besides` says. */
static void make_hermitian(const set *s, bool upper, double besides)
{
    for (int k = 0; k < s->count; k++)
        for (int i = 0; i < s->n; i++) {
            *cell_of(s, k, i, i) = creal(*cell_of(s, k, i, i));
            for (int j = 0; j < i; j++) {
                cell *low = cell_of(s, k, i, j), *high = cell_of(s, k, j, i);
                if (upper)
                    *low = isnan(besides) ? besides : conj(*high);
                else
                    *high = isnan(besides) ? besides : conj(*low);
            }
        }
}

static tn_array *array_of(const set *s)
{
    size_t count = (size_t)(s->count * s->m * s->n);
    double *real = malloc((count + 1) * sizeof *real);
    for (size_t i = 0; i < count; i++)
        real[i] = creal(s->at[i]);
    tn_shape shape = TN_SHAPE(s->count, s->m, s->n);
    tn_array *a = s->is_complex ? tn_from_host(s->at, shape, TN_COMPLEX128, .device = tn_cpu())
                                : tn_from_host(real, shape, TN_FLOAT64, .device = tn_cpu());
    free(real);
    return a;
}

/* What is on the device, here. */
static set set_of(const tn_array *a)
{
    int ndim = tn_ndim(a);
    bool is_complex = tn_dtype_is_complex(tn_dtype_of(a));
    int n = (int)tn_dim(a, ndim - 1), m = ndim > 1 ? (int)tn_dim(a, ndim - 2) : 1;
    set s = set_new(m && n ? (int)tn_size(a) / (m * n) : 0, m, n, is_complex);
    const tn_array *wide = tn_cast(tn_to(a, tn_cpu()), is_complex ? TN_COMPLEX128 : TN_FLOAT64);
    const void *data = tn_data(wide);
    if (!data)
        fail_msg("%s; seed %llu", tn_error(), (unsigned long long)seed);
    for (int64_t i = 0; i < tn_size(a); i++)
        s.at[i] = is_complex ? ((const cell *)data)[i] : ((const double *)data)[i];
    return s;
}

static tn_array *there(const tn_array *a) { return tn_to(a, test_device()); }

static double largest_of(const set *s, int which)
{
    double size = 0;
    for (int i = 0; i < s->m; i++)
        for (int j = 0; j < s->n; j++)
            size = fmax(size, cabs(*cell_of(s, which, i, j)));
    return size;
}

/* The bound of an error: rounding for each of the larger extent's terms. */
static void assert_small(const char *what, double found, double size, int n, int which)
{
    double bound = 8 * DBL_EPSILON * (n + 4) * size;
    if (!(found <= bound))
        fail_msg("%s: off by %g where %g is allowed: extent %d, kind %d; seed %llu", what, found, bound, n, which,
                 (unsigned long long)seed);
}

/* Of s's columns, or rows: orthogonal and of length 1. */
static void assert_unitary(const char *what, const set *s, bool rows)
{
    int count = rows ? s->m : s->n, length = rows ? s->n : s->m;
    for (int k = 0; k < s->count; k++)
        for (int a = 0; a < count; a++)
            for (int b = 0; b < count; b++) {
                cell sum = 0;
                for (int i = 0; i < length; i++)
                    sum += conj(*cell_of(s, k, rows ? a : i, rows ? i : a)) *
                           *cell_of(s, k, rows ? b : i, rows ? i : b);
                assert_small(what, cabs(sum - (a == b)), 1, length, k);
            }
}

static void assert_same_values(const char *what, const set *found, const set *expected)
{
    int matrices = expected->count * expected->m, n = expected->n;
    for (int k = 0; k < matrices; k++) {
        double size = 0;
        for (int i = 0; i < n; i++)
            size = fmax(size, cabs(expected->at[k * n + i]));
        for (int i = 0; i < n; i++)
            assert_small(what, cabs(found->at[k * n + i] - expected->at[k * n + i]), size, n, k);
    }
}

static void assert_same_bits(const char *what, const set *a, const set *b)
{
    size_t count = (size_t)(a->count * a->m * a->n);
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a->at[i], &b->at[i], sizeof(cell)))
            fail_msg("%s: element %zu differs; seed %llu", what, i, (unsigned long long)seed);
}

static void check_eigh(const tn_array *given, const set *a, bool upper)
{
    tn_array *w, *v;
    assert_int_equal(tn_linalg_eigh(there(given), &w, &v, .upper = upper), TN_OK);
    set values = set_of(w), vectors = set_of(v), alone = set_of(tn_linalg_eigvalsh(there(given), .upper = upper));
    set expected = set_of(tn_linalg_eigvalsh(tn_to(given, tn_cpu()), .upper = upper));
    assert_same_values("w", &values, &expected);
    assert_same_values("eigvalsh", &alone, &expected);
    assert_unitary("v", &vectors, false);
    int n = a->n;
    for (int k = 0; k < a->count; k++)
        for (int j = 0; j < n; j++) {
            cell value = values.at[k * n + j];
            if (j > 0 && creal(value) < creal(values.at[k * n + j - 1]))
                fail_msg("not ascending: extent %d, kind %d; seed %llu", n, k, (unsigned long long)seed);
            for (int i = 0; i < n; i++) {
                cell sum = -value * *cell_of(&vectors, k, i, j);
                for (int l = 0; l < n; l++)
                    sum += *cell_of(a, k, i, l) * *cell_of(&vectors, k, l, j);
                assert_small("a v - v w", cabs(sum), n * largest_of(a, k), n, k);
            }
        }
    free(values.at), free(vectors.at), free(alone.at), free(expected.at);
}

static void test_eigh(void **state)
{
    (void)state;
    for (int e = 0; e < EXTENTS; e++)
        for (int form = 0; form < 4; form++)
            TN_SCOPE {
                set a = draw(extents[e], extents[e], form % 2);
                make_hermitian(&a, form / 2, NAN);
                tn_array *given = array_of(&a);
                make_hermitian(&a, form / 2, 0);
                check_eigh(given, &a, form / 2);
                free(a.at);
            }
}

static void check_svd(const tn_array *given, const set *a)
{
    int m = a->m, n = a->n, least = m < n ? m : n, most = m < n ? n : m;
    set expected = set_of(tn_linalg_svdvals(tn_to(given, tn_cpu()))), alone = set_of(tn_linalg_svdvals(there(given)));
    assert_same_values("svdvals", &alone, &expected);
    for (int reduced = 0; reduced < 2; reduced++) {
        tn_array *part[3];
        assert_int_equal(tn_linalg_svd(there(given), &part[0], &part[1], &part[2], .reduced = reduced), TN_OK);
        set u = set_of(part[0]), s = set_of(part[1]), vh = set_of(part[2]);
        assert_int_equal(u.n, reduced ? least : m);
        assert_int_equal(vh.m, reduced ? least : n);
        assert_same_values("s", &s, &expected);
        assert_unitary("u", &u, false);
        assert_unitary("vh", &vh, true);
        for (int k = 0; k < a->count; k++) {
            for (int i = 1; i < least; i++)
                if (creal(s.at[k * least + i]) > creal(s.at[k * least + i - 1]))
                    fail_msg("not descending: kind %d; seed %llu", k, (unsigned long long)seed);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    cell sum = -*cell_of(a, k, i, j);
                    for (int l = 0; l < least; l++)
                        sum += *cell_of(&u, k, i, l) * s.at[k * least + l] * *cell_of(&vh, k, l, j);
                    assert_small("u s vh - a", cabs(sum), most * largest_of(a, k), most, k);
                }
        }
        free(u.at), free(s.at), free(vh.at);
    }
    free(expected.at), free(alone.at);
}

static void test_svd(void **state)
{
    (void)state;
    for (int e = 0; e < EXTENTS; e++)
        for (int form = 0; form < 6; form++)
            TN_SCOPE {
                int m = extents[e], other = extents[(e + 5) % EXTENTS], n = form < 2 ? m : other;
                if (m > 16 && form % 2 == e % 2) /* where kernels are emulated, these take their time */
                    continue;
                set a = form < 4 ? draw(m, n, form % 2) : draw(n, m, form % 2);
                check_svd(array_of(&a), &a);
                free(a.at);
            }
}

/* Windows of other arrays: turned, with steps, backwards, one matrix for many. */
static void test_strides(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(3, 7, 14, 2), .dtype = TN_FLOAT64, .device = tn_cpu());
        tn_array *far = tn_transpose(there(x), TN_AXES(3, 2, 0, 1)), *near = tn_transpose(x, TN_AXES(3, 2, 0, 1));
        tn_array *views[2][4];
        for (int i = 0; i < 2; i++) {
            tn_array *a = i ? near : far; /* (2, 14, 3, 7) */
            views[i][0] = a;
            views[i][1] = tn_swapaxes(a, 2, 3);
            views[i][2] = tn_flip(tn_slice_axis(tn_swapaxes(a, 1, 2), 2, 1, 14, 2), TN_AXES(2)); /* (2, 3, 7, 7) */
            views[i][3] = tn_broadcast_to(tn_index(tn_index(a, 0), 3), TN_SHAPE(5, 3, 7));
        }
        for (int k = 0; k < 4; k++) {
            set found = set_of(tn_linalg_svdvals(views[0][k])), expected = set_of(tn_linalg_svdvals(views[1][k]));
            assert_same_values("svdvals", &found, &expected);
            free(found.at), free(expected.at);
        }
        for (int upper = 0; upper < 2; upper++) {
            set found = set_of(tn_linalg_eigvalsh(views[0][2], .upper = upper));
            set expected = set_of(tn_linalg_eigvalsh(views[1][2], .upper = upper));
            assert_same_values("eigvalsh", &found, &expected);
            free(found.at), free(expected.at);
        }
    }
}

/* Float32, computed wider and rounded; of Hermitian matrices the other way to singular values. */
static void test_narrow(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(40, 6, 6), .dtype = TN_FLOAT32, .device = tn_cpu());
        tn_array *h = tn_add(x, tn_swapaxes(x, 1, 2)), *w[2], *v, *u, *s[2], *vh;
        for (int i = 0; i < 2; i++) {
            tn_array *at = i ? tn_to(h, tn_cpu()) : there(h);
            assert_int_equal(tn_linalg_eigh(at, &w[i], &v), TN_OK);
            assert_int_equal(tn_linalg_svd(at, &u, &s[i], &vh, .hermitian = i == 0), TN_OK);
            assert_int_equal(tn_dtype_of(v), TN_FLOAT32);
        }
        assert_true(tn_item(tn_max(tn_abs(tn_subtract(tn_to(w[0], tn_cpu()), w[1])))) < 1e-5);
        assert_true(tn_item(tn_max(tn_abs(tn_subtract(tn_to(s[0], tn_cpu()), s[1])))) < 1e-5);
    }
}

/* Nothing to compute, and bases that are there all the same. */
static void test_empty(void **state)
{
    (void)state;
    static const tn_shape shapes[] = {{2, {0, 0}}, {3, {3, 0, 0}}, {3, {0, 4, 4}}, {3, {2, 0, 3}}, {3, {2, 3, 0}}};
    for (int i = 0; i < 5; i++)
        TN_SCOPE {
            tn_array *a = tn_zeros(shapes[i], .dtype = i % 2 ? TN_COMPLEX128 : TN_FLOAT64), *u, *s, *vh, *w, *v;
            for (int k = 0; k < 3; k++) /* so that nothing is right by what the memory held before */
                TN_SCOPE assert_int_equal(test_eval(tn_add(tn_full(TN_SHAPE(18 << k), 7, .dtype = TN_FLOAT64), 1)),
                                          TN_OK);
            for (int reduced = 0; reduced < 2; reduced++) {
                assert_int_equal(tn_linalg_svd(a, &u, &s, &vh, .reduced = reduced), TN_OK);
                set left = set_of(u), right = set_of(vh);
                assert_unitary("u", &left, false);
                assert_unitary("vh", &right, true);
                assert_int_equal(test_eval(s), TN_OK);
                free(left.at), free(right.at);
            }
            if (i < 3) {
                assert_int_equal(tn_linalg_eigh(a, &w, &v), TN_OK);
                assert_int_equal(test_eval(w), TN_OK);
                assert_int_equal(test_eval(v), TN_OK);
                assert_int_equal(test_eval(tn_linalg_eigvalsh(a)), TN_OK);
            }
        }
}

/* A result does not depend on what else is computed, or when. */
static void test_again(void **state)
{
    (void)state;
    static const int some[] = {3, 8, 13, 17};
    for (int e = 0; e < 4; e++)
        TN_SCOPE {
            set a = draw(some[e], some[e], e % 2);
            make_hermitian(&a, false, 0);
            tn_array *all = there(array_of(&a)), *w, *v, *part[3], *again[3];
            assert_int_equal(tn_linalg_eigh(all, &w, &v), TN_OK);
            assert_int_equal(tn_linalg_svd(all, &part[0], &part[1], &part[2]), TN_OK);
            tn_array *results[] = {w, v, part[0], part[1], part[2]};
            for (int k = 0; k < KINDS; k++) {
                if (!test_elsewhere() || (k > 1 && some[e] > 16)) /* the CPU's library promises no such thing */
                    continue;
                tn_array *one = tn_index(all, k), *w1, *v1;
                assert_int_equal(tn_linalg_eigh(one, &w1, &v1), TN_OK);
                assert_int_equal(tn_linalg_svd(one, &again[0], &again[1], &again[2]), TN_OK);
                tn_array *those[] = {w1, v1, again[0], again[1], again[2]};
                for (int i = 0; i < 5; i++) {
                    set x = set_of(tn_index(results[i], k)), y = set_of(those[i]);
                    assert_same_bits("alone", &x, &y);
                    free(x.at), free(y.at);
                }
            }
            free(a.at);
        }
}

static void refused(tn_array *x)
{
    assert_int_equal(test_eval(tn_to(x, tn_cpu())), TN_ERR_VALUE);
    assert_non_null(strstr(tn_error(), "did not converge"));
    tn_clear_error();
}

/* NaN is told of; infinities are NaN where they are, and nowhere else. */
static void test_not_finite(void **state)
{
    (void)state;
    static const int some[] = {3, 8, 13};
    for (int e = 0; e < 3; e++)
        TN_SCOPE {
            int n = some[e];
            set a = draw(n, n, e % 2);
            make_hermitian(&a, false, 0);
            *cell_of(&a, 4, n - 1, n - 1) = INFINITY;
            tn_array *given = there(array_of(&a)), *w, *v, *u, *s, *vh;
            assert_int_equal(tn_linalg_eigh(given, &w, &v), TN_OK);
            assert_int_equal(tn_linalg_svd(given, &u, &s, &vh), TN_OK);
            set values[] = {set_of(w), set_of(s), set_of(tn_linalg_svdvals(given)), set_of(tn_linalg_eigvalsh(given))};
            for (int i = 0; i < 4; i++) {
                for (int k = 0; k < KINDS * n; k++)
                    assert_int_equal(isnan(creal(values[i].at[k])) != 0, k / n == 4);
                free(values[i].at);
            }
            *cell_of(&a, 5, n - 1, 0) = NAN;
            given = there(array_of(&a));
            refused(tn_linalg_eigvalsh(given));
            refused(tn_linalg_svdvals(given));
            tn_array *first = tn_slice_axis(given, 0, 0, 4, 1); /* and it goes on */
            assert_int_equal(test_eval(tn_linalg_svdvals(first)), TN_OK);
            free(a.at);
        }
    TN_SCOPE {
        tn_array *one = tn_full(TN_SHAPE(1, 1), NAN, .dtype = TN_FLOAT64);
        assert_true(isnan(tn_item(tn_linalg_eigvalsh(one))));
        refused(tn_linalg_svdvals(one));
        one = tn_full(TN_SHAPE(1, 1), -INFINITY, .dtype = TN_FLOAT64);
        assert_true(tn_item(tn_linalg_eigvalsh(one)) == -INFINITY);
    }
}

int main(void)
{
    seed = test_seed_new();
    tn_seed(seed);
    srand((unsigned)seed);
    TN_SCOPE if (tn_eval(tn_linalg_svdvals(tn_ones(TN_SHAPE(1, 1), .device = tn_cpu()))) == TN_ERR_UNSUPPORTED) {
        print_message("skipped: %s\n", tn_error());
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eigh),  cmocka_unit_test(test_svd),       cmocka_unit_test(test_strides),
        cmocka_unit_test(test_empty), cmocka_unit_test(test_again), cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
