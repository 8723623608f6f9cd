/* SPDX-License-Identifier: MIT */
/*
 * Who frees what: no order of frees does harm, what was taken over says so, what was freed can be told, and an
 * allocation that fails anywhere leaves nothing that crashes, or leaks, when all is freed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include <tanso.h>

#include "core/memory.h"
#include "support/device.h"

/* ---- a run's objects ---- */

enum { DATASET, LOADER, NET, OPTIMIZER, UPDATER, TRAINER, OBJECTS };

typedef struct objects {
    tn_dataset *dataset;
    tn_loader *loader;
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_updater *updater;
    tn_trainer *trainer;
} objects;

static tn_status nothing(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    return TN_OK;
}

static objects make(void)
{
    objects o;
    TN_SCOPE {
        o.dataset = tn_dataset_arrays(tn_ones(TN_SHAPE(5, 3)), tn_zeros(TN_SHAPE(5, 1)));
        o.loader = tn_loader_new(o.dataset, .batch = 2);
        o.net = tn_sequential(tn_linear(2, .in = 3), tn_relu_layer(), tn_linear(1, .in = 2));
        o.optimizer = tn_momentum_sgd(o.net);
        o.updater = tn_standard_updater(o.loader, o.optimizer);
        o.trainer = tn_trainer_new(o.updater, .stop = TN_EVERY(1, TN_ITERATION), .quiet = true);
        tn_extend_function(o.trainer, nothing, NULL);
    }
    return o;
}

static tn_status status_of(const objects *o, int which)
{
    return which == DATASET     ? tn_dataset_status(o->dataset)
           : which == LOADER    ? tn_loader_status(o->loader)
           : which == NET       ? tn_layer_status(o->net)
           : which == OPTIMIZER ? tn_optimizer_status(o->optimizer)
           : which == UPDATER   ? tn_updater_status(o->updater)
                                : tn_trainer_status(o->trainer);
}

static void free_one(const objects *o, int which)
{
    switch (which) {
    case DATASET: tn_dataset_free(o->dataset); break;
    case LOADER: tn_loader_free(o->loader); break;
    case NET: tn_layer_free(o->net); break;
    case OPTIMIZER: tn_optimizer_free(o->optimizer); break;
    case UPDATER: tn_updater_free(o->updater); break;
    case TRAINER: tn_trainer_free(o->trainer); break;
    }
}

/* What an object does where all it needs is there; with parts of it freed, it must give an error. */
static tn_status use(const objects *o, int which)
{
    tn_batch batch;
    switch (which) {
    case DATASET: return tn_status_of(tn_dataset_x(o->dataset));
    case LOADER: return tn_loader_set_epoch(o->loader, 0) == TN_OK && tn_loader_next(o->loader, &batch) ? TN_OK
                                                                                                    : tn_error_code();
    case NET: return tn_status_of(tn_forward(o->net, tn_ones(TN_SHAPE(1, 3))));
    case OPTIMIZER: return tn_optimizer_set(o->optimizer, "lr", 0.25);
    case UPDATER: return tn_updater_update(o->updater);
    default: return tn_extend_function(o->trainer, nothing, NULL);
    }
}

static int owner_of(int which) { return which == DATASET ? LOADER : which == UPDATER ? TRAINER : OBJECTS; }

/* Frees all in an order; each, what has been freed as well, is used after each free. */
static void free_in_order(const int *order)
{
    objects o = make();
    bool gone[OBJECTS + 1] = {false};
    assert_true(tn_ok());
    for (int i = 0; i < OBJECTS; i++) {
        int which = order[i], owner = owner_of(which);
        bool taken = owner != OBJECTS || gone[which];
        free_one(&o, which);
        assert_int_equal(tn_error_code(), taken ? TN_ERR_STATE : TN_OK);
        tn_clear_error();
        gone[which] = gone[which] || !taken;
        for (int k = 0; k < OBJECTS; k++)
            gone[k] = gone[k] || gone[owner_of(k)];
        bool lacks[OBJECTS] = {[OPTIMIZER] = gone[NET], [UPDATER] = gone[LOADER] || gone[NET] || gone[OPTIMIZER]};
        for (int k = 0; k < OBJECTS; k++)
            TN_SCOPE {
                assert_int_equal(status_of(&o, k), gone[k] ? TN_ERR_STATE : TN_OK);
                assert_int_equal(use(&o, k), gone[k] || lacks[k] ? TN_ERR_STATE : TN_OK);
                tn_clear_error();
            }
    }
}

static void permute(int *order, int from, void (*visit)(const int *order))
{
    if (from == OBJECTS)
        visit(order);
    for (int i = from; i < OBJECTS; i++) {
        int first = order[from];
        order[from] = order[i];
        order[i] = first;
        permute(order, from + 1, visit);
        order[i] = order[from];
        order[from] = first;
    }
}

static void every_order_of_frees(void **state)
{
    (void)state;
    int order[OBJECTS] = {DATASET, LOADER, NET, OPTIMIZER, UPDATER, TRAINER};
    size_t before = tn_live_arrays();
    permute(order, 0, free_in_order);
    assert_int_equal(tn_live_arrays(), before);
}

/* ---- allocations that fail ---- */

static void free_backwards_and_forwards(const objects *o)
{
    for (int i = 0; i < OBJECTS; i++)
        free_one(o, i);
    for (int i = OBJECTS; i-- > 0;)
        free_one(o, i);
}

static void allocations_that_fail(void **state)
{
    (void)state;
    objects warm = make();
    free_backwards_and_forwards(&warm);
    tn_clear_error();
    size_t before = tn_live_arrays();
    bool failed = true;
    for (long n = 0; failed; n++) {
        tn__fail_allocation_after(n);
        objects o = make();
        tn__fail_allocation_after(-1);
        failed = !tn_ok();
        tn_clear_error();
        for (int k = 0; k < OBJECTS; k++)
            TN_SCOPE
                use(&o, k);
        free_backwards_and_forwards(&o);
        tn_clear_error();
        assert_int_equal(tn_live_arrays(), before);
    }
}

/* ---- what is taken over twice, or where taking it over fails ---- */

static void is_dead(tn_status status)
{
    assert_int_equal(status, TN_ERR_STATE);
    tn_clear_error();
}

static void children(void **state)
{
    (void)state;
    tn_layer *failed = tn_layer_parse("no_such_layer"), *child = tn_relu_layer();
    assert_int_equal(tn_layer_add(failed, "child", child), TN_ERR_NAME);
    tn_clear_error();
    is_dead(tn_layer_status(child));
    is_dead(tn_layer_add(failed, "child", child));
    TN_SCOPE
        is_dead(tn_status_of(tn_forward(child, tn_ones(TN_SHAPE(2)))));
    tn_layer_free(child);
    is_dead(tn_error_code());
    tn_layer_free(failed);

    tn_layer *one = tn_relu_layer(), *net = tn_sequential(one, one);
    is_dead(tn_layer_status(net));
    is_dead(tn_layer_status(one));
    tn_layer_free(net);
    net = tn_sequential(one = tn_relu_layer());
    tn_layer *other = tn_sequential(one);
    is_dead(tn_layer_status(other));
    assert_int_equal(tn_layer_status(one), TN_OK);
    tn_layer_free(one);
    is_dead(tn_error_code());
    tn_layer_free(other);
    tn_layer_free(net);
    is_dead(tn_layer_status(one));
    tn_layer *classifier = tn_classifier(one), *repeated = tn_layer_repeat(one, 2);
    is_dead(tn_layer_status(classifier));
    is_dead(tn_layer_status(repeated));
    tn_layer_free(classifier);
    tn_layer_free(repeated);
    assert_true(tn_ok());
}

static void datasets(void **state)
{
    (void)state;
    tn_dataset *dataset = tn_sine(5, 1);
    tn_loader *first = tn_loader_new(dataset), *second = tn_loader_new(dataset);
    tn_loader *third = tn_loader_new(dataset, .keep_dataset = true);
    is_dead(tn_loader_status(second));
    assert_int_equal(tn_loader_status(third), TN_OK);
    tn_loader_free(second);
    assert_int_equal(tn_dataset_status(dataset), TN_OK);
    tn_loader_free(first);
    is_dead(tn_dataset_status(dataset));
    tn_loader *fourth = tn_loader_new(dataset);
    is_dead(tn_loader_status(fourth));
    tn_batch batch;
    assert_true(tn_loader_next(third, &batch)); /* it holds the samples themselves */
    tn_loader_free(third);
    tn_loader_free(fourth);
    tn_loader *wrong = tn_loader_new(dataset = tn_sine(5, 1), .batch = -1);
    assert_int_equal(tn_loader_status(wrong), TN_ERR_VALUE);
    tn_clear_error();
    tn_dataset_free(dataset);
    is_dead(tn_error_code());
    tn_loader_free(wrong);
    is_dead(tn_dataset_status(dataset));
}

static void samplers(void **state)
{
    (void)state;
    tn_sampler *sampler = tn_weighted_sampler(5, ((double[]){1, 2, 3, 4, 5}));
    tn_loader *first = tn_loader_new(tn_sine(5, 1), .sampler = sampler);
    tn_loader *second = tn_loader_new(tn_sine(5, 1), .sampler = sampler);
    is_dead(tn_loader_status(second));
    tn_loader_free(second);
    tn_sampler_free(sampler);
    is_dead(tn_error_code());
    tn_batch batch;
    assert_true(tn_loader_next(first, &batch));
    tn_loader_free(first);
    is_dead(tn_sampler_status(sampler));
    tn_loader *third = tn_loader_new(tn_sine(5, 1), .sampler = sampler);
    is_dead(tn_loader_status(third));
    tn_loader_free(third);
    assert_true(tn_ok());
}

static void triggers_and_extensions(void **state)
{
    (void)state;
    static const tn_extension_kind kind = {.name = "none"};
    objects o = make(), p = make();
    tn_trainer *twice = tn_trainer_new(o.updater, .quiet = true);
    is_dead(tn_trainer_status(twice));
    assert_int_equal(tn_updater_status(o.updater), TN_OK);
    tn_trigger *trigger = tn_every(1, TN_EPOCH);
    tn_extension *extension = tn_extension_new(&kind, NULL);
    assert_int_equal(tn_extend(o.trainer, extension, .trigger = trigger), TN_OK);
    is_dead(tn_extend(p.trainer, extension));
    is_dead(tn_extend(p.trainer, tn_extension_new(&kind, NULL), .trigger = trigger));
    tn_extension *report = tn_log_report(.every = trigger);
    is_dead(tn_extension_status(report));
    tn_extension_free(report);
    tn_trigger *stopping = tn_early_stopping(.check = trigger), *best = tn_max_value("loss", .check = trigger);
    is_dead(tn_trigger_status(stopping));
    is_dead(tn_trigger_status(best));
    tn_trigger_free(stopping);
    tn_trigger_free(best);
    assert_int_equal(tn_trigger_status(trigger), TN_OK);
    tn_trigger_free(trigger);
    is_dead(tn_error_code());
    tn_extension_free(extension);
    is_dead(tn_error_code());
    free_backwards_and_forwards(&o);
    tn_clear_error();
    is_dead(tn_trigger_status(trigger));
    is_dead(tn_extension_status(extension));
    assert_false(tn_trigger_fire(trigger, p.trainer));
    is_dead(tn_error_code());
    is_dead(tn_extension_call(extension, p.trainer));
    is_dead(tn_extend(p.trainer, extension));
    tn_trainer_free(twice);
    free_backwards_and_forwards(&p);
    tn_clear_error();
}

static tn_status free_trainer(tn_trainer *trainer, void *user)
{
    tn_trainer_free(trainer);
    *(tn_status *)user = tn_error_code();
    tn_clear_error();
    return TN_OK;
}

static void a_trainer_that_runs(void **state)
{
    (void)state;
    objects o = make();
    tn_status came = TN_OK;
    assert_int_equal(tn_extend_function(o.trainer, free_trainer, &came), TN_OK);
    assert_int_equal(tn_trainer_run(o.trainer), TN_OK);
    assert_int_equal(came, TN_ERR_STATE);
    free_backwards_and_forwards(&o);
    tn_clear_error();
}

/* Functions that free the object whose call has called them. */
static tn_status refused(void)
{
    tn_status status = tn_error_code();
    tn_clear_error();
    return status == TN_ERR_STATE ? TN_OK : TN_ERR_INTERNAL;
}

static tn_status free_layer(tn_layer *layer, bool after, void *user)
{
    (void)after, (void)user;
    tn_layer_free(layer);
    return refused();
}

static tn_status free_optimizer(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)layer, (void)user;
    tn_optimizer_free(optimizer);
    return refused();
}

static tn_status free_updater(tn_updater *updater, void *user)
{
    (void)user;
    tn_updater_free(updater);
    return refused();
}

static tn_status free_loader(void *user, int64_t i, tn_generator *generator, void *x, void *t)
{
    (void)generator;
    tn_loader_free(*(tn_loader **)user);
    *(float *)x = *(float *)t = (float)i;
    return refused();
}

static bool free_trigger(tn_trainer *trainer, void *user)
{
    (void)trainer;
    tn_trigger_free(*(tn_trigger **)user);
    return refused() == TN_OK;
}

static void objects_at_work(void **state)
{
    (void)state;
    objects o = make();
    tn_batch batch;
    assert_int_equal(tn_layer_add_hook(o.net, free_layer, NULL), TN_OK);
    assert_int_equal(tn_optimizer_add_hook(o.optimizer, free_optimizer, NULL), TN_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_updater_update(o.updater), TN_OK);
    tn_updater *updater = tn_updater_of(free_updater, NULL, NULL);
    assert_int_equal(tn_updater_update(updater), TN_OK);
    tn_updater_free(updater);
    tn_loader *loader = NULL;
    tn_sample_type number = {.dtype = TN_FLOAT32};
    loader = tn_loader_new(tn_dataset_of(3, number, number, free_loader, &loader), .no_prefetch = true);
    assert_true(tn_loader_next(loader, &batch));
    tn_loader_free(loader);
    tn_trigger *trigger = NULL;
    trigger = tn_trigger_of(free_trigger, &trigger);
    assert_true(tn_trigger_fire(trigger, o.trainer));
    tn_trigger_free(trigger);
    assert_true(tn_ok());
    free_backwards_and_forwards(&o);
    tn_clear_error();
}

/* ---- arrays that objects keep ---- */

static void cannot_be_freed(tn_array *x)
{
    size_t before = tn_live_arrays();
    tn_free(x);
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), "belongs to"));
    tn_clear_error();
    assert_int_equal(tn_live_arrays(), before);
    assert_int_equal(tn_status_of(x), TN_OK);
}

static void arrays_that_objects_keep(void **state)
{
    (void)state;
    size_t before = tn_live_arrays();
    objects o = make();
    TN_SCOPE {
        tn_batch batch;
        assert_true(tn_loader_next(o.loader, &batch));
        tn_layer *own = tn_layer_new("own", NULL, NULL, NULL);
        tn_clear_error();
        tn_layer_free(own);
        assert_int_equal(tn_backward(tn_usual_loss(o.net, &batch, NULL)), TN_OK);
        cannot_be_freed(tn_grad(tn_param(o.net, 0)));
        assert_int_equal(tn_step(o.optimizer), TN_OK);
        cannot_be_freed(batch.x);
        cannot_be_freed(batch.t);
        cannot_be_freed(tn_dataset_x(o.dataset));
        cannot_be_freed(tn_dataset_t(o.dataset));
        for (int i = 0; i < tn_param_count(o.net); i++)
            cannot_be_freed(tn_param(o.net, i));
        for (int i = 0; i < tn_optimizer_state_count(o.optimizer); i++)
            cannot_be_freed(tn_optimizer_state(o.optimizer, i));
        tn_array *mean = tn_layer_persistent(o.net, "mean", tn_zeros(TN_SHAPE(2)));
        cannot_be_freed(mean);
        tn_archive *archive = tn_archive_new();
        assert_int_equal(tn_archive_add(archive, "x", mean), TN_OK);
        cannot_be_freed(tn_archive_find(archive, "x"));
        tn_archive_free(archive);
        assert_int_equal(tn_updater_update(o.updater), TN_OK);
    }
    free_backwards_and_forwards(&o);
    tn_clear_error();
    assert_int_equal(tn_live_arrays(), before);
}

/* ---- what is borrowed ---- */

static void snapshots_of_what_is_freed(void **state)
{
    (void)state;
    objects o = make();
    tn_archive *archive = tn_archive_new();
    tn_serializer s = {.archive = archive};
    tn_layer_free(o.net);
    tn_loader_free(o.loader);
    assert_true(tn_ok());
    is_dead(tn_serialize_layer(&s, "layer", o.net));
    is_dead(tn_serialize_loader(&s, "loader", o.loader));
    is_dead(tn_serialize_optimizer(&s, "optimizer", o.optimizer));
    is_dead(tn_serialize_trainer(&s, "trainer", o.trainer));
    is_dead(tn_trainer_run(o.trainer));
    tn_archive_free(archive);
    free_backwards_and_forwards(&o);
    tn_clear_error();
}

static void reports_to_what_is_freed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        tn_reporter *reporter = tn_reporter_new();
        tn_observation *observation = tn_observation_new();
        assert_int_equal(tn_reporter_push(reporter, observation), TN_OK);
        if (i)
            tn_reporter_free(reporter);
        else
            tn_observation_free(observation);
        TN_SCOPE
            assert_int_equal(tn_report(NULL, "x", tn_scalar(1)), TN_OK);
        assert_null(tn_current_observation());
        tn_reporter_pop();
        if (i)
            tn_observation_free(observation);
        else
            tn_reporter_free(reporter);
    }
    assert_true(tn_ok());
}

/* The last call was refused, as what it was given has been freed. */
static void was_gone(void)
{
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), "freed"));
    tn_clear_error();
}

static void means_that_are_freed(void **state)
{
    (void)state;
    tn_array *x = tn_own(tn_ones(TN_SHAPE(1)));
    tn_meter *meter = tn_meter_new(tn_current_device());
    tn_summary *summary = tn_summary_new(.deviations = true);
    tn_observation *seen = tn_observation_new(), *other = tn_observation_new();
    tn_summary_add_number(summary, "a", 1, 1);
    tn_observation_set_number(seen, "a", 1, 1);
    tn_meter_add(meter, x, 1);
    for (int i = 0; i < 2; i++) { /* twice, which is told */
        tn_meter_free(meter);
        tn_summary_free(summary);
        tn_observation_free(seen);
    }
    was_gone();
    tn_meter_add(meter, x, 1), was_gone();
    assert_true(isnan(tn_meter_take(meter))), was_gone();
    tn_summary_add(summary, "a", x, 1), was_gone();
    tn_summary_add_number(summary, "a", 1, 1), was_gone();
    tn_summary_add_observation(summary, other), was_gone();
    tn_summary_clear(summary), was_gone();
    assert_int_equal(tn_summary_count(summary), 0), was_gone();
    assert_string_equal(tn_summary_key(summary, 0), ""), was_gone();
    assert_true(isnan(tn_summary_mean(summary, "a"))), was_gone();
    assert_true(isnan(tn_summary_deviation(summary, "a"))), was_gone();
    tn_summary_observe(summary, NULL, other), was_gone();
    tn_observation_set(seen, "a", x, 1), was_gone();
    tn_observation_set_number(seen, "a", 1, 1), was_gone();
    tn_observation_clear(seen), was_gone();
    assert_int_equal(tn_observation_count(seen), 0), was_gone();
    assert_string_equal(tn_observation_key(seen, 0), ""), was_gone();
    assert_false(tn_observation_has(seen, "a")), was_gone();
    assert_null(tn_observation_array(seen, "a")), was_gone();
    assert_true(isnan(tn_observation_number(seen, "a"))), was_gone();
    assert_true(tn_observation_weight(seen, "a") == 0), was_gone();
    tn_observation_free(other);
    tn_free(x);
}

static void never_seen(const tn_array *value, void *user) { (void)value, (void)user; }

static void reporters_that_are_freed(void **state)
{
    (void)state;
    tn_layer *layer = tn_linear(2);
    tn_reporter *reporter = tn_reporter_new();
    tn_observation *seen = tn_observation_new();
    tn_reporter_free(reporter);
    tn_reporter_free(reporter), was_gone();
    tn_reporter_add(reporter, "main", layer), was_gone();
    tn_reporter_watch(reporter, "main/loss", never_seen, NULL), was_gone();
    tn_reporter_unwatch(reporter, NULL), was_gone();
    tn_reporter_push(reporter, seen), was_gone();
    tn_report_number(NULL, "a", 1); /* to nobody */
    tn_reporter_pop();
    tn_observation_free(seen);
    reporter = tn_reporter_new();
    tn_reporter_push(reporter, seen), was_gone();
    tn_reporter_pop();
    tn_reporter_free(reporter);
    tn_layer_free(layer);
    assert_true(tn_ok());
}

/* What a trainer lends is not the program's to free. */
static void a_trainers_own(void **state)
{
    (void)state;
    objects o = make();
    tn_observation_free(tn_trainer_observation(o.trainer));
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), "belongs to a trainer"));
    tn_clear_error();
    tn_reporter_free(tn_trainer_reporter(o.trainer));
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    tn_clear_error();
    assert_int_equal(tn_trainer_run(o.trainer), TN_OK);
    free_backwards_and_forwards(&o);
    tn_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_frees),
        cmocka_unit_test(allocations_that_fail),
        cmocka_unit_test(children),
        cmocka_unit_test(datasets),
        cmocka_unit_test(samplers),
        cmocka_unit_test(triggers_and_extensions),
        cmocka_unit_test(a_trainer_that_runs),
        cmocka_unit_test(objects_at_work),
        cmocka_unit_test(arrays_that_objects_keep),
        cmocka_unit_test(snapshots_of_what_is_freed),
        cmocka_unit_test(reports_to_what_is_freed),
        cmocka_unit_test(means_that_are_freed),
        cmocka_unit_test(reporters_that_are_freed),
        cmocka_unit_test(a_trainers_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
