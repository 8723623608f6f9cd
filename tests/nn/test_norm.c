/* SPDX-License-Identifier: MIT */
/* Normalization against PyTorch's values; batch normalization's running statistics; what it all refuses. */
#include "nn/torch.h"
#include "support/scratch.h"

#define CASE(name, expression) \
    static tn_array *name(tn_array *const *x, tn_array *const *t) \
    { \
        (void)t; \
        return expression; \
    }
CASE(batch, tn_batch_norm_function(x[0], x[1], x[2], .eps = 1e-4))
CASE(batch_last, tn_batch_norm_function(x[0], NULL, NULL, .axis = -1))
CASE(fixed, tn_fixed_batch_norm(x[0], x[1], x[2], x[3], x[4]))
CASE(group, tn_group_norm_function(x[0], 2, x[1], x[2], 0))
CASE(instance, tn_group_norm_function(x[0], 4, NULL, NULL, 0))
CASE(layer_two, tn_layer_norm_function(x[0], x[1], x[2], 0))
CASE(rms, tn_rms_norm_function(x[0], x[1], 1e-3))
CASE(normalize_1, tn_normalize(x[0], 1, 1, 0))
CASE(normalize_2, tn_normalize(x[0], 2, -3, 0))
CASE(normalize_3, tn_normalize(x[0], 3, 1, 0))
CASE(weight, tn_weight_norm(x[0], x[1], 0))

/* A layer that is never trained on two inputs: its running statistics are set each time. */
static tn_array *renormalize(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_layer *layer = tn_batch_norm(3, .rmax = 1.5, .dmax = 0.4, .no_gamma = true, .dtype = TN_FLOAT64);
    tn_array *mean = torch_value("renorm.mean"), *var = torch_value("renorm.var");
    tn_archive *archive = tn_archive_new();
    tn_archive_add(archive, "beta", tn_zeros(TN_SHAPE(3), .dtype = TN_FLOAT64));
    tn_archive_add(archive, "avg_mean", mean);
    tn_archive_add(archive, "avg_var", var);
    tn_archive_add(archive, "N", tn_scalar(1, .dtype = TN_INT64));
    const char *path = scratch_path("renorm.safetensors");
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    assert_int_equal(tn_layer_load(layer, path), TN_OK);
    tn_archive_free(archive);
    tn_array *y = tn_forward(layer, x[0]);
    tn_layer_free(layer);
    return y;
}

static void test_values(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"batch_norm", batch, false}, {"batch_norm_last", batch_last, false}, {"fixed_batch_norm", fixed, false},
        {"group_norm", group, false}, {"instance_norm", instance, false}, {"layer_norm_two", layer_two, false},
        {"rms_norm", rms, false}, {"normalize_1", normalize_1, false}, {"normalize_2", normalize_2, false},
        {"normalize_3", normalize_3, false}, {"weight_norm", weight, false},
        {"renorm", renormalize, true},
    };
    if (!torch_open())
        skip();
    torch_check(sizeof cases / sizeof *cases, cases);
    torch_close();
    check_fine();
}

static tn_array *named(const char *name, const char *part)
{
    char path[64];
    snprintf(path, sizeof path, "%s.%s", name, part);
    return torch_value(path);
}

static tn_status look(const tn_layer_part *part, void *user)
{
    const char *name = ((const char **)user)[0];
    if (part->value && strcmp(part->path, name) == 0)
        ((const void **)user)[1] = part->value;
    return TN_OK;
}

static tn_array *part_of(tn_layer *layer, const char *path)
{
    const void *search[] = {path, NULL};
    assert_int_equal(tn_layer_walk(layer, look, search), TN_OK);
    assert_non_null(search[1]);
    return (tn_array *)search[1];
}

/* Three batches, then evaluation; a copy, and a layer that was loaded, give the same. */
static void follow(const char *name, tn_layer *layer)
{
    tn_array *x = tn_cast(named(name, "x"), TN_FLOAT32), *last = tn_index(x, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_eval(tn_forward(layer, tn_index(x, i))), TN_OK);
    assert_true(tn_allclose(part_of(layer, "avg_mean"), named(name, "mean"), .rtol = 1e-5));
    assert_true(tn_allclose(part_of(layer, "avg_var"), named(name, "var"), .rtol = 1e-5));
    assert_true(tn_item(part_of(layer, "N")) == 3);
    tn_layer_train(layer, false);
    tn_array *want = named(name, "out");
    assert_true(tn_allclose(tn_forward(layer, last), want, .rtol = 1e-4, .atol = 1e-5));
    assert_true(tn_item(part_of(layer, "N")) == 3);
    tn_layer *copy = tn_layer_copy(layer);
    assert_true(tn_allclose(tn_forward(copy, last), want, .rtol = 1e-4, .atol = 1e-5));
    tn_layer_free(copy);
    const char *path = scratch_path("batch_norm.safetensors");
    assert_int_equal(tn_layer_save(layer, path), TN_OK);
    copy = tn_batch_norm(0); /* still to be inferred */
    assert_int_equal(tn_layer_load(copy, path), TN_OK);
    tn_layer_train(copy, false);
    assert_true(tn_allclose(tn_forward(copy, last), want, .rtol = 1e-3, .atol = 1e-4));
    tn_layer_free(copy);
    tn_layer_free(layer);
}

static void test_running(void **state)
{
    (void)state;
    if (!torch_open())
        skip();
    TN_SCOPE {
        follow("running", tn_batch_norm(0, .momentum = 0.3, .eps = 2e-5));
        follow("cumulative", tn_batch_norm(3, .cumulative = true, .eps = 2e-5));
    }
    torch_close();
    check_fine();
}

/* A network trains with it, its statistics move, and frozen gammas stay; one sample has a variance of 0. */
static void test_training(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = tn_layer_parse("linear:5 bn relu linear:2");
        tn_array *x = tn_random_normal(TN_SHAPE(7, 3)), *t = tn_zeros(TN_SHAPE(7), .dtype = TN_INT64);
        assert_int_equal(tn_eval(tn_forward(net, x)), TN_OK);
        assert_int_equal(tn_layer_freeze(net, "1.gamma", true), TN_OK);
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.1);
        double first = 0, last = 0;
        for (int i = 0; i < 20; i++)
            TN_SCOPE {
                tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, x), t);
                assert_int_equal(tn_backward(loss), TN_OK);
                assert_int_equal(tn_step(sgd), TN_OK);
                last = tn_item(loss);
                first = i == 0 ? last : first;
            }
        assert_true(last < first);
        assert_true(tn_item(tn_all(tn_equal(tn_param_named(net, "1.gamma"), 1))));
        assert_false(tn_item(tn_any(tn_equal(part_of(net, "1.avg_var"), 1))));
        assert_true(tn_item(part_of(net, "1.N")) == 21);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
        tn_layer *one = tn_batch_norm(3);
        assert_true(tn_item(tn_all(tn_equal(tn_forward(one, tn_full(TN_SHAPE(1, 3), 5)), 0))));
        assert_true(tn_allclose(part_of(one, "avg_var"), tn_full(TN_SHAPE(3), 0.9)));
        tn_layer_free(one);
        tn_layer *none = tn_batch_norm(3, .no_running = true, .no_gamma = true, .no_beta = true);
        tn_layer_train(none, false);
        tn_array *y = tn_forward(none, tn_random_normal(TN_SHAPE(9, 3)));
        assert_true(tn_allclose(tn_mean(y, .axis = TN_AXES(0)), 0, .atol = 1e-5));
        tn_layer_free(none);
    }
    check_fine();
}

/* Layers are their functions; half precision stays; nothing of nothing. */
static void test_layers(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(2, 4, 3));
        tn_array *ones = tn_ones(TN_SHAPE(4));
        tn_layer *layers[] = {tn_group_norm(2, 0, 0), tn_instance_norm(4), tn_instance_norm(0, .affine = true),
                              tn_rms_norm(0, 0), tn_layer_norm_over(TN_SHAPE(4, 3), 0)};
        tn_array *wants[] = {tn_group_norm_function(x, 2, ones, NULL, 0), tn_group_norm_function(x, 4, NULL, NULL, 0),
                             tn_group_norm_function(x, 4, NULL, NULL, 0), tn_rms_norm_function(x, NULL, 0),
                             tn_layer_norm_function(x, tn_ones(TN_SHAPE(4, 3)), NULL, 0)};
        for (int i = 0; i < 5; i++) {
            assert_true(tn_allclose(tn_forward(layers[i], x), wants[i], .atol = 1e-6));
            tn_layer *copy = tn_layer_copy(layers[i]);
            assert_true(tn_allclose(tn_forward(copy, x), wants[i], .atol = 1e-6));
            tn_layer_free(copy);
            assert_true(tn_is_error(tn_forward(layers[i], tn_ones(TN_SHAPE(3)))) || i == 3);
            tn_clear_error();
            tn_layer_free(layers[i]);
        }
        tn_array *half = tn_cast(x, TN_FLOAT16);
        assert_int_equal(tn_dtype_of(tn_group_norm_function(half, 2, ones, NULL, 0)), TN_FLOAT16);
        assert_int_equal(tn_dtype_of(tn_batch_norm_function(half, ones, NULL)), TN_FLOAT16);
        assert_int_equal(tn_dtype_of(tn_rms_norm_function(half, NULL, 0)), TN_FLOAT16);
        assert_int_equal(tn_size(tn_group_norm_function(tn_ones(TN_SHAPE(0, 4)), 2, ones, ones, 0)), 0);
        assert_true(tn_item(tn_all(tn_equal(tn_normalize(tn_zeros(TN_SHAPE(2, 3)), 2, 1, 0), 0))));
    }
    check_fine();
}

static void refused(tn_layer *layer, const char *text)
{
    assert_int_equal(tn_layer_status(layer), TN_ERR_VALUE);
    assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(2, 2)))));
    check_latched(TN_ERR_VALUE, text);
    tn_layer_free(layer);
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        refused(tn_batch_norm(-1), "channels >= 0");
        refused(tn_batch_norm(3, .momentum = 2), "momentum from 0 to 1");
        refused(tn_batch_norm(3, .rmax = 0.5), "rmax >= 1");
        refused(tn_group_norm(3, 4, 0), "groups that divide the 4 channels");
        refused(tn_rms_norm(3, -1), "eps >= 0");
        tn_array *x = tn_ones(TN_SHAPE(2, 4, 3));
        tn_layer *layer = tn_batch_norm(3);
        assert_true(tn_is_error(tn_forward(layer, x)));
        check_latched(TN_ERR_SHAPE, "3 channels along axis 1");
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(0, 3)))));
        check_latched(TN_ERR_SHAPE, "no elements");
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(3)))));
        check_latched(TN_ERR_INDEX, "axis 1");
        tn_layer_free(layer);
        assert_true(tn_is_error(tn_batch_norm_function(x, tn_ones(TN_SHAPE(3)), NULL)));
        check_latched(TN_ERR_SHAPE, "gamma of shape (4,)");
        assert_true(tn_is_error(tn_fixed_batch_norm(x, NULL, NULL, NULL, tn_ones(TN_SHAPE(4)))));
        check_latched(TN_ERR_VALUE, "NULL for the mean");
        assert_true(tn_is_error(tn_group_norm_function(x, 3, NULL, NULL, 0)));
        check_latched(TN_ERR_VALUE, "divide the 4 channels");
        assert_true(tn_is_error(tn_rms_norm_function(x, tn_ones(TN_SHAPE(4)), 0)));
        check_latched(TN_ERR_SHAPE, "last axes");
        assert_true(tn_is_error(tn_layer_norm_function(x, tn_ones(TN_SHAPE(3)), tn_ones(TN_SHAPE(4, 3)), 0)));
        check_latched(TN_ERR_SHAPE, "one shape");
        const tn_array *whole = tn_cast(x, TN_INT32);
        tn_layer *layers[] = {tn_batch_norm(4), tn_group_norm(2, 4, 0), tn_instance_norm(4), tn_rms_norm(3, 0),
                              tn_layer_norm(3, 0), tn_layer_norm_over(TN_SHAPE(4, 3), 0)};
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
            REFUSED(TN_ERR_DTYPE, "got int32", tn_forward(layers[i], whole));
            tn_layer_free(layers[i]);
        }
        REFUSED(TN_ERR_DTYPE, "got int32", tn_layer_norm_function(whole, NULL, NULL, 0));
        const tn_array *ones = tn_ones(TN_SHAPE(3), .dtype = TN_INT32);
        REFUSED(TN_ERR_DTYPE, "got int32", tn_layer_norm_function(x, ones, NULL, 0));
        REFUSED(TN_ERR_DTYPE, "got int32", tn_layer_norm_function(x, NULL, ones, 0));
        assert_true(tn_is_error(tn_normalize(x, 0.5, 1, 0)));
        check_latched(TN_ERR_VALUE, "p >= 1");
    }
    check_fine();
}

/* Steps of this name in the plan of an evaluation, operation by operation. */
static int steps_of(const tn_array *x, const char *name)
{
    char *plan = tn_plan_describe(x), word[16];
    int count = 0;
    assert_non_null(plan);
    snprintf(word, sizeof word, " %s ", name);
    for (const char *at = plan; (at = strstr(at, word)) != NULL; at++)
        count++;
    tn_string_free(plan);
    return count;
}

/* Backward sums a gradient over each channel once, for the shift and for the mean, which is scaled, too; 16 bits are
 * scaled before they are summed. */
static void test_sums(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    for (int narrow = 0; narrow < 2; narrow++)
        TN_SCOPE {
            tn_dtype dtype = narrow ? TN_BFLOAT16 : TN_FLOAT32;
            tn_array *x = tn_cast(tn_random_normal(TN_SHAPE(5, 3, 7)), dtype), *part[3];
            tn_array *g = tn_cast(tn_random_normal(TN_SHAPE(5, 3, 7)), dtype);
            for (int i = 0; i < 3; i++) {
                part[i] = tn_cast(tn_random_normal(TN_SHAPE(3, 1)), dtype);
                assert_int_equal(tn_eval(part[i]), TN_OK);
                tn_requires_grad(part[i]);
            }
            assert_int_equal(tn_eval(x) | tn_eval(g), TN_OK);
            tn_array *y = tn_add(tn_multiply(tn_subtract(x, part[0]), part[1]), part[2]);
            assert_int_equal(tn_backward(tn_sum(tn_multiply(y, g))), TN_OK);
            tn_array *mean = tn_grad(part[0]), *shift = tn_grad(part[2]);
            assert_int_equal(steps_of(tn_add(mean, shift), "sum"), 1 + narrow);
            double want[3];
            tn_array *sum = tn_sum(tn_cast(g, TN_FLOAT64), .axis = TN_AXES(0, 2), .keepdims = true);
            check_read(tn_negative(tn_multiply(sum, tn_cast(part[1], TN_FLOAT64))), want, 3);
            if (!narrow)
                check_near(mean, want, 3, 1e-3);
        }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* In 16 bits all is computed in single precision and rounded once: half a unit in the last place of each result, beside
 * some 20 roundings of single precision of numbers up to 20. */
static void check_rounded(const char *name, tn_array *y, tn_array *want, double unit)
{
    enum { MOST = 1024 };
    double got[MOST], exact[MOST];
    assert_string_equal(tn_is_error(y) ? tn_message_of(y) : "", "");
    assert_int_equal(tn_dtype_of(want), TN_FLOAT64);
    int64_t count = tn_size(y);
    assert_true(count == tn_size(want) && count <= MOST);
    check_read(y, got, count);
    check_read(want, exact, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - exact[i]) <= unit * fabs(exact[i]) + 3e-5))
            fail_msg("%s in %s: element %d is %.9g, of %.9g", name, tn_dtype_name(tn_dtype_of(y)), (int)i, got[i],
                     exact[i]);
}

static void test_rounded_once(void **state)
{
    (void)state;
    static const struct {
        tn_dtype dtype;
        double unit;
    } kinds[] = {{TN_BFLOAT16, 0x1p-8}, {TN_FLOAT16, 0x1p-11}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        TN_SCOPE {
            enum { ROWS = 4, MOST = 40 };
            double x[ROWS * MOST], parts[2 * MOST];
            int64_t n = 2 * (1 + (int64_t)(check_bits() % (MOST / 2)));
            for (int64_t i = 0; i < ROWS * n; i++) /* of both signs along either axis: no mean is near all numbers */
                x[i] = check_uniform(0.5, 2) * ((i + i / n) % 2 ? 1 : -1);
            check_fill(parts, 2 * n, -2, 2);
            tn_array *a[3] = {check_array(x, TN_SHAPE(ROWS, n), kinds[k].dtype),
                              check_array(parts, TN_SHAPE(n), kinds[k].dtype),
                              check_array(parts + n, TN_SHAPE(n), kinds[k].dtype)}, *wide[3];
            for (int i = 0; i < 3; i++)
                wide[i] = tn_cast(a[i], TN_FLOAT64);
            check_rounded("layer norm", tn_layer_norm_function(a[0], a[1], a[2], 0),
                          tn_layer_norm_function(wide[0], wide[1], wide[2], 0), kinds[k].unit);
            check_rounded("rms norm", tn_rms_norm_function(a[0], a[1], 1e-3),
                          tn_rms_norm_function(wide[0], wide[1], 1e-3), kinds[k].unit);
            check_rounded("group norm", tn_group_norm_function(a[0], 1, a[1], a[2], 0),
                          tn_group_norm_function(wide[0], 1, wide[1], wide[2], 0), kinds[k].unit);
            check_rounded("batch norm", tn_batch_norm_function(a[0], a[1], a[2], .eps = 1e-3),
                          tn_batch_norm_function(wide[0], wide[1], wide[2], .eps = 1e-3), kinds[k].unit);
        }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_running), cmocka_unit_test(test_training),
        cmocka_unit_test(test_layers), cmocka_unit_test(test_refusals), cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rounded_once),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
