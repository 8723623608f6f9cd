/* SPDX-License-Identifier: MIT */
/* What was recorded without gradients is a constant for all gradients, whichever arrays are marked. */
#include <tanso.h>

#include "helpers.h"
#include "support/device.h"

/* ---- functions recorded so ---- */

typedef tn_array *(*function)(const tn_array *x);

static tn_array *twice(const tn_array *x) { return tn_multiply(x, 2); }
static tn_array *square(const tn_array *x) { return tn_multiply(x, x); }
static tn_array *exponential(const tn_array *x) { return tn_exp(x); }
static tn_array *total(const tn_array *x) { return tn_sum(x); }
static tn_array *largest(const tn_array *x) { return tn_max(x, .axis = TN_AXES(1), .keepdims = true); }
static tn_array *shares(const tn_array *x) { return tn_softmax(x, 1); }
static tn_array *product(const tn_array *x) { return tn_matmul(x, x); }
static tn_array *inverse(const tn_array *x) { return tn_linalg_pinv(x); }
static tn_array *sorted(const tn_array *x) { return tn_sort(x, .axis = TN_AXES(1)); }
static tn_array *running(const tn_array *x) { return tn_cumsum(x, .axis = TN_AXES(1)); }
static tn_array *turned(const tn_array *x) { return tn_swapaxes(x, 0, 1); }
static tn_array *part(const tn_array *x) { return tn_slice_axis(x, 0, 1, 2, 1); }
static tn_array *narrow(const tn_array *x) { return tn_cast(tn_cast(x, TN_FLOAT32), TN_FLOAT64); }
static tn_array *chosen(const tn_array *x) { return tn_where(tn_greater(x, 0.5), x, tn_negative(x)); }
static tn_array *pushed(const tn_array *x)
{
    tn_no_grad_push();
    tn_array *y = tn_sqrt(x);
    tn_no_grad_pop(); /* what encloses it goes on */
    return tn_multiply(y, x);
}

static const function functions[] = {twice,   square,  exponential, total,  largest, shares, product, inverse,
                                     sorted,  running, turned,      part,   narrow,  chosen, pushed};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static tn_array *matrix(void) { return tn_add(spread(TN_SHAPE(3, 3), 0.1, 1, 0), tn_eye(3, 3, .dtype = TN_FLOAT64)); }

/* a f(a) + b for {a, b}: f(a) and 1, and by backward the same. */
static void test_functions(void **state)
{
    (void)state;
    for (int k = 0; k < FUNCTIONS; k++)
        for (int i = 0; i < 8; i++) TN_SCOPE {
            tn_array *a = matrix(), *b = tn_scalar(5, .dtype = TN_FLOAT64), *c = NULL, *g[2], *gg;
            assert_int_equal(tn_eval(a), TN_OK);
            if (i & 1)
                tn_requires_grad(a);
            if (i & 2)
                tn_requires_grad(b);
            TN_NO_GRAD c = functions[k](a);
            if (i & 4)
                assert_int_equal(tn_eval(c), TN_OK);
            tn_array *y = tn_add(tn_sum(tn_multiply(tn_multiply(a, a), c)), b);
            assert_int_equal(tn_gradients(y, 2, (const tn_array *[]){a, b}, true, g), TN_OK);
            tn_array *wanted = tn_multiply(tn_multiply(tn_detach(a), 2), tn_detach(c));
            if (!tn_allclose(g[0], wanted, .rtol = 1e-12))
                fail_msg("function %d, way %d", k, i);
            assert_values(g[1], 1, (double[]){1}, 0);
            /* once more: 2 f(a) */
            assert_int_equal(tn_gradients(tn_sum(g[0]), 1, (const tn_array *[]){a}, false, &gg), TN_OK);
            wanted = tn_multiply(tn_broadcast_to(tn_detach(c), tn_shape_of(a)), 2);
            if (!tn_allclose(gg, wanted, .rtol = 1e-12))
                fail_msg("function %d, way %d, second gradient", k, i);
        }
}

/* ---- views of views, which pass over them where nothing ends there ---- */

static tn_array *flat(const tn_array *x) { return tn_reshape(x, TN_SHAPE(9)); }
static tn_array *square_again(const tn_array *x) { return tn_reshape(x, TN_SHAPE(3, 3)); }
static tn_array *stacked(const tn_array *x) { return tn_broadcast_to(x, TN_SHAPE(1, 3, 3)); }
static tn_array *first(const tn_array *x) { return tn_slice_axis(x, 0, 0, 1, 1); }

/* The sum of outer(inner(a)) and a, and b, of which `inner` alone is recorded without gradients. */
static void test_views(void **state)
{
    (void)state;
    static const struct {
        function inner, outer;
    } views[] = {{turned, turned}, {flat, square_again}, {stacked, first}, {part, turned}, {flat, flat}};
    for (size_t k = 0; k < sizeof views / sizeof *views; k++)
        for (int i = 0; i < 8; i++) TN_SCOPE {
            tn_array *a = matrix(), *b = tn_scalar(5, .dtype = TN_FLOAT64), *c = NULL, *g[2];
            if (i & 4)
                assert_int_equal(tn_eval(a), TN_OK);
            if (i & 1)
                tn_requires_grad(a);
            if (i & 2)
                tn_requires_grad(b);
            TN_NO_GRAD c = views[k].inner(a);
            tn_array *y = tn_add(tn_add(tn_sum(views[k].outer(c)), tn_sum(a)), b);
            assert_int_equal(tn_gradients(y, 2, (const tn_array *[]){a, b}, false, g), TN_OK);
            if (!tn_item(tn_all(tn_equal(g[0], 1))) || tn_item(g[1]) != 1)
                fail_msg("views %d, way %d", (int)k, i);
            if (i & 1) {
                assert_int_equal(tn_backward(y), TN_OK);
                assert_true(tn_item(tn_all(tn_equal(tn_grad(a), 1))));
            }
        }
}

/* The same graph by tn_backward, which goes by marks, and by tn_gradients, which does not as `other` has none. */
static void compare(const char *what, tn_array *x, tn_array *y)
{
    tn_array *other = tn_scalar(5, .dtype = TN_FLOAT64), *g[2];
    y = tn_add(y, other);
    assert_int_equal(tn_gradients(y, 2, (const tn_array *[]){x, other}, false, g), TN_OK);
    assert_int_equal(tn_backward(y), TN_OK);
    if (!tn_allclose(g[0], tn_grad(x), .rtol = 1e-12))
        fail_msg("%s", what);
    assert_values(g[1], 1, (double[]){1}, 0);
}

static tn_array *weighted(const tn_array *y)
{
    return tn_sum(tn_multiply(y, spread(tn_shape_of(y), 0.5, 2, 1)));
}

static void test_layers(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int training = 0; training < 2; training++) TN_SCOPE {
            tn_array *x = tn_requires_grad(spread(TN_SHAPE(6, 4), -1, 1, 0)), *target = NULL;
            tn_layer *net = kind == 0   ? tn_sequential(tn_linear(4, .dtype = TN_FLOAT64), tn_tanh_layer())
                            : kind == 1 ? tn_batch_norm(4, .dtype = TN_FLOAT64)
                            : kind == 2 ? tn_batch_norm(4, .dtype = TN_FLOAT64, .rmax = 1.1, .dmax = 0.1)
                                        : tn_sequential(tn_dropout(0.5), tn_linear(4, .dtype = TN_FLOAT64));
            tn_layer_train(net, training);
            TN_NO_GRAD target = tn_forward(net, x); /* as a network's own output that it is to learn */
            compare("layers", x, weighted(tn_square(tn_subtract(tn_forward(net, x), tn_multiply(target, 0.5)))));
            tn_layer_free(net);
        }
}

/* Library functions that take something for a constant themselves. */
static void test_within(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) TN_SCOPE {
        tn_array *x = tn_requires_grad(matrix()), *y;
        y = k == 0   ? tn_gumbel_softmax(x, 0.5, 1, true, NULL)
            : k == 1 ? tn_logsumexp(x, .axis = TN_AXES(1))
            : k == 2 ? tn_log_softmax(x, 1)
            : k == 3 ? tn_linalg_pinv(x)
                     : tn_linalg_pinv(tn_matmul(x, tn_swapaxes(x, 0, 1)), .hermitian = true);
        compare("functions", x, weighted(y));
    }
}

/* ---- nothing else leads there ---- */

static void test_nothing_else(void **state)
{
    (void)state;
    tn_array *a = tn_scalar(3, .dtype = TN_FLOAT64), *b = tn_scalar(5, .dtype = TN_FLOAT64), *c = NULL, *g[2];
    TN_NO_GRAD c = tn_square(a);
    /* of one alone it is gone through while it has no value */
    assert_int_equal(tn_gradients(c, 1, (const tn_array *[]){a}, false, g), TN_OK);
    assert_values(g[0], 1, (double[]){6}, 0);
    /* beside another, which is reached, it is a constant, on which nothing depends */
    assert_int_equal(tn_gradients(tn_add(c, b), 2, (const tn_array *[]){a, b}, false, g), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "TN_NO_GRAD");
    /* gradients without create_graph are constants of what is computed with them */
    assert_int_equal(tn_gradients(tn_square(a), 1, (const tn_array *[]){a}, false, g), TN_OK);
    tn_array *y = tn_add(tn_multiply(a, g[0]), b);
    assert_int_equal(tn_gradients(y, 2, (const tn_array *[]){a, b}, false, g), TN_OK);
    assert_values(g[0], 1, (double[]){6}, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_functions), TEST(test_views), TEST(test_layers),
                                       TEST(test_within), TEST(test_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
