/* SPDX-License-Identifier: MIT */
/* Every allocation failing in turn, in what a program does from recording to snapshots, with plans made afresh. */
#include <stdio.h>
#include <stdlib.h>

#include "support/scratch.h"
#include "support/starve.h"

static const tn_compile_mode modes[] = {TN_COMPILE_NEVER, TN_COMPILE_AUTO, TN_COMPILE_ALWAYS};
static const char *const mode_names[] = {"never", "auto", "always"};

/* ---- recording and evaluation ---- */

/* Every kind of operation, so that every pass of the compiler has something to do: row and column reductions, products,
 * gathers, scatters, updates, views that need copies, generated values. */
static tn_status evaluate(void *user)
{
    tn_status status = TN_ERR_INTERNAL;
    tn_set_compile(*(const tn_compile_mode *)user);
    TN_SCOPE {
        const tn_slice_range inner = {1, 3, 1};
        tn_array *x = tn_reshape(tn_arange(0, 24, 1, .dtype = TN_FLOAT32), TN_SHAPE(4, 6));
        tn_array *rows = tn_take(x, tn_from_int64s((int64_t[]){0, 2, 3}, 3), 0);
        tn_array *normal = tn_softmax(tn_exp(tn_multiply(x, 0.25)), 1);
        tn_array *columns = tn_add(tn_sum(normal, .axis = TN_AXES(0)), tn_max(x, .axis = TN_AXES(0)));
        tn_array *product = tn_matmul(rows, tn_transpose(normal, TN_AXES(1, 0)));
        tn_array *folded = tn_reshape(tn_transpose(tn_add(x, 1), TN_AXES(1, 0)), TN_SHAPE(4, 6));
        tn_array *spread = tn_scatter_add(x, tn_from_int64s((int64_t[]){1, 1, 0}, 3), rows, 0);
        tn_array *updated = tn_slice_update(tn_cast(x, TN_FLOAT16), 1, &inner, tn_scalar(2));
        tn_array *noise = tn_random_normal(TN_SHAPE(6), .generator = NULL);
        const tn_array *wanted[] = {product, columns, folded, spread, updated, noise, tn_argmax(x)};
        status = tn_eval_all(sizeof wanted / sizeof *wanted, wanted);
        if (status == TN_OK) {
            char *text = tn_plan_describe(tn_mean(tn_square(product)));
            char *printed = text ? tn_string(columns) : NULL;
            status = printed ? TN_OK : tn_error_code();
            tn_string_free(text);
            tn_string_free(printed);
        }
    }
    return status;
}

static void test_evaluation(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++)
        starve(mode_names[m], evaluate, (void *)&modes[m]);
}

/* ---- a step of training ---- */

typedef struct training {
    tn_compile_mode mode;
    tn_layer *net, *twin;            /* the twin takes the same steps, but is never starved */
    tn_optimizer *optimizer, *twins;
    tn_meter *meter;
    tn_array *x, *t;
    int64_t steps;                   /* done when the run began */
} training;

static tn_layer *network(void)
{
    tn_seed(7);
    return tn_sequential(tn_linear(4, .in = 6), tn_relu_layer(), tn_layer_norm(4, 0), tn_linear(3, .in = 4));
}

static tn_status step(tn_layer *net, tn_optimizer *optimizer, tn_meter *meter, const training *all)
{
    tn_status status = TN_ERR_INTERNAL;
    TN_SCOPE {
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, all->x), all->t);
        status = tn_backward(loss);
        if (status == TN_OK)
            status = tn_step(optimizer);
        if (status == TN_OK && meter) {
            tn_meter_add(meter, loss, 5);
            status = tn_error_code();
        }
    }
    tn_layer_clear_grads(net);
    return status;
}

static tn_status starved_step(void *user)
{
    training *all = user;
    tn_set_compile(all->mode); /* forgets the plans */
    all->steps = tn_optimizer_steps(all->optimizer);
    tn_status status = step(all->net, all->optimizer, all->meter, all);
    if (status == TN_OK)
        status = tn_meter_take(all->meter) >= 0 ? TN_OK : tn_error_code();
    else
        tn_meter_take(all->meter);
    return status;
}

/* The parameters are those of before or those of a step that nothing disturbed. */
static void whole_or_nothing(tn_status status, void *user)
{
    training *all = user;
    int64_t taken = tn_optimizer_steps(all->optimizer) - all->steps;
    assert_in_range(taken, 0, 1);
    if (status == TN_OK)
        assert_int_equal(taken, 1);
    if (taken)
        assert_int_equal(step(all->twin, all->twins, NULL, all), TN_OK);
    for (int p = 0; p < tn_param_count(all->net); p++) {
        float mine[32], theirs[32];
        size_t bytes = (size_t)tn_size(tn_param(all->net, p)) * sizeof(float);
        assert_int_equal(tn_to_host(tn_param(all->net, p), mine, sizeof mine), TN_OK);
        assert_int_equal(tn_to_host(tn_param(all->twin, p), theirs, sizeof theirs), TN_OK);
        assert_memory_equal(mine, theirs, bytes);
    }
}

static void test_training(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        training all = {.mode = modes[m], .net = network(), .twin = network(), .meter = tn_meter_new(test_device())};
        all.optimizer = tn_adam(all.net, .clip_norm = 1);
        all.twins = tn_adam(all.twin, .clip_norm = 1);
        all.x = tn_own(tn_reshape(tn_linspace(-1, 1, 30), TN_SHAPE(5, 6)));
        all.t = tn_own(tn_from_int64s((int64_t[]){0, 2, 1, 1, 0}, 5));
        assert_int_equal(tn_eval(all.x), TN_OK);
        tn_set_compile(all.mode);
        for (int i = 0; i < 2; i++) { /* the state of the optimizers, and their second step as the first */
            assert_int_equal(step(all.net, all.optimizer, NULL, &all), TN_OK);
            assert_int_equal(step(all.twin, all.twins, NULL, &all), TN_OK);
        }
        assert_int_equal(step(all.twin, all.twins, NULL, &all), TN_OK); /* as the run that starve begins with */
        starve_checked(mode_names[m], starved_step, whole_or_nothing, &all);
        tn_meter_free(all.meter);
        tn_optimizer_free(all.optimizer);
        tn_optimizer_free(all.twins);
        tn_layer_free(all.net);
        tn_layer_free(all.twin);
        tn_free(all.x);
        tn_free(all.t);
    }
}

/* ---- loaders ---- */

static tn_status load_batches(void *user)
{
    const bool *prefetch = user;
    tn_status status = TN_ERR_INTERNAL;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 12, 1, .dtype = TN_FLOAT32), TN_SHAPE(6, 2));
        tn_dataset *points = tn_dataset_arrays(x, tn_arange(0, 6, 1));
        tn_loader *loader = tn_loader_new(points, .batch = 4, .shuffle = true, .no_prefetch = !*prefetch);
        tn_batch batch;
        int64_t samples = 0;
        status = tn_loader_status(loader);
        while (status == TN_OK && tn_loader_next(loader, &batch))
            samples += batch.size;
        if (status == TN_OK)
            status = tn_ok() ? tn_loader_status(loader) : tn_error_code();
        if (status == TN_OK)
            assert_int_equal(samples, 6);
        tn_loader_free(loader);
    }
    return status;
}

static void test_loaders(void **state)
{
    (void)state;
    starve("loader", load_batches, (void *)&(bool){false});
    starve("loader that prefetches", load_batches, (void *)&(bool){true});
}

/* ---- files ---- */

typedef struct kept {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *loader;
    const char *path;
    int files;
} kept;

static tn_status save(void *user)
{
    kept *k = user;
    return tn_snapshot_save(k->path, k->net, k->optimizer, k->loader, "a run");
}

/* A snapshot that could not be written leaves the one of before, and nothing beside it. */
static void still_readable(tn_status status, void *user)
{
    kept *k = user;
    (void)status;
    assert_int_equal(scratch_count(), k->files);
    assert_int_equal(tn_snapshot_load(k->path, k->net, k->optimizer, k->loader), TN_OK);
}

static tn_status restore(void *user)
{
    kept *k = user;
    return tn_snapshot_load(k->path, k->net, k->optimizer, k->loader);
}

static tn_status load_archive(void *user)
{
    kept *k = user;
    tn_archive *archive = tn_archive_load(k->path);
    tn_status status = tn_archive_status(archive);
    if (status == TN_OK)
        assert_true(tn_archive_count(archive) >= 6);
    tn_archive_free(archive);
    return status;
}

static void test_files(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_AUTO);
    static const char *const names[] = {"run.safetensors", "run.npz"};
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            kept k = {.net = network(), .path = scratch_path(names[i])};
            k.optimizer = tn_momentum_sgd(k.net);
            k.loader = tn_loader_new(tn_dataset_arrays(tn_ones(TN_SHAPE(4, 6)), tn_zeros(TN_SHAPE(4))));
            training all = {.x = tn_ones(TN_SHAPE(1, 6)), .t = tn_from_int64s((int64_t[]){1}, 1)};
            assert_int_equal(step(k.net, k.optimizer, NULL, &all), TN_OK);
            assert_int_equal(save(&k), TN_OK);
            k.files = scratch_count();
            starve_checked("snapshot save", save, still_readable, &k);
            starve("snapshot load", restore, &k);
            starve("archive load", load_archive, &k);
            tn_loader_free(k.loader);
            tn_optimizer_free(k.optimizer);
            tn_layer_free(k.net);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_loaders),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
