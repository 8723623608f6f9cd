/* SPDX-License-Identifier: MIT */
/* The options of loading: what the file does not hold, prefixes, names left out, and weights of the other order. */
#include "nn/check.h"

#include "support/scratch.h"

static tn_layer *new_net(void) { return tn_sequential(tn_linear(3, .in = 2), tn_relu_layer(), tn_linear(2, .in = 3)); }

/* A file of one matrix and one vector, as PyTorch would lay the first linear layer out; of fresh numbers. */
static const char *write_file(const char *prefix, const double *w, const double *b, char separator)
{
    char name[40];
    const char *path = scratch_path("options.safetensors");
    tn_archive *archive = tn_archive_new();
    TN_SCOPE {
        snprintf(name, sizeof name, "%s0%cW", prefix, separator);
        assert_int_equal(tn_archive_add(archive, name, check_array(w, TN_SHAPE(3, 2), TN_FLOAT32)), TN_OK);
        snprintf(name, sizeof name, "%s0%cb", prefix, separator);
        assert_int_equal(tn_archive_add(archive, name, check_array(b, TN_SHAPE(3), TN_FLOAT32)), TN_OK);
    }
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    tn_archive_free(archive);
    return path;
}

static void test_options(void **state)
{
    (void)state;
    double w[6], b[3], turned[6], second[6];
    check_fill(w, 6, -1, 1);
    check_fill(b, 3, -1, 1);
    for (int i = 0; i < 6; i++)
        turned[i] = w[i % 3 * 2 + i / 3];
    const char *path = write_file("model.", w, b, '.');
    tn_layer *net = new_net();
    TN_SCOPE check_read(tn_param_named(net, "2.W"), second, 6);
    assert_int_equal(tn_layer_load(net, path, .prefix = "model.", .transpose = "*.W"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "holds no '2.W', as 'model.2.W' (shape (3, 2))");
    assert_int_equal(tn_layer_load(net, path, .strict = false, .prefix = "model."), TN_ERR_SHAPE); /* nothing guessed */
    check_latched(TN_ERR_SHAPE, "'0.W' has shape (3, 2)");
    assert_int_equal(tn_layer_load(net, path, .strict = true, .prefix = "model.", .transpose = "*.W"), TN_ERR_NAME);
    tn_clear_error();
    assert_int_equal(tn_layer_load(net, path, .strict = false, .prefix = "model.", .transpose = "*.b"), TN_ERR_SHAPE);
    tn_clear_error();
    assert_int_equal(tn_layer_load(net, path, .strict = false, .prefix = "model.", .transpose = "*.W"), TN_OK);
    TN_SCOPE {
        check_near(tn_param_named(net, "0.W"), turned, 6, 0);
        check_near(tn_param_named(net, "0.b"), b, 3, 0);
        check_near(tn_param_named(net, "2.W"), second, 6, 0);
        assert_true(tn_needs_grad(tn_param_named(net, "0.W")));
    }
    tn_layer_free(net);

    net = new_net();
    double before[6];
    TN_SCOPE check_read(tn_param_named(net, "0.W"), before, 6);
    assert_int_equal(tn_layer_load(net, path, .prefix = "model.", .ignore = "0.W 2.*"), TN_OK);
    TN_SCOPE {
        check_near(tn_param_named(net, "0.W"), before, 6, 0);
        check_near(tn_param_named(net, "0.b"), b, 3, 0);
    }
    assert_int_equal(tn_layer_load(net, path), TN_ERR_NAME);
    tn_clear_error();
    tn_layer_free(net);
    check_fine();
}

/* What matches nothing is told, and leaves all as it was. */
static void test_nothing_matches(void **state)
{
    (void)state;
    double w[6], b[3], before[4][6];
    check_fill(w, 6, -1, 1);
    check_fill(b, 3, -1, 1);
    const char *path = write_file("net.", w, b, '.');
    tn_layer *net = new_net();
    static const char *const names[] = {"0.W", "0.b", "2.W", "2.b"};
    static const int sizes[] = {6, 3, 6, 2};
    for (int i = 0; i < 4; i++)
        TN_SCOPE check_read(tn_param_named(net, names[i]), before[i], sizes[i]);
    static const char *const none[] = {"net.model.2.*", "5.*", "[0", "*.weight", "1/W", "2.* 9.W"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(tn_layer_load(net, path, .prefix = "net.", .strict = false, .ignore = none[i]), TN_ERR_NAME);
        check_latched(TN_ERR_NAME, "of .ignore: there are 0.W, 0.b, 2.W, 2.b");
        assert_int_equal(tn_layer_load(net, path, .prefix = "net.", .strict = false, .transpose = none[i]),
                         TN_ERR_NAME);
        check_latched(TN_ERR_NAME, "of .transpose: there are 0.W, 0.b, 2.W, 2.b");
    }
    assert_int_equal(tn_layer_load(net, path, .prefix = "nett.", .strict = false), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "holds no '0.W', as 'nett.0.W'");
    assert_int_equal(tn_layer_load(net, path, .strict = false), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "holds no '0.W'");
    assert_int_equal(tn_layer_load(net, path, .prefix = "nett.", .strict = false, .ignore = "*"), TN_OK);
    for (int i = 0; i < 4; i++)
        TN_SCOPE check_near(tn_param_named(net, names[i]), before[i], sizes[i], 0);
    tn_layer_free(net);

    /* a bare layer's names have nothing before them */
    tn_layer *bare = tn_linear(3, .in = 2);
    double turned[6];
    for (int i = 0; i < 6; i++)
        turned[i] = w[i % 3 * 2 + i / 3];
    static const char *const own[] = {"*.W", "*/W", "W", "*W"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tn_layer_load(bare, path, .prefix = "net.0.", .transpose = own[i]), TN_OK);
        TN_SCOPE check_near(tn_param_named(bare, "W"), turned, 6, 0);
    }
    assert_int_equal(tn_layer_save(bare, path), TN_OK); /* the right way round */
    assert_int_equal(tn_layer_load(bare, path, .transpose = "W"), TN_ERR_SHAPE);
    check_latched(TN_ERR_SHAPE, "'W' has shape (3, 2) in ");
    assert_int_equal(tn_layer_load(bare, path, .transpose = "W"), TN_ERR_SHAPE);
    check_latched(TN_ERR_SHAPE, " once it is transposed, and the network's is (2, 3)");
    static const char *const malformed[] = {"W", "W=W b:b", "=W", "W= W", "b=b W="};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_int_equal(tn_layer_load(bare, path, .rename = malformed[i], .strict = false), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "expected words as W=weight for .rename");
    }
    assert_int_equal(tn_layer_load(bare, path, .rename = "  W=W   b=b "), TN_OK);
    assert_int_equal(tn_layer_load(bare, path, .prefix = "net.0.", .transpose = "*.weight"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "matches '*.weight' of .transpose: there are W, b");
    assert_int_equal(tn_layer_freeze(bare, "*.b", true), TN_OK);
    TN_SCOPE assert_false(tn_needs_grad(tn_param_named(bare, "b")));
    tn_layer_free(bare);
    check_fine();
}

/* Whichever of dots and slashes the file, the prefix and the patterns have. */
static void test_separators(void **state)
{
    (void)state;
    double w[6], b[3], before[3];
    check_fill(w, 6, -1, 1);
    check_fill(b, 3, -1, 1);
    static const char *const stored[] = {"at.model.", "at/model/", "at/model."};
    static const char *const asked[] = {"at.model.", "at/model/", "at/model.", "at.model/"};
    static const char *const ignored[] = {"2.* 0.b", "2/* 0/b"};
    for (int i = 0; i < 3 * 4 * 2; i++) {
        const char *is = stored[i % 3], *prefix = asked[i / 3 % 4];
        const char *path = write_file(is, w, b, i % 3 == 1 ? '/' : '.');
        tn_layer *net = tn_sequential(tn_linear(2, .in = 3), tn_relu_layer(), tn_linear(2, .in = 2));
        TN_SCOPE check_read(tn_param_named(net, "0.b"), before, 2);
        tn_status status = tn_layer_load(net, path, .prefix = prefix, .ignore = ignored[i % 2]);
        bool mixed = i % 3 == 2 && strcmp(is, prefix) != 0; /* which of several is meant would have to be guessed */
        if (status != (mixed ? TN_ERR_NAME : TN_OK))
            fail_msg("%s of %s: %s", prefix, is, tn_error());
        tn_clear_error();
        TN_SCOPE {
            if (!mixed)
                check_near(tn_param_named(net, "0.W"), w, 6, 0);
            check_near(tn_param_named(net, "0.b"), before, 2, 0);
        }
        tn_layer_free(net);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options), cmocka_unit_test(test_separators),
                                       cmocka_unit_test(test_nothing_matches)};
    return cmocka_run_group_tests_name("load", tests, check_seed, NULL);
}
