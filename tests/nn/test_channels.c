/* SPDX-License-Identifier: MIT */
/*
 * Convolutions whose arrays lie with their channels last, where a device wants it: chains of what may stand between two
 * of them, drawn anew each time, with their gradients, against the CPU's. All numbers are small integers, so that
 * neither TF32 nor the order of a sum rounds any. And what the plan of a chain copies.
 */
#include "check.h"

#include "device/device.h"

enum { CHANNELS = 8, MOST_BETWEEN = 4 };

/* ---- what may stand between ---- */

static tn_array *reversed_sum(tn_array *x) { return tn_add(x, tn_flip(x, TN_AXES(3))); }
static tn_array *rectified(tn_array *x) { return tn_relu(x); }
static tn_array *largest(tn_array *x)
{
    return tn_dim(x, 2) < 2 || tn_dim(x, 3) < 2 ? x : tn_max_pool(x, TN_SHAPE(2), .stride = TN_SHAPE(1));
}
static tn_array *framed(tn_array *x)
{
    const int64_t width[][2] = {{0, 0}, {0, 0}, {1, 0}, {2, 1}};
    return tn_pad(x, width);
}
static tn_array *by_channel(tn_array *x)
{
    tn_array *odd = tn_remainder(tn_arange(0, CHANNELS, 1, .dtype = TN_INT64, .device = tn_device_of(x)), 3);
    x = tn_moveaxis(x, TN_AXES(1), TN_AXES(-1));
    return tn_moveaxis(tn_multiply(x, tn_cast(odd, tn_dtype_of(x))), TN_AXES(-1), TN_AXES(1));
}
static tn_array *along_places(tn_array *x)
{
    tn_shape shape = tn_shape_of(x);
    return tn_reshape(tn_flip(tn_reshape(x, TN_SHAPE(shape.dim[0], CHANNELS, -1)), TN_AXES(-1)), shape);
}
static tn_array *below_largest(tn_array *x)
{
    return tn_subtract(x, tn_detach(tn_max(x, .axis = TN_AXES(2, 3), .keepdims = true)));
}
static tn_array *halves(tn_array *x)
{
    tn_array *low = tn_slice_axis(x, 1, 0, 3, 1), *high = tn_slice_axis(x, 1, 3, CHANNELS, 1);
    return tn_concatenate(TN_ARRAYS(high, tn_relu(low)), 1);
}
static tn_array *every_second(tn_array *x) { return tn_slice_axis(x, 2, 0, tn_dim(x, 2), 2); }
static tn_array *of_groups(tn_array *x)
{
    tn_shape s = tn_shape_of(x);
    tn_array *groups = tn_reshape(x, TN_SHAPE(s.dim[0], 2, CHANNELS / 2, s.dim[2], s.dim[3]));
    return tn_reshape(tn_subtract(groups, tn_sum(groups, .axis = TN_AXES(1), .keepdims = true)), s);
}
static tn_array *plus_position(tn_array *x)
{
    tn_array *at = tn_argmax(tn_detach(x), .axis = TN_AXES(3), .keepdims = true);
    return tn_add(x, tn_cast(tn_remainder(at, 3), tn_dtype_of(x)));
}
static tn_array *sorted(tn_array *x) { return tn_add(x, tn_detach(tn_sort(tn_detach(x), .axis = TN_AXES(1)))); }

static const struct {
    const char *name;
    tn_array *(*of)(tn_array *x);
} between[] = {{"reversed_sum", reversed_sum}, {"relu", rectified},         {"max_pool", largest},
               {"pad", framed},                {"by_channel", by_channel},  {"along_places", along_places},
               {"below_largest", below_largest}, {"halves", halves},        {"every_second", every_second},
               {"of_groups", of_groups},       {"plus_position", plus_position}, {"sort", sorted}};

/* ---- chains ---- */

enum { X, FIRST, SECOND, INPUTS, VALUES = INPUTS + 2 };

typedef struct chain {
    tn_array *in[INPUTS]; /* on the CPU */
    int64_t step[2], pad[2];
    int count, which[MOST_BETWEEN];
    bool skips; /* the first convolution's result is added to the last one's operand, if it has that shape */
} chain;

static tn_array *integers(tn_shape shape, int64_t most)
{
    tn_array *x = tn_cast(tn_random_integers(-most, most + 1, shape, .device = tn_cpu()), TN_FLOAT32);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

static chain draw(char *name, size_t size)
{
    int64_t extent = test_random_int(&check_random, 4, 9), k = test_random_int(&check_random, 0, 1) * 2 + 1;
    chain c = {.in = {integers(TN_SHAPE(test_random_int(&check_random, 1, 3), CHANNELS, extent, extent + 1), 3),
                      integers(TN_SHAPE(CHANNELS, CHANNELS, 3, 3), 1),
                      integers(TN_SHAPE(2 * CHANNELS, CHANNELS, k, k), 1)},
               .count = (int)test_random_int(&check_random, 0, MOST_BETWEEN), .skips = check_bits() & 1};
    for (int i = 0; i < 2; i++) {
        c.step[i] = test_random_int(&check_random, 1, 2);
        c.pad[i] = 1;
    }
    int at = snprintf(name, size, "%s, steps %lld %lld:", c.skips ? "skips" : "plain", (long long)c.step[0],
                      (long long)c.step[1]);
    for (int i = 0; i < c.count; i++) {
        c.which[i] = (int)test_random_int(&check_random, 0, (int64_t)(sizeof between / sizeof *between) - 1);
        at += snprintf(name + at, size - (size_t)at, " %s", between[c.which[i]].name);
    }
    return c;
}

/* The gradients of all inputs, the result, and what is between, which is a result, too. */
static void compute(const chain *c, tn_device device, tn_dtype dtype, tn_array *out[VALUES])
{
    tn_array *in[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        in[i] = tn_requires_grad(tn_cast(tn_to(c->in[i], device), dtype));
    tn_array *first = tn_conv(in[X], in[FIRST], .stride = TN_SHAPE(c->step[0]), .pad = TN_SHAPE(c->pad[0]));
    first = tn_clip(first, -3, 3);
    tn_array *x = first;
    for (int i = 0; i < c->count; i++)
        x = between[c->which[i]].of(x);
    x = c->skips && tn_size(x) == tn_size(first) && tn_dim(x, 2) == tn_dim(first, 2) ? tn_add(x, first) : x;
    tn_array *middle = tn_clip(x, -3, 3);
    tn_array *y = tn_conv(middle, in[SECOND], .stride = TN_SHAPE(c->step[1]), .pad = TN_SHAPE(c->pad[1]));
    tn_array *sign = tn_sign(tn_detach(y));
    assert_int_equal(tn_backward(tn_sum(tn_multiply(y, sign))), TN_OK);
    for (int i = 0; i < INPUTS; i++)
        out[i] = tn_grad(in[i]);
    out[INPUTS] = middle;
    out[INPUTS + 1] = y;
    assert_int_equal(tn_eval_all(VALUES, (const tn_array *const *)out), TN_OK);
}

static void check_chain(tn_dtype dtype)
{
    static const char *const names[] = {"gradient by x", "by the first weights", "by the second", "between", "y"};
    char name[200];
    chain c = draw(name, sizeof name);
    tn_array *want[VALUES], *got[VALUES];
    tn_set_compile(TN_COMPILE_NEVER);
    compute(&c, tn_cpu(), dtype, want);
    tn_set_compile(tn__device_current()->capabilities.channels_last ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
    compute(&c, tn_current_device(), dtype, got);
    for (int i = 0; i < VALUES; i++)
        if (tn_item(tn_all(tn_equal(want[i], tn_to(got[i], tn_cpu())))) != 1)
            fail_msg("%s, %s: %s differs", name, tn_dtype_name(dtype), names[i]);
}

static void test_chains(void **state)
{
    (void)state;
    tn_set_matmul_precision(TN_MATMUL_TF32);
    for (int i = 0; i < 4; i++)
        TN_SCOPE check_chain(TN_FLOAT32);
    tn_set_matmul_precision(TN_MATMUL_FLOAT32);
    for (int i = 0; i < 2; i++)
        TN_SCOPE check_chain(TN_BFLOAT16);
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* ---- plans ---- */

static int copies_of(const char *plan)
{
    int count = 0;
    for (const char *at = plan; (at = strstr(at, " copy")) != NULL; at++)
        count++;
    return count;
}

/* Only what comes into a chain is copied: pictures and weights, of which those of 1 x 1 lie in either order; nothing
 * where channels are few, or float32 is to stay so. */
static void test_plan(void **state)
{
    static const struct {
        int64_t channels;
        tn_matmul_precision precision;
        int copies;
    } cases[] = {{16, TN_MATMUL_TF32, 3}, {16, TN_MATMUL_FLOAT32, 0}, {6, TN_MATMUL_TF32, 0}};
    (void)state;
    if (!tn__device_current()->capabilities.channels_last)
        skip();
    tn_set_compile(TN_COMPILE_ALWAYS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TN_SCOPE {
            int64_t n = cases[i].channels;
            tn_set_matmul_precision(cases[i].precision);
            tn_array *x = tn_zeros(TN_SHAPE(4, n, 12, 12)), *w = tn_zeros(TN_SHAPE(n, n, 3, 3));
            tn_array *v = tn_ones(TN_SHAPE(n, n, 3, 3)), *u = tn_ones(TN_SHAPE(n, n, 1, 1)), *b = tn_ones(TN_SHAPE(n));
            const tn_array *all[] = {x, w, v, u, b};
            assert_int_equal(tn_eval_all(5, all), TN_OK);
            tn_array *y = tn_conv(x, w, .pad = TN_SHAPE(1)), *z = tn_relu(tn_batch_norm_function(y, b, b));
            z = tn_conv(tn_max_pool(tn_add(z, y), TN_SHAPE(2)), v);
            z = tn_sum(tn_conv(tn_relu(z), u), .axis = TN_AXES(2, 3));
            char *plan = tn_plan_describe(z);
            assert_non_null(plan);
            if (strstr(plan, "convolve") && copies_of(plan) != cases[i].copies)
                fail_msg("expected %d copies: %s", cases[i].copies, plan);
            tn_string_free(plan);
        }
    tn_set_matmul_precision(TN_MATMUL_FLOAT32);
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains), cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
