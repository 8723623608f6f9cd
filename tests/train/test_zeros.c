/* SPDX-License-Identifier: MIT */
/*
 * One rule for all options: zero counts where it is written, and a left-out option has its default. Every option whose
 * zero is a value other than its default, or no value at all, by its macro; and what a struct filled by hand says.
 */
#include "nn/check.h"

#include "support/scratch.h"

static tn_array *doubles(int count, const double *x) { return tn_from_host_with(x, TN_SHAPE(count), TN_FLOAT64, NULL); }

#define ARRAY(...) doubles((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static void test_tolerances(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = ARRAY(1, 0), *b = ARRAY(1 + 1e-7, 5e-9);
        assert_true(tn_allclose(a, b));
        assert_false(tn_allclose(a, b, .rtol = 0));
        assert_false(tn_allclose(a, b, .atol = 0));
        assert_true(tn_allclose(a, a, .rtol = 0, .atol = 0));
        assert_true(tn_allclose_with(a, b, &(tn_close_opts){.equal_nan = true}));
        assert_false(tn_allclose_with(a, b, &(tn_close_opts){._ = ".atol"}));
        check_fine();
        assert_false(tn_allclose(a, a, .atol = -1));
        check_latched(TN_ERR_VALUE, "expected tolerances of 0 or more");
        assert_false(tn_allclose(a, a, .rtol = NAN));
        check_latched(TN_ERR_VALUE, "expected tolerances of 0 or more");
    }
}

static tn_array *cube(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_multiply(tn_multiply(xs[0], xs[0]), xs[0]);
}

static void test_gradient_checks(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = ARRAY(0.3, -0.7);
        assert_int_equal(tn_check_backward(cube, NULL, 1, (const tn_array *const[]){x}, .rtol = 0), TN_OK);
        assert_int_equal(tn_check_backward(cube, NULL, 1, (const tn_array *const[]){x}, .rtol = 0, .atol = 0),
                         TN_ERR_VALUE); /* rounding alone is too much */
        tn_clear_error();
        assert_int_equal(tn_check_backward(cube, NULL, 1, (const tn_array *const[]){x}, .eps = 0), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "expected a finite step above 0");
        assert_int_equal(tn_check_backward(cube, NULL, 1, (const tn_array *const[]){x}, .atol = -1), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "tolerances of 0 or more");
    }
}

static void test_draws(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_shape shape = TN_SHAPE(64);
        tn_array *same = tn_random_normal(shape, .loc = 3, .scale = 0);
        assert_true(tn_item(tn_min(same)) == 3 && tn_item(tn_max(same)) == 3);
        tn_array *nothing = tn_random_uniform(shape, .low = 0, .high = 0);
        assert_true(tn_item(tn_min(nothing)) == 0 && tn_item(tn_max(nothing)) == 0);
        tn_array *below = tn_random_uniform(shape, .low = -1, .high = 0);
        assert_true(tn_item(tn_min(below)) < 0 && tn_item(tn_max(below)) < 0);
        tn_array *wide = tn_random_uniform(TN_SHAPE(4096), .low = -1); /* to 1, the default */
        assert_true(tn_item(tn_max(wide)) > 0.5 && tn_item(tn_min(wide)) < -0.5);
        check_fine();
        tn_array *zeros = tn_initialize((tn_init){TN_INIT_CONSTANT, 0}, TN_SHAPE(3), NULL);
        assert_true(tn_item(tn_max(tn_abs(zeros))) == 0);
    }
}

static void test_statistics(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = ARRAY(1, 2, 6);
        check_near(tn_cov_with(x, NULL), (double[]){7}, 1, 1e-12);
        check_near(tn_cov_with(x, TN_OPTS(tn_cov_opts, .ddof = 0)), (double[]){14. / 3}, 1, 1e-12);
        check_near(tn_cov_with(x, &(tn_cov_opts){.by_columns = false}), (double[]){7}, 1, 1e-12);
        check_near(tn_cov(x, false, 0), (double[]){14. / 3}, 1, 1e-12);
        tn_array *edges;
        tn_histogram(x, &edges, .bins = 2, .low = 0, .high = 0);
        check_near(edges, (double[]){-0.5, 0, 0.5}, 3, 0);
        tn_histogram(x, &edges, .bins = 2);
        check_near(edges, (double[]){1, 3.5, 6}, 3, 0);
        tn_histogram(x, &edges, .bins = 2, .low = 0, .high = 4);
        check_near(edges, (double[]){0, 2, 4}, 3, 0);
        check_fine();
        tn_histogram(x, &edges, .bins = 0);
        check_latched(TN_ERR_VALUE, "expected 1 or more bins, got 0");
    }
}

static void test_numbers(void **state)
{
    (void)state;
    TN_SCOPE {
        check_near(tn_logspace(0, 2, 3, .base = 0), (double[]){1, 0, 0}, 3, 0);
        check_near(tn_logspace(0, 2, 3), (double[]){1, 10, 100}, 3, 1e-12);
        tn_array *flat = tn_reshape(ARRAY(1, 0, 0, 1e-17), TN_SHAPE(2, 2));
        assert_int_equal((int)tn_item(tn_linalg_matrix_rank(flat)), 1);
        assert_int_equal((int)tn_item(tn_linalg_matrix_rank(flat, .rcond = 0)), 2);
        assert_int_equal((int)tn_item(tn_linalg_matrix_rank(flat, .tol = 0)), 2);
        assert_true(tn_item(tn_max(tn_linalg_pinv(flat))) < 2);
        assert_true(tn_item(tn_max(tn_linalg_pinv(flat, .rcond = 0))) > 1e16);
        tn_array *order, *i = tn_remainder(tn_arange(0, 1000, 1, .dtype = TN_FLOAT64), 5);
        tn_array *near = tn_add(tn_multiply(i, 1e-14), 1); /* columns that differ by less than 1000 epsilon */
        tn_array *x, *residuals, *rank, *s, *columns = tn_vander(near, 2, false);
        tn_linalg_lstsq(columns, near, &x, &residuals, &rank, &s, .rcond = 0);
        assert_int_equal((int)tn_item(rank), 2);
        tn_linalg_lstsq(columns, near, &x, &residuals, &rank, &s);
        assert_int_equal((int)tn_item(rank), 1);
        tn_polyfit(near, near, 1, .rank = &order);
        assert_int_equal((int)tn_item(order), 1);
        tn_polyfit(near, near, 1, .rcond = 0, .rank = &order);
        assert_int_equal((int)tn_item(order), 2);
        check_fine();
        tn_fft_fft(ARRAY(1, 2), .n = 0);
        check_latched(TN_ERR_VALUE, "at least 1 number, got 0");
    }
}

static void test_files(void **state)
{
    (void)state;
    TN_SCOPE {
        const char *path = scratch_path("zeros.csv");
        FILE *file = fopen(path, "w");
        fputs("1,2\n3,4\n", file);
        fclose(file);
        assert_int_equal(tn_size(tn_load_csv(path)), 4);
        assert_int_equal(tn_size(tn_load_csv(path, .rows = 0)), 0);
        file = fopen(path, "w");
        fputs("1,2 # two\n", file);
        fclose(file);
        assert_int_equal(tn_size(tn_load_csv(path)), 2);
        check_fine();
        tn_load_csv(path, .comment = 0);
        check_latched(TN_ERR_FORMAT, "'2 # two' is no float32");
        tn_load_csv(path, .delimiter = 0);
        check_latched(TN_ERR_VALUE, "the delimiter");
        tn_load_csv(path, .column_count = 0);
        check_latched(TN_ERR_VALUE, "0 columns");
        assert_int_equal(tn_save_csv(ARRAY(1), path, .digits = 0), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "0 digits");
    }
}

static void test_sizes(void **state)
{
    (void)state;
    tn_dataset *data = tn_spiral(5, 1);
    tn_loader *loader = tn_loader_new(data, .batch = 0);
    check_latched(TN_ERR_VALUE, "expected a batch of 1 sample or more, got 0");
    tn_loader_free(loader);
    tn_layer *layer = tn_linear(3, .in = 0);
    assert_int_equal(tn_layer_status(layer), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "one input feature, got 3 and 0");
    tn_layer_free(layer);
    assert_int_equal(tn_train("digits", NULL, .epochs = 0), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "expected 1 epoch or more, got 0");
    assert_int_equal(tn_train("digits", NULL, .batch = 0), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "minibatches of 1 sample or more, got 0");
}

/* p after two steps with gradients of 2 and 2, from 5. */
static double trained(tn_layer *net, tn_optimizer *optimizer)
{
    assert_int_equal(tn_optimizer_status(optimizer), TN_OK);
    double after = 0;
    TN_SCOPE {
        assert_int_equal(tn_assign(tn_param(net, 0), ARRAY(5)), TN_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tn_backward(tn_sum(tn_multiply(tn_param(net, 0), 2))), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
        }
        after = tn_item(tn_param(net, 0));
    }
    tn_optimizer_free(optimizer);
    return after;
}

static tn_array *itself(tn_layer *layer, const tn_array *x, void *user)
{
    (void)layer, (void)user;
    return tn_positive(x);
}

static void test_optimizers(void **state)
{
    (void)state;
    tn_layer *net = tn_layer_new("one", itself, NULL, NULL);
    TN_SCOPE tn_layer_param(net, "p", ARRAY(5));
    assert_float_equal(trained(net, tn_sgd(net)), 5 - 0.04, 1e-12);
    assert_float_equal(trained(net, tn_sgd(net, .lr = 0)), 5, 0);
    assert_float_equal(trained(net, tn_momentum_sgd(net, .lr = 0.1)), 5 - 0.2 - 0.38, 1e-12);
    assert_float_equal(trained(net, tn_momentum_sgd(net, .lr = 0.1, .momentum = 0)), 5 - 0.4, 1e-12);
    assert_float_equal(trained(net, tn_nesterov(net, .lr = 0.1, .momentum = 0)), 5 - 0.4, 1e-12);
    /* With beta1 = beta2 = 0 the change is lr g / (|g| + eps) each time. */
    assert_float_equal(trained(net, tn_adam(net, .lr = 0.1, .beta1 = 0, .beta2 = 0, .eps = 2)), 5 - 0.1, 1e-12);
    assert_float_equal(trained(net, tn_adam(net, .lr = 0.1, .beta1 = 0, .beta2 = 0, .eps = 0)), 5 - 0.2, 1e-12);
    assert_float_equal(trained(net, tn_adamw(net, .lr = 0, .beta1 = 0)), 5, 0);
    double still = 5 - 0.1; /* without decay */
    assert_float_equal(trained(net, tn_adamw(net, .lr = 0.1, .beta1 = 0, .beta2 = 0, .eps = 2, .weight_decay = 0)),
                       still, 1e-12);
    assert_true(fabs(trained(net, tn_adamw(net, .lr = 0.1, .beta1 = 0, .beta2 = 0, .eps = 2)) - still) > 1e-3);
    assert_float_equal(trained(net, tn_sgd_with(net, &(tn_optimizer_opts){.weight_decay = 0})), 5 - 0.04, 1e-12);
    assert_float_equal(trained(net, tn_sgd_with(net, &(tn_optimizer_opts){._ = ".lr"})), 5, 0);
    assert_float_equal(trained(net, tn_optimizer_parse("sgd:lr=0", net)), 5, 0);
    tn_optimizer *useless = tn_sgd(net, .momentum = 0);
    check_latched(TN_ERR_VALUE, "sgd has no use for momentum");
    tn_optimizer_free(useless);
    tn_layer_free(net);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tolerances), cmocka_unit_test(test_gradient_checks), cmocka_unit_test(test_draws),
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_numbers),         cmocka_unit_test(test_files),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_optimizers),
    };
    return cmocka_run_group_tests_name("zeros", tests, check_seed, NULL);
}
