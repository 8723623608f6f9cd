/* SPDX-License-Identifier: MIT */
/* Extensions and schedules of tn_train by name: every row of the table in a run, what words mean, and bad ones. */
#include <math.h>
#include "core/memory.h"
#include "support/device.h"
#include "trainer_setup.h"

#define run(epochs_, ...) \
    tn_train("spiral", NULL, .device = test_device(), .model = "linear:4 tanh linear:3", .epochs = epochs_, __VA_ARGS__)

static void assert_done(tn_status status)
{
    if (status != TN_OK || !tn_ok())
        fail_msg("%s", tn_error());
}

/* ---- the table ---- */

/* Words that a row cannot do without, and the file that it writes. */
static const struct {
    const char *name, *word, *file;
} needs[] = {
    {"micro-average", "micro-average:main/loss,main/accuracy,ratio", NULL},
    {"multistep", "multistep:steps=1/2", NULL},
    {"best-model", NULL, "best.safetensors"},
    {"log", NULL, "log"},
    {"print", "print:epoch,main/loss,file=table", "table"},
    {"plot", NULL, "plot.svg"},
    {"variable-statistics-plot", NULL, "statistics.svg"},
    {"dump-graph", NULL, "cg.dot"},
    {"profile", "profile:first=2,count=3", "profile.json"},
};

static void test_each_row(void **state)
{
    (void)state;
    const tn_train_part *part;
    int count = 0;
    for (; (part = tn_train_part_at(count)); count++) {
        const char *word = part->name, *file = NULL, *out = test_path(folder, part->name);
        for (size_t k = 0; k < sizeof needs / sizeof *needs; k++)
            if (strcmp(needs[k].name, part->name) == 0) {
                word = needs[k].word ? needs[k].word : word;
                file = needs[k].file;
            }
        assert_done(tn_train_check(part->schedules ? word : NULL, word));
        assert_done(run(3, .extend = word, .out = out));
        if (file && !test_exists(test_path(out, file)))
            fail_msg("%s wrote no %s", word, file);
        if (part->schedules)
            assert_done(run(2, .schedule = word));
        assert_true(*part->text);
    }
    assert_true(count > 20);
    assert_null(tn_train_part_at(-1));
}

/* ---- what they do ---- */

/* The numbers of a key in a log, in order. */
static int numbers_of(const char *path, const char *key, double *numbers, int most)
{
    char *text = test_read(path, NULL), wanted[64];
    int count = 0;
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    for (const char *at = text; at && (at = strstr(at, wanted)) && count < most; at += strlen(wanted))
        numbers[count++] = atof(at + strlen(wanted));
    free(text);
    return count;
}

static void test_schedules(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        double rates[4]; /* of the epochs */
    } rows[] = {
        {"constant", {0.4, 0.4, 0.4, 0.4}},
        {"linear", {0.4, 0.3, 0.2, 0.1}},
        {"linear:from=1,to=2,end=2", {1, 1.5, 2, 2}},
        {"cosine", {0.4, 0.2 + 0.1414213562373095, 0.2, 0.2 - 0.1414213562373095}},
        {"cosine:warmup=2,last=0.1,every=1ep", {0, 0.2, 0.4, 0.25}},
        {"step:gamma=0.5,step=2", {0.4, 0.4, 0.2, 0.2}},
        {"multistep:gamma=0.5,steps=1/3", {0.4, 0.2, 0.2, 0.1}},
        {"exponential:rate=0.5,target=0.15", {0.4, 0.2, 0.15, 0.15}},
        {"inverse:gamma=1,power=1", {0.4, 0.2, 0.4 / 3, 0.1}},
        {"polynomial:power=2", {0.4, 0.225, 0.1, 0.025}},
        {"plateau:factor=0.5,patience=0,threshold=1e9", {0.4, 0.4, 0.2, 0.1}}, /* none is so much better */
        {"warmup:start=0.1,end=3,every=1ep", {0.1, 0.2, 0.3, 0.4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        const char *out = test_path(folder, name);
        double rates[8];
        assert_done(run(4, .optimizer = "sgd:lr=0.4", .schedule = rows[i].schedule, .extend = "log observe-lr",
                        .out = out));
        assert_int_equal(numbers_of(test_path(out, "log"), "lr", rates, 8), 4);
        for (int k = 0; k < 4; k++)
            if (!(fabs(rates[k] - rows[i].rates[k]) < 1e-6))
                fail_msg("%s: epoch %d has %g, expected %g", rows[i].schedule, k + 1, rates[k], rows[i].rates[k]);
    }
}

/* A warm-up rises in each iteration, so that the first epoch is not trained at a rate of 0: what is observed is that of
 * an epoch's last iteration. */
static void test_warms_up(void **state)
{
    (void)state;
    static const char *const schedules[] = {"cosine:warmup=2", "cosine:warmup=2,start=0.1"};
    static const double starts[] = {0, 0.1};
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "warm%d", i);
        const char *out = test_path(folder, name);
        double rates[8], last[8];
        assert_done(run(4, .optimizer = "sgd:lr=0.4", .schedule = schedules[i], .extend = "log observe-lr",
                        .out = out));
        assert_int_equal(numbers_of(test_path(out, "log"), "lr", rates, 8), 4);
        assert_int_equal(numbers_of(test_path(out, "log"), "iteration", last, 8), 4);
        for (int k = 0; k < 2; k++) {
            double place = (k + 1) - 1 / last[0];
            assert_float_equal(rates[k], starts[i] + (0.4 - starts[i]) * place / 2, 1e-6);
        }
        assert_true(last[0] > 1 && rates[2] < 0.4 && rates[3] < rates[2]);
    }
}

/* A run with more epochs than the one it goes on from has the rates that it would have had there. */
static void test_more_epochs(void **state)
{
    (void)state;
    static const char *const schedules[] = {"linear", "cosine"};
    static const double expected[] = {0.2, 0.1, 0.2, 0.2 - 0.1414213562373095};
    for (int i = 0; i < 2; i++) {
        const char *out = test_path(folder, schedules[i]);
        double rates[8];
        assert_done(run(2, .optimizer = "sgd:lr=0.4", .schedule = schedules[i], .extend = "log observe-lr",
                        .out = out));
        assert_done(run(4, .out = out, .resume = true));
        assert_int_equal(numbers_of(test_path(out, "log"), "lr", rates, 8), 4);
        for (int k = 2; k < 4; k++)
            assert_float_equal(rates[k], expected[2 * i + k - 2], 1e-6);
    }
}

/* With a rate of 0 nothing becomes better: ended after the looks that patience lets pass, with all files of the end,
 * and once for all. */
static void test_early_stopping(void **state)
{
    (void)state;
    const char *out = test_path(folder, "run");
    static const char *const words[] = {"early-stopping:patience=2", "early-stopping:patience=2 snapshot:every=7it"};
    for (int i = 0; i < 2; i++) {
        tn_epoch last;
        assert_done(tn_train("spiral", &last, .device = test_device(), .model = "linear:3", .optimizer = "sgd:lr=0",
                             .epochs = 50, .extend = words[i], .out = out));
        assert_int_equal(last.epoch, 3);
        double test_losses[4];
        assert_int_equal(numbers_of(test_path(out, "log.jsonl"), "test_loss", test_losses, 4), 3);
        last.epoch = 0;
        assert_done(tn_train("spiral", &last, .device = test_device(), .out = out, .resume = true));
        assert_int_equal(last.epoch, 3);
    }
}

/* A run that ends early leaves all files of its last step, which resuming makes anew: whatever interval snapshots have,
 * which may be made of a step when the others are not due. It ends soon where losses that fall should rise: within an
 * epoch of 10 steps, at its end, and in the first, over another run's files too. */
static void check_files_of_the_end(const char *out, const char *stop, const char *snapshot, bool within_first)
{
    static const char *const names[] = {"model.safetensors", "curve.svg"};
    char words[128], *before[2];
    size_t sizes[2], size;
    tn_epoch last;
    int files = within_first ? 1 : 2; /* before a first test there is no curve */
    snprintf(words, sizeof words, "early-stopping:main/loss,mode=greater,patience=2,every=%s %s", stop, snapshot);
    assert_done(tn_train("spiral", &last, .device = test_device(), .model = "linear:4 tanh linear:3", .batch = 30,
                         .optimizer = "sgd:lr=0.5", .epochs = 50, .extend = words, .out = out));
    assert_in_range(last.epoch, within_first ? 0 : 1, within_first ? 0 : 49);
    assert_int_equal(last.further > 0, strstr(stop, "it") != NULL);
    int64_t further = last.further;
    for (int k = 0; k < files; k++)
        before[k] = test_read(test_path(out, names[k]), &sizes[k]);
    assert_done(tn_train("spiral", &last, .device = test_device(), .out = out, .resume = true));
    assert_int_equal(last.further, further);
    for (int k = 0; k < files; k++) {
        char *after = test_read(test_path(out, names[k]), &size);
        if (!after || !before[k] || size != sizes[k] || memcmp(after, before[k], size) != 0)
            fail_msg("%s: %s is not of the end", words, names[k]);
        free(after);
        free(before[k]);
    }
}

static void test_files_of_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *stop, *snapshot;
        bool within_first;
    } rows[] = {{"7it", "snapshot:every=7it", false}, {"7it", "snapshot:every=2ep", false}, {"7it", "log", false},
                {"1ep", "snapshot:every=1ep", false}, {"1ep", "snapshot:every=7it", false}, {"1ep", "log", false},
                {"1it", "snapshot:every=1it", true},  {"1it", "snapshot:every=3ep", true},  {"1it", "log", true}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        const char *out = test_path(folder, name);
        if (i % 2)
            assert_done(run(1, .out = out, .seed = 7));
        check_files_of_the_end(out, rows[i / 2].stop, rows[i / 2].snapshot, rows[i / 2].within_first);
    }
}

static void test_best_model(void **state)
{
    (void)state;
    const char *out = test_path(folder, "run"), *best = test_path(out, "best.safetensors");
    /* The rate grows until all is lost: the best is an early one. */
    assert_done(run(8, .optimizer = "sgd:lr=0.05", .schedule = "exponential:rate=20", .extend = "best-model",
                    .out = out));
    double losses[9], least = INFINITY, loss;
    assert_int_equal(numbers_of(test_path(out, "log.jsonl"), "test_loss", losses, 9), 8);
    for (int i = 0; i < 8; i++)
        least = losses[i] < least ? losses[i] : least;
    assert_true(least < losses[7]);
    tn_archive *archive = tn_archive_load(best);
    tn_layer *net = tn_layer_parse(tn_archive_text(archive, "tanso.model"));
    tn_dataset *test = tn_dataset_named(tn_archive_text(archive, "tanso.dataset"), TN_TEST);
    assert_done(tn_layer_load(net, best));
    assert_done(tn_evaluate(net, test, 1000, test_device(), &loss, NULL));
    assert_float_equal(loss, least, 1e-6 * least);
    tn_dataset_free(test);
    tn_layer_free(net);
    tn_archive_free(archive);
}

/* ---- bad words ---- */

static void assert_says(tn_status got, tn_status wanted, const char *text)
{
    if (got != wanted || !strstr(tn_error(), text))
        fail_msg("expected %s with '%s', got %s: %s", tn_status_name(wanted), text, tn_status_name(got), tn_error());
    tn_clear_error();
}

static void test_bad_words(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *extend;
        tn_status status;
        const char *says;
    } rows[] = {
        {"linera", NULL, TN_ERR_NAME, "did you mean 'linear'? There are constant, linear"},
        {"early-stopping", NULL, TN_ERR_NAME, "there is no schedule"},
        {"step:gama=1", NULL, TN_ERR_NAME, "did you mean 'gamma'? It takes gamma, step"},
        {"step:step=-1", NULL, TN_ERR_VALUE, "step takes a number of 0 or more, not '-1'"},
        {"step:step=0", NULL, TN_ERR_VALUE, "above 0"},
        {"step:gamma=", NULL, TN_ERR_VALUE, "gamma is empty"},
        {"step:gamma=1,gamma=2", NULL, TN_ERR_VALUE, "gamma is given twice"},
        {"step:3", NULL, TN_ERR_NAME, "has no use for '3'"},
        {"multistep", NULL, TN_ERR_VALUE, "steps=30/60"},
        {"multistep:steps=60/30", NULL, TN_ERR_VALUE, "rising"},
        {"multistep:steps=30/", NULL, TN_ERR_VALUE, "slashes"},
        {"cosine:every=3days", NULL, TN_ERR_VALUE, "500it, 2ep or 30s, not '3days'"},
        {"", NULL, TN_ERR_NAME, "there is no schedule ''"},
        {NULL, "plto", TN_ERR_NAME, "there is no extension 'plto': did you mean 'plot'?"},
        {NULL, "plot:main/loss,file=x.gif", TN_ERR_VALUE, ".gif"},
        {NULL, "plot:main/loss,scale=cube", TN_ERR_VALUE, "auto, linear or log, not 'cube'"},
        {NULL, "plot:file=curve.svg", TN_ERR_VALUE, "each run has"},
        {NULL, "plot:every=0it", TN_ERR_VALUE, "0"},
        {NULL, "plot:every=1.5it", TN_ERR_VALUE, "1.5"},
        {NULL, "early-stopping:patience=0", TN_ERR_VALUE, "1 or more"},
        {NULL, "early-stopping:patience=1.5", TN_ERR_VALUE, "whole"},
        {NULL, "early-stopping:patience=many", TN_ERR_VALUE, "'many'"},
        {NULL, "early-stopping:a,b", TN_ERR_VALUE, "one key"},
        {NULL, "micro-average:a,b", TN_ERR_VALUE, "three keys"},
        {NULL, "log:file=a log:file=", TN_ERR_VALUE, "file is empty"},
        {NULL, "profile:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25", TN_ERR_VALUE, "more than"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_says(tn_train_check(rows[i].schedule, rows[i].extend), rows[i].status, rows[i].says);
    assert_done(tn_train_check(NULL, NULL));
    assert_done(tn_train_check("linear", "  log   plot:main/loss  "));
    /* What only a run knows. */
    const char *out = test_path(folder, "run");
    assert_says(run(1, .extend = "plot"), TN_ERR_VALUE, "`out` is NULL");
    assert_says(run(1, .extend = "snapshot snapshot", .out = out), TN_ERR_VALUE, "twice");
    assert_says(run(1, .extend = "plot plot", .out = out), TN_ERR_NAME, "plot.svg");
    assert_done(run(1, .extend = "log", .out = out));
    assert_says(run(2, .extend = "plot", .out = out, .resume = true), TN_ERR_VALUE, "another list of extensions");
    assert_says(run(2, .schedule = "cosine:warmup=1", .extend = "multistep:steps=1"), TN_ERR_VALUE,
                "CosineShift and MultistepShift");
    /* An extension's schedule stands in the place of the one that suits the dataset. */
    double rates[4];
    const char *other = test_path(folder, "other");
    assert_done(run(2, .extend = "log observe-lr step:gamma=0.25,step=1", .out = other));
    assert_int_equal(numbers_of(test_path(other, "log"), "lr", rates, 4), 2);
    assert_true(rates[0] > 0 && fabs(rates[1] - 0.25 * rates[0]) < 1e-9 * rates[0]);
}

/* Whichever allocation fails, it is said and nothing leaks. */
static void test_no_memory(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    const char *words = "early-stopping best-model log print plot:main/loss snapshot:every=7it plateau step cosine";
    for (long n = 0, done = 0; !done && n < 2000; n++) {
        tn__fail_allocation_after(n);
        tn_status status = tn_train_check("multistep:steps=1/2", words);
        tn__fail_allocation_after(-1);
        done = status == TN_OK;
        if (!done && status != TN_ERR_MEMORY)
            fail_msg("without allocation %ld: %s", n, tn_error());
        tn_clear_error();
    }
    assert_int_equal(tn_live_arrays(), arrays);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_each_row),       CASE(test_schedules),  CASE(test_more_epochs), CASE(test_early_stopping),
        CASE(test_warms_up),       CASE(test_files_of_the_end), CASE(test_best_model), CASE(test_bad_words),
        CASE(test_no_memory),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
