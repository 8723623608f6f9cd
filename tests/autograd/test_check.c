/* SPDX-License-Identifier: MIT */
/* The gradient checks find wrong gradients, first and second, and say what they compared. */
#include "autograd/helpers.h"

#include <string.h>

static tn_array *right(int count, tn_array *const *xs, void *user)
{
    (void)user;
    return count == 2 ? tn_multiply(tn_sin(xs[0]), tn_exp(xs[1])) : tn_sin(xs[0]);
}

/* Backward takes half of the function for a constant. */
static tn_array *wrong(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_multiply(tn_detach(xs[0]), xs[0]);
}

/* x³ / 3, in a form whose derivative is x'² for a constant x' = x: right, but no more
 * differentiable. */
static tn_array *wrong_later(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    tn_array *constant = tn_detach(xs[0]), *cube = tn_multiply(constant, tn_square(constant));
    return tn_subtract(tn_multiply(tn_square(constant), xs[0]), tn_divide(cube, 1.5));
}

static tn_array *integers(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_argmax(xs[0]);
}

static tn_array *broken(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_add(xs[0], tn_zeros(TN_SHAPE(77)));
}

static tn_array *unrelated(int count, tn_array *const *xs, void *user)
{
    (void)user;
    return tn_sin(xs[count - 1]);
}

static void test_right(void **state)
{
    (void)state;
    const tn_array *xs[] = {spread(TN_SHAPE(3, 1), -2, 2, 0), spread(TN_SHAPE(4), -1, 1, 1)};
    assert_int_equal(tn_check_backward(right, NULL, 2, xs), TN_OK);
    assert_int_equal(tn_check_double_backward(right, NULL, 2, xs), TN_OK);
    /* float32 inputs are checked in float64 all the same; an input without influence has the
     * gradient 0. */
    const tn_array *narrow[] = {tn_cast(xs[0], TN_FLOAT32), xs[1]};
    assert_int_equal(tn_check_backward(right, NULL, 2, narrow, .rtol = 1e-6, .atol = 1e-9), TN_OK);
    assert_int_equal(tn_check_backward(unrelated, NULL, 2, xs), TN_OK);
    assert_int_equal(tn_check_double_backward(unrelated, NULL, 2, xs), TN_OK);
    assert_false(tn_needs_grad(xs[0]));
    TN_NO_GRAD assert_int_equal(tn_check_backward(right, NULL, 1, xs), TN_OK);
}

static void test_wrong(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(5), 0.5, 2, 0);
    assert_int_equal(tn_check_backward(wrong, NULL, 1, &x, .seed = test_seed()), TN_ERR_VALUE);
    assert_error(TN_ERR_VALUE, "slope");
}

static void test_wrong_second(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(5), 0.5, 2, 0);
    assert_int_equal(tn_check_backward(wrong_later, NULL, 1, &x, .seed = test_seed()), TN_OK);
    assert_int_equal(tn_check_double_backward(wrong_later, NULL, 1, &x, .seed = test_seed()),
                     TN_ERR_VALUE);
    assert_error(TN_ERR_VALUE, "second");
}

static void test_refused(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(5), 0.5, 2, 0), *whole = random_indices(TN_SHAPE(3), 0, 9);
    assert_int_equal(tn_check_backward(right, NULL, 1, &whole), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "floating input");
    assert_int_equal(tn_check_backward(integers, NULL, 1, &x), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "int64");
    assert_int_equal(tn_check_double_backward(broken, NULL, 1, &x), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "(77,)");
    assert_int_equal(tn_check_backward(right, NULL, 0, &x), TN_ERR_VALUE);
    assert_error(TN_ERR_VALUE, "at least one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_right), TEST(test_wrong), TEST(test_wrong_second),
                                       TEST(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
