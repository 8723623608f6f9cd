/* SPDX-License-Identifier: MIT */
/* Snapshots of a loop of one's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <tanso.h>
#include "support/device.h"
#include "support/fresh_folder.h"
#include "support/random.h"

static test_random chance;

typedef struct loop {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *loader;
} loop;

static loop loop_new(uint64_t seed, const char *model, const char *optimizer)
{
    loop l;
    tn_seed(seed);
    l.net = tn_layer_parse(model);
    l.optimizer = tn_optimizer_parse(optimizer, l.net);
    l.loader = tn_loader_new(tn_spiral(40, 3), .batch = 25, .shuffle = true, .seed = seed);
    return l;
}

static void loop_free(loop *l)
{
    tn_loader_free(l->loader);
    tn_optimizer_free(l->optimizer);
    tn_layer_free(l->net);
}

static void epochs(loop *l, int count)
{
    for (int i = 0; i < count; i++) {
        tn_optimizer_set_lr(l->optimizer, tn_optimizer_lr(l->optimizer) * 0.9);
        for (tn_batch b; tn_loader_next(l->loader, &b);)
            TN_SCOPE {
                tn_backward(tn_softmax_cross_entropy(tn_forward(l->net, b.x), b.t));
                assert_int_equal(tn_step(l->optimizer), TN_OK);
            }
    }
    if (!tn_ok())
        fail_msg("%s", tn_error());
}

static void assert_same_params(const loop *a, const loop *b)
{
    assert_int_equal(tn_param_count(a->net), tn_param_count(b->net));
    for (int i = 0; i < tn_param_count(a->net); i++) {
        tn_array *x = tn_param(a->net, i), *y = tn_param(b->net, i);
        assert_int_equal(tn_size(x), tn_size(y));
        TN_SCOPE assert_memory_equal(test_data(x), test_data(y), (size_t)tn_size(x) * sizeof(float));
    }
}

/* Saved into either format, loaded into a fresh loop whose parameters are not even inferred, it goes on as the first
 * did. */
static void test_goes_on(void **state)
{
    (void)state;
    static const char *const names[] = {"a.safetensors", "b.npz"}, *const optimizers[] = {"adamw:lr=0.01",
                                                                                          "momentum:lr=0.05"};
    size_t arrays = tn_live_arrays();
    for (int i = 0; i < 2; i++) {
        uint64_t seed = test_random_bits(&chance);
        const char *path = test_path(folder, names[i]), *model = "linear:9 relu dropout:0.4 linear:3";
        loop first = loop_new(seed, model, optimizers[i]);
        epochs(&first, 2);
        assert_int_equal(tn_snapshot_save(path, first.net, first.optimizer, first.loader, "as I\nwas"), TN_OK);
        epochs(&first, 3);
        loop second = loop_new(seed + 1, model, optimizers[i]); /* other weights, all replaced */
        tn_loader_free(second.loader);
        second.loader = tn_loader_new(tn_spiral(40, 3), .batch = 25, .shuffle = true, .seed = seed);
        /* The optimizer knows its states' names once the parameters are there. */
        if (tn_snapshot_load(path, second.net, second.optimizer, second.loader) != TN_OK)
            fail_msg("%s", tn_error());
        assert_true(tn_optimizer_steps(second.optimizer) == 2 * tn_loader_length(second.loader));
        assert_true(tn_loader_epoch(second.loader) == 2);
        epochs(&second, 3);
        assert_same_params(&first, &second);
        tn_archive *archive = tn_archive_load(path);
        assert_string_equal(tn_archive_text(archive, "tanso.description"), "as I\nwas");
        tn_archive_free(archive);
        loop_free(&first);
        loop_free(&second);
    }
    assert_int_equal(tn_live_arrays(), arrays);
}

/* A program that brings its own minibatches has no loader; nor need one that only measures. */
static void test_without_loader(void **state)
{
    (void)state;
    const char *path = test_path(folder, "own.npz"), *model = "linear:4 relu linear:3";
    loop first = loop_new(test_random_bits(&chance), model, "adam"), second = loop_new(1, model, "adam");
    epochs(&first, 1);
    epochs(&second, 3);
    for (int saved = 0; saved < 2; saved++) { /* either half may have one */
        assert_int_equal(tn_snapshot_save(path, first.net, first.optimizer, saved ? first.loader : NULL, NULL), TN_OK);
        assert_int_equal(tn_snapshot_load(path, second.net, second.optimizer, NULL), TN_OK);
        assert_same_params(&first, &second);
        assert_int_equal(tn_optimizer_steps(second.optimizer), tn_optimizer_steps(first.optimizer));
        assert_int_equal(tn_loader_epoch(second.loader), 3);
        assert_int_equal(tn_snapshot_load(path, second.net, second.optimizer, second.loader), TN_OK);
        assert_int_equal(tn_loader_epoch(second.loader), saved);
        assert_int_equal(tn_loader_set_epoch(second.loader, 3), TN_OK);
    }
    loop_free(&first);
    loop_free(&second);
}

static void assert_refused(const char *path, const char *model, const char *optimizer, tn_status wanted,
                           const char *text)
{
    loop l = loop_new(1, model, optimizer);
    tn_status status = tn_snapshot_load(path, l.net, l.optimizer, l.loader);
    if (status != wanted || !strstr(tn_error(), text))
        fail_msg("expected %s with '%s', got %s: %s", tn_status_name(wanted), text, tn_status_name(status), tn_error());
    tn_clear_error();
    loop_free(&l);
}

static void test_misfits(void **state)
{
    (void)state;
    const char *path = test_path(folder, "c.safetensors"), *model = test_path(folder, "model.safetensors");
    loop l = loop_new(7, "linear:4 relu linear:3", "adam");
    epochs(&l, 1);
    assert_int_equal(tn_snapshot_save(path, l.net, l.optimizer, l.loader, NULL), TN_OK);
    assert_int_equal(tn_layer_save(l.net, model), TN_OK);
    assert_refused(path, "linear:5 relu linear:3", "adam", TN_ERR_SHAPE, "0.W");
    assert_refused(path, "linear:4 relu linear:3", "momentum", TN_ERR_NAME, "momentum");
    assert_refused(path, "linear:4 relu linear:3 linear:3", "adam", TN_ERR_NAME, "3.W");
    assert_refused(model, "linear:4 relu linear:3", "adam", TN_ERR_FORMAT, "no snapshot");
    assert_refused(test_path(folder, "none.npz"), "linear:4 relu linear:3", "adam", TN_ERR_IO, "none.npz");
    assert_int_equal(tn_snapshot_save(test_path(folder, "none/c.npz"), l.net, l.optimizer, l.loader, NULL), TN_ERR_IO);
    tn_clear_error();
    assert_int_equal(tn_snapshot_save(path, NULL, l.optimizer, l.loader, NULL), TN_ERR_VALUE);
    tn_clear_error();

    /* Numbers that are none. */
    static const char *const keys[] = {"tanso.steps", "tanso.epoch", "tanso.lr", "tanso.generator"};
    for (int i = 0; i < 4; i++) {
        tn_archive *archive = tn_archive_load(path);
        assert_int_equal(tn_archive_set_text(archive, keys[i], i % 2 ? "-5x" : "x"), TN_OK);
        const char *damaged = test_path(folder, "damaged.safetensors");
        assert_int_equal(tn_archive_save(archive, damaged), TN_OK);
        assert_refused(damaged, "linear:4 relu linear:3", "adam", TN_ERR_FORMAT, keys[i]);
        tn_archive_free(archive);
    }
    loop_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goes_on), cmocka_unit_test(test_without_loader),
                                       cmocka_unit_test(test_misfits)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
