/* SPDX-License-Identifier: MIT */
/* Reports: keys, scopes, weights, means; and evaluations. */
#include <pthread.h>
#include <tanso/extensions.h>
#include "trainer_setup.h"

static tn_status test_report_of(const tn_layer *layer, double value)
{
    return tn_report_number(layer, "k", value);
}

static void test_keys(void **state)
{
    (void)state;
    tn_layer *inner = tn_sequential(tn_linear(2), tn_linear(3)), *outer = tn_sequential(tn_relu_layer(), inner);
    tn_layer *other = tn_linear(2);
    tn_reporter *reporter = tn_reporter_new();
    tn_observation *seen = tn_observation_new();
    assert_int_equal(tn_report_number(outer, "loss", 1), TN_OK); /* nobody listens */
    assert_null(tn_current_observation());
    tn_reporter_add(reporter, "main", outer);
    TN_REPORTER(reporter, seen) {
        assert_true(tn_current_observation() == seen);
        tn_report_number(outer, "loss", 1);
        test_report_of(tn_layer_child(inner, "1"), 2);
        tn_report_number(NULL, "bare", 3);
        tn_report_number(outer, "loss", 4); /* replaces, at its place */
        assert_int_equal(tn_report_number(other, "loss", 1), TN_ERR_NAME);
        check_latched(TN_ERR_NAME, "in none of the models");
        assert_int_equal(tn_report(outer, "loss", tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE);
        check_latched(TN_ERR_SHAPE, "main/loss");
        assert_int_equal(tn_report_number(outer, "loss", 4, .weight = 0), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "above 0");
    }
    static const char *const keys[] = {"main/loss", "main/1/1/k", "bare"};
    static const double values[] = {4, 2, 3};
    assert_int_equal(tn_observation_count(seen), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(tn_observation_key(seen, i), keys[i]);
        assert_float_equal(tn_observation_number(seen, keys[i]), values[i], 0);
    }
    assert_true(isnan(tn_observation_number(seen, "main/none")));
    tn_observation_free(seen);
    tn_reporter_free(reporter);
    tn_layer_free(outer);
    tn_layer_free(other);
    check_fine();
}

static void *in_another_thread(void *user)
{
    *(bool *)user = tn_current_observation() == NULL && tn_report_number(NULL, "x", 1) == TN_OK;
    return NULL;
}

static void test_scopes(void **state)
{
    (void)state;
    tn_reporter *reporter = tn_reporter_new();
    tn_observation *outer = tn_observation_new(), *inner = tn_observation_new();
    TN_REPORT_SCOPE(inner)
        tn_report_number(NULL, "lost", 1); /* no reporter is in use */
    TN_REPORTER(reporter, outer) {
        tn_report_number(NULL, "a", 1);
        TN_REPORT_SCOPE(inner) {
            tn_report_number(NULL, "b", 2);
            bool alone = false;
            pthread_t thread;
            pthread_create(&thread, NULL, in_another_thread, &alone);
            pthread_join(thread, NULL);
            assert_true(alone);
        }
        tn_report_number(NULL, "c", 3);
    }
    assert_int_equal(tn_observation_count(outer), 2);
    assert_int_equal(tn_observation_count(inner), 1);
    assert_true(tn_observation_has(inner, "b") && tn_observation_has(outer, "c"));
    tn_reporter_pop();
    check_latched(TN_ERR_STATE, "no tn_reporter_push");
    tn_observation_free(outer);
    tn_observation_free(inner);
    tn_reporter_free(reporter);
    check_fine();
}

static void see(const tn_array *value, void *user)
{
    int *seen = user;
    assert_int_equal(tn_size(value), 1);
    ++*seen;
}

static void test_watching(void **state)
{
    (void)state;
    int seen = 0;
    tn_reporter *reporter = tn_reporter_new();
    tn_observation *all = tn_observation_new();
    tn_reporter_watch(reporter, "a", see, &seen);
    TN_SCOPE TN_REPORTER(reporter, all) {
        tn_report(NULL, "a", tn_ones(TN_SHAPE(1)));
        tn_report(NULL, "b", tn_ones(TN_SHAPE(1)));
        tn_reporter_unwatch(reporter, &seen);
        tn_report(NULL, "a", tn_ones(TN_SHAPE(1)));
    }
    assert_int_equal(seen, 1);
    tn_observation_free(all);
    tn_reporter_free(reporter);
    check_fine();
}

/* ---- means ---- */

/* Measured: 1 with weight 3, then 5, is a mean of 2 and a deviation of 1.7320508. */
static void test_summary(void **state)
{
    (void)state;
    for (int arrays = 0; arrays < 4; arrays++)
        TN_SCOPE {
            tn_summary *means = tn_summary_new(.deviations = true);
            for (int i = 0; i < 2; i++) {
                double value = i ? 5 : 1, weight = i ? 0 : 3;
                tn_array *x = tn_add(tn_zeros(TN_SHAPE(1, 1), .dtype = TN_FLOAT64), value);
                if (arrays & 1)
                    assert_int_equal(tn_eval(x), TN_OK);
                if (arrays & 2)
                    tn_summary_add(means, "a", x, weight);
                else
                    tn_summary_add_number(means, "a", value, weight);
            }
            tn_summary_add_number(means, "nan", NAN, 0);
            for (int i = 0; i < 2; i++) { /* reading changes nothing */
                assert_float_equal(tn_summary_mean(means, "a"), 2, 1e-15);
                assert_float_equal(tn_summary_deviation(means, "a"), 1.7320508075688772, 1e-15);
            }
            assert_true(isnan(tn_summary_mean(means, "nan")) && isnan(tn_summary_deviation(means, "nan")));
            assert_true(isnan(tn_summary_mean(means, "b")));
            assert_int_equal(tn_summary_count(means), 2);
            tn_summary_free(means);
        }
    check_fine();
}

/* Each key's mean is over the observations that had it; saved in the middle it goes on to the same bits. */
static void test_summary_goes_on(void **state)
{
    (void)state;
    for (int device = 0; device < 2; device++)
        for (int moved = 0; moved < 200; moved += 1 + (int)(check_bits() % 40)) {
            tn_summary *whole = tn_summary_new(.deviations = true), *parts = tn_summary_new(.deviations = true);
            double total = 0;
            for (int i = 0; i < 200; i++)
                TN_SCOPE {
                    tn_observation *seen = tn_observation_new();
                    double value = (float)check_uniform(-1, 1);
                    total += value;
                    if (device)
                        tn_observation_set(seen, "x", tn_add(tn_zeros((tn_shape){0}), value), 0);
                    else
                        tn_observation_set_number(seen, "x", value, 0);
                    if (i % 10 == 3)
                        tn_observation_set_number(seen, "seldom", i, 2);
                    if (i == moved) {
                        tn_archive *archive = tn_archive_new();
                        tn_serializer s = {.archive = archive};
                        assert_int_equal(tn_serialize_summary(&s, "s", parts), TN_OK);
                        tn_summary_free(parts);
                        parts = tn_summary_new(.deviations = true);
                        s.loading = true;
                        assert_int_equal(tn_serialize_summary(&s, "s", parts), TN_OK);
                        tn_archive_free(archive);
                    }
                    tn_summary_add_observation(whole, seen);
                    tn_summary_add_observation(parts, seen);
                    tn_observation_free(seen);
                }
            assert_float_equal(tn_summary_mean(whole, "x"), total / 200, 1e-12);
            assert_float_equal(tn_summary_mean(whole, "seldom"), 98, 1e-12);
            for (int k = 0; k < 2; k++) {
                const char *key = k ? "seldom" : "x";
                assert_true(tn_summary_mean(whole, key) == tn_summary_mean(parts, key));
                assert_true(tn_summary_deviation(whole, key) == tn_summary_deviation(parts, key));
            }
            tn_summary_free(whole);
            tn_summary_free(parts);
        }
    check_fine();
}

/* ---- evaluations ---- */

static bool modes_seen[2];

static tn_array *note_mode(tn_layer *layer, const tn_array *x, void *user)
{
    modes_seen[*(int *)user] = tn_layer_training(layer);
    return tn_multiply(x, 1.0);
}

static tn_array *reporting_loss(tn_layer *model, const tn_batch *batch, void *user)
{
    tn_array *y = tn_forward(model, batch->x), *loss = tn_mean_squared_error(tn_mean(y, .axis = TN_AXES(1)),
                                                                              tn_cast(batch->t, TN_FLOAT32));
    tn_report(model, "loss", loss);
    tn_report_number(NULL, "bare", (double)batch->size);
    tn_report_number(model, "own", (double)batch->size, .weight = 1);
    ++*(int *)user;
    return loss;
}

/* Minibatches of 4, 4 and 3: the mean is that of all samples; each layer's own mode is as before. */
static void test_evaluator(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd");
    int names[2] = {0, 1}, calls = 0;
    tn_layer *frozen = tn_layer_new("frozen", note_mode, &names[0], NULL);
    tn_layer *model = tn_sequential(frozen, tn_layer_new("other", note_mode, &names[1], NULL), tn_linear(3, .in = 4));
    tn_layer_train(frozen, false);
    tn_extension *evaluator = tn_evaluator(s.test_loader, model, .loss = reporting_loss, .user = &calls);
    tn_reporter *reporter = tn_reporter_new();
    tn_observation *seen = tn_observation_new();
    modes_seen[1] = true;
    tn_observation_set_number(seen, "bare", 99, 0);
    assert_int_equal(tn_extension_call(evaluator, NULL), TN_OK); /* nobody listens */
    for (int round = 0; round < 2; round++)
        TN_REPORTER(reporter, seen)
            assert_int_equal(tn_extension_call(evaluator, NULL), TN_OK);
    assert_int_equal(calls, 9);
    assert_false(modes_seen[0] || modes_seen[1]);
    assert_true(tn_layer_training(model) && !tn_layer_training(frozen));
    assert_true(tn_layer_training(tn_layer_child(model, "1")));
    double loss = 0;
    TN_SCOPE TN_NO_GRAD for (tn_batch b; tn_loader_next(s.test_loader, &b);) {
        tn_array *y = tn_mean(tn_forward(model, b.x), .axis = TN_AXES(1));
        loss += tn_item(tn_sum(tn_square(tn_subtract(y, tn_cast(b.t, TN_FLOAT32))))) / 11;
    }
    assert_float_equal(tn_observation_number(seen, "validation/main/loss"), loss, 1e-6);
    assert_float_equal(tn_observation_number(seen, "bare"), (16 + 16 + 9) / 11.0, 1e-12);
    assert_float_equal(tn_observation_number(seen, "validation/main/own"), 11 / 3.0, 1e-12);
    tn_extension_free(evaluator);
    tn_observation_free(seen);
    tn_reporter_free(reporter);
    tn_layer_free(model);
    setup_free(&s);
    check_fine();
}

/* A second one goes by another name, which its keys begin with. */
static void test_evaluators(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(1, TN_EPOCH));
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model));
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model), .name = "test");
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model, .name = "net"));
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    tn_observation *seen = tn_trainer_observation(trainer);
    static const char *const keys[] = {"main/loss", "validation/main/loss", "test/main/accuracy",
                                       "validation_1/net/loss"};
    for (int i = 0; i < 4; i++)
        assert_true(tn_observation_has(seen, keys[i]));
    assert_true(tn_observation_number(seen, "validation/main/loss") == tn_observation_number(seen, "test/main/loss"));
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
}

/* ---- updaters ---- */

/* Three minibatches an update give the gradient of one that is three times as large, and report its loss. */
static void test_accumulate(void **state)
{
    (void)state;
    double loss[2], weight[2][12];
    for (int k = 0; k < 2; k++) {
        setup s = setup_new(12, 4, "linear:3", "sgd:lr=0.5");
        tn_loader_free(s.loader);
        s.loader = tn_loader_new(setup_data(12, 1), .batch = k ? 4 : 12);
        tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s.loader, s.optimizer, .accumulate = k ? 3 : 1),
                                             .stop = TN_EVERY(2, TN_ITERATION), .out = folder);
        assert_int_equal(tn_trainer_run(trainer), TN_OK);
        assert_float_equal(tn_trainer_epoch_detail(trainer), 2, 0);
        loss[k] = tn_observation_number(tn_trainer_observation(trainer), "main/loss");
        check_read(tn_param(s.model, 0), weight[k], 12);
        tn_trainer_free(trainer);
        setup_free(&s);
    }
    assert_float_equal(loss[0], loss[1], 1e-6);
    for (int i = 0; i < 12; i++)
        assert_float_equal(weight[0][i], weight[1][i], 1e-6);
    check_fine();
}

/* A model of two inputs gives its loss itself, to updaters and to evaluators. */
static tn_status distance(tn_layer *layer, const tn_flow *flow, void *user)
{
    (void)user;
    tn_array *y = tn_forward(tn_layer_child(layer, "net"), flow->in[0]);
    flow->out[0] = tn_mean(tn_square(tn_subtract(tn_index(tn_transpose(y, TN_AXES(1, 0)), 0), flow->in[1])));
    return tn_report(layer, "loss", flow->out[0]);
}

static void test_loss_by_model(void **state)
{
    (void)state;
    setup s = setup_new(12, 4, "linear:1", "sgd");
    tn_layer *model = tn_flow_layer("distance", distance, NULL, NULL, .inputs = 2);
    tn_layer_add(model, "net", tn_linear(1));
    tn_optimizer *optimizer = tn_sgd(model, .lr = 0.1);
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s.loader, optimizer), .stop = TN_EVERY(3, TN_ITERATION),
                                         .out = folder);
    assert_int_equal(tn_extend(trainer, tn_evaluator(s.test_loader, model)), TN_OK);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    tn_observation *seen = tn_trainer_observation(trainer);
    assert_int_equal(tn_observation_count(seen), 2);
    assert_true(tn_observation_number(seen, "main/loss") > 0);
    assert_true(tn_observation_number(seen, "validation/main/loss") > 0);
    assert_int_equal(tn_optimizer_steps(optimizer), 3);
    check_fine();
    tn_trainer_free(trainer);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    setup_free(&s);
}

/* Two models and their optimizers, as of a GAN, by a function of one's own. */
static tn_status two_steps(tn_updater *updater, void *user)
{
    (void)user;
    tn_batch b;
    TN_SCOPE for (int i = 0; i < 2 && tn_updater_next(updater, i ? "second" : NULL, &b); i++) {
        tn_optimizer *optimizer = tn_updater_optimizer(updater, i ? "dis" : "gen");
        tn_layer *model = ((tn_layer **)user)[i];
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(model, b.x), b.t);
        tn_report(model, "loss", loss);
        tn_backward(loss);
        tn_step(optimizer);
    }
    return tn_error_code();
}

static void test_two_optimizers(void **state)
{
    (void)state;
    setup a = setup_new(10, 4, "linear:3", "sgd"), b = setup_new(10, 5, "linear:3", "adam");
    tn_layer *models[] = {a.model, b.model};
    tn_updater *updater = tn_updater_of(two_steps, a.loader, NULL, .user = models,
                                        .loaders = TN_LOADERS({"second", b.loader}),
                                        .optimizers = TN_OPTIMIZERS({"gen", a.optimizer}, {"dis", b.optimizer}));
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(2, TN_EPOCH), .out = folder);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    assert_int_equal(tn_trainer_iteration(trainer), 6);
    assert_int_equal(tn_optimizer_steps(b.optimizer), 6);
    assert_int_equal(tn_loader_epoch(b.loader) * 10 + tn_loader_position(b.loader), 30);
    assert_true(tn_observation_has(tn_trainer_observation(trainer), "gen/loss"));
    assert_true(tn_observation_has(tn_trainer_observation(trainer), "dis/loss"));
    assert_null(tn_trainer_optimizer(trainer, "main"));
    check_latched(TN_ERR_NAME, "main");
    tn_trainer_free(trainer);
    setup_free(&a);
    setup_free(&b);
    check_fine();
}

static tn_array *loss_of_all(tn_layer *model, const tn_batch *batch, void *user)
{
    (void)model;
    return tn_softmax_cross_entropy(tn_forward(user, batch->x), batch->t);
}

/* Of two parts of one model, and of one that the loss does not depend on. */
static void test_optimizers_of_parts(void **state)
{
    (void)state;
    setup s = setup_new(10, 5, "linear:3", "sgd"), idle = setup_new(10, 5, "linear:3", "sgd");
    tn_layer *first = tn_linear(3, .in = 4), *second = tn_linear(3, .in = 3), *whole = tn_sequential(first, second);
    tn_optimizer *main = tn_sgd(first), *rest = tn_adam(second);
    tn_updater *updater =
        tn_standard_updater(s.loader, main, .loss = loss_of_all, .user = whole,
                            .optimizers = TN_OPTIMIZERS({"rest", rest}, {"idle", idle.optimizer}));
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(tn_updater_update(updater), TN_OK);
        assert_int_equal(tn_optimizer_steps(main), i);
        assert_int_equal(tn_optimizer_steps(rest), i);
        assert_false(tn_has_grad(tn_param(second, 0)));
    }
    assert_int_equal(tn_optimizer_steps(idle.optimizer), 0);
    tn_updater_free(updater);
    tn_optimizer_free(main);
    tn_optimizer_free(rest);
    tn_layer_free(whole);
    setup_free(&s);
    setup_free(&idle);
    check_fine();
}

/* An evaluation would move the place where training is. */
static void test_evaluator_of_training(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(2, TN_EPOCH));
    tn_extend(trainer, tn_evaluator(s.loader, s.model));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "the updater's \"main\"");
    assert_int_equal(tn_trainer_iteration(trainer), 0);
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
}

static tn_array *many_losses(tn_layer *model, const tn_batch *batch, void *user)
{
    (void)user;
    return tn_forward(model, batch->x);
}

static tn_status updates_itself(tn_updater *updater, void *user)
{
    (void)user;
    return tn_updater_update(updater);
}

static tn_array *no_loss(tn_layer *model, const tn_batch *batch, void *user)
{
    (void)model, (void)batch, (void)user;
    return NULL;
}

static void test_bad_updaters(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_updater *updater = tn_standard_updater(s.loader, s.optimizer, .accumulate = 0);
    check_latched(TN_ERR_VALUE, "1 minibatch an update");
    assert_int_equal(tn_updater_update(updater), TN_ERR_VALUE);
    tn_clear_error();
    tn_updater_free(updater);
    updater = tn_standard_updater(s.loader, NULL);
    check_latched(TN_ERR_VALUE, "an optimizer");
    tn_updater_free(updater);
    updater = tn_standard_updater(s.loader, s.optimizer, .loaders = TN_LOADERS({"main", s.test_loader}));
    check_latched(TN_ERR_NAME, "taken");
    tn_updater_free(updater);
    updater = tn_standard_updater(s.loader, s.optimizer, .loss = many_losses);
    assert_int_equal(tn_updater_update(updater), TN_ERR_SHAPE);
    check_latched(TN_ERR_SHAPE, "one element");
    tn_updater_free(updater);
    updater = tn_updater_of(updates_itself, s.loader, s.optimizer);
    assert_int_equal(tn_updater_update(updater), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "this updater is updating");
    assert_int_equal(tn_updater_progress(updater).iteration, 0);
    tn_updater_free(updater);
    updater = tn_standard_updater(s.loader, s.optimizer, .loss = no_loss);
    assert_int_equal(tn_updater_update(updater), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "NULL");
    assert_int_equal(tn_updater_progress(updater).iteration, 0);
    tn_updater_free(updater);
    setup_free(&s);
}

/* Names that could be neither logged nor saved are refused where they are given, told with their bytes. */
static void test_bad_names(void **state)
{
    (void)state;
    static const char bad[] = "lo\xffss", told[] = "lo\\xffss\" is not valid UTF-8";
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_observation *seen = tn_observation_new();
    tn_summary *means = tn_summary_new();
    tn_reporter *reporter = tn_reporter_new();
    tn_reporter_add(reporter, "main", s.model);
#define BAD_NAME(call) \
    do { \
        if ((call) == TN_OK) \
            fail_msg("%s is taken", #call); \
        check_latched(TN_ERR_VALUE, told); \
    } while (0)
    BAD_NAME(tn_observation_set_number(seen, bad, 1, 0));
    TN_SCOPE BAD_NAME(tn_observation_set(seen, bad, tn_ones(TN_SHAPE(1)), 0));
    BAD_NAME(tn_summary_add_number(means, bad, 1, 0));
    BAD_NAME(tn_reporter_add(reporter, bad, s.model));
    TN_REPORTER(reporter, seen) {
        BAD_NAME(tn_report_number(s.model, bad, 1));
        TN_SCOPE BAD_NAME(tn_report(NULL, bad, tn_ones(TN_SHAPE(1))));
        assert_int_equal(tn_report_number(s.model, "p\xc3\xa4th \xe2\x82\xac \xf0\x9f\x98\x80", 1), TN_OK);
    }
    assert_int_equal(tn_observation_count(seen), 1);
    tn_extension *const extensions[] = {
        tn_plot_report(TN_KEYS_OF("a", bad)),
        tn_plot_report(TN_KEYS_OF("a"), .x_key = bad),
        tn_micro_average("a", "b", bad),
        tn_observe_lr(.key = bad),
        tn_reduce_on_plateau("lr", bad),
        tn_dump_graph(bad),
    };
    check_latched(TN_ERR_VALUE, told); /* the first */
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        assert_int_equal(tn_extension_status(extensions[i]), TN_ERR_VALUE);
        tn_clear_error();
        tn_extension_free(extensions[i]);
    }
    tn_trigger *trigger = tn_max_value(bad);
    check_latched(TN_ERR_VALUE, told);
    tn_trigger_free(trigger);
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s.loader, s.optimizer), .out = folder);
    BAD_NAME(tn_extend(trainer, tn_observe_lr(), .name = bad));
    tn_trainer_free(trainer);
    tn_updater *updater = tn_standard_updater(s.loader, s.optimizer, .loaders = TN_LOADERS({bad, s.test_loader}));
    check_latched(TN_ERR_VALUE, told);
    tn_updater_free(updater);
    tn_reporter_free(reporter);
    tn_summary_free(means);
    tn_observation_free(seen);
    setup_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bad_names, set_up, tear_down),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_watching),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_summary_goes_on),
        cmocka_unit_test(test_evaluator),
        cmocka_unit_test_setup_teardown(test_evaluators, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accumulate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loss_by_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_optimizers, set_up, tear_down),
        cmocka_unit_test(test_optimizers_of_parts),
        cmocka_unit_test_setup_teardown(test_evaluator_of_training, set_up, tear_down),
        cmocka_unit_test(test_bad_updaters),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
