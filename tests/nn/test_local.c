/* SPDX-License-Identifier: MIT */
/* Functions and layers that choose, shift and scale, against Chainer's values, and gradients of both orders against
 * differences; extents of results; what is refused. */
#include "nn/torch.h"

static tn_array *absolute_error(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    return tn_absolute_error(x[0], x[1]);
}

static tn_array *squared_error(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    return tn_squared_error(x[0], x[1]);
}

static tn_array *select_item(tn_array *const *x, tn_array *const *t) { return tn_select_item(x[0], t[0]); }

static tn_array *separate(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_array *part[3] = {NULL};
    if (tn_separate(x[0], -2, part) != TN_OK)
        fail_msg("%s", tn_error());
    return tn_stack(TN_ARRAYS(part[2], part[1], part[0]), 0);
}

static tn_array *local_conv2d(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    return tn_local_conv2d(x[0], x[1], x[2], TN_SHAPE(2, 1));
}

static tn_array *shift(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    return tn_shift(x[0], TN_SHAPE(3), TN_SHAPE(2));
}

/* Chainer's gates of a unit lie side by side: candidate, input, forget, output. */
static tn_array *gates_of(const tn_array *x)
{
    tn_array *each = tn_reshape(x, TN_SHAPE(3, 2, 4)), *gate[4] = {NULL};
    if (tn_separate(each, 2, gate) != TN_OK)
        fail_msg("%s", tn_error());
    return tn_concatenate(TN_ARRAYS(gate[1], gate[2], gate[0], gate[3]), 1);
}

static tn_array *slstm_step(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_array *c, *h = tn_slstm_step(gates_of(x[2]), x[0], gates_of(x[3]), x[1], &c);
    return tn_concatenate(TN_ARRAYS(h, c), 1);
}

static tn_array *transpose_sequence(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_array *step[4] = {NULL}, *back[3] = {NULL};
    if (tn_transpose_sequence(TN_ARRAYS(x[0], x[1], x[2]), step) != TN_OK ||
        tn_transpose_sequence(TN_ARRAYS(step[0], step[1], step[2], step[3]), back) != TN_OK)
        fail_msg("%s", tn_error());
    for (int i = 0; i < 3; i++)
        assert_true(tn_array_equal(back[i], x[i], false));
    return tn_concatenate(TN_ARRAYS(step[0], step[1], step[2], step[3]), 0);
}

static void test_values(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"absolute_error", absolute_error, false}, {"squared_error", squared_error, false},
        {"select_item", select_item, false},       {"separate", separate, false},
        {"local_conv2d", local_conv2d, false},     {"shift", shift, false},
        {"slstm_step", slstm_step, false},         {"transpose_sequence", transpose_sequence, false},
    };
    if (!values_open("chainer.npz"))
        skip();
    torch_check(sizeof cases / sizeof *cases, cases);
    double extents[4][8];
    check_read(torch_value("extents"), extents[0], 32);
    for (int i = 0; i < 4; i++) {
        int64_t n[8];
        for (int k = 0; k < 8; k++)
            n[k] = (int64_t)extents[i][k];
        assert_int_equal(tn_conv_extent(n[0], n[1], n[2], n[3], n[4], true), n[5]);
        assert_int_equal(tn_conv_extent(n[0], n[1], n[2], n[3], n[4], false), n[6]);
        assert_int_equal(tn_conv_transpose_extent(n[0], n[1], n[2], n[3], n[4]), n[7]);
    }
    torch_close();
    check_fine();
}

static tn_array *scaled(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_forward(user, xs[0]);
}

static void test_layers(void **state)
{
    (void)state;
    if (!values_open("chainer.npz"))
        skip();
    for (int bias = 0; bias < 2; bias++) TN_SCOPE {
        const char *name = bias ? "bias" : "scale";
        char path[4096], what[32];
        double want[48];
        tn_layer *layer = bias ? tn_bias_layer(2, TN_SHAPE(4)) : tn_scale_layer(1, TN_SHAPE(3, 4), true);
        snprintf(path, sizeof path, "%s/chainer.npz", getenv("TANSO_TEST_DATA"));
        snprintf(what, sizeof what, "%s/", name);
        if (tn_layer_load(layer, path, .chainer = true, .prefix = what) != TN_OK)
            fail_msg("%s", tn_error());
        tn_layer_to(layer, test_device());
        snprintf(what, sizeof what, "%s.y", name);
        check_read(torch_value(what), want, 48);
        snprintf(what, sizeof what, "%s.x", name);
        tn_array *x = tn_cast(torch_value(what), TN_FLOAT32);
        check_near(tn_forward(layer, x), want, 48, 1e-6);
        const tn_array *in[] = {x};
        if (tn_check_backward(scaled, layer, 1, in, .seed = check_bits()) != TN_OK)
            fail_msg("%s: %s", name, tn_error());
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(2, 3)))));
        check_latched(TN_ERR_SHAPE, "from axis");
        tn_layer_free(layer);
    }
    torch_close();
    check_fine();
}

static void refused(const tn_array *got, tn_status code, const char *text)
{
    assert_true(tn_is_error(got));
    check_latched(code, text);
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(1, 2, 4, 4)), *none[4] = {NULL}, *row = tn_ones(TN_SHAPE(2, 3));
        tn_array *label = tn_from_host(((int64_t[]){3, 3}), TN_SHAPE(2), TN_INT64);
        refused(tn_local_conv2d(x, tn_ones(TN_SHAPE(3, 2, 2, 2, 2, 2)), NULL, TN_SHAPE(1)), TN_ERR_SHAPE,
                "weights for 3 rows and 3 columns");
        refused(tn_local_conv2d(x, tn_ones(TN_SHAPE(3, 1, 1, 2, 5, 5)), NULL, TN_SHAPE(1)), TN_ERR_SHAPE,
                "is larger than axis 2");
        refused(tn_shift(x, TN_SHAPE(3), TN_SHAPE(1)), TN_ERR_VALUE, "than there are channels, 2");
        refused(tn_shift(x, TN_SHAPE(2, 1), TN_SHAPE(1)), TN_ERR_VALUE, "odd extents");
        refused(tn_select_item(row, tn_ones(TN_SHAPE(3), .dtype = TN_INT64)), TN_ERR_SHAPE, "x (N, classes) and t (N)");
        tn_item(tn_sum(tn_select_item(row, label)));
        /* A GPU's kernel knows the index alone, not that it is a label. */
        check_latched(TN_ERR_INDEX, test_same_bits() ? "valid are 0 to 2" : "index 3 is out of range");
        refused(tn_absolute_error(row, x), TN_ERR_SHAPE, "");
        refused(tn_slstm_step(row, row, row, row, &none[0]), TN_ERR_SHAPE, "4 units");
        assert_int_equal(tn_transpose_sequence(TN_ARRAYS(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3))), none),
                         TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "the longest first");
        assert_int_equal(tn_separate(row, 2, none), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
        tn_layer *layer = tn_scale_layer(-1, TN_SHAPE(2), false);
        assert_int_equal(tn_layer_status(layer), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "an axis from 0");
        tn_layer_free(layer);
        assert_int_equal(tn_conv_extent(3, 4, 1, 0, 1, false), 0);
        assert_int_equal(tn_conv_extent(3, INT64_MAX, 1, 0, INT64_MAX, false), 0);
        assert_int_equal(tn_conv_transpose_extent(1, 1, 1, 1, 1), 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
