/* SPDX-License-Identifier: MIT */
/* Saving and loading layers: every bit comes back; what does not fit is named with both shapes and changes nothing. */
#include "nn/check.h"

#include <unistd.h>

static char folder[] = "/tmp/tanso-nn-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? check_seed(state) : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    const char *names[] = {"net.safetensors", "net.npz", "other.safetensors"};
    for (int i = 0; i < 3; i++)
        unlink(in_folder(names[i]));
    return rmdir(folder); /* which fails if a temporary file was left */
}

static void check_same(const tn_layer *a, const tn_layer *b)
{
    assert_int_equal(tn_param_count(a), tn_param_count(b));
    for (int i = 0; i < tn_param_count(a); i++) TN_SCOPE {
        double x[256], y[256];
        int64_t size = tn_size(tn_param(a, i));
        assert_string_equal(tn_param_name(a, i), tn_param_name(b, i));
        assert_int_equal(tn_dtype_of(tn_param(a, i)), tn_dtype_of(tn_param(b, i)));
        check_read(tn_param(a, i), x, size);
        check_read(tn_param(b, i), y, size);
        assert_memory_equal(x, y, (size_t)size * sizeof *x);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *files[] = {"net.safetensors", "net.npz"}, *words = "linear:6 relu layer_norm linear:3";
    for (int k = 0; k < 2; k++) {
        tn_layer *net = tn_layer_parse(words), *made = tn_layer_parse(words), *fresh = tn_layer_parse(words);
        TN_SCOPE {
            tn_array *x = tn_ones_with(TN_SHAPE(2, 5), NULL);
            tn_forward(net, x);
            tn_forward(made, x);
            assert_int_equal(tn_layer_save(net, in_folder(files[k])), TN_OK);
            tn_array *first = tn_param(made, 0);
            assert_int_equal(tn_layer_load(made, in_folder(files[k])), TN_OK);
            assert_ptr_equal(tn_param(made, 0), first);
            check_same(net, made);
            /* one that has not seen an input takes the file's shapes */
            assert_int_equal(tn_param_count(fresh), 0);
            assert_int_equal(tn_layer_load(fresh, in_folder(files[k])), TN_OK);
            check_same(net, fresh);
            assert_true(tn_needs_grad(tn_param(fresh, 0)));
            double y[6], z[6];
            check_read(tn_forward(net, x), y, 6);
            check_read(tn_forward(fresh, x), z, 6);
            assert_memory_equal(y, z, sizeof y);
            /* loaded parameters train */
            tn_optimizer *optimizer = tn_sgd(fresh);
            assert_int_equal(tn_backward(tn_sum_with(tn_forward(fresh, x), NULL)), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            tn_optimizer_free(optimizer);
        }
        tn_layer_free(net);
        tn_layer_free(made);
        tn_layer_free(fresh);
    }
    check_fine();
}

/* A file of another dtype is converted; a file on the way to another device is moved. */
static void test_converts(void **state)
{
    (void)state;
    tn_layer *wide = tn_linear(3, .in = 4, .dtype = TN_FLOAT64), *narrow = tn_linear(3, .in = 4);
    TN_SCOPE {
        double w[12], v[12];
        assert_int_equal(tn_layer_save(wide, in_folder("other.safetensors")), TN_OK);
        assert_int_equal(tn_layer_load(narrow, in_folder("other.safetensors")), TN_OK);
        assert_int_equal(tn_dtype_of(tn_param(narrow, 0)), TN_FLOAT32);
        check_read(tn_param(wide, 0), w, 12);
        check_read(tn_param(narrow, 0), v, 12);
        for (int i = 0; i < 12; i++)
            assert_float_equal(v[i], (float)w[i], 0);
    }
    tn_layer_free(wide);
    tn_layer_free(narrow);
    check_fine();
}

static void test_misfits(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(3, .in = 4), tn_linear(2, .in = 3));
    assert_int_equal(tn_layer_save(net, in_folder("other.safetensors")), TN_OK);
    const struct {
        tn_layer *layer;
        tn_status code;
        const char *part;
    } rows[] = {
        {tn_sequential(tn_linear(3, .in = 4), tn_linear(5, .in = 3)), TN_ERR_SHAPE, "'1.W' has shape (3, 2)"},
        {tn_sequential(tn_linear(3, .in = 4), tn_linear(5, .in = 3)), TN_ERR_SHAPE, "network's is (3, 5)"},
        {tn_sequential(tn_linear(3, .in = 5), tn_linear(2)), TN_ERR_SHAPE, "(5, 3)"},
        {tn_sequential(tn_linear(7), tn_linear(2)), TN_ERR_SHAPE, "(?, 7)"},
        {tn_sequential(tn_linear(3), tn_relu_layer(), tn_linear(2)), TN_ERR_NAME, "'2.W'"},
        {tn_sequential(tn_linear(3), tn_layer_norm(0, 0)), TN_ERR_NAME, "'1.gamma'"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) TN_SCOPE {
        tn_layer *layer = rows[k].layer;
        int count = tn_param_count(layer);
        double before[32], after[32];
        int64_t size = count ? tn_size(tn_param(layer, 0)) : 0;
        if (count)
            check_read(tn_param(layer, 0), before, size);
        assert_int_equal(tn_layer_load(layer, in_folder("other.safetensors")), rows[k].code);
        check_latched(rows[k].code, rows[k].part);
        assert_int_equal(tn_param_count(layer), count);
        if (count)
            check_read(tn_param(layer, 0), after, size);
        assert_memory_equal(before, after, (size_t)size * sizeof *before);
        tn_layer_free(layer);
    }
    assert_int_equal(tn_layer_load(net, in_folder("absent.safetensors")), TN_ERR_IO);
    check_latched(TN_ERR_IO, "absent.safetensors");
    assert_int_not_equal(tn_layer_save(net, in_folder("net.unknown")), TN_OK);
    tn_clear_error();
    tn_layer *unmade = tn_layer_parse("linear:3");
    assert_int_equal(tn_layer_save(unmade, in_folder("net.npz")), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "'0.W'");
    assert_int_equal(tn_layer_load(NULL, "x"), TN_ERR_VALUE);
    tn_clear_error();
    tn_layer_free(unmade);
    tn_layer_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_converts),
        cmocka_unit_test(test_misfits),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
