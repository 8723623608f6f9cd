/* SPDX-License-Identifier: MIT */
/*
 * Products with their neighbours on a GPU against the same expressions in float64 on the CPU: odd extents, extents of
 * one and none, transposed and strided factors, batches, and what is computed around a product in one kernel. Skipped
 * without a GPU.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { MOST = 1 << 20, KINDS = 9 };

static test_random numbers;
static double results[2][MOST];

/* a (rows, depth) or transposed, strided; b likewise; what else is computed. */
typedef struct shape {
    int64_t batch, rows, columns, depth;
    bool a_across, b_across, a_every_other, b_shared, wide, tensor;
    int kind;
} shape;

static tn_array *numbers_of(int ndim, const int64_t *dim, bool wide)
{
    int64_t size = 1;
    for (int d = 0; d < ndim; d++)
        size *= dim[d];
    double *values = malloc((size_t)(size + 1) * sizeof *values);
    for (int64_t i = 0; i < size; i++)
        values[i] = (float)(2 * test_random_double(&numbers) - 1);
    tn_shape of = {.ndim = ndim};
    memcpy(of.dim, dim, (size_t)ndim * sizeof *dim);
    tn_array *x = tn_cast(tn_from_host(values, of, TN_FLOAT64), wide ? TN_FLOAT64 : TN_FLOAT32);
    free(values);
    return x;
}

/* The matrices as they lie in memory. */
typedef struct factors {
    tn_array *a, *b, *bias, *old, *other;
} factors;

static factors make(const shape *s)
{
    int64_t stretch = s->a_every_other ? 2 : 1;
    int64_t a[3] = {s->batch, s->a_across ? s->depth : s->rows, (s->a_across ? s->rows : s->depth) * stretch};
    int64_t b[3] = {s->b_shared ? 1 : s->batch, s->b_across ? s->columns : s->depth,
                    s->b_across ? s->depth : s->columns};
    int64_t c[3] = {s->batch, s->rows, s->columns};
    return (factors){numbers_of(3, a, s->wide), numbers_of(3, b, s->wide), numbers_of(1, c + 2, s->wide),
                     numbers_of(3, c, s->wide), numbers_of(3, c, s->wide)};
}

static tn_array *expression(const shape *s, const factors *f)
{
    tn_array *a = s->a_every_other ? tn_slice_axis(f->a, 2, 0, tn_dim(f->a, 2), 2) : f->a, *b = f->b;
    if (s->a_across)
        a = tn_swapaxes(a, 1, 2);
    if (s->b_across)
        b = tn_swapaxes(b, 1, 2);
    tn_array *c = tn_matmul(a, b);
    switch (s->kind) {
    case 1:
        return tn_sigmoid(tn_add(c, f->bias));
    case 2:
        return tn_softmax(tn_add(c, f->bias), 2);
    case 3:
        return tn_subtract(f->old, tn_multiply(c, 0.25));
    case 4:
        return tn_sum(tn_multiply(c, f->other), .axis = TN_AXES(1));
    case 5:
        return tn_concatenate(2, (const tn_array *[]){tn_multiply(c, f->other), tn_relu(tn_add(c, f->old))}, 0);
    case 6:
        return tn_sum(tn_square(tn_subtract(c, tn_max(c, .axis = TN_AXES(2), .keepdims = true))), .axis = TN_AXES(2));
    case 7:
        return tn_add(tn_cast(tn_argmax(c, .axis = TN_AXES(2), .keepdims = true), s->wide ? TN_FLOAT64 : TN_FLOAT32),
                      f->bias);
    case 8: { /* a last layer's gradient: on a GPU the blocks of one product may go on with the other */
        tn_array *back = tn_multiply(tn_matmul(tn_softmax(c, 2), tn_swapaxes(b, 1, 2)), a);
        return tn_concatenate(1, (const tn_array *[]){back, tn_sum(back, .axis = TN_AXES(1), .keepdims = true)}, 0);
    }
    default:
        return c;
    }
}

static int64_t evaluate(const shape *s, const factors *from, tn_device device, bool wide, double *to)
{
    factors f = *from;
    tn_array **each[] = {&f.a, &f.b, &f.bias, &f.old, &f.other};
    for (int i = 0; i < 5; i++)
        *each[i] = tn_to(wide ? tn_cast(*each[i], TN_FLOAT64) : *each[i], device);
    shape as = *s;
    as.wide = s->wide || wide;
    tn_array *z = tn_cast(expression(&as, &f), TN_FLOAT64);
    return tn_size(z) <= MOST && tn_to_host(z, to, (size_t)tn_size(z) * sizeof *to) == TN_OK ? tn_size(z) : -1;
}

static void check(const shape *s)
{
    char text[200];
    snprintf(text, sizeof text, "batch %lld, %lld x %lld x %lld%s%s%s%s%s%s, kind %d", (long long)s->batch,
             (long long)s->rows, (long long)s->depth, (long long)s->columns, s->a_across ? ", a across" : "",
             s->b_across ? ", b across" : "", s->a_every_other ? ", every other of a" : "",
             s->b_shared ? ", b shared" : "", s->wide ? ", float64" : "", s->tensor ? ", on tensor cores" : "",
             s->kind);
    tn_set_matmul_precision(s->tensor ? TN_MATMUL_TF32X3 : TN_MATMUL_FLOAT32);
    TN_SCOPE
    {
        factors f = make(s);
        int64_t here = evaluate(s, &f, tn_cpu(), true, results[0]);
        int64_t there = evaluate(s, &f, tn_cuda(0), false, results[1]);
        if (here < 0 || here != there)
            fail_msg("%s: %lld and %lld elements: %s", text, (long long)here, (long long)there, tn_error());
        double most = 0, error = 0;
        for (int64_t i = 0; i < here; i++) {
            most = fmax(most, fabs(results[0][i]));
            error = fmax(error, isnan(results[1][i]) ? INFINITY : fabs(results[0][i] - results[1][i]));
        }
        double tolerance = (s->wide ? 1e-15 : 4e-7) * (8 + sqrt((double)s->depth)) *
                           (s->kind == 4 || s->kind == 6 || s->kind == 8 ? 8 : 1);
        if (!(error <= tolerance * fmax(most, 1)))
            fail_msg("%s: largest %g, error %g", text, most, error);
    }
}

static int64_t extent(int64_t most)
{
    static const int64_t likely[] = {1, 2, 8, 10, 16, 28, 32, 64, 100, 128};
    return test_random_int(&numbers, 0, 2) ? test_random_int(&numbers, 1, most)
                                           : likely[test_random_int(&numbers, 0, 9)] % (most + 1) + (most < 1);
}

static void test_random_products(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        shape s = {.batch = test_random_int(&numbers, 0, 3) ? 1 : test_random_int(&numbers, 1, 5),
                   .rows = extent(150),
                   .columns = extent(test_random_int(&numbers, 0, 1) ? 150 : 32),
                   .depth = extent(300),
                   .a_across = test_random_int(&numbers, 0, 1),
                   .b_across = test_random_int(&numbers, 0, 1),
                   .a_every_other = test_random_int(&numbers, 0, 7) == 0,
                   .b_shared = test_random_int(&numbers, 0, 1),
                   .wide = test_random_int(&numbers, 0, 5) == 0,
                   .tensor = test_random_int(&numbers, 0, 2) == 0,
                   .kind = (int)test_random_int(&numbers, 0, KINDS - 1)};
        check(&s);
    }
}

static void test_every_kind_of_a_network(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {.batch = 1, .rows = 100, .depth = 784, .columns = 1000, .b_across = true, .kind = 1},
        {.batch = 1, .rows = 100, .depth = 784, .columns = 1000, .kind = 1},
        {.batch = 1, .rows = 100, .depth = 1000, .columns = 10, .kind = 2},
        {.batch = 1, .rows = 1000, .depth = 1000, .columns = 10, .kind = 2},
        {.batch = 1, .rows = 100, .depth = 10, .columns = 1000, .kind = 4},
        {.batch = 1, .rows = 1437, .depth = 10, .columns = 100, .b_across = true, .kind = 4},
        {.batch = 1, .rows = 1437, .depth = 300, .columns = 200, .b_across = true, .kind = 1},
        {.batch = 1, .rows = 784, .depth = 100, .columns = 1000, .a_across = true, .kind = 3},
        {.batch = 1, .rows = 1000, .depth = 100, .columns = 10, .a_across = true, .kind = 3},
        {.batch = 1, .rows = 500, .depth = 99, .columns = 1000, .a_across = true, .kind = 3},
        {.batch = 1, .rows = 7, .depth = 2501, .columns = 10, .kind = 2},
        {.batch = 2, .rows = 5, .depth = 1003, .columns = 13, .b_across = true, .kind = 7},
        {.batch = 1, .rows = 9, .depth = 600, .columns = 16, .a_every_other = true, .wide = true, .kind = 6},
        {.batch = 3, .rows = 101, .depth = 16, .columns = 65, .kind = 4},
        {.batch = 1, .rows = 128, .depth = 7, .columns = 30, .a_across = true, .b_across = true, .wide = true,
         .kind = 4},
        {.batch = 1, .rows = 512, .depth = 512, .columns = 512, .kind = 0},
        {.batch = 1, .rows = 255, .depth = 257, .columns = 259, .kind = 5},
        {.batch = 12, .rows = 64, .depth = 48, .columns = 64, .b_across = true, .kind = 0},
        {.batch = 1, .rows = 100, .depth = 1000, .columns = 10, .kind = 8},
        {.batch = 1, .rows = 33, .depth = 1024, .columns = 16, .kind = 8},
        {.batch = 1, .rows = 301, .depth = 1000, .columns = 11, .kind = 8},
        {.batch = 1, .rows = 100, .depth = 1500, .columns = 1, .kind = 2},
        {.batch = 1, .rows = 129, .depth = 777, .columns = 3, .b_across = true, .kind = 8},
        {.batch = 1, .rows = 2, .depth = 512, .columns = 7, .wide = true, .kind = 8},
        {.batch = 1, .rows = 99, .depth = 783, .columns = 997, .kind = 1}, /* and with all of a in shared memory */
        {.batch = 1, .rows = 100, .depth = 300, .columns = 1000, .kind = 3},
        {.batch = 2, .rows = 60, .depth = 790, .columns = 500, .kind = 5},
        {.batch = 1, .rows = 97, .depth = 2001, .columns = 100, .kind = 0},
    };
    for (size_t i = 0; i < 2 * (sizeof shapes / sizeof *shapes); i++) {
        shape s = shapes[i / 2];
        s.tensor = i % 2;
        check(&s);
    }
}

static void test_extents_of_none(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++)
        for (int none = 0; none < 3; none++) {
            if (kind == 2 && none == 1)
                continue; /* rows of nothing have no largest element */
            shape s = {.batch = 1, .rows = 7, .columns = 5, .depth = 9, .kind = kind};
            *(none == 0 ? &s.rows : none == 1 ? &s.columns : &s.depth) = 0;
            check(&s);
        }
}

/* Infinities, NaN and numbers near the ends of the range go where multiplications and additions take them. */
static void test_not_finite(void **state)
{
    (void)state;
    enum { N = 256 };
    static float a[N * N], b[N * N], c[N * N];
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, 1e-38f};
    TN_SCOPE
    {
        for (int i = 0; i < N * N; i++) {
            a[i] = (float)(2 * test_random_double(&numbers) - 1);
            b[i] = (float)(2 * test_random_double(&numbers) - 1);
        }
        for (int i = 0; i < 5; i++) /* each in a row of its own */
            a[(20 * i + 3) * N + test_random_int(&numbers, 0, N - 1)] = odd[i];
        tn_array *x = tn_to(tn_from_host(a, TN_SHAPE(N, N), TN_FLOAT32), tn_cuda(0));
        tn_array *y = tn_to(tn_from_host(b, TN_SHAPE(N, N), TN_FLOAT32), tn_cuda(0));
        tn_set_matmul_precision(test_random_int(&numbers, 0, 1) ? TN_MATMUL_TF32X3 : TN_MATMUL_FLOAT32);
        assert_int_equal(tn_to_host(tn_matmul(x, y), c, sizeof c), TN_OK);
        for (int i = 0; i < N * N; i++) {
            double sum = 0, size = 0;
            for (int k = 0; k < N; k++) {
                sum += (double)a[i / N * N + k] * b[k * N + i % N];
                size += fabs((double)a[i / N * N + k] * b[k * N + i % N]);
            }
            if (isnan(sum) ? !isnan(c[i]) : isinf(sum) ? (double)c[i] != sum : !(fabs(c[i] - sum) <= 1e-6 * size))
                fail_msg("row %d, column %d: %g instead of %g", i / N, i % N, c[i], sum);
        }
    }
}

/* Minibatches of a dataset on the GPU, whose rows are read where they lie: times a matrix, and their transpose times
 * one. */
static void test_minibatches(void **state)
{
    (void)state;
    /* features, batch, columns */
    static const int64_t of[][3] = {{784, 100, 64}, {13, 7, 9}, {64, 128, 10}, {300, 129, 30}, {785, 33, 8}, {1, 5, 5},
                                    {784, 100, 1000}, {783, 99, 997}, {500, 60, 1000}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        TN_ON_DEVICE(tn_cpu()) TN_SCOPE
        {
            int64_t features = of[i][0], batch = of[i][1], columns = of[i][2], rows = 3 * batch - batch / 2, done = 0;
            tn_array *x = numbers_of(2, (int64_t[]){rows, features}, false),
                     *w = numbers_of(2, (int64_t[]){features, columns}, false);
            tn_array *g = numbers_of(2, (int64_t[]){batch, columns}, false);
            tn_array *on_gpu = tn_to(w, tn_cuda(0)), *g_on_gpu = tn_to(g, tn_cuda(0));
            tn_dataset *data = tn_dataset_arrays(x, tn_zeros(TN_SHAPE(rows), TN_INT64)); /* the loader frees it */
            tn_loader *loader = tn_loader_new(data, .batch = batch, .device = tn_cuda(0));
            for (tn_batch b; tn_loader_next(loader, &b); done += b.size)
                TN_SCOPE
                {
                    tn_array *rows_of = tn_slice_axis(x, 0, done, done + b.size, 1),
                             *part = tn_slice_axis(g, 0, 0, b.size, 1);
                    tn_array *y = tn_matmul(b.x, on_gpu),
                             *t = tn_matmul(tn_swapaxes(b.x, 0, 1), tn_slice_axis(g_on_gpu, 0, 0, b.size, 1));
                    assert_int_equal(tn_eval_all(2, (const tn_array *[]){y, t}), TN_OK);
                    /* sums of float32 would be as far from those of the GPU as these may be */
                    rows_of = tn_cast(rows_of, TN_FLOAT64);
                    part = tn_cast(part, TN_FLOAT64);
                    tn_array *there = tn_matmul(rows_of, tn_cast(w, TN_FLOAT64)),
                             *across = tn_matmul(tn_swapaxes(rows_of, 0, 1), part);
                    double here = tn_item(tn_max(tn_abs(tn_subtract(tn_to(y, tn_cpu()), there))));
                    double back = tn_item(tn_max(tn_abs(tn_subtract(tn_to(t, tn_cpu()), across))));
                    if (!(here <= 2e-6 * sqrt((double)features) && back <= 2e-6 * sqrt((double)batch)))
                        fail_msg("%lld features, minibatches of %lld: errors %g, %g: %s", (long long)features,
                                 (long long)batch, here, back, tn_error());
                }
            assert_int_equal(done, rows);
            tn_loader_free(loader);
        }
}

static tn_array *vector_product(int kind, tn_array *m, tn_array *v, tn_array *u)
{
    tn_array *every_other = tn_slice_axis(m, 1, 0, tn_dim(m, 1), 2);
    switch (kind) {
    case 0:
        return tn_matmul(m, v);
    case 1:
        return tn_matmul(u, m);
    case 2:
        return tn_matmul(tn_swapaxes(m, 0, 1), tn_reshape(u, TN_SHAPE(-1, 1)));
    case 3:
        return tn_matmul(tn_reshape(v, TN_SHAPE(1, -1)), tn_swapaxes(m, 0, 1));
    case 4:
        return tn_matmul(tn_reshape(m, TN_SHAPE(3, -1, tn_dim(m, 1))), v);
    case 5:
        return tn_matmul(tn_concatenate(2, (const tn_array *[]){every_other, every_other}, 0),
                         tn_slice_axis(v, 0, 0, tn_dim(v, 0), 2));
    default: /* of terms that are not negative, as a sum near zero has any error */
        return tn_matmul(tn_reshape(m, TN_SHAPE(-1)), tn_reshape(tn_multiply(m, tn_square(v)), TN_SHAPE(-1)));
    }
}

/* Large matrices times vectors, which are sums there, and their gradients. */
static void test_vectors(void **state)
{
    (void)state;
    for (int i = 0; i < 14; i++)
        TN_ON_DEVICE(tn_cpu()) TN_SCOPE
        {
            int kind = i % 7;
            bool wide = i >= 7;
            tn_array *from[] = {numbers_of(2, (int64_t[]){1503, 1403}, wide), numbers_of(1, (int64_t[]){1403}, wide),
                                numbers_of(1, (int64_t[]){1503}, wide)};
            tn_array *result[2][3];
            for (int there = 0; there < 2; there++) {
                tn_array *x[3], *gradient[2];
                for (int k = 0; k < 3; k++)
                    x[k] = tn_to(there ? from[k] : tn_cast(from[k], TN_FLOAT64), there ? tn_cuda(0) : tn_cpu());
                tn_array *vector = kind == 1 || kind == 2 ? x[2] : x[1];
                tn_requires_grad(x[0]);
                tn_requires_grad(vector);
                result[there][0] = vector_product(kind, x[0], x[1], x[2]);
                tn_array *y = tn_sum(tn_square(result[there][0]));
                if (tn_gradients(y, 2, (const tn_array *[]){x[0], vector}, false, gradient) != TN_OK)
                    fail_msg("kind %d: %s", kind, tn_error());
                for (int k = 0; k < 3; k++)
                    result[there][k] = tn_cast(tn_to(k ? gradient[k - 1] : result[there][0], tn_cpu()), TN_FLOAT64);
            }
            for (int k = 0; k < 3; k++) {
                double most = tn_item(tn_max(tn_abs(result[0][k])));
                double error = tn_item(tn_max(tn_abs(tn_subtract(result[1][k], result[0][k]))));
                if (!(error <= (wide ? 1e-13 : 5e-5) * most))
                    fail_msg("kind %d, %s, %s: largest %g, error %g: %s", kind, wide ? "float64" : "float32",
                             k ? "a gradient" : "the product", most, error, tn_error());
            }
        }
}

/* The same again: the same bits. */
static void test_repeatable(void **state)
{
    (void)state;
    shape s = {.batch = 1, .rows = 100, .columns = 130, .depth = 700, .kind = 1};
    TN_SCOPE
    {
        factors f = make(&s);
        int64_t first = evaluate(&s, &f, tn_cuda(0), false, results[0]);
        int64_t second = evaluate(&s, &f, tn_cuda(0), false, results[1]);
        assert_true(first > 0 && first == second);
        assert_memory_equal(results[0], results[1], (size_t)first * sizeof **results);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_kind_of_a_network),
                                       cmocka_unit_test(test_extents_of_none),
                                       cmocka_unit_test(test_random_products), cmocka_unit_test(test_minibatches),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_vectors), cmocka_unit_test(test_repeatable)};
    if (test_no_gpu())
        return TEST_SKIPPED;
    numbers = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
