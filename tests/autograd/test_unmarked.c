/* SPDX-License-Identifier: MIT */
/* Gradients that are differentiated in turn, by arrays that nobody marked: whatever is evaluated in between, in each of
 * the engine's modes, they are those by marked arrays, or an error. */
#include <tanso.h>

#include "helpers.h"
#include "support/device.h"

typedef tn_array *(*function)(const tn_array *x);

static tn_array *exponential(const tn_array *x) { return tn_exp(x); }
static tn_array *hyperbolic(const tn_array *x) { return tn_tanh(x); }
static tn_array *total(const tn_array *x) { return tn_square(tn_sum(x)); }
static tn_array *running(const tn_array *x) { return tn_cumsum(x, .axis = TN_AXES(1)); }
static tn_array *spread_of(const tn_array *x) { return tn_var(x, .axis = TN_AXES(1)); }
static tn_array *largest(const tn_array *x) { return tn_max(x, .axis = TN_AXES(1)); }
static tn_array *product(const tn_array *x) { return tn_matmul(x, x); }
static tn_array *inverse(const tn_array *x) { return tn_linalg_inv(x); }
static tn_array *shares(const tn_array *x) { return tn_softmax(x, 1); }
static tn_array *folded(const tn_array *x) { return tn_prod(x, .axis = TN_AXES(0)); }
static tn_array *flat(const tn_array *x) { return tn_reshape(x, TN_SHAPE(9)); }
static tn_array *transposed(const tn_array *x) { return tn_swapaxes(x, 0, 1); }
static tn_array *wide(const tn_array *x) { return tn_broadcast_to(x, TN_SHAPE(2, 3, 3)); }
static tn_array *narrow(const tn_array *x) { return tn_cast(tn_cast(x, TN_FLOAT32), TN_FLOAT64); }
static tn_array *chosen(const tn_array *x) { return tn_where(tn_greater(x, 0.5), x, tn_negative(x)); }
static tn_array *deep(const tn_array *x) { return tn_tanh(tn_matmul(tn_tanh(tn_matmul(x, x)), x)); }
static tn_array *late(const tn_array *x) { return tn_slice_axis(tn_multiply(x, 2), 0, 1, 3, 1); }

static const function functions[] = {exponential, hyperbolic, total,  running,    spread_of, largest, product, inverse,
                                     shares,      folded,     flat,   transposed, wide,      narrow,  chosen,  late,
                                     deep};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

enum { READ_F = 1, READ_Y = 2, READ_G = 4, READ_PENALTY = 8, READINGS = 16 };

static tn_array *matrix(void)
{
    tn_array *x = tn_add(spread(TN_SHAPE(3, 3), 0.1, 0.9, 0), tn_eye(3, 3, .dtype = TN_FLOAT64));
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

/* The gradients, by x and w, of |dy/dx|^2 + w sum(y): out[2]. w is marked or not as x is. */
static void second(function f, int readings, const tn_array *from, bool marked, tn_array **out)
{
    tn_array *x = tn_multiply(from, 1.0), *w = tn_scalar(0.7, .dtype = TN_FLOAT64), *g;
    assert_int_equal(tn_eval(x), TN_OK);
    if (marked) {
        tn_requires_grad(x);
        tn_requires_grad(w);
    }
    tn_array *part = f(x), *y = tn_add(tn_sum(tn_multiply(part, part)), tn_sum(tn_exp(x)));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, true, &g), TN_OK);
    if (readings & READ_F)
        assert_int_equal(tn_eval(part), TN_OK);
    if (readings & READ_Y)
        assert_int_equal(tn_eval(y), TN_OK);
    if (readings & READ_G)
        assert_int_equal(tn_eval(g), TN_OK);
    tn_array *penalty = tn_sum(tn_multiply(g, g));
    if (readings & READ_PENALTY)
        assert_int_equal(tn_eval(penalty), TN_OK);
    tn_array *sum = tn_add(penalty, tn_multiply(w, y));
    assert_int_equal(tn_gradients(sum, 2, (const tn_array *[]){x, w}, false, out), TN_OK);
}

/* Of all functions from `first` on; a GPU, which has no reference evaluator, compiles each plan: of the last function
 * alone, and all or nothing read. */
static void compare(const char *mode, int first)
{
    bool all = test_same_bits();
    for (int k = all ? first : FUNCTIONS - 1; k < FUNCTIONS; k++)
        for (int readings = 0; readings < READINGS; readings += all ? 1 : READINGS - 1) TN_SCOPE {
            tn_array *x = matrix(), *marked[2], *unmarked[2];
            second(functions[k], readings, x, true, marked);
            second(functions[k], readings, x, false, unmarked);
            for (int i = 0; i < 2; i++)
                if (!tn_allclose(unmarked[i], marked[i], .rtol = 1e-9, .atol = 1e-9))
                    fail_msg("%s: function %d, readings %d, gradient %d", mode, k, readings, i);
        }
}

static void test_evaluated(void **state)
{
    (void)state;
    compare("as set", 0);
}

static void test_modes(void **state)
{
    (void)state;
    tn_set_fusion(false);
    compare("without fusion", 0);
    tn_set_fusion(true);
    tn_set_memory_planning(false);
    compare("without planned memory", 0);
    tn_set_memory_planning(true);
}

/* Of the last function alone, as each of its plans is compiled. */
static void test_compiled(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_AUTO);
    compare("auto", FUNCTIONS - 1);
    tn_set_compile(TN_COMPILE_ALWAYS);
    compare("compiled", FUNCTIONS - 1);
    tn_set_compile(TN_COMPILE_NEVER);
}

/* d^3 exp(2x)/dx^3, each read before the next is taken. */
static void test_third(void **state)
{
    (void)state;
    tn_array *x = tn_scalar(0.5, .dtype = TN_FLOAT64), *y = tn_exp(tn_multiply(x, 2));
    for (int order = 1; order < 5; order++) {
        tn_array *g;
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, true, &g), TN_OK);
        assert_values(g, 1, (double[]){(1 << order) * 2.718281828459045}, 1e-12 * (1 << order));
        y = g;
    }
    assert_false(tn_has_grad(x));
}

/* By x, and by u = exp(x) or y itself, which get values in between: y = x u^2 has y' = (1 + 2x) u^2 and
 * y'' = (4 + 4x) u^2, y'^2 the derivative 2 y' y'', and (y y')^2 has 2 y y' (y'^2 + y y''). */
static void test_on_the_way(void **state)
{
    (void)state;
    for (int by_y = 0; by_y < 2; by_y++)
        for (int evaluated = 0; evaluated < 2; evaluated++) {
            tn_array *x = tn_scalar(0.5, .dtype = TN_FLOAT64), *u = tn_exp(x), *g[2], *h;
            tn_array *y = tn_multiply(tn_square(u), x);
            const tn_array *by[2] = {x, by_y ? y : u};
            assert_int_equal(tn_gradients(y, 2, by, true, g), TN_OK);
            if (evaluated)
                assert_int_equal(tn_eval_all(2, (const tn_array *[]){u, y}), TN_OK);
            tn_array *again = by_y ? tn_multiply(y, g[0]) : g[0];
            assert_int_equal(tn_gradients(tn_square(again), 1, (const tn_array *[]){x}, false, &h), TN_OK);
            double e = 2.718281828459045, first = 2 * e, second = 6 * e; /* of y, at 0.5; y itself is e / 2 */
            assert_values(h, 1, (double[]){by_y ? 2 * (e / 2 * first) * (first * first + e / 2 * second)
                                                : 2 * first * second}, 1e-12 * (by_y ? 1000 : 100));
        }
}

/* Nobody marked a leaf: backward has nothing to give a gradient to, as before. */
static void test_no_leaf(void **state)
{
    (void)state;
    tn_array *x = matrix(), *y = tn_sum(tn_exp(x)), *g;
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, true, &g), TN_OK);
    assert_int_equal(tn_backward(y), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_requires_grad");
    assert_int_equal(tn_eval(g), TN_OK);
    assert_int_equal(tn_backward(tn_sum(g)), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_requires_grad");
    assert_false(tn_has_grad(x));
    /* a marked array beside it has all of its own */
    tn_array *w = tn_requires_grad(tn_scalar(3, .dtype = TN_FLOAT64)), *z = tn_multiply(tn_multiply(w, w), y);
    assert_int_equal(tn_gradients(z, 1, (const tn_array *[]){x}, true, &g), TN_OK);
    assert_int_equal(tn_eval(g), TN_OK);
    assert_int_equal(tn_backward(tn_sum(g)), TN_OK);
    assert_values(tn_grad(w), 1, (double[]){6 * tn_item(y)}, 1e-9);
}

/* ---- what is recorded as a value alone, as nobody asked for more before: an error, not a part of the gradient ---- */

static tn_array *sorted(const tn_array *x) { return tn_sort(x, .axis = TN_AXES(1)); }
static tn_array *products(const tn_array *x) { return tn_cumprod(x, .axis = TN_AXES(1)); }
static tn_array *middle(const tn_array *x) { return tn_median(x); }
static tn_array *rows(const tn_array *x) { return tn_slice_axis(x, 0, 1, 3, 1); }
static tn_array *row(const tn_array *x) { return tn_index(x, 1); }
static tn_array *flipped(const tn_array *x) { return tn_flip(x, TN_AXES(1)); }

static void test_refused(void **state)
{
    (void)state;
    static const function unfollowed[] = {sorted, products, middle, rows, row, flipped};
    for (size_t k = 0; k < sizeof unfollowed / sizeof *unfollowed; k++) TN_SCOPE {
        tn_array *x = matrix(), *part = unfollowed[k](x), *g;
        tn_array *y = tn_add(tn_sum(tn_multiply(part, part)), tn_sum(tn_exp(x)));
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, k & 1, &g), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "tn_requires_grad");
        tn_requires_grad(x);
        part = unfollowed[k](x);
        y = tn_add(tn_sum(tn_multiply(part, part)), tn_sum(tn_exp(x)));
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, k & 1, &g), TN_OK);
    }
}

/* Parts of what is itself walked backwards. */
static void test_of_flipped(void **state)
{
    (void)state;
    tn_array *x = tn_flip(matrix(), TN_AXES(0, 1)), *g;
    assert_int_equal(tn_eval(x), TN_OK);
    tn_array *parts[] = {tn_index(x, 1), tn_flip(x, TN_AXES(0)), tn_get(x, TN_RANGE(0, 2, 1), TN_RANGE(1, 3, 1))};
    for (int i = 0; i < 3; i++) {
        tn_array *y = tn_add(tn_sum(tn_square(parts[i])), tn_sum(tn_exp(x)));
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, false, &g), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "tn_requires_grad");
    }
}

/* Parts of one table, of which one is not the other's, and constants made of x on purpose. */
static void test_not_refused(void **state)
{
    (void)state;
    tn_array *table = matrix(), *g;
    tn_array *x = tn_slice_axis(table, 1, 0, 2, 1), *other = tn_slice_axis(table, 1, 2, 3, 1);
    tn_array *y = tn_sum(tn_square(tn_subtract(x, other)));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, false, &g), TN_OK);
    assert_true(tn_allclose(g, tn_multiply(tn_subtract(x, other), 2), .rtol = 1e-12));
    tn_array *constant = NULL;
    TN_NO_GRAD constant = tn_slice_axis(table, 0, 0, 1, 1);
    y = tn_sum(tn_multiply(table, constant));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){table}, false, &g), TN_OK);
    assert_true(tn_allclose(g, tn_broadcast_to(constant, TN_SHAPE(3, 3)), .rtol = 1e-12));
    y = tn_sum(tn_multiply(table, tn_detach(tn_slice_axis(table, 0, 0, 1, 1))));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){table}, false, &g), TN_OK);
    /* whole numbers that sorting gives are no path */
    y = tn_sum(tn_multiply(table, tn_cast(tn_argsort(table, .axis = TN_AXES(1)), TN_FLOAT64)));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){table}, false, &g), TN_OK);
}

/* What is to be differentiated again must have been recorded for it. */
static void test_without_recording(void **state)
{
    (void)state;
    tn_array *x = matrix(), *y = NULL, *g;
    TN_NO_GRAD y = tn_sum(tn_exp(x));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, true, &g), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "TN_NO_GRAD");
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, false, &g), TN_OK);
    assert_true(tn_allclose(g, tn_exp(x), .rtol = 1e-12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_evaluated), TEST(test_modes),       TEST(test_compiled),
                                       TEST(test_third),     TEST(test_on_the_way),  TEST(test_no_leaf),
                                       TEST(test_refused),   TEST(test_of_flipped),  TEST(test_not_refused),
                                       TEST(test_without_recording)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
