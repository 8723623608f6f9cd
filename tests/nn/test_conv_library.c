/* SPDX-License-Identifier: MIT */
/* Convolutions by a device's library: large enough to be cut into pieces, of operands that lie anyhow, against products
 * of windows in float64; the device's own way beside it, and what the library refuses. */
#include "check.h"

#include "device/program.h"
#include "engine/plans.h"
#include "ops/ops.h"

typedef struct problem {
    int axes;
    int64_t n, in, out, groups, extent, kernel, step, pad, spread;
} problem;

static tn_shape shape_of(int64_t first, int64_t second, int axes, int64_t extent)
{
    tn_shape shape = {.ndim = 2 + axes, .dim = {first, second}};
    for (int i = 0; i < axes; i++)
        shape.dim[2 + i] = extent;
    return shape;
}

static tn_array *conv(const problem *p, const tn_array *x, const tn_array *w)
{
    return tn_conv(x, w, .stride = TN_SHAPE(p->step), .pad = TN_SHAPE(p->pad), .dilation = TN_SHAPE(p->spread),
                   .groups = p->groups);
}

enum { Y, BY_X, BY_W, VALUES };

/* The result and both gradients, evaluated. `turned`: the data lie with channels last, and all elements of the result's
 * gradient are one number. */
static void compute(const problem *p, tn_dtype dtype, tn_array *const in[3], bool turned, tn_array *out[VALUES])
{
    tn_array *x = tn_cast(in[0], dtype), *g = tn_cast(in[2], dtype);
    if (turned) {
        x = tn_moveaxis(x, TN_AXES(1), TN_AXES(-1));
        assert_int_equal(tn_eval(x), TN_OK);
        x = tn_moveaxis(x, TN_AXES(-1), TN_AXES(1));
    }
    x = tn_requires_grad(tn_detach(x));
    tn_array *w = tn_requires_grad(tn_cast(in[1], dtype)), *y = conv(p, x, w);
    assert_int_equal(tn_backward(tn_sum(turned ? tn_multiply(y, 0.5) : tn_multiply(y, g))), TN_OK);
    tn_array *all[VALUES] = {y, tn_grad(x), tn_grad(w)};
    for (int i = 0; i < VALUES; i++) {
        out[i] = all[i];
        assert_int_equal(tn_eval(out[i]), TN_OK);
    }
}

/* |got - want| <= 1e-4 of the largest, everywhere: sums of some thousand products of float32. */
static void near(const tn_array *got, const tn_array *want, const char *what)
{
    tn_array *apart = tn_subtract(tn_cast(got, TN_FLOAT64), want);
    double most = tn_item(tn_max(tn_abs(want))), worst = tn_item(tn_max(tn_abs(apart)));
    if (!(worst <= 1e-4 * (1 + most)))
        fail_msg("%s%s: %g apart where the largest is %g", check_context, what, worst, most);
}

static bool same_bits(const tn_array *a, const tn_array *b) { return tn_item(tn_all(tn_equal(a, b))); }

static void check_problem(const problem *p, bool turned)
{
    static const char *const names[] = {"y", "gradient by x", "gradient by w"};
    tn__capabilities *device = &tn__device_current()->capabilities;
    bool there = device->convolutions;
    tn_array *x = tn_random_normal(shape_of(p->n, p->in, p->axes, p->extent));
    tn_array *w = tn_random_normal(shape_of(p->out, p->in / p->groups, p->axes, p->kernel));
    tn_array *g = tn_random_normal(tn_shape_of(conv(p, x, w)));
    tn_array *in[] = {x, w, g}, *want[VALUES], *got[VALUES];
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_eval(in[i]), TN_OK);
    compute(p, TN_FLOAT64, in, turned, want);
    compute(p, TN_FLOAT32, in, turned, got);
    tn_set_threads(1);
    tn_array *alone[VALUES], *windows[VALUES];
    compute(p, TN_FLOAT32, in, turned, alone);
    tn_set_threads(3);
    device->convolutions = false;
    tn__plans_clear();
    compute(p, TN_FLOAT32, in, turned, windows);
    device->convolutions = there;
    tn__plans_clear();
    for (int i = 0; i < VALUES; i++) {
        near(got[i], want[i], names[i]);
        near(windows[i], want[i], names[i]);
        if (!same_bits(got[i], alone[i]))
            fail_msg("%s%s: other bits with one thread", check_context, names[i]);
    }
}

/* Pieces of images with a smaller last one, of channels where there are few images; groups, depthwise; one to three
 * axes; weights' gradients as partial sums and by channels. */
static void test_pieces(void **state)
{
    (void)state;
    static const problem problems[] = {
        {2, 37, 3, 20, 1, 12, 5, 1, 0, 1}, {2, 9, 20, 50, 1, 9, 3, 2, 1, 1}, {2, 1, 40, 72, 1, 14, 3, 1, 1, 1},
        {2, 2, 64, 33, 1, 7, 1, 1, 0, 1},  {2, 5, 12, 18, 6, 10, 3, 1, 2, 2}, {2, 7, 16, 16, 16, 11, 3, 2, 1, 1},
        {1, 11, 17, 34, 1, 40, 7, 3, 3, 2}, {3, 3, 8, 10, 2, 7, 3, 1, 1, 1},
    };
    tn_set_compile(TN_COMPILE_NEVER);
    tn_set_threads(3);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        TN_SCOPE {
            char context[32];
            snprintf(context, sizeof context, "problem %zu: ", i);
            check_context = context;
            check_problem(&problems[i], i % 2);
            check_context = "";
        }
    tn_set_threads(0);
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

static bool is_step(const tn_array *x, const char *name)
{
    char *plan = tn_plan_describe(x);
    assert_non_null(plan);
    bool found = strstr(plan, name);
    tn_string_free(plan);
    return found;
}

/* Whether the device has a library: whether a convolution could be a step of its own. */
static bool has_library(void)
{
    tn__device *device = tn__device_current();
    tn__operand operand[] = {{.dtype = TN_FLOAT32, .ndim = 4, .dim = {2, 4, 6, 6}, .stride = {144, 36, 6, 1}},
                             {.dtype = TN_FLOAT32, .ndim = 4, .dim = {2, 3, 8, 8}, .stride = {192, 64, 8, 1}},
                             {.dtype = TN_FLOAT32, .ndim = 4, .dim = {4, 3, 3, 3}, .stride = {27, 9, 3, 1}}};
    int64_t param[] = {1, 1, 1, 0, 1, 1, 0};
    tn__step step = {.kind = TN__STEP_CONVOLUTION, .op = TN__OP_CONVOLVE, .compute = TN_FLOAT32, .operand_count = 3,
                     .output_count = 1, .operand = operand, .param = param, .param_count = 7};
    return device->capabilities.convolutions && device->ops->convolves(device, &step);
}

/* Where a device has a library, its steps are in the plan, in both modes; not of other dtypes, nor of what it refuses:
 * a transpose whose padding of the result is more than a stride. */
static void test_plan(void **state)
{
    (void)state;
    static const tn_compile_mode modes[] = {TN_COMPILE_NEVER, TN_COMPILE_ALWAYS};
    bool there = has_library();
    for (int m = 0; m < 2; m++)
        TN_SCOPE {
            tn_set_compile(modes[m]);
            tn_array *x = tn_random_normal(TN_SHAPE(2, 3, 8, 8)), *w = tn_random_normal(TN_SHAPE(4, 3, 3, 3));
            assert_int_equal(tn_eval(x) | tn_eval(w), TN_OK);
            assert_int_equal(is_step(tn_relu(tn_conv(x, w)), "convolve "), there);
            assert_int_equal(is_step(tn_conv_transpose(tn_conv(x, w), w), "convolve_data"), there);
            assert_false(is_step(tn_conv(tn_cast(x, TN_FLOAT64), tn_cast(w, TN_FLOAT64)), "convolve "));
            tn_array *wide = tn_conv_transpose(x, tn_random_normal(TN_SHAPE(3, 2, 2, 2)), .dilation = TN_SHAPE(3),
                                               .output_pad = TN_SHAPE(2));
            assert_int_equal(tn_dim(wide, 2), 8 + 3 + 2);
            assert_false(is_step(wide, "convolve_data"));
            assert_int_equal(tn_item(tn_sum(tn_abs(tn_slice_axis(wide, 2, 11, 13, 1)))), 0);
        }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* Of no pictures there are no results, and weights have gradients of zeros. */
static void test_empty(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_zeros(TN_SHAPE(0, 3, 8, 8)));
        tn_array *w = tn_requires_grad(tn_ones(TN_SHAPE(4, 3, 3, 3))), *y = tn_conv(x, w, .stride = TN_SHAPE(2));
        assert_int_equal(tn_dim(y, 0), 0);
        assert_int_equal(tn_dim(y, 1), 4);
        assert_int_equal(tn_dim(y, 3), 3);
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_int_equal(tn_dim(tn_grad(w), 0), 4);
        assert_true(tn_item(tn_sum(tn_abs(tn_grad(w)))) == 0);
        assert_int_equal(tn_size(tn_grad(x)), 0);
        assert_int_equal(tn_eval(tn_grad(x)), TN_OK);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_empty)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
