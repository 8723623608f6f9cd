/* SPDX-License-Identifier: MIT */
/* Losses against PyTorch's values and Chainer's formulas, and what they refuse. */
#include "nn/torch.h"

#define CASE(name, expression) \
    static tn_array *name(tn_array *const *x, tn_array *const *t) \
    { \
        (void)t; \
        return expression; \
    }
CASE(mean_absolute_error, tn_mean_absolute_error(x[0], x[1]))
CASE(mean_squared_error_sum, tn_mean_squared_error(x[0], x[1], .reduction = TN_REDUCTION_SUM))
CASE(huber, tn_huber_loss(x[0], x[1], 1.2))
CASE(huber_none, tn_huber_loss(x[0], x[1], 0.6, .reduction = TN_REDUCTION_NONE))
CASE(smooth_l1, tn_smooth_l1_loss(x[0], x[1], 0.7))
CASE(gaussian_nll, tn_gaussian_nll(x[0], x[1], x[2]))
CASE(bernoulli_nll, tn_bernoulli_nll(x[0], x[1], .reduction = TN_REDUCTION_SUM))
CASE(poisson_nll, tn_poisson_nll(x[0], x[1]))
CASE(gaussian_kl, tn_gaussian_kl_divergence(x[0], x[1], .reduction = TN_REDUCTION_SUM))
CASE(kl, tn_kl_divergence(x[0], x[1]))
CASE(kl_log, tn_kl_divergence(x[0], x[1], .log_target = true, .batch_mean = true))
CASE(soft_margin, tn_soft_margin_loss(x[0], t[0]))
CASE(hinge_embedding, tn_hinge_embedding_loss(x[0], t[0], 1.3))
CASE(margin_ranking, tn_margin_ranking_loss(x[0], x[1], t[0], 0.4))
CASE(sigmoid_weights, tn_sigmoid_cross_entropy(x[0], torch_value("sigmoid.t"), .weight = torch_value("sigmoid.w"),
                                               .pos_weight = torch_value("sigmoid.pw")))
CASE(sigmoid_ignored, tn_sigmoid_cross_entropy(x[0], t[0], .ignore_index = -1))
CASE(hinge, tn_hinge_loss(x[0], t[0]))
CASE(hinge_squared, tn_hinge_loss(x[0], t[0], .squared = true, .reduction = TN_REDUCTION_NONE))
CASE(multi_margin, tn_multi_margin_loss(x[0], t[0], .margin = 0.7))
CASE(multi_margin_2, tn_multi_margin_loss(x[0], t[0], .p = 2, .reduction = TN_REDUCTION_NONE))
CASE(nll, tn_nll_loss(x[0], t[0], .ignore_index = 1, .weight = torch_value("nll.w")))
CASE(soft, tn_softmax_cross_entropy(x[0], x[1], .weight = torch_value("nll.w"), .label_smoothing = 0.1))
CASE(contrastive, tn_contrastive_loss(x[0], x[1], t[0], 4.5))
CASE(cosine_embedding, tn_cosine_embedding_loss(x[0], x[1], t[0], 0.1))
CASE(cosine_similarity, tn_cosine_similarity(x[0], x[1], 0, 0))
CASE(pairwise_1, tn_pairwise_distance(x[0], x[1], 1, 1e-6))
CASE(pairwise_2, tn_pairwise_distance(x[0], x[1], 2, 1e-6))
CASE(pairwise_3, tn_pairwise_distance(x[0], x[1], 3, 1e-6))
CASE(triplet, tn_triplet_loss(x[0], x[1], x[2], .margin = 2, .swap = true))
CASE(triplet_chainer, tn_triplet_loss(x[0], x[1], x[2], .margin = 0.2, .p = 0))
CASE(cross_covariance, tn_cross_covariance(x[0], x[1]))
CASE(decov, tn_decov(x[0]))
CASE(negative_sampling, tn_negative_sampling(x[0], t[0], x[1], t[1]))
CASE(black_out, tn_black_out(x[0], t[0], x[1], t[1]))
CASE(ctc, tn_ctc_loss(x[0], tn_slice_axis(t[0], 1, 0, 2, 1), .reduction = TN_REDUCTION_NONE))
CASE(ctc_lengths, tn_ctc_loss(x[0], t[0], .input_lengths = t[1], .label_lengths = t[2], .by_label = true))
CASE(ctc_log, tn_ctc_loss(tn_log_softmax(x[0], 2), tn_subtract(t[0], 1), .blank = 3, .log_probabilities = true,
                          .reduction = TN_REDUCTION_SUM))
CASE(crf, tn_crf_loss(x[0], x[1], t[0], .lengths = t[1]))
CASE(crf_none, tn_crf_loss(x[0], x[1], t[0], .reduction = TN_REDUCTION_NONE))

static void check_cases(int count, const torch_case *cases)
{
    if (!torch_open())
        skip();
    torch_check(count, cases);
    torch_close();
}

static void test_elements(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"mean_absolute_error", mean_absolute_error, false}, {"mean_squared_error_sum", mean_squared_error_sum, false},
        {"huber_loss", huber, false}, {"huber_loss_none", huber_none, false}, {"smooth_l1_loss", smooth_l1, false},
        {"gaussian_nll", gaussian_nll, false}, {"bernoulli_nll", bernoulli_nll, false},
        {"poisson_nll", poisson_nll, false}, {"gaussian_kl_divergence", gaussian_kl, false},
        {"kl_divergence", kl, false}, {"kl_divergence_log", kl_log, false}, {"soft_margin_loss", soft_margin, false},
        {"hinge_embedding_loss", hinge_embedding, false}, {"margin_ranking_loss", margin_ranking, false},
        {"sigmoid_cross_entropy_weights", sigmoid_weights, false},
        {"sigmoid_cross_entropy_ignored", sigmoid_ignored, false},
    };
    check_cases(sizeof cases / sizeof *cases, cases);
}

static void test_rows(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"hinge_loss", hinge, false}, {"hinge_loss_squared", hinge_squared, false},
        {"multi_margin_loss", multi_margin, false}, {"multi_margin_loss_2", multi_margin_2, false},
        {"nll_loss", nll, false}, {"soft_cross_entropy", soft, false}, {"contrastive_loss", contrastive, false},
        {"cosine_embedding_loss", cosine_embedding, false}, {"cosine_similarity", cosine_similarity, false},
        {"pairwise_distance_1", pairwise_1, false}, {"pairwise_distance_2", pairwise_2, false},
        {"pairwise_distance_3", pairwise_3, false}, {"triplet_loss", triplet, false},
        {"triplet_loss_chainer", triplet_chainer, false}, {"cross_covariance", cross_covariance, false},
        {"decov", decov, false}, {"negative_sampling", negative_sampling, false}, {"black_out", black_out, false},
    };
    check_cases(sizeof cases / sizeof *cases, cases);
}

static void test_sequences(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"ctc_loss", ctc, false}, {"ctc_loss_lengths", ctc_lengths, false}, {"ctc_loss_log", ctc_log, false},
        {"crf_loss", crf, false}, {"crf_loss_none", crf_none, false},
    };
    check_cases(sizeof cases / sizeof *cases, cases);
}

/* No path: infinite, or 0 on request, with a gradient of 0 either way; one step, no labels. */
static void test_ctc_ends(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_random_normal(TN_SHAPE(2, 1, 3)));
        tn_array *labels = tn_from_host(((int64_t[]){1, 1}), TN_SHAPE(1, 2), TN_INT64);
        tn_array *loss = tn_ctc_loss(x, labels);
        assert_true(tn_item(tn_isinf(loss)));
        assert_int_equal(tn_backward(loss), TN_OK);
        assert_true(tn_item(tn_all(tn_equal(tn_grad(x), 0))));
        assert_true(tn_item(tn_ctc_loss(x, labels, .zero_infinity = true)) == 0);
        tn_array *none = tn_zeros(TN_SHAPE(1, 0), .dtype = TN_INT64);
        tn_array *want = tn_negative(tn_sum(tn_slice_axis(tn_log_softmax(x, 2), 2, 0, 1, 1)));
        assert_true(tn_allclose(tn_ctc_loss(x, none), want));
        tn_array *one = tn_slice_axis(x, 0, 0, 1, 1);
        want = tn_negative(tn_slice_axis(tn_log_softmax(one, 2), 2, 1, 2, 1));
        assert_true(tn_allclose(tn_ctc_loss(one, tn_ones(TN_SHAPE(1, 1), .dtype = TN_INT32)), tn_sum(want)));
    }
    check_fine();
}

/* Against all labels there are. */
static void test_crf_decode(void **state)
{
    (void)state;
    enum { STEPS = 4, ROWS = 2, K = 3, ALL = 81 };
    static const int64_t lengths[] = {4, 2};
    double cost[K * K], x[STEPS * ROWS * K];
    check_fill(cost, K * K, -2, 2);
    check_fill(x, STEPS * ROWS * K, -2, 2);
    TN_SCOPE {
        tn_array *score = NULL;
        tn_array *labels = tn_crf_decode(check_array(cost, TN_SHAPE(K, K), TN_FLOAT64),
                                         check_array(x, TN_SHAPE(STEPS, ROWS, K), TN_FLOAT64),
                                         tn_from_int64s(lengths, 2), &score);
        const int64_t *got = test_data(labels);
        const double *scores = test_data(score);
        assert_non_null(got);
        for (int n = 0; n < ROWS; n++) {
            double best = -1e9;
            int best_path = 0;
            for (int path = 0; path < ALL; path++) {
                double sum = 0;
                for (int i = 0, rest = path, before = -1; i < lengths[n]; i++, rest /= K) {
                    sum += x[(i * ROWS + n) * K + rest % K] + (before >= 0 ? cost[before * K + rest % K] : 0);
                    before = rest % K;
                }
                if (sum > best) {
                    best = sum;
                    best_path = path;
                }
            }
            assert_true(fabs(scores[n] - best) < 1e-9);
            for (int i = 0, rest = best_path; i < STEPS; i++, rest /= K)
                assert_int_equal(got[i * ROWS + n], i < lengths[n] ? rest % K : 0);
        }
    }
    check_fine();
}

/* Lengths and labels out of range are named as they were given, and where, whoever looks: the loss, or a gradient
 * alone; in any integer dtype. No label that counts is the blank; what lies behind a row's length may be anything. */
static void test_named_as_given(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_INT64, TN_INT32, TN_INT8, TN_UINT8};
    static const struct {
        int64_t inputs[3], labels[3], t[6];
        const char *told, *late; /* by the CPU; by a GPU, which knows the index alone */
    } wrong[] = {
        {{4, 0, 3}, {2, 1, 1}, {1, 2, 1, 2, 1, 2}, "index 0 at position 1 |valid are 1 to 4", "index 0 "},
        {{4, 4, 5}, {2, 1, 1}, {1, 2, 1, 2, 1, 2}, "index 5 at position 2 |valid are 1 to 4", "index 5 "},
        {{4, 4, 4}, {3, 1, 1}, {1, 2, 1, 2, 1, 2}, "index 3 at position 0 |valid are 0 to 2", "index 3 "},
        {{4, 4, 4}, {2, 2, 1}, {1, 2, 1, 0, 1, 2}, "the label 0 at position (1, 1) is the blank",
         "label 0 is the blank"},
        {{4, 4, 4}, {2, 2, 1}, {1, 2, 3, 1, 1, 9}, "index 3 at position (1, 0) |valid are ", "index 3 "},
        {{4, -2, 3}, {2, 1, 1}, {1, 2, 1, 2, 1, 2}, "index -2 at position 1 |valid are 1 to 4", "index -2 "},
        {{4, 4, 4}, {2, -1, 1}, {1, 2, 1, 2, 1, 2}, "index -1 at position 1 |valid are 0 to 2", "index -1 "},
    };
    for (int d = 0; d < 4; d++)
        for (int w = 0; w < 7 - 2 * (d == 3); w++)
            for (int alone = 0; alone < 2; alone++)
                TN_SCOPE {
                    tn_dtype dtype = dtypes[d];
                    tn_array *x = tn_requires_grad(tn_random_normal(TN_SHAPE(4, 3, 3))), *in[3];
                    const int64_t *given[] = {wrong[w].inputs, wrong[w].labels, wrong[w].t};
                    for (int i = 0; i < 3; i++) {
                        tn_shape shape = i == 2 ? TN_SHAPE(3, 2) : TN_SHAPE(3);
                        in[i] = tn_cast(tn_from_host(given[i], shape, TN_INT64), dtype);
                        assert_int_equal(tn_eval(in[i]), TN_OK);
                    }
                    tn_array *loss = tn_ctc_loss(x, in[2], .input_lengths = in[0], .label_lengths = in[1]);
                    if (alone)
                        assert_int_equal(tn_backward(loss), TN_OK);
                    assert_int_equal(test_eval(alone ? tn_grad(x) : loss), TN_ERR_INDEX);
                    const char *told = test_same_bits() ? wrong[w].told : wrong[w].late, *bar = strchr(told, '|');
                    char first[64];
                    snprintf(first, sizeof first, "%.*s", (int)(bar ? bar - told : (int)strlen(told)), told);
                    if (!strstr(tn_error(), first) || (bar && !strstr(tn_error(), bar + 1)))
                        fail_msg("%s, case %d: %s", tn_dtype_name(dtype), w, tn_error());
                    tn_clear_error();
                }
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(4, 1, 3)), *one = tn_ones(TN_SHAPE(1), .dtype = TN_INT64);
        tn_array *t = tn_from_host(((int64_t[]){2, -7}), TN_SHAPE(1, 2), TN_INT64);
        tn_array *alone = tn_full(TN_SHAPE(1, 1), 2, .dtype = TN_INT64);
        assert_true(tn_allclose(tn_ctc_loss(x, t, .label_lengths = one), tn_ctc_loss(x, alone)));
        tn_array *cost = tn_zeros(TN_SHAPE(3, 3)), *labels = tn_zeros(TN_SHAPE(4, 1), .dtype = TN_INT64);
        tn_array *wrong = tn_from_host(((int64_t[]){0, 1, -1, 2}), TN_SHAPE(4, 1), TN_INT64);
        assert_int_equal(test_eval(tn_crf_loss(cost, x, wrong)), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, test_same_bits() ? "index -1 at position (2, 0) " : "index -1 ");
        tn_array *none = tn_zeros(TN_SHAPE(1), .dtype = TN_INT64);
        assert_int_equal(test_eval(tn_crf_loss(cost, x, labels, .lengths = none)), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, test_same_bits() ? "index 0 at position 0 " : "index 0 ");
    }
    check_fine();
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3)), *whole = tn_ones(TN_SHAPE(2, 3), .dtype = TN_INT64);
        tn_array *t = tn_zeros(TN_SHAPE(2), .dtype = TN_INT64);
        assert_true(tn_is_error(tn_huber_loss(x, tn_ones(TN_SHAPE(3)), 1)));
        check_latched(TN_ERR_SHAPE, "expected x and t of one shape, got (2, 3) and (3,)");
        assert_true(tn_is_error(tn_huber_loss(x, x, 0)));
        check_latched(TN_ERR_VALUE, "delta > 0");
        assert_true(tn_is_error(tn_mean_absolute_error(whole, whole)));
        check_latched(TN_ERR_DTYPE, "expected floating a");
        assert_true(tn_is_error(tn_mean_absolute_error(x, x, .reduction = (tn_reduction)7)));
        check_latched(TN_ERR_VALUE, "7 is no tn_reduction");
        assert_int_equal(tn_dtype_of(tn_mean_absolute_error(x, whole)), TN_FLOAT32);
        assert_true(tn_is_error(tn_hinge_loss(x, whole)));
        check_latched(TN_ERR_SHAPE, "one a row of the scores");
        assert_int_equal(test_eval(tn_hinge_loss(x, tn_full(TN_SHAPE(2), 3, .dtype = TN_INT64))), TN_ERR_INDEX);
        tn_clear_error();
        assert_true(tn_is_error(tn_multi_margin_loss(x, t, .p = 3)));
        check_latched(TN_ERR_VALUE, "1 or 2");
        assert_true(tn_is_error(tn_triplet_loss(x, x, x, .p = 0.5)));
        check_latched(TN_ERR_VALUE, "p >= 1");
        assert_true(tn_is_error(tn_contrastive_loss(x, x, x, 1)));
        check_latched(TN_ERR_SHAPE, "y of shape (2,)");
        assert_true(tn_is_error(tn_ctc_loss(x, t)));
        check_latched(TN_ERR_SHAPE, "expected x (steps, N, classes)");
        tn_array *steps = tn_ones(TN_SHAPE(2, 2, 3));
        assert_true(tn_is_error(tn_ctc_loss(steps, whole, .blank = 3)));
        check_latched(TN_ERR_INDEX, "blank among the 3 classes");
        tn_array *lengths = tn_full(TN_SHAPE(2), 3, .dtype = TN_INT64);
        assert_int_equal(test_eval(tn_ctc_loss(steps, whole, .input_lengths = lengths)), TN_ERR_INDEX);
        tn_clear_error();
        assert_true(tn_is_error(tn_ctc_loss(tn_ones(TN_SHAPE(0, 2, 3)), whole)));
        check_latched(TN_ERR_SHAPE, "of a step");
        assert_true(tn_is_error(tn_crf_loss(x, steps, whole)));
        check_latched(TN_ERR_SHAPE, "expected cost (classes, classes)");
        assert_true(tn_is_error(tn_softmax_cross_entropy(x, x, .ignore_index = 1)));
        check_latched(TN_ERR_VALUE, "ignore_index is a label's");
        assert_true(tn_is_error(tn_sigmoid_cross_entropy(x, x, .weight = tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_SHAPE, "broadcast to the logits (2, 3)");
        assert_true(tn_is_error(tn_negative_sampling(x, t, tn_ones(TN_SHAPE(4, 2)), whole)));
        check_latched(TN_ERR_SHAPE, "expected x (N, features)");
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements), cmocka_unit_test(test_rows), cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_ctc_ends), cmocka_unit_test(test_crf_decode), cmocka_unit_test(test_named_as_given),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
