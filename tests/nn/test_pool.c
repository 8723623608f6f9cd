/* SPDX-License-Identifier: MIT */
/* Pooling, unfolding and interpolation of random shapes against plain loops, their gradients against differences, the
 * words of their layers, and what is refused. */
#include "check.h"

enum { MOST = 4096 };

static int64_t between(int64_t low, int64_t high) { return test_random_int(&check_random, low, high); }

/* Windows over planes of two axes, the first of extent 1 where there is one axis. */
typedef struct problem {
    int axes;
    int64_t planes, l[2], k[2], step[2], pad[2], spread[2], m[2];
    bool ceil;
} problem;

static problem random_problem(bool spreads)
{
    problem p = {.axes = (int)between(1, 2), .planes = 2, .ceil = between(0, 1)};
    for (int i = 0; i < 2; i++) {
        bool real = i >= 2 - p.axes;
        p.k[i] = real ? between(1, 3) : 1;
        p.spread[i] = real && spreads ? between(1, 2) : 1;
        int64_t covered = (p.k[i] - 1) * p.spread[i] + 1;
        p.step[i] = real ? between(1, 4) : 1;
        p.pad[i] = real ? between(0, covered / 2) : 0;
        p.l[i] = real ? between(covered, covered + 5) : 1;
        int64_t room = p.l[i] + 2 * p.pad[i] - covered;
        p.m[i] = room / p.step[i] + 1;
        if (p.ceil && room % p.step[i] && p.m[i] * p.step[i] < p.l[i] + p.pad[i])
            p.m[i]++;
    }
    return p;
}

static tn_shape list_of(const problem *p, const int64_t *value)
{
    return p->axes == 1 ? TN_SHAPE(value[1]) : TN_SHAPE(value[0], value[1]);
}
static tn_shape shape_of(const problem *p, const int64_t *extent)
{
    return p->axes == 1 ? TN_SHAPE(1, p->planes, extent[1]) : TN_SHAPE(1, p->planes, extent[0], extent[1]);
}

/* What a window holds: how many of its places are inside, and inside or in the padding; sums, the largest. */
typedef struct seen {
    int64_t inside, counted, largest_at;
    double sum, cubes, largest;
} seen;

static seen look(const problem *p, const double *plane, int64_t a, int64_t b)
{
    seen s = {.largest = -INFINITY};
    for (int64_t i = 0; i < p->k[0]; i++)
        for (int64_t j = 0; j < p->k[1]; j++) {
            int64_t u = a * p->step[0] + i * p->spread[0] - p->pad[0];
            int64_t v = b * p->step[1] + j * p->spread[1] - p->pad[1];
            s.counted += u < p->l[0] + p->pad[0] && v < p->l[1] + p->pad[1];
            if (u < 0 || v < 0 || u >= p->l[0] || v >= p->l[1])
                continue;
            double x = plane[u * p->l[1] + v];
            s.inside++;
            s.sum += x;
            s.cubes += fabs(x * x * x);
            s.largest_at = x > s.largest ? u * p->l[1] + v : s.largest_at;
            s.largest = x > s.largest ? x : s.largest;
        }
    return s;
}

enum { SUM, MEAN, MEAN_INSIDE, LARGEST, LARGEST_AT, ROOT, KINDS };

static double of_kind(const seen *s, int kind)
{
    const double all[KINDS] = {s->sum, s->sum / (double)s->counted, s->sum / (double)s->inside, s->largest,
                               (double)s->largest_at, cbrt(s->cubes)};
    return all[kind];
}

static tn_array *pooled(const problem *p, const tn_array *x, int kind)
{
    const tn_pool_opts opts = {.stride = list_of(p, p->step), .pad = list_of(p, p->pad),
                               .dilation = list_of(p, p->spread), .ceil = p->ceil, .exclude_pad = kind == MEAN_INSIDE};
    tn_shape k = list_of(p, p->k);
    return kind == SUM          ? tn_sum_pool_with(x, k, &opts)
           : kind == LARGEST    ? tn_max_pool_with(x, k, &opts)
           : kind == LARGEST_AT ? tn_max_pool_indices_with(x, k, &opts)
           : kind == ROOT       ? tn_lp_pool_with(x, 3, k, &opts)
                                : tn_average_pool_with(x, k, &opts);
}

/* Distinct values in random order: no two are equal in any dtype. */
static void fill(double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (double)(i - count / 2) / 16 + 1. / 32;
    for (int64_t i = count; i-- > 1;) {
        int64_t other = between(0, i);
        double kept = x[i];
        x[i] = x[other];
        x[other] = kept;
    }
}

static void test_values(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT64, TN_FLOAT32, TN_FLOAT16};
    static double x[MOST], want[MOST];
    for (int round = 0; round < 90; round++) {
        int kind = round % KINDS;
        tn_dtype dtype = dtypes[between(0, 2)];
        problem p = random_problem(kind != MEAN && kind != MEAN_INSIDE);
        tn_set_compile(round % 15 == 14 ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
        int64_t plane = p.l[0] * p.l[1], count = 0;
        fill(x, p.planes * plane);
        for (int64_t n = 0; n < p.planes; n++)
            for (int64_t a = 0; a < p.m[0]; a++)
                for (int64_t b = 0; b < p.m[1]; b++) {
                    seen s = look(&p, x + n * plane, a, b);
                    want[count++] = of_kind(&s, kind);
                }
        TN_SCOPE {
            tn_array *y = pooled(&p, check_array(x, shape_of(&p, p.l), dtype), kind);
            assert_int_equal(tn_dtype_of(y), kind == LARGEST_AT ? TN_INT64 : dtype);
            check_near(y, want, count, dtype == TN_FLOAT64 ? 1e-13 : dtype == TN_FLOAT32 ? 1e-6 : 2e-3);
        }
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

typedef struct of_problem {
    problem p;
    int kind;
} of_problem;

static tn_array *pool_function(int count, tn_array *const *xs, void *user)
{
    (void)count;
    const of_problem *of = user;
    return tn_sin(pooled(&of->p, xs[0], of->kind));
}

#define FUNCTION(name, expression) \
    static tn_array *name(int count, tn_array *const *xs, void *user) \
    { \
        (void)count, (void)user; \
        const tn_array *x = xs[0]; \
        return tn_sin(expression); \
    }
FUNCTION(adaptive_average, tn_adaptive_average_pool(x, TN_SHAPE(3, 2)))
FUNCTION(adaptive_max, tn_adaptive_max_pool(x, TN_SHAPE(2, 3)))
FUNCTION(global_average, tn_global_average_pool(x))
FUNCTION(global_max, tn_global_max_pool(x))
FUNCTION(unfold, tn_unfold(x, TN_SHAPE(2), .stride = TN_SHAPE(2, 1), .pad = TN_SHAPE(1)))
FUNCTION(folded, tn_fold(tn_reshape(x, TN_SHAPE(1, 12, 6)), TN_SHAPE(7), TN_SHAPE(2)))
FUNCTION(unpooled, tn_unpool(x, TN_SHAPE(3), .stride = TN_SHAPE(2), .pad = TN_SHAPE(1)))
FUNCTION(max_unpooled, tn_max_unpool(tn_max_pool(x, TN_SHAPE(2)), tn_max_pool_indices(x, TN_SHAPE(2)), TN_SHAPE(6, 7)))
FUNCTION(nearest, tn_interpolate(x, TN_SHAPE(4, 9)))
FUNCTION(linear, tn_interpolate(x, TN_SHAPE(7, 4), .mode = "linear"))
FUNCTION(linear_corners, tn_interpolate(x, TN_SHAPE(7, 4), .mode = "linear", .align_corners = true))
FUNCTION(cubic, tn_interpolate(x, TN_SHAPE(4, 9), .mode = "cubic"))
FUNCTION(area, tn_interpolate(x, TN_SHAPE(4, 3), .mode = "area"))
FUNCTION(shuffled, tn_depth_to_space(tn_reshape(x, TN_SHAPE(1, 4, 3, 6)), 2))
FUNCTION(normed, tn_local_response_norm(x, .size = 3, .alpha = 0.5))

static void test_gradients(void **state)
{
    (void)state;
    static const tn_function functions[] = {pool_function, adaptive_average, adaptive_max, global_average, global_max,
                                            unfold, folded, unpooled, max_unpooled, nearest, linear, linear_corners,
                                            cubic, area, shuffled, normed};
    static double x[MOST];
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 30; round++) {
        size_t which = round < 15 ? 0 : (size_t)(round - 14);
        of_problem of = {random_problem(round % KINDS >= LARGEST), round % KINDS == LARGEST_AT ? SUM : round % KINDS};
        tn_shape shape = which == 0 ? shape_of(&of.p, of.p.l) : TN_SHAPE(1, 2, 6, 6);
        fill(x, MOST / 4);
        TN_SCOPE {
            const tn_array *xs[] = {check_array(x, shape, TN_FLOAT64)};
            if (tn_check_backward_with(functions[which], &of, 1, xs, NULL) != TN_OK ||
                tn_check_double_backward_with(functions[which], &of, 1, xs, NULL) != TN_OK)
                fail_msg("function %zu, round %d: %s", which, round, tn_error());
        }
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* Windows over planes that lie `depth` behind one another, and what each element is to get of random weights. */
typedef struct volume {
    int64_t l[3], k[3], step[3], pad[3], spread[3], m[3];
    bool largest;
} volume;

static int64_t along(const volume *v, int axis, int64_t a, int64_t k)
{
    int64_t i = a * v->step[axis] + k * v->spread[axis] - v->pad[axis];
    return i < v->l[axis] ? i : -1;
}

/* Adds one window's weight to its largest element, or to all. */
static void give(const volume *v, const double *x, const int64_t *a, double weight, double *got)
{
    int64_t best = -1;
    for (int64_t i = 0; i < v->k[0]; i++)
        for (int64_t j = 0; j < v->k[1]; j++)
            for (int64_t k = 0; k < v->k[2]; k++) {
                int64_t at[3] = {along(v, 0, a[0], i), along(v, 1, a[1], j), along(v, 2, a[2], k)};
                if (at[0] < 0 || at[1] < 0 || at[2] < 0)
                    continue;
                int64_t flat = (at[0] * v->l[1] + at[1]) * v->l[2] + at[2];
                if (!v->largest)
                    got[flat] += weight;
                else if (best < 0 || x[flat] > x[best])
                    best = flat;
            }
    if (best >= 0)
        got[best] += weight;
}

static void check_volume(volume v, tn_shape shape)
{
    int64_t count = v.l[0] * v.l[1] * v.l[2], results = 1;
    for (int i = 0; i < 3; i++)
        results *= v.m[i] = (v.l[i] + 2 * v.pad[i] - (v.k[i] - 1) * v.spread[i] - 1) / v.step[i] + 1;
    double x[2 * MOST], want[2 * MOST] = {0}, weight[2 * MOST];
    assert_true(count <= 2 * MOST && results <= 2 * MOST);
    fill(x, count);
    for (int64_t i = 0; i < results; i++)
        weight[i] = (double)between(-8, 8);
    for (int64_t i = 0; i < results; i++)
        give(&v, x, (int64_t[]){i / (v.m[1] * v.m[2]), i / v.m[2] % v.m[1], i % v.m[2]}, weight[i], want);
    const tn_pool_opts opts = {.stride = TN_SHAPE(v.step[0], v.step[1], v.step[2]),
                               .pad = TN_SHAPE(v.pad[0], v.pad[1], v.pad[2]),
                               .dilation = TN_SHAPE(v.spread[0], v.spread[1], v.spread[2])};
    tn_shape kernel = TN_SHAPE(v.k[0], v.k[1], v.k[2]);
    TN_SCOPE {
        tn_array *of = tn_requires_grad(check_array(x, shape, TN_FLOAT32));
        tn_array *y = v.largest ? tn_max_pool_with(of, kernel, &opts) : tn_sum_pool_with(of, kernel, &opts);
        assert_int_equal(tn_size(y), results);
        tn_array *by = tn_reshape(check_array(weight, TN_SHAPE(results), TN_FLOAT32), tn_shape_of(y));
        assert_int_equal(tn_backward(tn_sum(tn_multiply(y, by))), TN_OK);
        check_near(tn_grad(of), want, count, 0); /* sums of small whole numbers */
    }
}

/* The gradients of windows that meet, along three axes, by any stride, and of those whose kernels are written out. */
static void test_windows_that_meet(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 24; round++) {
        volume v = {.largest = round % 2};
        for (int i = 0; i < 3; i++) {
            v.k[i] = between(1, 4);
            v.spread[i] = between(1, 2);
            v.step[i] = between(1, 5);
            v.pad[i] = between(0, v.k[i] / 2);
            v.l[i] = between((v.k[i] - 1) * v.spread[i] + 1, 9);
        }
        check_context = "random";
        check_volume(v, TN_SHAPE(1, 1, v.l[0], v.l[1], v.l[2]));
    }
    tn_set_compile(TN_COMPILE_ALWAYS);
    for (int round = 0; round < 4; round++) {
        int64_t step = round / 2 ? 2 : 1;
        check_context = round / 2 ? "stride 2" : "stride 1";
        check_volume((volume){{1, 81, 83}, {1, 3, 3}, {1, step, step}, {0, 1, 1}, {1, 1, 1}, {0}, round % 2},
                     TN_SHAPE(1, 1, 1, 81, 83));
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* Of equal elements backward takes the first. */
static void test_ties(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(1, 1, 4, 4)));
        const double want[] = {1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0};
        assert_int_equal(tn_backward(tn_sum(tn_max_pool(x, TN_SHAPE(2)))), TN_OK);
        check_near(tn_grad(x), want, 16, 0);
        const double nan_in[] = {1, NAN, 3, 2}, nan_out[] = {NAN, 3};
        check_near(tn_max_pool(check_array(nan_in, TN_SHAPE(1, 1, 4), TN_FLOAT32), TN_SHAPE(2)), nan_out, 2, 0);
        assert_int_equal(tn_dim(tn_max_pool(tn_ones(TN_SHAPE(0, 3, 4, 4)), TN_SHAPE(2)), 2), 2);
    }
    check_fine();
}

/* So do windows whose number is given, which may meet: the first in C order, of one to three axes. */
static void test_adaptive_ties(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++)
        TN_SCOPE {
            int axes = 1 + round % 3;
            int64_t l[3] = {1, 1, 1}, m[3] = {1, 1, 1}, count = 1;
            tn_shape shape = {.ndim = (tn__count)(2 + axes), .dim = {1, 1}}, out = {.ndim = (tn__count)axes};
            for (int i = 3 - axes, d = 0; i < 3; i++, d++) {
                count *= shape.dim[2 + d] = l[i] = between(2, 7);
                out.dim[d] = m[i] = between(1, l[i]);
            }
            double value[343], want[343] = {0};
            for (int64_t i = 0; i < count; i++)
                value[i] = (double)between(0, 2);
            for (int64_t w = 0; w < m[0] * m[1] * m[2]; w++) {
                int64_t at[3] = {w / (m[1] * m[2]), w / m[2] % m[1], w % m[2]}, best = -1;
                for (int64_t e = 0; e < count; e++) {
                    int64_t p[3] = {e / (l[1] * l[2]), e / l[2] % l[1], e % l[2]};
                    bool inside = true;
                    for (int i = 0; i < 3; i++)
                        inside = inside && p[i] >= at[i] * l[i] / m[i] && p[i] < ((at[i] + 1) * l[i] + m[i] - 1) / m[i];
                    if (inside && (best < 0 || value[e] > value[best]))
                        best = e;
                }
                want[best] += 1;
            }
            tn_array *x = tn_requires_grad(check_array(value, shape, TN_FLOAT32));
            assert_int_equal(tn_backward(tn_sum(tn_adaptive_max_pool(x, out))), TN_OK);
            check_near(tn_grad(x), want, count, 0);
        }
    check_fine();
}

/* PyTorch's places and weights, written once more. */
static double cubic_at(double d)
{
    const double a = -0.75;
    d = fabs(d);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static double sample(const double *x, int64_t n, int64_t i, int64_t m, int mode, bool corners)
{
    if (mode == 0)
        return x[i * n / m];
    if (mode == 3) {
        double sum = 0;
        int64_t from = i * n / m, to = ((i + 1) * n + m - 1) / m;
        for (int64_t k = from; k < to; k++)
            sum += x[k] / (double)(to - from);
        return sum;
    }
    double at = corners ? (m > 1 ? (double)(i * (n - 1)) / (double)(m - 1) : 0)
                        : ((double)i + 0.5) * (double)n / (double)m - 0.5;
    at = mode == 1 && at < 0 ? 0 : at;
    double sum = 0;
    for (int64_t k = (int64_t)floor(at) - 1; k <= (int64_t)floor(at) + 2; k++) {
        double d = fabs(at - (double)k), weight = mode == 1 ? (d < 1 ? 1 - d : 0) : cubic_at(d);
        sum += weight * x[k < 0 ? 0 : k >= n ? n - 1 : k];
    }
    return sum;
}

static void test_interpolation(void **state)
{
    (void)state;
    static const char *const modes[] = {"nearest", "linear", "cubic", "area"};
    double x[12], want[16];
    for (int64_t n = 1; n <= 12; n += 2)
        for (int64_t m = 1; m <= 16; m += 3)
            for (int mode = 0; mode < 4; mode++)
                for (int corners = 0; corners <= (mode == 1 || mode == 2); corners++) {
                    check_fill(x, n, -1, 1);
                    for (int64_t i = 0; i < m; i++)
                        want[i] = sample(x, n, i, m, mode, corners);
                    TN_SCOPE check_near(tn_interpolate(check_array(x, TN_SHAPE(1, 1, n), TN_FLOAT64), TN_SHAPE(m),
                                                       .mode = modes[mode], .align_corners = corners),
                                        want, m, 1e-12);
                }
    check_fine();
}

static void test_channels(void **state)
{
    (void)state;
    double x[72], want[72];
    check_fill(x, 72, -1, 1);
    TN_SCOPE {
        tn_array *a = check_array(x, TN_SHAPE(1, 8, 3, 3), TN_FLOAT64);
        for (int first = 0; first < 2; first++) {
            for (int c = 0; c < 2; c++)
                for (int i = 0; i < 6; i++)
                    for (int j = 0; j < 6; j++) {
                        int place = i % 2 * 2 + j % 2, from = first ? place * 2 + c : c * 4 + place;
                        want[(c * 6 + i) * 6 + j] = x[(from * 3 + i / 2) * 3 + j / 2];
                    }
            tn_array *y = tn_depth_to_space(a, 2, .depth_first = first);
            check_near(y, want, 72, 0);
            check_near(tn_space_to_depth(y, 2, .depth_first = first), x, 72, 0);
        }
        for (int c = 0; c < 8; c++)
            for (int i = 0; i < 9; i++) {
                double sum = 0;
                for (int d = c - 2; d <= c + 2; d++)
                    sum += d < 0 || d > 7 ? 0 : x[d * 9 + i] * x[d * 9 + i];
                want[c * 9 + i] = x[c * 9 + i] / pow(2 + 1e-4 * sum, 0.75);
            }
        check_near(tn_local_response_norm(a), want, 72, 1e-13);
    }
    check_fine();
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 4, 5, 5));
        REFUSED(TN_ERR_SHAPE, "larger than axis 2", tn_max_pool(x, TN_SHAPE(6)));
        REFUSED(TN_ERR_SHAPE, "larger than axis 3", tn_max_pool(x, TN_SHAPE(3), .dilation = TN_SHAPE(1, 3)));
        REFUSED(TN_ERR_VALUE, "expected fewer", tn_max_pool(x, TN_SHAPE(2), .pad = TN_SHAPE(2)));
        REFUSED(TN_ERR_VALUE, "pad of 0", tn_max_pool(x, TN_SHAPE(2), .pad = TN_SHAPE(-1)));
        REFUSED(TN_ERR_VALUE, "stride of 1", tn_average_pool(x, TN_SHAPE(2), .stride = TN_SHAPE(0)));
        REFUSED(TN_ERR_SHAPE, "window's extents", tn_average_pool(x, (tn_shape){0}));
        REFUSED(TN_ERR_SHAPE, "or 2 of them", tn_average_pool(x, TN_SHAPE(2, 2, 2)));
        REFUSED(TN_ERR_SHAPE, "one to three extents", tn_sum_pool(tn_ones(TN_SHAPE(2, 3)), TN_SHAPE(2)));
        REFUSED(TN_ERR_DTYPE, "floating", tn_sum_pool(tn_cast(x, TN_INT32), TN_SHAPE(2)));
        REFUSED(TN_ERR_VALUE, "p > 0", tn_lp_pool(x, 0, TN_SHAPE(2)));
        REFUSED(TN_ERR_SHAPE, "2^63",
                tn_fold(tn_ones(TN_SHAPE(1, 4, 4)), TN_SHAPE(1, 1), TN_SHAPE((int64_t)1 << 32, (int64_t)1 << 32),
                        .pad = TN_SHAPE((int64_t)1 << 31, (int64_t)1 << 31)));
        REFUSED(TN_ERR_SHAPE, "windows)", tn_fold(tn_ones(TN_SHAPE(1, 4, 9)), TN_SHAPE(3, 3), TN_SHAPE(2)));
        REFUSED(TN_ERR_SHAPE, "x's shape", tn_max_unpool(x, tn_zeros(TN_SHAPE(2), .dtype = TN_INT64), TN_SHAPE(9)));
        REFUSED(TN_ERR_VALUE, "nothing is left", tn_unpool(x, TN_SHAPE(2), .pad = TN_SHAPE(2)));
        REFUSED(TN_ERR_NAME, "no mode 'bilinear'", tn_interpolate(x, TN_SHAPE(2), .mode = "bilinear"));
        REFUSED(TN_ERR_VALUE, "align_corners", tn_interpolate(x, TN_SHAPE(2), .align_corners = true));
        REFUSED(TN_ERR_VALUE, "of 1 or more", tn_interpolate(x, TN_SHAPE(0)));
        REFUSED(TN_ERR_SHAPE, "larger than any memory", tn_interpolate(x, TN_SHAPE((int64_t)1 << 61)));
        REFUSED(TN_ERR_SHAPE, "larger than any memory", tn_adaptive_max_pool(x, TN_SHAPE((int64_t)1 << 61)));
        REFUSED(TN_ERR_SHAPE, "extent 0", tn_global_max_pool(tn_ones(TN_SHAPE(2, 3, 0))));
        REFUSED(TN_ERR_SHAPE, "dividing the channels", tn_depth_to_space(x, 3));
        REFUSED(TN_ERR_VALUE, "size of 1", tn_local_response_norm(x, .size = 0));
    }
}

static void test_words(void **state)
{
    (void)state;
    static const char words[] = "image:2 conv:6,3x2,pad=1,stride=2x1,groups=2 relu maxpool:2,ceil=1 "
                                "conv_transpose2d:4,2,bias=0 avgpool:2,stride=1,pad=1,exclude_pad=1 "
                                "conv:3,kernel=1,padding=same adaptive_avgpool:2 gap";
    static const struct {
        const char *text, *word;
    } bad[] = {{"conv", "expected conv:OUT,KERNEL"},    {"conv:3", "'kernel' does not fit"},
               {"conv:3,3,size=2", "'size=2'"},         {"conv:3,3,pad=1,pad=2", "'pad=2'"},
               {"conv:3,x", "'x'"},                     {"conv:3,3x", "'3x'"},
               {"conv:3,3,padding=half", "no padding"}, {"maxpol:2", "did you mean 'maxpool'"},
               {"gap:2", "'2'"},                        {"lenet5:0", "at least one output"}};
    tn_layer *layer = tn_layer_parse(words);
    TN_SCOPE {
        tn_array *y = tn_forward(layer, tn_ones(TN_SHAPE(3, 2 * 49)));
        assert_int_equal(tn_ndim(y), 2);
        assert_int_equal(tn_dim(y, 1), 3);
        char *text = tn_layer_string(layer);
        if (!strstr(text, "conv2d:6,3x2,stride=2x1,pad=1,groups=2") || !strstr(text, "maxpool:2,ceil=1") ||
            !strstr(text, "padding=same") || !strstr(text, "bias=0"))
            fail_msg("%s", text);
        tn_string_free(text);
        tn_layer *lenet = tn_lenet5(10);
        assert_int_equal(tn_dim(tn_forward(lenet, tn_ones(TN_SHAPE(2, 1, 28, 28))), 1), 10);
        assert_int_equal(tn_dim(tn_forward(lenet, tn_ones(TN_SHAPE(2, 784))), 1), 10);
        assert_true(tn_is_error(tn_forward(lenet, tn_ones(TN_SHAPE(2, 783)))));
        check_latched(TN_ERR_SHAPE, "rows of as many squares");
        assert_int_equal(tn_param_total(lenet), 20 * 26 + 50 * 501 + 500 * 801 + 10 * 501);
        tn_layer_free(lenet);
    }
    tn_layer_free(layer);
    layer = tn_layer_parse("adaptive_maxpool:2x3 global_maxpool");
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(2, 3, 5, 7)), *most = tn_max(x, .axis = TN_AXES(2, 3));
        assert_true(tn_array_equal(tn_forward(tn_layer_child(layer, "0"), x),
                                   tn_adaptive_max_pool(x, TN_SHAPE(2, 3)), false));
        assert_true(tn_array_equal(tn_forward(layer, x), most, false));
        char *text = tn_layer_string(layer);
        if (!strstr(text, "adaptive_maxpool:2x3") || !strstr(text, "global_maxpool"))
            fail_msg("%s", text);
        tn_string_free(text);
    }
    tn_layer_free(layer);
    check_fine();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        layer = tn_layer_parse(bad[i].text);
        assert_int_not_equal(tn_layer_status(layer), TN_OK);
        if (!strstr(tn_error(), bad[i].word))
            fail_msg("%s: %s", bad[i].text, tn_error());
        tn_clear_error();
        tn_layer_free(layer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_windows_that_meet),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_adaptive_ties),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_interpolation),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
