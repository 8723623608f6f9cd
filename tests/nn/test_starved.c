/* SPDX-License-Identifier: MIT */
/* Layers, losses, windows, distributions, forward and backward, where memory runs out: each allocation fails once. */
#include "nn/check.h"
#include "support/starve.h"

/* What a scenario computes; a layer that it makes goes into *layer. */
typedef tn_array *(*scenario)(tn_layer **layer);

#define FUNCTION(name, expression) \
    static tn_array *name(tn_layer **layer) \
    { \
        (void)layer; \
        tn_array *x = tn_requires_grad(tn_full(TN_SHAPE(2, 3), 0.5)); \
        const tn_array *t = tn_full(TN_SHAPE(2), 1, .dtype = TN_INT64); \
        (void)t; \
        return expression; \
    }
FUNCTION(cross_entropy, tn_softmax_cross_entropy(x, t, .ignore_index = 0, .label_smoothing = 0.1))
FUNCTION(triplet, tn_triplet_loss(x, tn_sin(x), tn_cos(x)))
FUNCTION(gaussian_nll, tn_gaussian_nll(x, tn_sin(x), x))
FUNCTION(hinge, tn_hinge_loss(x, t))
FUNCTION(ctc, tn_ctc_loss(tn_reshape(x, TN_SHAPE(2, 1, 3)), tn_ones(TN_SHAPE(1, 1), .dtype = TN_INT64)))
FUNCTION(crf, tn_crf_loss(tn_ones(TN_SHAPE(3, 3)), tn_expand_dims(x, 1),
                          tn_ones(TN_SHAPE(2, 1), .dtype = TN_INT64)))
FUNCTION(sampled, tn_black_out(x, t, tn_ones(TN_SHAPE(4, 3)), tn_ones(TN_SHAPE(2, 2), .dtype = TN_INT64)))
FUNCTION(grid, tn_grid_sample(tn_reshape(x, TN_SHAPE(1, 1, 2, 3)), tn_affine_grid(tn_expand_dims(x, 0),
                                                                                 TN_SHAPE(2, 2), false)))
FUNCTION(boxes, tn_roi_align(tn_reshape(x, TN_SHAPE(1, 1, 2, 3)), tn_zeros(TN_SHAPE(1, 5)), TN_SHAPE(2)))
FUNCTION(bins, tn_roi_pool(tn_reshape(x, TN_SHAPE(1, 1, 2, 3)), tn_zeros(TN_SHAPE(1, 5)), TN_SHAPE(2)))
FUNCTION(cubic, tn_interpolate(tn_reshape(x, TN_SHAPE(1, 2, 3)), TN_SHAPE(4), .mode = "cubic"))
FUNCTION(kl, tn_kl(tn_dist_normal(x, tn_exp(x)), tn_dist_normal(0, 1)))
FUNCTION(entropy, tn_entropy(tn_dist_categorical(x)))

#define LAYER(name, make, ...) \
    static tn_array *name(tn_layer **layer) \
    { \
        *layer = make; \
        return tn_forward(*layer, __VA_ARGS__); \
    }
#define ROWS   tn_ones(TN_SHAPE(2, 3))
#define MAPS   tn_ones(TN_SHAPE(1, 2, 3, 3))
#define LABELS tn_ones(TN_SHAPE(2), .dtype = TN_INT64)
LAYER(conv, tn_conv2d(2, TN_SHAPE(2), .pad = TN_SHAPE(1)), MAPS)
LAYER(norms, tn_sequential(tn_batch_norm(0), tn_group_norm(2, 0, 0), tn_rms_norm(0, 0)), MAPS)
LAYER(lstm, tn_lstm(2, .layers = 2, .bidirectional = true), tn_ones(TN_SHAPE(2, 1, 2)))
LAYER(gru, tn_rnn_step(TN_RNN_GRU_BEFORE, 2), ROWS)
LAYER(tree, tn_tree_lstm(2, 2, 0), ROWS, tn_ones(TN_SHAPE(2, 2, 2)), tn_ones(TN_SHAPE(2, 2, 2)))
LAYER(attention, tn_transformer_encoder_layer(4, 2, .hidden = 2), tn_ones(TN_SHAPE(1, 2, 4)))
LAYER(inception, tn_inception(1, 1, 1, 1, 1, 1), MAPS)
LAYER(words, tn_hierarchical_softmax_layer(3, tn_arange(0, 4, 1)), ROWS, LABELS)
LAYER(negatives, tn_negative_sampling_layer(3, tn_arange(0, 4, 1), 2, 0.75), ROWS, LABELS)
LAYER(highway, tn_sequential(tn_highway(3, NULL), tn_maxout_layer(2, 2)), ROWS)

static tn_status run(void *user)
{
    const scenario *of = user;
    tn_layer *layer = NULL;
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_array *y = (*of)(&layer);
        status = tn_is_error(y) ? tn_status_of(y) : tn_backward(tn_sum(y));
    }
    tn_layer_free(layer);
    return status;
}

static void test_all(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        scenario of;
    } scenarios[] = {
        {"cross_entropy", cross_entropy}, {"triplet", triplet}, {"gaussian_nll", gaussian_nll}, {"hinge", hinge},
        {"ctc", ctc}, {"crf", crf}, {"sampled", sampled}, {"grid", grid}, {"boxes", boxes}, {"bins", bins},
        {"cubic", cubic}, {"kl", kl}, {"entropy", entropy}, {"conv", conv}, {"norms", norms}, {"lstm", lstm},
        {"gru", gru}, {"tree", tree}, {"attention", attention}, {"inception", inception}, {"words", words},
        {"negatives", negatives}, {"highway", highway},
    };
    tn_set_compile(TN_COMPILE_NEVER);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        starve(scenarios[i].name, run, (void *)&scenarios[i].of);
    tn_set_compile(TN_COMPILE_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
