/* SPDX-License-Identifier: MIT */
/*
 * Beside Chainer 7.8.1: the same run gives the same log, models and snapshots; its snapshots and models are gone on
 * from.
 * The files are Chainer's own, made by chainer/make.py. Weights are square, so that only their names tell which way
 * round they are.
 */
#include "train/trainer_setup.h"

#include "support/latched.h"

enum { FEATURES = 4 };

static const char *file(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", TANSO_TEST_FILES, name);
    return path;
}

/* ---- the run of make.py ---- */

typedef struct run {
    tn_layer *model;
    tn_optimizer *optimizer;
    tn_loader *loader, *test_loader;
    tn_trainer *trainer;
} run;

static tn_dataset *data_of(const tn_archive *archive)
{
    tn_dataset *data = NULL;
    TN_SCOPE {
        tn_array *x = tn_archive_find(archive, "x"), *t = tn_archive_find(archive, "t");
        data = tn_dataset_arrays(x, tn_cast(t, TN_INT64));
    }
    return data;
}

static run new_run(double lr)
{
    run r;
    tn_archive *archive = tn_archive_load(file("data.npz"));
    r.model = tn_classifier(tn_linear(FEATURES, .in = FEATURES));
    TN_SCOPE {
        tn_array *w = tn_transpose(tn_archive_find(archive, "W"), TN_AXES(1, 0));
        assert_int_equal(tn_assign(tn_param_named(r.model, "predictor.W"), tn_to(w, test_device())), TN_OK);
        assert_int_equal(tn_assign(tn_param_named(r.model, "predictor.b"),
                                   tn_to(tn_archive_find(archive, "b"), test_device())), TN_OK);
    }
    r.optimizer = tn_sgd(r.model, .lr = lr);
    r.loader = tn_loader_new(data_of(archive), .batch = 3, .repeat = true);
    r.test_loader = tn_loader_new(data_of(archive), .batch = 5);
    tn_archive_free(archive);
    r.trainer = tn_trainer_new(tn_standard_updater(r.loader, r.optimizer), .stop = TN_EVERY(2, TN_EPOCH), .out = folder,
                               .quiet = true);
    tn_extend(r.trainer, tn_evaluator(r.test_loader, r.model));
    tn_extend(r.trainer, tn_observe_lr());
    tn_extend(r.trainer, tn_parameter_statistics(.layer = r.model, .prefix = "stat/None", .gradients = true),
              .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend(r.trainer, tn_exponential_shift("lr", 1), .trigger = TN_EVERY(1, TN_EPOCH));
    tn_extend(r.trainer, tn_log_report(), .call_before_training = true);
    tn_extend(r.trainer, tn_dump_graph("main/loss"));
    tn_extend(r.trainer, tn_snapshot(.file = "snapshot_iter_{.updater.iteration}.npz"));
    tn_extend(r.trainer, tn_snapshot_layer(r.model, "model_{.updater.epoch}.npz"));
    check_fine();
    return r;
}

static void free_run(run *r)
{
    tn_trainer_free(r->trainer);
    tn_loader_free(r->loader);
    tn_loader_free(r->test_loader);
    tn_optimizer_free(r->optimizer);
    tn_layer_free(r->model);
}

/* A log's entries one by one: numbers by key, as they stand in the text. */
typedef struct figure {
    char key[96];
    double value;
} figure;

static int next_entry(const char **at, figure *figures, int room)
{
    int count = 0;
    const char *end = strchr(*at, '}');
    for (const char *key; end && (key = strchr(*at, '"')) && key < end && count < room; count++) {
        const char *after = strchr(key + 1, '"');
        snprintf(figures[count].key, sizeof figures->key, "%.*s", (int)(after - key - 1), key + 1);
        figures[count].value = strtod(strchr(after, ':') + 1, (char **)at);
    }
    *at = end ? end + 1 : *at;
    return end ? count : -1;
}

static void compare_logs(const char *ours, const char *theirs)
{
    char *mine = test_read(ours, NULL), *wanted = test_read(theirs, NULL);
    assert_non_null(mine);
    assert_non_null(wanted);
    figure a[80], b[80];
    const char *x = mine, *y = wanted;
    int entries = 0;
    for (int count; (count = next_entry(&y, b, 80)) >= 0; entries++) {
        int got = next_entry(&x, a, 80);
        if (got != count)
            fail_msg("entry %d has %d figures, expected %d", entries, got, count);
        for (int i = 0; i < count; i++) {
            int k = 0;
            while (k < got && strcmp(a[k].key, b[i].key) != 0)
                k++;
            if (k == got)
                fail_msg("entry %d has no %s", entries, b[i].key);
            if (strcmp(b[i].key, "elapsed_time") == 0)
                assert_true(a[k].value >= 0);
            else if (fabs(a[k].value - b[i].value) > 2e-6)
                fail_msg("entry %d: %s is %.9g, expected %.9g", entries, b[i].key, a[k].value, b[i].value);
        }
    }
    assert_int_equal(entries, 3);
    assert_int_equal(next_entry(&x, a, 80), -1);
    free(mine);
    free(wanted);
}

static void check_like_model(tn_layer *model, const char *name)
{
    tn_archive *archive = tn_archive_load(file(name));
    double w[FEATURES * FEATURES], b[FEATURES];
    TN_SCOPE {
        check_read(tn_transpose(tn_archive_find(archive, "predictor/W"), TN_AXES(1, 0)), w, FEATURES * FEATURES);
        check_read(tn_archive_find(archive, "predictor/b"), b, FEATURES);
        check_near(tn_param_named(model, "predictor.W"), w, FEATURES * FEATURES, 1e-6);
        check_near(tn_param_named(model, "predictor.b"), b, FEATURES, 1e-6);
    }
    tn_archive_free(archive);
}

/* ---- section by section ---- */

/* The same run: entries of the log, files, parameters, keys that are observed. */
static void test_same_run(void **state)
{
    (void)state;
    run r = new_run(0.1);
    tn_trainer_run(r.trainer);
    check_fine();
    assert_int_equal(tn_trainer_iteration(r.trainer), 7);
    char path[600];
    snprintf(path, sizeof path, "%s/log", folder);
    compare_logs(path, file("log"));
    check_like_model(r.model, "model_2");
    static const char *const files[] = {"snapshot_iter_4.npz", "snapshot_iter_7.npz", "cg.dot", "model_1.npz",
                                        "model_2.npz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (!test_exists(path))
            fail_msg("no %s", files[i]);
    }
    snprintf(path, sizeof path, "%s/model_1.npz", folder);
    assert_int_equal(tn_layer_load(r.model, path), TN_OK);
    check_like_model(r.model, "model_1");
    free_run(&r);
    check_fine();
}

/* Chainer's snapshot of iteration 4, and then iterations 5 to 7: as if it had been one run. */
static void test_going_on(void **state)
{
    (void)state;
    run r = new_run(0.1);
    assert_int_equal(tn_trainer_load(r.trainer, file("snapshot_iter_4")), TN_OK);
    check_fine();
    assert_int_equal(tn_trainer_iteration(r.trainer), 4);
    assert_int_equal(tn_trainer_epoch(r.trainer), 1);
    assert_float_equal(tn_trainer_epoch_detail(r.trainer), 1.2, 1e-12);
    assert_int_equal(tn_loader_position(r.loader), 2);
    assert_true(tn_trainer_is_new_epoch(r.trainer));
    assert_true(tn_trainer_elapsed_time(r.trainer) > 0);
    assert_int_equal(tn_optimizer_steps(r.optimizer), 4);
    check_like_model(r.model, "model_1");
    tn_trainer_run(r.trainer);
    check_fine();
    assert_int_equal(tn_trainer_iteration(r.trainer), 7);
    check_like_model(r.model, "model_2");
    char path[600];
    snprintf(path, sizeof path, "%s/log", folder);
    compare_logs(path, file("log"));
    snprintf(path, sizeof path, "%s/snapshot_iter_7.npz", folder);
    assert_true(test_exists(path));
    /* What was due in iteration 4 behind the snapshot comes in iteration 5. */
    snprintf(path, sizeof path, "%s/model_1.npz", folder);
    assert_true(test_exists(path));
    snprintf(path, sizeof path, "%s/snapshot_iter_5.npz", folder);
    assert_false(test_exists(path));
    free_run(&r);

    /* A run that was complete. */
    r = new_run(0.1);
    assert_int_equal(tn_trainer_load(r.trainer, file("snapshot_iter_7")), TN_OK);
    assert_int_equal(tn_trainer_run(r.trainer), TN_OK);
    assert_int_equal(tn_trainer_iteration(r.trainer), 7);
    check_like_model(r.model, "model_2");
    free_run(&r);
    check_fine();
}

/* Schedules work from the learning rate that the program gives, as it is not in the file. */
static void test_schedules_go_on(void **state)
{
    (void)state;
    run r = new_run(0.1);
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(r.loader, r.optimizer), .out = folder, .quiet = true,
                                         .stop = TN_EVERY(5, TN_ITERATION));
    tn_extend(trainer, tn_exponential_shift("lr", 0.5), .name = "ExponentialShift", .trigger = TN_EVERY(1, TN_EPOCH));
    assert_int_equal(tn_trainer_load(trainer, file("snapshot_iter_4")), TN_OK);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    assert_float_equal(tn_optimizer_lr(r.optimizer), 0.05, 1e-12);
    tn_trainer_free(trainer);
    free_run(&r);
    check_fine();
}

/* Section 10: one for an epoch takes effect in the iteration after the one that ended it; resumed, too. */
static tn_status note_rate(tn_trainer *trainer, void *user)
{
    double *rate = user;
    rate[tn_trainer_iteration(trainer) + 1] = tn_optimizer_lr(tn_trainer_optimizer(trainer, NULL));
    return TN_OK;
}

static void test_rates(void **state)
{
    (void)state;
    static const double want[] = {.1, .1, .1, .1, .05, .05, .05, .025, .025, .025, .0125};
    for (int stopped = 0; stopped < 10; stopped++) {
        double rate[16] = {0};
        char path[600];
        snprintf(path, sizeof path, "%s/rates.npz", folder);
        for (int part = stopped ? 0 : 1; part < 2; part++) {
            run r = new_run(0.1);
            tn_trainer *trainer = tn_trainer_new(tn_standard_updater(r.loader, r.optimizer), .out = folder,
                                                 .stop = TN_EVERY(part ? 10 : stopped, TN_ITERATION), .quiet = true);
            tn_extend(trainer, tn_exponential_shift("lr", 0.5), .trigger = TN_EVERY(1, TN_EPOCH));
            tn_extend_function(trainer, note_rate, rate, .priority = -1, .call_before_training = true);
            if (stopped && part)
                assert_int_equal(tn_trainer_load(trainer, path), TN_OK);
            assert_int_equal(tn_trainer_run(trainer), TN_OK);
            if (!part)
                assert_int_equal(tn_trainer_save(trainer, path), TN_OK);
            tn_trainer_free(trainer);
            free_run(&r);
        }
        for (int i = 1; i <= 11; i++)
            if (fabs(rate[i] - want[i - 1]) > 1e-12)
                fail_msg("stopped at %d, iteration %d has the rate %g, expected %g", stopped, i, rate[i], want[i - 1]);
    }
    check_fine();
}

/* What Chainer's PlotReport and MicroAverage keep: points as JSON, and two sums. Neither has its trigger in the file:
 * nothing is drawn or averaged too early (quirk 7). */
static void test_points_and_sums(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_load(file("snapshot_iter_4"));
    assert_int_equal(tn_archive_set_text(archive, "extensions/PlotReport/_plot_plot.png",
                                         "{\"other\": [[1, 2.5], [2, NaN]], \"empty\": [], \"main/loss\": "
                                         "[[2, 1.5], [4, -2.5e-1]], \"last\": [[3, 1.0]]}"), TN_OK);
    TN_SCOPE {
        const double sums[] = {7, 16};
        for (int i = 0; i < 2; i++)
            tn_archive_add(archive, i ? "extensions/MicroAverage/_denominator" : "extensions/MicroAverage/_numerator",
                           tn_full((tn_shape){0}, sums[i], .dtype = TN_FLOAT64));
    }
    char *path = strdup(test_path(folder, "theirs.npz"));
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    tn_archive_free(archive);
    run r = new_run(0);
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(r.loader, r.optimizer), .out = folder, .quiet = true,
                                         .stop = TN_EVERY(5, TN_ITERATION));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "last", "empty")));
    tn_extend(trainer, tn_micro_average("main/one", "main/two", "ratio", .every = TN_EVERY(2, TN_EPOCH)));
    if (tn_trainer_load(trainer, path) != TN_OK)
        fail_msg("%s", tn_error());
    archive = tn_archive_new();
    tn_serializer root = {.archive = archive};
    assert_int_equal(tn_serialize_trainer(&root, "", trainer), TN_OK);
    static const double loss[] = {2, 1.5, 1.5, 1.5, 1, 1, 4, -0.25, -0.25, -0.25, 1, 1}, last[] = {3, 1, 1, 1, 1, 1};
    check_near(tn_archive_find(archive, "extensions/PlotReport/_points/main/loss"), loss, 12, 0);
    check_near(tn_archive_find(archive, "extensions/PlotReport/_points/last"), last, 6, 0);
    assert_int_equal(tn_size(tn_archive_find(archive, "extensions/PlotReport/_points/empty")), 0);
    for (int i = 0; i < 2; i++)
        assert_float_equal(tn_item(tn_archive_find(archive, i ? "extensions/MicroAverage/_sums/1/sum/at_once"
                                                              : "extensions/MicroAverage/_sums/0/sum/at_once")),
                           i ? 16 : 7, 0);
    tn_archive_free(archive);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    assert_false(tn_observation_has(tn_trainer_observation(trainer), "ratio"));
    tn_trainer_free(trainer);
    free_run(&r);
    free(path);
    check_fine();
}

/* ---- models ---- */

static void test_models(void **state)
{
    (void)state;
    tn_layer *model = tn_classifier(tn_linear(FEATURES)); /* takes the file's shape */
    char copy[600];
    snprintf(copy, sizeof copy, "%s/model.npz", folder);
    size_t size;
    char *bytes = test_read(file("model_2"), &size);
    test_write_bytes(copy, bytes, size);
    free(bytes);
    assert_int_equal(tn_layer_load(model, copy, .chainer = true), TN_OK);
    check_like_model(model, "model_2");
    tn_layer_free(model);
    model = tn_classifier(tn_linear(FEATURES));
    assert_int_equal(tn_layer_load(model, file("model_1"), .transpose = "*.W"), TN_OK); /* it needs no ending */
    check_like_model(model, "model_1");
    tn_layer *bare = tn_linear(FEATURES);
    assert_int_equal(tn_layer_load(bare, file("snapshot_iter_7"), .chainer = true,
                                   .prefix = "updater/model:main/predictor/"), TN_OK);
    TN_SCOPE {
        assert_int_equal(tn_layer_load(model, copy, .chainer = true), TN_OK);
        assert_true(tn_array_equal(tn_param(bare, 0), tn_param_named(model, "predictor.W"), false));
    }
    tn_layer_free(bare);
    tn_layer_free(model);
    check_fine();
}

/* ---- optimizers: states after 3 updates, parameters after 2 more ---- */

static tn_optimizer *optimizer_named(const char *name, tn_layer *model)
{
    /* Chainer's decay is not scaled by the learning rate. */
    static const char *const more[][2] = {
        {"adadelta", ""}, {"adabound", ":lr=0.1,final_lr=0.5"}, {"amsbound", ":lr=0.1,final_lr=0.5"},
        {"adamw", ":lr=0.1,weight_decay=0.1"}};
    const char *options = ":lr=0.1";
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (strcmp(more[i][0], name) == 0)
            options = more[i][1];
    char text[100];
    snprintf(text, sizeof text, "%s%s", name, options);
    return tn_optimizer_parse(text, model);
}

static void check_optimizer(const tn_archive *archive, const char *name)
{
    check_context = name;
    tn_layer *model = tn_classifier(tn_linear(FEATURES));
    tn_optimizer *optimizer = optimizer_named(name, model);
    const tn_load_opts chainer = {.chainer = true};
    tn_serializer root = {.archive = (tn_archive *)archive, .loading = true, .weights = &chainer};
    char place[64];
    snprintf(place, sizeof place, "model:%s", name);
    assert_int_equal(tn_serialize_layer(&root, place, model), TN_OK);
    snprintf(place, sizeof place, "optimizer:%s", name);
    assert_int_equal(tn_serialize_optimizer(&root, place, optimizer), TN_OK);
    assert_int_equal(tn_optimizer_steps(optimizer), 3);
    assert_int_equal(tn_optimizer_param_steps(optimizer, 0), 3);
    for (int i = 0; i < 2; i++) TN_SCOPE {
        tn_array *x = tn_to(tn_archive_find(archive, "x"), test_device());
        tn_array *t = tn_to(tn_archive_find(archive, "t"), test_device());
        assert_int_equal(tn_backward(tn_forward(model, x, t)), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
    }
    tn_layer *after = tn_classifier(tn_linear(FEATURES));
    snprintf(place, sizeof place, "after:%s", name);
    assert_int_equal(tn_serialize_layer(&root, place, after), TN_OK);
    double w[FEATURES * FEATURES], b[FEATURES];
    check_read(tn_param(after, 0), w, FEATURES * FEATURES);
    check_read(tn_param(after, 1), b, FEATURES);
    check_near(tn_param(model, 0), w, FEATURES * FEATURES, 3e-6);
    check_near(tn_param(model, 1), b, FEATURES, 3e-6);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    tn_layer_free(after);
    check_fine();
}

static void test_optimizers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "sgd",     "momentum_sgd",   "corrected_momentum_sgd", "adagrad", "adadelta", "rmsprop", "rmsprop_graves",
        "smorms3", "adam",           "adamw",                  "amsgrad", "adabound", "amsbound", "msvag"};
    tn_archive *archive = tn_archive_load(file("optimizers.npz"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TN_SCOPE check_optimizer(archive, names[i]);
    tn_archive_free(archive);
    check_context = "";
}

/* ---- what does not fit ---- */

static void test_misfits(void **state)
{
    (void)state;
    run r = new_run(0.1);
    assert_int_equal(tn_trainer_load(r.trainer, file("model_1")), TN_ERR_FORMAT);
    check_latched(TN_ERR_FORMAT, "is no snapshot of a trainer");
    assert_int_equal(tn_trainer_load(r.trainer, file("log")), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "expected a path that ends in .safetensors or .npz");
    /* of several models each pattern is one's, at least */
    assert_int_equal(tn_trainer_load(r.trainer, file("snapshot_iter_4"), .transpose = "*.W *.V"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "no parameter of any layer matches '*.V' of .transpose");
    assert_int_equal(tn_trainer_load(r.trainer, file("snapshot_iter_4"), .ignore = "b"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "no parameter of any layer matches 'b' of .ignore");
    assert_int_equal(tn_trainer_iteration(r.trainer), 0);
    assert_int_equal(tn_trainer_load(r.trainer, file("snapshot_iter_4"), .transpose = "*/W"), TN_OK);
    assert_int_equal(tn_trainer_iteration(r.trainer), 4);
    tn_layer *other = tn_sequential(tn_linear(FEATURES));
    tn_optimizer *optimizer = tn_sgd(other);
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(r.loader, optimizer), .out = folder);
    assert_int_equal(tn_trainer_load(trainer, file("snapshot_iter_4")), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "holds no '0.W'");
    tn_trainer_free(trainer);
    tn_optimizer_free(optimizer);
    tn_layer_free(other);
    free_run(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_going_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_schedules_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_points_and_sums, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_models, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_optimizers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_misfits, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("chainer", tests, check_seed, NULL);
}
