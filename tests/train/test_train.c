/* SPDX-License-Identifier: MIT */
/* tn_train: what it writes, resuming bit for bit, and everything that can be wrong. */
#include <setjmp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <math.h>
#include <tanso.h>
#include "core/memory.h"
#include "support/device.h"
#include "support/fresh_folder.h"
#include "support/random.h"

/* tn_train takes the best device there is unless one is given. */
#define train(...) tn_train(__VA_ARGS__, .device = test_device())

static test_random chance;

static void assert_says(tn_status got, tn_status wanted, const char *text)
{
    if (got != wanted || !strstr(tn_error(), text))
        fail_msg("expected %s with '%s', got %s: %s", tn_status_name(wanted), text, tn_status_name(got), tn_error());
    tn_clear_error();
}

static void assert_done(tn_status got)
{
    if (got != TN_OK || !tn_ok())
        fail_msg("%s: %s", tn_status_name(got), tn_error());
}

static int count_of(const char *what, const char *path)
{
    char *text = test_read(path, NULL);
    int count = 0;
    for (const char *at = text; at && (at = strstr(at, what)); at += strlen(what))
        count++;
    free(text);
    return count;
}

/* ---- what a run gives ---- */

static void test_files_and_figures(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_generator before = *tn_default_generator();
    const char *out = test_path(folder, "deep/run"), *report_path = test_path(folder, "report");
    FILE *report = fopen(report_path, "w");
    tn_epoch last;
    assert_done(
        train("digits", &last, .epochs = 3, .out = out, .report = report, .seed = test_random_bits(&chance)));
    fclose(report);

    assert_int_equal(last.epoch, 3);
    assert_true(last.train_loss > 0 && last.train_loss < 1.5 && last.test_loss > 0);
    assert_true(last.test_accuracy > 0.6 && last.test_accuracy <= 1);
    assert_true(last.seconds > 0 && last.samples_per_second > 0);
    static const char *const names[] = {"model.safetensors", "log.jsonl", "curve.svg", "snapshot.safetensors"};
    for (int i = 0; i < 4; i++)
        assert_true(test_exists(test_path(out, names[i])));
    assert_int_equal(count_of("\n", test_path(out, "log.jsonl")), 3);
    assert_int_equal(count_of("train loss", report_path), 3);
    assert_int_equal(count_of("\r", report_path), 0); /* no bar in a file; a slow epoch has lines of its own */
    assert_int_equal(tn_live_arrays(), arrays);
    assert_memory_equal(tn_default_generator(), &before, sizeof before);

    /* The model's file alone rebuilds the network and gives the last epoch's figures. */
    tn_archive *archive = tn_archive_load(test_path(out, "model.safetensors"));
    assert_string_equal(tn_archive_text(archive, "tanso.dataset"), "digits");
    assert_string_equal(tn_archive_text(archive, "tanso.input"), "64");
    tn_layer *net = tn_layer_parse(tn_archive_text(archive, "tanso.model"));
    assert_done(tn_layer_load(net, test_path(out, "model.safetensors")));
    tn_dataset *test = tn_digits(TN_TEST);
    double loss, accuracy;
    assert_done(tn_evaluate(net, test, 1000, test_device(), &loss, &accuracy));
    assert_float_equal(loss, last.test_loss, 1e-12);
    assert_float_equal(accuracy, last.test_accuracy, 1e-12);
    tn_dataset_free(test);
    tn_layer_free(net);
    tn_archive_free(archive);
    assert_int_equal(tn_live_arrays(), arrays);
}

/* The first epoch meets every graph of a run: one that a later epoch brings is a pause while it is compiled. */
static void test_plans_are_of_the_first_epoch(void **state)
{
    (void)state;
    static const int batches[] = {64, 1437}; /* of 1437 samples: the last one is smaller; one is all */
    for (int i = 0; i < 2; i++) {
        tn_epoch last;
        assert_done(train("digits", &last, .epochs = 1, .batch = batches[i]));
        uint64_t misses = tn_engine_stats().plan_misses;
        assert_done(train("digits", &last, .epochs = 4, .batch = batches[i]));
        assert_int_equal(tn_engine_stats().plan_misses, misses);
    }
}

static void test_defaults_learn(void **state)
{
    (void)state;
    tn_epoch last;
    uint64_t seed = test_random_bits(&chance);
    assert_done(train("digits", &last, .seed = seed));
    if (!(last.test_accuracy >= 0.97))
        fail_msg("digits, seed %llu: accuracy %g", (unsigned long long)seed, last.test_accuracy);
    assert_done(train("sine", &last, .seed = seed));
    if (!(last.test_loss < 0.11) || !isnan(last.test_accuracy)) /* the noise's own variance is 1/12 */
        fail_msg("sine, seed %llu: loss %g", (unsigned long long)seed, last.test_loss);
    assert_done(train("spiral", &last, .seed = seed));
    if (!(last.test_accuracy >= 0.8))
        fail_msg("spiral, seed %llu: accuracy %g", (unsigned long long)seed, last.test_accuracy);
}

static void test_recipes(void **state)
{
    (void)state;
    int count = 0;
    while (tn_train_recipe(count))
        count++;
    assert_true(count > 1);
    assert_string_equal(tn_train_recipe(count - 1)->dataset, "*");
    assert_null(tn_train_recipe(-1));
    for (int i = 0; i < count - 1; i++) {
        tn_layer *net = tn_layer_parse(tn_train_recipe(i)->model);
        tn_optimizer *optimizer = tn_optimizer_parse(tn_train_recipe(i)->optimizer, net);
        assert_done(tn_layer_status(net));
        assert_done(tn_optimizer_status(optimizer));
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
}

/* A last layer of as many outputs as there are classes, or values a target; resumed by the same words. */
static void test_outputs_that_fit(void **state)
{
    (void)state;
    static const struct {
        const char *dataset, *model;
    } rows[] = {{"digits", "linear:8 relu linear:10"}, {"sine", "linear:8 relu linear:1"}};
    for (int i = 0; i < 2; i++) {
        const char *out = test_path(folder, rows[i].dataset);
        for (int epochs = 1; epochs < 3; epochs++)
            assert_done(train(rows[i].dataset, NULL, .model = "linear:8 relu linear:*", .epochs = epochs, .out = out,
                              .resume = true));
        tn_archive *archive = tn_archive_load(test_path(out, "model.safetensors"));
        assert_string_equal(tn_archive_text(archive, "tanso.model"), rows[i].model);
        tn_archive_free(archive);
    }
    assert_says(train("digits", NULL, .model = "linear:* relu", .epochs = 1), TN_ERR_VALUE, "'linear:*'");
}

/* ---- resuming ---- */

/* Models whose course depends on every part of the state: dropout's random numbers, momenta, step counts. */
static const struct {
    const char *model, *optimizer;
} resumed[] = {
    {"linear:20 relu dropout:0.3 linear:10", "adam:lr=0.004"},
    {"layer_norm linear:16 tanh linear:10", "nesterov:lr=0.02,clip_norm=2"},
};

static void test_resume(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *whole = test_path(folder, i ? "whole1" : "whole0"), *cut = test_path(folder, i ? "cut1" : "cut0");
        uint64_t seed = 1 + test_random_bits(&chance) / 2;
        int64_t batch = test_random_int(&chance, 30, 200);
        tn_epoch a, b;
        assert_done(train("digits", &a, .model = resumed[i].model, .optimizer = resumed[i].optimizer, .batch = batch,
                             .seed = seed, .epochs = 6, .out = whole));
        assert_done(train("digits", NULL, .model = resumed[i].model, .optimizer = resumed[i].optimizer,
                             .batch = batch, .seed = seed, .epochs = 1, .out = cut));
        assert_done(train("digits", NULL, .epochs = 4, .out = cut, .resume = true)); /* the rest is the snapshot's */
        /* Lines after the snapshot, as a run that was killed leaves them, and a broken one. */
        FILE *log = fopen(test_path(cut, "log.jsonl"), "a");
        fputs("{\"epoch\": 5, \"train_loss\": 1}\n{\"epo", log);
        fclose(log);
        assert_done(train("digits", &b, .epochs = 6, .batch = batch, .out = cut, .resume = true));
        assert_true(a.train_loss == b.train_loss && a.test_loss == b.test_loss && a.test_accuracy == b.test_accuracy);
        assert_true(test_same_files(test_path(whole, "model.safetensors"), test_path(cut, "model.safetensors")));
        char *one = test_log_figures(test_path(whole, "log.jsonl")),
             *two = test_log_figures(test_path(cut, "log.jsonl"));
        assert_string_equal(one, two);
        free(one);
        free(two);

        tn_epoch again; /* nothing is left to do */
        assert_done(train("digits", &again, .epochs = 6, .out = cut, .resume = true));
        assert_int_equal(again.epoch, b.epoch);
        assert_true(again.train_loss == b.train_loss && again.test_loss == b.test_loss && again.seconds == b.seconds);
    }
}

static void copy(const char *from, const char *to)
{
    size_t size;
    char *data = test_read(from, &size);
    assert_non_null(data);
    test_write_bytes(to, data, size);
    free(data);
}

/* Killed before any of the files beside the snapshot got its name: resumed, they are what the snapshot knows, whether
 * epochs are left to do or not. */
static void test_resume_agrees(void **state)
{
    (void)state;
    static const char *const names[] = {"model.safetensors", "curve.svg", "log.jsonl"};
    enum { NAMES = sizeof names / sizeof *names };
    const char *out = test_path(folder, "run"), *early = test_path(folder, "early"),
               *right = test_path(folder, "right");
    assert_int_equal(mkdir(early, 0777) | mkdir(right, 0777), 0);
    for (int epochs = 1; epochs <= 3; epochs += 2) {
        assert_done(train("spiral", NULL, .model = "linear:5 tanh linear:*", .epochs = epochs, .out = out,
                          .resume = true));
        for (int i = 0; i < NAMES; i++)
            copy(test_path(out, names[i]), test_path(epochs == 1 ? early : right, names[i]));
    }
    for (int stale = 1; stale < 2 << NAMES; stale++) { /* the highest bit: the files are not there at all */
        for (int i = 0; i < NAMES; i++) {
            const char *path = test_path(out, names[i]);
            assert_false(test_same_files(test_path(early, names[i]), test_path(right, names[i])));
            if (stale & 1 << i && stale >> NAMES)
                assert_int_equal(unlink(path), 0);
            else if (stale & 1 << i)
                copy(test_path(early, names[i]), path);
        }
        assert_done(train("spiral", NULL, .epochs = 3, .out = out, .resume = true));
        for (int i = 0; i < NAMES; i++)
            assert_true(test_same_files(test_path(out, names[i]), test_path(right, names[i])));
    }
}

/* What cannot be written is said before an epoch is computed. */
static void test_in_the_way(void **state)
{
    (void)state;
    static const char *const names[] = {"snapshot.safetensors", "model.safetensors", "curve.svg", "log.jsonl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *out = test_path(folder, names[i]);
        tn_epoch last = {.epoch = 7};
        assert_int_equal(mkdir(out, 0777) | mkdir(test_path(out, names[i]), 0777), 0);
        assert_says(train("spiral", &last, .model = "linear:3", .epochs = 1, .out = out), TN_ERR_IO, names[i]);
        assert_int_equal(last.epoch, 0);
    }
}

static void test_resume_refused(void **state)
{
    (void)state;
    const char *out = test_path(folder, "run");
    assert_done(train("digits", NULL, .model = "linear:10", .optimizer = "sgd:lr=0.1", .batch = 100, .seed = 5,
                         .epochs = 1, .out = out));
    assert_says(train("digits", NULL, .model = "linear:12", .out = out, .resume = true), TN_ERR_VALUE,
                "was made with 'linear:10', and 'linear:12' was asked for");
    assert_says(train("digits", NULL, .optimizer = "sgd:lr=0.2", .out = out, .resume = true), TN_ERR_VALUE,
                "'sgd:lr=0.1', and 'sgd:lr=0.2'");
    assert_says(train("digits", NULL, .batch = 99, .out = out, .resume = true), TN_ERR_VALUE, "'100', and '99'");
    assert_says(train("digits", NULL, .seed = 6, .out = out, .resume = true), TN_ERR_VALUE, "'5', and '6'");
    assert_says(train("spiral", NULL, .out = out, .resume = true), TN_ERR_VALUE, "'digits', and 'spiral'");
    assert_says(train("digits", NULL, .resume = true), TN_ERR_VALUE, "folder");

    /* A model without the state is no snapshot; neither is anything else. */
    const char *snapshot = test_path(out, "snapshot.safetensors");
    assert_int_equal(rename(test_path(out, "model.safetensors"), snapshot), 0);
    assert_says(train("digits", NULL, .out = out, .resume = true), TN_ERR_FORMAT, "is no snapshot");
    test_write(snapshot, "junk");
    assert_says(train("digits", NULL, .out = out, .resume = true), TN_ERR_FORMAT, "snapshot.safetensors");
    /* Without a snapshot, a run begins. */
    assert_int_equal(unlink(snapshot), 0);
    assert_done(train("digits", NULL, .model = "linear:10", .epochs = 1, .out = out, .resume = true));
}

static tn_array *whole_number(int64_t value)
{
    return tn_from_host(&value, (tn_shape){0}, TN_INT64, .device = tn_cpu());
}

/* Numbers of a damaged snapshot are refused, each by its name, and none is cut to what an int holds. */
static void test_resume_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text, *says;
    } rows[] = {
        {"tanso.epochs", "4294967298", "tanso.epochs"},
        {"tanso.epochs", "-3", "tanso.epochs"},
        {"tanso.batch", "9223372036854775808", "tanso.batch"},
        {"tanso.batch", "", "tanso.batch"},
        {"tanso.seed", "99999999999999999999999", "tanso.seed"},
    };
    static const struct {
        const char *path;
        int64_t value;
        const char *says;
    } numbers[] = {
        {"updater/optimizer:main/t", INT64_MAX, "main/t"},
        {"updater/optimizer:main/t", -1, "main/t"},
        {"updater/iterator:main/epoch", 4294967298, "is of epoch 4294967298 and holds the figures of 2"},
        {"updater/iterator:main/epoch", 1, "is of epoch 1 and holds the figures of 2"},
        {"updater/iterator:main/current_position", 30, "updater/iteration"},
        {"updater/iteration", -1, "updater/iteration"},
        {"updater/iteration", 5, "updater/iteration"},
    };
    const char *out = test_path(folder, "run"), *snapshot = test_path(out, "snapshot.safetensors");
    assert_done(train("spiral", NULL, .model = "linear:3", .epochs = 2, .out = out));
    tn_archive *archive = tn_archive_load(snapshot);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *kept = strdup(tn_archive_text(archive, rows[i].key));
        assert_done(tn_archive_set_text(archive, rows[i].key, rows[i].text));
        assert_done(tn_archive_save(archive, snapshot));
        assert_says(train("spiral", NULL, .out = out, .resume = true), TN_ERR_FORMAT, rows[i].says);
        assert_done(tn_archive_set_text(archive, rows[i].key, kept));
        free(kept);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) TN_SCOPE {
        assert_non_null(tn_archive_find(archive, numbers[i].path));
        int64_t kept = (int64_t)tn_item(tn_archive_find(archive, numbers[i].path));
        assert_done(tn_archive_add(archive, numbers[i].path, whole_number(numbers[i].value)));
        assert_done(tn_archive_save(archive, snapshot));
        assert_says(train("spiral", NULL, .out = out, .resume = true), TN_ERR_FORMAT, numbers[i].says);
        assert_done(tn_archive_add(archive, numbers[i].path, whole_number(kept)));
    }
    static const double epochs[] = {1e300, -1e300, NAN, INFINITY, 3, 1.5, 0};
    double table[12];
    memcpy(table, tn_data(tn_archive_find(archive, "history")), sizeof table);
    for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) TN_SCOPE {
        table[6] = epochs[i]; /* the second row's first column */
        assert_done(tn_archive_add(archive, "history", tn_from_host(table, TN_SHAPE(2, 6), TN_FLOAT64,
                                                                    .device = tn_cpu())));
        assert_done(tn_archive_save(archive, snapshot));
        assert_says(train("spiral", NULL, .out = out, .resume = true), TN_ERR_FORMAT, "expected row 2 of \"history\"");
    }
    tn_archive_free(archive);
}

/* ---- what goes wrong ---- */

static void test_nan_keeps_the_last_good(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("a child by fork, which a GPU does not work for");
    const char *out = test_path(folder, "run"), *kept = test_path(folder, "kept");
    const char *snapshot = test_path(out, "snapshot.safetensors");
    assert_done(train("digits", NULL, .epochs = 1, .out = out));
    assert_int_equal(link(snapshot, kept), 0);
    assert_says(train("digits", NULL, .model = "linear:30 relu linear:10", .optimizer = "sgd:lr=1e30", .out = out),
                TN_ERR_NAN, "of epoch 1");
    assert_true(test_same_files(snapshot, kept));
    assert_int_equal(count_of("\n", test_path(out, "log.jsonl")), 1);
    assert_says(train("digits", NULL, .model = "linear:30 relu linear:10", .optimizer = "sgd:lr=1e30"), TN_ERR_NAN,
                "lower the learning rate");
}

/* Stopped by its flag a run makes a snapshot of that step, from which it goes on to the same bits; one that was stopped
 * before it did anything makes none, and one that was stopped in its first epoch leaves an earlier run's alone. */
static volatile int stop;

static ssize_t stopping_write(void *cookie, const char *text, size_t size)
{
    (void)cookie;
    stop = stop || memmem(text, size, "epoch 2/", 8) != NULL;
    return (ssize_t)size;
}

static void test_stop(void **state)
{
    (void)state;
    const char *out = test_path(folder, "run"), *whole = test_path(folder, "whole"), *model = "linear:5 dropout:0.4 "
                                                                                              "linear:10";
    stop = 1;
    assert_says(train("digits", NULL, .model = model, .out = out, .stop = &stop), TN_ERR_STATE,
                "before the first step");
    assert_false(test_exists(test_path(out, "model.safetensors")));
    assert_done(train("digits", NULL, .model = model, .epochs = 4, .out = whole));
    FILE *report = fopencookie(NULL, "w", (cookie_io_functions_t){.write = stopping_write});
    setvbuf(report, NULL, _IONBF, 0);
    stop = 0;
    assert_says(train("digits", NULL, .model = model, .epochs = 4, .out = out, .report = report, .stop = &stop),
                TN_ERR_STATE, "stopped after epoch 2");
    fclose(report);
    assert_true(test_exists(test_path(out, "model.safetensors")));
    assert_done(train("digits", NULL, .out = out, .resume = true));
    assert_true(test_same_files(test_path(out, "model.safetensors"), test_path(whole, "model.safetensors")));
    assert_true(test_same_files(test_path(out, "curve.svg"), test_path(whole, "curve.svg")));
    stop = 1;
    assert_says(train("digits", NULL, .model = model, .seed = 3, .out = out, .stop = &stop), TN_ERR_STATE, "stopped");
    assert_true(test_same_files(test_path(out, "model.safetensors"), test_path(whole, "model.safetensors")));
    assert_done(train("digits", NULL, .out = out, .resume = true));
}

/* One run at a time in a folder; those that have ended, as they may, keep nobody out. */
static void test_two_at_once(void **state)
{
    (void)state;
    const char *out = test_path(folder, "run");
    assert_done(train("spiral", NULL, .model = "linear:3", .epochs = 1, .out = out));
    int other = open(out, O_RDONLY | O_DIRECTORY); /* as another run would */
    assert_true(other >= 0 && flock(other, LOCK_EX | LOCK_NB) == 0);
    assert_says(train("spiral", NULL, .model = "linear:3", .epochs = 1, .out = out), TN_ERR_STATE, "another run");
    close(other);
    assert_says(train("spiral", NULL, .model = "linaer:3", .epochs = 1, .out = out), TN_ERR_NAME, "linear");
    assert_done(train("spiral", NULL, .epochs = 2, .out = out, .resume = true));
}

/* Half a file that a killed run has left goes when the next one begins; whatever else is there stays. */
static void test_left_overs(void **state)
{
    (void)state;
    const char *out = test_path(folder, "run");
    assert_int_equal(mkdir(out, 0777), 0);
    char mine[64];
    snprintf(mine, sizeof mine, "snapshot.safetensors.tmp-%ld-77", (long)getpid());
    const char *const gone[] = {"snapshot.safetensors.tmp-2147483647-1", "model.safetensors.tmp-2147483646-12",
                                "log.jsonl.tmp-2147483646-3", mine}; /* in a container, each life's number */
    const char *const kept[] = {"log.jsonl.tmp-x-1", "other.tmp-2147483646-1", "curve.svg.tmp-2147483646-1x",
                                "model.safetensors.tmp-"};
    for (int i = 0; i < 4; i++) {
        test_write(test_path(out, gone[i]), "half");
        test_write(test_path(out, kept[i]), "whole");
    }
    assert_done(train("spiral", NULL, .model = "linear:3", .epochs = 1, .out = out));
    for (int i = 0; i < 4; i++) {
        assert_false(test_exists(test_path(out, gone[i])));
        assert_true(test_exists(test_path(out, kept[i])));
    }
}

static void test_bad_arguments(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    assert_says(train(NULL, NULL), TN_ERR_VALUE, "NULL");
    assert_says(train("", NULL), TN_ERR_VALUE, "dataset");
    assert_says(train("digist", NULL), TN_ERR_NAME, "digits");
    assert_says(train("digits", NULL, .epochs = -1), TN_ERR_VALUE, "-1");
    assert_says(train("digits", NULL, .batch = -7), TN_ERR_VALUE, "-7");
    assert_says(train("digits", NULL, .model = "linera:10"), TN_ERR_NAME, "linear");
    assert_says(train("digits", NULL, .model = "linear:9"), TN_ERR_SHAPE, "linear:10");
    assert_says(train("sine", NULL, .model = "linear:2"), TN_ERR_SHAPE, "linear:1");
    assert_says(train("digits", NULL, .model = "relu"), TN_ERR_VALUE, "linear:10");
    assert_says(train("digits", NULL, .optimizer = "adm"), TN_ERR_NAME, "adam");
    assert_says(train("digits", NULL, .schedule = "cosin"), TN_ERR_NAME, "cosine");
    assert_says(train("digits", NULL, .schedule = "steps of ten"), TN_ERR_NAME, "constant, linear, cosine");
    assert_says(tn_train("digits", NULL, .device = {TN_DEVICE_NULL, 0}), TN_ERR_DEVICE, "computes nothing");
    assert_says(tn_train("digits", NULL, .device = {TN_DEVICE_CPU, 7}), TN_ERR_DEVICE, "cpu");
    assert_says(train("digits", NULL, .out = ""), TN_ERR_VALUE, "folder");
    assert_says(train("digits", NULL, .out = "/proc/nowhere/run"), TN_ERR_IO, "/proc/nowhere");
    test_write(test_path(folder, "file"), "");
    assert_says(train("digits", NULL, .out = test_path(folder, "file")), TN_ERR_IO, "file");
    assert_int_equal(tn_live_arrays(), arrays);
}

/* A disk that takes no more: the error says so, and what was there stays whole. A process of its own, as the limit
 * stays. */
static void test_full_disk(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("a child by fork, which a GPU does not work for");
    const char *out = test_path(folder, "run"), *kept = test_path(folder, "kept");
    assert_done(train("digits", NULL, .epochs = 1, .out = out));
    assert_int_equal(link(test_path(out, "model.safetensors"), kept), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {2048, 2048};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        tn_set_compile(TN_COMPILE_NEVER);
        tn_status status = train("digits", NULL, .epochs = 1, .seed = 9, .out = out);
        _exit(status == TN_ERR_IO && strstr(tn_error(), "snapshot.safetensors") ? 0 : 1);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_true(test_same_files(test_path(out, "model.safetensors"), kept));
    char command[600];
    snprintf(command, sizeof command, "test -z \"$(ls '%s' | grep tmp)\"", out);
    assert_int_equal(system(command), 0); /* no half-written file is left */
}

/* Whichever allocation fails, the error is reported and nothing leaks. */
static void test_no_memory(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    const char *out = test_path(folder, "run");
    tn__fail_allocation_after(-1);
    assert_done(train("spiral", NULL, .model = "linear:3", .epochs = 1, .out = out));
    long count = tn__fail_allocation_after(-1);
    size_t arrays = tn_live_arrays();
    for (int i = 0; i < 60; i++) {
        long nth = i < 20 ? i : test_random_int(&chance, 0, count);
        tn__fail_allocation_after(nth);
        tn_status status = train("spiral", NULL, .model = "linear:3", .epochs = 1, .out = out);
        tn__fail_allocation_after(-1);
        if (status == TN_OK ? !tn_ok() : tn_error_code() == TN_OK)
            fail_msg("allocation %ld: %s, but %s", nth, tn_status_name(status), tn_error());
        tn_clear_error();
        if (tn_live_arrays() != arrays)
            fail_msg("allocation %ld: %zu arrays are left, %zu were there", nth, tn_live_arrays(), arrays);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

static void test_evaluate(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_layer *net = tn_sequential(tn_dropout(0.9), tn_linear(3, .in = 2));
    double loss, accuracy, loss_of_small;
    tn_dataset *spiral = tn_spiral(37, 1);
    assert_done(tn_evaluate(net, spiral, 0, test_device(), &loss, &accuracy));
    assert_done(tn_evaluate(net, spiral, 10, test_device(), &loss_of_small, NULL)); /* 111 = 11 x 10 + 1 */
    assert_float_equal(loss, loss_of_small, 1e-6);
    assert_true(tn_layer_training(net)); /* as before */
    TN_SCOPE {
        tn_layer_train(net, false);
        tn_array *y = tn_forward(net, tn_to(tn_dataset_x(spiral), test_device()));
        tn_array *t = tn_to(tn_dataset_t(spiral), test_device());
        assert_float_equal(loss, tn_item(tn_softmax_cross_entropy(y, t)), 1e-6);
        assert_float_equal(accuracy, tn_item(tn_accuracy(y, t)), 1e-6);
    }
    tn_dataset *empty = tn_spiral(0, 1);
    assert_says(tn_evaluate(net, empty, 0, test_device(), &loss, &accuracy), TN_ERR_VALUE, "no samples");
    assert_true(isnan(loss) && isnan(accuracy));
    assert_says(tn_evaluate(NULL, empty, 0, test_device(), &loss, &accuracy), TN_ERR_VALUE, "NULL");
    tn_dataset_free(empty);
    tn_dataset_free(spiral);
    tn_layer_free(net);
    assert_int_equal(tn_live_arrays(), arrays);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_files_and_figures),
        CASE(test_plans_are_of_the_first_epoch),
        CASE(test_defaults_learn),
        CASE(test_recipes),
        CASE(test_outputs_that_fit),
        CASE(test_resume),
        CASE(test_resume_agrees),
        CASE(test_in_the_way),
        CASE(test_resume_refused),
        CASE(test_resume_damaged),
        CASE(test_nan_keeps_the_last_good),
        CASE(test_stop),
        CASE(test_two_at_once),
        CASE(test_left_overs),
        CASE(test_bad_arguments),
        CASE(test_full_disk),
        CASE(test_no_memory),
        CASE(test_evaluate),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
