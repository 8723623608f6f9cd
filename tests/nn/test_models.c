/* SPDX-License-Identifier: MIT */
/*
 * The networks of tanso/models.h: numbers of parameters, shapes, PyTorch's weights and results (models/make.py),
 * training and files; the words they are written in, and what errors say of a place; residuals' and concats' values and
 * gradients.
 */
#include "check.h"

#include <unistd.h>

#include "core/memory.h"

#define TINY ",width=0.0625"

/* A forward and a backward of every parameter in training mode; x keeps its scope. */
static tn_array *train_once(tn_layer *net, const tn_array *x)
{
    tn_array *y = tn_forward(net, x);
    check_fine();
    assert_int_equal(tn_backward(tn_sum(tn_square(y))), TN_OK);
    return y;
}

static tn_array *pictures(int64_t n, int64_t channels, int64_t extent)
{
    return tn_random_normal(TN_SHAPE(n, channels, extent, extent));
}

/* ---- models ---- */

/* Numbers of parameters that the authors and PyTorch tell. */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        int64_t channels, extent, params;
    } models[] = {{"resnet18", 3, 32, 11689512},    {"resnet18:10,stem=cifar", 3, 8, 11173962},
                  {"resnet50", 3, 32, 25557032},    {"googlenet", 3, 32, 6624904},
                  {"mobilenet_v2", 3, 32, 3504872}, {"unet:1", 3, 16, 31037633},
                  {"lenet5", 1, 28, 431080},        {"vgg_cifar", 3, 32, 14987200},
                  {"vgg19:10,width=0.0625", 3, 32, 548670}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) TN_SCOPE {
        tn_layer *net = tn_layer_parse(models[i].word);
        tn_forward(net, tn_zeros(TN_SHAPE(1, models[i].channels, models[i].extent, models[i].extent)));
        check_fine();
        assert_int_equal(tn_param_total(net), models[i].params);
        tn_layer_free(net);
    }
}

/* Weights, each a number that the width divides exactly, as PyTorch saved them. */
static void test_torch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tn_layer *(*make)(int64_t classes, const tn_model_opts *opts);
        double divisor;
    } models[] = {{"resnet18", tn_resnet18_with, 32}, {"resnet50", tn_resnet50_with, 64},
                  {"alexnet", tn_alexnet_with, 64},   {"vgg16", tn_vgg16_with, 64},
                  {"googlenet", tn_googlenet_with, 16}, {"mobilenet_v2", tn_mobilenet_v2_with, 8}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) TN_SCOPE {
        char path[512];
        double want[10];
        check_context = models[i].name;
        snprintf(path, sizeof path, "%s/%s.safetensors", TANSO_TEST_FILES, models[i].name);
        tn_archive *file = tn_archive_load(path);
        tn_layer *net = models[i].make(5, TN_OPTS(tn_model_opts, .width = 1 / models[i].divisor));
        tn_layer_train(net, false);
        assert_int_equal(tn_layer_load(net, path, .torch = true), TN_OK);
        tn_array *x = tn_to(tn_archive_find(file, "test.x"), test_device());
        check_read(tn_archive_find(file, "test.y"), want, 10);
        check_near(tn_forward(net, tn_cast(x, TN_FLOAT32)), want, 10, 1e-4);
        assert_true(fabs(want[0] - want[5]) > 1e-3); /* which says that the picture matters */
        tn_layer_free(net);
        tn_archive_free(file);
    }
    check_context = "";
    check_fine();
}

/* The others' blocks are theirs in other numbers: shapes, gradients of all parameters, files. */
static void test_training(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int64_t channels, extent, params;
    } nets[] = {{"resnet18:3,stem=cifar" TINY, 3, 8, 62}, {"unet:2,width=0.03125", 1, 16, 64}};
    char path[] = "/tmp/tanso-models-XXXXXX.safetensors";
    close(mkstemps(path, 12));
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) TN_SCOPE {
        tn_layer *net = tn_layer_parse(nets[i].words), *again = tn_layer_parse(nets[i].words);
        assert_int_equal(tn_layer_to(net, test_device()), TN_OK); /* nothing is made yet, nor running statistics */
        tn_array *x = pictures(2, nets[i].channels, nets[i].extent), *y = train_once(net, x);
        assert_int_equal(tn_dim(y, 1), i ? 2 : 3);
        assert_int_equal(tn_ndim(y), i ? 4 : 2);
        assert_int_equal(tn_param_count(net), nets[i].params);
        for (int k = 0; k < tn_param_count(net); k++)
            if (!(tn_item(tn_sum(tn_abs(tn_grad(tn_param(net, k))))) >= 0))
                fail_msg("%s has no gradient", tn_param_name(net, k));
        tn_layer_train(net, false);
        tn_layer_train(again, false);
        assert_int_equal(tn_layer_save(net, path), TN_OK);
        assert_int_equal(tn_layer_load(again, path), TN_OK);
        assert_true(tn_item(tn_all(tn_equal(tn_forward(net, x), tn_forward(again, x)))));
        tn_layer_free(net);
        tn_layer_free(again);
    }
    unlink(path);
    check_fine();
}

/* What stages give, by the names that they have. */
static void test_stages(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t channels, extent;
    } stages[] = {{"conv1", 4, 16}, {"3", 4, 8}, {"layer1", 16, 8}, {"layer2", 32, 4}, {"layer3", 64, 2},
                  {"layer4", 128, 1}};
    tn_layer *net = tn_resnet50(7, .width = 0.0625);
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(1, 3, 32, 32));
        static const char *const path[] = {"conv1", "bn1", "2", "3", "layer1", "layer2", "layer3", "layer4"};
        for (size_t i = 0, s = 0; i < sizeof path / sizeof *path; i++) {
            x = tn_forward(tn_layer_child(net, path[i]), x);
            if (strcmp(path[i], stages[s].name) != 0)
                continue;
            assert_int_equal(tn_dim(x, 1), stages[s].channels);
            assert_int_equal(tn_dim(x, 2), stages[s++].extent);
        }
        assert_int_equal(tn_dim(tn_forward(tn_layer_child(net, "fc"), tn_forward(tn_layer_child(net, "8"), x)), 1), 7);
        assert_non_null(tn_layer_child(net, "layer2.0.downsample.1"));
        assert_non_null(tn_layer_child(net, "layer4.2.conv3"));
    }
    tn_layer_free(net);
    check_fine();
}

/* ---- branches ---- */

static tn_array *through(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_forward(user, xs[0]);
}

/* Sums and joined results by hand, and differences, of layers in training mode. */
static void test_branches(void **state)
{
    (void)state;
    tn_layer *body = tn_conv2d(4, TN_SHAPE(3), .pad = TN_SHAPE(1), .in = 3, .dtype = TN_FLOAT64);
    tn_layer *shortcut = tn_conv2d(4, TN_SHAPE(1), .in = 3, .dtype = TN_FLOAT64);
    tn_layer *residual = tn_residual(body, shortcut, tn_tanh_layer());
    tn_layer *plain = tn_residual(tn_tanh_layer(), NULL, NULL);
    tn_layer *block = tn_residual(
        tn_sequential(tn_conv2d(3, TN_SHAPE(3), .pad = TN_SHAPE(1), .in = 3, .dtype = TN_FLOAT64),
                      tn_batch_norm(3, .dtype = TN_FLOAT64), tn_tanh_layer()), NULL, tn_softplus_layer());
    tn_layer *concat = tn_concat_layer(1, tn_identity_layer(), tn_tanh_layer(), tn_relu_layer());
    TN_SCOPE {
        tn_array *x = tn_cast(pictures(2, 3, 5), TN_FLOAT64), *y;
        double want[450];
        y = tn_tanh(tn_add(tn_forward(body, x), tn_forward(shortcut, x)));
        check_read(y, want, 200);
        check_near(tn_forward(residual, x), want, 200, 1e-12);
        check_read(tn_add(x, tn_tanh(x)), want, 150);
        check_near(tn_forward(plain, x), want, 150, 1e-12);
        check_read(tn_concatenate(TN_ARRAYS(x, tn_tanh(x), tn_relu(x)), 1), want, 450);
        check_near(tn_forward(concat, x), want, 450, 0);
        assert_non_null(tn_layer_child(residual, "shortcut"));
        assert_int_equal(tn_check_backward(through, block, 1, (const tn_array *[]){x}), TN_OK);
    }
    tn_layer_free(residual);
    tn_layer_free(plain);
    tn_layer_free(block);
    tn_layer_free(concat);
    check_fine();

    tn_layer *odd = tn_layer_parse("residual(conv:4,3 bn)"), *other = tn_layer_parse("concat(conv:4,3|)");
    TN_SCOPE {
        assert_true(tn_is_error(tn_forward(odd, pictures(1, 3, 5))));
        check_latched(TN_ERR_SHAPE, "a shortcut of its own");
        assert_true(tn_is_error(tn_forward(other, pictures(1, 3, 5))));
        check_latched(TN_ERR_SHAPE, "differ along axis 1 alone");
    }
    tn_layer_free(odd);
    tn_layer_free(other);
    tn_layer_free(tn_residual(NULL, tn_relu_layer(), NULL));
    check_latched(TN_ERR_VALUE, "expected a layer, got NULL");
    tn_layer_free(tn_concat_layer_of(1, 2, (tn_layer *[]){tn_relu_layer(), NULL}));
    check_latched(TN_ERR_VALUE, "layer 1 of 2 is NULL");
    tn_layer_free(tn_concat_layer(99, tn_relu_layer()));
    check_latched(TN_ERR_VALUE, "an axis from");
}

/* ---- words ---- */

static void test_groups(void **state)
{
    (void)state;
    tn_layer *net = tn_layer_parse("first=(linear:3 relu)repeat:2(linear:4 repeat:2(tanh))\n"
                                   "residual(a=linear:4 relu|b=linear:4|tanh) fc=linear:2");
    TN_SCOPE {
        tn_forward(net, tn_ones(TN_SHAPE(1, 2)));
        static const char *const names[] = {"first.0.W", "first.0.b", "1.W", "1.b", "4.W", "4.b",
                                            "7.a.W",     "7.a.b",     "7.b.W", "7.b.b", "fc.W", "fc.b"};
        check_fine();
        assert_int_equal(tn_param_count(net), 12);
        for (int i = 0; i < 12; i++)
            assert_string_equal(tn_param_name(net, i), names[i]);
    }
    tn_layer_free(net);
    net = tn_layer_parse("(relu tanh)"); /* a sequence alone is the network */
    char *text = tn_layer_string(net);
    assert_string_equal(text, "sequential\n  0: relu\n  1: tanh\n");
    tn_string_free(text);
    tn_layer_free(net);
    check_fine();
}

static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"relu lineer:3", "column 6: there is no layer 'lineer': did you mean 'linear'?"},
        {"relu\n tanh conv:3", "line 2, column 7: 'conv:3': expected conv:OUT"},
        {"linear:3 (relu", "column 15: expected ')' for the '(' of column 10, got the end"},
        {"relu)", "column 5: expected a layer, got ')'"},
        {"relu|tanh", "column 5: expected a layer, got '|'"},
        {"(relu|tanh)", "column 6: expected ')' for the '(' of column 1, got '|'"},
        {"a=relu a=tanh", "column 8: there is a 'a' already"},
        {"relu =tanh", "column 6: expected a name before '='"},
        {"a= relu", "column 3: expected a layer behind 'a=', got ' '"},
        {"residual relu", "column 9: expected '(' right behind 'residual'"},
        {"residual()", "column 9: expected layers in residual"},
        {"residual(relu|relu|relu|relu)", "column 24: a residual has 3 parts at most"},
        {"repeat(relu)", "column 1: expected repeat:TIMES(LAYERS)"},
        {"repeat:0(relu)", "column 8: expected a whole number from 1"},
        {"repeat:2x(relu)", "column 8: expected a whole number from 1"},
        {"repeat:2()", "column 9: expected layers in repeat"},
        {"x=repeat:2(relu)", "column 3: a repeat has no name"},
        {"repeat:999(repeat:999(relu))", "expected 100000 layers at most"},
        {"concat:99(relu)", "column 8: expected a whole number from"},
        {"linear:3(relu)", "column 9: expected a layer's end"},
        {"residuel(relu)", "column 9: expected a layer's end"},
        {"concat(relu", "got the end"},
        {"resnet18:3,stem=round", "there is no stem 'round'"},
        {"vgg16:3,stem=cifar", "there is no stem 'cifar': expected none"},
        {"vgg16:3,width=x", "expected a width above 0, got 'x'"},
        {"alexnet:0", "at least one output"},
        {"conv:3,3,init=heavy", "there is no initialiser 'heavy'"},
        {"resnet19", "did you mean 'resnet1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_layer *net = tn_layer_parse(bad[i].text);
        assert_int_not_equal(tn_layer_status(net), TN_OK);
        if (!strstr(tn_error(), bad[i].said) || !strstr(tn_error(), "test_models.c:"))
            fail_msg("%s: %s", bad[i].text, tn_error());
        tn_clear_error();
        tn_layer_free(net);
    }
    char deep[512];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = 0;
    tn_layer_free(tn_layer_parse(deep));
    check_latched(TN_ERR_VALUE, "nested deeper than 100");
    /* an error that was there stays the one that is told */
    tn_layer_free(tn_layer_parse(")"));
    tn_layer_free(tn_layer_parse("lineer"));
    check_latched(TN_ERR_VALUE, "got ')'");
}

/* Wherever memory ends, the error says so, and nothing is lost. */
static void test_memory(void **state)
{
    (void)state;
    static const char words[] = "a=(tanh) repeat:2(relu) residual(b=relu|tanh|relu) concat(relu|tanh relu|)";
    for (long n = 0;; n++) {
        tn__fail_allocation_after(n);
        tn_layer *net = tn_layer_parse(words);
        tn__fail_allocation_after(-1);
        tn_status status = tn_layer_status(net);
        tn_layer_free(net);
        if (status == TN_OK)
            break;
        assert_int_equal(status, TN_ERR_MEMORY);
        tn_clear_error();
    }
    tn_clear_error();
}

/* A plain colour becomes its distance from the mean, in deviations; all else is tn_interpolate. */
static void test_prepare(void **state)
{
    (void)state;
    TN_SCOPE {
        const uint8_t colour[] = {255, 51, 0};
        tn_array *x = tn_reshape(tn_from_host(colour, TN_SHAPE(3), TN_UINT8), TN_SHAPE(3, 1, 1));
        tn_array *y = tn_prepare(tn_broadcast_to(x, TN_SHAPE(3, 2, 5)));
        const double want[] = {(1 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, -0.406 / 0.225};
        assert_true(tn_ndim(y) == 4 && tn_dim(y, 0) == 1 && tn_dim(y, 2) == 224 && tn_dim(y, 3) == 224);
        check_near(tn_reshape(tn_min(y, .axis = TN_AXES(0, 2, 3)), TN_SHAPE(3)), want, 3, 1e-6);
        check_near(tn_reshape(tn_max(y, .axis = TN_AXES(0, 2, 3)), TN_SHAPE(3)), want, 3, 1e-6);
        tn_array *several = tn_random_uniform(TN_SHAPE(2, 3, 9, 8));
        y = tn_slice_axis(tn_prepare(several), 1, 1, 2, 1);
        tn_array *same = tn_interpolate(tn_slice_axis(several, 1, 1, 2, 1), TN_SHAPE(224, 224), .mode = "linear");
        assert_true(tn_item(tn_max(tn_abs(tn_subtract(tn_multiply(y, 0.224), tn_subtract(same, 0.456))))) < 1e-5);
        check_fine();
        REFUSED(TN_ERR_SHAPE, "three colours", tn_prepare(tn_ones(TN_SHAPE(1, 4, 4))));
        REFUSED(TN_ERR_SHAPE, "three colours", tn_prepare(tn_ones(TN_SHAPE(3, 4))));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepare),  cmocka_unit_test(test_counts),
        cmocka_unit_test(test_torch),  cmocka_unit_test(test_training),
        cmocka_unit_test(test_stages),   cmocka_unit_test(test_branches), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_places),   cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
