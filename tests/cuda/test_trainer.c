/* SPDX-License-Identifier: MIT */
/* A trainer on a GPU whose reports are summed, whose model is evaluated each epoch and saved: the host waits for
 * nothing, and the next step for no snapshot. */
#include <inttypes.h>
#include <stdio.h>
#include "array/node.h"
#include "cuda/two_streams.h"
#include "support/fresh_folder.h"

enum { SAMPLES = 100, BATCH = 30, EPOCHS = 70, WARM = 66 };

typedef struct sums {
    tn_summary *means;
    unsigned long long waits;
    int64_t seen;
} sums;

/* Sums up each iteration; from the end of a warm epoch on, in which plans and graphs are made, counts waits. */
static tn_status sum_up(tn_trainer *trainer, void *user)
{
    sums *s = user;
    tn_summary_add_observation(s->means, tn_trainer_observation(trainer));
    if (tn_trainer_is_new_epoch(trainer) && tn_trainer_epoch(trainer) == WARM)
        s->waits = cuda->wait_count;
    else if (tn_trainer_is_new_epoch(trainer) && tn_trainer_epoch(trainer) == EPOCHS)
        assert_int_equal(cuda->wait_count, s->waits);
    s->seen += tn_observation_count(tn_trainer_observation(trainer));
    return tn_error_code();
}

static tn_dataset *data(void)
{
    tn_dataset *made = NULL;
    TN_ON_DEVICE (tn_cpu())
        TN_SCOPE
            made = tn_dataset_arrays(tn_ones(TN_SHAPE(SAMPLES, 8)), tn_zeros(TN_SHAPE(SAMPLES), .dtype = TN_INT64));
    return made;
}

typedef struct parts {
    tn_loader *train, *test;
    tn_layer *model;
    tn_optimizer *optimizer;
    tn_trainer *trainer; /* with an evaluator */
} parts;

/* By Adam, whose scalars are others in each step, or without such ones. */
static parts parts_new(bool adam)
{
    parts p = {.train = tn_loader_new(data(), .batch = BATCH, .shuffle = true),
               .test = tn_loader_new(data(), .batch = BATCH),
               .model = tn_layer_parse("linear:9 relu linear:3")};
    p.optimizer = adam ? tn_adam(p.model) : tn_sgd(p.model, .lr = 0.01);
    p.trainer = tn_trainer_new(tn_standard_updater(p.train, p.optimizer, .device = tn_cuda(0)),
                               .stop = TN_EVERY(EPOCHS, TN_EPOCH), .out = folder);
    tn_extend(p.trainer, tn_evaluator(p.test, p.model));
    return p;
}

static void parts_free(parts *p)
{
    tn_trainer_free(p->trainer);
    tn_optimizer_free(p->optimizer);
    tn_layer_free(p->model);
    tn_loader_free(p->train);
    tn_loader_free(p->test);
}

static void test_no_waits(void **state)
{
    (void)state;
    sums s = {.means = tn_summary_new()};
    TN_ON_DEVICE (tn_cuda(0)) {
        parts p = parts_new(true);
        tn_extend_function(p.trainer, sum_up, &s);
        if (tn_trainer_run(p.trainer) != TN_OK)
            fail_msg("%s", tn_error());
        assert_int_equal(s.seen, EPOCHS * (4 * 2 + 2));
        assert_true(s.waits > 0);
        unsigned long long before = cuda->wait_count;
        for (int i = 0; i < tn_summary_count(s.means); i++) /* a fake driver computes nothing; reading waits, once */
            tn_summary_mean(s.means, tn_summary_key(s.means, i));
        assert_int_equal(cuda->wait_count, before + 1);
        assert_true(tn_summary_count(s.means) > 3);
        tn_summary_free(s.means);
        parts_free(&p);
    }
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
}

/* Bytes of a file of the folder. */
static long length_of(const char *name)
{
    FILE *file = fopen(test_path(folder, name), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    fclose(file);
    return length;
}

typedef struct counts {
    unsigned long long waits;
    int graphs, patches; /* made, and changed */
} counts;

/* Behind all others: in the middle of an epoch the GPU gets done, as it would while an epoch's figures are long under
 * way; apart from that nobody waits once there are plans and graphs, which stay as they are. */
static tn_status count_waits(tn_trainer *trainer, void *user)
{
    counts *c = user;
    if (tn_trainer_epoch(trainer) >= WARM && c->waits) {
        assert_int_equal(cuda->wait_count, c->waits);
        assert_int_equal(fake.count.graphs, c->graphs);
        assert_int_equal(fake.count.patches, c->patches);
    }
    if (tn_trainer_iteration(trainer) % 4 == 2)
        assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    bool warm = tn_trainer_epoch(trainer) >= WARM;
    *c = (counts){warm ? cuda->wait_count : 0, fake.count.graphs, fake.count.patches};
    return tn_error_code();
}

/* Reports of each epoch are read when they have come: nobody waits for them, and none is lost. The next epoch's sums
 * lie where these did. */
static void test_reports(void **state)
{
    (void)state;
    counts counted = {0};
    FILE *table = tmpfile();
    assert_non_null(table);
    TN_ON_DEVICE (tn_cuda(0)) {
        parts p = parts_new(false);
        tn_extend(p.trainer, tn_log_report());
        tn_extend(p.trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss")));
        tn_extend(p.trainer, tn_print_report_of(TN_KEYS_OF("epoch", "iteration"),
                                                .stream = table));
        tn_extend_function(p.trainer, count_waits, &counted, .priority = 0);
        if (tn_trainer_run(p.trainer) != TN_OK)
            fail_msg("%s", tn_error());
        assert_true(counted.waits > 0);
        parts_free(&p);
    }
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    assert_true(length_of("log") > EPOCHS * 100);
    assert_true(length_of("plot.svg") > 0);
    rewind(table);
    char line[100];
    int64_t lines = 0, epoch, iteration;
    for (; fgets(line, sizeof line, table); lines++)
        if (lines > 0) {
            assert_int_equal(sscanf(line, "%" SCNd64 " %" SCNd64, &epoch, &iteration), 2);
            assert_int_equal(epoch, lines);
            assert_int_equal(iteration, 4 * lines); /* minibatches of an epoch, the last of which is smaller */
        }
    assert_int_equal(lines, 1 + EPOCHS);
    fclose(table);
}

typedef struct parameters {
    tn_layer *model;
    const void *memory; /* of the first one */
    int steps;
} parameters;

static tn_status look(tn_trainer *trainer, void *user)
{
    parameters *p = user;
    const void *memory = tn__array_node(tn_param(p->model, 0))->storage->memory;
    (void)trainer;
    if (++p->steps > 2)
        assert_ptr_equal(memory, p->memory);
    p->memory = memory;
    return tn_error_code();
}

/* Parameters that are being saved are not in the next step's way: it goes on in their memory, by the same graphs. */
static void test_snapshots(void **state)
{
    (void)state;
    TN_ON_DEVICE (tn_cuda(0)) {
        tn_loader *train = tn_loader_new(data(), .batch = BATCH, .shuffle = true);
        tn_layer *model = tn_layer_parse("linear:9 relu linear:3");
        tn_optimizer *optimizer = tn_adam(model);
        tn_trainer *trainer = tn_trainer_new(tn_standard_updater(train, optimizer, .device = tn_cuda(0)),
                                             .stop = TN_EVERY(20, TN_ITERATION), .out = folder);
        parameters p = {.model = model};
        tn_extend_function(trainer, look, &p);
        tn_extend(trainer, tn_snapshot(.keep = 2), .trigger = TN_EVERY(1, TN_ITERATION));
        if (tn_trainer_run(trainer) != TN_OK)
            fail_msg("%s", tn_error());
        assert_int_equal(p.steps, 20);
        tn_trainer_free(trainer);
        tn_optimizer_free(optimizer);
        tn_layer_free(model);
        tn_loader_free(train);
    }
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
}

static int begin(void **state)
{
    set_up(state);
    return two_streams_begin(state);
}

static int end(void **state)
{
    int left = two_streams_end(state);
    tear_down(state);
    return left;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_no_waits, begin, end),
                                       cmocka_unit_test_setup_teardown(test_reports, begin, end),
                                       cmocka_unit_test_setup_teardown(test_snapshots, begin, end)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    if (!two_streams_open())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
